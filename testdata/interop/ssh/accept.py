#!/usr/bin/env python3
"""Runs the files of docs/launch/ssh.md with an OpenSSH server of its own. See ../integrations/README.md. Needs root, openssh-server and systemd's tools."""
from __future__ import annotations

import argparse
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integrations"))
from integration import STAND_IN, Checks, Folder, Site, end, processes, tamper, wait_until, write_page_files  # noqa: E402

TRAINER = 64999  # the account of the test: it exists in the server's own view of /etc/passwd only
LONG = "trap 'echo ended; exit 3' HUP TERM\necho started\nsleep 600 & wait $!\n"
STUBBORN = "trap '' HUP TERM\nsleep 600 & wait $!\nsleep 600\n"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Node:
    """An OpenSSH server on the loopback interface, in a mount namespace with a /run and an account of its own, and a client for it."""

    def __init__(self, site: Site, port: int):
        self.site, self.port, self.server = site, port, None
        work = self.work = site.work
        self.files = write_page_files("ssh.md", work / "page")
        (work / "home").mkdir()
        self.cache = work / "cache"
        self.cache.mkdir()
        os.chown(self.cache, TRAINER, TRAINER)
        for key in ("host", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(work / key)], check=True)
        (work / "keys").write_text((work / "client.pub").read_text())
        (work / "keys-forced").write_text((work / "client.pub").read_text())
        (work / "known").write_text(f"node {(work / 'host.pub').read_text()}")
        passwd = Path("/etc/passwd").read_text()
        for name in ("trainer", "forced"):
            passwd += f"{name}:x:{TRAINER}:{TRAINER}::{work}/home:/bin/sh\n"
        (work / "passwd").write_text(passwd)
        env = site.env(work, "cache", online=True)
        settings = " ".join(f"{k}={v}" for k, v in env.items() if k.startswith("GATEHOUSE_") or k in ("PATH", "STARFORGE_ENABLED", "NRL_RUN_ID"))
        (work / "sshd_config").write_text(f"""ListenAddress 127.0.0.1:{port}
HostKey {work}/host
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
AuthorizedKeysFile {work}/keys
SetEnv {settings} LAUNCH_TRACE={site.traces}/ssh LAUNCH_MARK=ssh-{os.getpid()}
Match User forced
    ForceCommand {self.files}/forced-launch.sh
    AllowTcpForwarding no
""")
        (work / "ssh_config").write_text(f"""Host node
    HostName 127.0.0.1
    HostKeyAlias node
    Port {port}
    User trainer
    IdentityFile {work}/client
    IdentitiesOnly yes
    UserKnownHostsFile {work}/known
    StrictHostKeyChecking yes
    LogLevel ERROR
""")
        (work / "client-bin").mkdir()
        shim = work / "client-bin/ssh"
        shim.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {work}/ssh_config "$@"\n')
        shim.chmod(0o755)

    def start(self):
        prepare = ("mount --make-rslave / && mount -t tmpfs -o mode=755 run /run && mkdir /run/sshd /run/gatehouse && "
                   f"mount --bind {self.work}/passwd /etc/passwd && exec /usr/sbin/sshd -D -e -f {self.work}/sshd_config")
        with open(self.work / "sshd.log", "w") as log:
            self.server = subprocess.Popen(["unshare", "--mount", "sh", "-c", prepare], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if not wait_until(self.answers, 20):
            raise RuntimeError((self.work / "sshd.log").read_text())

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def client(self) -> dict[str, str]:
        return {"PATH": f"{self.work}/client-bin:/usr/bin:/bin", "HOME": str(self.work / "home")}

    def call(self, *argv):
        return subprocess.run(list(map(str, argv)), env=self.client(), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)

    def launch(self, job: Path):
        self.trace.unlink(missing_ok=True)
        return self.call(self.files / "launch-over-ssh.sh", "node", job)

    @property
    def trace(self) -> Path:
        return self.site.traces / "ssh"

    def ran(self) -> list[str]:
        return re.findall(r'"who": "([^"]*)"', self.trace.read_text()) if self.trace.exists() else []

    def left(self) -> list[int]:
        """What runs of the jobs that came over ssh."""
        return [pid for pid in processes(f"LAUNCH_MARK=ssh-{os.getpid()}") if b"sleep" in cmdline(pid) or b"train.sh" in cmdline(pid) or b"launch" in cmdline(pid)]


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def over_ssh(n: Node, t: Checks):
    job = n.site.job("good", owner=TRAINER)
    p = n.launch(job)
    t.check("ssh node sf launch runs the job in the root", p.returncode == 0 and n.ran() == ["plugin:alpha", "train"] and "/run/gatehouse/forge_plugins" in n.trace.read_text(), f"{p.returncode} {p.stdout} {p.stderr} {(n.work / 'sshd.log').read_text()}")
    p = n.call("ssh", "node", "sf", "launch", "--probe")
    t.check("ssh node sf launch --probe says user mode", p.returncode == 0 and p.stdout.startswith("a launch gets mode user "), f"{p.stdout} {p.stderr}")
    p = n.launch(n.site.job("code", "exit 9\n", owner=TRAINER))
    t.check("the exit code is the command's", p.returncode == 9, f"{p.returncode} {p.stdout} {p.stderr}")
    p = n.launch(n.site.job("killed", "kill -KILL $$\n", owner=TRAINER))
    t.check("a signal that kills the command is 128+s", p.returncode == 137, f"{p.returncode} {p.stdout} {p.stderr}")
    job = n.site.job("tampered", owner=TRAINER)
    tamper(job)
    p = n.launch(job)
    t.check("a refusal is exit 7 with its rule, and nothing ran", p.returncode == 7 and "[launch.digest.content]" in p.stdout and n.ran() == [], f"{p.returncode} {p.stdout}")


def dropped(n: Node, t: Checks):
    """The connection goes away: with a terminal the job ends, without one it does not, as the page says."""
    script = n.files / "launch-over-ssh.sh"
    for name, body in (("drop", LONG), ("drop-stubborn", STUBBORN)):
        job = n.site.job(name, body, owner=TRAINER)
        n.trace.unlink(missing_ok=True)
        client = subprocess.Popen([str(script), "node", str(job)], env=n.client(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        t.check(f"{name}: the job runs", wait_until(lambda: "train" in n.ran() and n.left(), 30))
        client.kill()
        client.wait()
        t.check(f"{name}: a dropped connection leaves nothing running", wait_until(lambda: not n.left(), 60), n.left())
    text = script.read_text().replace("ssh -tt ", "ssh ")
    plain = n.work / "without-terminal.sh"
    plain.write_text(text)
    plain.chmod(0o755)
    job = n.site.job("no-terminal", "sleep 600\n", owner=TRAINER)
    n.trace.unlink(missing_ok=True)
    client = subprocess.Popen([str(plain), "node", str(job)], env=n.client(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: "train" in n.ran() and n.left(), 30)
    client.kill()
    client.wait()
    t.check("without a terminal a silent job goes on", not wait_until(lambda: not n.left(), 2))
    for pid in [p for p in n.left() if b"\0launch\0" in cmdline(p)]:
        os.kill(pid, signal.SIGTERM)
    t.check("until its agent is told to end", wait_until(lambda: not n.left(), 60), n.left())


def forced(n: Node, t: Checks):
    job = n.site.job("forced", owner=TRAINER)
    n.trace.unlink(missing_ok=True)
    p = n.call("ssh", "forced@node", job)
    t.check("a forced command launches the job that is named", p.returncode == 0 and n.ran() == ["plugin:alpha", "train"], f"{p.returncode} {p.stdout} {p.stderr}")
    for what in ("id", f"{job}; id", f"{job}/../../etc", f"$(id){job}", ""):
        n.trace.unlink(missing_ok=True)
        p = n.call("ssh", "-T", "forced@node", *([what] if what else []))
        t.check(f"a forced command refuses {what.replace(str(job), 'JOB')!r}", p.returncode == 2 and "uid=" not in p.stdout and not n.ran(), f"{p.returncode} {p.stdout} {p.stderr}")


def unit(n: Node, t: Checks):
    """The unit: verified by systemd's own tool, its command line run as its account."""
    path = n.files / "gatehouse-job@.service"
    local = n.work / "local-bin"
    local.mkdir()
    os.link(n.site.sf, local / "sf")
    (local / "forge-launch").write_text(STAND_IN)
    (local / "forge-launch").chmod(0o755)
    shown = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /usr/local/bin && exec "$@"', str(local)]
    verify = [*shown, "systemd-analyze", "verify", "--man=no", str(path)]
    p = subprocess.run(verify, capture_output=True, text=True, timeout=60)
    ours = [line for line in p.stderr.splitlines() if "gatehouse-job" in line]
    t.check("systemd-analyze verify finds nothing wrong", p.returncode == 0 and not ours, p.stderr)
    wrong = n.work / "gatehouse-wrong@.service"
    wrong.write_text(path.read_text().replace("KillMode=mixed", "KillMood=mixed"))
    p = subprocess.run([*verify[:-1], str(wrong)], capture_output=True, text=True, timeout=60)
    t.check("and would find a mistake", "KillMood" in p.stderr, p.stderr)
    text = path.read_text()
    command = re.search(r"^ExecStart=(.*)$", text, re.M)[1].replace("/var/lib/jobs/%i", "$JOB").split()
    env = dict(pair.split("=", 1) for line in re.findall(r"^Environment=(.*)$", text, re.M) for pair in line.split())
    account = pwd.getpwnam(re.search(r"^User=(\w+)$", text, re.M)[1])
    own = n.work / "cache-unit"
    own.mkdir()
    os.chown(own, account.pw_uid, account.pw_gid)

    def start(job: Path) -> subprocess.Popen:
        settings = {**env, "GATEHOUSE_TRUST": str(n.site.trust), "GATEHOUSE_CACHE": str(own), "HOME": str(own), "GATEHOUSE_SERVER": n.site.url,
                    "GATEHOUSE_TOKEN": n.site.token, "LAUNCH_TRACE": str(n.site.traces / job.name), "PATH": "/usr/local/bin:/usr/bin:/bin", "UNIT_MARK": job.name}
        argv = [word.replace("$JOB", str(job)) for word in command]
        return subprocess.Popen([*shown, "setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", "--no-new-privs", *argv], env=settings, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")

    job = n.site.job("unit", owner=account.pw_uid)
    p = start(job)
    out = p.communicate(timeout=60)
    t.check("the unit's command runs the job", p.returncode == 0 and n.site.who(job) == ["plugin:alpha", "train"], f"{p.returncode} {out}")
    job = n.site.job("unit-stop", LONG, owner=account.pw_uid)
    p = start(job)
    wait_until(lambda: "train" in n.site.who(job), 30)
    end(p)
    t.check("SIGTERM to the main process ends the unit's job", p.returncode == 3 and wait_until(lambda: not processes("UNIT_MARK=unit-stop"), 20), f"{p.returncode} {p.communicate()}")
    job = n.site.job("unit-tampered", owner=account.pw_uid)
    tamper(job)
    p = start(job)
    out = p.communicate(timeout=60)
    t.check("a refusal is the unit's status", p.returncode == 7 and "[launch.digest.content]" in out[1] and not n.site.who(job), f"{p.returncode} {out}")


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--sf", required=True, type=Path)
    args = ap.parse_args()
    t = Checks("ssh")
    with Folder() as work:
        site = Site(args.sf.resolve(), work)
        node = None
        try:
            site.start()
            node = Node(site, free_port())
            node.start()
            for group in (over_ssh, dropped, forced, unit):
                t.run(group.__name__, group, node, t)
        finally:
            if node and node.server:
                end(node.server)
            site.stop()
        left = processes(str(work))
        t.check("nothing is left running", not left, left)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
