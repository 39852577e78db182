"""Tests of the note that few units decide a comparison: in reports, JSON and tables read from it."""

import json

import numpy as np

from sigdask import compare_all
from sigdask.counts import Counts
from sigdask.report.load import load_results

LOSSES = np.r_[np.full(2, -1.9), np.full(18, 0.1)]
GAINS = np.r_[[4.82, 5.19, 4.63, 5.81], np.linspace(-0.6, 0.7, 26).round(2)]


def compare_differences(d):
    scores = {"I": d, "II": np.zeros(len(d))}
    return compare_all(Counts.from_scores(scores), metrics=["mean"], cluster="none", interval="none")


def test_few_units_are_noted_if_a_contested_verdict_rests_on_them():
    assert "\nnote: 1 of 30 items decides it: without it the verdict would change" in str(compare_differences(GAINS))
    for d in (LOSSES, np.full(20, 0.1), np.r_[np.ones(12), np.zeros(30)]):
        assert " decide" not in str(compare_differences(d))


def test_json_has_the_note_with_its_numbers(tmp_path):
    results = compare_differences(GAINS)
    [row] = json.loads(results.to_json())["results"]
    [note] = row["notes"]
    assert (note["kind"], note["n_deciding"], note["changes"]) == ("few-units-decide", 1, "verdict")
    results.write(tmp_path / "r.json")
    again = load_results(tmp_path / "r.json")
    assert again[0].notes == results[0].notes
