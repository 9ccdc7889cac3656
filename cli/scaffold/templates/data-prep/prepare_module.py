"""Prepares the data set of {{.Name}}."""

import json
import sys
from pathlib import Path


def main(arguments):
    """Runs on the user's machine, in the project's folder; what stands after the name on the command line is passed on."""
    target = Path(arguments[0] if arguments else "datasets/{{.Name}}/train.jsonl")
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"prompt": "2 + 2 =", "completion": "4"}]
    target.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} rows in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
