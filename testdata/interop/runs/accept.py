#!/usr/bin/env python3
"""Tells a registry of launches and verifies what it keeps with tools that have never heard of it: the very commands of
docs/runs.md, run by a shell. Needs jq, openssl and cosign. Stdlib only."""
from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534
FAILED: list[str] = []
PASSED = 0


def check(what: str, ok: bool, found: object = ""):
    global PASSED
    if ok:
        PASSED += 1
    else:
        FAILED.append(what)
        print(f"FAIL {what}: {found}")


def documented(tool: str) -> str:
    """The block of docs/runs.md whose commands use a tool."""
    text = (ROOT / "docs/runs.md").read_text()
    blocks = ["\n".join(line[4:] for line in block.splitlines()) for block in re.findall(r"(?:^ {4}.*\n)+", text, re.M)]
    return next(block for block in blocks if re.search(rf"^{tool} ", block, re.M))


class Ground:
    """A job that a registry admitted, and a folder for each node that launches it."""

    def __init__(self, work: Path, sf: str, server: str, token: str, cosign: str):
        self.work, self.sf_path, self.server, self.token, self.cosign = work, sf, server, token, cosign
        self.env = {"PATH": os.environ["PATH"], "HOME": str(work), "GATEHOUSE_HOME": str(work / "home"), "GATEHOUSE_CACHE": str(work / "cache")}

    def sf(self, *args: str, want: int = 0, env: dict | None = None, stdin: str = "", user: int | None = None) -> str:
        done = subprocess.run([self.sf_path, *args], env={**self.env, **(env or {})}, input=stdin, capture_output=True, text=True, user=user, group=user, extra_groups=[] if user else None)
        if done.returncode != want:
            sys.exit(f"sf {' '.join(args)}: exit code {done.returncode}, expected {want}: {done.stderr}")
        return done.stdout + done.stderr if want else done.stdout

    def shell(self, script: str, folder: Path) -> subprocess.CompletedProcess:
        """Runs commands of the documentation where they find their files."""
        env = {**os.environ, "PATH": f"{Path(self.cosign).parent}:{os.environ['PATH']}", "HOME": str(self.work)}
        return subprocess.run(["sh", "-euc", script], cwd=folder, env=env, capture_output=True, text=True)

    def admit(self):
        self.sf("login", self.server, "--token", self.token)
        self.sf("admin", "account", "create", "alice")
        alice = self.sf("admin", "token", "create", "alice").strip()
        (self.work / "trust").write_text(self.sf("admin", "key", "show"))
        self.sf("login", self.server, "--token", alice)
        packs = ROOT / "testdata/packs"
        plugin = json.loads(self.sf("plugin", "publish", str(packs / "grad-clip"), "--json"))
        self.sf("plugin", "publish", str(packs / "tiny-sft"))
        recipe = json.loads(self.sf("check", "pack", str(packs / "tiny-sft"), "--json"))["value"]["document"]["digest"]
        (self.work / "job.json").write_text(json.dumps({
            "apiVersion": "forge/v2", "kind": "TrainingJob", "metadata": {"name": "one", "project": "demo"},
            "spec": {
                "recipe": {"name": "custom/tiny-sft", "version": "0.3.0", "digest": recipe}, "source": {"exp": "experiments/one"},
                "framework": {"kind": "custom", "version": "user-managed", "image": "registry.example.org/train@sha256:" + "1" * 64, "observability_url": "https://tracker.example.org/run"},
                "resources": {"pools": [{"name": "all", "series": "h200", "nodes": 1, "gpus_per_node": 2}]}, "hyperparams": {"learning_rate": 0.0001, "epochs": 1},
                "plugins": [{"id": "alice/grad-clip", "version": "1.2.0", "digest": plugin["content"]}]},
            "provenance": {"core_version": "0.3.56"}}))
        job = self.work / "job"
        self.sf("submit", "--jobspec", str(self.work / "job.json"), "--save", str(job))
        self.sf("plugin", "pull", "alice/grad-clip@1.2.0", str(job / "forge_plugins/grad-clip"))
        self.sf("plugin", "pull", "alice/tiny-sft", str(job / "forge_recipes/alice/tiny-sft"))
        (job / "experiments/one").mkdir(parents=True)
        (job / "experiments/one/note").write_text("a note\n")
        self.sf("login", self.server, "--token", self.token)

    def node(self, name: str, user: int | None = None) -> dict:
        """The environment of a node that has joined."""
        folder = self.work / name
        folder.mkdir(mode=0o700)
        if user:
            os.chown(folder, user, user)
        env = {"GATEHOUSE_NODE": str(folder / "state"), "GATEHOUSE_HOME": str(folder / "home"), "GATEHOUSE_CACHE": str(folder / "cache"), "HOME": str(folder)}
        secret = json.loads(self.sf("admin", "node", "create", name, "--json"))["token"]
        self.sf("node", "join", self.server, env=env, stdin=secret + "\n", user=user)
        return env

    def launch(self, env: dict, *command: str, want: int = 0, user: int | None = None) -> dict:
        """Launches the job and gives what the registry keeps of the run, as seen by an administrator."""
        record = Path(env["HOME"]) / "record.json"
        self.sf("launch", "--jobspec", str(self.work / "job/.starforge/jobspec.json"), "--trust", str(self.work / "trust"), "--allow", "private-copy",
                "--record", str(record), "--", *command, env=env, want=want, user=user)
        return json.loads(self.sf("runs", "show", json.loads(record.read_text())["run"], "--json"))

    def manifest(self, run: dict) -> bytes:
        """The OCI manifest of the plugin, as the registry serves it."""
        digest = run["packs"][0]["manifest"]
        grant = base64.b64encode(f"admin:{self.token}".encode()).decode()
        request = urllib.request.Request(f"{self.server}/v2/alice/grad-clip/manifests/{digest}", headers={"Authorization": f"Basic {grant}", "Accept": "application/vnd.oci.image.manifest.v1+json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()


def statement(envelope: bytes) -> dict:
    return json.loads(base64.b64decode(json.loads(envelope)["payload"]))


def verified(ground: Ground, name: str, env: dict, run: dict, user: int | None = None):
    """Verifies the last statement of a run by the documented commands, and that they refuse another one."""
    folder = ground.work / f"{name}-verify"
    folder.mkdir()
    envelope = base64.b64decode(run["envelopes"][-1]["envelope"])
    (folder / "envelope.json").write_bytes(envelope)
    (folder / "node.pub").write_text(ground.sf("node", "show", "--public-key", env=env, user=user))
    shutil.copy(ground.work / "job/.starforge/jobspec.json", folder / "spec")
    (folder / "manifest").write_bytes(ground.manifest(run))
    (folder / "other").write_text("something else")
    for tool, files in ("cosign", {"spec": True, "manifest": True, "other": False}), ("openssl", {"": True}):
        for file, good in files.items():
            if file:
                shutil.copy(folder / file, folder / "jobspec.json")
            done = ground.shell(documented(tool), folder)
            check(f"{name}: {tool} on {file or 'the envelope'}", (done.returncode == 0) == good, done.stderr)
    shutil.copy(folder / "spec", folder / "jobspec.json")
    forged = json.loads(envelope)
    forged["payload"] = base64.b64encode(base64.b64decode(forged["payload"]).replace(b'"exitCode":', b'"exitCode":1')).decode()
    (folder / "envelope.json").write_text(json.dumps(forged))
    for tool in "cosign", "openssl":
        check(f"{name}: {tool} on a forged statement", ground.shell(documented(tool), folder).returncode != 0)


def main():
    parser = argparse.ArgumentParser()
    for flag in "--sf", "--server", "--token", "--cosign":
        parser.add_argument(flag, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gatehouse-runs-") as work:
        os.chmod(work, 0o755)
        ground = Ground(Path(work), os.path.abspath(args.sf), args.server, args.token, os.path.abspath(args.cosign))
        ground.admit()
        root = os.geteuid() == 0
        env = ground.node("gpu-1")
        run = ground.launch(env, "sh", "-c", "true; exit 5", want=5)
        said = statement(base64.b64decode(run["envelopes"][-1]["envelope"]))
        check("the run ended", run["state"] == "ended" and run["exit_code"] == 5 and run["attested"] == root, run)
        check("the statement", said["_type"] == "https://in-toto.io/Statement/v1" and said["predicate"]["node"]["selfAsserted"] == (not root), said)
        check("who used it", [r["id"] for r in json.loads(ground.sf("runs", "ls", "--plugin", "alice/grad-clip@1.2.0", "--json"))["runs"]] == [run["id"]])
        verified(ground, "gpu-1", env, run)
        if root:
            env2 = ground.node("gpu-2", NOBODY)
            self_asserted = ground.launch(env2, "true", user=NOBODY)
            said = statement(base64.b64decode(self_asserted["envelopes"][-1]["envelope"]))
            check("an ordinary user's statement", said["predicate"]["node"]["selfAsserted"] and not self_asserted["attested"], self_asserted)
            verified(ground, "gpu-2", env2, self_asserted, NOBODY)
        ground.sf("plugin", "revoke", "alice/grad-clip@1.2.0", "--reason", "it sends the weights away", "--yes")
        refused = ground.launch(env, "echo", "started", want=3)
        said = statement(base64.b64decode(refused["envelopes"][-1]["envelope"]))
        check("a revoked version", refused["state"] == "refused" and said["predicate"]["decision"]["violations"][0]["rule"] == "launch.revoked", said)
    print(f"runs: {PASSED} passed, {len(FAILED)} failed, 0 skipped")
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
