"""Plain tables, which are read by columns, give exactly what the careful reader gives."""

import gzip
import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read
from sigdask.formats.reading import columns as plain
from sigdask.formats.reading import tables

DATA = Path(__file__).parents[3] / "shared" / "data"

INSERTIONS = ["", '"', '""', ",", "\t", ";", "\r", "\n", "\r\n", "\n\n", "\0", " ", "\x1c", "\x85", "\xa0", "\u2028", "\u3000",
         "é", "e\u0301", "文", "-", "+", ".", "e", "E5", "1_0", "nan", "inf", "NA", "None", "null", "0x1", "１", "all",
         "mean", "Average", "{", "[1]", '{"a": 1}', "1e400", "123456789012345678901", "0.1", "\ufeff", "\ud7ff"]  # fmt: skip
"""What is put into files."""

N_QUICK, N_SEEDS = 40, 400


@pytest.fixture
def every_size(monkeypatch):
    monkeypatch.setattr(plain, "MIN_BYTES", 0)


def run_carefully(monkeypatch, work):
    """Run work with the reader of plain tables disabled."""
    with monkeypatch.context() as patch:
        patch.setattr(tables, "read_plain_columns", lambda *_: None)
        return work()


def run_or_describe_error(work):
    try:
        return work()
    except InputError as error:
        return str(error)


def read_table_parts(path):
    read_in = tables.read_table_file(path)
    columns = {name: list(column) for name, column in read_in.columns.items()}
    return columns, list(read_in.lines), read_in.header, list(read_in.notes), dict(read_in.nested)


def as_plain_values(counts):
    """Return everything that counts hold, as plain values."""
    outputs = counts.outputs
    return {
        "systems": counts.systems,
        "fields": {name: (str(counts.field(name).dtype), counts.field(name).tolist()) for name in counts.fields},
        "rounding": {name: counts.rounding(name) for name in counts.fields},
        "ids": None if counts.ids is None else list(counts.ids),
        "groups": {name: list(column) for name, column in counts.groups.items()},
        "labels": (counts.labels, counts.predicted_labels),
        "present": None if counts.present is None else counts.present.tolist(),
        "held": {name: column_values.tolist() for name, column_values in counts.held.items()},
        "outputs": None
        if outputs is None
        else [repr(column.tolist()) for column in (*outputs.systems, outputs.gold) if column is not None],
        "suggested": counts.suggested,
        "warnings": counts.warnings,
    }


def read_counts(options, *paths, gold=None):
    format_ = detect([parse_source(str(path)) for path in paths], gold, options)
    return format_, as_plain_values(read(*paths, gold=gold, format=format_, options=options))


def draw_numbers(rnd, n):
    kind = rnd.choice(["{:.4f}", "{:.0f}", "{:.2e}", "{!r}", "{:.1f}"])
    cells = [kind.format(rnd.random() * rnd.choice([1, 1, 100])) for _ in range(n)]
    if rnd.random() < 0.2:
        cells[rnd.randrange(n)] = rnd.choice(["", "NA", "-1", "+.5", "5.", "007"])
    if rnd.random() < 0.1:
        cells[-1] = str(np.mean([0.0, *(float(cell or 0) for cell in cells[:-1] if cell != "NA")][-len(cells) + 1 :]))
    return cells


def draw_columns(rnd):
    """Draw the columns of a valid table: wide, long, or of labels."""
    n = rnd.randrange(2, 14)
    ids = [f"{rnd.choice(['item', 'q', 'é', ''])}{k}" for k in range(n)]
    if rnd.random() < 0.1:
        ids[-1] = rnd.choice(["mean", "all"])
    kind = rnd.randrange(4)
    if kind == 0:
        return {
            "id": ids,
            "doc": [f"d{k // 3}" for k in range(n)],
            "a": draw_numbers(rnd, n),
            "b": draw_numbers(rnd, n),
        }
    if kind == 1:
        return {
            "system": ["x"] * n + ["y"] * n,
            "item": ids * 2,
            "score": draw_numbers(rnd, 2 * n),
        }
    labels = [rnd.choice(["P", "Q", "yes", "-"]) for _ in range(3 * n)]
    if kind == 2:
        return {rnd.choice(["id", "text"]): ids, "gold": labels[:n], "a": labels[n : 2 * n], "b": labels[2 * n :]}
    return {"a": draw_numbers(rnd, n), "b": draw_numbers(rnd, n)}


def draw_table(rnd):
    """Draw the bytes of a table, which may be damaged."""
    mark, end = rnd.choice([",", "\t", ";"]), rnd.choice(["\n", "\n", "\r\n"])
    data = draw_columns(rnd)
    rows = [list(data), *map(list, zip(*data.values(), strict=True))]
    if rnd.random() < 0.1:
        rows = rows[1:]
    if rnd.random() < 0.3:
        rows = [[f'"{cell}"' if rnd.random() < 0.5 else cell for cell in row] for row in rows]
    if rnd.random() < 0.2:
        rows = [[f" {cell}" for cell in row] for row in rows]
    if rnd.random() < 0.1:
        rnd.shuffle(rows)
    text = end.join(map(mark.join, rows)) + (end if rnd.random() < 0.8 else "")
    for _ in range(rnd.choice([0, 0, 1, 1, 2, 4])):
        k = rnd.randrange(len(text) + 1)
        text = text[:k] + rnd.choice(INSERTIONS) + text[k + rnd.choice([0, 0, 1, 3]) :]
    content = text.encode("utf-8", "surrogatepass")
    if rnd.random() < 0.05:
        k = rnd.randrange(len(content) + 1)
        content = content[:k] + b"\xff" + content[k:]
    if rnd.random() < 0.1:
        content = b"\xef\xbb\xbf" + content
    return gzip.compress(content) if rnd.random() < 0.1 else content


def draw_list(rnd, n):
    cells = rnd.choice(
        [lambda: draw_numbers(rnd, n), lambda: [rnd.choice(["P", "Q", "R s", '"P"', "a\tb"]) for _ in range(n)]]
    )()
    head = rnd.choice([[], [], ["label"], ["score"], [""]])
    text = "\n".join([*head, *cells]) + rnd.choice(["", "\n", "\n\n", "\r\n", " \n"])
    if rnd.random() < 0.3:
        k = rnd.randrange(len(text) + 1)
        text = text[:k] + rnd.choice(INSERTIONS) + text[k:]
    return text.encode("utf-8", "surrogatepass")


def check_lists(tmp_path, monkeypatch, seed):
    rnd = random.Random(seed)
    paths = [tmp_path / name for name in ("gold.txt", "x.txt", "y.txt")]
    n = rnd.randrange(2, 9)
    for path in paths:
        path.write_bytes(draw_list(rnd, n))
        assert run_or_describe_error(lambda: read_table_parts(path)) == run_carefully(  # noqa: B023
            monkeypatch,
            lambda: run_or_describe_error(lambda: read_table_parts(path)),  # noqa: B023
        )
    work = lambda: run_or_describe_error(lambda: read_counts(Options(), *paths[1:], gold=paths[0]))  # noqa: E731
    assert work() == run_carefully(monkeypatch, work)
    work = lambda: run_or_describe_error(lambda: read_counts(Options(), *paths))  # noqa: E731
    assert work() == run_carefully(monkeypatch, work)


def check_files(tmp_path, monkeypatch, seed):
    """Check gold labels and a file for each system, joined by id in any order."""
    rnd = random.Random(seed)
    n = rnd.randrange(2, 12)
    rows = [[f"{rnd.choice('éab')}{k}", rnd.choice("PQR"), rnd.choice(["d1", "d2"])] for k in range(n)]
    paths = [tmp_path / name for name in ("gold.csv", "x.csv", "y.csv")]
    for k, path in enumerate(paths):
        file_rows = [
            [cell if rnd.random() < 0.9 or not k else rnd.choice("PQR-") for cell in row[: 3 if not k else 2]]
            for row in rows
        ]
        for row, (name, *_) in zip(file_rows, rows, strict=True):
            row[0] = name
        if rnd.random() < 0.5:
            rnd.shuffle(file_rows)
        if rnd.random() < 0.2:
            file_rows[rnd.randrange(n)][rnd.randrange(2)] = rnd.choice(["", "a0", "zz", "-"])
        if rnd.random() < 0.1:
            file_rows.pop()
        head = ["id", "gold", "doc"] if not k else ["id", rnd.choice(["pred", "gold"])]
        path.write_text("".join(",".join(row) + "\n" for row in [head, *file_rows]))
    label_map = rnd.choice([(), (("P", ("Q", "S")),)])
    options = Options(label_map=label_map, groups=rnd.choice([(), ("doc",)]))
    for work in (
        lambda: run_or_describe_error(lambda: read_counts(options, *paths[1:], gold=paths[0])),
        lambda: run_or_describe_error(lambda: read_counts(Options(columns={"gold": "gold"}), *paths)),
        lambda: run_or_describe_error(lambda: read_counts(Options(), paths[0])),
    ):
        assert work() == run_carefully(monkeypatch, work)


def check_table(tmp_path, monkeypatch, seed):
    rnd = random.Random(seed)
    path = tmp_path / "one.csv"
    path.write_bytes(draw_table(rnd))
    options = rnd.choice(
        [Options(), Options(), Options(groups=("doc",)), Options(missing="pairwise"), Options(align="position")]
    )
    assert run_or_describe_error(lambda: read_table_parts(path)) == run_carefully(
        monkeypatch, lambda: run_or_describe_error(lambda: read_table_parts(path))
    )
    work = lambda: run_or_describe_error(lambda: read_counts(options, path))  # noqa: E731
    assert work() == run_carefully(monkeypatch, work)


@pytest.mark.parametrize(
    "seeds", [range(N_QUICK), pytest.param(range(N_QUICK, N_SEEDS), marks=pytest.mark.slow)], ids=str
)
@pytest.mark.usefixtures("every_size")
def test_files_right_and_wrong_are_read_alike_by_both_readers(tmp_path, monkeypatch, seeds):
    for seed in seeds:
        check_table(tmp_path, monkeypatch, seed)
        check_lists(tmp_path, monkeypatch, seed)
        check_files(tmp_path, monkeypatch, seed)


def list_text_files():
    """Return all text files of the test data, smallest first."""
    files = (path for path in sorted(DATA.rglob("*")) if path.is_file() and path.suffix not in {".md", ".py", ".pdf"})
    return sorted(files, key=lambda path: path.stat().st_size)


@pytest.mark.skipif(not DATA.is_dir(), reason="the sets of data are not beside the project")
@pytest.mark.parametrize("most", [30_000, pytest.param(10**9, marks=pytest.mark.slow)])
def test_every_file_of_the_sets_of_data_is_read_alike_by_both_readers(monkeypatch, most):
    monkeypatch.setattr(plain, "MIN_BYTES", 0)
    files = [path for path in list_text_files() if path.stat().st_size < most]
    for path in files if most > 10**8 else files[::7]:
        read = partial(run_or_describe_error, partial(read_table_parts, path))
        assert read() == run_carefully(monkeypatch, read), path


@pytest.mark.usefixtures("every_size")
def test_most_tables_are_plain(tmp_path):
    n_plain = 0
    for seed in range(200):
        path = tmp_path / "one.csv"
        path.write_bytes(draw_table(random.Random(seed)))
        read_in = run_or_describe_error(lambda: tables.read_table_file(path))  # noqa: B023
        n_plain += not isinstance(read_in, str) and all(isinstance(c, Texts) for c in read_in.columns.values())
    assert n_plain > 80
