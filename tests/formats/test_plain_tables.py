"""Delimited tables hold what the csv module reads, rounded as `float` does; malformed ones are errors with a line."""

import csv
import gzip
import io
import random
import re

import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.interface import use_interface


def draw_cell(dice):
    """Draw a score in one of many notations."""
    value = dice.random() * dice.choice([1, 1, 100])
    return dice.choice(["{:.4f}", "{:.0f}", "{:.2e}", "{!r}", "-{:.1f}", "+{:.3f}", "{:.25f}"]).format(value)


def draw_table(dice):
    """Draw a table of two systems, as text; some have names of more than ASCII, or of more than a word."""
    text = io.StringIO()
    quoting, end = dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), dice.choice(["\n", "\r\n"])
    writer = csv.writer(text, delimiter=dice.choice(",\t;"), quoting=quoting, lineterminator=end)
    writer.writerow(["item", "a", "b"])
    stem = dice.choice(["item", "q", "é", "文 ", 'x"y', "a,b", "two\nlines ", "\n\n"])
    writer.writerows([f"{stem}{k}", draw_cell(dice), draw_cell(dice)] for k in range(dice.randrange(3, 14)))
    return text.getvalue() + dice.choice(["", end, 3 * end])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gzip"])
def test_tables_hold_what_the_csv_module_reads(tmp_path, encoding):
    path = tmp_path / "t.csv"
    for seed in range(60):
        text = draw_table(random.Random(seed))
        path.write_bytes(gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding))
        delimiter = next(mark for mark in "\t;," if mark in text.splitlines()[0])
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
        counts = read(path, format="wide")
        assert list(counts.ids) == [row["item"].strip() for row in rows], seed
        assert counts.field("score").tolist() == [[float(row["a"]), float(row["b"])] for row in rows], seed


def test_decimals_are_rounded_as_float_rounds_them(tmp_path):
    dice = random.Random(7)
    cells = [f"{dice.getrandbits(dice.randrange(1, 90))}e{dice.randrange(-330, 280)}" for _ in range(2000)]
    cells += ["9007199254740993", "0.1", "2.2250738585072011e-308", "5e-324", "1.7976931348623157e308"]
    path = tmp_path / "t.csv"
    path.write_text("item,a,b\n" + "".join(f"q{k},{cell},{k % 7}\n" for k, cell in enumerate(cells)))
    assert read(path, format="wide").field("score")[:, 0].tolist() == [float(cell) for cell in cells]


MALFORMED = {
    "a short row": ("item,a,b\n1,0,1\n2,1\n", 3),
    "a long row": ("item,a,b\n1,0,1\n2,1,0,1\n", 3),
    "a blank row": ("item,a,b\n1,0,1\n\n2,1,0\n", 3),
    "a blank row among quoted breaks": ('item,a,b\n"1\n\n",0,1\n\n2,1,0\n', 5),
    "a stray quote within a cell": ('item,a,b\n1,0,1\n2"x,1,0\n', 3),
    "an unclosed quote behind closed ones": ('item,a,b\n"1",0,"1"\n2,1,"0\n3,0,1\n', 3),
    "a repeated column": ("item,a,a\n1,0,1\n2,1,0\n", 1),
    "a column without a name": ("item,a,\n1,0,1\n2,1,0\n", 1),
    "a byte that is not UTF-8": (b"item,a,b\n1,0,1\n\xe9,1,0\n", 3),
    "a zero byte": ("item,a,b\n1,0,1\n2\0,1,0\n", 3),
    "a word": ("item,a,b\n1,0,1\n2,high,0\n", 3),
    "an infinite score": ("item,a,b\n1,0,1\n2,inf,0\n", 3),
    "a number with separators": ("item,a,b\n1,0,1\n2,1_000,0\n", 3),
    "no header": ("0.5,0.25\n0,1\n", 1),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_table_is_an_error_with_its_line(tmp_path, kind):
    content, line = MALFORMED[kind]
    (path := tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=rf"t\.csv, line {line}\b"):
        read(path, format="wide")


def test_quotation_marks_are_text_where_the_user_says_so(tmp_path):
    (path := tmp_path / "t.tsv").write_text('item\ta\tb\n5" disk\t1\t0\n"x\t0\t1\n')
    with pytest.raises(InputError, match="auto:quotes=text"):
        read(path)
    assert list(read(path, format="auto:quotes=text").ids) == ['5" disk', '"x']


def test_marks_of_two_texts_enclose_no_rows_of_a_tsv_file_unless_the_user_says_so(tmp_path):
    (path := tmp_path / "t.tsv").write_text('item\ta\tb\n"1\t1\t0\n2\t0\t1\n3"\t0\t1\n')
    with pytest.raises(InputError, match=r"t.tsv, line 2.*auto:quotes=text.*auto:quotes=marks"):
        read(path)
    assert list(read(path, format="auto:quotes=text").ids) == ['"1', "2", '3"']
    assert list(read(path, format="auto:quotes=marks").ids) == ["1\t1\t0\n2\t0\t1\n3"]


@pytest.mark.parametrize("cell", ["", "NA", "NaN", "null", " "])
def test_a_missing_cell_is_missing(tmp_path, cell):
    (path := tmp_path / "t.csv").write_text(f"item,a,b\n1,0,1\n2,{cell},0\n3,1,1\n")
    assert read(path, format="wide", options=Options(missing="pairwise")).present[:, 0].tolist() == [True, False, True]


def test_a_decimal_comma_is_read_where_the_user_says_so(tmp_path):
    (path := tmp_path / "t.csv").write_text("item;a;b\n1;0,5;1\n2;1,25;0\n")
    with use_interface("command line"), pytest.raises(InputError, match="line 2, column 'a'") as raised:
        read(path)
    [option] = re.findall("--format ([^ ]+)", str(raised.value).partition("[")[0])
    for text in (path.read_text(), 'item,a,b\n1,"0,5",1\n2,"1,25",0\n'):
        path.write_text(text)
        assert read(path, format=option).field("score").tolist() == [[0.5, 1], [1.25, 0]]
    path.write_text("item;a;b\n1;0,5;1\n2;1.000;0\n")
    with pytest.raises(InputError, match=r"line 3, column 'a': found '1\.000'.*auto:decimal=\."):
        read(path, format="auto:decimal=,")


def test_a_first_line_that_may_be_a_label_is_refused_until_the_user_says_what_it_is(tmp_path):
    for name, labels in (("gold", ["label", "x", "label"]), ("a", ["label", "label", "x"])):
        (tmp_path / name).write_text("".join(f"{label}\n" for label in labels))
    with pytest.raises(InputError, match=r"labels?:header=no|table:header=no"):
        read(tmp_path / "a", gold=tmp_path / "gold", format="labels")
    assert read(tmp_path / "a", gold=tmp_path / "gold", format="labels:header=no").n_items == 3
    assert read(tmp_path / "a", gold=tmp_path / "gold", format="labels:header=yes").n_items == 2
