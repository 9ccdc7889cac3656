#!/usr/bin/env python3
"""Projects that change hands between the real clients and ours.

For both dialects: the same project is made by the real client and by `sf init`, every method's experiment by `new`, copies
by `new --from`, and locks of older releases are upgraded by either; what the two leave behind is compared byte for byte, and
each client then reads the project of the other. Nothing here needs a server.

    accept.py --sf PATH/TO/sf --venv VENV [--samples DIR] [--methods N]

VENV has starforge-core and tuneplane installed. The last line is `N passed, N failed`; exit 1 when anything failed.
"""
import argparse
import filecmp
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# By dialect: the client's program, its Python package, the marker of a project.
CLIENTS = {"forge": ("sf", "starforge", "starforge.yaml"), "tuneplane": ("tp", "tuneplane", "tuneplane.yaml")}


class Run:
    def __init__(self, sf, venv, work):
        self.sf, self.venv, self.work = sf, venv, work
        self.passed, self.failed = 0, 0
        self.site = next((venv / "lib").glob("python3*/site-packages"))

    def check(self, ok, what, detail=""):
        if ok:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED {what}\n{detail[-2000:]}".rstrip(), flush=True)

    def call(self, argv, cwd):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.work / "home"), "NO_COLOR": "1", "COLUMNS": "200",
               "GATEHOUSE_HOME": str(self.work / "gatehouse"), "GIT_CONFIG_GLOBAL": "/dev/null"}
        return subprocess.run([str(a) for a in argv], cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def real(self, program, cwd, *argv):
        return self.call([self.venv / "bin" / program, *argv], cwd)

    def ours(self, cwd, *argv):
        return self.call([self.sf, *argv], cwd)


def differences(a, b):
    """Paths whose content differs between two folders, or that only one has."""
    files = set()
    for root in (a, b):
        files |= {p.relative_to(root) for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    return sorted(str(f) for f in files if not (a / f).is_file() or not (b / f).is_file() or not filecmp.cmp(a / f, b / f, shallow=False))


def methods(run, cwd, dialect):
    out = run.ours(cwd, "recipe", "ls", "--dialect", dialect, "--json")
    return [m["name"] for m in json.loads(out.stdout)["methods"]]


def older(lock):
    """The same lock as an older release of the recipe had it."""
    doc = json.loads(lock.read_text())
    doc["recipe"]["digest"] = "sha256:" + "0" * 64
    doc["recipe"]["version"] = "0.0.1"
    doc["created_by"] = {"core_version": "0.3.51"}
    doc.pop("bindings", None)
    lock.write_text(json.dumps(doc))


def states(run, program, cwd, name):
    out = run.real(program, cwd, "recipe", "status", name)
    return next((w for w in out.stdout.split() if w in STATES), out.stdout + out.stderr)


STATES = {"current", "compatible", "upgrade_advised", "incompatible", "sdk_incompatible", "runtime_removed", "malformed"}


def crashes(name, method):
    """starforge has no check of a config of openrlhf, takes that for an error, and its upgrade ends with a traceback."""
    return name == "forge" and method.startswith("openrlhf/")


def spread(names, most):
    """At most so many of the names, from all over the list."""
    return names if most <= 0 or len(names) <= most else names[:: -(-len(names) // most)]


def dialect(run, name, most):
    program, package, marker = CLIENTS[name]
    theirs, ours = run.work / name / "theirs", run.work / name / "ours"
    theirs.parent.mkdir(parents=True)
    made = run.real(program, theirs.parent, "init", "theirs", "--yes", "--name", "lab")
    run.check(made.returncode == 0, f"{program} init", made.stdout + made.stderr)
    made = run.ours(theirs.parent, "init", "ours", "--dialect", name, "--name", "lab", "--client-package", run.site / package)
    run.check(made.returncode == 0, f"sf init --dialect {name}", made.stdout + made.stderr)
    own = {marker, ".gitignore", "README.md"}
    differ = [d for d in differences(theirs, ours) if not d.startswith(".git/") and d not in own]
    run.check(not differ, f"{name}: the two new projects differ in {differ}")
    log = run.call(["git", "log", "--oneline"], ours)
    run.check(len(log.stdout.splitlines()) == 1, f"{name}: commits of the new project", log.stdout + log.stderr)

    all_methods = spread(methods(run, theirs, name), most)
    for i, method in enumerate(all_methods):
        exp = f"m{i:02d}"
        a = run.real(program, theirs, "new", exp, "--method", method)
        b = run.ours(ours, "new", exp, "--method", method, "--client-package", run.site)
        run.check(a.returncode == 0 and b.returncode == 0, f"new --method {method}", a.stderr + b.stderr)
        differ = differences(theirs / "experiments" / exp, ours / "experiments" / exp)
        run.check(not differ, f"{name} {method}: the new experiments differ in {differ}")
    whole = [(f"m{i:02d}", m) for i, m in enumerate(all_methods) if not crashes(name, m)]
    for exp, method in whole[:6]:
        for root in (theirs, ours):
            older(root / "experiments" / exp / "recipe.lock.json")
        state = states(run, program, ours, exp)
        got = json.loads(run.ours(theirs, "recipe", "status", exp, "--json").stdout)["locks"][0]["state"]
        run.check(state == got, f"{name} {method}: the real client says {state}, ours {got}")
        a = run.real(program, theirs, "recipe", "upgrade", exp)
        b = run.ours(ours, "recipe", "upgrade", exp)
        run.check(a.returncode == b.returncode, f"{name} {method}: upgrade ends with {a.returncode} there and {b.returncode} here", a.stdout + a.stderr + b.stderr)
        differ = differences(theirs / "experiments" / exp, ours / "experiments" / exp)
        run.check(not differ, f"{name} {method}: the upgraded experiments differ in {differ}")
        a = run.real(program, theirs, "new", exp + "-copy", "--from", exp)
        b = run.ours(ours, "new", exp + "-copy", "--from", exp)
        run.check(a.returncode == b.returncode, f"{name} {method}: new --from ends with {a.returncode} there and {b.returncode} here", a.stdout + a.stderr + b.stderr)
        if a.returncode == 0:
            differ = differences(theirs / "experiments" / f"{exp}-copy", ours / "experiments" / f"{exp}-copy")
            run.check(not differ, f"{name} {method}: the copies differ in {differ}")
        for says, out in ((program, run.real(program, ours, "validate", exp)), ("sf", run.ours(theirs, "validate", exp))):
            run.check(out.returncode == 0, f"{says} validate of {method} in the other's project", out.stdout + out.stderr)
    # Each client reads what the other left behind.
    there = run.real(program, ours, "recipe", "status", "--all")
    run.check(there.returncode == 0, f"{program} recipe status in our project", there.stdout + there.stderr)
    here = run.ours(theirs, "recipe", "status")
    run.check(here.returncode == 0, f"sf recipe status in the project of {program}", here.stdout + here.stderr)
    for root in (theirs, ours):
        for lock in sorted(root.glob("experiments/*/recipe.lock.json")):
            if crashes(name, json.loads(lock.read_text())["recipe"]["name"]):
                shutil.rmtree(lock.parent)
            else:
                older(lock)
    a = run.real(program, theirs, "recipe", "upgrade", "--all")
    b = run.ours(ours, "recipe", "upgrade", "--all")
    run.check(a.returncode == b.returncode, f"{name}: upgrade --all ends with {a.returncode} there and {b.returncode} here", a.stdout + a.stderr + b.stdout + b.stderr)
    differ = differences(theirs / "experiments", ours / "experiments")
    run.check(not differ, f"{name}: after upgrade --all the experiments differ in {differ}")


def sample(run, name, source):
    """A project that the real client made: the state of its locks, and what both make of it."""
    program, package, marker = CLIENTS[name]
    expected = json.loads((source / "EXPECTED.json").read_text())["experiments"]
    copies = []
    for copy in ("theirs", "ours"):
        root = run.work / "sample" / name / copy
        shutil.copytree(source, root)
        (root / "gitignore").rename(root / ".gitignore")
        (root / "EXPECTED.json").unlink()
        run.call(["git", "init", "-q"], root)
        run.call(["git", "add", "-A"], root)
        run.call(["git", "-c", "user.name=Dev", "-c", "user.email=dev@example.invalid", "commit", "-q", "-m", "one"], root)
        copies.append(root)
    theirs, ours = copies
    locks = json.loads(run.ours(ours, "recipe", "status", "--json").stdout)["locks"]
    got = {lock["experiment"].rpartition("/")[2]: lock["state"] for lock in locks}
    want = {exp: e["lock_state"] for exp, e in expected.items()}
    run.check(got == want, f"{name}: states of the sample's locks", f"{got}, expected {want}")
    for exp in expected:
        a = run.real(program, theirs, "recipe", "upgrade", exp)
        b = run.ours(ours, "recipe", "upgrade", exp)
        run.check(a.returncode == 0 and b.returncode == 0, f"{name}: upgrade of the sample's {exp}", a.stdout + a.stderr + b.stderr)
        for says, out in ((program, run.real(program, ours, "validate", exp)), ("sf", run.ours(theirs, "validate", exp))):
            run.check(out.returncode == 0, f"{says} validate of the sample's {exp}", out.stdout + out.stderr)
    differ = [d for d in differences(theirs, ours) if not d.startswith(".git/")]
    run.check(not differ, f"{name}: the upgraded samples differ in {differ}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sf", required=True, type=pathlib.Path)
    p.add_argument("--venv", required=True, type=pathlib.Path)
    p.add_argument("--samples", type=pathlib.Path, help="a folder with sample projects sf and tp, each with what is expected of it in EXPECTED.json")
    p.add_argument("--methods", type=int, default=0, metavar="N", help="try N methods of each client instead of all")
    p.add_argument("--samples-only", action="store_true")
    p.add_argument("--dialect", choices=sorted(CLIENTS))
    args = p.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="gatehouse-projects."))
    (work / "home").mkdir()
    run = Run(args.sf.resolve(), args.venv.absolute(), work)
    try:
        for name in [args.dialect] if args.dialect else sorted(CLIENTS):
            if args.samples:
                sample(run, name, args.samples / CLIENTS[name][0])
            if not args.samples_only:
                dialect(run, name, args.methods)
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(work)
    print(f"{run.passed} passed, {run.failed} failed")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
