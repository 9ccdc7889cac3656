#!/usr/bin/env python3
"""The whole job directory is renamed away and another put in its place while the plugin runs, before it imports its second module."""
import os
import shutil

from rig import EVIL, MODULE, WAIT, arguments, attack, indent, plugin

FILES = {MODULE: plugin(indent(WAIT + "import launch_part")), "launch_part.py": "X = 1\n"}


def copy(rig):
    rig.other = rig.tmp / "other"
    shutil.copytree(rig.job, rig.other)
    (rig.other / rig.d["plugins"] / "alpha/launch_part.py").write_text(EVIL)


def swap(rig, proc):
    if not rig.await_mark("waiting", proc):
        return False
    os.rename(rig.job, rig.tmp / "old")
    os.rename(rig.other, rig.job)
    rig.mark("go")
    return True


if __name__ == "__main__":
    attack(arguments(__doc__), copy, files=FILES, during=swap)
