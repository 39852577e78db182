"""Tables of any separator, line end, quoting and compression hold what the csv module reads."""

import csv
import gzip
import io
import random

import pytest

from sigdask.formats import read


def draw_cell(dice):
    """Draw a score in one of the notations that Python's `float` takes."""
    value = dice.random() * dice.choice([1, 1, 100])
    return dice.choice(["{:.4f}", "{:.0f}", "{:.2e}", "{!r}", "-{:.1f}"]).format(value)


def draw_table(dice):
    """Draw a table of two systems, as text; some have names of more than ASCII, or of more than a word."""
    text = io.StringIO()
    quoting, end = dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), dice.choice(["\n", "\r\n"])
    writer = csv.writer(text, delimiter=dice.choice(",\t;"), quoting=quoting, lineterminator=end)
    writer.writerow(["item", "a", "b"])
    stem = dice.choice(["item", "q", "é", "文 ", 'x"y', "a,b"])
    writer.writerows([f"{stem}{k}", draw_cell(dice), draw_cell(dice)] for k in range(dice.randrange(3, 14)))
    return text.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gzip"])
def test_tables_hold_what_the_csv_module_reads(tmp_path, encoding):
    path = tmp_path / "t.csv"
    for seed in range(60):
        text = draw_table(random.Random(seed))
        path.write_bytes(gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding))
        delimiter = next(mark for mark in "\t;," if mark in text.splitlines()[0])
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
        counts = read(path, format="wide")
        assert list(counts.ids) == [row["item"] for row in rows], seed
        assert counts.field("score").tolist() == [[float(row["a"]), float(row["b"])] for row in rows], seed
