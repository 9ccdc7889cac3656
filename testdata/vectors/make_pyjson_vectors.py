#!/usr/bin/env python3
"""Writes pyjson-vectors.json: what Python's json makes of small texts, and where it stops.

    python3 make_pyjson_vectors.py > pyjson-vectors.json

The texts are our own: those that are listed below, and some that a generator with a fixed seed puts together from
pieces. README-pyyaml.md explains the format of values. Made with Python 3.11.
"""
import base64
import json
import random
import sys

CURATED = [
    "", " ", "null", " null ", "true", "false", "nul", "True", "None", "\n\t\r 1", "\x0b1", "\xa01", "1 2", "[] []", "{}", "{ }", "[]", "[ ]", "[1,2]", "[1 , 2]", "[1,]", "[,1]", "[,]", "[1 2]", "[1", "[", "]", "{", "}", "[}", '{"a":1}', '{"a" : 1 }',
    '{"a":1,}', '{,}', '{"a"}', '{"a":}', '{"a",1}', "{a:1}", "{'a':1}", '{1:2}', '{"a":1 "b":2}', '{"a":1,"b":2,"a":3}', '{"a":{"a":1},"b":[{"a":2}]}', '{"a":1}x', "// c\n1", "/* c */1", "1 // c", "[1,/**/2]",
    "0", "-0", "00", "01", "-01", "1.", ".5", "1.5", "-1.5", "+1", "1e5", "1E5", "1e+5", "1e-5", "1e", "1e+", "1.e5", "1.0e5", "0.0", "-0.0", "0e0", "1e400", "-1e400", "1e-400", "5e-324", "123456789012345678901234567890", "9007199254740993", "9007199254740993.0", "0x10", "1_000", "1,000", "--1", "-", "- 1", "1a",
    "NaN", "-NaN", "nan", "Infinity", "-Infinity", "+Infinity", "infinity", "Inf", "[NaN,Infinity]", '{"a":NaN}', "NaNx", "I", "N",
    '""', '"a"', '"a', "'a'", '"\\"', '"\\""', '"\\\\"', '"\\/"', '"\\b\\f\\n\\r\\t"', '"\\x41"', '"\\u0041"', '"\\u00e9"', '"\\u12"', '"\\u12G4"', '"\\U00000041"', '"\\ud83d\\ude80"', '"\\ud83d"', '"\\ude80"', '"\\ude80\\ud83d"', '"\\ud83d\\ud83d\\ude80"', '"\\ud83d\\u0041"', '"\\ud83dx"', '"\\ud83d\\n"', '"\\u0000"', '"\\u001f"',
    '"a\nb"', '"a\tb"', '"\x00"', '"\x1f"', '"\x7f"', '"\u2028"', '"\u0085"', '"é"', '"\U0001f680"', '"\ufeff"', "\ufeff1", '"\\', '"\\u', '"\\ud83d\\u', '"\\ud83d\\ude8"', "\x00", "1\x00", '{"":1}', '{"a":{"b":{"c":[[[]]]}}}', '[[[[[[]]]]]]', "[" * 40 + "]" * 40, "9" * 4300, "9" * 4301, "-" + "9" * 4300, "1." + "0" * 5000, "[" * 60 + "]" * 59,
]
PIECES = ["{", "}", "[", "]", ",", ":", '"a"', '"b"', "1", "-", "0", ".5", "e3", "true", "null", " ", "\n", "\\", '"', "NaN", "-Infinity", '"\\ud83d"', '"\\u0041"', "1.0", '"a":', ', "c": ']


def encode(value):
    if value is None:
        return ["none"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", repr(value)]
    if isinstance(value, str):
        if any(0xD800 <= ord(c) <= 0xDFFF for c in value):
            return ["wtf8", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()]
        return ["str", value]
    if isinstance(value, list):
        return ["list", [encode(v) for v in value]]
    return ["map", [[encode(k), encode(v)] for k, v in value.items()]]


def expect(text):
    try:
        return {"ok": encode(json.loads(text))}
    except json.JSONDecodeError as exc:
        return {"error": {"type": "JSONDecodeError", "line": exc.lineno, "column": exc.colno}}
    except ValueError as exc:
        return {"error": {"type": type(exc).__name__}}


def main():
    rng = random.Random(20260102)
    texts = list(CURATED)
    for _ in range(500):
        texts.append("".join(rng.choice(PIECES) for _ in range(rng.randint(2, 9))))
    for _ in range(300):
        good = json.dumps(some_value(rng, 4), ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1]))
        texts.append(good)
        at = rng.randint(0, len(good))
        texts.append(good[:at] + rng.choice(PIECES) + good[at + rng.randint(0, 2):])
    lines = []
    for text in dict.fromkeys(texts):
        lines.append(json.dumps({"id": "pyj-%04d" % (len(lines) + 1), "json": text, "expect": expect(text)}, separators=(",", ":")))
    sys.stdout.write('{"format":"gatehouse-vectors/1","subject":"JSON text to Python values","vectors":[\n' + ",\n".join(lines) + "\n]}\n")


def some_value(rng, depth):
    roll = rng.random()
    if depth and roll < 0.3:
        return [some_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if depth and roll < 0.6:
        return {rng.choice("abcdé") * rng.randint(0, 2): some_value(rng, depth - 1) for _ in range(rng.randint(0, 3))}
    return rng.choice([None, True, rng.randint(-10**18, 10**18), rng.random() * 10 ** rng.randint(-20, 20), "t\n\u00e9\U0001f680\\\"", "", "plain text"])


main()
