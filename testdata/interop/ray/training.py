"""The training that the test runs under Ray: the driver and an actor on each node say which plugin they import, and from where."""
import json
import os
import sys

import ray


def load():
    root = os.environ["FORGE_WORK_DIR"]
    sys.path.insert(0, os.path.join(root, "forge_plugins", "alpha"))
    import alpha_patch

    try:
        with open(os.path.join(root, "forge_plugins", "alpha", "alpha_patch.py"), "a"):
            writable = True
    except OSError:
        writable = False
    with open(alpha_patch.__file__) as source:
        return {"file": alpha_patch.__file__, "source": source.read(), "writable": writable, "root": root}


@ray.remote(num_cpus=1)
class Actor:
    def load(self):
        return load() | {"who": "actor", "node": ray.get_runtime_context().get_node_id()}


ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
actors = [Actor.options(scheduling_strategy="SPREAD").remote() for _ in range(int(os.environ["TRAINING_ACTORS"]))]
seen = [load() | {"who": "driver", "node": ""}, *ray.get([actor.load.remote() for actor in actors])]
with open(os.environ["TRAINING_SEEN"], "w") as out:
    json.dump(seen, out)
hold = os.environ.get("TRAINING_HOLD")
if hold:
    import time

    open(hold, "w").close()
    time.sleep(600)
