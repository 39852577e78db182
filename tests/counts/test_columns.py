"""Columns of texts in Arrow have the order, the bytes and the errors of Python's."""

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from sigdask import compare, read
from sigdask.counts.texts import Texts, check_unique
from sigdask.errors import InputError
from sigdask.statistics import numbering

LETTERS = ["a", "b", "ab", "\0", "é", "e\u0301", "日本", "\U0001f600", "zzzzzzzzz", "zzzzzzzzzz"]


def draw_columns():
    draw = random.Random(3)
    yield []
    for _ in range(200):
        yield ["".join(draw.choices(LETTERS, k=draw.randint(0, 3))) for _ in range(draw.randint(1, 12))]


@pytest.mark.parametrize("column", list(draw_columns())[:60])
def test_texts_are_sorted_framed_coded_and_found_as_by_python(column):
    texts = Texts.from_values(["before", *column, "behind"])[1:-1]  # in a buffer with other texts
    encoded = [text.encode() for text in column]
    assert b"".join(map(bytes, texts.iter_framed())) == b"".join(len(t).to_bytes(8, "little") + t for t in encoded)
    assert [column[k] for k in texts.sorted[0]] == sorted(column, key=str.encode)
    factor, levels = Texts.from_values(column).encode(), [*dict.fromkeys(column)]
    assert (factor.levels.tolist(), factor.codes.tolist()) == (levels, [levels.index(text) for text in column])
    assert [sorted(levels, key=str.encode)[k] for k in factor.ranks] == column
    assert ["a" in texts, "x" in texts] == ["a" in column, False]
    assert texts[::-1] == column[::-1]
    assert factor[::-1] == column[::-1]


def test_rows_are_numbered_in_order_of_first_appearance():
    draw = np.random.default_rng(4)
    for _ in range(60):
        columns = [draw.integers(-2, 3, draw.integers(0, 9))]
        columns += [draw.integers(0, 2, len(columns[0])).astype(kind) for kind in (bool, np.int8)]
        rows = [*zip(*(column.tolist() for column in columns), strict=True)]
        known = [*dict.fromkeys(rows)]
        numbers = numbering.number_rows(*columns)
        assert numbers.tolist() == [known.index(row) for row in rows]
        groups = [own.tolist() for own in numbering.group_rows(numbers)]
        assert groups == [[k for k, row in enumerate(rows) if row == value] for value in known]


def test_names_that_are_equal_in_canonical_form_are_refused():
    check_unique(["a", "b", "é"], "item id")
    for names, repeated in ((["a", "b", "a"], "a"), (["é", "b", "e\u0301"], "e\u0301"), (["", ""], "")):
        with pytest.raises(InputError, match="occurs twice") as caught:
            check_unique(names, "item id")
        assert repr(repeated) in str(caught.value)


@pytest.mark.parametrize("prefix", ["", "item-", "ab\0", "long-prefix-of-ids-"])
@pytest.mark.parametrize("n_kinds", [5000, 300])
def test_long_columns_are_sorted_stably_by_their_bytes(prefix, n_kinds):
    draw = random.Random(n_kinds)
    texts = [
        f"{prefix}{'ä' * draw.randint(0, 2)}{draw.randrange(n_kinds):05}-{'z' * draw.randint(0, 9)}"
        for _ in range(3000)
    ]
    texts += [f"{prefix}{end}" for end in ("1", "", "10", "1\0", "02", "1", "z" * 20, "z" * 19)]
    column = Texts.from_values(["skipped", *texts])[1:]
    order, repeats = column.sorted
    expected = sorted(range(len(texts)), key=lambda k: texts[k].encode())  # Python's sort is stable
    assert order.tolist() == expected
    assert repeats.tolist() == [k > 0 and texts[expected[k]] == texts[expected[k - 1]] for k in range(len(texts))]


def test_columns_are_arrow_arrays_and_come_from_them():
    values = ["b", None, "ä", "b"]
    for array in (pa.array(values), pa.chunked_array([values[:1], values[1:]]), pa.array(values).dictionary_encode()):
        texts, factor = Texts.from_arrow(array), Texts.from_arrow(array).encode()
        assert list(texts) == list(factor) == ["b", "", "ä", "b"]
        assert (factor.levels.tolist(), factor.codes.tolist()) == (["b", "", "ä"], [0, 1, 2, 0])
        assert texts.array.to_pylist() == ["b", "", "ä", "b"]
        assert Texts.from_arrow(array)[np.array([3, 1])] == ("b", "")


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_half_of_a_character_is_refused_where_it_is_written(tmp_path, suffix):
    for name, term in (("gold", "t"), ("a", "t"), ("b", "\ud800")):
        rows = [{"id": str(k), "terms": ["t", term]} for k in range(2)]
        texts = {"json": json.dumps(rows), "jsonl": "\n".join(map(json.dumps, rows))}
        (tmp_path / f"{name}.{suffix}").write_text(texts[suffix])
    a, b, gold = (tmp_path / f"{name}.{suffix}" for name in ("a", "b", "gold"))
    with pytest.raises(InputError, match=rf"b\.{suffix}.*: half of a character, '\\ud800'"):
        read(a, b, gold=gold)
    for outputs in (["x", "\udce9"], ["\udce9", "x"]):
        with pytest.raises(InputError, match=r"'\\udce9'.*cannot be written in UTF-8"):
            compare(["x", "x"], outputs, gold=["x", "x"], metric="WER")
    with pytest.raises(InputError, match=r"b\\udce9'.*cannot be written in UTF-8"):
        Texts.from_values(["a", "b\udce9"])
