"""Files that are made to harm: bombs, pipes, devices, nesting without end, names of any length, and mutations of all."""

import gzip
import json
import os
import random
import resource
import time
import zipfile

import pytest
from formats.test_contract import FILES, TABLES

from sigdask.api import compare_all
from sigdask.errors import InputError, SigdaskError
from sigdask.formats import Options, parse_source, read
from sigdask.plan import load_plan

LOG = json.dumps({"status": "success", "eval": {"task": "t", "model": "m"}})
DEEP = "[" * 100_000 + "]" * 100_000


def packed(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def encrypted(path):
    packed(path, {"header.json": LOG, "samples/1.json": "{}"})
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\3\4") + 6] |= 1
    content[content.find(b"PK\1\2") + 8] |= 1
    path.write_bytes(content)
    return path


def forged(path):
    """Write a gzip file that says to hold a few bytes."""
    path.write_bytes(gzip.compress(b"item\ta\tb\n" + b"0" * (300 << 20), 1)[:-4] + b"\0\1\0\0")
    return path


def written(path, text):
    path.write_text(text)
    return path


def fifo(path):
    os.mkfifo(path)
    return path


SPECIAL = {
    "a gzip bomb": lambda at: written(at / "a", "") and _gzip(at / "a.tsv.gz", 600),
    "an archive bomb": lambda at: packed(at / "a.eval", {"header.json": LOG, "samples/1.json": b" " * (300 << 20)}),
    "an encrypted log": lambda at: encrypted(at / "a.eval"),
    "a nested header": lambda at: packed(at / "a.eval", {"header.json": DEEP}),
    "a nested sample": lambda at: packed(at / "a.eval", {"header.json": LOG, "samples/1.json": DEEP}),
    "a huge number": lambda at: packed(
        at / "a.eval", {"header.json": LOG, "samples/1.json": json.dumps({"id": 1, "scores": {"x": 10**400}})}
    ),
    "a list of scores": lambda at: packed(
        at / "a.eval", {"header.json": LOG, "samples/1.json": json.dumps({"id": 1, "scores": [3]})}
    ),
    "nested JSON": lambda at: written(at / "a.json", DEEP),
    "nested JSON lines": lambda at: written(at / "a.jsonl", f"{DEEP}\n" * 3),
    "nested cells": lambda at: written(at / "a.jsonl", '{"id": 1, "a": %s}\n' % ("[" * 900 + "]" * 900) * 3),
    "nested objects": lambda at: written(at / "a.json", '{"a":' * 50_000 + "1" + "}" * 50_000),
    "a key of many parts": lambda at: written(at / "a.json", json.dumps([{"id": k, ".".join("a" * 50_000): k} for k in (1, 2)])),
    "a pipe": lambda at: fifo(at / "a.tsv"),
    "a device without an end": lambda at: "/dev/zero",
    "nothing": lambda at: "/dev/null",
    "a long name": lambda at: "x" * 5000,
    "a long path": lambda at: "a=" + "x/" * 5000,
    "a zero byte": lambda at: "a\0b",
}  # fmt: skip


def _gzip(path, n_megabytes):
    with gzip.open(path, "wb", 1) as file:
        for _ in range(n_megabytes):
            file.write(b"0" * (1 << 20))
    return path


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_hostile_file_is_refused_in_no_time(kind, tmp_path):
    given = SPECIAL[kind](tmp_path)
    begun = time.process_time()
    with pytest.raises(SigdaskError):
        compare_all(read(str(given)), trials=16, cluster="none")
    assert time.process_time() - begun < 2


def test_a_gzip_file_that_lies_of_its_size_is_refused_as_it_is_read(tmp_path):
    with pytest.raises(InputError, match=r"unpack to more than 268,435,456.*--most-unpacked"):
        read(forged(tmp_path / "a.tsv.gz"))


def test_an_option_raises_what_files_may_unpack_to(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"item\ta\tb\n1\t0.5\t1\n2\t1\t0\n"))
    assert read(path).n_items == 2
    with pytest.raises(InputError, match="unpack to more than 10,"):
        read(path, options=Options(most_unpacked=10))
    assert read(path, options=Options(most_unpacked=100)).n_items == 2


def test_a_name_of_many_parts_is_no_column(tmp_path):
    path = written(tmp_path / "a.jsonl", '{"id": "p", "a": {"x": 1}}\n{"id": "q", "a": {"x": 2}}\n')
    begun = time.process_time()
    with pytest.raises(InputError, match="no column"):
        read(path, options=Options(id_column=".".join("a" * 50_000)))
    assert time.process_time() - begun < 2


def test_a_key_of_many_parts_is_refused_in_a_plan(tmp_path):
    for text in (".".join("a" * 50_000) + " = 1\n", '"a" . ' * 50_000 + "b = 1\n", "[" + ".".join("a" * 50_000) + "]\n"):
        begun = time.process_time()
        with pytest.raises(InputError, match="50 parts"):
            load_plan(written(tmp_path / "plan.toml", text))
        assert time.process_time() - begun < 2


def test_a_pipe_is_no_plan(tmp_path):
    with pytest.raises(InputError, match="no file"):
        load_plan(fifo(tmp_path / "plan.toml"))


SEEDS = [
    *({"x": [head, *rows]} for head, rows, _ in TABLES.values()),
    *(files for files, _, _ in FILES.values()),
    {"gold": ["one\n", "two\n"], "x": ['<refset setid="a">\n', '<doc docid="d">\n', '<seg id="1">a</seg>\n', "</doc>\n"]},
    {"x": ['<?xml version="1.0"?>\n', '<dataset id="d"><doc id="1"><src><seg id="1">a</seg></src></doc></dataset>\n']},
    {"x": ['[{"id": 1, "a": 0.5, "b": {"c": [1, 2]}},\n', ' {"id": 2, "a": 1, "b": {"c": []}}]\n']},
]
TOKENS = [
    *("\0", "\t", ",", ";", "\n\n", '"', "'", "{", "}", "[", "]", "<", ">", "&#0;", "\ufeff", "\u2028", "𝟙", "é", "\x1b]0;x\x07"),
    *("nan", "inf", "-0", "1e999", "9" * 400, "0x1", "null", "true", "NA", "B-", "I-X", "Q0", "PK\3\4", "PAR1", "-1", "10" * 9),
    *('"id":', '{"id": 1}', "item", "gold", "<seg>", "<!--", "# k=", "//", "<utt>", "(a-1)", "@@", ".", "/" * 50, " " * 50),
]  # fmt: skip


def mutated(lines, dice):
    """Return the bytes of a file with some mutations."""
    lines = list(lines)
    for _ in range(dice.randint(1, 4)):
        kind, k = dice.randrange(9), dice.randrange(len(lines))
        if kind == 0:
            lines[k] = ""
        elif kind == 1:
            lines.insert(k, dice.choice(lines))
        elif kind == 2:
            lines[k] *= dice.choice((2, 50, 2000))
        elif kind == 3:
            dice.shuffle(lines)
        else:
            at = dice.randint(0, len(lines[k]))
            lines[k] = lines[k][:at] + dice.choice(TOKENS) * dice.choice((1, 1, 2, 300)) + lines[k][at + dice.randint(0, 3) :]
    content = bytearray("".join(lines).encode())
    if content and dice.random() < 0.3:
        content[dice.randrange(len(content))] = dice.randrange(256)
    if dice.random() < 0.2:
        content = content[: dice.randint(0, len(content))]
    if dice.random() < 0.1:
        content = bytearray(gzip.compress(bytes(content)))
        if dice.random() < 0.5:
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return bytes(content)


def fuzzed(number, folder):
    """Read and compare mutated files of some format; say what became of it."""
    dice = random.Random(f"files {number}")
    files = dice.choice(SEEDS)
    dice_for = dice.choice([*files])
    folder.mkdir(exist_ok=True)
    paths = {}
    for name, lines in files.items():
        paths[name] = folder / f"{name}{dice.choice(('', '.tsv', '.csv', '.json', '.jsonl', '.txt'))}"
        spoilt = name == dice_for or dice.random() < 0.3
        paths[name].write_bytes(mutated(lines, dice) if spoilt else "".join(lines).encode())
    gold = paths.pop("gold", None)
    try:
        sources = [parse_source(str(path)) for path in paths.values()]
        counts = read(*sources, gold=gold, options=Options(missing=dice.choice((None, "zero", "pairwise"))))
        compare_all(counts, trials=64, cluster="none", cache=False)
    except SigdaskError as error:
        assert error.exit_status == 2, error
        assert str(error)
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mutated_files_of_all_formats_are_read_or_refused(tmp_path):
    fuzzed(0, tmp_path / "first")  # what is compiled and imported is no matter of the file
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    endings = []
    for number in range(int(os.environ.get("SIGDASK_FUZZED", "500"))):
        begun = time.process_time()
        try:
            endings.append(fuzzed(number, tmp_path / str(number)))
        except Exception as error:
            error.add_note(f"fuzzed({number})")
            raise
        assert time.process_time() - begun < 20, number
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20
    assert "" in endings
    assert len(set(endings)) > len(endings) / 4
