"""A scheduler for the attacks: an ordinary user hands it a command line, and it runs the node's agent as root for that user.

Only so do attacks meet what they meet on a node, where the attacker has the account of the job and the agent has root.
As a program, `asroot.py SOCKET COMMAND [ARG...]` asks for a command and has its exit code; its files are this process's own.
"""
from __future__ import annotations

import array
import json
import os
import socket
import struct
import subprocess
import sys
import threading


class Scheduler(threading.Thread):
    """Runs allowed commands for whoever connects, each until it ends or its caller is gone."""

    def __init__(self, path, allowed: set[str], more: dict[str, str]):
        super().__init__(daemon=True)
        self.allowed, self.more = allowed, more
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind(str(path))
        os.chmod(path, 0o777)
        self.server.listen(64)

    def run(self):
        while True:
            caller, _ = self.server.accept()
            threading.Thread(target=self.serve, args=(caller,), daemon=True).start()

    def serve(self, caller: socket.socket):
        with caller:
            head, control, _, _ = caller.recvmsg(4, socket.CMSG_SPACE(3 * 4))
            files = array.array("i")
            for _, _, data in control:
                files.frombytes(data)
            try:
                size, text = struct.unpack("I", head)[0], b""
                while len(text) < size and (more := caller.recv(size - len(text))):
                    text += more
                ask = json.loads(text)
                if ask["argv"][0] not in self.allowed:
                    raise PermissionError(ask["argv"][0])
                p = subprocess.Popen(ask["argv"], cwd=ask["cwd"], env=ask["env"] | self.more, start_new_session=True,
                                     **dict(zip(("stdin", "stdout", "stderr"), files)))
            finally:
                for file in files:
                    os.close(file)
            threading.Thread(target=self.watch, args=(caller, p), daemon=True).start()
            caller.sendall(struct.pack("i", p.wait()))

    @staticmethod
    def watch(caller, p):
        """A caller that goes away takes its command along."""
        try:
            gone = not caller.recv(1)
        except OSError:
            gone = False  # answered
        if gone and p.poll() is None:
            p.terminate()


def ask(path: str, argv: list[str]) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(path)
        text = json.dumps({"argv": argv, "cwd": os.getcwd(), "env": dict(os.environ)}).encode()
        s.sendmsg([struct.pack("I", len(text))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
        s.sendall(text)
        code = struct.unpack("i", s.recv(4, socket.MSG_WAITALL))[0]
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
