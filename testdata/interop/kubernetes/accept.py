#!/usr/bin/env python3
"""Checks the manifests of docs/launch/kubernetes.md against the API's types and runs their containers. See ../integrations/README.md. Needs root and podman."""
from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integrations"))
from integration import STAND_IN, Checks, Folder, Site, processes, tamper, write_page_files  # noqa: E402

FIRST, COUNT = 200000, 65536  # where a pod's own user namespace lies on the node
IMAGE = "localhost/gatehouse-train:test"

# What the default profile of container runtimes (RuntimeDefault) refuses to who has no CAP_SYS_ADMIN, as far as an agent could
# want it. podman's own default profile is laxer, so it stands for no cluster.
ADMIN_ONLY = ["fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount", "open_tree", "setdomainname",
              "sethostname", "setns", "umount", "umount2", "unshare"]
NAMESPACE_FLAGS = 0x7E020000  # of clone: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
RUNTIME_DEFAULT = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [
        {"names": ADMIN_ONLY, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
        *({"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1,
           "args": [{"index": 0, "value": 1 << bit, "valueTwo": 1 << bit, "op": "SCMP_CMP_MASKED_EQ"}]}
          for bit in range(32) if NAMESPACE_FLAGS >> bit & 1),
    ],
}

# The fields of a container, a pod and a security context that the test gives to podman, or that say nothing about running
# one container. Any other is a mistake of the page or of the test.
CONTAINER = {"name", "image", "command", "env", "securityContext", "volumeMounts", "terminationMessagePolicy", "resources"}
POD = {"restartPolicy", "hostUsers", "automountServiceAccountToken", "terminationGracePeriodSeconds", "securityContext", "initContainers", "containers", "volumes"}
CONTEXT = {"runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "allowPrivilegeEscalation", "procMount", "capabilities", "seccompProfile", "appArmorProfile"}


def only(what: dict, known: set[str]) -> dict:
    if unknown := set(what) - known:
        raise RuntimeError(f"the test does not know {sorted(unknown)}")
    return what


def image(work: Path, sf: Path) -> Path:
    """A root file system of links into the machine's /usr, with sf and the stand-in launcher in /usr/local/bin."""
    path = work / "image.tar"
    with tarfile.open(path, "w") as tar:
        def add(name: str, content: bytes = b"", mode=0o644, kind=tarfile.REGTYPE, link=""):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.type, member.linkname = len(content), mode, kind, link
            tar.addfile(member, io.BytesIO(content))
        for folder in ("etc", "dev", "proc", "sys", "var", "run", "run/gatehouse", "usr", "usr/local", "usr/local/bin", *usr_folders()):
            add(folder, mode=0o755, kind=tarfile.DIRTYPE)
        add("tmp", mode=0o1777, kind=tarfile.DIRTYPE)
        for name in ("bin", "sbin", "lib", "lib64"):
            add(name, kind=tarfile.SYMTYPE, link="usr/" + name)
        add("etc/passwd", b"root:x:0:0::/:/bin/sh\ntrainer:x:1000:1000::/tmp:/bin/sh\n")
        add("etc/group", b"root:x:0:\ntrainer:x:1000:\n")
        add("usr/local/bin/sf", sf.read_bytes(), 0o755)
        add("usr/local/bin/forge-launch", STAND_IN.encode(), 0o755)
    return path


def usr_folders() -> list[str]:
    return [f"usr/{name}" for name in ("bin", "sbin", "lib", "lib64", "libexec", "share") if Path("/usr", name).is_dir() and not Path("/usr", name).is_symlink()]


class Node:
    """Runs containers of a pod as a node would, with podman."""

    def __init__(self, site: Site, objects: list[dict]):
        self.site, self.objects = site, objects
        (site.work / "runtime-default.json").write_text(json.dumps(RUNTIME_DEFAULT))
        self.podman("import", "-q", image(site.work, site.sf), IMAGE)

    def podman(self, *argv):
        """podman with its storage in the test's folder. It wants one cgroup hierarchy, so a second one is out of its sight."""
        store = self.site.work / "podman"
        p = subprocess.run(["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"', "sh", "podman",
                            "--root", store / "root", "--runroot", store / "run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs",
                            "--events-backend", "none", *map(str, argv)], capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)
        if p.returncode == 125 or "crun:" in p.stderr:
            raise RuntimeError(f"podman {argv[0]}: {p.stderr[-500:]}")
        return p

    def object(self, kind: str, name: str) -> dict:
        return next(o for o in self.objects if o["kind"] == kind and o["metadata"]["name"] == name)

    def pod(self, job: str) -> dict:
        return only(self.object("Job", job)["spec"]["template"]["spec"], POD)

    def context(self, pod: dict, container: dict) -> dict:
        return only({**pod.get("securityContext", {}), **container.get("securityContext", {})}, CONTEXT)

    def uid(self, pod: dict, container: dict) -> int:
        """Who the container's account is on the node."""
        return self.context(pod, container).get("runAsUser", 0) + (FIRST if pod.get("hostUsers") is False else 0)

    def security(self, pod: dict, container: dict) -> list[str]:
        context = self.context(pod, container)
        caps = context["capabilities"]
        flags = [f"--cap-drop={c}" for c in caps.get("drop", [])] + [f"--cap-add={c}" for c in caps.get("add", [])]
        flags.append(f"--user={context['runAsUser']}:{context['runAsGroup']}")
        if context.get("runAsNonRoot") and not context["runAsUser"]:
            raise RuntimeError("a kubelet would refuse this container")
        if pod.get("hostUsers") is False:
            flags += [f"--uidmap=0:{FIRST}:{COUNT}", f"--gidmap=0:{FIRST}:{COUNT}"]
        if not context["allowPrivilegeEscalation"]:
            flags.append("--security-opt=no-new-privileges")
        if context.get("procMount") == "Unmasked":
            if pod.get("hostUsers") is not False:
                raise RuntimeError("the API server would refuse procMount: Unmasked with hostUsers: true")
            flags.append("--security-opt=unmask=ALL")
        confined = context["seccompProfile"]["type"] == "RuntimeDefault" and "SYS_ADMIN" not in caps.get("add", [])
        flags.append(f"--security-opt=seccomp={self.site.work / 'runtime-default.json' if confined else 'unconfined'}")
        return flags

    def volume(self, volume: dict, owner: int) -> Path:
        """What lies behind a volume on this node."""
        name = volume["name"]
        if "configMap" in volume:
            folder = self.site.work / f"configmap-{volume['configMap']['name']}"
            folder.mkdir(exist_ok=True)
            for key in self.object("ConfigMap", volume["configMap"]["name"])["data"]:
                shutil.copy(self.site.trust, folder / key)
            return folder
        if "persistentVolumeClaim" in volume:
            self.object("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"])
        if name == "jobs":
            return self.site.jobs
        folder = self.site.work / f"volume-{name}-{owner}"
        if not folder.exists():
            folder.mkdir()
            os.chown(folder, owner, owner)
        return folder

    def environment(self, container: dict, job: Path) -> dict[str, str]:
        env = {"LAUNCH_TRACE": f"/traces/{job.name}"}
        for variable in container.get("env", []):
            if "valueFrom" in variable:
                ref = variable["valueFrom"]["secretKeyRef"]
                assert ref["key"] in self.object("Secret", ref["name"])["stringData"]
                env[variable["name"]] = self.site.token
            else:
                env[variable["name"]] = variable["value"].replace("https://registry.example.org", self.site.url)
        return env

    def run(self, job: Path, pod: dict, container: dict, command: list[str] | None = None):
        """Runs one container to its end. Only one that names the registry has a network."""
        only(container, CONTAINER)
        env = self.environment(container, job)
        volumes = {v["name"]: v for v in pod["volumes"]}
        owner = self.uid(pod, container)
        mounts = [f"--volume=/{f}:/{f}:ro" for f in usr_folders()] + [f"--volume={self.site.traces}:/traces"]
        for mount in container["volumeMounts"]:
            mounts.append(f"--volume={self.volume(volumes[mount['name']], owner)}:{mount['mountPath']}" + (":ro" if mount.get("readOnly") else ""))
        # podman's own limits may be more than the machine lets it set
        return self.podman("run", "--rm", "--cgroups=disabled", "--ulimit=nofile=1024:1024", "--ulimit=nproc=16384:16384", "--workdir=/",
                           f"--network={'host' if 'GATEHOUSE_SERVER' in env else 'none'}", *self.security(pod, container), *mounts,
                           *(f"--env={k}={v}" for k, v in env.items()), "--entrypoint=", IMAGE, *(command or container["command"]))

    def verified(self, job: Path, pod: dict, container: dict, *flags) -> dict:
        """The record of gate 3 in a container: which protection it has."""
        p = self.run(job, pod, container, ["/usr/local/bin/sf", "--json", "launch", "--verify-only", *flags, "--jobspec", f"/jobs/{job.name}/.starforge/jobspec.json"])
        return {"exit": p.returncode, "said": p.stdout + p.stderr, **(json.loads(p.stdout) if p.stdout.startswith("{") else {})}


    def probe(self, job: Path, pod: dict, container: dict) -> dict:
        """What sf launch --probe says in a container, for programs and for people."""
        for_people = self.run(job, pod, container, ["/usr/local/bin/sf", "launch", "--probe"])
        p = self.run(job, pod, container, ["/usr/local/bin/sf", "--json", "launch", "--probe"])
        return {"exit": p.returncode, "said": for_people.stdout + p.stderr, **json.loads(p.stdout)}


def tracking(probe: dict) -> str:
    """By what the processes of a job in the best mode are known."""
    return next(m["tracking"] for m in probe["modes"] if m["mode"] == probe["mode"])


def decode(checker: Path, *files: Path):
    return subprocess.run([str(checker), *map(str, files)], capture_output=True, text=True, timeout=60)


def strict(checker: Path, files: Path, t: Checks) -> list[dict]:
    """Every manifest decodes into the API's types, and none would with a mistake in it."""
    pages = sorted(files.glob("*.yaml"))
    p = decode(checker, *pages)
    t.check("the manifests are what the API takes", p.returncode == 0, p.stderr)
    wrong = files / "wrong"
    for name, was, then in (
        ("an unknown field of a pod", "hostUsers:", "hostUser:"), ("an unknown field of a security context", "procMount:", "procMounts:"),
        ("a field twice", "restartPolicy: Never", "restartPolicy: Never\n      restartPolicy: Never"), ("a value of another type", "backoffLimit: 3", 'backoffLimit: "three"'),
    ):
        text = (files / "job-root.yaml").read_text()
        assert was in text
        wrong.write_text(text.replace(was, then, 1))
        t.check(f"{name} is found", decode(checker, wrong).returncode == 1)
    return json.loads(p.stdout)


def root_mode(n: Node, t: Checks):
    pod = n.pod("train-run-0001")
    warm, train = pod["initContainers"][0], pod["containers"][0]
    job = n.site.job("run-0001", "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status\n", owner=n.uid(pod, train))
    p = n.run(job, pod, train)
    t.check("without a warm cache the training container gets nothing", p.returncode == 4 and not n.site.who(job), f"{p.returncode} {p.stderr}")
    p = n.run(job, pod, warm)
    t.check("the warming container fetches and verifies", p.returncode == 0 and "verified /jobs/run-0001" in p.stdout, f"{p.returncode} {p.stdout} {p.stderr}")
    p = n.run(job, pod, train)
    t.check("the training runs without a network or a token", p.returncode == 0 and n.site.who(job) == ["plugin:alpha", "train"], f"{p.returncode} {p.stderr}")
    t.check("from the private root", n.site.trace(job)[0]["file"].startswith("/run/gatehouse/"), n.site.trace(job))
    t.check("the training has no capability and gains none", re.search(r"CapEff:\s+0{16}$", p.stdout, re.M) and re.search(r"NoNewPrivs:\s+1$", p.stdout, re.M), p.stdout)
    record = n.verified(job, pod, train)
    t.check("the protection is root mode", record.get("mode") == "root", record["said"])
    said = n.probe(job, pod, train)
    t.check("sf launch --probe says root mode, with a PID namespace", said["exit"] == 0 and said["mode"] == "root" and tracking(said) == "pid-namespace", said)
    tamper(job)
    for container in (warm, train):
        p = n.run(job, pod, container)
        t.check(f"a tampered plugin ends container {container['name']} with 7 and the rule", p.returncode == 7 and "[launch.digest.content]" in p.stderr, f"{p.returncode} {p.stderr}")
    t.check("a tampered plugin runs nothing", n.site.who(job) == ["plugin:alpha", "train"], n.site.who(job))
    policy = {(r["onExitCodes"]["containerName"], r["action"], tuple(r["onExitCodes"]["values"])) for r in n.object("Job", "train-run-0001")["spec"]["podFailurePolicy"]["rules"]}
    t.check("the job is not tried again after a refusal", policy == {("warm", "FailJob", (3, 7)), ("train", "FailJob", (3, 7))}, policy)
    weaker = {**pod, "containers": [], "initContainers": []}
    bare = {**train, "securityContext": {**train["securityContext"], "capabilities": {"drop": ["ALL"]}}}
    fresh = n.site.job("bare", owner=n.uid(pod, train))
    record = n.verified(fresh, weaker, bare)
    said = n.probe(fresh, weaker, bare)
    t.check("and --probe says why not", said.get("mode", "") in ("", "private-copy") and not any(m["available"] for m in said["modes"] if m["mode"] in ("root", "user")), said)
    t.check("root of the pod without CAP_SYS_ADMIN is refused", record["exit"] == 3 and "launch.protection" in record["said"], record["said"])


def user_mode(n: Node, t: Checks):
    pod = n.pod("train-run-0002")
    train = pod["containers"][0]
    job = n.site.job("run-0002", owner=n.uid(pod, train))
    p = n.run(job, pod, train)
    t.check("an ordinary account without capabilities launches", p.returncode == 0 and n.site.who(job) == ["plugin:alpha", "train"], f"{p.returncode} {p.stderr}")
    record = n.verified(job, pod, train)
    t.check("the protection is user mode", record.get("mode") == "user", record["said"])
    said = n.probe(job, pod, train)
    t.check("sf launch --probe says user mode", said["exit"] == 0 and said["mode"] == "user", said)
    t.check("a masked /proc means no PID namespace", tracking(said) in ("cgroup", "descendants"), said)
    unmasked = {**pod, "hostUsers": False}
    mapped = n.site.job("run-0002-unmasked", owner=FIRST + 1000)
    said = n.probe(mapped, unmasked, {**train, "securityContext": {**train["securityContext"], "procMount": "Unmasked"}})
    t.check("an unmasked /proc gives one", said["mode"] == "user" and tracking(said) == "pid-namespace", said)
    tamper(job)
    p = n.run(job, pod, train)
    t.check("a tampered plugin is refused in user mode", p.returncode == 7 and "[launch.digest.content]" in p.stderr, f"{p.returncode} {p.stderr}")


def restricted(n: Node, t: Checks):
    pod = n.pod("train-run-0003")
    train = pod["containers"][0]
    job = n.site.job("run-0003", owner=n.uid(pod, train))
    n.volume({"name": "cache"}, n.uid(pod, train))  # warm since user_mode: the same account's
    p = n.run(job, pod, train)
    t.check("the restricted level is refused", p.returncode == 3 and "[launch.protection]" in p.stderr and not n.site.who(job), f"{p.returncode} {p.stderr}")
    said = n.probe(job, pod, train)
    t.check("sf launch --probe says that there is none, and why", not any(m["available"] for m in said["modes"] if m["mode"] == "user") and "not permitted" in said["said"], said)
    command = list(train["command"])
    command[2:2] = ["--allow", "private-copy"]
    p = n.run(job, pod, train, command)
    t.check("and launches from a private copy when that is allowed", p.returncode == 0 and n.site.who(job) == ["plugin:alpha", "train"] and "private copy" in p.stderr, f"{p.returncode} {p.stderr}")


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--sf", required=True, type=Path)
    ap.add_argument("--go", default="go")
    args = ap.parse_args()
    t = Checks("kubernetes")
    with Folder() as work:
        site = Site(args.sf.resolve(), work)
        files = write_page_files("kubernetes.md", work / "page")
        checker = work / "checker"
        subprocess.run([args.go, "build", "-C", str(HERE), "-o", str(checker), "."], check=True)
        try:
            objects = strict(checker, files, t)
            site.start()
            node = Node(site, objects)
            for group in (root_mode, user_mode, restricted):
                t.run(group.__name__, group, node, t)
        finally:
            site.stop()
        left = processes(str(work))
        t.check("nothing is left running", not left, left)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
