"""Tests of results as columns: views of rows, rows read back, slices of tables, joined tables."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import results_to_table

import sigdask
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.formats import read
from sigdask.report.presentable import Results
from sigdask.results.fields import iter_results
from sigdask.results.table import Table

YEH = Path(sigdask.__file__).parent / "examples" / "yeh2000.tsv"
ALPHA = 0.05


def draw_counts():
    """Draw correlated 0/1 scores of documents, with two equal systems and two units."""
    rng = np.random.default_rng(1)
    document = np.repeat(np.arange(30), 4)
    ease = rng.normal(0, 2, 30)[document]
    scores = {name: (ease + rng.normal(k / 4, 1, 120) > 0).astype(int) for k, name in enumerate("abcd")}
    scores["same"] = scores["a"]
    groups = {"document": [f"d{k}" for k in document], "half": ["x"] * 60 + ["y"] * 60}
    return Counts.from_scores(scores, groups=groups)


REAL_RESULTS = {
    "sampled twice": lambda: compare_all(draw_counts(), metrics=["mean"], trials=200),
    "one run, not adjusted": lambda: compare_all(draw_counts(), metrics=["mean"], trials=90, second_run=False, adjust="none"),
    "by document": lambda: compare_all(draw_counts(), metrics=["mean"], trials=99, unit="document"),
    "subsets, enumerated as well": lambda: compare_all(draw_counts(), metrics=["mean"], by="document", method="both", trials=50),
    "one-sided, Holm": lambda: compare_all(draw_counts(), metrics=["mean"], trials=64, alternative="less", adjust="holm"),
    "Yeh's example": lambda: compare_all(read(YEH), metrics=["recall", "f1", "precision"], trials=5000),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL_RESULTS)
def test_what_is_found_of_real_comparisons_makes_the_round_trip(name):
    real_results = REAL_RESULTS[name]()
    rows = [*real_results]
    rebuilt = results_to_table(rows, real_results.alpha)
    assert repr([*iter_results(rebuilt)]) == repr(rows)  # NaN is like itself there
    assert [*iter_results(rebuilt.take(slice(None, None, -1)))] == [*iter_results(rebuilt)][::-1]
    joined = Table.join([real_results.table.take(np.array([0])), real_results.table])
    assert repr([*iter_results(joined)]) == repr([rows[0], *rows])
    assert json.loads(real_results.to_json()) == real_results.to_dict()


def test_results_are_a_sequence_of_views():
    real_results = REAL_RESULTS["Yeh's example"]()
    rows = [*real_results]
    assert real_results[0] == rows[0]
    assert real_results[-1] == rows[-1]
    assert real_results[1:3] == tuple(rows[1:3])
    assert real_results.index(rows[2]) == 2
    with pytest.raises(IndexError):
        real_results[len(rows)]
    assert real_results == replace(real_results)
    assert real_results != replace(real_results, seed=1)
    assert real_results != rows


def test_what_is_missing_in_a_frame_is_missing_in_every_library():
    rows = [*REAL_RESULTS["one run, not adjusted"]()[:2]]
    rows[1] = rows[1].replace(subset={"column": "half", "value": "x"})
    stopped_results = Results(results_to_table(rows, ALPHA), 0, ALPHA)
    assert stopped_results.to_frame()["p_adjusted"].isna().all()
    assert stopped_results.to_frame("pyarrow")["p_adjusted"].to_pylist() == [None, None]
    for library, to_list in (
        ("pandas", lambda c: c.astype(object).where(c.notna(), None).tolist()),
        ("pyarrow", lambda c: c.to_pylist()),
    ):
        frame = stopped_results.to_frame(library)
        assert to_list(frame["subset"]) == [None, "x"]


def test_no_name_is_a_command_to_the_terminal():
    results = sigdask.compare_all({"a\x1b]0;title\x07": [1, 2, 3], "b\nc": [2, 2, 2]})
    for text in (repr(results), repr(results[0])):
        assert all(line.isprintable() for line in text.splitlines())
