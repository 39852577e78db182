"""Typed Parquet columns, read as texts and as numbers."""

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sigdask.formats.reading.columns import NotANumberError, to_numbers
from sigdask.formats.reading.files import format_cell
from sigdask.formats.reading.tables import read_table

TEXTS = ["a", " a", "b\t", "é", "e\u0301", "文", "\u3000x", "x\xa0", "", "0.5", "1e3", "NA", "nan", "x\x1c", "あ", "d1"]

KINDS = {
    "int8": lambda rnd: pa.array([rnd.choice([1, -5, None, 0]) for _ in range(9)], pa.int8()),
    "int64": lambda rnd: pa.array([rnd.choice([2**62 + 1, -(2**53) - 1, 7]) for _ in range(9)], pa.int64()),
    "uint64": lambda rnd: pa.array([rnd.choice([2**64 - 1, 3]) for _ in range(9)], pa.uint64()),
    "double": lambda rnd: pa.array([rnd.choice([0.1, 1 / 3, None, -0.0, 1e300]) for _ in range(9)]),
    "odd": lambda rnd: pa.array([rnd.choice([0.1, float("nan"), float("inf"), None]) for _ in range(9)]),
    "float": lambda rnd: pa.array([rnd.choice([0.1, 0.25, None]) for _ in range(9)], pa.float32()),
    "halffloat": lambda rnd: pa.array([np.float16(rnd.choice([0.1, 0.5])) for _ in range(9)], pa.float16()),
    "bool": lambda rnd: pa.array([rnd.choice([True, False, None]) for _ in range(9)]),
    "string": lambda rnd: pa.array([rnd.choice([*TEXTS, None]) for _ in range(9)]),
    "plain": lambda rnd: pa.array([rnd.choice(["a", "bc", ""]) for _ in range(9)], pa.large_string()),
    "dictionary": lambda rnd: pa.array([rnd.choice(["a", "bc", None]) for _ in range(9)]).dictionary_encode(),
    "decimal": lambda rnd: pa.array([Decimal(rnd.choice(["1.50", "2.25"])) for _ in range(9)]),
    "date": lambda rnd: pa.array([rnd.choice([0, 1]) for _ in range(9)], pa.timestamp("s")),
    "null": lambda rnd: pa.nulls(9),
}


def convert_or_describe_error(cells):
    try:
        return repr(to_numbers(cells).tolist())
    except NotANumberError as error:
        return error.index, str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_each_type_is_read_as_its_values_are_written(tmp_path, kind):
    for seed in range(20):
        rnd = random.Random(seed)
        values = KINDS[kind](rnd)
        parquet.write_table(pa.table({"x": values}), tmp_path / "t", row_group_size=rnd.choice([2, 100]))
        table = read_table(tmp_path / "t")
        expected = [format_cell(value).strip() for value in values.to_pylist()]
        assert list(table.columns["x"]) == expected
        assert table.columns["x"][2:5] == expected[2:5]
        assert convert_or_describe_error(table.columns["x"]) == convert_or_describe_error(expected)
        assert table.is_numeric("x") == (
            not isinstance(convert_or_describe_error(expected), tuple)
            or "finite" in convert_or_describe_error(expected)[1]
        )
