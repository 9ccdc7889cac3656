"""What the tests of docs/launch/*.md share: the pages' own files, a registry with an admitted job, and checks. Stdlib only."""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "launch"
CASE = ROOT / "testdata" / "launch" / "f-ok-eager"
NOBODY = 65534
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# A page marks a code block that is a file: <!-- file: NAME --> on the line before the fence.
FILE_BLOCK = re.compile(r"^<!-- file: (\S+) -->\n```[a-z]*\n(.*?)^```$", re.M | re.S)

# forge-launch for accounts that cannot read the venv of the real one: the plugin from the root, then the experiment.
STAND_IN = """#!/bin/sh
set -e
/usr/bin/python3 -c 'import os, sys
sys.path.insert(0, os.path.join(os.environ["FORGE_WORK_DIR"], "forge_plugins", "alpha"))
import alpha_patch
alpha_patch.install({})'
exec bash experiments/demo/train.sh
"""


def page_files(page: str) -> dict[str, str]:
    """The files that a page of docs/launch consists of, by name."""
    found = FILE_BLOCK.findall((PAGES / page).read_text())
    files = dict(found)
    if not files or len(files) != len(found):
        raise RuntimeError(f"{page}: no file blocks, or two of one name")
    return files


def write_page_files(page: str, into: Path) -> Path:
    """Writes them into a folder, scripts executable."""
    into.mkdir(parents=True, exist_ok=True)
    for name, text in page_files(page).items():
        (into / name).write_text(text)
        (into / name).chmod(0o755 if text.startswith("#!") else 0o644)
    return into


def wait_until(what, seconds=60):
    """Polls until what() is true; says whether it became so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.1)
    return False


def processes(text: str) -> list[int]:
    """The processes of this machine that have text in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class Site:
    """A registry in a folder, the plugin lab/alpha published in it, and jobs admitted by it."""

    def __init__(self, sf: Path, work: Path, launcher: str = ""):
        work.chmod(0o755)
        self.work, self.server, self.launcher = work, None, launcher
        self.bin, self.jobs, self.traces, self.stand_in = work / "bin", work / "jobs", work / "traces", work / "stand-in"
        for folder in (self.bin, self.jobs, self.traces, self.stand_in):
            folder.mkdir()
        self.traces.chmod(0o777)
        self.sf = self.bin / "sf"
        shutil.copy(sf, self.sf)
        self.sf.chmod(0o755)
        (self.stand_in / "forge-launch").write_text(STAND_IN)
        (self.stand_in / "forge-launch").chmod(0o755)
        self.admin = {"PATH": SYSTEM_PATH, "HOME": str(work), "GATEHOUSE_HOME": str(work / "admin"), "LANG": "C.UTF-8"}

    def run(self, *argv):
        p = subprocess.run([str(self.sf), *map(str, argv)], env=self.admin, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if p.returncode:
            raise RuntimeError(f"sf {' '.join(map(str, argv))}: exit {p.returncode}: {p.stderr.strip()}")
        return p.stdout.strip()

    def start(self):
        data = self.work / "data"
        self.log = self.work / "server.log"
        with open(self.log, "w") as log:
            self.server = subprocess.Popen([str(self.sf), "serve", "--data", str(data), "--listen", "127.0.0.1:0"], stdout=log, stderr=log, env=self.admin)
        if not wait_until((data / "address").is_file, 30):
            raise RuntimeError(f"sf serve: {self.log.read_text()[-500:]}")
        self.url, token = (data / "address").read_text().strip(), (data / "admin-token").read_text().strip()
        self.run("login", self.url, "--token", token)
        self.run("admin", "account", "create", "lab")
        self.token = self.run("admin", "token", "create", "lab")
        self.run("plugin", "publish", CASE / "published/lab/alpha/1.0.0", "--owner", "lab")
        self.trust = self.work / "trust.json"
        self.trust.write_text(self.run("admin", "key", "show") + "\n")
        self._admit()

    def _admit(self):
        """One job through gate 2; its spec and receipt are what every job of the test has."""
        spec = self.work / "spec.json"
        document = json.loads((CASE / "job/.starforge/jobspec.json").read_bytes())
        document["spec"].pop("hyperparams", None)  # the method declares none
        spec.write_text(json.dumps(document))
        self.run("submit", "--jobspec", spec, "--save", self.work / "admitted")

    def job(self, name: str, body: str = "", owner: int = 0) -> Path:
        """A job directory with its receipt beside it. body is what the training does, in sh."""
        job = self.jobs / name
        shutil.copytree(CASE / "job", job)
        shutil.copy(self.work / "admitted/.starforge/jobspec.json", job / ".starforge/jobspec.json")
        shutil.copy(self.work / "admitted.receipt.json", self.jobs / f"{name}.receipt.json")
        (job / "experiments/demo/body.sh").write_text(body)
        for at in [job, *job.rglob("*")]:
            os.chown(at, owner, owner)
        return job

    def env(self, job: Path, cache: str, online: bool = True, real: bool = False) -> dict[str, str]:
        """The environment of whoever starts a job. forge-launch in it is the stand-in, or the platform's own, whose
        package brings a client named sf too: ours comes first."""
        path = [str(self.bin), str(Path(self.launcher).parent if real else self.stand_in), SYSTEM_PATH]
        env = {
            "PATH": ":".join(path), "HOME": str(self.work / "home"), "LANG": "C.UTF-8", "JOB": str(job),
            "GATEHOUSE_TRUST": str(self.trust), "GATEHOUSE_CACHE": str(self.work / cache),
            "STARFORGE_ENABLED": "0", "NRL_RUN_ID": "run-0001", "LAUNCH_TRACE": str(self.traces / job.name),
            "LAUNCH_MARK": job.name + "-" + str(os.getpid()),
        }
        if online:
            env |= {"GATEHOUSE_SERVER": self.url, "GATEHOUSE_TOKEN": self.token}
        return env

    def trace(self, job: Path) -> list[dict]:
        """What ran, in order: {"who": "plugin:alpha"} and {"who": "train"} of a whole job."""
        path = self.traces / job.name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    def who(self, job: Path) -> list[str]:
        return [entry["who"] for entry in self.trace(job)]

    def fetches(self) -> int:
        """How many times the pack was read from the registry."""
        blobs = [entry["path"] for entry in (json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{"))
                 if entry.get("route") == "blob" and entry["method"] == "GET" and entry["status"] == 200]
        return max(map(blobs.count, blobs), default=0)

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.wait(20)


class Checks:
    """Counts and prints checks in the form that scripts/accept.sh reads."""

    def __init__(self, part: str):
        self.part, self.passed, self.failed = part, 0, 0

    def check(self, name: str, good, detail=""):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} {self.part}.{name}" + ("" if good else f"  -- {str(detail).strip()[-800:]}"), flush=True)

    def run(self, name: str, do, *args):
        """A group of checks; one that ends with an error counts as failed."""
        try:
            do(*args)
        except Exception:  # whatever went wrong is the test's result
            self.check(name, False, traceback.format_exc())

    def finish(self) -> int:
        print(f"{self.passed} passed, {self.failed} failed, 0 skipped")
        return 1 if self.failed or not self.passed else 0


class Folder:
    """A working folder that ordinary accounts can reach, removed at the end with whatever lies in it."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(prefix="gatehouse-integration-", dir="/tmp"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def tamper(job: Path):
    """Changes one byte of the injected plugin, and would leave a trace when it ran."""
    with open(job / "forge_plugins/alpha/alpha_patch.py", "a") as out:
        out.write("\ntrace('evil')\n")


def end(process: subprocess.Popen):
    """Ends a process that the test started."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
