#!/usr/bin/env python3
"""Experiments submitted by the real clients and by ours, from copies of one project, to one server.

For both dialects and every experiment: both clients are refused with the same rules, or both submissions are admitted, and
then the stored specs are equal, the decisions are equal but for columns, and the packages hold the same files. First as
the project is, then with its plugins published.

    accept.py --sf PATH/TO/sf --venv VENV [--projects DIR]

VENV has starforge-core and tuneplane installed. DIR holds projects as folders `sf` and `tp`, each with the command lines to
try in EXPECTED.json; without it, or where it is not there, projects are made with the real clients' own `init` and `new`.
The last line is `N passed, N failed`; exit 1 when anything failed.
"""
import argparse
import difflib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request

CLIENTS = {"sf": ("forge", "forge/plugins-lock/v1"), "tp": ("tuneplane", "tuneplane/plugins-lock/v1")}
PROFILES = [{"name": "h200", "series": "h200", "num_nodes": 1, "gpus_per_node": 8}, {"name": "h200-2g", "series": "h200", "num_nodes": 1, "gpus_per_node": 2},
            {"name": "b300", "series": "b300", "num_nodes": 2, "gpus_per_node": 4}, {"name": "plain", "gpus_per_node": 1}]
# What is tried where no project is given: the method, and the command line behind its name.
MADE = {
    "grpo-a": ("nemo-rl/grpo", ["--profile", "h200:4", "--set", "learning_rate=2e-6", "--volume", "carol/more"]),
    "sft-b": ("verl/sft", ["--profile", "h200", "--model", "org/base", "--train-data", "t.parquet", "--validation-data", "v.parquet", "--train-dataset", "alice/sft@v2"]),
    "byo-c": ("custom/custom", ["--profile", "h200-2g", "--image", "images.example/own:1", "--observability-url", "https://o.example/run"]),
    "roles-d": ("nemo-rl/grpo", ["--profile", "actor,reference=h200:8", "--profile", "rollout=b300:8", "--init-from", "run/r-1/checkpoint@step=10", "--then", "export"]),
}
RULE = re.compile(r"\[((?:job|submit|jobpackage|archive)\.[a-z_.]+)\]")


class Run:
    def __init__(self, sf, venv, work):
        self.sf, self.venv, self.work = sf, venv, work
        self.passed, self.failed = 0, 0
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(work / "home"), "NO_COLOR": "1", "COLUMNS": "10000", "LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": "/dev/null",
                    "GATEHOUSE_HOME": str(work / "gatehouse"), "FORGE_HOME": str(work / "forge"), "TUNEPLANE_HOME": str(work / "tuneplane")}
        (work / "home").mkdir()

    def check(self, ok, what, detail=""):
        if ok:
            self.passed += 1
            return True
        self.failed += 1
        print(f"FAILED {what}\n{detail}".rstrip(), flush=True)
        return False

    def call(self, argv, cwd=None, more=None):
        return subprocess.run([str(a) for a in argv], cwd=cwd or self.work, env={**self.env, **(more or {})}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=300)

    def real(self, program, cwd, *argv):
        return self.call([self.venv / "bin" / program, *argv], cwd)

    def ours(self, *argv, cwd=None):
        return self.call([self.sf, *argv], cwd)

    def must(self, *argv, cwd=None):
        p = self.ours(*argv, cwd=cwd)
        if p.returncode:
            raise RuntimeError(f"sf {' '.join(map(str, argv))}: exit {p.returncode}: {p.stderr}")
        return p.stdout

    def serve(self):
        data = self.work / "data"
        config = self.work / "config.yaml"
        config.write_text(json.dumps({"profiles": PROFILES}))
        log = open(self.work / "server.log", "w")
        self.server = subprocess.Popen([self.sf, "serve", "--config", config, "--data", data, "--listen", "127.0.0.1:0"], stdout=log, stderr=log, env=self.env)
        for _ in range(600):
            if (data / "address").is_file() or self.server.poll() is not None:
                break
            time.sleep(0.05)
        self.url = (data / "address").read_text().strip()
        self.must("login", self.url, "--token", (data / "admin-token").read_text().strip())
        for owner in ("alice", "bob", "carol"):
            self.must("admin", "account", "create", owner)

    def sign_in(self, program):
        token = json.loads(self.must("admin", "token", "create", "carol", "--json"))["token"]
        signed = self.real(program, self.work, "login", "--server", self.url, "--token", token)
        if signed.returncode:
            raise RuntimeError(f"{program} login: {signed.stdout}{signed.stderr}")
        return token

    def as_carol(self, token):
        """What our client does from here on is carol's, as what the real ones do."""
        self.env.update(GATEHOUSE_SERVER=self.url, GATEHOUSE_TOKEN=token, GATEHOUSE_ACCOUNT="carol")

    def as_admin(self):
        for key in ("GATEHOUSE_SERVER", "GATEHOUSE_TOKEN", "GATEHOUSE_ACCOUNT"):
            self.env.pop(key, None)

    def jobs(self):
        return [j["run_id"] for j in json.loads(self.must("job", "ls", "--limit", "200", "--json"))["jobs"]]

    def package(self, job, token):
        request = urllib.request.Request(f"{self.url}/api/jobs/{job}/package", headers={"Authorization": "Bearer " + token})
        with urllib.request.urlopen(request) as answer:
            archive = answer.read()
        members = {}
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for m in tar:
                members[m.name] = m.linkname if m.issym() else tar.extractfile(m).read()
        return members


def commit(run, root):
    git = {"GIT_AUTHOR_NAME": "Dev", "GIT_AUTHOR_EMAIL": "dev@example.invalid", "GIT_COMMITTER_NAME": "Dev", "GIT_COMMITTER_EMAIL": "dev@example.invalid",
           "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
    if not (root / ".git").exists():
        run.call(["git", "init", "-q", "-b", "main"], root)
    for args in (["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        done = run.call(["git", *args], root, git)
        if done.returncode:
            raise RuntimeError(f"git {args}: {done.stderr}")


def given(source, target):
    """A project of the folder, and its command lines."""
    shutil.copytree(source, target)
    expected = json.loads((target / "EXPECTED.json").read_text())
    (target / "EXPECTED.json").unlink()
    (target / "gitignore").rename(target / ".gitignore")
    return {name: [a for a in e["argv"][2:] if a != "-y"] for name, e in expected["experiments"].items()}


def made(run, program, target):
    """A project of the real client's own making, and command lines."""
    for cwd, argv in [(target.parent, ["init", target.name, "--yes", "--name", "lab"])] + [(target, ["new", name, "--method", method]) for name, (method, _) in MADE.items()]:
        done = run.real(program, cwd, *argv)
        if done.returncode:
            raise RuntimeError(f"{program} {argv}: {done.stdout}{done.stderr}")
    for name in ("grpo-a", "roles-d"):
        with open(target / "experiments" / name / "config.yaml", "a") as config:
            config.write("\ndata: {train: {dataset: alice/sums@v1}, volumes: [alice/docs]}\neval: {suites: [gsm8k], gates: [{metric: gsm8k/acc, min: 0.4}]}\n")
        triple = {"id": "alice/clip", "version": "0.1.0", "digest": "sha256:" + "a" * 64}
        (target / "experiments" / name / "plugins.lock.json").write_text(json.dumps({"apiVersion": CLIENTS[program][1], "plugins": [triple]}))
    return {name: argv for name, (_, argv) in MADE.items()}


def publish(run, program, root):
    """Publishes what the plugins locks name, and writes the true digests into them."""
    dialect = CLIENTS[program][0]
    digests = {}
    for lock in sorted(root.glob("experiments/*/plugins.lock.json")):
        doc = json.loads(lock.read_text())
        for plugin in doc["plugins"]:
            key = (plugin["id"], plugin["version"])
            if key not in digests:
                owner, name = plugin["id"].split("/")
                # A version is one for both dialects: that of tuneplane's pack is another.
                version = plugin["version"] + (".1" if dialect == "tuneplane" else "")
                folder = run.work / "packs" / program / owner / name
                folder.parent.mkdir(parents=True, exist_ok=True)
                run.must("plugin", "new", "--kind", "algorithm", name, "--dialect", dialect, "--dir", folder)
                manifest = folder / "plugin.yaml"
                manifest.write_text(re.sub(r"(?m)^version:.*$", f"version: \"{version}\"", manifest.read_text()))
                answer = json.loads(run.must("plugin", "publish", folder, "--owner", owner, "--json"))
                digests[key] = version, answer.get("content") or answer["digest"]
            plugin["version"], plugin["digest"] = digests[key]
        lock.write_text(json.dumps(doc))
    return len(digests)


def placeless(value):
    """A decision without columns: the two clients write white space differently."""
    if isinstance(value, dict):
        return {k: placeless(v) for k, v in value.items() if k not in ("line", "column")}
    return [placeless(v) for v in value] if isinstance(value, list) else value


def try_one(run, program, token, where, exp, argv, say):
    """Submits one experiment with both clients, from two copies of the project."""
    yes = ["-y"] if program == "tp" else []
    before = run.jobs()
    theirs = run.real(program, where / "theirs", "submit", exp, *argv, *yes)
    after = run.jobs()
    ours = run.ours("submit", exp, *argv, "--yes", cwd=where / "ours")
    last = run.jobs()
    new, mine = [j for j in after if j not in before], [j for j in last if j not in after]
    detail = f"--- real {theirs.returncode}:\n{theirs.stdout}{theirs.stderr}\n--- ours {ours.returncode}:\n{ours.stdout}{ours.stderr}"
    if not run.check((theirs.returncode == 0) == (ours.returncode == 0) and len(new) == len(mine), f"{say}: the verdicts differ", detail):
        return
    if theirs.returncode:
        # Ours shows the gate's warnings too; the real clients show what refuses.
        refused = "\n".join(line for line in ours.stderr.splitlines() if line.strip().startswith("violation:"))
        a, b = sorted(set(RULE.findall(theirs.stdout + theirs.stderr))), sorted(set(RULE.findall(refused)))
        run.check(a == b and a, f"{say}: the real client is refused by {a}, ours by {b}", detail)
        return
    if not run.check(len(new) == 1, f"{say}: {len(new)} jobs", detail):
        return
    specs = [json.loads(run.must("job", "spec", j)) for j in (new[0], mine[0])]
    run.check(json.dumps(specs[0]) == json.dumps(specs[1]), f"{say}: the stored specs differ", json.dumps(specs, indent=1))
    decisions = [placeless(json.loads(run.must("job", "decision", j, "--json"))) for j in (new[0], mine[0])]
    texts = [json.dumps(d, indent=1).splitlines() for d in decisions]
    run.check(decisions[0] == decisions[1], f"{say}: the decisions differ", "\n".join(difflib.unified_diff(*texts, lineterm="", n=2)))
    packages = [run.package(j, token) for j in (new[0], mine[0])]
    # Names that git quotes are lost by the real client of forge (see the contract of submissions).
    lost = {n for n in packages[1] if not n.isascii()} if program == "sf" else set()
    run.check(packages[0] == {n: b for n, b in packages[1].items() if n not in lost}, f"{say}: the packages differ in {sorted(set(packages[0]) ^ set(packages[1]))}")
    for j in (new[0], mine[0]):
        run.must("job", "stop", j)


def dialect(run, program, projects):
    where = run.work / program
    where.mkdir()
    if projects and (projects / program).is_dir():
        commands = given(projects / program, where / "theirs")
    else:
        commands = made(run, program, where / "theirs")
    commit(run, where / "theirs")
    shutil.copytree(where / "theirs", where / "ours")
    token = run.sign_in(program)
    for step in ("as it is", "with its plugins published"):
        if step != "as it is":
            run.as_admin()
            run.check(publish(run, program, where / "theirs") > 0, f"{program}: no plugin to publish")
            commit(run, where / "theirs")
            shutil.rmtree(where / "ours")
            shutil.copytree(where / "theirs", where / "ours")
        run.as_carol(token)
        for exp, argv in commands.items():
            try_one(run, program, token, where, exp, argv, f"{program} {exp}, {step}")
            # What tp leaves in the project makes its tree dirty; both clients start from a clean one.
            shutil.rmtree(where / "theirs" / ".tuneplane-data", ignore_errors=True)
    run.as_admin()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sf", required=True, type=pathlib.Path)
    p.add_argument("--venv", required=True, type=pathlib.Path)
    p.add_argument("--projects", type=pathlib.Path)
    p.add_argument("--client", choices=sorted(CLIENTS))
    args = p.parse_args()
    if args.projects and not args.projects.is_dir():
        print(f"{args.projects} is not there: projects are made with the real clients")
        args.projects = None
    work = pathlib.Path(tempfile.mkdtemp(prefix="gatehouse-submissions."))
    run = Run(args.sf.resolve(), args.venv.absolute(), work)
    run.server = None
    try:
        run.serve()
        for program in [args.client] if args.client else sorted(CLIENTS):
            dialect(run, program, args.projects)
    finally:
        if run.server:
            run.server.terminate()
            run.server.wait()
        if not os.environ.get("KEEP"):
            shutil.rmtree(work)
    print(f"{run.passed} passed, {run.failed} failed")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
