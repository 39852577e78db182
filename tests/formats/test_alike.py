"""Tables that look alike are asked about once; the formats of all others are found as without it."""

import gzip
import random
import re

import pytest

from sigdask import formats
from sigdask.formats import remember_shapes
from sigdask.io.compression import set_variable

ROWS = [
    ("i1", "0.5", "0.25"), ("i2", "1.5", "0.75"), ("i3", "0.5", "0.5"), ("i4", "0.25", "0.5"), ("i5", "1", "0"),
    ("i6", "0", "1"), ("i7", "0.75", "0.25"), ("i8", "0.5", "1.25"), ("i9", "0.1", "0.3"), ("i10", "0.2", "0.6"),
]  # fmt: skip


def write_table(header=("item", "x", "y"), rows=ROWS, mark=",", end="\n"):
    return end.join(map(mark.join, (header, *rows))) + end


def with_column(k, cells, name=None):
    rows = [(*row[:k], cell, *row[k + 1 :]) for row, cell in zip(ROWS, cells, strict=True)]
    header = ["item", "x", "y"]
    header[k] = name or header[k]
    return write_table(header, rows)


ALIKE = {
    "first": write_table(),
    "again": write_table(rows=[(f"i{k + 20}", y, x) for k, (_, x, y) in enumerate(ROWS)]),
    "windows": write_table(end="\r\n"),
    "no last line end": write_table().rstrip("\n"),
    "more digits": with_column(1, [f"{k}.{k}{k * k}0" for k, _ in enumerate(ROWS)]),
    "long": with_column(1, [f"0.{k + 1}2345678901234567" for k, _ in enumerate(ROWS)]),
    "negative": write_table(rows=[(i, f"-{x}", y) for i, x, y in ROWS]),
    "numbered": write_table(rows=[(str(k), x, y) for k, (_, x, y) in enumerate(ROWS)]),
    "numbers": write_table(rows=[(str(7 * k % 11), x, y) for k, (_, x, y) in enumerate(ROWS)]),
    "short": write_table(rows=ROWS[:2]),
    "tabs": write_table(mark="\t"),
    "semicolons": write_table(mark=";"),
}
DIFFERENT = {
    "counting": with_column(2, map(str, range(1, 11))),
    "counting down": with_column(2, map(str, range(100, 0, -10))),
    "constant": with_column(2, ["0.5"] * 10),
    "zeros": with_column(2, ["0"] * 10),
    "all constant": write_table(rows=[(i, "3", "7") for i, _, _ in ROWS]),
    "times": with_column(2, [f"17000{k * k:05}" for k in range(10)]),
    "milliseconds": with_column(2, [f"17000{k * k:05}000" for k in range(10)]),
    "missing": with_column(2, ["", *["0.5", "1.5"] * 4, "2"]),
    "percent": with_column(2, [f"{k * k}%" for k in range(10)]),
    "comma": with_column(2, [f'"{k},5"' for k in range(10)]),
    "quoted": with_column(0, [f'"i{k}"' for k in range(10)]),
    "nan": with_column(2, ["nan", *["0.5", "1.5"] * 4, "2"]),
    "power": with_column(2, ["1e3", *["0.5", "1.5"] * 4, "2"]),
    "truth": with_column(2, ["True", "False"] * 5),
    "labels": with_column(2, ["noun", "verb"] * 5),
    "repeated id": with_column(0, ["i1", "i1", *(f"i{k}" for k in range(8))]),
    "empty id": with_column(0, ["", *(f"i{k}" for k in range(9))]),
    "missing id": with_column(0, ["NA", *(f"i{k}" for k in range(9))]),
    "blanks": with_column(0, [f" i{k} " for k in range(10)]),
    "letters": with_column(0, [f"Ünder{k}" for k in range(10)]),
    "mean": write_table(rows=[*ROWS, ("mean", "0.53", "0.54")]),
    "mean 1": write_table(rows=[*ROWS, ("mean 1", "0.53", "0.54")]),
    "mean0": write_table(rows=[*ROWS, ("mean0", "0.53", "0.54")]),
    "acc": with_column(0, [f"acc{k}" for k in range(10)]),
    "no mean": write_table(rows=[("average", "7", "7"), *ROWS]),
    "mean first": write_table(rows=[("all", "0.53", "0.54"), *ROWS]),
    "quartile": write_table(rows=[*ROWS, ("25%", "0.2", "0.25")]),
    "wide row": write_table(rows=[*ROWS, ("i11", "1", "2", "3")]),
    "narrow row": write_table(rows=[*ROWS, ("i11", "1")]),
    "blank line": write_table() + "\n",
    "blank line within": write_table().replace("i3", "\ni3"),
    "mark": "\ufeff" + write_table(),
    "no rows": "item,x,y\n",
    "no header": write_table()[len("item,x,y\n") :],
    "one system": "\n".join(line.rpartition(",")[0] for line in write_table().splitlines()),
    "one row": write_table(rows=ROWS[:1]),
    "mean of columns": write_table(
        ("item", "a", "b", "mean"),
        [(i, x, y, f"{(float(x) + float(y)) / 2}") for i, x, y in ROWS],
    ),
    "no mean of columns": write_table(("item", "a", "b", "mean"), [(i, x, y, y) for i, x, y in ROWS]),
    "seconds": with_column(2, ["1", "2"] * 5, "latency"),
    "rank": with_column(2, ["1", "2"] * 5, "rank"),
    "spread": with_column(2, ["1", "2"] * 5, "x_std"),
    "step of scores": with_column(2, ["1", "0"] * 5, "step"),
    "steps": with_column(2, map(str, range(10)), "step"),
    "run of scores": with_column(2, ["0.5", "1.5"] * 5, "run"),
    "run": with_column(2, ["1", "2"] * 5, "run"),
    "labels and scores": with_column(2, ["1", "0"] * 5, "label"),
    "gold": with_column(2, ["1", "0"] * 5, "gold"),
    "predictions": write_table(("id", "label", "pred"), [(i, str(k % 2), "1") for k, (i, _, _) in enumerate(ROWS)]),
    "samples": with_column(0, ["i1", "i1", "i2", "i2", "i3", "i3", "i4", "i4", "i5", "i5"]),
    "metrics": write_table(("item", "BLEU", "chrF")),
    "tasks": with_column(0, [f"i{k}" for k in range(10)], "task"),
    "task of few": with_column(0, map(str, [0, 1] * 5), "task"),
    "index": with_column(0, map(str, range(10)), "index"),
    "unnamed": with_column(0, map(str, range(10)), ""),
    "two ids": write_table(("item", "id", "y"), [(i, str(k), y) for k, (i, _, y) in enumerate(ROWS)]),
    "same name": write_table(("item", "x", "x")),
    "fairseq": "item\tx\ty\n" + "".join(f"D-{k}\t-0.{k}\t1.{k}\n" for k in range(5)),
    "names in tabs": "item\t1\t2\n" + "".join(f"i{k}\t{k % 2}\t{k % 3}\n" for k in range(8)),
    "printed": "item\t1\t2\n" + "".join(f"i{k}\t0\t{k % 2}\n" for k in range(8)),
    "long enough": write_table(rows=[(f"i{k}", str(k * k % 7), str(k * k % 5)) for k in range(9000)]),
    "wider than long": write_table(("item", "a", "b", "c", "d"), [("i1", "1", "2", "3", "4"), ("i2", "2", "1", "5", "0")]),
    "empty": "",
}  # fmt: skip


def read_whole(path, options):
    """All that reading a file gives, or its error."""
    try:
        counts = formats.read(path, options=options)
    except formats.InputError as error:
        return str(error)
    fields = {name: (values.dtype, values.tolist()) for name, values in counts.fields.items()}
    outputs = None if counts.outputs is None else [list(map(str, column)) for column in counts.outputs.systems]
    groups = {name: list(column) for name, column in counts.groups.items()}
    present = None if counts.present is None else counts.present.tolist()
    ids = None if counts.ids is None else list(counts.ids)
    rounding = [counts.rounding(name) for name in counts.fields]
    return (counts.systems, ids, groups, counts.name, counts.warnings, counts.scope, counts.suggested, counts.files, fields,
            outputs, present, counts.labels, counts.n_items, counts.unit, rounding, len(counts.replicates))  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"groups": ("x",)}, {"align": "position"}])
def test_a_table_is_read_after_others_that_look_alike_as_it_is_read_alone(tmp_path, settings):
    paths = []
    for name, text in (ALIKE | DIFFERENT).items():
        ends = (".csv", ".txt") if name == "first" else (".csv",)
        for end in ends:
            paths.append(tmp_path / f"{name}{end}")
            paths[-1].write_text(text, newline="")
    packed = tmp_path / "packed.csv"
    packed.write_bytes(gzip.compress(write_table().encode()))
    paths.append(packed)
    options = [formats.Options(name=path.stem, **settings) for path in paths]
    alone = list(map(read_whole, paths, options))
    with remember_shapes():
        for path, choice, expected in zip(paths, options, alone, strict=True):
            assert read_whole(path, choice) == expected, path.name


HEADS = (
    "seed",
    "subset",
    "gold",
    "human",
    "item",
    "segment",
    "lang",
    "label",
    "pred",
    "mean",
    "step",
    "n",
    "x_std",
    "1",
)
ID_HEADS = (*("item", "id", "qid") * 5, "idx", "task", "subset", "")
ID_SHAPES = (
    *("i0", "word0") * 8,
    "0",
    "0.0",
    "0e0",
    "0x0",
    "0_0",
    "word-0",
    "D-0",
    "0-0-0",
    "word",
    "+0",
    '"0"',
    "#0",
    "0%",
)
ID_WORDS = (*("item", "task", "mean", "all", "total", "nan", "inf", "none", "acc", "true", "std"), "macro")
WHOLE = (
    lambda k, dice: dice.randrange(2), lambda k, dice: dice.randrange(5), lambda k, dice: dice.randrange(10**5),
    lambda k, dice: k, lambda k, dice: 99 - 3 * k, lambda k, dice: k * k, lambda k, dice: 7, lambda k, dice: k // 2,
    lambda k, dice: 1_700_000_000 + dice.randrange(999), lambda k, dice: f"0{dice.randrange(2)}",
)  # fmt: skip
DECIMAL = (
    lambda k, dice: f"{dice.random():.3f}", lambda k, dice: f"{k}.0", lambda k, dice: "0.5",
    lambda k, dice: f"{dice.randrange(2)}.0", lambda k, dice: f"170000{dice.randrange(9999):04}.5",
    lambda k, dice: f"0.{dice.randrange(10**25):025}",
)  # fmt: skip
CELLS = (
    "1e5",
    "1_000",
    "0x1",
    "+1",
    ".5",
    "1.",
    "inf",
    "nan",
    "",
    "NA",
    '"1"',
    "1,5",
    "1;5",
    "1\t5",
    "-0",
    "5%",
    "True",
    "B-X",
    "٣",
)
LINES = ("", " ", "# seed=1", "#,1,2", "mean,1,2", "i1", "i1,1,2,3,4", "i1,1,2,")


def draw_tables(dice):
    """Yield tables of one header; all but a few have rows of the same shapes."""
    mark = dice.choice(",,\t;")
    header = [dice.choice(ID_HEADS), "x", "y", *["z"][: dice.randrange(2)]]
    if dice.random() < 0.25:
        header[dice.randrange(1, len(header))] = dice.choice(HEADS)
    shape, kinds = dice.choice(ID_SHAPES), [dice.choice((WHOLE, DECIMAL)) for _ in header[1:]]
    for is_first in (True, False, False, False):
        columns = [
            kind[2 * (kind is WHOLE)] if is_first or dice.random() < 0.7 else dice.choice(kind) for kind in kinds
        ]
        word = "item" if is_first else dice.choice(ID_WORDS)
        step = dice.choice((1, 1, 7))
        rows = [
            [
                re.sub("0", str(k * step % 12 + 1), shape.replace("word", word)),
                *(str(cell(k, dice)) for cell in columns),
            ]
            for k in range(dice.choice((3, 5, 11)))
        ]
        if not is_first and dice.random() < 0.2:
            row, k = dice.choice(rows), dice.randrange(len(header))
            row[k] = dice.choice((*CELLS, rows[0][k]))
        lines = [mark.join(row) for row in (header, *rows)]
        if dice.random() < 0.04:
            lines.insert(dice.randrange(len(lines) + 1), dice.choice(LINES).replace(",", mark))
        if dice.random() < 0.02:
            lines = [line + mark for line in lines]
        end = dice.choice(("\n", "\n", "\n", "\r\n"))
        yield "\ufeff" * (dice.random() < 0.02) + end.join(lines) + end * (dice.random() < 0.9)


def test_tables_of_tricky_cells_are_read_after_others_as_they_are_read_alone(tmp_path, monkeypatch):
    calls, read_sources = [], formats._read_sources
    monkeypatch.setattr(formats, "_read_sources", lambda *args: [calls.append(1), read_sources(*args)][1])
    path, n_short = tmp_path / "t.csv", 0
    for seed in range(100):
        with remember_shapes():
            for text in draw_tables(random.Random(seed)):
                path.write_text(text, newline="")
                calls.clear()
                found = read_whole(path, formats.DEFAULTS)
                n_short += not calls
                with set_variable(formats._known_tables, None):
                    assert read_whole(path, formats.DEFAULTS) == found, (seed, text)
    assert n_short > 40
