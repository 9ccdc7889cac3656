"""Writes hyperparams-vectors.json: what the real clients make of a job's hyperparameters.

    python3.13 -m venv venv && venv/bin/pip install starforge-core==0.3.56 tuneplane==0.4.0
    venv/bin/python hyperparams-vectors.py > hyperparams-vectors.json

One vector a line: `params` (the block of a recipe.yaml, as YAML), `given` (JSON), and by package `starforge` and `tuneplane`
the answer of Recipe.validate_hyperparams: {"ok": filled in}, {"field": of the refusal} or {"crash": Python class}.
"""

import json
import math
import os
import random
import tempfile

os.environ["HOME"] = tempfile.mkdtemp()  # the packages look for a configuration there

import yaml  # noqa: E402
from starforge.contract.errors import SpecError as ForgeError  # noqa: E402
from starforge.recipes.model import Recipe as ForgeRecipe  # noqa: E402
from tuneplane.contract.errors import SpecError as TuneError  # noqa: E402
from tuneplane.recipes.model import Recipe as TuneRecipe  # noqa: E402

rng = random.Random(8)
VALUES = [0, 1, 2, 3, -1, 5, 10, 0.5, 1.0, 1.5, 2.0, -0.0, True, False, "a", "b", "", "1", None, [1], [1.0], {"a": 1}, math.nan, math.inf, 10**25, 1e25, "fast"]
SPECS = [
    {}, {"type": "int"}, {"type": "float"}, {"type": "bool"}, {"type": "str"}, {"type": "enum"}, {"type": "enum", "choices": [1, "a", None]},
    {"type": "int", "min": 1}, {"type": "int", "min": 1, "exclusive_min": True}, {"type": "float", "max": 1.5}, {"type": "float", "min": 0, "max": 2},
    {"type": "int", "min": "a"}, {"type": "float", "max": "1"}, {"type": "float", "min": math.nan}, {"type": "int", "min": True}, {"type": "int", "choices": [1, 2]},
    {"type": "float", "choices": [0.5, 1]}, {"type": "str", "choices": ["a"]}, {"type": "bool", "choices": [True]}, {"type": "enum", "choices": [True, 0]},
    {"required": True}, {"required": "no", "default": "a"}, {"type": "int", "default": "text"}, {"type": "enum", "choices": [[1], {"a": 1}]}, {"default": None}, {"type": "int", "default": 0},
]


def recipe(artifacts, params):
    return {
        "name": "demo", "version": "1", "framework": "custom", "template": "template", "entrypoint": {"kind": "module", "value": "m"},
        "adapter_options": {"observability": "external"}, "lifecycle": {}, "lifecycle_resources": {}, "metrics": {"primary": ["a"], "aliases": {}},
        "runtime": {"default_version": "x", "versions": {"x": {}}}, "params": params,
        "artifacts": {"version": artifacts, "checkpoints": [], "logs": [], "exports": [], "evaluations": [], "formats": dict.fromkeys(["checkpoint", "log", "hf_export", "eval_report"], "f")},
    }


def marked(value):
    """Values as testdata/vectors/README.md writes what JSON can't hold."""
    if isinstance(value, float) and (not math.isfinite(value) or value == int(value)):
        return {"$float": repr(value)}
    if isinstance(value, int) and abs(value) > 2**53:
        return {"$int": str(value)}
    if isinstance(value, dict):
        return {k: marked(v) for k, v in value.items()}
    if isinstance(value, list):
        return [marked(v) for v in value]
    return value


def answer(cls, artifacts, params, given):
    try:
        return {"ok": marked(cls.from_dict(recipe(artifacts, params)).validate_hyperparams(given))}
    except (ForgeError, TuneError) as refusal:
        return {"field": refusal.field}
    except Exception as crash:  # noqa: BLE001
        return {"crash": type(crash).__name__}


def cases():
    for spec in SPECS:
        yield {"p": spec}, {}
        for value in VALUES:
            yield {"p": spec}, {"p": value}
    for _ in range(60):
        given = {name: rng.choice(VALUES) for name in "abcz" if rng.random() < 0.6}
        yield {name: rng.choice(SPECS) for name in "abc"}, given


def main():
    lines = []
    for number, (params, given) in enumerate(cases(), 1):
        text = yaml.safe_dump(params, default_flow_style=True, width=10**6).strip()
        given_text = json.dumps(given)
        vector = {"id": f"hyp-{number:04}", "params": text, "given": given_text}
        for package, cls, artifacts in (("starforge", ForgeRecipe, "forge/artifacts/v1"), ("tuneplane", TuneRecipe, "tuneplane/artifacts/v1")):
            vector[package] = answer(cls, artifacts, yaml.safe_load(text), json.loads(given_text))
        lines.append(json.dumps(vector))
    print('{"format": "gatehouse-vectors/hyperparams/1", "vectors": [\n' + ",\n".join(lines) + "\n]}")


main()
