#!/usr/bin/env python3
"""Runs launch cases through `sf launch` in front of the real launchers. See README.md. Stdlib only."""
from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT / "testdata/launch"
NOBODY = 65534
DIALECTS = {
    "forge": dict(spec=".starforge/jobspec.json", prefix="FORGE_", enabled="STARFORGE_ENABLED", launcher="forge-launch", module="starforge.launcher"),
    "tuneplane": dict(spec=".tuneplane/jobspec.json", prefix="TUNEPLANE_", enabled="TUNEPLANE_JOB_ENABLED", launcher="tuneplane-launch", module="tuneplane.launcher"),
}
PYC = """import importlib.util, marshal, sys
flags = {"unchecked": 1, "checked": 3}[sys.argv[2]]
code = compile(sys.stdin.read(), sys.argv[1], "exec")
sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + bytes(8) + marshal.dumps(code))
sys.stderr.write(sys.implementation.cache_tag)"""


def apply(root: Path, step: dict, python: Path):
    """One step of a case's setup (testdata/launch/README.md)."""
    rel = base64.b64decode(step["path_b64"]) if "path_b64" in step else os.fsencode(step["path"])
    path = os.path.join(os.fsencode(root), rel.replace(b"{JOBPATH}", os.fsencode(root).strip(b"/")))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kind = step["op"]
    if kind == "write":
        with open(path, "wb") as out:
            out.write(base64.b64decode(step["b64"]) if "b64" in step else step["text"].encode())
    elif kind == "pyc":
        made = subprocess.run([str(python), "-c", PYC, step["source_name"], step["mode"]], input=step["text"].encode(), capture_output=True, check=True)
        with open(path.replace(b"{TAG}", made.stderr.strip()), "wb") as out:
            out.write(made.stdout)
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
    """A case in a folder of its own."""

    def __init__(self, ground: Ground, folder: Path, mode: str):
        self.ground, self.folder, self.mode = ground, folder, mode
        self.meta = json.loads((folder / "case.json").read_text())
        self.expected = json.loads((folder / "expected.json").read_text())
        self.dialect = DIALECTS[self.meta["dialect"]]
        self.base = Path(tempfile.mkdtemp(prefix=f"{mode}-{folder.name}-", dir=ground.work))
        self.job, self.trace, self.record = self.base / "job", self.base / "trace.jsonl", self.base / "record.json"

    def prepare(self):
        self.base.chmod(0o755)
        if (self.folder / "job").is_dir():
            shutil.copytree(self.folder / "job", self.job, symlinks=True)
        self.job.mkdir(exist_ok=True)
        for step in self.meta["setup"]:
            apply(self.job, step, self.ground.python)
        (self.base / "home").mkdir()
        subprocess.run([str(self.ground.sign), "-job", str(self.job), "-case", str(self.folder), "-dialect", self.meta["dialect"],
                        "-cache", str(self.base / "cache")], check=True, capture_output=True)
        if self.mode == "user":
            subprocess.run(["chown", "-hR", f"{NOBODY}:{NOBODY}", str(self.base)], check=True)

    def env(self) -> dict[str, str]:
        prefix = self.dialect["prefix"]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.base / "home"), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "LAUNCH_TRACE": str(self.trace),
               self.dialect["enabled"]: "0", "NRL_RUN_ID": "run-0001", prefix + "OUT_DIR": str(self.base / "out"), prefix + "WORK_DIR": str(self.job)}
        for key, value in self.meta["env"].items():
            env.pop(key, None)
            if value is not None:
                env[key] = value.replace("{JOB}", str(self.job)).replace("{PYTHON}", str(self.ground.python))
        return env

    def launcher(self) -> list[str]:
        if self.meta["launch_as"] == "module":
            return [str(self.ground.python), "-m", self.dialect["module"]]
        return [str(self.ground.launchers / "bin" / self.dialect["launcher"])]

    def launch(self):
        """Runs the case. The result is the exit code, what ran, stdout, stderr, and whether training outlived a signal."""
        command = [str(self.ground.sf), "launch", "--jobspec", str(self.job / self.dialect["spec"]), "--receipt", f"{self.job}.receipt.json",
                   "--trust", f"{self.job}.trust.json", "--cache", str(self.base / "cache"), "--record", str(self.record),
                   "--", *self.launcher(), *self.meta["argv"]]
        ids = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.mode == "user" else {}
        # Files take the output, so that a process which outlives the launch can't hold it open.
        with open(self.base / "stdout", "wb") as out, open(self.base / "stderr", "wb") as err:
            p = subprocess.Popen(command, cwd=self.meta["cwd"].replace("{JOB}", str(self.job)), env=self.env(), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 start_new_session=True, **ids)
            if self.meta.get("signal_after"):
                self.await_training(p)
                p.send_signal(getattr(signal, self.meta["signal_after"]))
            try:
                code = p.wait(60)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                code = "none: it did not end"
        return code if isinstance(code, str) or code >= 0 else 128 - code

    def await_training(self, p):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and p.poll() is None and not (self.trace.is_file() and '"train"' in self.trace.read_text()):
            time.sleep(0.02)
        time.sleep(0.2)

    def events(self) -> list[str]:
        return [json.loads(line)["who"] for line in self.trace.read_text(errors="replace").splitlines()] if self.trace.is_file() else []

    def left_running(self) -> list[str]:
        """Processes whose environment is this case's."""
        found, mark = [], f"LAUNCH_TRACE={self.trace}".encode()
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and mark in open(f"/proc/{entry}/environ", "rb").read().split(b"\0"):
                    found.append(entry)
            except OSError:
                pass
        return found

    def verdict(self, code) -> str:
        """What is wrong with how a case ended, "" when nothing is."""
        ours, real, seen = self.expected["ours"], self.expected["real"], self.events()
        bad = [name for name in seen if name in ours.get("must_not_run", []) or name.startswith("evil")]
        if bad:
            return f"ran {bad}"
        if left := self.left_running():
            return f"processes {left} are left running"
        record = json.loads(self.record.read_text()) if self.record.is_file() else {}
        if ours["verdict"] == "refuse":
            return self.refusal(code, seen, record, ours["rule"])
        if code != real["exit_code"]:
            return f"exit {code}, expected {real['exit_code']}"
        if not record.get("started"):
            return "the record says that the command was not started"
        ran = [who.partition("@")[0] for who in real["plugin_code_ran"]]
        if "must_not_run" not in ours and [who for who in seen if who != "train"] != ran:
            return f"ran {seen}, the real launcher {ran}"
        if ("train" in seen) != real["training_started"]:
            return f"ran {seen}, expected training: {real['training_started']}"
        return self.output(real, record)

    def refusal(self, code, seen, record, hint) -> str:
        if seen or record.get("started"):
            return f"ran {seen}, expected a refusal"
        text = (self.base / "stderr").read_text(errors="replace")
        if text.count("\n") != 1 or (self.base / "stdout").stat().st_size:
            return f"a refusal is one line on stderr, found {text!r}"
        violated = {v["rule"] for v in (record.get("decision") or {}).get("violations") or []}
        known = self.ground.rules.get(hint)
        if known is None:  # a case that came later than the table
            return "" if code in (3, 7) and violated and not any(v.startswith("launch.receipt.") for v in violated) else f"exit {code}, refused by {violated}"
        if code != known["exit"] or not violated & set(known["rules"]):
            return f"exit {code}, refused by {sorted(violated)}, expected {known['exit']} by {known['rules']}"
        return ""

    def output(self, real, record) -> str:
        """Compares what the launcher printed with what it prints without an agent, but for where things lie."""
        # Where a signal finds Python is chance, and so is what its traceback says.
        for name in ("stdout",) if self.meta.get("signal_after") else ("stdout", "stderr"):
            found = self.neutral((self.base / name).read_text(errors="backslashreplace"), record)
            if found != self.neutral("\n".join(real[name]), record):
                return f"{name} differs: {found[-400:]!r}"
        return ""

    def neutral(self, text: str, record) -> str:
        text = re.sub(r"0x[0-9a-f]{8,}", "{ADDR}", text)
        for path, name in ((record.get("root") or "/nowhere", "{JOB}"), (str(self.job), "{JOB}"), (str(self.base), "{BASE}"), (str(self.ground.python), "{PYTHON}"),
                           (str(self.ground.launchers / "lib/python3.13/site-packages"), "{SITE}"), (str(self.ground.launchers / "root/usr/lib/python3.13"), "{STDLIB}"),
                           (str(self.ground.launchers / "bin"), "{BIN}"), (str(self.ground.launchers), "{PREFIX}")):
            text = text.replace(path, name)
        return re.sub(r"(\{BIN\}/|\{PREFIX\}/bin/)?\{PYTHON\}[0-9.]*|\{BIN\}/python[0-9.]*", "{PYTHON}", text).strip()


class Ground:
    """A folder that every user can reach, with the agent, the launchers and the tool that signs."""

    def __init__(self, args, work: Path):
        work.chmod(0o755)
        self.work, self.sf, self.sign, self.launchers = work, work / "sf", args.sign.resolve(), work / "launchers"
        shutil.copy(args.sf, self.sf)
        self.sf.chmod(0o755)
        launchers = args.launchers.resolve()
        shutil.copytree(launchers, self.launchers, symlinks=True)
        for file in (self.launchers / "pyvenv.cfg", *(self.launchers / "bin").glob("*-launch")):
            file.write_text(file.read_text().replace(str(launchers), str(self.launchers)))
        subprocess.run(["chmod", "-R", "a+rX", str(self.launchers)], check=True)
        self.python = self.launchers / "bin/python3"
        self.rules = json.loads((CASES / "rules.json").read_text())

    def check(self, folder: Path, mode: str):
        case = Case(self, folder, mode)
        try:
            case.prepare()
            why = case.verdict(case.launch())
            if not why and folder.name.endswith("-ok-eager"):
                why = changed(case)
            tail = (case.base / "stderr").read_text(errors="replace").strip()[-300:]
        except subprocess.CalledProcessError as e:
            why, tail = "could not be prepared", e.stderr.decode(errors="replace")[-300:]
        subprocess.run(["chmod", "-R", "u+w", str(case.base)], check=False)
        shutil.rmtree(case.base, ignore_errors=True)
        return why, tail


def changed(case: Case) -> str:
    """The same job once more, with a spec that is not the one of the receipt."""
    spec = case.job / case.dialect["spec"]
    spec.write_bytes(spec.read_bytes().replace(b'"gpus_per_node": 1', b'"gpus_per_node": 8', 1))
    case.trace.unlink()
    code, seen = case.launch(), case.events()
    return "" if code == 7 and not seen else f"with a changed spec: exit {code}, ran {seen}"


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--sf", required=True, type=Path)
    ap.add_argument("--sign", required=True, type=Path, help="the program in sign/, built")
    ap.add_argument("--launchers", required=True, type=Path, help="the folder that launchers.sh prints")
    ap.add_argument("--cases", type=Path, action="append", default=[], help="folders of cases (default testdata/launch)")
    ap.add_argument("--only", default="", help="comma list of case ids")
    ap.add_argument("--modes", default="root,user" if os.geteuid() == 0 else "own")
    ap.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = ap.parse_args()
    only = set(filter(None, args.only.split(",")))
    # A case that lies in two folders runs once.
    named = {f.name: f for cases in args.cases or [CASES] for f in cases.glob("[ft]-*") if not only or f.name in only}
    folders = [named[name] for name in sorted(named)]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="gatehouse-launch-", ignore_cleanup_errors=True) as work, ThreadPoolExecutor(args.jobs) as pool:
        ground = Ground(args, Path(work))
        runs = [(f, mode, pool.submit(ground.check, f, mode)) for mode in args.modes.split(",") for f in folders]
        for folder, mode, future in runs:
            why, tail = future.result()
            passed, failed = passed + (not why), failed + bool(why)
            print(f"{'FAIL' if why else 'ok  '} launch.{mode}.{folder.name}" + (f"  -- {why}: {tail}" if why else ""), flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
