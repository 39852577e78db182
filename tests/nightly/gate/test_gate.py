"""The gate: what passes, what fails, what is reported with it, and who is notified."""

import json
import math
import re
import time
from itertools import chain, repeat
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from gate_helpers import gather, judge
from scipy import stats
from servers import answer_requests

from sigdask.analysis.comparison.margins import MarginResult
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.nightly.gate.rules import Evidence, NonInferior, NotWorse, get_key
from sigdask.nightly.gate.verdicts import check_direction, compute_detectable_loss, compute_run_level
from sigdask.nightly.plan import Gate
from sigdask.nightly.report.gate import render, render_junit
from sigdask.nightly.run import gate as run_gate
from sigdask.nightly.run.gate import call_webhook


def compare_losses(losses, *, name="set", n=60, seed=0, **options):
    """Return the counts and results of systems that are worse than `base` by these losses."""
    rng = np.random.default_rng(seed)
    base = np.round(rng.normal(0, 1, n), 3)
    systems = {"base": base} | {
        f"s{k}": np.round(base - loss + rng.normal(0, 0.3, n), 3) for k, loss in enumerate(losses)
    }
    counts = Counts.from_scores(systems, name=name)
    return counts, list(
        compare_all(counts, metrics=["mean"], baseline="base", trials=9999, second_run=False, **options)
    )


def judge_losses(rule, losses, **options):
    counts, results = compare_losses(losses, **options)
    return judge([rule], results, gather(counts, results, [rule], baseline="base", trials=9999))


def test_a_loss_that_only_one_test_shows_is_contested_and_does_not_fail():
    """Of 1,000 answers 500 are right, of the baseline's 100 other ones 59: the chi-square test is the oracle."""
    given = np.repeat([[1, 0], [0, 1]], [1000, 100], axis=0)
    right = given * np.repeat([1, 0, 1, 0], [500, 500, 59, 41])[:, None]
    counts = Counts(("new", "base"), {"right": right, "given": given}, 1100, name="set")
    metric = BoundMetric("precision", ("right", "given"), Ratios(((1, 0),), ((0, 1),)))
    results = compare_all(counts, metrics=[metric], trials=9999, second_run=False)
    verdict = judge([NotWorse(0.05)], results, Evidence({"set": "base"}))
    [finding] = verdict.rules[0].findings
    assert (finding.passed, finding.is_contested, finding.p_value < 0.01) == (True, True, True)
    chi_square = stats.chi2_contingency([[500, 500], [59, 41]], correction=False).pvalue
    assert finding.p_equal_scores == pytest.approx(chi_square, abs=0.01)
    text = render(verdict)
    assert text.startswith("gate: passed, but 1 comparison contested: one of two tests shows a loss (see below)")
    assert "new is worse, contested, than base by precision on set: -0.09, p = 0.00" in text
    assert re.search(r", but p = 0\.08\d+ of the equal-score test \(unequal numbers of answers\): no failure", text)
    assert "contested" in ET.fromstring(render_junit(verdict, "plan").encode()).find(".//testcase/system-out").text
    assert json.loads(verdict.to_json())["rules"][0]["findings"][0]["is_contested"] is True


def test_a_worse_system_fails_and_a_better_one_does_not():
    rule = NotWorse(0.01)
    [finding] = judge_losses(rule, [0.0, 0.5]).rules[0].failures
    assert max(finding.p_value, finding.p_equal_scores) <= 0.01
    assert judge_losses(rule, [0.0, -0.5]).passed


def test_lower_is_better_turns_the_direction():
    base = np.arange(30) / 10
    counts = Counts.from_scores({"new": base + 1 + np.arange(30) % 3 / 10, "base": base})
    results = compare_all(counts, metrics=["mean:better=lower"], trials=999)
    evidence = gather(counts, results, [NotWorse(0.05)], baseline="base")
    assert not judge([NotWorse(0.05)], results, evidence).passed
    higher_results = compare_all(counts, metrics=["mean"], trials=999)
    assert judge(
        [NotWorse(0.05)], higher_results, gather(counts, higher_results, [NotWorse(0.05)], baseline="base")
    ).passed


def test_the_baseline_may_be_a_or_b():
    counts, _ = compare_losses([0.5])
    for pair in (("base", "s0"), ("s0", "base")):
        results = compare_all(counts, metrics=["mean"], pairs=[pair], trials=9999)
        verdict = judge([NotWorse(0.01)], results, gather(counts, results, [NotWorse(0.01)], baseline="base"))
        assert not verdict.passed
        assert verdict.rules[0].findings[0].gain < 0


@pytest.mark.slow
def test_the_smallest_detectable_loss_is_detected_four_times_in_five():
    """Simulate the power at the stated difference."""
    rule, n, n_detected = NotWorse(0.05), 80, 0
    stated = judge_losses(rule, [0.0], n=n).rules[0].findings[0].detectable
    for seed in range(200):
        n_detected += not judge_losses(rule, [stated], n=n, seed=1000 + seed).passed
    assert 0.68 < n_detected / 200 < 0.92


def test_the_smallest_detectable_loss_is_that_of_the_normal_tables():
    # z(0.95) + z(0.8) = 1.644854 + 0.841621 one-sided, z(0.975) + z(0.8) = 1.959964 + 0.841621 two-sided
    _, [two] = compare_losses([0.0], n=80)
    assert compute_detectable_loss(two, 2.0, 0.05) == pytest.approx(2 * (1.959964 + 0.841621), rel=1e-6)
    assert compute_detectable_loss(two.replace(alternative="less"), 2.0, 0.05) == pytest.approx(
        2 * (1.644854 + 0.841621), rel=1e-6
    )


def test_what_was_enumerated_is_limited_by_its_units_and_what_was_sampled_by_its_trials_too():
    _, [result] = compare_losses([0.0], n=60)
    few_trials = result.replace(method="approximate", n_trials=99)
    assert math.isinf(compute_detectable_loss(few_trials, 1.0, 0.0099))
    assert math.isfinite(compute_detectable_loss(few_trials, 1.0, 0.01))
    exact = few_trials.replace(method="exact", n_units=10)
    assert math.isfinite(compute_detectable_loss(exact, 1.0, 2 / 2**10))
    assert math.isinf(compute_detectable_loss(exact, 1.0, 1.99 / 2**10))
    assert compute_detectable_loss(exact, None, 0.5) is None
    assert math.isfinite(compute_detectable_loss(exact.replace(alternative="less"), 1.0, 1 / 2**10))


def test_a_set_too_small_to_show_a_loss_passes_and_has_no_number_for_infinity_in_json():
    verdict = judge_losses(NotWorse(0.01), [5.0], n=5)
    assert math.isinf(verdict.rules[0].findings[0].detectable)
    assert "could not fail" in render(verdict)
    document = json.loads(verdict.to_json())
    assert (document["passed"], document["rules"][0]["findings"][0]["detectable"]) == (True, None)


def test_non_inferiority_needs_evidence_where_not_worse_passes():
    small = [judge_losses(rule, [0.0], n=8, seed=1).passed for rule in (NotWorse(0.05), NonInferior(0.05, 0.05))]
    assert small == [True, False]
    assert judge_losses(NonInferior(0.2, 0.05), [0.0], n=200).passed
    assert not judge_losses(NonInferior(0.2, 0.05), [0.3], n=200).passed


def test_false_alarms_a_year_are_those_of_the_level_or_of_the_power_of_non_inferiority():
    _, results = compare_losses([0.0])
    key, rule = get_key(results[0]), NonInferior(1.0, 0.05)
    evidence = Evidence({"set": "base"}, {key: 1.0}, {(rule, key): MarginResult(0.01, "normal approximation")})
    first, second = judge([NotWorse(0.01), rule], results, evidence, runs_per_year=100).rules
    power = 0.5 * math.erfc((1.6448536 - 1.0) / math.sqrt(2))
    assert (first.alarms_per_year, second.alarms_per_year) == pytest.approx((1, 100 * (1 - power)), rel=1e-5)


def test_rules_that_share_the_false_alarms_of_a_year_divide_them_by_their_comparisons():
    """By hand: 2 a year in 365 runs, 3 and 9 of 12 comparisons."""
    rule = NotWorse(0.05, false_alarms_per_year=2)
    first, second = (compute_run_level(rule, n, 12, 365) for n in (3, 9))
    assert (first, second) == (pytest.approx(2 / 365 / 4), pytest.approx(2 / 365 * 3 / 4))
    alone = NotWorse(0.05, false_alarms_per_year=4)  # it shares them with nobody, and "at most 4.1" would be wrong
    assert 365 * compute_run_level(alone, 3, 0, 365) == 4
    assert compute_run_level(rule, 3, 12, 12) == pytest.approx(0.05 / 4)  # 2 in 12 runs are more than alpha
    assert compute_run_level(NotWorse(0.05), 3, 12, 365) == 0.05


def test_a_loss_whose_p_is_the_level_itself_fails():
    _, [result] = compare_losses([0.1], n=12)
    for p, is_passed in ((0.05, False), (math.nextafter(0.05, 1), True)):
        confirmed = result.equal_scores.replace(p_value=0.01)
        exact = result.replace(p_value=p, p_interval=(p, p), method="exact", n_trials=4096, equal_scores=confirmed)
        assert judge([NotWorse(0.05)], [exact], Evidence({"set": "base"})).passed is is_passed


def test_a_rules_p_is_the_smallest_of_the_losses():
    verdict = judge_losses(NotWorse(0.05), [0.5, -3.0])
    losses = [f for f in verdict.rules[0].findings if f.gain < 0]
    assert verdict.rules[0].p_value == min(max(f.p_value, f.p_equal_scores) for f in losses)
    assert judge_losses(NotWorse(0.05), [-3.0]).rules[0].p_value == 1.0


@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize("baseline", ["a", "b"])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_side_is_refused_where_it_cannot_show_a_loss(alternative, baseline, higher_is_better):
    # the other system scores 1, the baseline 2, or the other way round where less is better: which sign has a - b?
    a_loses = baseline == "b"
    difference = -1 if a_loses == higher_is_better else 1
    sides = "a", "b", baseline, alternative, "mean"
    if alternative in ("two-sided", "greater" if difference > 0 else "less"):
        check_direction(*sides, higher_is_better=higher_is_better)
    else:
        with pytest.raises(InputError, match=f"{'a' if a_loses else 'b'} is worse than {baseline}"):
            check_direction(*sides, higher_is_better=higher_is_better)


def test_a_rule_that_speaks_of_nothing_does_not_pass():
    _, results = compare_losses([0.0])
    for rule in (
        NotWorse(0.05, metrics=("BLEU",)), NotWorse(0.05, test_sets=("other",)), NotWorse(0.05, baseline="bass")
    ):  # fmt: skip
        verdict = judge([rule], results, Evidence({"set": "base"}))
        assert not verdict.passed
        assert "applies to no comparison, so nothing was shown" in render(verdict)
    assert verdict.rules[0].p_value == 1.0  # what the history keeps
    assert ET.fromstring(render_junit(verdict, "plan").encode()).get("failures") == "1"


def test_rules_speak_of_the_test_sets_and_metrics_they_name():
    (_, first), (_, second) = compare_losses([0.5], name="one"), compare_losses([0.0], name="two")
    evidence = Evidence({"one": "base", "two": "base"})
    assert judge([NotWorse(0.05, test_sets=("two",))], first + second, evidence).passed
    assert not judge([NotWorse(0.05, test_sets=("one",))], first + second, evidence).passed


def test_junit_counts_cases_and_failures_and_escapes_names():
    _, results = compare_losses([0.5, 0.0])
    renamed = [r.replace(a=f"<{r.a}>&\x07") for r in results]
    verdict = judge([NotWorse(0.01)], renamed, Evidence({"set": "base"}))
    root = ET.fromstring(render_junit(verdict, "night & day").encode())
    assert root.get("name") == "night & day"
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    failure = root.find("testsuite/testcase/failure")
    assert "significantly worse" in failure.get("message")
    assert root.find("testsuite").get("failures") == "1"


@pytest.fixture
def failed():
    return judge_losses(NotWorse(0.01), [0.5])


def redirect(status, location):
    return [f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 99999999\r\n\r\n".encode()]


OK = b"HTTP/1.1 200 OK\r\n"
HOSTILE_ANSWERS = {
    "garbage": (lambda _: [b"\0\xff<html>\r\n\r\n"], "no answer"),
    "an error": (lambda _: [b"HTTP/1.1 500 No\r\n\r\n"], "answered with status 500"),
    "no end of headers": (lambda _: chain([OK], repeat(b"X: y\r\n")), "no answer"),
    "no end of a header": (lambda _: chain([OK], repeat(b"x" * 999)), "no answer"),
    "no end of waiting": (lambda _: repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), "no answer within 4 s"),
    "no end of body": (lambda _: chain([OK + b"\r\n"], repeat(b"x" * 999)), ""),
    "nothing": (lambda _: [], "no answer"),
    "another host": (lambda _: redirect(307, "http://elsewhere.example/x"), "answered with status 307, a redirect"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if "waiting" in name else name for name in HOSTILE_ANSWERS]
)
def test_a_web_hook_may_answer_anything(failed, monkeypatch, name):
    monkeypatch.setattr(run_gate, "TIMEOUT", 4.0)
    answer, said = HOSTILE_ANSWERS[name]
    start = time.monotonic()
    with answer_requests(answer) as (port, requests):
        settings = Gate(rules=(), webhook=f"http://127.0.0.1:{port}/hook?q=1#part")
        words = list(call_webhook(settings, failed, "night"))
        assert [word.startswith(f"gate.webhook: {said}") for word in words] == [True] * bool(said)
        assert time.monotonic() - start < 30
        assert "significantly worse" in json.loads(requests[0][2])["text"]
        assert requests[0][0] == "POST /hook?q=1 HTTP/1.1"


def test_a_web_hook_that_cannot_be_called_is_told_without_its_secrets(failed):
    for url in ("http://127.0.0.1:1/s3cret", "ftp://ann:s3cret@h/x", "http://ann:s3cret@[::1/x", "http://h:s3cret/"):
        [word] = call_webhook(Gate(rules=(), webhook=url), failed, "night")
        assert word.startswith("gate.webhook: no answer (")
        assert "s3cret" not in word


def test_nobody_is_told_of_a_pass_unless_always():
    passed, url = judge_losses(NotWorse(0.01), [0.0]), "http://127.0.0.1:1/"
    assert [*call_webhook(Gate(rules=(), webhook=url), passed, "night")] == []
    assert len([*call_webhook(Gate(rules=(), webhook=url, when="always"), passed, "night")]) == 1
