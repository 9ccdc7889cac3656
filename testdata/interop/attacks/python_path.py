#!/usr/bin/env python3
"""PYTHONPATH leads every interpreter of the job to a sitecustomize.py."""
from rig import EVIL, arguments, attack


def plant(rig):
    (rig.tmp / "lib").mkdir()
    (rig.tmp / "lib/sitecustomize.py").write_text(EVIL)


if __name__ == "__main__":
    attack(arguments(__doc__), plant, env=lambda rig: {"PYTHONPATH": str(rig.tmp / "lib")})
