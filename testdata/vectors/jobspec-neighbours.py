"""Writes jobspec-neighbours.json: what the real packages make of a job in which one field, or a few, hold odd values.

    python3.11 -m venv venv && venv/bin/pip install starforge-core==0.3.56 tuneplane==0.4.0
    venv/bin/python jobspec-neighbours.py > jobspec-neighbours.json      # --all for every pair, to compare with once

One vector a line: {"d": dialect, "put": [[path, JSON text], ...], and the answer: "field" of the refusal, "crash": Python class,
or "ok": the package's own serialisation, "" when that is what the smallest document gives, with "hubs": what tuneplane's hub_refs
lists, as [text, kind, pinned, of this platform]}. The document is base() of the dialect,
with the values put at their paths; a number in a path is an entry of a list, and BESIDE says what must stand there first. All
inputs are our own. Under "topologies" stands what compile_pool_topologies and compile_distributed_topology make of random pools and
roles, in the form of jobspec-topology.json. `go test ./admission/jobspec -run Neighbours -args -neighbours FILE` compares with the output of --all.
"""

import copy
import json
import os
import random
import sys
import tempfile

os.environ["HOME"] = tempfile.mkdtemp()  # the packages look for a configuration there

from starforge.contract.errors import SpecError as ForgeError  # noqa: E402
from starforge.contract.spec import JobSpec as ForgeSpec  # noqa: E402
from starforge.contract.topology import compile_distributed_topology as forge_world, compile_pool_topologies as forge_pools  # noqa: E402
from tuneplane.contract.errors import SpecError as TuneError  # noqa: E402
from tuneplane.contract.spec import JobSpec as TuneSpec  # noqa: E402
from tuneplane.contract.topology import compile_distributed_topology as tune_world, compile_pool_topologies as tune_pools  # noqa: E402

SHA = "sha256:" + "ab" * 32


def base(version):
    """The smallest document, with every part in which a value can be put."""
    return {
        "apiVersion": version, "kind": "TrainingJob", "metadata": {"name": "demo"},
        "spec": {
            "recipe": {"name": "verl/grpo", "version": "0.9.0", "digest": SHA},
            "source": {"exp": "experiments/demo"},
            "framework": {"kind": "verl", "version": "0.9.0"},
            "resources": {"pools": [{"name": "all"}]},
        },
        "provenance": {"core_version": "0.4.0"},
    }


# What must stand beside a field for it to be looked at, by the path's beginning.
BESIDE = {
    "spec.plugins.0": [{"id": "a/x", "version": "1", "digest": SHA}],
    "spec.plugins.1": [{"id": "a/x", "version": "1", "digest": SHA}, {"id": "b/y", "version": "1", "digest": SHA}],
    "spec.resources.pools.1": [{"name": "all"}, {"name": "two"}],
    "spec.resources.leases.0": [{"tool": "t"}],
    "spec.resources.leases.1": [{"tool": "t"}, {"tool": "u"}],
    "spec.evaluation.gates.0": {"suites": ["gsm8k", "math"], "gates": [{"metric": "gsm8k/acc", "min": 0.5}]},
    "spec.evaluation.on_checkpoint": {"suites": ["gsm8k"], "on_checkpoint": {"every_steps": 10}},
    "spec.evaluation": {"suites": ["gsm8k"]},
}

ANY = ["null", "true", "false", "0", "1", "-1", "1.0", "1.5", "1e2", '""', '" "', '"x"', "[]", '["x"]', "{}", '{"x":1}', "[null]", "[[]]"]
NAMES = [
    '"a b"', '" x "', '"\\tx\\n"', '".x"', '"-x"', '"_x"', '"x.."', '"."', '".."', '"x/y"', '"x@y"', '"\\u5b9e\\u9a8c"', '"x\\u200b"', '"x\\u00a0"',
    '"\\u0430lice"', '"X"', '"x:y"', '"1"', '"x\\\\y"', '"~x"', '"x-"', '"x\\u2028"', '"x\\u001c"', '"x+1"', '"None"', '"0"', '"/"', '"//"', '"x/"', '"/x"',
]
REFS = [
    '"a/b"', '"a/b@v1"', '"a/b@"', '"a/b@ "', '"a/b@latest"', '"a/b@v 1"', '"a//b@v1"', '"/a/b@v1"', '"a/b/@v1"', '"a/b/c@v1"', '"a@v1"', '"@v1"',
    '"a/b@v1@v2"', '"a/b@v1/x"', '"a /b@v1"', '"a/ b@v1"', '"a/b @v1"', '"a/b@ v1 "', '"a/.b@v1"', '"-a/b@v1"', '"a/b@.v"', '"\\u4e2d/b@v1"', '"a/b@\\u4e2d"',
    '"hf:a/b"', '"tp:a/b@v1"', '"sf:a/b"', '"HF:a/b@main"', '"hf://a/b"', '"ms:a/b@r/1"', '"hf:a"', '"ms:a"', '"tp:a"', '"zz:a/b"', '":a/b"', '"hf:"', '"hf:a/b:c"', '"a/b:c"', '"a:b"',
    '"hf:a/b@refs/pr/1"', '"hf:a/b@"', '"hf:a/b@x y"', '"hf:a/b@/x"', '"tp:a/b@r/1"', '"huggingface:a/b"', '"modelscope:a/b"', '"tuneplane:a/b@v1"', '"tp://a/b"', '"hf:/a/b"', '"hf:a/b/c"', '"h f:a/b"',
    '"./a/b"', '"../a"', '"~/a"', '"/a/b"', '"${X}/a"', '"C:\\\\x"', '"C:"', '"C:x/y"', '"a\\\\b"', '"c:/x"', '"etc"', '"a/b\\n"', '"a/b@v1\\n"', '"run:r1"',
]
NUMBERS = [
    "2", "1024", "1025", "65536", "65537", "1048576", "1048577", "2147483647", "2147483648", "999999999999999999", '"1"', '" 1 "', '"1.0"', '"-1"', '"+1"', '"1_0"', '"\\u0663"', '"01"', '"x1"',
    "4.0", "-0", "-0.0", "0.0", "1e0", "0.5", "-0.5", "1.01", "1E5", "-1.0", "1048576.0", "1048577.0",
]
ARTIFACTS = [
    '"run/r/checkpoint"', '"run/r/c@step=1"', '"run/r/c@step=007"', '"run/r/c@ step = 3 "', '"run/r/c@step= 3"', '"run/r/c@step=3 "', '"run/r/c@ step=3"', '"run/r/c@step =3"', '"run/r/c@step=\\u0663"', '"run/r/c@step=\\u00b2"', '"run/r/c@step="', '"run/r/c@step=-1"',
    '"run/r/c@step=+1"', '"run/r/c@step=1.0"', '"run/r/c@step=1_0"', '"run/r/c@"', '"run/r/c@attempt=1"', '"run/r/c@attempt=1,step=2"', '"run/r/c@step=2,attempt=1"', '"run/r/c@step=1,step=2"', '"run/r/c@step=1,"', '"run/r/c@,"', '"run/r/c@step=1, attempt=2"',
    '"run/r/c@epoch=1"', '"run/r/c@STEP=1"', '"run/r/c@3"', '"run/r/c@step=1@x"', '"run/r"', '"run/r/c/d"', '"run//r/c"', '"/run/r/c"', '"run/r/c/"', '"Run/r/c"', '"job/r/c"', '"run/.r/c"', '"run/r/.c"', '"run/ r/c"', '"run/r /c"', '"run/r/c "', '"run/r/ c"', '"run /r/c"', '" run/r/c"',
    '"run/r/c@step=0"', '"run/r/c@attempt=0"', '"run/r/c@attempt=\\u0663"', '"run/r/hf_export@step=10"', '{"run_id":"r","kind":"c"}', '{"run_id":"r","kind":"c","step":1}',
]
OBJECTS = ['{"":1}', '{"name":"x"}', '{"Name":"x"}', '{"dataset":"a/b"}', '{"dataset":"a/b@v1","split":"s","path":"p"}', '{"dataset":""}', '{"kind":"lora"}', '{"kind":""}', '{"dim":8}', '{"alpha":null}', '"text"', '[{}]', "[1]", '[{"id":"a/b"}]']
LISTS = ['[""]', '[" "]', '["a","a"]', '["a"," a "]', '["a b"]', "[1]", "[true]", "[1.5]", '[null,"a"]', '[{}]', '["a/b"]', '["a/b","c/b"]', '["a/b","a/b"]', '["a/b@v1"]', '["/a/b"]', '["a//b/"]', '["a / b"]', '["a/b","A/B"]', '[["a"]]', '"a"', '["\\u4e2d"]', '["a",""]', '["-a"]']
DIGESTS = ['"sha256:"', '"sha256:zz"', '"SHA256:' + "ab" * 32 + '"', '" ' + SHA + ' "', '"sha512:ab"', '"' + "ab" * 32 + '"', '"' + SHA.upper() + '"', '"' + SHA + 'a"', '"sha256: ab"', '"' + SHA + '"', '"md5:x"']
METRICS = ['"gsm8k/acc"', '"math/acc"', '"other/acc"', '"acc"', '"gsm8k/"', '"/acc"', '"gsm8k/a/b"', '" gsm8k/acc "', '"gsm8k /acc"', '"GSM8K/acc"', '"/"', '"gsm8k"']
VERSIONS = ['"1"', '"v1"', '"1.0.0+x"', '"1 0"', '" 1 "', '"1/0"', '"latest"', '"\\u0663"', '"-1"', '".1"', '"1\\n"']
LINKS = ['"http://h/x"', '"https://h"', '"h/x"', '"ftp://h"', '"x y"', '"reg/x:1"', '"reg/x@' + SHA + '"', '"reg/x@sha256:ab"', '"x@y@z"', '"HTTP://h"', '"//h/x"']
NETWORKS = [
    '{"transport":"tcp"}', '{"transport":"rdma"}', '{"isolation":"job"}', '{"isolation":"fleet"}', '{"interface":"eth0"}', '{"interface":""}', '{"interface":"eth0:1"}', '{"interface":"abcdefghijklmnop"}', '{"interface":null}', '{"interface":1}', '{"transport":null}',
    '{"transport":"TCP"}', '{"transport":" tcp"}', '{"isolation":1}', '{"x":1}', '{"transport":"tcp","interface":"","isolation":"fleet"}', '{"interface":"eth 0"}', '{"interface":"eth0\\n"}', '{"isolation":"none"}', '{"interface":"-"}',
]
ROLES = ['{"actor":"all"}', '{"actor":"none"}', '{"actor":" all"}', '{"":"all"}', '{"actor":1}', '{"actor":null}', '{"actor":["all"]}', '{"a":"all","b":"x"}', '{"a b":"all"}']
POOLS = [
    '[{"name":"a","gpus_per_node":0}]', '[{"name":"a","gpus_per_node":0,"cpus":1,"memory_gb":1}]', '[{"name":"a","gpus_per_node":0,"cpus":1,"memory_gb":1,"series":"x"}]', '[{"name":"a","gpus_per_node":0,"cpus":0,"memory_gb":1}]',
    '[{"name":"a","gpus_per_node":0,"cpus":1.0,"memory_gb":1}]', '[{"name":"a","gpus_per_node":0,"cpus":"1","memory_gb":1}]', '[{"name":"a","gpus_per_node":0,"cpus":1,"memory_gb":1,"scratch_gb":null}]', '[{"name":"a","gpus_per_node":0,"cpus":1,"memory_gb":1,"scratch_gb":0}]',
    '[{"name":"a","gpus_per_node":0,"cpus":1,"memory_gb":1,"scratch_gb":-1}]', '[{"name":"a","gpus_per_node":0,"cpus":1,"memory_gb":1048577}]', '[{"name":"a","gpus_per_node":0,"cpus":1,"memory_gb":1,"scratch_gb":"5"}]', '[{"gpus_per_node":0,"cpus":1,"memory_gb":1}]',
    '[{"name":"a"},{"name":"a"}]', '[{"name":"a"},{"name":"A"}]', '[{"name":"a"},{"name":" a"}]', '[{"name":"a","nodes":65536,"gpus_per_node":1024}]', '[{"name":"a","nodes":65536,"gpus_per_node":1024},{"name":"b","nodes":65536,"gpus_per_node":1024},{"name":"c","nodes":65536,"gpus_per_node":1024}]',
    '[{"name":"a","nodes":2048,"cpus":1048576}]', '[{"name":"a","nodes":2047,"cpus":1048576}]', '[{"name":"a","nodes":2048,"memory_gb":1048576}]', '[{"name":"a","nodes":65536,"scratch_gb":1048576}]', '[{"name":"a","nodes":70000,"gpus_per_node":0}]', '[{"name":"a","nodes":null}]', '[{"nodes":0,"gpus_per_node":0}]',
    '[{"name":"a","nodes":0,"gpus_per_node":-1}]', '[{"name":"-","series":1,"nodes":0}]', '[null]', '[{}]', '[{"name":"a","gpu_per_node":4}]', '[{"name":"a","gpus_per_node":0,"cpus":1048577,"memory_gb":0}]', '[{"name":"a","cpus":-1,"memory_gb":-1}]',
]
ENTRIES = ['{"metric":"gsm8k/acc"}', '{"metric":"gsm8k/acc","min":0}', '{"metric":"gsm8k/acc","max":null}', '{"min":1}', '{"metric":"gsm8k/acc","max_regression":-1}', '{"metric":"gsm8k/acc","min":"1"}', '{"metric":"gsm8k/acc","min":true}', '{"metric":"gsm8k/acc","min":2,"max":1}', '{"metric":"acc"}', '{"metric":"x/acc","min":"a"}', '{"tool":"t","seats":2}', '{"tool":1}', '{"seats":1}', '{"tool":"t","seats":0}', '{"tool":" "}']
QUALITY = ['{"max_overlap_ratio":0.5}', '{"max_overlap_ratio":0.5,"overlap_with":"a/b"}', '{"max_overlap_ratio":2}', '{"max_duplicate_ratio":0}', '{"max_duplicate_ratio":1}', '{"max_duplicate_ratio":"0.1"}', '{"max_duplicate_ratio":-0.1,"max_overlap_ratio":"x"}', '{"max_group_leak_ratio":0.1}', '{"max_group_leak_ratio":0.1,"group_key":"id"}', '{"group_key":"id"}', '{"overlap_with":"a"}', '{"overlap_with":"a/b@"}', '{"max_duplicate_ratio":true}', '{"overlap_with":1}', '{"max_duplicate_ratio":null,"overlap_with":"a/b"}', '{"max_duplicate_ratio":-0.0}']
WHOLE = ['{"every_steps":5}', '{"every_steps":5,"suites":["a"]}', '{"every_steps":"5"}', '{"suites":["a"]}', '{"every_steps":0,"warmup_steps":-1}', '{"every_steps":5,"limit":0}', '{"every_steps":5,"repetitions":1}', '{"every_steps":5,"repetitions":3,"warmup_steps":2,"limit":7,"fleet":"f"}', '{"every_steps":5,"fleet":"a b"}', '{"every_steps":5,"limit":-1}', '{"every_steps":5,"suites":"a"}', '{"every_steps":true}', '{"every_steps":5,"x":1}']

FIELDS = {
    "apiVersion": NAMES + ['"forge/v2"', '"tuneplane/v1"', '" forge/v2"', '"Forge/v2"', '"tuneplane/v1 "', '"lab/v1"'], "kind": NAMES + ['"TrainingJob"', '"trainingjob"', '" TrainingJob"', '"EvalJob"'],
    "metadata": OBJECTS, "metadata.name": NAMES + REFS, "metadata.project": NAMES, "metadata.owner": NAMES, "metadata.display_name": NAMES, "metadata.labels": OBJECTS + ['{"a":null}', '{"a":true}', '{"a":1.0}', '{"a":[1]}', '{"a":" b "}', '{"a":{"b":1}}', '{"a":1e16}'], "metadata.junk": [],
    "spec": OBJECTS, "spec.plugins": LISTS + OBJECTS, "spec.plugins.0": OBJECTS, "spec.plugins.0.id": NAMES + REFS, "spec.plugins.0.version": VERSIONS + NAMES, "spec.plugins.0.digest": DIGESTS, "spec.plugins.1.id": ['"a/x"', '"c/x"', '"c/X"', '"A/x"', '"/a/x"', '"a/x/"', '"c/ x"'], "spec.plugins.0.junk": [],
    "spec.recipe": OBJECTS, "spec.recipe.name": NAMES + REFS, "spec.recipe.version": VERSIONS, "spec.recipe.digest": DIGESTS, "spec.recipe.plugins": LISTS, "spec.recipe.junk": [],
    "spec.source": OBJECTS + ['{"entrypoint":"x"}', '{"entrypoint":"x","exp":""}', '{"exp":"a","entrypoint":" "}'], "spec.source.exp": NAMES + REFS + ['"a/../b"', '"a//b"', '"a/b//"', '"a/./b"', '" a/b "', '"a/b /"', '"a\\\\b"', '"a/ b"'], "spec.source.entrypoint": NAMES[:6],
    "spec.framework": OBJECTS, "spec.framework.kind": NAMES, "spec.framework.version": VERSIONS + NAMES, "spec.framework.runtime_id": NAMES + VERSIONS, "spec.framework.image": LINKS + NAMES, "spec.framework.observability_url": LINKS,
    "spec.model": OBJECTS, "spec.model.init_from": ARTIFACTS, "spec.model.base": REFS + NAMES, "spec.model.peft": OBJECTS, "spec.model.peft.kind": NAMES[:6], "spec.model.peft.dim": NUMBERS, "spec.model.peft.alpha": NUMBERS,
    "spec.data": OBJECTS, "spec.data.volumes": LISTS, "spec.data.output_dataset": REFS, "spec.data.environment": REFS, "spec.data.taskset": REFS, "spec.data.train": OBJECTS, "spec.data.train.dataset": REFS, "spec.data.train.split": NAMES[:6], "spec.data.train.path": NAMES + REFS, "spec.data.validation": OBJECTS,
    "spec.data.validation.dataset": REFS, "spec.data.quality": QUALITY + OBJECTS, "spec.data.quality.overlap_with": REFS, "spec.data.corpus": [], "spec.data.junk": [],
    "spec.resources": OBJECTS, "spec.resources.pools": POOLS + LISTS, "spec.resources.pools.0.name": NAMES, "spec.resources.pools.0.nodes": NUMBERS, "spec.resources.pools.0.gpus_per_node": NUMBERS, "spec.resources.pools.0.series": NAMES, "spec.resources.pools.0.cpus": NUMBERS, "spec.resources.pools.0.memory_gb": NUMBERS,
    "spec.resources.pools.0.scratch_gb": NUMBERS, "spec.resources.pools.1.name": ['"all"', '" all"', '"All"'], "spec.resources.roles": ROLES + OBJECTS, "spec.resources.leases": LISTS, "spec.resources.leases.0": ENTRIES, "spec.resources.leases.0.tool": NAMES, "spec.resources.leases.0.seats": NUMBERS, "spec.resources.leases.1.tool": ['"t"', '" t"', '"T"'],
    "spec.resources.network": NETWORKS + OBJECTS, "spec.resources.junk": [],
    "spec.hyperparams": OBJECTS + ['{"b":1,"a":2.0,"c":[1,{"d":null}]}', '{"a":1e-6}', '{"a":1e22}', '{"a":-0.0}', '{"\\u4e2d":"\\ud83d\\ude00"}', '{"a":123456789012345678901234567890}', '{"a":0.1}', '{"a":1E-7}'], "spec.lifecycle": OBJECTS, "spec.lifecycle.on_success": LISTS, "spec.lifecycle.junk": [],
    "spec.evaluation": OBJECTS, "spec.evaluation.suites": LISTS, "spec.evaluation.runner": NAMES[:8], "spec.evaluation.baseline": NAMES[:8], "spec.evaluation.limit": NUMBERS, "spec.evaluation.gates": LISTS, "spec.evaluation.gates.0": ENTRIES, "spec.evaluation.gates.0.metric": METRICS + NAMES,
    "spec.evaluation.gates.0.min": NUMBERS, "spec.evaluation.gates.0.max": NUMBERS, "spec.evaluation.gates.0.max_regression": NUMBERS, "spec.evaluation.gates.0.junk": [], "spec.evaluation.on_checkpoint": WHOLE + OBJECTS, "spec.evaluation.on_checkpoint.every_steps": NUMBERS, "spec.evaluation.on_checkpoint.suites": LISTS,
    "spec.evaluation.on_checkpoint.limit": NUMBERS, "spec.evaluation.on_checkpoint.repetitions": NUMBERS, "spec.evaluation.on_checkpoint.warmup_steps": NUMBERS, "spec.evaluation.on_checkpoint.fleet": NAMES, "spec.junk": [],
    "provenance": OBJECTS, "provenance.core_version": VERSIONS + NAMES[:8], "provenance.git_commit": NAMES[:6], "provenance.git_dirty": ['"false"'], "provenance.config_sha": NAMES[:6], "provenance.model_name": NAMES, "provenance.junk": [], "junk": [],
}

PACKAGES = {"forge": ("forge/v2", ForgeSpec, ForgeError), "tuneplane": ("tuneplane/v1", TuneSpec, TuneError)}


def put(doc, path, value):
    for beginning in sorted(BESIDE, key=len, reverse=True):
        if path == beginning or path.startswith(beginning + "."):
            whole = beginning if not beginning[-1].isdigit() else beginning.rsplit(".", 1)[0]
            if whole == "spec.evaluation.gates":
                whole = "spec.evaluation"
            if whole == "spec.evaluation.on_checkpoint":
                whole = "spec.evaluation"
            if whole != path:
                place(doc, whole, copy.deepcopy(BESIDE[beginning]))
            break
    place(doc, path, value)


def place(doc, path, value):
    keys = path.split(".")
    for key in keys[:-1]:
        if isinstance(doc, list):
            doc = doc[int(key)]
        else:
            doc = doc.setdefault(key, {})
    if isinstance(doc, list):
        doc[int(keys[-1])] = value
    else:
        doc[keys[-1]] = value


def answer(dialect, puts):
    version, spec, error = PACKAGES[dialect]
    doc = base(version)
    for path, value in puts:
        put(doc, path, json.loads(value))
    try:
        job = spec.from_dict(doc)
        text = json.dumps(job.to_dict(), ensure_ascii=False, separators=(",", ":"))
    except error as refusal:
        return {"field": refusal.field}
    except Exception as crash:  # noqa: BLE001
        return {"crash": type(crash).__name__}
    least = json.dumps(spec.from_dict(base(version)).to_dict(), ensure_ascii=False, separators=(",", ":"))
    hubs = [[f"{r.hub}:{r.repo_id}" + (f"@{r.revision}" if r.revision else ""), r.kind, r.is_pinned, r.is_platform] for r in getattr(job, "hub_refs", ())]
    return {"ok": "" if text == least else text, **({"hubs": hubs} if hubs else {})}


def singles():
    for path, values in FIELDS.items():
        for value in dict.fromkeys(ANY + values):
            for dialect in PACKAGES:
                yield dialect, [[path, value]]


def several(count):
    """Random documents with two to four odd fields: which error comes first, and what does not hide what."""
    rng = random.Random(5)
    paths = [p for p in FIELDS if not p.endswith("junk") and "." in p]
    for i in range(count):
        chosen = sorted(rng.sample(paths, rng.choice([2, 2, 3, 4])), key=list(FIELDS).index)
        # No field may lie in another one, nor in something that another one puts beside itself.
        if any(a != b and (b.startswith(a) or a.split(".")[:2] == b.split(".")[:2]) for a in chosen for b in chosen):
            continue
        yield list(PACKAGES)[i % 2], [[p, rng.choice(ANY + FIELDS[p])] for p in chosen]


COMPILERS = {
    ("forge", "pool_topologies"): forge_pools, ("forge", "distributed_topology"): forge_world,
    ("tuneplane", "pool_topologies"): tune_pools, ("tuneplane", "distributed_topology"): tune_world,
}


def topology(rng, dialect, call):
    names = rng.sample(["all", "train", "roll", "judge"], rng.choice([1, 2, 2, 3]))
    pools = []
    for name in names:
        pool = {"name": name, "nodes": rng.choice([1, 2, 4]), "gpus_per_node": rng.choice([1, 8])}
        if rng.random() < 0.5:
            pool["series"] = rng.choice(["h200", "b300"])
        if dialect == "tuneplane" and rng.random() < 0.1:
            pool = {"name": name, "gpus_per_node": 0, "cpus": 4, "memory_gb": 8}
        pools.append(pool)
    roles = {role: rng.choice(names) for role in ["actor", "rollout", "critic", " actor "] if rng.random() < 0.6}
    required = rng.choice([[], ["actor"], ["actor", "rollout"], ["rollout", "actor"], ["actor", "actor", ""], [" actor ", "rollout"], ["actor", "rollout", "critic"]])
    version, spec, error = PACKAGES[dialect]
    doc = base(version)
    doc["spec"]["resources"] = {"pools": pools, "roles": roles}
    vector = {"dialect": dialect, "call": call, "resources": doc["spec"]["resources"], "required_roles": required}
    try:
        value = COMPILERS[dialect, call](spec.from_dict(doc), required_roles=required)
    except error as refusal:
        return {**vector, "result": {"ok": False, "field": refusal.field}}
    rows = [
        {"pool": t.pool, "series": t.series, "machines": t.machines, "gpus_per_machine": t.gpus_per_machine, "world_size": t.world_size}
        for t in (value if isinstance(value, tuple) else [value])
    ]
    return {**vector, "result": {"ok": True, "value": rows if isinstance(value, tuple) else rows[0]}}


def main():
    every = "--all" in sys.argv
    lines = []
    for i, (dialect, puts) in enumerate(singles()):
        if every or i % 6 == 0 or puts[0][0] in ("spec.data.output_dataset", "spec.model.init_from", "spec.model.base"):
            lines.append(json.dumps({"d": dialect, "put": puts, **answer(dialect, puts)}, ensure_ascii=False))
    for dialect, puts in several(20000 if every else 400):
        lines.append(json.dumps({"d": dialect, "put": puts, **answer(dialect, puts)}, ensure_ascii=False))
    rng = random.Random(6)
    worlds = []
    for i in range(20000 if every else 240):
        vector = {"id": f"random-{i}", **topology(rng, *list(COMPILERS)[i % 4])}
        worlds.append(json.dumps(vector, ensure_ascii=False))
    print('{"vectors": [')
    print(",\n".join(lines))
    print('], "topologies": [')
    print(",\n".join(worlds))
    print("]}")


main()
