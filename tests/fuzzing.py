"""Hostile commands from a fixed seed: mutated files and plans, special files, strange names and options."""

import gzip
import io
import json
import os
import random
import re
import socket
import struct
import zipfile

from formats.test_contract import FILES, TABLES
from good_plan import build_good_plan, change_key, format_plan, iter_key_paths, remove_key, write_plan_inputs

from sigdask.formats import FORMATS
from sigdask.metrics import METRICS

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
NAMES = [
    *("none", "a\0b", "x" * 300, "x/" * 3000, "", ".", "..", "/", "~none/x", "-", "--", "a=", "=a", "a=b=c", "*", "{system}"),
    *("file:///dev/zero", "file://", "http://[", "memory://none", "x://y", "data:,a", "\n", "\x1b[2J", "\udcff", "%s", "\\"),
    *("a\u202eb", "COM1", "a b", "'", "é", "🙂", "a,b", "a+b", "a:b", "a#b", "a?b", "/dev/null/x", "/proc/self/environ"),
]  # fmt: skip
MAX_BYTES = 4 << 20
"""Of a file, which would take its time otherwise."""

SUFFIXES = ("", "", ".tsv", ".csv", ".json", ".jsonl", ".txt", ".eval", ".parquet", ".gz", ".xml", ".sgm")
OPTIONS = {
    "--unit": ("item", "document", "topic", "speaker", "none", "", "a,b"),
    "--by": ("item", "kind", "none", ""),
    "--id": ("item", "id", "none", "", "a.b.c", "1", "a+b", "." * 300),
    "--gold-column": ("gold", "target", "1", "none", ".", "doc.q"),
    "--prediction-column": ("x", "label", "resps", "2"),
    "--system-column": ("system", "model", "none"),
    "--score-column": ("score", "acc", "value"),
    "--ignore": ("x", "gold", "none", ""),
    "--align": ("id", "position", "none"),
    "--missing": ("error", "zero", "pairwise", "none"),
    "--alternative": ("less", "greater", "both"),
    "--method": ("auto", "exact", "randomization", "none"),
    "--adjust": ("holm", "max-t", "tukey", "bh", "none"),
    "--baseline": ("x", "y", "gold", "none", ""),
    "--pair": (("x", "y"), ("x", "x"), ("", "y")),
    "--map": ("a=b", "P=Q,T", "=", "a", "a=a", "1=0"),
    "--seed": ("1", "-1", "9" * 30, "x"),
    "--alpha": ("0.01", "0", "5", "nan", "1e-320"),
    "--trials": ("0", "1", "100", "-5", "1e3", "x", "9" * 40),
    "--name": ("t", "\x1b[2J", "x" * 300, "\n"),
    "--most-unpacked": ("1", "100", "0", "x", "9" * 30),
}  # fmt: skip


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


def build_inspect_log(dice):
    """Return a zipped log of Inspect with strange contents, member names or compression."""
    members = {
        "header.json": mutate_json(LOG, dice) if dice.random() < 0.3 else LOG,
        **{f"samples/{k}_epoch_1.json": mutate_json({**SAMPLE, "id": k}, dice) if dice.random() < 0.3 else {**SAMPLE, "id": k} for k in range(4)},
    }  # fmt: skip
    if dice.random() < 0.2:
        members[dice.choice(("samples/", "samples/../x.json", "_journal/start.json", "/x", "samples/é\n.json"))] = (
            SAMPLE
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(
        buffer, "w", dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    ) as file:
        for name, member in members.items():
            file.writestr(name, json.dumps(member) if dice.random() < 0.95 else dice.choice(TOKENS))
    content = bytearray(buffer.getvalue())
    if dice.random() < 0.3:  # another method of packing, a flag such as that of encryption, another size
        central = content.find(b"PK\1\2")
        struct.pack_into("<H", content, central + dice.choice((8, 10, 20, 24, 28, 42)), dice.randrange(1 << 16))
    return mutate_bytes(content, dice, 0.3)


def build_parquet(dice):
    """Return a table in Parquet with columns of all types."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    kinds = {
        "numbers": [0.5, 1.0, None], "texts": ["P", "Q", "P"], "objects": [{"a": 1, "b": [1]}] * 3, "lists": [[1], [], None],
        "flags": [True, False, None], "large": [2**62, -1, 0], "bytes": [b"\xff", b"", b"a"], "odd": [float("nan"), float("inf"), -0.0],
    }  # fmt: skip
    names = dice.choice(
        (["item", "x", "y"], ["item", "gold", "x"], ["", "", "x"], ["system", "item", "score"], ["id", "prediction"])
    )
    columns = [["a", "b", "c"], *(dice.choice(list(kinds.values())) for _ in names[1:])]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array(column) for column in columns], names=names), buffer)
    return mutate_bytes(buffer.getvalue(), dice, 0.3)


def write_files_command(number, folder):
    """Write the mutated files of one command, and return its arguments."""
    dice = random.Random(f"files {number}")
    kind = dice.random()
    if kind < 0.08:
        contents = {"x": build_inspect_log(dice)} | ({"y": build_inspect_log(dice)} if dice.random() < 0.5 else {})
        suffixes = (".eval", ".eval", "")
    elif kind < 0.14:
        contents, suffixes = {"x": build_parquet(dice)}, (".parquet", "")
    else:
        files, suffixes = dice.choice(TEXTS), SUFFIXES
        spoilt = dice.choice([*files])
        contents = {
            name: mutate_lines(lines, dice) if name == spoilt or dice.random() < 0.3 else "".join(lines).encode()
            for name, lines in files.items()
        }
    paths = {name: folder / f"{name}{dice.choice(suffixes)}" for name in contents}
    for name, path in paths.items():
        path.write_bytes(contents[name])
    gold = paths.pop("gold", None)
    if len(paths) == 1 and dice.random() < 0.5:
        (path,) = paths.values()
        paths["other"] = path.with_name(f"other{path.suffix}")
        paths["other"].write_bytes(mutate_bytes(path.read_bytes(), dice, 0.1))
    arguments = [*paths.values(), *(("--gold", gold) if gold is not None else ())]
    if dice.random() < 0.2:
        arguments += [
            "--metric",
            dice.choice([*METRICS, "f", "f:b=2", "nDCG@10", "P@0", "acc", "none", "", "macro-f1:labels=P"]),
        ]
    if dice.random() < 0.15:
        arguments += [
            "--format",
            dice.choice([*FORMATS, "none", "conll:scheme=BIO,column=9", "wide:", "timbl:separator=tab"]),
        ]
    for option in dice.sample([*OPTIONS], dice.choice((0, 0, 0, 0, 1, 2))):
        value = dice.choice(OPTIONS[option])
        arguments += [option, *(value if isinstance(value, tuple) else (value,))]
    return ["compare", *arguments, *(() if "--trials" in arguments else ("--trials", "64")), "--cluster", "none"]


def write_plan_command(number, folder):
    """Write a mutated plan with its files, and return the arguments that check or run it."""
    dice = random.Random(f"plans {number}")
    write_plan_inputs(folder)
    kind = dice.random()
    if kind < 0.2:
        plan = remove_key(dice.choice(list(iter_key_paths(build_good_plan()))))
    else:
        plan = build_good_plan()
        for _ in range(dice.randint(1, 3)):
            path = dice.choice(list(iter_key_paths(build_good_plan())))
            plan = {**plan, path[0]: change_key(path, draw_plan_value(dice, number))[path[0]]}
    plan.get("gate", {}).pop("webhook", None) if isinstance(plan.get("gate"), dict) else None
    text = format_plan(plan)
    if kind > 0.6:
        text = mutate_lines(text.splitlines(keepends=True), dice).decode(errors="surrogateescape")
    (folder / "plan.toml").write_bytes(text.encode(errors="surrogateescape"))
    if dice.random() < 0.4:  # what it names
        path = dice.choice(sorted(path for path in folder.rglob("*.*") if path.name != "plan.toml"))
        path.write_bytes(mutate_lines(path.read_text().splitlines(keepends=True), dice))
    return [dice.choice(("check", "run", "run")), "plan.toml"]


def draw_plan_value(dice, number):
    """Return a value that a plan key may not expect."""
    return dice.choice(
        (*TOKENS, *NAMES[3:], number, -1, 0, 0.5, float("nan"), 10**30, True, [], {}, [[]], ["x"], {"a": 1}, [1, "a"])
    )


def _make_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))


def _make_pipe_folder(path):
    path.mkdir()
    os.mkfifo(path / "samples_x_2024-07-01T12-00-00.123456.jsonl")
    os.mkfifo(path / "a.eval")


def _make_terabyte_file(path, start):
    path.write_text(start)
    os.truncate(path, 1 << 40)


def _make_locked_file(path):
    path.write_text("item\ta\tb\n")
    path.chmod(0)


SPECIAL_MAKERS = {
    "pipe": os.mkfifo,
    "socket": _make_socket,
    "loop": lambda path: path.symlink_to(path),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "folder": lambda path: path.mkdir(),
    "folder of pipes": _make_pipe_folder,
    "empty": lambda path: path.touch(),
    "zeros": lambda path: _make_terabyte_file(path, ""),
    "holes": lambda path: _make_terabyte_file(path, "item\ta\tb\n1\t0\t1\n"),
    "bomb": lambda path: path.write_bytes(gzip.compress(b"item\ta\tb\n" + b"1\t2\t3\n" * 8_000_000, 1)),
    "deep": lambda path: path.write_text("[" * 200_000),
    "not mine": _make_locked_file,
}
SPECIAL_KINDS = (
    *SPECIAL_MAKERS,
    *(f"/dev/{name}" for name in ("zero", "null", "full", "random", "urandom", "stdin", "tty")),
)


def make_special(kind, folder):
    """Return the path of a special file, made in the folder unless it is in /dev."""
    if kind not in SPECIAL_MAKERS:
        return kind
    path = folder / f"special-{kind.replace(' ', '-')}"
    SPECIAL_MAKERS[kind](path)
    return path


ROLES = {
    "a system": ("compare", "{}"),
    "a named system": ("compare", "a={}", "good.tsv"),
    "gold": ("compare", "good.tsv", "--gold", "{}"),
    "a reference": ("compare", "good.tsv", "--gold", "good.tsv", "--reference", "{}", "--metric", "chrF"),
    "documents": ("compare", "good.tsv", "--gold", "good.tsv", "--documents", "{}", "--metric", "BLEU"),
    "a format": ("compare", "{}", "--format", "conll"),
    "logs": ("compare", "{}", "--format", "samples"),
    "a plan": ("check", "{}"),
    "a plan that is run": ("run", "{}"),
    "a system of a plan": ("run", "plan.toml", "systems"),
    "a store": ("run", "plan.toml", "store"),
    "a store that is asked": ("status", "{}"),
    "a cluster": ("compare", "good.tsv", "--cluster", "{}"),
    "a cluster of a plan": ("check", "plan.toml", "cluster"),
    "a report": ("check", "plan.toml", "report"),
    "a unit": ("compare", "good.tsv", "--unit", "{}"),
    "a metric": ("compare", "good.tsv", "--metric", "{}"),
}


def write_special_command(number, folder):
    """Return the arguments of a command with a special file, or a strange name, in some role."""
    dice = random.Random(f"special {number}")
    (folder / "good.tsv").write_text("item\ta\tb\n1\t0\t1\n2\t1\t1\n3\t1\t0\n")
    target = str(make_special(dice.choice(SPECIAL_KINDS), folder) if dice.random() < 0.6 else dice.choice(NAMES))
    role = [*ROLES][number % len(ROLES)]
    command = ROLES[role]
    if "plan.toml" in command:
        *command, key = command
        tables = {"report": {"json": target}} if key == "report" else {}
        given_keys = {"store": target} if key == "store" else {"cluster": {"file": target}} if key == "cluster" else {}
        systems_key = {"systems": [target if key == "systems" else "good.tsv"]}
        text = format_plan(
            {"name": "x", "trials": 64, **given_keys, "test_set": [{"name": "one", **systems_key}], **tables}
        )
        (folder / "plan.toml").write_bytes(text.encode(errors="surrogateescape"))
        return list(command)
    return [part.replace("{}", target) for part in command]
