"""Mutations of lines, bytes and JSON values from a fixed seed, and small files of every format to mutate."""

import gzip
import json
import re

from formats.test_contract import FILES, TABLES

LOG = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "created": "2025-01-02T03:04:05+00:00"}}
SAMPLE = {"id": 1, "epoch": 1, "input": "q", "target": "a", "scores": {"match": {"value": "C"}}}
TEXTS = [
    *({"x": [head, *rows]} for head, rows, _ in TABLES.values()),
    *(files for files, _, _ in FILES.values()),
    {
        "gold": ["one\n", "two\n"],
        "x": ['<tstset setid="a">\n', '<doc docid="d">\n', '<seg id="1">a</seg>\n', "</doc>\n", "</tstset>\n"],
    },
    {
        "x": [
            '<?xml version="1.0"?>\n<dataset id="d"><doc id="1">\n',
            '<src><p><seg id="1">a b</seg></p></src>\n',
            '<ref translator="A"><p><seg id="1">a b</seg></p></ref>\n',
            '<hyp system="x"><p><seg id="1">a c</seg></p></hyp>\n',
            '<hyp system="y"><p><seg id="1">d c</seg></p></hyp>\n',
            "</doc></dataset>\n",
        ]
    },
    {"x": ['[{"id": 1, "a": 0.5, "b": {"c": [1, 2]}},\n', ' {"id": 2, "a": 1, "b": {"c": []}}]\n']},
    {"x": ['{"q1": {"d1": 1.5, "d2": 0.5},\n', '"q2": {"d1": 2}}\n'], "gold": ['{"q1": {"d1": 1},\n', '"q2": {"d3": 2}}\n']},
    {"x": ["q1\td1\t1\n", "q1\td2\t2\n", "q2\td1\t1\n"], "gold": ["q1\t0\td1\t1\n", "q2\t0\td1\t1\n"]},
    {"x": ["utt1 one two\n", "utt2 three\n"], "gold": ["utt1 one two\n", "utt2 three four\n"]},
    {"x": ["EU B-ORG B-ORG\n", "runs O O\n", "\n", "Ann B-PER O\n", "\n"], "y": ["EU B-ORG O\n", "runs O O\n", "\n", "Ann B-PER O\n", "\n"]},
    {"x": ["item,system,rater,score\n", "a,x,r,3\n", "a,y,r,2\n", "b,x,r,1\n", "b,y,s,5\n"]},
    {"x": ["0.5\n", "1\n", "0.25\n"], "y": ["0.5\n", "2\n", "0\n"]},
    {"x": [json.dumps({**LOG, "samples": [SAMPLE, {**SAMPLE, "id": 2}]})]},
]  # fmt: skip
TOKENS = [
    *("\0", "\t", ",", ";", "\n\n", "\r", '"', "'", "{", "}", "[", "]", "<", ">", "&#0;", "&x;", "\ufeff", "\u2028", "𝟙", "é"),
    *("\x1b]0;x\x07", "nan", "inf", "-0", "1e999", "9" * 400, "0x1", "1_0", "null", "true", "NA", "B-", "I-X", "Q0", "PK\3\4"),
    *("-1", "1e-320", "1,5", '"id":', '{"id": 1}', "item", "gold", "<seg>", "<!--", "# k=", "//", "<utt>", "(a-1)", "@@", "."),
    *("/" * 50, " " * 50, "[" * 3000, '{"a":' * 3000, "(" * 500, "all", "mean", "system", "\\", "٣", "½", "C", "-inf"),
]  # fmt: skip
MAX_BYTES = 4 << 20
"""Of a file, which would take its time otherwise."""


def mutate_lines(lines, dice):
    """Return lines with up to four mutations, as bytes."""
    lines = list(lines)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        lines = lines or [""]
        k = dice.randrange(len(lines))
        lines[k : k + 1] = dice.choice(MUTATIONS)(lines[k], dice)
    if dice.random() < 0.05:
        dice.shuffle(lines)
    return mutate_bytes("".join(lines).encode(errors="surrogateescape"), dice, 0.15)


def repeat_line(line, dice):
    """Repeat a line, or its text."""
    return [line] * dice.choice((0, 2, 2, 50)) if dice.random() < 0.7 else [line * dice.choice((2, 2000))]


def replace_cell(line, dice):
    """Replace one cell or word, or one value of JSON, by something else."""
    try:
        return [json.dumps(mutate_json(json.loads(line), dice)) + "\n"]
    except (ValueError, RecursionError):
        parts = re.split(r"([\t,; <>])", line.rstrip("\n"))
        parts[2 * dice.randrange(len(parts) // 2 + 1)] = dice.choice((*TOKENS, "0", "1", "0.5", "a", "", "P"))
        return ["".join(parts) + "\n"]


def insert_token(line, dice):
    """Insert something strange anywhere, instead of some characters or none."""
    position = dice.randint(0, len(line))
    return [
        line[:position] + dice.choice(TOKENS) * dice.choice((1, 1, 1, 2, 300)) + line[position + dice.randint(0, 3) :]
    ]


MUTATIONS = (repeat_line, replace_cell, replace_cell, replace_cell, insert_token)


def mutate_bytes(content, dice, share):
    """Change or truncate bytes at random; some are compressed, and then changed."""
    content = bytearray(content[:MAX_BYTES])
    if content and dice.random() < share:
        for _ in range(dice.choice((1, 1, 8))):
            content[dice.randrange(len(content))] = dice.randrange(256)
    if dice.random() < share / 2:
        content = content[: dice.randint(0, len(content))]
    if dice.random() < 0.1:
        content = bytearray(gzip.compress(bytes(content)))
        if dice.random() < 0.5:
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return bytes(content)


def mutate_json(value, dice):
    """Return a copy of a JSON value with something else somewhere in it."""
    if dice.random() < 0.15 or not isinstance(value, (dict, list)) or not value:
        return dice.choice(
            (None, True, -1, 10**400, 0.5, "", "x", "1", "C", [], {}, [[]], {"": None}, [value], {"value": value})
        )
    value = dict(value) if isinstance(value, dict) else list(value)
    key = dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
    if dice.random() < 0.1:
        del value[key]
    else:
        value[key] = mutate_json(value[key], dice)
    return value
