#!/usr/bin/env python3
"""Runs the files of docs/launch/ray.md on a local Ray cluster of two raylets. See ../integrations/README.md. Needs root and the Python index once."""
from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integrations"))
from integration import CASE, Checks, Folder, Site, end, processes, tamper, wait_until, write_page_files  # noqa: E402

RAY = "ray==2.49.2"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def install() -> Path:
    """Ray in a venv of the user's cache, made when it is not there whole. A venv can't be moved, so a mark says that it is."""
    venv = CACHE / ("gatehouse-" + RAY.replace("==", "-"))
    if not (venv / "complete").exists():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin/python"), "-m", "pip", "install", "--quiet", RAY], check=True, timeout=600)
        (venv / "complete").touch()
    return venv


def own_network(argv: list[str]):
    """Starts this script again in a network namespace that has nothing but the loopback interface: Ray listens on all addresses of a
    machine, and has no accounts."""
    os.execvp("unshare", ["unshare", "--net", sys.executable, *argv, "--own-network"])


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16xh14x", fcntl.ioctl(s, 0x8913, request))[0]  # SIOCGIFFLAGS
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", flags | 1))  # SIOCSIFFLAGS, IFF_UP


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Cluster:
    """Two raylets, each under its own agent."""

    def __init__(self, site: Site, venv: Path, job: Path):
        self.site, self.venv, self.job = site, venv, job
        self.files = site.work / "page"
        self.address = f"127.0.0.1:{free_port()}"
        self.raylets: list[subprocess.Popen] = []
        self.log = site.work / f"{job.name}.raylets.log"

    def env(self, job: Path, **more) -> dict[str, str]:
        env = self.site.env(job, "cache", online=True, real=True)
        env["PATH"] = f"{self.site.bin}:{self.site.work}/tools:{Path(self.site.launcher).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        return {
            **env, "RAY_ADDRESS": self.address, "RAY_PORT": self.address.split(":")[1], "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_OPTIONS": f"--num-cpus 1 --object-store-memory 80000000 --include-dashboard false --temp-dir {self.site.work}/ray",
            "TRAINING_PYTHON": str(self.venv / "bin/python"), "TRAINING_SEEN": str(self.site.work / f"{job.name}.seen"), "TRAINING_ACTORS": "2",
        } | more

    def start(self, name: str, job: Path | None = None):
        job = job or self.job
        env = self.env(job)
        if name == "worker.sh":
            env["RAY_OPTIONS"] = "--num-cpus 1 --object-store-memory 80000000"
        with open(self.log, "a") as log:
            self.raylets.append(subprocess.Popen([str(self.files / name)], env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/"))
        return self.raylets[-1]

    def entry(self, job: Path | None = None, **more):
        job = job or self.job
        return subprocess.run([str(self.files / "entry.sh")], env=self.env(job, **more), capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL, cwd="/")

    def nodes(self) -> int:
        """How many raylets have joined."""
        p = subprocess.run([str(self.venv / "bin/python"), "-c", "import ray, sys; ray.init(address=sys.argv[1], logging_level='ERROR'); print(sum(n['Alive'] for n in ray.nodes()))", self.address],
                           env=self.env(self.job), capture_output=True, text=True, timeout=60)
        return int(p.stdout.strip() or 0)

    def left(self) -> list[int]:
        return processes("LAUNCH_MARK=" + self.env(self.job)["LAUNCH_MARK"])

    def down(self):
        for raylet in self.raylets:
            end(raylet)


def job(site: Site, name: str) -> Path:
    made = site.job(name, 'exec "$TRAINING_PYTHON" experiments/demo/training.py\n')
    shutil.copy(HERE / "training.py", made / "experiments/demo/training.py")
    return made


def training(c: Cluster, t: Checks):
    c.start("head.sh")
    wait_until(lambda: "--block" in c.log.read_text() or c.raylets[0].poll() is not None, 60)
    c.start("worker.sh")
    t.check("two raylets run under sf launch", wait_until(lambda: c.nodes() == 2, 90), c.log.read_text())
    source = (CASE / "published/lab/alpha/1.0.0/alpha_patch.py").read_text()
    p = c.entry()
    seen = json.loads(Path(c.env(c.job)["TRAINING_SEEN"]).read_text()) if p.returncode == 0 else []
    t.check("the entry runs the launcher, and that the training", p.returncode == 0 and c.site.who(c.job)[:2] == ["plugin:alpha", "train"], f"{p.returncode} {p.stdout[-600:]} {p.stderr[-900:]}")
    t.check("driver and actors load the published plugin from one path", len(seen) == 3 and {s["file"] for s in seen} == {"/run/gatehouse/forge_plugins/alpha/alpha_patch.py"} and all(s["source"] == source for s in seen), seen)
    t.check("the actors ran on both nodes", len({s["node"] for s in seen if s["who"] == "actor"}) == 2, seen)
    t.check("no actor could write to the root", seen and not any(s["writable"] for s in seen), seen)


def later_change(c: Cluster, t: Checks):
    """The job directory changes while the cluster runs: actors still load what was checked; a new entry is refused."""
    alpha = c.job / "forge_plugins/alpha/alpha_patch.py"
    was = alpha.read_text()
    hold = c.site.work / "hold"
    entry = subprocess.Popen([str(c.files / "entry.sh")], env=c.env(c.job, TRAINING_HOLD=str(hold)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/")
    try:
        t.check("a job holds the cluster", wait_until(hold.exists, 90))
        tamper(c.job)
        p = c.entry()
        t.check("an entry of a job whose plugin was changed is refused", p.returncode == 7 and "[launch.digest.content]" in p.stderr, f"{p.returncode} {p.stderr}")
        entry.send_signal(signal.SIGTERM)
        entry.wait(60)
        t.check("SIGTERM to the entry ends the training", wait_until(lambda: not processes("TRAINING_HOLD=" + str(hold)), 30), processes("TRAINING_HOLD=" + str(hold)))
    finally:
        end(entry)
        alpha.write_text(was)
    t.check("nothing of the changed plugin ran", not any(w.startswith("evil") for w in c.site.who(c.job)), c.site.who(c.job))


def submitted(c: Cluster, t: Checks):
    """An entry that the raylet starts, as Ray's job server does: the launcher from an actor, without an agent of its own."""
    trace = c.site.traces / c.job.name
    trace.unlink()
    code = "import os, ray, subprocess\nray.init(address=os.environ['RAY_ADDRESS'], log_to_driver=False)\n" \
        "@ray.remote(num_cpus=0)\nclass Supervisor:\n    def run(self):\n        return subprocess.run(['forge-launch'], capture_output=True, text=True, cwd=os.environ['FORGE_WORK_DIR'], env=os.environ | {'TRAINING_ACTORS': '1'})\n" \
        "p = ray.get(Supervisor.remote().run.remote())\nprint(p.returncode, p.stdout[-400:], p.stderr[-400:])"
    p = subprocess.run([str(c.venv / "bin/python"), "-c", code], env=c.env(c.job), capture_output=True, text=True, timeout=120, cwd="/")
    t.check("an entry that the raylet starts is in the root", p.stdout.startswith("0 ") and c.site.who(c.job) == ["plugin:alpha", "train"]
            and all(e["file"].startswith("/run/gatehouse/") for e in c.site.trace(c.job) if "file" in e), f"{p.stdout} {p.stderr[-600:]} {c.site.trace(c.job)}")


def refused(c: Cluster, t: Checks):
    bad = job(c.site, "tampered")
    tamper(bad)
    raylet = c.start("worker.sh", bad)
    code = raylet.wait(60)
    t.check("no raylet starts for a job whose plugin was changed", code == 7 and "[launch.digest.content]" in c.log.read_text(), f"{code} {c.log.read_text()[-600:]}")
    t.check("and none joined the cluster", c.nodes() == 2, c.nodes())
    t.check("nothing of that job ran", c.site.who(bad) == [], c.site.who(bad))


def ends(c: Cluster, t: Checks):
    c.raylets[1].send_signal(signal.SIGTERM)
    c.raylets[1].wait(60)
    t.check("SIGTERM ends a raylet and the cluster notices", wait_until(lambda: c.nodes() == 1, 60), c.nodes())
    inside = [pid for pid in c.left() if Path(f"/proc/{pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()]
    t.check("the head has a PID namespace of its own", inside)
    p = subprocess.run(["nsenter", f"--target={inside[0]}", "--pid", "--mount", str(c.venv / "bin/ray"), "stop"], capture_output=True, text=True, timeout=90)
    t.check("ray stop inside the root ends Ray there", p.returncode == 0 and "Stopped all" in p.stdout, f"{p.returncode} {p.stdout} {p.stderr}")
    t.check("and leaves ray start --block, as the page says", c.raylets[0].poll() is None)
    c.raylets[0].send_signal(signal.SIGTERM)
    c.raylets[0].wait(60)
    t.check("nothing of either raylet is left running", wait_until(lambda: not c.left(), 30), c.left())


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--sf", required=True, type=Path)
    ap.add_argument("--launcher", required=True, help="path of the real forge-launch")
    ap.add_argument("--own-network", action="store_true", help=argparse.SUPPRESS)
    args = ap.parse_args()
    venv = install()
    if not args.own_network:
        own_network(sys.argv)
    loopback_up()
    t = Checks("ray")
    with Folder() as work:
        site = Site(args.sf.resolve(), work, args.launcher)
        write_page_files("ray.md", work / "page")
        (work / "tools").mkdir()
        (work / "tools/ray").symlink_to(venv / "bin/ray")
        cluster = None
        try:
            site.start()
            cluster = Cluster(site, venv, job(site, "training"))
            for group in (training, later_change, submitted, refused, ends):
                t.run(group.__name__, group, cluster, t)
        finally:
            if cluster:
                cluster.down()
            site.stop()
        left = processes(str(work))
        t.check("nothing is left running", not left, left)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
