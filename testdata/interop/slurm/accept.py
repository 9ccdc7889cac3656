#!/usr/bin/env python3
"""Runs the files of docs/launch/slurm.md on a Slurm cluster of one node. See ../integrations/README.md. Stdlib only; needs root."""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integrations"))
from integration import NOBODY, Checks, Folder, Site, processes, tamper, wait_until, write_page_files  # noqa: E402

LONG = "trap 'echo {\\\"who\\\": \\\"ended by TERM\\\"} >> $LAUNCH_TRACE; exit 3' TERM\nsleep 600 & wait $!\n"
STUBBORN = "trap '' TERM\nsetsid sleep 600 &\nwhile :; do sleep 1; done\n"


class Cluster:
    def __init__(self, site: Site, folder: Path):
        self.site, self.folder = site, folder
        self.files = write_page_files("slurm.md", folder / "page")
        self.outputs = folder / "logs"
        self.outputs.mkdir()
        self.outputs.chmod(0o777)

    def cluster(self, *argv):
        p = subprocess.run(["sh", str(HERE / "cluster.sh"), *map(str, argv)], capture_output=True, text=True, timeout=120)
        if p.returncode:
            raise RuntimeError(f"cluster.sh {argv[0]}: {p.stderr[-800:]}")

    def up(self):
        (self.folder / "cluster").mkdir()
        self.cluster("up", self.folder / "cluster", self.files / "gatehouse.conf")
        (self.files / "gatehouse.env").write_text("".join(
            f"export {name}='{value}'\n" for name, value in self.site.env(self.folder, "cache-prolog").items()
            if name in ("PATH", "HOME") or name.startswith("GATEHOUSE_")))

    def configure(self, lines: str = ""):
        """Other further lines of slurm.conf, after the page's."""
        conf = self.folder / "conf"
        conf.write_text((self.files / "gatehouse.conf").read_text() + lines)
        self.cluster("conf", self.folder / "cluster", conf)

    def down(self):
        self.cluster("down", self.folder / "cluster")

    def env(self, job: Path, cache: str, **how):
        return {**self.site.env(job, cache, **how), "SLURM_CONF": str(self.folder / "cluster/slurm.conf")}

    def call(self, argv, env, user=0):
        who = {} if user == 0 else {"user": user, "group": user, "extra_groups": []}
        return subprocess.run(list(map(str, argv)), env=env, capture_output=True, text=True, timeout=180, cwd="/", stdin=subprocess.DEVNULL, **who)

    def sbatch(self, job: Path, cache: str, *flags, user=0, script: Path | None = None, **how) -> str:
        """Submits a job; its log is logs/JOB-ID."""
        log = self.outputs / (job.name + "-%A_%a" if any("--array" in f for f in flags) else job.name + "-%j")
        p = self.call(["sbatch", "--parsable", f"--output={log}", *flags, script or self.files / "job.sbatch"], self.env(job, cache, **how), user)
        if p.returncode:
            raise RuntimeError(f"sbatch: {p.stderr}")
        return p.stdout.strip().split(";")[0]

    def state(self, id: str, key: str) -> str:
        p = self.call(["scontrol", "--oneliner", "show", "job", id], self.env(self.folder, "none"))
        found = re.findall(rf"\b{key}=(.*?)(?= \w[\w/:]*=|$)", p.stdout.strip(), re.M)
        return ",".join(sorted(set(v.strip() for v in found)))

    def ended(self, id: str, seconds=90) -> str:
        """Waits for a job's end: its state and exit code."""
        done = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        wait_until(lambda: set(self.state(id, "JobState").split(",")) <= set(done), seconds)
        return f"{self.state(id, 'JobState')} {self.state(id, 'ExitCode')}"

    def log(self, job: Path) -> str:
        return "".join(p.read_text(errors="replace") for p in sorted(self.outputs.glob(job.name + "-*")))


def mark(env: dict[str, str]) -> str:
    return "LAUNCH_MARK=" + env["LAUNCH_MARK"]


def batch(c: Cluster, t: Checks):
    """sbatch and srun with the platform's own launcher, exit codes, and refusals."""
    job = c.site.job("good")
    state = c.ended(c.sbatch(job, "cache-root", real=True))
    t.check("sbatch runs the real launcher in the root", state == "COMPLETED 0:0" and c.site.who(job) == ["plugin:alpha", "train"], f"{state} {c.site.who(job)} {c.log(job)}")
    t.check("the job sees the private root", c.site.trace(job)[0]["file"].startswith("/run/gatehouse/forge_plugins/alpha/"), c.site.trace(job))
    job = c.site.job("code", "exit 9\n")
    state = c.ended(c.sbatch(job, "cache-root", online=False, real=True))
    t.check("the command's exit code is the job's", state == "FAILED 9:0", f"{state} {c.log(job)}")
    job = c.site.job("killed", "kill -KILL $$\n")
    state = c.ended(c.sbatch(job, "cache-root", online=False))
    t.check("a signal that kills the command shows as 128+s", state == "FAILED 137:0", f"{state} {c.log(job)}")
    job = c.site.job("tampered")
    tamper(job)
    state = c.ended(c.sbatch(job, "cache-root", online=False, real=True))
    t.check("a refusal fails the job", state == "FAILED 7:0", state)
    t.check("the job's log has the rule", re.search(r"^sf launch: refused: .*\[launch\.digest\.content\]", c.log(job), re.M), c.log(job))
    t.check("nothing of a refused job ran", c.site.who(job) == [], c.site.who(job))


def users(c: Cluster, t: Checks):
    """The same as an ordinary user, whose agent is that user; tasks and array jobs share one cache."""
    cache = c.site.work / "cache-user"
    cache.mkdir()
    os.chown(cache, NOBODY, NOBODY)
    before = c.site.fetches()  # of the root's cache
    job = c.site.job("tasks", "", owner=NOBODY)
    state = c.ended(c.sbatch(job, "cache-user", "--ntasks=2", user=NOBODY))
    t.check("two tasks of a user each run in a root", state == "COMPLETED 0:0" and sorted(c.site.who(job)) == ["plugin:alpha"] * 2 + ["train"] * 2, f"{state} {c.site.who(job)} {c.log(job)}")
    t.check("two tasks read the pack once", c.site.fetches() - before <= 1, c.site.fetches() - before)
    job = c.site.job("array", "", owner=NOBODY)
    state = c.ended(c.sbatch(job, "cache-user", "--array=0-3", user=NOBODY, online=False))
    t.check("array jobs launch from the shared cache, offline", state == "COMPLETED 0:0" and c.site.who(job).count("train") == 4, f"{state} {c.site.who(job)} {c.log(job)}")
    job = c.site.job("tampered-user", owner=NOBODY)
    tamper(job)
    state = c.ended(c.sbatch(job, "cache-user", user=NOBODY, online=False))
    t.check("a user's refused job fails with its rule", state == "FAILED 7:0" and "[launch.digest.content]" in c.log(job) and not c.site.who(job), f"{state} {c.log(job)}")
    p = c.call(["srun", "sf", "launch", "--jobspec", job / ".starforge/jobspec.json", "--", "forge-launch"], c.env(job, "cache-user", online=False), NOBODY)
    probe = c.call(["srun", "sf", "launch", "--probe"], c.env(job, "cache-user", online=False), NOBODY)
    t.check("srun sf launch --probe says user mode", probe.returncode == 0 and probe.stdout.startswith("a launch gets mode user "), f"{probe.stdout} {probe.stderr}")
    t.check("srun by hand ends with the refusal's code", p.returncode == 7 and "[launch.digest.content]" in p.stderr, f"{p.returncode} {p.stderr}")


def cancels(c: Cluster, t: Checks):
    """scancel: what ends by itself, what does not, and SIGKILL; nothing is left running. The three jobs run at once."""
    cases = []
    for name, body, flags in (("ends", LONG, []), ("stubborn", STUBBORN, []), ("killed-hard", STUBBORN, ["--signal=KILL", "--full"])):
        job = c.site.job("cancel-" + name, body, owner=NOBODY)
        cases.append((name, job, c.sbatch(job, "cache-user", user=NOBODY, online=False), flags))
    for name, job, id, flags in cases:
        env = c.env(job, "cache-user")
        if not wait_until(lambda: "train" in c.site.who(job), 60):
            t.check(f"cancel {name}: started", False, c.log(job))
        c.call(["scancel", *flags, id], env, NOBODY)
    for name, job, id, flags in cases:
        left = lambda: processes(mark(c.env(job, "cache-user")))  # noqa: E731
        wait_until(lambda: not left(), 60)
        state = c.ended(id)
        t.check(f"scancel {' '.join(flags) or 'with the default signals'} ({name}) leaves nothing running", not left() and state.startswith(("CANCELLED", "FAILED")), f"{state} {left()}")
    t.check("SIGTERM reached the training process", c.site.who(cases[0][1])[-1:] == ["ended by TERM"], f"{c.site.who(cases[0][1])} {c.log(cases[0][1])}")
    t.check("no mount is left", " /run/gatehouse " not in Path("/proc/mounts").read_text())


def plain_script(c: Cluster) -> Path:
    """A job that does not start sf itself."""
    script = c.folder / "plain.sbatch"
    script.write_text('#!/bin/sh\nexec srun sh -c "echo the job ran"\n')
    return script


def task_prolog(c: Cluster, t: Checks):
    c.configure(f"TaskProlog={c.files}/task-prolog.sh\n")
    plain = plain_script(c)
    job = c.site.job("prolog-good", owner=NOBODY)
    state = c.ended(c.sbatch(job, "cache-user", user=NOBODY, online=False, script=plain))
    t.check("TaskProlog lets a verified job run", state == "COMPLETED 0:0" and "the job ran" in c.log(job), f"{state} {c.log(job)}")
    t.check("TaskProlog says that it only verified", "Nothing was started, and nothing protects these files" in c.log(job), c.log(job))
    job = c.site.job("prolog-bad", owner=NOBODY)
    tamper(job)
    state = c.ended(c.sbatch(job, "cache-user", user=NOBODY, online=False, script=plain))
    t.check("TaskProlog fails a job that gate 3 refuses", state == "FAILED 7:0" and "the job ran" not in c.log(job), f"{state} {c.log(job)}")
    t.check("the log of a job that TaskProlog refused has the rule", "sf launch: refused:" in c.log(job) and "[launch.digest.content]" in c.log(job), c.log(job))


def slurmd_prolog(c: Cluster, t: Checks):
    c.configure(f"Prolog={c.files}/prolog.sh\n")
    plain = plain_script(c)
    job = c.site.job("slurmd-good", owner=NOBODY)
    state = c.ended(c.sbatch(job, "cache-user", f"--chdir={job}", user=NOBODY, script=plain))
    t.check("slurmd's Prolog lets a verified job run", state == "COMPLETED 0:0" and "the job ran" in c.log(job), f"{state} {c.log(job)}")
    job = c.site.job("slurmd-bad", owner=NOBODY)
    tamper(job)
    id = c.sbatch(job, "cache-user", f"--chdir={job}", user=NOBODY, script=plain)
    wait_until(lambda: "held" in c.state(id, "Reason"), 60)
    t.check("a job that slurmd's Prolog refuses is held", c.state(id, "JobState") == "PENDING" and "held" in c.state(id, "Reason") and "the job ran" not in c.log(job), f"{c.state(id, 'Reason')} {c.log(job)}")
    t.check("its AdminComment has the rule", "[launch.digest.content]" in c.state(id, "AdminComment"), c.state(id, "AdminComment"))
    nodes = c.call(["sinfo", "--noheader", "--format=%T"], c.env(job, "none")).stdout
    t.check("and the node is drained, as the page says", "drain" in nodes, nodes)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--sf", required=True, type=Path)
    ap.add_argument("--launcher", required=True, help="path of the real forge-launch")
    ap.add_argument("--only", default="", help="comma list of groups")
    args = ap.parse_args()
    groups = [g for g in (batch, users, cancels, task_prolog, slurmd_prolog) if not args.only or g.__name__ in args.only.split(",")]
    t = Checks("slurm")
    with Folder() as work:
        site = Site(args.sf.resolve(), work, args.launcher)
        cluster = Cluster(site, work)
        try:
            site.start()
            cluster.up()
            for group in groups:
                t.run(group.__name__, group, cluster, t)
        finally:
            cluster.down()
            site.stop()
        left = processes(str(work))
        t.check("nothing is left running", not left, left)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
