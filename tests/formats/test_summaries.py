"""Rows of means, and row numbers of data frames."""

import pandas as pd
import pytest

from sigdask.formats import read

SCORES = pd.DataFrame(
    {"bert": [0.61, 0.22, 0.95, 0.4], "gpt": [0.5, 0.13, 0.9, 0.77]}, index=[f"t{k}" for k in range(4)]
)


def get_scores(counts):
    return {name: counts.field("score")[:, s].tolist() for s, name in enumerate(counts.systems)}


def as_lists(frame=SCORES):
    return {name: column.tolist() for name, column in frame.items()}


def write_csv(tmp_path, frame, **options):
    frame.to_csv(tmp_path / "t.csv", **options)
    return tmp_path / "t.csv"


def test_a_row_of_means_is_an_item_with_a_note(tmp_path):
    counts = read(write_csv(tmp_path, pd.concat([SCORES, SCORES.agg(["mean"])])))
    assert counts.n_items == 5
    assert any("row 'mean' is named like a summary, and taken for an item" in note for note in counts.scope)


@pytest.mark.parametrize("orient", ["columns", "records", "split", "index", "table"])
@pytest.mark.parametrize("index", [[], ["item"]])
def test_a_data_frame_is_read_in_every_json_layout(tmp_path, orient, index):
    frame = pd.DataFrame(
        {"item": [f"q{k}" for k in range(12)], "a": [k % 5 for k in range(12)], "b": [k % 7 for k in range(12)]}
    )
    (tmp_path / "t.json").write_text((frame.set_index(index) if index else frame).to_json(orient=orient))
    counts = read(tmp_path / "t.json")
    assert (counts.systems, get_scores(counts)) == (("a", "b"), as_lists(frame[["a", "b"]]))
