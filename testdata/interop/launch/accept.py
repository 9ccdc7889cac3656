#!/usr/bin/env python3
"""Runs launch cases through `sf launch` in front of the real forge-launch. See README.md. Stdlib only."""
from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REFUSED = (3, 7)


def apply(root: Path, step: dict):
    """One step of a case's setup (testdata/launch/README.md)."""
    rel = base64.b64decode(step["path_b64"]) if "path_b64" in step else os.fsencode(step["path"])
    path = os.path.join(os.fsencode(root), rel)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kind = step["op"]
    if kind in ("write", "pyc"):
        content = base64.b64decode(step["b64"]) if "b64" in step else step["text"].encode()
        with open(path.replace(b"{TAG}", b"cpython-311"), "wb") as out:
            out.write(content)
    elif kind == "symlink":
        os.symlink(step["target"].replace("{JOB}", str(root)), path)
    elif kind == "mkdir":
        os.makedirs(path, exist_ok=True)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "remove":
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    elif kind == "chmod":
        os.chmod(path, int(step["mode"], 8))
    elif kind == "rename":
        os.rename(path, os.fsencode(root / step["to"]))
    elif kind == "utime":
        os.utime(path, (step["mtime"], step["mtime"]))
    else:
        raise ValueError(kind)


class Case:
    """A case in a folder of its own, with a registry of its own."""

    def __init__(self, sf: Path, folder: Path, work: Path):
        self.sf, self.folder, self.work = sf, folder, work
        self.meta = json.loads((folder / "case.json").read_text())
        self.expected = json.loads((folder / "expected.json").read_text())
        self.job = work / "job"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(work), "GATEHOUSE_HOME": str(work / "gh"), "LANG": "C.UTF-8"}

    def run(self, *argv, env=None, cwd=None):
        return subprocess.run([str(self.sf), *map(str, argv)], env={**self.env, **(env or {})}, cwd=cwd,
                              capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)

    def must(self, *argv):
        p = self.run(*argv)
        if p.returncode:
            raise RuntimeError(f"sf {' '.join(map(str, argv))}: exit {p.returncode}: {p.stderr.strip()}")
        return p.stdout.strip()

    def serve(self):
        data = self.work / "data"
        log = open(self.work / "server.log", "w")
        self.server = subprocess.Popen([str(self.sf), "serve", "--data", str(data), "--listen", "127.0.0.1:0"], stdout=log, stderr=log, env=self.env)
        for _ in range(200):
            if (data / "address").is_file():
                break
            time.sleep(0.05)
        url = (data / "address").read_text().strip()
        self.must("login", url, "--token", (data / "admin-token").read_text().strip())

    def publish(self):
        for pack in sorted((self.folder / "published").glob("*/*/*")):
            owner = pack.parts[-3]
            if not (self.work / f"account-{owner}").exists():
                self.must("admin", "account", "create", owner)
                (self.work / f"account-{owner}").touch()
            p = self.run("plugin", "publish", pack, "--owner", owner)
            if p.returncode not in (0, 3):  # what gate 1 refuses is in no registry, and its job must not launch
                raise RuntimeError(f"publish {pack.name}: exit {p.returncode}: {p.stderr.strip()}")

    def materialise(self):
        shutil.copytree(self.folder / "job", self.job, symlinks=True)
        for step in self.meta["setup"]:
            apply(self.job, step)

    def launch(self, launcher: str, *flags):
        trace = self.work / "trace.jsonl"
        trace.unlink(missing_ok=True)
        env = {"LAUNCH_TRACE": str(trace), "STARFORGE_ENABLED": "0", "NRL_RUN_ID": "run-0001",
               "FORGE_OUT_DIR": str(self.work / "out"), "FORGE_WORK_DIR": str(self.job)}
        for key, value in self.meta["env"].items():
            env.pop(key, None)
            if value is not None:
                env[key] = value.replace("{JOB}", str(self.job)).replace("{PYTHON}", sys.executable)
        p = self.run("launch", "--jobspec", self.job / ".starforge/jobspec.json", "--cache", self.work / "cache", *flags,
                     "--", launcher, *self.meta["argv"], env=env, cwd=self.job)
        seen = [json.loads(line)["who"] for line in trace.read_text().splitlines()] if trace.is_file() else []
        return p, seen

    def verdict(self, p, seen) -> str:
        """What is wrong with an outcome, "" when nothing is."""
        ours = self.expected["ours"]
        bad = [name for name in ours.get("must_not_run", []) if name in seen] + [w for w in seen if w.startswith("evil")]
        if bad:
            return f"ran {bad}"
        if ours["verdict"] == "refuse":
            # Where only the job directory was tampered with, running the published code instead is right too; this agent refuses.
            if p.returncode not in REFUSED or seen:
                return f"exit {p.returncode}, ran {seen}: expected a refusal"
            return ""
        real = self.expected["real"]
        if p.returncode != real["exit_code"]:
            return f"exit {p.returncode}, expected {real['exit_code']}"
        if ("train" in seen) != real["training_started"]:
            return f"ran {seen}, expected training: {real['training_started']}"
        return ""


def check(case: Case, launcher: str, report):
    case.serve()
    try:
        case.publish()
        case.materialise()
        p, seen = case.launch(launcher)
        report(case.meta["id"], case.verdict(p, seen), p)
        if case.meta["id"] == "f-ok-eager":
            signed(case, launcher, report)
    finally:
        case.server.terminate()
        case.server.wait(20)


def signed(case: Case, launcher: str, report):
    """The same job through gate 2 first: the stored spec, its receipt and the registry's key, all verified offline."""
    spec = case.job / ".starforge/jobspec.json"
    document = json.loads(spec.read_bytes())
    document["spec"].pop("hyperparams", None)  # the method of the case declares none, so gate 2 refuses them, as the client does
    spec.write_text(json.dumps(document))
    case.must("submit", "--jobspec", spec, "--save", case.job)
    (case.work / "trust").write_text(case.must("admin", "key", "show") + "\n")
    receipt = case.work / "job.receipt.json"
    p, seen = case.launch(launcher, "--receipt", receipt, "--trust", case.work / "trust")
    report("f-ok-eager with a receipt", case.verdict(p, seen), p)
    spec.write_bytes(spec.read_bytes().replace(b'"gpus_per_node":1', b'"gpus_per_node":8', 1))
    p, seen = case.launch(launcher, "--receipt", receipt, "--trust", case.work / "trust")
    report("f-ok-eager with a changed spec", "" if p.returncode == 7 and not seen else f"exit {p.returncode}, ran {seen}", p)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--sf", required=True, type=Path)
    ap.add_argument("--launcher", required=True, help="path of the real forge-launch")
    ap.add_argument("--cases", type=Path, default=Path(__file__).resolve().parents[2] / "launch")
    ap.add_argument("--only", default="", help="comma list of case ids")
    args = ap.parse_args()
    passed = failed = 0

    def report(name, wrong, p):
        nonlocal passed, failed
        passed, failed = passed + (not wrong), failed + bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} launch.{name}" + (f"  -- {wrong}: {p.stderr.strip()[-300:]}" if wrong else ""), flush=True)

    only = set(filter(None, args.only.split(",")))
    for folder in sorted(args.cases.glob("f-*")):
        if only and folder.name not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="launch-case-", ignore_cleanup_errors=True) as work:
            case = Case(args.sf.resolve(), folder, Path(work))
            if case.meta.get("signal_after") or case.meta["launch_as"] != "script":
                continue
            try:
                check(case, args.launcher, report)
            except RuntimeError as e:
                failed += 1
                print(f"FAIL launch.{folder.name}  -- {e}", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
