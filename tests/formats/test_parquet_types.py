"""Typed columns of Parquet and Arrow hold the numbers and texts of the same table in CSV."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from sigdask.errors import InputError
from sigdask.formats import Options, read

N = 12
SCORES = {
    "int8": pa.array([k % 5 - 1 for k in range(N)], pa.int8()),
    "uint64": pa.array([2**53 - k for k in range(N)], pa.uint64()),
    "double": pa.array([k / 7 for k in range(N)]),
    "float": pa.array([k / 4 for k in range(N)], pa.float32()),
    "halffloat": pa.array([np.float16(k / 2) for k in range(N)], pa.float16()),
    "decimal": pa.array([Decimal(f"{k}.25") for k in range(N)]),
    "string": pa.array([f" {k}e-1 " for k in range(N)]),
    "dictionary": pa.array([f"0.{k % 2}" for k in range(N)]).dictionary_encode(),
}
IDS = {
    "string": pa.array([f"q{k}é" for k in range(N)]),
    "large_string": pa.array([f" q{k}" for k in range(N)], pa.large_string()),
    "int64": pa.array([2**62 + k for k in range(N)]),
    "binary": pa.array([b"q%d" % k for k in range(N)]),
    "dictionary": pa.array([f"q{k}" for k in range(N)]).dictionary_encode(),
}


def write_table(path, table, kind):
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=5)
    else:
        feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("score", SCORES)
def test_scores_of_each_type_are_the_numbers_that_were_written(tmp_path, kind, score):
    table = pa.table({"item": IDS["string"], "a": SCORES[score], "b": SCORES[score]})
    counts = read(write_table(tmp_path / "t", table, kind), format="wide")
    assert counts.field("score")[:, 0].tolist() == [float(value) for value in SCORES[score].to_pylist()]


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("name", IDS)
def test_ids_of_each_type_are_texts(tmp_path, kind, name):
    table = pa.table({"item": IDS[name], "a": SCORES["double"], "b": SCORES["double"]})
    counts = read(write_table(tmp_path / "t", table, kind), format="wide")
    assert list(counts.ids) == [str(value).strip(" b'") for value in IDS[name].to_pylist()]


def test_nulls_and_nans_are_missing_and_infinity_is_an_error(tmp_path):
    values = [None, float("nan"), *range(N - 2)]
    table = pa.table({"item": IDS["string"], "a": pa.array(values, pa.float64()), "b": SCORES["double"]})
    path = write_table(tmp_path / "t", table, "parquet")
    counts = read(path, format="wide", options=Options(missing="pairwise"))
    assert counts.present[:, 0].tolist() == [False, False, *[True] * (N - 2)]
    infinite = table.set_column(1, "a", pa.array([*values[:-1], float("inf")], pa.float64()))
    with pytest.raises(InputError, match=f"line {N}, column 'a': found 'inf'"):
        read(write_table(path, infinite, "parquet"), format="wide")
