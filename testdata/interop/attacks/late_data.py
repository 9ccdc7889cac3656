#!/usr/bin/env python3
"""A file that is no module, and is read long after every check, holds what the job then runs.

forge: a data file of the plugin. tuneplane: the template of the method pack, which no digest of the spec covers; training reads it.
"""
from rig import EVIL, MODULE, WAIT, arguments, attack, indent, plugin

READ = "import pathlib\nexec(compile((pathlib.Path(__file__).parent / 'rules.txt').read_text(), 'rules.txt', 'exec'), globals())\n"
TEMPLATE = "tuneplane_recipes/lab/hook/template/config.yaml"
TRAIN = WAIT + f"exec(compile(open({TEMPLATE!r}).read().replace('seed: 1', ''), 'config.yaml', 'exec'), {{}})\n"


def change(rig, proc):
    if not rig.await_mark("waiting", proc):
        return False
    (rig.dir / "rules.txt" if rig.dialect == "forge" else rig.job / TEMPLATE).write_text(EVIL)
    rig.mark("go")
    return True


if __name__ == "__main__":
    args = arguments(__doc__)
    if args.dialect == "forge":
        attack(args, files={MODULE: plugin(indent(WAIT + READ)), "rules.txt": "X = 1\n"}, during=change)
    attack(args, train=TRAIN, during=change)
