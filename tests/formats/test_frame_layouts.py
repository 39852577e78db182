"""Data frames are read like the same tables in files; the file is the reference."""

import numpy as np
import pandas as pd
import pytest

from sigdask import InputError, read

N_ITEMS = 40
RNG = np.random.default_rng(20)
A, B, C = (RNG.integers(0, 1000, N_ITEMS) / 1000 for _ in range(3))
IDS = [f"q{k}" for k in range(N_ITEMS)]
GOLD = [("yes", "no", "maybe")[k % 3] for k in range(N_ITEMS)]
SYSTEMS = ["a"] * N_ITEMS + ["b"] * N_ITEMS
LAYOUTS = {
    "wide": {"item": IDS, "a": A, "b": B, "c": C},
    "wide with units": {"item": IDS, "document": [k // 4 for k in range(N_ITEMS)], "a": A, "b": B},
    "wide by position": {"a": A, "b": B},
    "wide of integers": {"topic": range(N_ITEMS), "a": (A * 10).astype(int), "b": (B * 10).astype(int)},
    "wide of truth values": {"id": IDS, "a": A > 0.5, "b": B > 0.4},
    "long": {"system": SYSTEMS, "item": IDS * 2, "score": [*A, *B]},
    "long of metrics": {"system": SYSTEMS, "qid": IDS * 2, "AP": [*A, *B], "P@10": [*B, *C]},
    "long with metrics in rows": {"name": SYSTEMS * 2, "qid": IDS * 4, "measure": ["AP"] * 80 + ["RR"] * 80,
                                  "value": [*A, *B, *C, *A]},
    "labels": {"id": IDS, "gold": GOLD, "a": GOLD[1:] + GOLD[:1], "b": GOLD[:20] + GOLD[:20]},
    "responses": {"id": IDS, "of_interest": [k % 2 for k in range(N_ITEMS)], "a": [k % 3 % 2 for k in range(N_ITEMS)],
                  "b": [1] * N_ITEMS},
}  # fmt: skip
"""Columns of tables."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_frame_is_read_as_the_table_in_a_file(tmp_path, layout):
    frame = pd.DataFrame(LAYOUTS[layout])
    if "truth" in layout:  # as CSV, they are words
        frame.to_parquet(path := tmp_path / "table.parquet")
    else:
        frame.to_csv(path := tmp_path / "table.csv", index=False)
    counts, expected = read(frame), read(path)
    assert (counts.format, counts.systems, counts.n_items) == (expected.format, expected.systems, expected.n_items)
    assert (counts.roles, counts.suggested) == (expected.roles, expected.suggested)
    assert list(counts.ids or ()) == list(expected.ids or ())
    for name, values in expected.fields.items():
        assert np.asarray(counts.fields[name]).tolist() == np.asarray(values).tolist()


def test_the_layout_of_a_frame_may_be_said():
    frame = pd.DataFrame({"id": IDS, "seed": [42] * N_ITEMS, "temperature": [0.7] * N_ITEMS, "a": A, "b": B})
    assert read(frame, format="wide:systems=a+seed").systems == ("a", "seed")
    with pytest.raises(InputError, match="must be one of auto, wide, long, labels, responses"):
        read(frame, format="conll")


def test_what_is_unclear_in_a_frame_is_told_in_the_words_of_python():
    frame = pd.DataFrame({"id": IDS, "doc_id": IDS, "a": A, "b": B})
    with pytest.raises(InputError) as raised:
        read(frame)
    assert "columns={'item': 'doc_id'}" in str(raised.value)
    assert "--" not in str(raised.value)
    assert read(frame, columns={"item": "doc_id"}).systems == ("a", "b")
