"""The entry point of {{.Name}}: a transform that runs inside a job."""

import json
from pathlib import Path


def run(inputs, config=None, output="."):
    """Reads the inputs, {name: path}, and writes below output. Returns the files written and the number of records."""
    records, target = 0, Path(output) / "records.jsonl"
    with target.open("w", encoding="utf-8") as out:
        for name in sorted(inputs):
            for line in Path(inputs[name]).read_text(encoding="utf-8").splitlines():
                if line.strip():
                    out.write(json.dumps({"source": name, "text": line}) + "\n")
                    records += 1
    return {"files": [target.name], "records": records}
