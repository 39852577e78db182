"""Tests of what is computed for all comparisons at once, against each comparison alone."""

from itertools import combinations

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

import sigdask
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.analysis.comparison.study import judge_studies, plan_study
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.execution.run import count_jobs
from sigdask.results.fields import iter_results


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.slow
def test_dependence_of_many_pairs_is_the_analysis_of_variance_of_each(gaps):
    rng, document = build_rng(3), np.repeat(np.arange(12), 5)
    columns = {f"s{k}": rng.random(60) + rng.random(12)[document] * (k % 3) for k in range(7)}
    if gaps:
        columns["s2"][:7] = np.nan
    counts = Counts.from_scores(columns, groups={"document": [f"d{d}" for d in document]}, missing="pairwise")
    of_pairs = [r.dependence[0] for r in compare_all(counts, trials=10)]
    for found, (a, b) in zip(of_pairs, combinations(columns.values(), 2), strict=True):
        d = a - b
        groups = [d[in_group] for g in range(12) if (in_group := (document == g) & ~np.isnan(d)).any()]
        assert found.n_groups == len(groups)
        assert found.p_value == pytest.approx(stats.f_oneway(*groups).pvalue, rel=1e-6)


@pytest.mark.slow
def test_a_black_box_has_its_own_trials_and_enumeration_among_others():
    box = sigdask.metric(lambda outputs, _: float(sum(outputs)), name="total", of="outputs")
    counts = Counts.from_scores({n: build_rng(k).integers(0, 9, 15) for k, n in enumerate("abc")})
    results = compare_all(counts, metrics=[box, "mean"], adjust="none", interval="none", cluster="none")
    assert {r.n_discordant > 12 for r in results} == {True, False}
    for r in results:
        is_enumerated = r.n_discordant <= (12 if r.metric == "total" else 20)
        assert (r.method == "exact") == is_enumerated
        assert r.n_trials == (2**r.n_discordant if is_enumerated else 10_000)


@pytest.mark.parametrize("adjust", [None, "holm"])
def test_studies_judged_in_one_table_have_the_results_that_each_has_alone(adjust):
    studies = []
    for k in range(4):
        rng = build_rng(30 + k)  # one set is skewed, so that only its adjusted p-values are of two methods
        columns = {
            name: np.round(rng.exponential(1, 40) ** 3 * sign if k == 2 else rng.random(40), 2)
            for name, sign in zip([f"one{k}", "two", f"three{k}"], (1, -1, 1), strict=True)
        }
        counts = Counts.from_scores(columns, name=f"set {k}", groups={"task": [f"t{i % 8}" for i in range(40)]})
        spec = CompareSpec(("mean",), trials=200, tests=("t",))
        studies.append(plan_study([(counts, spec)], adjust=adjust))
    jobs = [job for study in studies for job in study.jobs]
    tallies = dict(zip(jobs, count_jobs(jobs, cluster="none"), strict=True))
    assert len({study.layout for study in studies}) == 1
    table, results = judge_studies(studies, tallies)
    alone = [study.build_results([tallies[job] for job in study.jobs]) for study in studies]
    for joint, single in zip(results, alone, strict=True):
        assert joint == single
        assert set(joint.table.a.levels) <= {f"one{joint[0].test_set[-1]}", "two"}
    assert [*iter_results(table)] == [result for single in alone for result in single]
