"""Writes bundled-hyperparams-vectors.json: what the real clients make of hyperparameters of the recipes that they ship.

    python3.13 -m venv venv && venv/bin/pip install starforge-core==0.3.56 tuneplane==0.4.0
    venv/bin/python bundled-hyperparams-vectors.py > bundled-hyperparams-vectors.json

One vector a line: `dialect`, `recipe`, `version` of the framework, `given` (JSON text), and either `filled`, the parameters with
defaults filled in, or `field` of the refusal. Every parameter of every recipe is tried with a value, chosen by a fixed seed.
"""

import json
import os
import random
import tempfile

os.environ["HOME"] = tempfile.mkdtemp()  # the packages look for a configuration there

from starforge.contract.errors import SpecError as ForgeError  # noqa: E402
from starforge.recipes import all_recipes as forge_recipes  # noqa: E402
from tuneplane.contract.errors import SpecError as TuneError  # noqa: E402
from tuneplane.recipes import all_recipes as tune_recipes  # noqa: E402
from tuneplane.recipes.model import Recipe as TuneRecipe  # noqa: E402

rng = random.Random(8)
VALUES = [0, 1, 2, -1, 7, 0.5, 1.0, 1.5, -0.25, 1e6, True, False, "", "a", "auto", None, [1], 10**20]


def fitting(spec):
    """Values at the edges of what the parameter takes."""
    values = list(spec.choices or ())
    for bound in (spec.minimum, spec.maximum):
        if bound is not None:
            values += [bound, bound + 1, bound - 1]
    return values or {"int": [3], "float": [0.3], "bool": [True], "str": ["x"]}.get(spec.type, [])


def required(recipe):
    return {p.name: "x" for p in recipe.params.values() if p.required and p.type == "str"}


def answer(recipe, given, version):
    try:
        filled = recipe.validate_hyperparams(given)
        if isinstance(recipe, TuneRecipe):
            recipe.config_overrides(given, version=version)  # which refuses what the version does not offer
        return {"filled": filled}
    except (ForgeError, TuneError) as refusal:
        return {"field": refusal.field}


def vectors(dialect, recipes):
    for recipe in recipes:
        version = rng.choice(list(recipe.runtime.versions))
        for spec in recipe.params.values():
            value = rng.choice(fitting(spec) if rng.random() < 0.6 else VALUES)
            given = {**required(recipe), spec.name: value}
            yield {"dialect": dialect, "recipe": recipe.id, "version": version, "given": json.dumps(given), **answer(recipe, given, version)}


def main():
    lines = []
    for dialect, recipes in (("forge", forge_recipes()), ("tuneplane", tune_recipes())):
        lines += [json.dumps(v) for v in vectors(dialect, recipes.values() if isinstance(recipes, dict) else recipes)]
    print('{"format": "gatehouse-vectors/bundled-hyperparams/1", "vectors": [\n' + ",\n".join(lines) + "\n]}")


main()
