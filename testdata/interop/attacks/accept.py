#!/usr/bin/env python3
"""Runs attacks on the launch agent in front of the real launchers, bare and behind `sf launch`. See README.md. Stdlib only."""
from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
from asroot import Scheduler  # noqa: E402

HERE = Path(__file__).resolve().parent
LIBRARY = {"attacklib.py", "standin.py", "rig.py", "asroot.py", "accept.py"}
FIXTURES = ("make_cases.py", "cases_common.py")
CASES = ("f-ok-eager", "t-ok-eager")
NOBODY = 65534
SPEC = {"forge": ".starforge/jobspec.json", "tuneplane": ".tuneplane/jobspec.json"}


class Ground:
    """A folder that every user can reach, with copies of all that the attacks run: the agent, the launchers, the scripts."""

    def __init__(self, args, work: Path):
        self.args, self.work = args, work
        work.chmod(0o755)
        self.sf = work / "sf"
        shutil.copy(args.sf, self.sf)
        self.sf.chmod(0o755)
        self.launchers = work / "launchers"
        shutil.copytree(args.launchers, self.launchers, symlinks=True)
        for file in (self.launchers / "pyvenv.cfg", *(self.launchers / "bin").glob("*-launch")):
            file.write_text(file.read_text().replace(str(args.launchers), str(self.launchers)))
        self.fixtures, self.scripts = work / "fixtures", []
        self.fixtures.mkdir()
        for name in CASES:
            shutil.copytree(HERE.parents[1] / "launch" / name, self.fixtures / name)
        if args.shared:
            for name in FIXTURES:
                shutil.copy(args.shared / "fixtures/starforge/launch" / name, self.fixtures / name)
        for folder, name in ((HERE, "own"), *([(args.shared / "tools/attacks", "shared")] if args.shared else [])):
            (work / name).mkdir()
            for file in sorted(folder.glob("*.py")):
                shutil.copy(file, work / name / file.name)
                if file.name not in LIBRARY and (not args.only or file.stem in args.only):
                    self.scripts.append(work / name / file.name)
        if args.shared:
            shutil.copy(args.shared / "tools/attacks/standin.py", work / "own/standin.py")
        shutil.copy(HERE / "prepare.sh", work / "prepare.sh")
        (work / "prepare.sh").chmod(0o755)
        subprocess.run(["chmod", "-R", "a+rX", str(work)], check=True)
        if os.geteuid() == 0:
            Scheduler(work / "scheduler", {str(self.sf), str(work / "prepare.sh")}, {"SF_JOB_USER": f"{NOBODY}:{NOBODY}"}).start()

    def python(self) -> Path:
        return self.launchers / "bin/python3"

    def run(self, script: Path, dialect: str, mode: str, launcher: str):
        """One attack: in front of the launcher alone (mode bare), or of the agent in that mode."""
        home = Path(tempfile.mkdtemp(prefix=f"{mode}-", dir=self.work))
        cache = home / "cache"
        if mode == "uid":
            cache = Path(tempfile.mkdtemp(prefix="node-", dir=self.work))  # the node's own
        user = NOBODY if mode in ("user", "uid") else None
        if user is not None:
            os.chown(home, user, user)
        target = [str(self.launchers / "bin" / f"{LAUNCHERS[dialect]}")]
        if launcher == "stand-in":
            target = ["{PYTHON}", "{STANDIN}"]
        command, prepare = target, str(self.work / "prepare.sh")
        options = ["--dialect", dialect, "--python", str(self.python()), "--tmp", str(home), "--rounds", str(self.args.rounds), "--timeout", "60"]
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8", "LAUNCH_FIXTURES": str(self.fixtures),
               "LAUNCH_CASES": str(self.fixtures), "PYTHONDONTWRITEBYTECODE": "1", "SF": str(self.sf), "SF_CACHE": str(cache)}
        if mode != "bare":
            command = [str(self.sf), "launch", "--cache", str(cache), "--jobspec", "{JOB}/" + SPEC[dialect],
                       "--receipt", "{JOB}.receipt.json", "--trust", "{JOB}.trust.json", "--record", str(home / "record.json")]
            if mode == "uid":
                scheduler = [str(self.python()), "-I", str(self.work / "own/asroot.py"), str(self.work / "scheduler")]  # -I: what steers Python is for the job
                command = [*scheduler, *command, "--user", f"{NOBODY}:{NOBODY}"]
                prepare = shlex.join([*scheduler, prepare])
            command += ["--", *target]
            options += ["--prepare", prepare, "--keep-env", "SF", "--keep-env", "SF_CACHE", "--keep-env", "TMPDIR"]
        ids = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        began = time.monotonic()
        p = subprocess.run([str(self.python()), str(script), *options, "--", *command], cwd="/", env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=900, **ids)
        took = time.monotonic() - began
        protection = self.protection(home / "record.json")
        left = [e.name for e in home.iterdir() if e.name.startswith("attack-")]
        for folder in (home, cache):
            shutil.rmtree(folder, ignore_errors=True)
        return p, took, protection, left

    @staticmethod
    def protection(record: Path) -> str:
        try:
            return json.loads(record.read_text()).get("mode", "")
        except (OSError, ValueError):
            return ""


#: The protection that each way of running must have had in its last launch, "" where that was refused before there was one.
MODES = {"bare": {""}, "root": {"root", ""}, "uid": {"root", ""}, "user": {"user", ""}, "own": {"root", "user", ""}}
LAUNCHERS = {"forge": "forge-launch", "tuneplane": "tuneplane-launch"}


def wrong(p, mode: str) -> str:
    """What is wrong with how an attack ended, "" when nothing is."""
    if mode == "bare":
        return "" if p.returncode == 1 and '"SUCCEEDED"' in p.stdout else f"exit {p.returncode}: it does not bite the bare launcher"
    return "" if p.returncode == 0 and "DEFENDED" in p.stdout else f"exit {p.returncode}"


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--sf", required=True, type=Path)
    ap.add_argument("--launchers", required=True, type=Path, help="the folder that ../launch/launchers.sh prints")
    ap.add_argument("--shared", type=Path, help="the folder with tools/attacks and fixtures/starforge/launch; without it only the attacks beside this script run")
    ap.add_argument("--rounds", type=int, default=1, help="blind rounds of the attacks that race")
    ap.add_argument("--modes", default="bare,root,uid,user" if os.geteuid() == 0 else "bare,own", help="bare: no agent. root: agent and job are root. uid: the agent is root, job and attacker are another. user: agent, job and attacker are an ordinary user. own: they are who runs this")
    ap.add_argument("--dialects", default="forge,tuneplane")
    ap.add_argument("--launcher", choices=("real", "stand-in"), default="real", help="stand-in: the one of --shared, which checks nothing")
    ap.add_argument("--only", type=lambda s: s.split(","), default=[])
    ap.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = ap.parse_args()
    args.sf, args.launchers = args.sf.resolve(), args.launchers.resolve()
    modes = args.modes.split(",")
    if os.geteuid() != 0 and set(modes) & {"root", "uid", "user"}:
        sys.exit("accept.py: the modes root, uid and user need root")
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    passed = failed = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gatehouse-attacks-", ignore_cleanup_errors=True) as work, ThreadPoolExecutor(args.jobs) as pool:
        ground = Ground(args, Path(work))
        runs = [(s, d, m) for d in args.dialects.split(",") for m in modes for s in ground.scripts]
        for (script, dialect, mode), future in [(r, pool.submit(ground.run, *r, args.launcher)) for r in runs]:
            p, took, protection, left = future.result()
            why = wrong(p, mode) or (f"left {left}" if left else "") or (f"ran in mode {protection}" if protection not in MODES[mode] else "")
            passed, failed = passed + (not why), failed + bool(why)
            tail = f"  -- {why}: {(p.stdout + p.stderr).strip()[-1500:]}" if why else ""
            print(f"{'FAIL' if why else 'ok  '} attacks.{dialect}.{mode}.{script.stem} {took:.1f} s {protection}{tail}", flush=True)
    print(f"{len(ground.scripts)} attacks in {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
