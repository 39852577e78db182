"""Tests of stopping: `compare` stops where a plan does, and reports which trials decided nothing."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from command import call_sigdask
from nights import write_plan

import sigdask
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.report.page import render_page
from sigdask.report.terminal import render
from sigdask.statistics.stopping import BesagClifford, ConfidenceSequence, compute_settled_after

RULES = {
    "besag-clifford": 'adjust = "holm"\nstopping = { rule = "besag-clifford" }',
    "besag-clifford:h=25": 'adjust = "none"\nstopping = { rule = "besag-clifford", h = 25 }',
    "confidence": 'stopping = { rule = "confidence-sequence" }',
    "confidence-sequence:epsilon=0.01": 'stopping = { rule = "confidence-sequence", epsilon = 0.01 }',
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("trials", [3000, 70_000])
def test_compare_stops_where_a_plan_stops_and_says_the_same(tmp_path, rule, trials):
    plan = load_plan(write_plan(tmp_path / "night", sets=1, systems=7, trials=trials, settings=RULES[rule]))
    planned = run_plan(plan, cluster="none").results["set0"]
    [test_set] = plan.test_sets
    counts = read(test_set.sources[0].path, options=Options(name="set0"))
    options = {"adjust": plan.adjust, "method": test_set.method}
    compared = compare_all(counts, metrics=["mean"], trials=trials, seed=3, stop=rule, cluster="none", **options)
    assert repr(list(compared)) == repr(list(planned))
    assert any(r.stopped.is_early for r in compared) or trials == 3000


def test_the_rule_may_be_a_value_and_brings_the_adjustment_of_plans():
    rng = np.random.default_rng(0)
    counts = Counts.from_scores({name: rng.integers(0, 9, 60) for name in "abcd"})
    by_name = compare_all(counts, metrics=["mean"], stop="besag-clifford:h=20", trials=20_000)
    assert list(compare_all(counts, metrics=["mean"], stop=BesagClifford(20), trials=20_000)) == list(by_name)
    assert by_name.family.adjust == "holm"
    decided = compare_all(counts, metrics=["mean"], stop=ConfidenceSequence(0.05, 0.001), trials=20_000)
    assert decided.family is None
    assert {r.stopped.rule for r in decided} == {"confidence-sequence"}
    result = sigdask.compare([5, 4, 3] * 9, [1, 4, 4] * 9, method="randomization", stop="besag-clifford")
    assert result.stopped is not None


@pytest.mark.parametrize("cluster", ["none", "threads"])
def test_exact_comparisons_metrics_and_subsets_stand_beside_those_that_stop(cluster):
    rng = np.random.default_rng(1)
    first_scores = rng.integers(0, 2, 300)
    scores = {
        "a": first_scores,
        "b": np.where(np.arange(300) < 8, 1 - first_scores, first_scores),
        "c": rng.integers(0, 2, 300),
    }
    counts = Counts.from_scores(
        scores, groups={"kind": ["x", "y"] * 150, "document": [str(k // 3) for k in range(300)]}
    )
    options = {"trials": 50_000, "by": "kind", "unit": "document", "cluster": cluster, "method": "both"}
    stopped = compare_all(counts, metrics=["mean"], stop="besag-clifford", **options)
    complete = compare_all(counts, metrics=["mean"], adjust="holm", **options)
    assert any(r.stopped for r in stopped)
    for result, full_result in zip(stopped, complete, strict=True):
        assert (result.exact, result.score_a, result.beside) == (
            full_result.exact,
            full_result.score_a,
            full_result.beside,
        )
        if result.stopped is None:
            assert (result.n_trials, result.n_extreme, result.p_value) == (
                full_result.n_trials,
                full_result.n_extreme,
                full_result.p_value,
            )
        elif result.stopped.is_early:
            assert result.p_value == pytest.approx(full_result.p_value, rel=1.5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stop": "besag"}, "stop = 'besag': expected besag-clifford[:h=N] or confidence[:epsilon=E]"),
        ({"stop": "besag-clifford:h=0"}, "expected besag-clifford:h=NUMBER, a whole number from 1 to 2"),
        ({"stop": f"besag-clifford:h={2**48 + 1}"}, "expected besag-clifford:h=NUMBER, a whole number from 1 to 2"),
        ({"seed": 2**63}, "seed = 9223372036854775808: must be at most 9,223,372,036,854,775,807"),
        ({"stop": "besag-clifford:epsilon=0.1"}, "expected besag-clifford:h=NUMBER"),
        ({"stop": "confidence:epsilon=2"}, "expected confidence:epsilon=NUMBER, a number between 0 and 1"),
        ({"stop": "besag-clifford", "adjust": "max-t"}, "max-t needs the same number of trials for every comparison"),
        (
            {"stop": "confidence", "adjust": "holm"},
            "gives decisions, not the p-values that holm needs: choose besag-clifford",
        ),
        ({"stop": "besag-clifford", "together": True}, "--together needs the same"),
    ],
)
def test_what_cannot_be_had_beside_a_rule_is_refused(options, said):
    counts = Counts.from_scores({"a": [1, 0, 1, 1], "b": [0, 1, 1, 0], "c": [1, 1, 1, 0]})
    with pytest.raises(InputError) as raised:
        compare_all(counts, metrics=["mean"], **options)
    assert said in str(raised.value)


SAMPLED = ("--trials", "50000", "--method", "randomization")


def test_the_command_stops_and_says_what_was_left_out(tmp_path):
    write_plan(tmp_path, sets=1, systems=5)
    result = call_sigdask("compare", "set0.csv", "--stop", "besag-clifford:h=20", *SAMPLED, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "stopped after" in result.stdout
    assert "stopping early saved" in result.stdout
    assert call_sigdask("compare", "set0.csv", "--stop", "soon", cwd=tmp_path).returncode == 2


def test_a_verdict_is_settled_where_the_curtailed_rule_says_in_the_mean_over_all_orders():
    # by enumeration of the places of k exceedances among n trials, in fractions
    for n, alpha in ((9, 0.3), (11, 0.25), (6, 0.05), (9, 0.5)):
        for k in range(n + 1):
            ends = [
                Fraction(count_needed_trials(set(positions), n, alpha))
                for positions in itertools.combinations(range(n), k)
            ]
            assert compute_settled_after(k, n, alpha) == pytest.approx(float(sum(ends) / len(ends)), rel=1e-12)


def count_needed_trials(positions, n, alpha):
    """Return after how many trials the verdict on (k + 1) / (n + 1) can no longer change."""
    for t in range(n + 1):
        k = len([position for position in positions if position < t])
        if ((k + 1) / (n + 1) <= alpha) == ((k + n - t + 1) / (n + 1) <= alpha):
            return t
    raise AssertionError


def test_thousands_of_comparisons_are_told_what_share_of_their_trials_decided_nothing():
    rng = np.random.default_rng(3)
    counts = Counts.from_scores({f"s{k}": rng.integers(0, 100, 40) for k in range(46)})
    options = {"metrics": ["mean"], "trials": 999, "second_run": False, "beside": False}
    results = compare_all(counts, adjust="none", **options)
    k = np.array([r.n_extreme for r in results])
    assert len(k) == 1035
    ends = np.where(k < 50, (999 - 50 + 1) * 1000 / (999 - k + 1), 50 * 1000 / (k + 1))
    message = (
        f"{1 - ends.sum() / (999 * len(k)):.1%} of the first run's trials were not needed, because the verdicts at 0.05"
    )
    assert message in render(results, verbose=True)
    assert message.replace("'", "&#39;") in render_page({"": results}, title="x")
    adjusted = compare_all(counts, adjust="holm", **options)
    ends = np.where(k < 50, 999, 50 * 1000 / (k + 1))
    assert f"at least {1 - ends.sum() / (999 * len(k)):.1%} of the first run's trials were not needed" in render(
        adjusted, verbose=True
    )
    one_pair = compare_all(counts, pairs=[("s0", "s1")], **options)
    assert "decided nothing" not in render(one_pair)
    stopped = compare_all(counts, stop="besag-clifford", **options | {"trials": 20_000})
    assert "decided nothing" not in render(stopped)
    rounds = [min(4096 if r.n_trials <= 4096 else 16_384 if r.n_trials <= 16_384 else 20_000, 20_000) for r in stopped]
    assert f"stopping early saved {100 * (1 - sum(rounds) / (20_000 * len(k))):.1f} % of" in render(stopped)
