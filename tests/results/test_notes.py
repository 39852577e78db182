"""Tests of notes as values: their kinds say what they are about, their numbers give the details."""

import json

import numpy as np
import pytest
from builders import build_rng

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.statistics.bounds import estimate_trials_to_decide

ODD_NAME = "undecided at dawn"
"""A system whose name begins as a note on p does."""


def select_notes(noted, kind):
    return [note for note in noted.notes if note.kind == kind]


def draw_gaussian(n_items, n_systems=2, seed=1, **options):
    scores = np.round(build_rng(seed).standard_normal((n_items, n_systems)), 3)
    return Counts.from_scores({f"s{k}": scores[:, k] for k in range(n_systems)}, **options)


def draw_near_alpha():
    """Draw scores of five systems, of which some pairs have a p near 0.05."""
    scores = np.round(build_rng(2).standard_normal((60, 5)) + np.linspace(0, 0.8, 5), 1)
    return Counts.from_scores({f"s{k}": scores[:, k] for k in range(5)})


def build_degenerate_labels():
    """Return labels of which one system predicts none, and another all."""
    gold = ["P", "N"] * 12
    return Counts.from_labels(gold, {ODD_NAME: ["N"] * 24, "all": ["P"] * 24, "right": gold})


def test_a_p_that_straddles_alpha_is_undecided_by_its_interval():
    results = compare_all(draw_near_alpha(), metrics=["mean"], trials=99, adjust="none", method="randomization")
    undecided = {(r.a, r.b): select_notes(r, "undecided") for r in results}
    assert 0 < sum(map(bool, undecided.values())) < 10
    for r in results:
        low, high = r.p_interval
        needed = estimate_trials_to_decide(r.n_extreme / r.n_trials, 0.05)
        expected = [{"alpha": 0.05, "low": low, "high": high, "needed": needed}] if low <= 0.05 < high else []
        assert [note.numbers for note in undecided[r.a, r.b]] == expected
        assert all(note.text.startswith("undecided at 0.05: ") for note in undecided[r.a, r.b])


@pytest.mark.parametrize("adjust", ["none", "holm"])
def test_a_name_that_reads_like_a_note_is_not_taken_for_one(adjust):
    results = compare_all(build_degenerate_labels(), metrics=["precision[P]"], trials=99, adjust=adjust)
    notes = [note for r in results for note in select_notes(r, "zero-division")]
    assert [note.numbers for note in notes] == [{"system": ODD_NAME, "score": 0.0}] * 2
    assert not any(w.startswith("unadjusted p undecided at dawn") for r in results for w in r.warnings)


def test_few_units_are_counted_and_those_that_cannot_reach_alpha():
    # 2^(1 - 4) = 1/8 is the least two-sided p of four units, STATISTICS
    results = compare_all(draw_gaussian(4, 3), metrics=["mean"], adjust="none")
    [note] = select_notes(results, "few-units")
    assert note.numbers == {
        "unit": "item", "fewest": 4, "most": 4, "alpha": 0.05, "n_comparisons": 3, "n_unreachable": 3, "of": 3
    }  # fmt: skip
    assert note.kind == "few-units"
    [note] = compare_all(draw_gaussian(7, 2), metrics=["mean"], adjust="none").notes  # 1/64
    assert (note.kind, note.numbers["n_unreachable"]) == ("few-units", 0)


@pytest.mark.parametrize(("adjust", "least"), [("none", 19), ("max-t", 19), ("holm", 59)])
def test_too_few_trials_are_counted_with_those_that_it_takes(adjust, least):
    # (0 + 1) / (trials + 1) times the comparisons (three, or one) is at most 0.05
    results, enough_trials = (
        compare_all(draw_gaussian(30, 3), metrics=["mean"], adjust=adjust, trials=n, method="randomization")
        for n in (9, least)
    )
    [note] = select_notes(results, "few-trials")
    assert note.numbers == {"n_trials": 9, "needed": least, "alpha": 0.05}
    assert not select_notes(enough_trials, "few-trials")


def test_verdicts_of_a_family_that_another_seed_can_turn_are_counted():
    results = compare_all(draw_near_alpha(), metrics=["mean"], trials=99, adjust="max-t")
    n = sum(r.p_adjusted_interval[0] <= 0.05 < r.p_adjusted_interval[1] for r in results)
    [note] = select_notes(results, "family-undecided")
    assert (note.numbers["n_comparisons"], note.numbers["of"], note.numbers["alpha"]) == (n, 10, 0.05)
    assert f"about {note.numbers['needed']:,} trials would decide" in note.text


def test_what_an_adjustment_does_not_hold_is_a_caveat():
    [note] = select_notes(compare_all(draw_gaussian(30, 3), metrics=["mean"], adjust="tukey", trials=99), "caveat")
    assert note.numbers == {"adjust": "tukey"}


def test_json_has_the_texts_and_beside_them_kinds_and_numbers():
    results = compare_all(build_degenerate_labels(), metrics=["precision[P]"], trials=99, adjust="holm")
    json_dict = json.loads(results.to_json())
    for json_part, noted in [(json_dict, results), *zip(json_dict["results"], results, strict=True)]:
        assert json_part["warnings"] == list(noted.warnings) == [note["text"] for note in json_part["notes"]]
        assert json_part["notes"] == [{"kind": n.kind, "text": n.text, **n.numbers} for n in noted.notes]
    assert "zero-division" in {note["kind"] for result in json_dict["results"] for note in result["notes"]}
    assert "notes" not in results.to_frame()
