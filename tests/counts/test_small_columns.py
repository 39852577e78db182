"""Small columns go through Python and large ones through arrays, with the same order, bytes, numbers and errors."""

import random

import numpy as np
import pytest

from sigdask.counts import checks, factors, texts
from sigdask.counts.texts import Texts
from sigdask.errors import InputError

LETTERS = ["a", "b", "ab", "\0", "é", "e\u0301", "日本", "\U0001f600", "zzzzzzzzz", "zzzzzzzzzz"]


def draw_columns():
    draw = random.Random(3)
    yield []
    for _ in range(200):
        yield ["".join(draw.choices(LETTERS, k=draw.randint(0, 3))) for _ in range(draw.randint(1, 12))]


@pytest.mark.parametrize("column", list(draw_columns())[:60])
def test_texts_are_sorted_and_framed_alike(column, monkeypatch):
    wide = Texts.from_values(["before", *column, "behind"])[1:-1]  # in a buffer with other texts
    small = wide.sorted, b"".join(map(bytes, wide.iter_framed()))
    monkeypatch.setattr(texts, "FEW_TEXTS", -1)
    again = Texts.from_values(column)
    assert small[1] == b"".join(map(bytes, again.iter_framed()))
    assert [column[k] for k in small[0][0]] == sorted(column, key=str.encode)
    assert small[0][1].tolist() == again.sorted[1].tolist()
    if len(set(column)) == len(column):
        assert (small[0][0].dtype, small[0][0].tolist()) == (again.sorted[0].dtype, again.sorted[0].tolist())


@pytest.mark.parametrize("column", list(draw_columns())[:60])
def test_texts_are_coded_and_found_alike(column, monkeypatch):
    small, found = (
        factors.Factor.from_values(column),
        ["a" in Texts.from_values(column), "x" in Texts.from_values(column)],
    )
    levels = sorted({*column}, key=str.encode)  # in Python
    assert (small.levels.tolist(), small.codes.tolist()) == (levels, [levels.index(text) for text in column])
    monkeypatch.setattr(factors, "FEW_TEXTS", -1)
    monkeypatch.setattr(texts, "FEW_TEXTS", -1)
    large = factors.Factor.from_values(column)
    assert (small.levels.tolist(), small.codes.tolist()) == (large.levels.tolist(), large.codes.tolist())
    assert small.codes.dtype == large.codes.dtype
    assert found == ["a" in Texts.from_values(column), "x" in Texts.from_values(column)] == ["a" in column, False]


def test_rows_are_numbered_alike(monkeypatch):
    draw = np.random.default_rng(4)
    for _ in range(60):
        columns = [draw.integers(-2, 3, draw.integers(0, 9))]
        columns += [draw.integers(0, 2, len(columns[0])).astype(kind) for kind in (bool, np.int8)]
        with monkeypatch.context() as patch:
            small = factors.number_rows(*columns)
            small_groups = [rows.tolist() for rows in factors.group_rows(small)]
            patch.setattr(factors, "FEW_ROWS", -1)
            large = factors.number_rows(*columns)
            large_groups = [rows.tolist() for rows in factors.group_rows(large)] if len(large) else []
        assert (small.dtype, small.tolist()) == (large.dtype, large.tolist())
        assert small_groups == large_groups


@pytest.mark.parametrize("few", [-1, 256])
def test_names_that_are_equal_in_canonical_form_are_refused(few, monkeypatch):
    monkeypatch.setattr(checks, "FEW_NAMES", few)
    checks.check_unique(["a", "b", "é"], "item id")
    for names, repeated in ((["a", "b", "a"], "a"), (["é", "b", "e\u0301"], "e\u0301"), (["", ""], "")):
        with pytest.raises(InputError, match="occurs twice") as caught:
            checks.check_unique(names, "item id")
        assert repr(repeated) in str(caught.value)


@pytest.mark.parametrize("prefix", ["", "item-", "x" * 19, "ab\0"])
def test_texts_that_begin_alike_are_sorted_by_their_ends(prefix):
    texts = [f"{prefix}{end}" for end in ("1", "", "10", "1\0", "02", "1", "z" * 20, "z" * 19)]
    texts += [f"{prefix}{k}" for k in range(300)]

    assert [texts[k] for k in Texts.from_values(texts).sorted[0].tolist()] == sorted(texts)
