"""Tests of the headline: sentences, checks in a line, and doubtful results."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from builders import build_result as fill_result
from builders import results_to_table

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.report import sentences as verdict
from sigdask.report.analyses import load_results
from sigdask.report.presentable import Results
from sigdask.report.sentences import find_doubtful, format_amount
from sigdask.results.columns import encode
from sigdask.results.record import NamedValues
from sigdask.results.table import DISAGREES
from sigdask.statistics.bounds import EQUAL_SCORES, Check


def build_result(**changes):
    """Return an exact result of Yeh's f1, with changed fields if any."""
    fields = {
        "test_set": "", "subset": None, "unit": "item", "a": "I", "b": "II", "metric": "f1", "higher_is_better": True,
        "score_a": 0.4747, "score_b": 0.3521, "difference": 0.1226, "alternative": "two-sided", "n_items": 160,
        "n_units": 160, "n_discordant": 86, "method": "exact", "n_trials": 2**20, "n_extreme": 31169,
        "p_value": 0.02955, "p_interval": (0.02955, 0.02955),
    }  # fmt: skip
    return fill_result(**fields | changes)


def build_verdict(*results, **options):
    return verdict.build_verdict(Results(results_to_table(results, 0.05), 0, 0.05, **options))


def build_headline(*results):
    return build_verdict(*results).headline


WEAK = {"p_value": 0.3, "p_interval": (0.3, 0.3)}
SAMPLED = {"method": "approximate", "n_trials": 999, "n_extreme": 29, "p_value": 0.03, "p_interval": (0.018, 0.046)}
OPEN = {"method": "approximate", "n_trials": 999, "n_extreme": 49, "p_value": 0.05, "p_interval": (0.034, 0.07)}
FLOOR = {**SAMPLED, "n_extreme": 0, "p_value": 0.001, "p_interval": (0.0, 0.0053)}
REVERSED = {"score_a": 0.3521, "score_b": 0.4747, "difference": -0.1226}


def test_the_verdict_of_two_systems_is_the_sentence_that_a_reader_wants(yeh):
    answer = verdict.build_verdict(compare_all(yeh, metrics=["f1"], trials=9999))
    assert answer.headline == "I is better than II on f1 by 0.123 [0.019, 0.234]; p = 0.0296 (exact)."
    assert answer.checks == "exact p agrees"  # a second run checks nothing then
    assert answer.is_checked
    assert answer.sentences == (answer.headline,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (SAMPLED, "I is better than II on f1 by 0.123; p = 0.03 (999 trials)."),
        (WEAK, "I and II are not significantly different on f1: I is ahead by 0.123; p = 0.3 (exact)."),
        (OPEN, "Whether I is better than II on f1 is undecided at 0.05: I is ahead by 0.123; p = 0.05 (999 trials)."),
        (
            {
                "equal_scores": NamedValues(p_value=0.06, p_adjusted=None, n_resamples=9999, why="", cause="x"),
                "checks": (Check(EQUAL_SCORES, "contested", 0.06, "x"),),
            },
            "Whether I is better than II on f1 is contested: I is ahead by 0.123; p = 0.0296 (exact), but p = 0.06 in the equal-score test (x).",
        ),
        (FLOOR, "I is better than II on f1 by 0.123; p at most 0.001 (999 trials)."),
        ({"p_adjusted": 0.2}, "I and II are not significantly different on f1: I is ahead by 0.123; adjusted p = 0.2."),
        (
            {"metric": "WER", "higher_is_better": False},
            "II is better than I on WER (lower is better) by 0.123; p = 0.0296 (exact).",
        ),
        (
            {"alternative": "greater", **REVERSED, "p_value": 0.98, "p_interval": (0.98, 0.98)},
            "I does not score significantly higher than II on f1: it scores 0.123 lower; p = 0.98, one-sided (exact).",
        ),
        (
            {"difference": 0.0, "score_b": 0.4747, "p_value": 1.0, "p_interval": (1.0, 1.0)},
            "I and II score the same on f1, 0.4747; p = 1 (exact).",
        ),
        ({"n_discordant": 0, "difference": 0.0}, "I and II do not differ on f1: the metric counts both alike on every item."),
        (
            {"score_b": math.nan, "difference": math.nan, "p_value": 1.0, "p_interval": (1.0, 1.0)},
            "I and II cannot be compared on f1: a score is missing.",
        ),
        (
            {**OPEN, "n_trials": 0, "n_extreme": 0, "p_value": 1.0, "p_interval": (0.0, 1.0)},
            "I and II are not compared yet on f1: no trial is counted.",
        ),
        (
            {"subset": {"column": "domain", "value": "news"}},
            "I is better than II on f1 in domain news by 0.123; p = 0.0296 (exact).",
        ),
    ],
)  # fmt: skip
def test_one_comparison_reads_well_and_claims_no_more_than_is_known(changes, said):
    assert build_headline(build_result(**changes)) == said


def test_the_interval_is_of_the_better_systems_lead(yeh):
    answer = verdict.build_verdict(compare_all(yeh, metrics=["precision"], trials=999))
    assert "precision is contested: II is ahead by 0.146 [-0.005, 0.291]; p = 0.04 (exact), but" in answer.headline
    other_order = verdict.build_verdict(compare_all(yeh, metrics=["precision"], pairs=[("II", "I")], trials=999))
    assert re.search(r"II is ahead by 0\.146 \[-0\.\d+, 0\.29\d\]", other_order.headline)


def test_each_metric_has_a_sentence():
    answer = build_verdict(
        build_result(metric="recall"), build_result(metric="f1", **WEAK), build_result(metric="precision", **REVERSED)
    )
    assert answer.headline == " ".join(answer.sentences)
    assert answer.sentences[2] == "II is better than I on precision by 0.123; p = 0.0296 (exact)."


def draw_systems(n_items=60, names=6, step=0.12):
    rng = np.random.default_rng(1)
    base = rng.normal(size=n_items)
    return {f"s{k}": base + rng.normal(size=n_items) * 0.5 + step * k for k in range(names)}


def draw_counts(**options):
    return Counts.from_scores(draw_systems(**options), groups={"domain": [*("abcd" * 15)]})


def test_the_best_of_many_is_named_with_those_that_are_not_significantly_different():
    answer = verdict.build_verdict(compare_all(draw_counts(), trials=999, second_run=False))
    assert re.fullmatch(
        r"s5 scores best on mean, but is not significantly different from s4: ahead of the runner-up, s4, by "
        r"0\.20\d \[-0\.0\d+, 0\.4\d+\]; adjusted p = 0\.1\d*\.",  # the simultaneous interval
        answer.headline,
    )
    far = verdict.build_verdict(compare_all(draw_counts(step=1), trials=999, interval="none"))
    assert re.fullmatch(
        r"s5 is best on mean, significantly better than all 5 others: ahead of the runner-up, s4, by 1\.1; adjusted p at most 0\.001\.",
        far.headline,
    )


def test_against_a_baseline_those_are_counted_that_beat_it():
    answer = verdict.build_verdict(compare_all(draw_counts(), trials=999, baseline="s2"))
    assert re.fullmatch(
        r"2 of 5 systems are significantly better than s2 on mean: the best, s5, is ahead by 0\.4\d+ \[.*\]; "
        r"adjusted p at most 0\.001; 3 are not significantly different\.",
        answer.headline,
    )


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("A", "I"), ("B", "I"), ("C", "I")], "; 1 is not significantly different and 2 are not compared yet."),
        ([("A", "I"), ("B", "I"), ("B", "A")], "A scores best on f1, but is not compared yet with I and B: ahead"),
    ],
)
def test_what_no_trial_was_counted_of_is_called_so_among_others(pairs, said):
    nothing = {**OPEN, "n_trials": 0, "n_extreme": 0, "p_value": 1.0, "p_interval": (0.0, 1.0), "p_adjusted": 1.0}
    first = {"p_adjusted": 0.2} if pairs[-1] == ("C", "I") else nothing
    scores = {"A": 0.5, "I": 0.4, "B": 0.3, "C": 0.2}
    rows = [
        build_result(a=a, b=b, score_a=scores[a], score_b=scores[b], difference=scores[a] - scores[b], **what)
        for (a, b), what in zip(pairs, (first, nothing, nothing), strict=True)
    ]
    assert said in build_headline(*rows)


def test_a_check_that_disagrees_stands_before_the_answer(yeh):
    results = compare_all(yeh, metrics=["f1", "recall"], trials=999, method="randomization")
    path = "checks.second run.verdict"
    wrong = encode([DISAGREES, results.table[path][1]])
    broken = replace(results, table=results.table.replace(**{path: wrong}))
    answer = verdict.build_verdict(broken)
    assert not answer.is_checked
    assert answer.headline.startswith("Do not rely on this, a check disagrees. I is better than II on ")
    assert answer.checks == (
        "a check DISAGREES (second run in 1 of 2): do not use these p-values; run `sigdask verify` and report this"
    )


def test_differences_are_told_in_units_of_the_metric():
    assert format_amount(0.12257, (0.019, math.inf)) == "0.123 [0.019, inf]"
    assert format_amount(1.61725, (0.2, 3.04)) == "1.6 [0.2, 3.0]"
    assert format_amount(0.0004, (-0.3, 0.31)) == "0.0004 [-0.3000, 0.3100]"
    assert format_amount(0.04, (-0.0796, -0.00031)) == "0.040 [-0.080, -0.0003]"
    assert format_amount(0.0, (0.0, 0.0)) == "0.0 [0.0, 0.0]"


def test_doubtful_are_those_whose_interval_holds_alpha_of_the_p_that_the_verdict_is_of():
    adjusted = {**SAMPLED, "p_value": 0.001, "p_interval": (0.0001, 0.004), "p_adjusted": 0.048}
    rows = [
        build_result(**OPEN),
        build_result(**SAMPLED),
        build_result(p_value=0.05, p_interval=(0.05, 0.05)),  # exactly at alpha: no seed
        build_result(**adjusted, p_adjusted_interval=(0.03, 0.06)),
        build_result(**{**OPEN, "p_adjusted": 1.0}, p_adjusted_interval=(0.9, 1.0)),
        build_result(n_discordant=0, difference=0.0, **{**OPEN, "p_value": 1.0, "p_interval": (0.04, 1.0)}),
    ]
    assert sorted(find_doubtful(results_to_table(rows, 0.05)).tolist()) == [0, 3]


ONE_SIDED = "; the two-sided interval contains 0, the one-sided test rejects"


@pytest.mark.parametrize(
    ("wins", "losses", "how", "said"),
    [
        (6, 0, {}, ""),
        (5, 0, {}, "; the interval excludes 0, the test does not reject"),
        (5, 0, {"interval": "bootstrap"}, "; the interval excludes 0, the test does not reject"),
        (8, 2, {"alternative": "greater", "alpha": 0.06}, ""),  # an interval of another level
        (8, 2, {"alternative": "greater", "alpha": 0.055, "confidence": 0.945}, ONE_SIDED),
        (0, 5, {"alternative": "greater"}, ""),
    ],
)  # fmt: skip
def test_the_sentence_says_that_interval_and_test_disagree(wins, losses, how, said):
    """Of 40 items, five wins have an exact p of 0.0625; eight against two have 0.0547, one-sided."""
    ties = [1] * (40 - wins - losses)
    a, b = [1] * wins + [0] * losses + ties, [0] * wins + [1] * losses + ties
    results = compare_all({"A": a, "B": b}, **how)
    headline = verdict.build_verdict(results).headline
    assert ("interval" in headline) == bool(said)
    assert headline.endswith(f"{said}.")


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


def test_no_system_is_best_that_is_behind_another_on_their_common_items():
    """Each of three is above the next one on the 20 items that only these two have."""
    rng = np.random.default_rng(1)
    gap, base = np.full(20, math.nan), rng.random(20)
    better = base + 0.05 + rng.normal(0, 0.05, 20)
    scores = {"a": [*better, *gap, *base], "b": [*base, *better, *gap], "c": [*gap, *base, *better]}
    results = compare_all(Counts.from_scores(scores, missing="pairwise"), trials=999)
    headline = verdict.build_verdict(results).headline
    assert headline.startswith("3 of 3 comparisons on mean are significant: ")
    assert " best" not in headline


def test_the_verdict_on_many_groups_counts_the_contested_ones():
    """All differences of a pair are 1, so that the equal-score test cannot reject."""
    groups = {"task": [*"abcdefg" * 10]}
    counts = Counts.from_scores({"x": np.arange(70), "y": np.arange(1, 71)}, groups=groups)
    headline = verdict.build_verdict(compare_all(counts, by="task", adjust="none", trials=99)).headline
    assert headline.startswith("0 of 7 comparisons over 7 subsets are significant; 7 of 7 comparisons are contested.")


def test_all_systems_that_share_the_best_score_are_named():
    scores = [0.1, 0.5, 0.9, 0.2]
    results = compare_all({"a": scores, "b": scores, "c": scores, "d": [0, 0, 0, 0]}, trials=99)
    assert verdict.build_verdict(results).headline.startswith("a, b and c share the best score on mean")


@pytest.mark.parametrize(("alternative", "side"), [("greater", "better"), ("less", "worse")])
def test_a_system_that_is_far_on_the_other_side_is_not_called_not_different(alternative, side):
    scores = {"base": np.zeros(20), "low": np.linspace(-1, -2, 20), "high": np.linspace(1, 2, 20)}
    results = compare_all(scores, baseline="base", alternative=alternative, trials=999)
    assert verdict.build_verdict(results).headline.endswith(f"1 is not significantly {side}.")


def test_over_all_sets_equal_systems_share_a_score_and_the_least_p_is_a_bound():
    """Tables write the same bound."""
    groups = {"task": [*"ab" * 20]}
    same = Counts.from_scores({"x": np.arange(40), "y": np.arange(40)}, groups=groups)
    joint = verdict.build_verdict(compare_all(same, by="task", together=True, trials=99))
    assert joint.headline.startswith("not significant on mean (mean of 2 sets): x and y score the same; p = 1")
    scores = {"x": np.arange(40.0), "y": np.arange(40.0) + np.linspace(1, 2, 40)}
    results = compare_all(Counts.from_scores(scores, groups=groups), by="task", together=True, trials=999)
    assert "; p at most 0.001." in verdict.build_verdict(results).headline
    assert "≤ 0.001" in str(results)
