"""What our own attacks share: a job made of a launch case, a launcher under test, a verdict.

An attack is a script, `ATTACK.py [options] -- LAUNCHER [ARGS...]`, with the options and the environment of the other attacks that
`prepare.sh` serves (README.md). It builds a job whose plugin lab/alpha is published, lets --prepare register it, shows that the
untampered job runs, tampers as another process of the job's user could, and says whether code ran that was never published.
Exit code: 0 defended, 1 the attack succeeded, 2 it was not carried out. {JOB} {PUBLISHED} {PYTHON} {STANDIN} are replaced in LAUNCHER and CMD.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = Path(os.environ.get("LAUNCH_CASES") or HERE.parents[1] / "launch")
DIALECTS = {
    "forge": dict(case="f-ok-eager", spec=".starforge/jobspec.json", plugins="forge_plugins", prefix="FORGE_", enabled="STARFORGE_ENABLED", body="body.sh"),
    "tuneplane": dict(case="t-ok-eager", spec=".tuneplane/jobspec.json", plugins="tuneplane_plugins", prefix="TUNEPLANE_", enabled="TUNEPLANE_JOB_ENABLED", body="body.py"),
}
MODULE = "alpha_patch.py"
TRACE = '''import json, os, sys
def trace(who):
    with open(os.environ["LAUNCH_TRACE"], "a") as out:
        out.write(json.dumps({"who": who}) + "\\n")
'''
#: Hostile code: it says that it ran, once a process, and is a plugin's entry too.
EVIL = TRACE + 'trace("evil")\ndef install(params, **ctx):\n    trace("evil-install")\n'


def plugin(body: str = "") -> str:
    """The source of an entry module."""
    return TRACE + '\ndef install(params, **ctx):\n    trace("plugin:alpha")\n' + body


def content_digest(folder: Path) -> str:
    """The platforms' digest of a tree that holds nothing that they leave out."""
    h = hashlib.sha256()
    for name in sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()):
        h.update(name.encode() + b"\0" + (folder / name).read_bytes() + b"\0")
    return "sha256:" + h.hexdigest()


def byte_code(python: str, source: str, name: str) -> tuple[bytes, str]:
    """Byte code that Python runs whatever the source beside it says, and the tag in its file's name."""
    made = subprocess.run([python, "-c", "import importlib.util as u, marshal, sys\n"
                           "code = compile(sys.stdin.read(), sys.argv[1], 'exec')\n"
                           "sys.stdout.buffer.write(u.MAGIC_NUMBER + (1).to_bytes(4, 'little') + bytes(8) + marshal.dumps(code))\n"
                           "sys.stderr.write(sys.implementation.cache_tag)", name], input=source.encode(), capture_output=True, check=True)
    return made.stdout, made.stderr.decode()


class Rig:
    """One job on disk and the launcher to run in it.

    files are added to the published plugin, or take the place of its own; train is code that the experiment runs (shell or Python, as
    the dialect has it), with $CASE_PY the interpreter.
    """

    def __init__(self, args, *, files=None, train=""):
        self.args, self.dialect, self.d = args, args.dialect, DIALECTS[args.dialect]
        self.tmp = Path(tempfile.mkdtemp(prefix="attack-", dir=args.tmp))
        self.job, self.published, self.home = self.tmp / "job", self.tmp / "published", self.tmp / "home"
        self.trace, self.dir = self.tmp / "trace.jsonl", self.job / self.d["plugins"] / "alpha"
        case = CASES / self.d["case"]
        shutil.copytree(case / "job", self.job)
        self.home.mkdir()
        before = content_digest(self.dir)
        for name, text in (files or {}).items():
            (self.dir / name).write_text(text)
        self.digest = content_digest(self.dir)
        for path in (self.job / self.d["plugins"]).iterdir():
            shutil.copytree(path, self.published / path.name)
        spec = self.job / self.d["spec"]
        spec.write_text(spec.read_text().replace(before, self.digest))
        (self.job / "experiments/demo" / self.d["body"]).write_text(train)
        if args.prepare:
            subprocess.run(self.words(args.prepare), shell=True, check=True, env=self.env(), cwd=self.job)

    def words(self, text: str) -> str:
        for key, value in (("{JOB}", self.job), ("{PUBLISHED}", self.published), ("{PYTHON}", self.args.python), ("{STANDIN}", HERE / "standin.py")):
            text = text.replace(key, str(value))
        return text

    def env(self) -> dict[str, str]:
        prefix = self.d["prefix"]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "LAUNCH_TRACE": str(self.trace), self.d["enabled"]: "0",
               "NRL_RUN_ID": "run-0001", prefix + "OUT_DIR": str(self.tmp / "out"), prefix + "WORK_DIR": str(self.job), "CASE_PY": self.args.python,
               "ATTACK_JOB": str(self.job), "ATTACK_PUBLISHED": str(self.published), "ATTACK_DIALECT": self.dialect,
               "ATTACK_PLUGIN_ID": "lab/alpha", "ATTACK_DIGEST": self.digest}
        return env | {key: os.environ[key] for key in self.args.keep_env if key in os.environ}

    def start(self, **more: str):
        return subprocess.Popen([self.words(w) for w in self.args.command], cwd=self.job, env=self.env() | more, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def await_mark(self, name: str, proc) -> bool:
        """Waits until the job makes the file called name beside the trace. False: it ended without doing so."""
        mark, deadline = Path(f"{self.trace}.{name}"), time.monotonic() + self.args.timeout
        while not mark.exists():
            if proc.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def mark(self, name: str):
        Path(f"{self.trace}.{name}").touch()

    def finish(self, proc) -> dict:
        try:
            out, _ = proc.communicate(timeout=self.args.timeout)
        except subprocess.TimeoutExpired:
            proc.kill()
            out, _ = proc.communicate()
        who = [json.loads(line)["who"] for line in self.trace.read_text().splitlines()] if self.trace.is_file() else []
        shutil.rmtree(self.tmp, ignore_errors=True)
        return {"exit_code": proc.returncode if proc.returncode >= 0 else 128 - proc.returncode, "who": who,
                "output_tail": out.decode("utf-8", "replace").splitlines()[-4:]}


#: A plugin's or an experiment's Python code that says where it is and waits until the attacker has acted.
WAIT = '''import os, time
open(os.environ["LAUNCH_TRACE"] + ".waiting", "w").close()
for _ in range(500):
    if os.path.exists(os.environ["LAUNCH_TRACE"] + ".go"):
        break
    time.sleep(0.02)
'''


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def arguments(doc: str):
    ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--dialect", choices=tuple(DIALECTS), default="forge")
    ap.add_argument("--python", default=sys.executable, help="the interpreter that runs the plugin")
    ap.add_argument("--prepare", default="", help="shell command run once the job exists, before the launcher")
    ap.add_argument("--rounds", type=int, default=1, help="taken for the sake of the other attacks; none of these races")
    ap.add_argument("--timeout", type=float, default=60)
    ap.add_argument("--tmp", default=None)
    ap.add_argument("--keep-env", action="append", default=[], help="variable of this process that the launcher needs")
    ap.add_argument("command", nargs="+", help="the launcher under test")
    args = ap.parse_args()
    args.name = Path(sys.argv[0]).stem.replace("_", "-")
    return args


def report(args, result: dict, word: str, code: int):
    print(json.dumps({"attack": args.name, "verdict": word, **result}))
    print(f"{args.name}: {word}", file=sys.stderr)
    sys.exit(code)


def attack(args, tamper=None, *, files=None, train="", env=None, during=None):
    """Runs the job untampered, then tampered, and ends the script with the verdict.

    tamper(rig) acts before the launch, env(rig) gives variables for it, during(rig, proc) acts while it runs and says whether it could. The
    job must run untampered; an attack on it that makes no difference to anything is no attack, which the bare launchers show.
    """
    rig = Rig(args, files=files, train=train)
    rig.mark("go")
    result = rig.finish(rig.start())
    if result["exit_code"] != 0 or "train" not in result["who"] or "plugin:alpha" not in result["who"] or "evil" in result["who"]:
        report(args, {"why": "the untampered job does not run", **result}, "NOT-CARRIED-OUT", 2)
    rig = Rig(args, files=files, train=train)
    if tamper:
        tamper(rig)
    proc = rig.start(**(env(rig) if env else {}))
    acted = during(rig, proc) if during else True
    result = rig.finish(proc)
    if any(who.startswith("evil") for who in result["who"]):
        report(args, result, "SUCCEEDED", 1)
    if not acted:
        report(args, result, "NOT-CARRIED-OUT", 2)
    report(args, result, "DEFENDED (job ran with the published code)" if "train" in result["who"] else "DEFENDED (job refused)", 0)
