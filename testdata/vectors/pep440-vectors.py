"""Writes pep440-vectors.json: what Python's packaging answers about versions and specifiers.

Run with the packaging release that the vectors shall follow:

    python3 -m venv venv && venv/bin/pip install packaging==26.4
    venv/bin/python pep440-vectors.py > pep440-vectors.json

Shape of the result:
  versions    [text, normal form or null where Version() refuses], in one list
  order       for each readable version in the order above, one character for each readable version: "<", "=" or ">"
  prerelease  one character for each readable version: "1" when is_prerelease
  specifiers  text -> null where SpecifierSet() refuses, else {"any", "final"}: one character for each readable
              version, "1" when SpecifierSet(text).contains(version, prereleases=True / False); "default" stands
              beside them only where prereleases=None answers otherwise than True
"""

import itertools
import json
import random
import sys

import packaging
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

rng = random.Random(440)

SPELLED = """
0 1 1.0 1.0.0 1.0.0.0 v1.0 V1.0 1! 1!2.0 0!1.0 1.0.1 1.1 1.10 01.2.3 1.2.3 1.2 1.02 2 2.0 2.1 2.2 2.10 3.0 0.0.39 0.0.4 4.1 4.1.0
1.0a 1.0a0 1.0a1 1.0.a1 1.0-a1 1.0_a_1 1.0alpha1 1.0ALPHA.1 1.0b2 1.0beta2 1.0-BETA-2 1.0c1 1.0rc1 1.0pre1 1.0preview1 1.0RC.1
1.0a1.dev1 1.0a1.post1 1.0a1.post1.dev2 1.0rc1.post2 1.0.post 1.0.post0 1.0.post1 1.0-1 1.0-01 1.0.rev1 1.0.r1 1.0r1 1.0-r-1 1.0post1
1.0.post1.dev1 1.0.dev 1.0.dev0 1.0.dev1 1.0dev1 1.0-dev-1 1.0.DEV3 1.0.dev456 2.0.dev0 2.0a0 2.0rc0 2.1.dev1 1.1.dev1 1.2rc1 2.2rc1
1.0+a 1.0+abc.7 1.0+abc-7 1.0+abc_07 1.0+7 1.0+07 1.0+5.10 1.0+5.9 1.0+ABC 1.0+ubuntu-1 1.0+a.1 1.0+1.a 1.0a1+local 1.0.post1+x 1.0.dev1+x
1.2.3+build.1 1.2.3+build.2 1.2.3-rc.1 1.2.3-RC.1 1.2.3-01 2026.01.02 99999999999999999999.0.0 1.0.99999999999999999999 1.0a99999999999999999999
0.1 0.3.51 0.3.56 0.4.0 0.9.dev1 1.0a1- 1.0a- 1.0.post- 1.0.dev- 1.0a1-1 1.0a-.post1 1.0a--1 1.0a-post-1-dev-1 0.dev0 0.dev1 0a0
""".split()

REFUSED = [
    "", " ", "x", "latest", "1.x", "^1.2", "1.2.3-", "1.2.3_build.1", "1..2", ".1", "1.", "..", "1.0+", "1.0+-a", "1.0+a-", "1.0+a..b", "1.0+a+b",
    "1.0-a-b", "1.0 a1", "1. 0", "-1", "+1", "1-", "1.0--1", "1.0a1b2", "1.0.post1.post2", "1.0.dev1.dev2", "1.0.dev1.post1", "1.0.dev1a1", "1.0-1-1",
    "1.0alph", "1.0e5", "1.0.*", "1!", "!1", "1!2!3", "vv1", "v", "1\u200b", "\uff11.0", "1.0\u212a", "1.0+\u212a", "1.0a\u0661", "1.2.3%2f..", "1,0", "0x10", "1_0",
]
SPACED = [" 1.0", "1.0 ", "\t1.0\n", "\u00a01.0\u2003", "\x1c1.0\x1f", "1.0\u3000", "\x851.0"]


def spelled_versions():
    texts = SPELLED + REFUSED + SPACED
    epochs, releases = ["", "", "", "1!"], ["0", "0.1", "1", "1.0", "1.0.1", "1.1", "1.2.0", "2", "2.0.1"]
    pres, posts = ["", "", "", "a1", "b2", "rc1", "rc10"], ["", "", "", ".post0", ".post2", "-3"]
    devs, locals_ = ["", "", "", ".dev0", ".dev5"], ["", "", "", "", "+x", "+1.z"]
    while len(texts) < 330:
        text = "".join(rng.choice(c) for c in (epochs, releases, pres, posts, devs, locals_))
        if text not in texts:
            texts.append(text)
    return texts


def spelled_specifiers(versions):
    texts = [
        "", ",", " , ,", ">=1", ">=1,", ",>=1", ">=1,,<2", ">= 1.0", " >=1.0 ,  <2 ", "\u00a0>=1.0\u2003", ">=1.0\x1c", ">\u20021.0", "==1.*", "== 1.*", "==1.0.*", "!=1.0.*", "==1!1.*",
        "==v1.*", "==1 .*", "==1.* ", "==1.**", "==.*", "==*", "=*", "==1.0a1.*", "==1.0.post1.*", "==1.0.dev1.*", "==1.0+x.*", ">=1.*", "~=1.*", "<1.*", "~=1", "~=1.0", "~=1.0.0",
        "~=1.0.1", "~=1!1.0", "~=1.0a1", "~=1.0.post1", "~=1.0.dev1", "~=1.0+x", "~= 2.2", "~=2.2.post3", "~=1.4.5a4", "==1.0+x", "==1.0+X", "!=1.0+x", ">=1.0+x", "<=1.0+x", "<1.0+x", ">1.0+x",
        "===1.0", "=== 1.0", "===1.0.0", "===V1.0", "===1.0+ABC", "===anything", "===any thing", "===any;thing", "===any)thing", "===(x", "===", "=== ", "===1.0;", "===1.0rc1", "===\u212a",
        "====1.0", "==1.0==", "===a===b", "=1.0", "1.0", "1.*", "<>1.0", "=>1.0", "=<1.0", "!1.0", "! =1.0", ">1.0 <2", ">1.0||<2", ">1.0;", "(>=1.0)", ">=", ">=x", ">=latest", ">=1..2", "^1.2", "~1.2",
        ">1", ">1.0", ">1.0a1", ">1.0rc1", ">1.0.post1", ">1.0.dev1", ">1.0a1.dev1", ">1.0a1.post1", "<1", "<1.0", "<1.0a1", "<1.0rc1", "<1.0.post1", "<1.0.dev1", "<1.0.post1.dev1", "<1.0a1.post1",
        "<0.dev0", "<0.dev1", "<0", "<=0.dev0", "<=1", "<=1.0", "<=1.0a1", "<=1.0.post1", "<=1.0.dev1", "!=1", "!=1.0", "!=1.0a1", "==1", "==1.0", "==1.0a1", "==1.0.post1", "==1.0.dev1", "==1!2.0", ">=1!0", "<1!0",
        ">=1-beta.2.post1", ">=2.1,<3", ">=0.1,<1", ">=0.3,<0.4", ">=0.3.50,!=0.3.51", ">=1,<1", "==1.0,==1.1", "==1.*,!=1.0.*", "===1.0,>=0", "===1.0,>=2", ">=1.0,===x", ">=2.0.dev0", ">=1.0,<2.0.dev1",
        ">=3.10,<3.14", ">=99999999999999999999", "==99999999999999999999.*", "<=1.0.99999999999999999999",
    ]
    operators = ["==", "!=", "<", "<=", ">", ">=", "~=", "==="]
    while len(texts) < 420:
        parts = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            op, operand = rng.choice(operators), rng.choice(versions)
            if op in ("==", "!=") and rng.random() < 0.3:
                operand = operand.split("+")[0].split("a")[0].split("r")[0].split(".post")[0].split(".dev")[0] + ".*"
            parts.append(op + rng.choice(["", "", " "]) + operand)
        texts.append(rng.choice([",", ", ", " ,"]).join(parts))
    return list(dict.fromkeys(texts))


def normal_form(text):
    try:
        return str(Version(text))
    except InvalidVersion:
        return None


def compare(a, b):
    return "<" if a < b else "=" if a == b else ">"


def answers(text, versions):
    try:
        spec = SpecifierSet(text)
    except InvalidSpecifier:
        return None

    def row(prereleases):
        return "".join("01"[spec.contains(v, prereleases=prereleases)] for v in versions)

    result = {"any": row(True), "final": row(False)}
    if (default := row(None)) != result["any"]:
        result["default"] = default
    return result


def main():
    texts = spelled_versions()
    normal = {t: normal_form(t) for t in texts}
    readable = [t for t in normal if normal[t] is not None]
    versions = [Version(t) for t in readable]
    document = {
        "format": "gatehouse-vectors/pep440/1",
        "packaging": packaging.__version__,
        "versions": list(normal.items()),
        "order": ["".join(compare(a, b) for b in versions) for a in versions],
        "prerelease": "".join("01"[v.is_prerelease] for v in versions),
        "specifiers": {t: answers(t, versions) for t in spelled_specifiers(readable)},
    }
    fields = (f"{json.dumps(key)}: {lines(value)}" for key, value in document.items())
    print("{\n" + ",\n".join(fields) + "\n}")


def lines(value):
    """JSON with one member of an outer list or map a line, so that changes can be read."""
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + "\n}"
    return json.dumps(value)


main()
