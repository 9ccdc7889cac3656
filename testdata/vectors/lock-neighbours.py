"""Writes lock-neighbours.json: how the real clients take a recipe lock in which one value, or a few, are odd, and what they
bind of configs that inherit in odd ways.

    python3.11 -m venv venv && venv/bin/pip install starforge-core==0.3.56 tuneplane==0.4.0
    venv/bin/python lock-neighbours.py > lock-neighbours.json      # beside recipe-lock-vectors.json; --all for more, to compare with once

Two kinds of vectors, one a line. All inputs are our own.
- {"d": dialect, "c": catalogue of recipe-lock-vectors.json, "put": [[path, JSON text], ...], "raw"?: the whole lock as text,
  "r"?: the recipe asked for}: the lock is the base lock of the dialect with the values put at their paths (GONE removes the
  key), written with json.dumps. The answer: "state", "recipe", "version", "changes" as [field, locked, current], or
  "crash", a Python class.
- {"d": dialect, "files": {path: text}}: experiments/x of a project with these files. The answer: "bound", the names of the
  parameters of labfw/tune that a fresh lock binds.
"""

import importlib
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile

WORK = pathlib.Path(tempfile.mkdtemp())
os.environ.update(HOME=str(WORK), FORGE_HOME=str(WORK / "forge"), TUNEPLANE_HOME=str(WORK / "tune"))
CLIENTS = {"forge": ("starforge", "sf", WORK / "forge"), "tuneplane": ("tuneplane", "tp", WORK / "tune")}
VECTORS = json.loads((pathlib.Path(__file__).parent / "recipe-lock-vectors.json").read_text())

ALL = "--all" in sys.argv
ODD = ["GONE", "null", "0", "1", "1.5", "1.10", "true", "false", '""', '" "', "[]", "{}", '["x"]', '{"x": 1}', '"other"', '"größe 😀"', '"\\ud800"', '"1\\u00002"']
FIELDS = ["apiVersion", "recipe", "framework", "requires", "bindings", "created_by", "recipe.name", "recipe.version", "recipe.digest",
          "recipe.manifest_digest", "recipe.template_digest", "framework.kind", "framework.version", "framework.runtime_id", "requires.core",
          "bindings.params", "bindings.entrypoint", "bindings.params.lr", "bindings.params.lr.path", "bindings.params.lr.type",
          "bindings.entrypoint.kind", "bindings.entrypoint.value", "bindings.params.none"]
APIS = ["forge/recipe-lock/v4", "forge/recipe-lock/v3", "forge/recipe-lock/v2", "forge/recipe-lock/v1", "forge/recipe-lock/v5", " forge/recipe-lock/v4\t",
        "tuneplane/recipe-lock/v1", "tuneplane/recipe-lock/v2", "lab/recipe-lock/v3", "FORGE/recipe-lock/v4"]
RAW = ["", " ", "null", "[]", "{", "{}x", "\ufeff{}", '{"apiVersion": NaN}', "{'a': 1}", "{\"a\": 1,}", "// x\n{}", "[" * 2000 + "]" * 2000, '{"a": 1e999}', "tru", '"\x01"']


def install(dialect, catalogue):
    """Puts a catalogue in place of the published recipes of a client."""
    _, _, home = CLIENTS[dialect]
    shutil.rmtree(home, ignore_errors=True)
    for p in VECTORS["catalogues"][catalogue]:
        for name, text in p["files"].items():
            at = home / "recipes" / p["owner"] / p["name"] / name
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
    package, _, _ = CLIENTS[dialect]
    module = importlib.import_module(package + ".recipes")
    module._load_catalog.cache_clear()


def put(doc, path, value):
    keys = path.split(".")
    for key in keys[:-1]:
        if not isinstance(doc.get(key), dict):
            doc[key] = {}
        doc = doc[key]
    if value == "GONE":
        doc.pop(keys[-1], None)
    else:
        doc[keys[-1]] = json.loads(value)


def lock_vectors(dialect, catalogues, rng):
    short = CLIENTS[dialect][1]
    manager = importlib.import_module(CLIENTS[dialect][0] + ".cli.recipe_lock").RecipeLockManager()
    base = VECTORS["locks"][short + "-lock:base"]
    cases = [([[f, v]], None) for f in FIELDS for v in ODD] + [([["apiVersion", json.dumps(a)]], None) for a in APIS]
    for _ in range(400 if ALL else 60):
        cases.append(([[rng.choice(FIELDS), rng.choice(ODD)] for _ in range(rng.randint(2, 3))], None))
    cases += [([["recipe.name", json.dumps(n)]], r) for n in ["labfw/tune", "", " labfw/tune ", "x/y"] for r in ["labfw/tune", " labfw/tune", "x/y", " "]]
    for catalogue in catalogues:
        install(dialect, catalogue)
        chosen = cases if catalogue == short + ":base" else [c for c in cases if rng.random() < (0.3 if ALL else 0.03)]
        for puts, requested in chosen:
            doc = json.loads(base)
            for path, value in puts:
                put(doc, path, value)
            yield answer(dialect, catalogue, {"put": puts}, json.dumps(doc), requested, manager)
    install(dialect, short + ":base")
    for text in RAW:
        yield answer(dialect, short + ":base", {"raw": text}, text, None, manager)


def answer(dialect, catalogue, given, text, requested, manager):
    exp = WORK / "exp"
    exp.mkdir(exist_ok=True)
    (exp / "recipe.lock.json").write_bytes(text.encode())
    v = {"d": dialect, "c": catalogue, **given}
    if requested is not None:
        v["r"] = requested
    try:
        got = manager.inspect(exp, requested or "")
    except Exception as exc:
        return {**v, "crash": type(exc).__name__}
    return {**v, "state": got.state.value, "recipe": got.recipe_name, "version": got.framework_version,
            "changes": [[d.field, d.locked, d.current] for d in got.diffs]}


CONFIGS = [
    {"config.yaml": "optim: {lr: 1}\ntrain: {max_steps: 3}\n"},
    {"config.yaml": "optim.lr: 1\noptim: {lr: 2}\n"},
    {"config.yaml": "optim: {lr: null}\n"},
    {"config.yaml": "optim: &a {lr: 1}\ntrain: {<<: *a, max_steps: 2}\n"},
    {"config.yaml": "optim: !!map {lr: 1}\n"},
    {"config.yaml": "optim: {lr: 1}\noptim: {}\n"},
    {"config.yaml": "defaults: b\n", "b.yaml": "optim: {lr: 1}\n"},
    {"config.yaml": "defaults: b.yml\n", "b.yml": "optim: {lr: 1}\n"},
    {"config.yaml": "defaults: b.v2\n", "b.yaml": "optim: {lr: 1}\n", "b.v2.yaml": "train: {max_steps: 1}\n"},
    {"config.yaml": "defaults: [b, c]\ntrain: {mode: fast}\n", "b.yaml": "optim: {lr: 1}\n", "c.yaml": "optim: {_override_: true, x: 1}\n"},
    {"config.yaml": "defaults: [b]\noptim: {_override_: yes}\n", "b.yaml": "optim: {lr: 1}\n"},
    {"config.yaml": "defaults: [b]\noptim: {_override_: 0, x: 1}\n", "b.yaml": "optim: {lr: 1}\n"},
    {"config.yaml": "defaults: [b]\noptim: 3\n", "b.yaml": "optim: {lr: 1}\n"},
    {"config.yaml": "defaults: [b]\noptim:\n", "b.yaml": "optim: {lr: 1}\n"},
    {"config.yaml": "defaults: []\noptim: {lr: 1}\n"},
    {"config.yaml": "defaults: {a: b}\noptim: {lr: 1}\n"},
    {"config.yaml": "defaults: [b, 3]\noptim: {lr: 1}\n", "b.yaml": "train: {max_steps: 1}\n"},
    {"config.yaml": "defaults: ''\noptim: {lr: 1}\n"},
    {"config.yaml": "defaults: .\noptim: {lr: 1}\n"},
    {"config.yaml": "defaults: d/\noptim: {lr: 1}\n", "d.yaml": "train: {max_steps: 1}\n"},
    {"config.yaml": "defaults: b\n", "b.yaml": "defaults: d/c\noptim: {lr: 1}\n", "d/c.yaml": "defaults: ../e\n", "e.yaml": "train: {max_steps: 1}\n"},
    {"config.yaml": "defaults: b\noptim: {lr: 1}\n", "b.yaml": "defaults: config\ntrain: {max_steps: 1}\n"},
    {"config.yaml": "defaults: [b, b]\n", "b.yaml": "optim: {lr: 1}\n"},
    {"config.yaml": "defaults: b\noptim: {lr: 1}\n", "b.yaml": "train: [\n"},
    {"config.yaml": "defaults: b\noptim: {lr: 1}\n", "b.yaml": "- 1\n"},
    {"config.yaml": "defaults: b\noptim: {lr: 1}\n", "b.yaml": ""},
    {"config.yaml": "defaults: b\noptim: {lr: 1}\n", "b.yaml": "0\n"},
    {"config.yaml": "[]\n"}, {"config.yaml": "0\n"}, {"config.yaml": "text\n"}, {"config.yaml": ""}, {},
    {"config.yaml": "optim: {lr: 1}\n---\noptim: {}\n"},
    {"config.yaml": "\ufeffoptim: {lr: 1}\n"},
    {"config.yaml": "optim:\n\tlr: 1\n"},
    {"config.yaml": "? [a]\n: 1\noptim: {lr: 1}\n"},
    {"config.yaml": "1: a\ntrue: b\noptim: {lr: 1}\n"},
    {"config.yaml": "defaults: b\n1: {a: 1}\n", "b.yaml": "true: {b: 1}\noptim: {lr: 1}\n"},
]


def config_vectors(dialect):
    package, short, _ = CLIENTS[dialect]
    install(dialect, short + ":base")
    module = importlib.import_module(package + ".cli.recipe_lock")
    recipe = importlib.import_module(package + ".recipes").get_recipe("labfw/tune")
    for files in CONFIGS:
        root = WORK / "project"
        shutil.rmtree(root, ignore_errors=True)
        exp = root / "experiments" / "x"
        exp.mkdir(parents=True)
        for name, text in files.items():
            at = exp / name
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
        yield {"d": dialect, "files": files, "bound": sorted(module.experiment_bindings(exp, recipe)["params"])}


def main():
    rng = random.Random(1)
    vectors = []
    for dialect in sorted(CLIENTS):
        short = CLIENTS[dialect][1]
        vectors += lock_vectors(dialect, [c for c in VECTORS["catalogues"] if c.startswith(short + ":")], rng)
        vectors += config_vectors(dialect)
    shutil.rmtree(WORK)
    print('{"vectors": [')
    print(",\n".join(json.dumps(v, sort_keys=False) for v in vectors))
    print("]}")


if __name__ == "__main__":
    sys.exit(main())
