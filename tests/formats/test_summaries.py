"""Rows and columns that are not scores: means, totals, row numbers of data frames."""

import json

import pandas as pd
import pytest

from sigdask.errors import InputError
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


@pytest.mark.parametrize("cell", ["inf", "nan", "-1e999"])
def test_an_infinite_score_above_a_mean_is_an_error_that_names_its_line(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"id,a,b\nx,1,2\ny,{cell},3\nz,2,4\nmean,2,3\n")
    with pytest.raises(InputError, match="line 3, column 'a': found"):
        read(tmp_path / "t.csv", format="wide")
    with pytest.raises(InputError, match="line 3, column 'a': found"):
        read(tmp_path / "t.csv")


def test_all_that_describe_adds_is_left_out(tmp_path):
    counts = read(write_csv(tmp_path, pd.concat([SCORES, SCORES.describe()])))
    assert get_scores(counts) == as_lists()
    assert len(counts.notices) == 8


@pytest.mark.parametrize("orient", ["columns", "records", "split", "index", "table"])
@pytest.mark.parametrize("index", [[], ["item"]])
def test_a_data_frame_is_read_in_every_json_layout(tmp_path, orient, index):
    frame = pd.DataFrame(
        {"item": [f"q{k}" for k in range(12)], "a": [k % 5 for k in range(12)], "b": [k % 7 for k in range(12)]}
    )
    (tmp_path / "t.json").write_text((frame.set_index(index) if index else frame).to_json(orient=orient))
    counts = read(tmp_path / "t.json")
    assert (counts.systems, get_scores(counts)) == (("a", "b"), as_lists(frame[["a", "b"]]))


def test_samples_and_ratings_have_no_summary_among_their_items(tmp_path):
    items = [*"abcd", "mean"]
    for name, values in (("x", [0, 1, 0, 1, 0.5]), ("y", [1, 1, 1, 0, 0.75])):
        rows = [{"__index_level_0__": k, "id": i, "acc": v} for k, (i, v) in enumerate(zip(items, values, strict=True))]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(tmp_path / "x.jsonl", tmp_path / "y.jsonl", format="samples")
    assert (counts.n_items, counts.suggested) == (4, ("acc",))
    assert any("'mean' sums up the other rows" in warning for warning in counts.notices)
    rows = [(s, i, v) for s in "ab" for i, v in (("1", 2.5), ("2", 4), ("all", 3.25))]
    text = "".join(f"{s}\t{i}\tr\t{v}\n" for s, i, v in rows)
    (tmp_path / "t.tsv").write_text("system\tseg_id\trater\tscore\n" + text)
    assert read(tmp_path / "t.tsv", format="ratings").ids == ("1", "2")
