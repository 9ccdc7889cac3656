#!/usr/bin/env python3
"""A module of the standard library's name at the top of the job directory, which is no part of the job.

The current directory of training is the job directory, and tuneplane's runtime puts it in front of sys.path.
"""
from rig import EVIL, arguments, attack

NAME = "colorsys"

if __name__ == "__main__":
    args = arguments(__doc__)
    train = f'"$CASE_PY" -c "import {NAME}"\n' if args.dialect == "forge" else f"import {NAME}\n"
    attack(args, lambda rig: (rig.job / f"{NAME}.py").write_text(EVIL), train=train)
