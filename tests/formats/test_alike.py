"""A table is read after others that look like it as it is read alone."""

import pytest

from sigdask import formats
from sigdask.errors import InputError

ROWS = "".join(f"i{k},{k * 7 % 5}.5,0.{k * 3 % 8}\n" for k in range(10))
TABLES = {
    "first": "item,x,y\n" + ROWS,
    "again": "item,x,y\n" + ROWS.replace("i", "word"),
    "windows": "item,x,y\n" + ROWS.replace("\n", "\r\n"),
    "missing": "item,x,y\n" + ROWS.replace("0.6", ""),
    "not a number": "item,x,y\n" + ROWS.replace("0.6", "nan"),
    "text": "item,x,y\n" + ROWS.replace("0.6", "noun"),
    "repeated id": "item,x,y\n" + ROWS.replace("i3", "i4"),
    "empty id": "item,x,y\n" + ROWS.replace("i3", ""),
    "mean": "item,x,y\n" + ROWS + "mean,2.5,0.35\n",
    "wide row": "item,x,y\n" + ROWS + "i11,1,2,3\n",
    "blank line": "item,x,y\n" + ROWS.replace("i3", "\ni3"),
    "no header": ROWS,
    "empty": "",
}


def read_table(path):
    """Return what reading a file gives, or its error."""
    try:
        counts = formats.read(path)
    except InputError as error:
        return str(error)
    fields = {name: values.tolist() for name, values in counts.fields.items()}
    return counts.systems, list(counts.ids), fields, counts.warnings, counts.labels


@pytest.mark.parametrize("order", [1, -1])
def test_a_table_is_read_after_others_as_it_is_read_alone(tmp_path, order):
    paths = [tmp_path / f"{name}.csv" for name in TABLES]
    for path in paths:
        path.write_text(TABLES[path.stem], newline="")
    alone = {path: repr(read_table(path)) for path in paths}
    with formats.remember_shapes():
        for path in paths[::order]:
            assert repr(read_table(path)) == alone[path], path.name
