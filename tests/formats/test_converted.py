"""Excel workbooks and Arrow files are read as the same CSV."""

import sys

import numpy as np
import pytest

from sigdask.errors import InputError, RefusedFileError
from sigdask.formats import Options, read

ROWS = [("id", "document", "a", "b"), *((f"s{k}", f"d{k // 4}", k / 20, (k * 7 % 20) / 20) for k in range(20))]
LABELS = [("id", "label"), *((f"s{k}", ("yes", "no")[k * k % 7 % 2]) for k in range(20))]


def write_csv(path, rows=ROWS):
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def write_workbook(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for rows in sheets:
        sheet = workbook.create_sheet()
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def write_arrow(path, rows=ROWS, kind="feather"):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather

    table = pa.table(dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True)))
    if kind == "feather":
        feather.write_feather(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write(table)
    return path


def assert_same(counts, other):
    assert (counts.systems, counts.ids, {*counts.groups}) == (other.systems, other.ids, {*other.groups})
    for name in other.fields:
        assert np.array_equal(counts.field(name), other.field(name))


@pytest.mark.parametrize("kind", ["xlsx", "feather", "stream"])
def test_a_table_is_that_of_the_csv(tmp_path, kind):
    path = tmp_path / f"scores.{kind}"
    written = write_workbook(path, ROWS) if kind == "xlsx" else write_arrow(path, ROWS, kind)
    assert_same(read(written), read(write_csv(tmp_path / "scores.csv")))


def test_labels_and_texts_of_workbooks_are_read(tmp_path):
    gold = write_workbook(tmp_path / "gold.xlsx", LABELS)
    systems = [write_workbook(tmp_path / f"{name}.xlsx", [LABELS[0], *LABELS[k:], *LABELS[1:k]]) for name, k in
               (("a", 1), ("b", 5))]  # fmt: skip
    plain = write_csv(tmp_path / "gold.csv", LABELS)
    assert_same(read(*systems, gold=gold), read(*systems, gold=plain))
    texts = [f'He said "{k}", or so, {k * k}.' for k in range(9)]
    (tmp_path / "reference.txt").write_text("\n".join(texts) + "\n")
    for name in "ab":
        write_workbook(tmp_path / f"{name}.xlsx", [(text,) for text in texts])
    counts = read(*systems, gold=tmp_path / "reference.txt", format="segments")
    assert [*counts.outputs.systems[0]] == texts


def test_several_sheets_with_data_are_an_error(tmp_path):
    path = write_workbook(tmp_path / "scores.xlsx", ROWS, LABELS)
    for sheet in ({}, {"sheet": "Sheet2"}):
        with pytest.raises(RefusedFileError, match=r"Sheet, Sheet1; choose one with format='auto:sheet=NAME'"):
            read(path, options=Options(own=sheet))


def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch):
    path = write_workbook(tmp_path / "scores.xlsx", ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'openpyxl'"):
        read(path)


def test_damaged_files_are_errors(tmp_path):
    path = write_arrow(tmp_path / "scores.arrow")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(RefusedFileError, match="cannot be read as an Arrow file"):
        read(path)
    path = write_workbook(tmp_path / "scores.xlsx", ROWS)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(RefusedFileError, match="a zip archive"):
        read(path)


def test_formulas_that_no_program_has_computed_are_an_error(tmp_path):
    rows = [ROWS[0], *((*row[:3], f"=C{k}*2") for k, row in enumerate(ROWS[1:], start=2))]
    path = write_workbook(tmp_path / "t.xlsx", rows)
    for missing in (None, "zero", "pairwise"):
        with pytest.raises(RefusedFileError, match="sheet1.xml: no formula has a value"):
            read(path, options=Options(missing=missing))
    gaps = [*ROWS[:5], ("s4", "d1", None, 0.5), *ROWS[6:]]
    assert read(write_workbook(tmp_path / "gaps.xlsx", gaps), options=Options(missing="zero")).n_items == 20


def test_hidden_rows_of_a_workbook_are_an_error(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = write_workbook(tmp_path / "t.xlsx", ROWS)
    workbook = openpyxl.load_workbook(path)
    workbook.worksheets[0].row_dimensions[len(ROWS) + 7].hidden = True  # a row without cells
    workbook.save(path)
    assert read(path).n_items == len(ROWS) - 1
    workbook.worksheets[0].row_dimensions[3].hidden = True
    workbook.save(path)
    with pytest.raises(RefusedFileError, match=r"the row of cell A3 is hidden, as by a filter.* show all rows"):
        read(path)
