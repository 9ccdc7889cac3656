#!/usr/bin/env python3
"""Writes pyyaml-vectors.json: what PyYAML's SafeLoader makes of small documents.

Run it with a Python that has PyYAML 6.0.4 and nothing else installed:

    python3 make_pyyaml_vectors.py > pyyaml-vectors.json

The documents are our own: those that are listed below, and some that a generator with a fixed seed puts together from
pieces. README-pyyaml.md explains the format. PyYAML is only run, never shipped.
"""
import base64
import datetime
import io
import itertools
import json
import random
import sys

import yaml

vectors = []
seen = set()


def encode(value):
    """The value as nested [type, content] lists, so that JSON keeps every difference."""
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
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode()]
    if isinstance(value, datetime.datetime):
        return ["datetime", str(value)]
    if isinstance(value, datetime.date):
        return ["date", str(value)]
    if isinstance(value, list):
        return ["list", [encode(v) for v in value]]
    if isinstance(value, tuple):
        return ["tuple", [encode(v) for v in value]]
    if isinstance(value, dict):
        return ["map", [[encode(k), encode(v)] for k, v in value.items()]]
    if isinstance(value, set):
        return ["set", [encode(v) for v in sorted(value, key=repr)]]
    raise TypeError(type(value))


def nodes(text):
    """The nodes in document order, with their places: [kind, tag, text, line, column]."""
    out = []

    def walk(node):
        place = [node.start_mark.line + 1, node.start_mark.column + 1]
        if isinstance(node, yaml.ScalarNode):
            value = node.value
            if any(0xD800 <= ord(c) <= 0xDFFF for c in value):
                value = None
            out.append(["scalar", node.tag, value] + place)
        elif isinstance(node, yaml.SequenceNode):
            out.append(["list", node.tag, ""] + place)
            for item in node.value:
                walk(item)
        else:
            out.append(["map", node.tag, ""] + place)
            for key, value in node.value:
                walk(key)
                walk(value)

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        walk(root)
    return out


def has_set(value):
    return any(isinstance(v, set) for v in flat(value))


def flat(value):
    yield value
    if isinstance(value, dict):
        for k, v in value.items():
            yield from flat(k)
            yield from flat(v)
    elif isinstance(value, (list, tuple, set)):
        for v in value:
            yield from flat(v)


def expect(data):
    try:
        text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        return {"error": {"class": "refusal", "type": type(exc).__name__, "line": mark.line + 1, "column": mark.column + 1}}
    except yaml.YAMLError as exc:
        return {"error": {"class": "refusal", "type": type(exc).__name__}}
    except Exception as exc:
        return {"error": {"class": "crash", "type": type(exc).__name__}}
    result = {}
    try:
        result["ok"] = encode(value)
        if not has_set(value):
            r = repr(value)
            if len(r) <= 2000 and not any(0xD800 <= ord(c) <= 0xDFFF for c in r):
                result["repr"] = r
    except RecursionError:
        return {"cycle": True}
    if b"&" not in data:
        result["nodes"] = nodes(text)
    return result


def add(category, source):
    data = source if isinstance(source, bytes) else source.encode("utf-8")
    if data in seen:
        return
    seen.add(data)
    vector = {"id": "yml-%04d" % (len(vectors) + 1), "category": category}
    try:
        vector["yaml"] = data.decode("utf-8")
    except UnicodeDecodeError:
        vector["yaml_b64"] = base64.b64encode(data).decode()
    vector["expect"] = expect(data)
    vectors.append(vector)


SCALARS = """
yes|Yes|YES|yES|no|No|NO|true|True|TRUE|tRUE|false|False|FALSE|on|On|ON|off|Off|OFF|y|Y|n|N|~|null|Null|NULL|nULL|none
0|1|-1|+1|-0|+0|00|007|017|-017|08|09|0o17|0b0|0b101|-0b1|0b102|0b|0b_|0x|0x_|0x1F|0xfg|-0xff|+0xFF|0X1F|1_000|_1|1_|1__0|0_|0_7|- 1|+-1
1:30|190:20:30|1:60|1:5|01:30|-1:30|1:30:|1:99|9:59:59|1_0:30|1:3_0|10:00:00:00
1.0|1.|.5|0.5|-.5|+.5|-0.5|1.5e3|1.5e+3|1.5E-3|1e5|1.0e5|1.0e+5|1.e+5|.5e+1|.5e1|1_0.5|1.5_5|1._|._|.|..|...x|1.2.3|1:30.5|1:30.|-1:30.5|1:60.5|1:0.5|1_0:30.5
.inf|-.inf|+.inf|.Inf|.INF|.iNF|.nan|.NaN|.NAN|-.nan|inf|nan|-inf|0.1|1.10|1e400|1.0e+400|-1.0e+400|1.0e-400|5.0e-324|9007199254740993.0|123456789012345678901234567890|0.30000000000000004|100000000000000000000.0|1.0e+16|1.0e+15|1.0e-5|1.0e-4|4.35|2.5e-7
2024-01-01|2024-1-1|2024-13-45|2024-02-30|2023-02-29|2024-02-29|0000-01-01|0001-01-01|9999-12-31|2024-01-01T00:00:00Z|2024-01-01t01:02:03|2024-01-01 10:00:00|2024-1-1 1:02:03|2024-01-01 10:00:00.5|2024-01-01 10:00:00.123456789|2024-01-01 10:00:00.000000|2024-01-01 10:00:00.
2024-01-01 10:00:00Z|2024-01-01 10:00:00 Z|2024-01-01 10:00:00+1|2024-01-01 10:00:00 +01:30|2024-01-01 10:00:00-00:30|2024-01-01 10:00:00-0|2024-01-01 10:00:00+00:00|2024-01-01 10:00:00-12:00|2024-01-01 10:00:00+23:59|2024-01-01 10:00:00+23:60|2024-01-01 10:00:00+24|2024-01-01 10:00:00z|2024-01-01 24:00:00|2024-01-01 23:60:00|2024-01-01 23:59:60|2024-01-01 1:2:3|20240-01-01|2024-01-011|2024-01-01T|2024-01-01  10:00:00|2024-01-01 10:00:00.1 -5
=|<<|<|<<<|==|!|&|*|%|@|`|@a|`a|%a|-|--|-a|?a|? a|?|:|:a|::|a:|a:b|a::b|a: b: c|a#b|a #b|#a|a,b|a]b|a}b|[a|{a|a'b|a"b|'a|"a|a\\b|a\tb|a b|é|日本|\U0001f680|a\u00a0|\u200b|\ufeff|a\ufeffb
1,000|12e03|0.0.0|1-2|10%|C:\\x|http://x/y|a=b|~a|null2|Nullx|yess|-.|+|+.|.e+1|0.e+1|0e+1|-1e-1|1.5e+|1.5e
"""

QUOTED = [
    r'"\0\a\b\t\n\v\f\r\e\ \"\/\\\N\_\L\P"', r'"\x41\u00e9\U0001F680"', r'"\ud800"', r'"\ud83d\ude00"', r'"\U0000d800"', r'"\xGG"', r'"\u12"',
    r'"\U00110000"', r'"\UFFFFFFFF"', r'"\q"', '"\\\'"', r'"a\"b"', "'it''s'", "'a", '"a', "''", '""', "'\\n'", '"a\tb"', '"a \t b"',
    '"a\n b"', '"a\n\n b"', '"a\n\n\n  b"', '"a \n b"', '"a\\\n b"', '"a\\\n\n b"', '"a\\ \n b"', '"a\\\n   \\ b"', '"\n a\n"', "'a\n b'", "'a\n\n b'",
    "'\n\n'", '"a\n---\nb"', "'a\n...\nb'", '"a\n--- b"', '"a\n---b"', '"a\n --- b"', '"a\u2028b"', '"a\u2028 b"', '"a\u0085b"', "'a\u2029 b'", '"a\n\u2028b"', '"a\u2028\nb"',
    '"a" b', "'a' 'b'", '"a":b', "'a':b", '"a"#b', '"a" #b', '"\\\t"', '"a\t\n\tb"', '"  a  "', "'  a\n  b  '", '"\\x0"', '"\\u00"', '"\\', '"\\x', '"a\ufeffb"', '"\\uFEFF"',
]

BLOCKS = [
    "|\n a\n", "|\n a", "|-\n a\n", "|+\n a\n\n", "|\n a\n\n", "|\n\n a\n", "|\n  a\n   b\n  c\n", "|2\n   a\n", "|2-\n   a\n", "|-2\n   a\n", "|+1\n  a\n\n", "|1+\n  a\n\n",
    "|0\n a\n", "|10\n a\n", "|--\n a\n", "|a\n b\n", "| #c\n a\n", "|#c\n a\n", "|\ta\n", "|\n\ta\n", "|\n a\n\tb\n", ">\n a\n b\n", ">\n a\n\n b\n", ">\n a\n\n\n b\n",
    ">\n a\n  b\n c\n", ">\n a\n\n  b\n\n c\n", ">-\n a\n b\n", ">+\n a\n\n", ">\n\n\n a\n", ">\n a\n\tb\n c\n", ">\n\n  a\n  b\n", ">2\n    a\n   b\n", "|\n", "|", ">", "|+\n\n\n", "|-\n\n\n",
    "|\n a\n# c\n", "|\n a\n # c\n", "|\n a\u0085 b\n", ">\n a\u2028 b\n", ">\n a\u0085 b\n", "|\n    a\n  b\n", "|\n  a\n b\n", "|\n\n   \n a\n", "|\n   \n a\n", ">1\n a\n  b\n", "|9\n          a\n", "|\n a\r\n b\r\n", "|\n ---\n", "|\n---\n",
]

FLOW = [
    "[]", "{}", "[a]", "[a,]", "[,]", "[a,,b]", "[a b, c]", "[a\n, b]", "[\na,\nb\n]", "[a", "[a,", "]", "}", "[}", "{]", "[a}", "{a]", "{a}", "{a,b}", "{a: 1}", "{a: 1,}", "{,}", "{a: 1,, b: 2}", "{a:1}",
    "{a :1}", '{"a":1}', "{'a':1}", "{a: }", "{a:}", "{: 1}", "{? a : 1}", "{? a}", "{?}", "{? }", "{?a: 1}", "{a: b: c}", "{[a]: 1}", "{[a: b]: 1}", "[a: 1]", "[a: 1, b: 2]", "[a: ]", "[: 1]", "[? a : 1]", "[? a]", "[?]",
    "[a: b: c]", "[a:b]", "[a:]", "[a :b]", "['a':b]", '["a":b, c]', "[[a]:b]", "[{a: 1}: b]", "[a, [b, [c]]]", "{a: {b: {c: }}}", "[a]b", "[a] b", "{a: 1} b", "[- a]", "[-]", "[-a]", "[- a, b]", "{- a}", "[a #c\n, b]", "[a#b]", "[|]", "[>]", "[|\n a]",
    "[a\n---\nb]", "[a,\n---\n]", "[\ta]", "[a\t]", "[a,\tb]", "{a:\t1}", "[*a]", "[&a b]", "[!!int '1']", "[a?b]", "[a?]", "[http://x]", "[a:b:c]", "{http://x: y}", "{a: http://x}", "{a, b: c}", "[a, b: c, d]", "{a: [b, c], d}", "[\"a\"\"b\"]", "['a'b]",
    "{a: 1}: b", "[a]: b", "[]: {}", "{}: []", "[a]:b", "a: [b\n]", "a: [\nb]", "a: [\n]", "a:\n[b]", "a: {\nb: c\n}", "a: {b: c}\nd: e", "a: [b]\n c", "[a,b]\n[c]", "- [a\n- b]", "- {a: 1}\n- [b]", "[\n  {\n a: 1}\n]", "{a: 1\n b: 2}", "{\"a\"\n: 1}", "{a\n: 1}", "{a\n b: 1}",
    "{%s: 1}" % ("a" * 1023), "{%s: 1}" % ("a" * 1024), "{%s : 1}" % ("a" * 1024), "{%s: 1}" % ("a" * 1025), "[%s: 1]" % ("a" * 1030), "? [a]\n: b", "{? [a] : b}", "{? {a: b} : c}", "[? {a: b} : c]",
]

BLOCK = [
    "a: b", "a:b", "a : b", "a:\tb", "a\t: b", "a:  b", "a:", "a:\n", "a: \n", "a:\n  b", "a:\nb", "a:\n b: c", "a:\n b: c\n d: e", "a:\n b: c\n  d: e", "a:\n  b: c\n d: e", "a: b\nc: d", "a: b\n c: d", " a: b\nc: d", " a: b\n c: d", "a: b: c", "a: 'b': c", "a: b\n c",
    "- a", "-a", "-", "- ", "-\n", "- a\n- b", "-\ta", "- - a", "- - a\n  - b", "- - a\n - b", "-\n- a", "-\n a", "- a\n b", "- a: b", "- a: b\n  c: d", "- a: b\n c: d", "-  a: b\n   c: d", "- a:\n    b", "- a:\n  - b", "- a:\n - b", "- a:\n- b", "-  - a\n   - b", "- a\nb",
    "a:\n- b", "a:\n- b\nc: d", "a:\n- b\n- c\nd:\n- e", "a:\n - b", "a:\n  - b\n - c", "a: - b", "a: -", "a: - b\n", "a:\n- b\n c", "a:\n-\n- b", "a:\n- b: c\n  d: e", "a:\n- - b", "a:\n-", "a:\n- ", "a:\n- b\n-c", "a:\n- b:\n  - c",
    "? a\n: b", "? a", "?", "? ", "?\n: b", "? a\n:", "? a\n: b\n? c\n: d", "? a\n? b", "? - a\n: - b", "? a: b\n: c", "? |\n a\n: b", "? [a]\n", ": a", ":", ": a\n: b", "a: b\n? c\n: d", "a: b\n: c", "? a\n : b", "? a : b", "? a\n:b", "a\n: b", "a b: c", "a\n b: c", "'a\n b': c", "\"a\": b", "'a' : b",
    "a", "a\nb", "a\n b", "a\n\nb", "a\n\n\nb", "a #c", "a#c", "# c", "#", "# a\n# b\n", "\n\n", "", " ", "\t", "\ta", " \ta", "a\t", "a:\n\tb", "a:\n\tb: c", "a: b\n\tc: d", "a: b\n\t", "a: b\t", "a: b\t#c", "a: b #c", "a: b#c", "a: #c", "a: #c\n  b", "a:#c", "a: b\n#c\nc: d", "a:\n # c\n b: d", "a: b # c\n  d",
    "a: b\n   \nc: d", "a: b\n\t\nc: d", "- a\n\n- b", "- a\n#c\n- b", "- a\n #c\n- b", "a:\n\n  b", "a: b\n\n c", "a: b\n\n\n c\n d", "a: b\nc", "a: b\n-c", "a: b\n- c", "- a\nb: c", "a: [b]\n- c", "- a\n: b", "%s: b" % ("a" * 1024), "%s: b" % ("a" * 1025), "%s : b" % ("a" * 1024), "- %s: b" % ("a" * 1025), "x: %s: b" % ("a" * 1025),
    "a: *b", "a: &b", "a: &b c", "a: &b\n  c", "a: &b\nc: d", "&a b: c", "&a : c", "a: !!str", "a: !!str\nb: c", "!!map {a: b}", "!!map\na: b", "!!seq\n- a", "&x\n- a", "&x - a", "&a &b c", "!!str !!str a", "!!str &a b", "&a !!str b", "- &a b\n- *a", "- &a b\n- &a c\n- *a", "*a : b", "- &a b\n- *a : c", "- &a b\n- *a:c", "- &a b\n- ? *a\n", "& a", "* a", "&", "*", "&a", "&a\n", "&é b", "&a,b c", "- &a [b]\n- *a\n- *a",
    "a: b\n...\n", "a: b\n---\n", "---\na: b", "--- a: b", "--- a", "--- |\n a\n", "---\n---\n", "---\n...\n", "---\n...\n---\n", "...\n", "...", "...\na", "a\n...\nb", "a\n...\n...\n", "a\n---\nb", "---a", "--- - a", "---\n- a", "----", "--- #c\na", "---\ta", "--- 'a'\n--- b", "a: b\n--- c: d", "a\n... b", "a\n...b", "a\n....", "---\na\n...\n%YAML 1.1\n---\nb", "a\n%YAML 1.1\n", "a: b\n%x",
    "%YAML 1.1\n---\na", "%YAML 1.2\n---\na", "%YAML 2.0\n---\na", "%YAML 1\n---\na", "%YAML 1.x\n---\na", "%YAML x\n---\na", "%YAML 1.1 x\n---\na", "%YAML 1.1 #c\n---\na", "%YAML 1.1#c\n---\na", "%YAML  1.1\n---\na", "%YAML\n---\na", "%YAML 1.1\na", "%YAML 1.1\n", "%YAML 1.1", "%YAML 1.1\n%YAML 1.1\n---\na", "%YAML 01.1\n---\na", "%YAML 1.123456789\n---\na", "%YAML 1.1\n...\n---\na", "%FOO bar baz\n---\na", "%FOO\n---\na", "%\n---\na", "% a\n---\na", "%FOO!\n---\na", " %YAML 1.1\n---\na",
    "%TAG ! tag:x,2000:\n---\n!a b", "%TAG !! tag:yaml.org,2002:\n---\n!!int '1'", "%TAG !e! tag:yaml.org,2002:\n---\n!e!int '1'", "%TAG !e! tag:yaml.org,2002:in\n---\n!e!t '1'", "!e!int '1'", "%TAG !e! x\n%TAG !e! y\n---\na", "%TAG e! x\n---\na", "%TAG !e x\n---\na", "%TAG !e!\n---\na", "%TAG !e!x y\n---\na", "%TAG !e! x y\n---\na", "%TAG !e! x#y\n---\na", "%TAG ! !\n---\n!!int 1", "%TAG !! x:\n---\n!!int 1",
]

TAGS = [
    "!!str 1", "!!str yes", "!!str 2024-01-01", "!!str", "!!str ''", "!!str [a]", "!!str {a: b}", "!!str {=: a}", "!!str {=: {=: a}}", "!!str {b: c, =: a}", "!!int '0x10'", "!!int ' 12 '", "!!int '１２'", "!!int '٣'", "!!int 'x'", "!!int ''", "!!int", "!!int '-'", "!!int '0b'", "!!int '0b0b1'", "!!int '0x0x1F'", "!!int '0o17'", "!!int '00o17'",
    "!!int '09'", "!!int '- 5'", "!!int '--5'", "!!int '1:-30'", "!!int '1: 30'", "!!int '0:30'", "!!int ':30'", "!!int '1:'", "!!int '1.5'", "!!int '1e3'", "!!int '1__2'", "!!int '_'", "!!int '0x'", "!!int '0x-5'", "!!int [1]", "!!int {=: 5}", "!!int yes", "!!int ~", "!!int '\u00a012'", "!!int \"12\\n\"", "!!int \"\\x1c12\"",
    "!!float 1", "!!float '1e5'", "!!float '1E5'", "!!float inf", "!!float Infinity", "!!float nan", "!!float '-nan'", "!!float .inf", "!!float x", "!!float ''", "!!float ' 1.5 '", "!!float '１.５'", "!!float '0x10'", "!!float '1:30'", "!!float '1:30:1e3'", "!!float '1:inf'", "!!float '1: 30 '", "!!float '-+5'", "!!float '1e'", "!!float '.'", "!!float '1..2'", "!!float 1_0", "!!float '_'", "!!float '1e+_5'", "!!float [1]", "!!float '-0'", "!!float '" + "1:" * 180 + "1'", "!!float '" + "1:" * 170 + "1'",
    "!!bool yes", "!!bool 'YES'", "!!bool yEs", "!!bool y", "!!bool 1", "!!bool ''", "!!bool [yes]", "!!null x", "!!null ''", "!!null [a]", "!!null", "!!timestamp 2024-01-01", "!!timestamp 2024-1-1", "!!timestamp '2024-01-01 1:2:3'", "!!timestamp '2024-01-01 1:02:03'", "!!timestamp x", "!!timestamp [a]", "!!timestamp {=: 2024-01-01}", "!!timestamp \"2024-01-01\\n\"", "!!timestamp ''",
    "!!binary aGVsbG8=", "!!binary aGVsbG8", "!!binary 'aGVs bG8='", "!!binary |\n aGVs\n bG8=\n", "!!binary '===='", "!!binary 'a'", "!!binary 'ab'", "!!binary 'ab='", "!!binary 'ab=='", "!!binary 'ab==cd'", "!!binary 'abc=d'", "!!binary 'a=b=c=d='", "!!binary 'ab=c'", "!!binary 'ä'", "!!binary ''", "!!binary", "!!binary [a]", "!!binary '*&^'", "!!binary 'abcde'", "!!binary AAAA====BBBB",
    "!!seq [a]", "!!seq {a: b}", "!!seq a", "!!seq", "!!map {a: b}", "!!map [a]", "!!map a", "!!map", "!!set {a, b}", "!!set {a: 1, b: 2}", "!!set [a]", "!!set\n? a\n? b\n", "!!set {}", "!!set {a, a}", "!!set {1, 1.0, yes}", "!!set", "!!set {? [a]}", "!!omap [a: 1, b: 2]", "!!omap [a: 1, a: 2]", "!!omap [{a: 1, b: 2}]", "!!omap [a]", "!!omap {a: 1}", "!!omap []", "!!omap", "!!omap\n- a: 1\n- b: 2", "!!omap [[a]: 1]", "!!omap [{}]", "!!omap [=: 1]",
    "!!pairs [a: 1, a: 2]", "!!pairs [a]", "!!pairs {a: 1}", "!!pairs [{a: 1, b: 2}]", "!!pairs [[a]: b]", "!!merge a", "!!value a", "!!yaml a", "!!foo a", "!foo a", "!foo [a]", "!foo {a: b}", "!python/none", "!!python/none ~", "!!python/object/apply:os.system ['id']", "!<tag:yaml.org,2002:int> '1'", "!<tag:yaml.org,2002:int>1", "!<!foo> a", "!<!> '12'", "!<> a", "!<a", "!<a b> c", "! 12", "! '12'", "! \"yes\"", "! a", "! |\n yes\n", "! |\n 12\n", "! |\n 1.5\n", "! |\n 2024-01-01\n", "! |\n null\n", "! [a]", "! {a: b}", "!", "! &a", "!!", "!! a", "!!int", "!!%69nt '1'", "!!%zz a", "!!%ff a", "!!%c3%a9 a", "!!int%", "!!in,t a", "!a!b c", "!a!", "!é a", "!!str\ta", "!!str#a", "[!!str, a]", "[!!str , a]", "[!!str]", "{!!str : a}", "{!!int 1: a}", "!!str\n", "- !!str\n- a", "a: !!str # c\n  b",
]

KEYS = [
    "1: a\n1: b", "1: a\n1.0: b", "1: a\ntrue: b", "1.0: a\nyes: b\n1: c", "0: a\nfalse: b\n-0.0: c", "'1': a\n1: b", "1_0: a\n10: b", "0x10: a\n16: b", "~: a\nnull: b", ": a\n~: b", ".nan: a\n.nan: b", ".inf: a\n.Inf: b", "!!float nan: a\n!!float nan: b", ".nan: a\n!!float nan: b", "2024-01-01: a\n2024-01-01: b", "2024-01-01: a\n2024-01-01 00:00:00: b", "2024-01-01T00:00:00Z: a\n2024-01-01T01:00:00+01:00: b", "2024-01-01T00:00:00Z: a\n2024-01-01T00:00:00: b", "!!binary YQ==: a\na: b", "!!binary YQ==: a\n!!binary YR==: b",
    "[a]: b", "{a: b}: c", "? !!set {a}\n: b", "? !!omap []\n: b", "a: 1\na: 2\na: 3", "a: 1\nb: 2\na: 3", "a: 1\n'a': 2\n\"\\x61\": 3", "10000000000000000000000: a\n1.0e+22: b", "9007199254740993: a\n9007199254740992.0: b", "=: a", "=: a\n'=': b", "a: =", "- =", "a: '='", "'<<': a", "a: <<", "- <<", "<<: a", "<<: [a]", "<<: ~", "<<:", "<<: {}", "<<: []", "<<: {a: 1}", "a: 2\n<<: {a: 1}", "<<: {a: 1}\na: 2", "<<: [{a: 1}, {a: 2}]", "<<: [{ab: 1}, {ab: 2}]", "<<: {a: 1}\n<<: {a: 2}", "<<: {ab: 1}\n<<: {ab: 2}", "<<: [{é: 1}, {é: 2}]", "<<: [{ł: 1}, {ł: 2}]", "<<: [{'': 1}, {'': 2}]", "<<: [{1: x}, {!!str 1: y}]", "<<: {<<: {a: 1}, b: 2}\nc: 3", "<<: [{<<: {a: 1}}, {a: 2}]", "<<: [{a: 1}, b]",
    "x: &x {abc: 1}\ny: &y {abc: 2, d: 3}\nz: {<<: [*x, *y]}", "x: &x {&k abc: 1}\ny: &y {*k : 2}\nz: {<<: [*x, *y]}", "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}", "x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: *y, c: 3}", "x: &x [1]\ny: {<<: *x}", "x: &x {a: [1]}\ny: {<<: *x}\nz: *x", "!!map {<<: {a: 1}}", "!!set {<<: {a: 1}}", "!!omap [<<: {a: 1}]", "!!str <<: {a: 1}", "!!merge x: {a: 1}", "!!merge x: {a: 1}\nx: 2", "<<: !!foo {a: 1}", "<<: !!set {a}", "<<: !!foo [{a: 1}]", "{<<: {a: 1}, <<: {b: 2}, a: 3}", "<<: {[a]: 1}", "a: &a {b: *a}", "&a [*a]", "&a {<<: *a}", "&a {<<: [*a], b: 1}", "- &a {b: 1}\n- &c [*a, *a]\n- *c", "&a {*a : b}",
]

BYTES = [
    b"\xef\xbb\xbfa: b", b"\xef\xbb\xbf", b"a: b\r\nc: d\r\n", b"a: b\rc: d\r", b"a: b\n\rc: d", b"\r\n\r\n", b"a: |\r\n b\r\n c\r\n", b"a: 'b\r\n c'", b"a: \xff", b"\xc3", b"a: \xed\xa0\x80", b"a: \xc0\xaf", b"a: \xf4\x90\x80\x80", b"a: \x00", b"a: \x07", b"a: \x7f", b"a: \xc2\x80", b"a: \xc2\x84", b"a: \xc2\x85", b"a: \xc2\x85b", b"a: b\xc2\x85c: d", b"a: \xc2\x86", b"a: \xc2\x9f", b"a: \xc2\xa0", b"a: \xef\xbf\xbe", b"a: \xef\xbf\xbf", b"a: \xef\xbf\xbd",
    b"a: \xe2\x80\xa8b", b"a: b\xe2\x80\xa8c: d", b"a: b\xe2\x80\xa9 c", b"a: \xf0\x9f\x9a\x80", b"\xef\xbb\xbf\xef\xbb\xbfa: b", b"a: b\n\xef\xbb\xbfc: d", b"a:\n  b: c\n\xef\xbb\xbf  d: e", b"\xff\xfea\x00", b"\xfe\xff\x00a", b"a: \x0c", b"a: \x0b", b"a: \x1b", b"\xef\xbb\xbf---\na", b"\xef\xbb\xbf%YAML 1.1\n---\na", b"a:\xc2\xa0b", b"a\xe2\x80\xa8: b", b"# \x07", b"'\x08'", b"\"\xc2\x85\"", b"a: b\r\r\nc: d",
]


def curated():
    for line in SCALARS.strip("\n").split("\n"):
        for scalar in line.split("|"):
            add("scalar", "a: " + scalar + "\n")
            add("scalar", "- " + scalar)
            if len(scalar) < 12:
                add("scalar", "[" + scalar + "]")
    for q in QUOTED:
        add("quoted", "a: " + q + "\n")
        add("quoted", "- " + q)
    for b in BLOCKS:
        add("block scalar", "a: " + b)
        add("block scalar", "a: " + b + "c: d\n")
        add("block scalar", b)
        add("block scalar", "- - " + b)
    for f in FLOW:
        add("flow", f)
        add("flow", "x: " + f + "\n")
    for b in BLOCK:
        add("block", b)
    for t in TAGS:
        add("tag", "a: " + t + "\n")
        add("tag", "- " + t)
    for k in KEYS:
        add("key", k)
    for b in BYTES:
        add("bytes", b)
    add("number", "a: " + "9" * 4300)
    add("number", "a: " + "9" * 4301)
    add("number", "a: -" + "9" * 4300)
    add("number", "a: 1" + "_0" * 4299)
    add("number", "a: 1" + "_0" * 4300)
    add("depth", "[" * 100 + "]" * 100)
    add("depth", "[" * 2000 + "]" * 2000)
    add("depth", "- " * 2000 + "a")
    add("depth", "{a: " * 100 + "}" * 100)


PIECES = ["a", "b: ", "- ", "? ", ": ", "\n", "\n ", "\n  ", " ", "[", "]", "{", "}", ", ", "'c'", '"d"', "#e", "&f ", "*f", "!!str ", "|\n", ">-\n", "1", "~", "---", "...", "\t", "a: ", "\n- ", "\nb: ", " #x\n", "<<: ", "\\", '"', "'"]
WELL = ["a: 1", "b: [x, y]", "c: {d: e}", "f:", "- g", "- h: i", "  j: k", "  - l", "    m: n", "# o", "p: |", "  q r", "  s: 't'", "", "u: >-", "  v", "'w': \"x\"", "? y", ": z", "  ? aa", "  : bb"]


WORDS = ["alpha", "beta gamma", "yes", "1.10", "", " lead", "trail ", "a: b", "# no", "line\nbreak", "two\n\nbreaks\n", "tab\there", "größe", "日本 語", "\U0001f680 up", "\x00\x1b", "it's", 'say "hi"', "back\\slash", "- dash", "2024-01-01", "~", "\u2028sep", "\x85nel", "\ufeffbom", "\ud800lone", "x" * 90, "w " * 60, "a,b]c", "<<", "=", "0x1f", "1:30", "[x]", "{y", "*z", "&q", "!t", "|", ">", "%p", "@a", "`b"]


def some_value(rng, depth):
    roll = rng.random()
    if depth > 0 and roll < 0.25:
        return [some_value(rng, depth - 1) for _ in range(rng.randint(0, 4))]
    if depth > 0 and roll < 0.55:
        return {some_key(rng): some_value(rng, depth - 1) for _ in range(rng.randint(0, 4))}
    return rng.choice([some_key(rng), rng.choice(WORDS), rng.choice(WORDS), rng.randint(-10**6, 10**6), rng.random() * 10 ** rng.randint(-9, 20), True, None, datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 40), b"\x00bytes\xff"])


def some_key(rng):
    return rng.choice(WORDS + ["k%d" % rng.randint(0, 9), rng.randint(0, 99), 1.5, None, False])


def generated():
    rng = random.Random(20260101)
    for _ in range(700):
        add("generated pieces", "".join(rng.choice(PIECES) for _ in range(rng.randint(2, 12))))
    for _ in range(400):
        text = yaml.safe_dump(some_value(rng, 4), default_flow_style=rng.choice([True, False, None]), width=rng.choice([20, 40, 80]), indent=rng.choice([2, 3, 4]), allow_unicode=rng.random() < 0.5, sort_keys=False, default_style=rng.choice([None, None, None, "'", '"', "|", ">"]), explicit_start=rng.random() < 0.2, explicit_end=rng.random() < 0.2)
        if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):
            add("generated dumps", text)
    for _ in range(400):
        add("generated lines", "\n".join(rng.choice(WELL) for _ in range(rng.randint(2, 9))) + rng.choice(["", "\n"]))
    for _ in range(400):
        text = rng.choice(SCALARS.replace("\n", "|").split("|"))
        chars = list(text)
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(chars))
            if rng.random() < 0.5:
                chars.insert(at, rng.choice("0123456789_.:+-eEx bT"))
            elif chars:
                del chars[min(at, len(chars) - 1)]
        add("generated scalars", "a: " + "".join(chars))


def main():
    curated()
    generated()
    out = sys.stdout
    out.write('{"format": "gatehouse-vectors/1", "subject": "YAML text to Python values", "packages": {"pyyaml": "%s"}, "vectors": [\n' % yaml.__version__)
    for last, vector in zip(itertools.chain(itertools.repeat(False, len(vectors) - 1), [True]), vectors):
        out.write(json.dumps(vector, ensure_ascii=True, separators=(",", ":")) + ("\n" if last else ",\n"))
    out.write("]}\n")


main()
