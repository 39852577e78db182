"""The smallest detectable loss of a gate, simulated instead of by the normal approximation."""

import numpy as np
import pytest
from gate_helpers import gather, judge

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.nightly.gate.rules import NotWorse
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.statistics.power import compute_sign_power


def judge_counts(counts, rule, **options):
    results = list(
        compare_all(counts, metrics=["mean"], baseline="base", trials=9999, second_run=False, cluster="none", **options)
    )
    return judge([rule], results, gather(counts, results, [rule], baseline="base", trials=9999, by=options.get("by")))


RNG = np.random.default_rng(2)
BASE = RNG.normal(0.5, 0.2, 80)
NEW, WORSE = BASE + RNG.normal(0.0, 0.1, 80), BASE + RNG.normal(-0.03, 0.1, 80)
COUNTS = Counts.from_scores({"new": NEW.round(3), "worse": WORSE.round(3), "base": BASE.round(3)}, name="set")


def test_the_simulated_loss_is_near_the_normal_one_where_differences_are_near_normal():
    plain, simulated = (judge_counts(COUNTS, NotWorse(0.05, detectable=method)) for method in ("normal", "simulated"))
    for normal_finding, simulated_finding in zip(plain.rules[0].findings, simulated.rules[0].findings, strict=True):
        assert (normal_finding.key, normal_finding.passed, normal_finding.p_value) == (
            simulated_finding.key,
            simulated_finding.passed,
            simulated_finding.p_value,
        )
        assert simulated_finding.detectable == pytest.approx(normal_finding.detectable, rel=0.15)
        assert simulated_finding.detectable != normal_finding.detectable
    assert (
        sum("would be detected with power 0.8 (simulated)" in f.text for rule in simulated.rules for f in rule.findings)
        == 2
    )


def test_of_0_1_scores_it_is_the_loss_that_the_sign_test_finds():
    new, base = np.zeros(300), np.zeros(300)
    base[:20], new[10:26] = 1, 1  # 16 wins, of which 10 are of both
    counts = Counts.from_scores({"new": new, "base": base}, name="set")
    [finding] = judge_counts(counts, NotWorse(0.05, detectable="simulated")).rules[0].findings
    x = np.sqrt(
        np.roots([10 * (1 - finding.detectable), -284 * finding.detectable, -6 * (1 + finding.detectable)]).max() ** 2
    )
    weights = np.array([10 * x, 6 / x, 284])
    losses, wins, _ = weights / weights.sum()
    assert losses - wins == pytest.approx(finding.detectable, rel=1e-6)
    assert compute_sign_power(300, losses, wins, 0.05, 2) == pytest.approx(0.8, abs=2e-3)


def test_a_night_keeps_what_it_simulated_and_the_next_counts_nothing(tmp_path):
    rows = "\n".join(f"{a:.3f},{b:.3f}" for a, b in zip(BASE, WORSE, strict=True))
    (tmp_path / "scores.csv").write_text(f"base,new\n{rows}\n")
    (tmp_path / "plan.toml").write_text("""
trials = 4096
metrics = ["mean"]
cluster = "none"
[[test_set]]
name = "set"
systems = "scores.csv"
pairs = { baseline = "base" }
[gate]
[[gate.rules]]
rule = "not-worse"
detectable = "simulated"
""")
    first, second = (run_plan(load_plan(tmp_path / "plan.toml")) for _ in range(2))
    assert [finding.text for finding in first.gate.rules[0].findings] == [
        finding.text for finding in second.gate.rules[0].findings
    ]
    assert "with power 0.8 (simulated); " in first.gate.rules[0].findings[0].text
    assert second.n_counted == 0
