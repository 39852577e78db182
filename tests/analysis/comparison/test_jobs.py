"""Tests of the columns that list what is compared, pair by pair against the definition."""

from itertools import combinations

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

import sigdask
from sigdask.analysis.comparison import nesting
from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.analysis.comparison.study import judge_studies, prepare_study
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution.run import count_jobs
from sigdask.results.fields import iter_results

N, SYSTEMS = 30, "abcdef"
TASK = tuple("xyz"[k % 3] for k in range(N))


def draw_scores():
    """Draw scores of six systems: two with gaps of their own, one with two items only."""
    columns = {name: build_rng(k).integers(0, 3, N) / 4 for k, name in enumerate(SYSTEMS)}
    columns["b"][build_rng(20).random(N) < 0.3] = np.nan
    columns["e"][build_rng(21).random(N) < 0.6] = np.nan
    columns["f"][[k for k in range(N) if k not in {3, 4}]] = np.nan
    return columns


def build_jobs(**options):
    counts = Counts.from_scores(draw_scores(), groups={"task": TASK}, missing="pairwise")
    return ComparisonJobs.from_spec(
        counts, CompareSpec(("mean", "mean:better=lower"), by="task", **options), second_run=True
    )


@pytest.mark.parametrize("method", ["auto", "both", "randomization"])
def test_comparisons_stand_in_the_order_of_subsets_pairs_and_metrics_with_what_they_are_of(method):
    jobs, columns, expected = build_jobs(method=method, trials=100), draw_scores(), []
    for task in "xyz":
        for i, j in combinations(range(6), 2):
            a, b = (columns[SYSTEMS[k]] for k in (i, j))
            has_both = (np.array(TASK) == task) & ~np.isnan(a) & ~np.isnan(b)
            n_discordant = int((a[has_both] != b[has_both]).sum())
            if has_both.any():
                expected += [(task, i, j, m, int(has_both.sum()), int(has_both.sum()), n_discordant) for m in (0, 1)]
    c = jobs.comparisons
    listed_rows = [
        (c.subset[k].value, *(int(x[k]) for x in (c.a, c.b, c.metric, c.n_items, c.n_units, c.n_discordant)))
        for k in range(len(c))
    ]
    assert listed_rows == expected
    assert (c.enumerated == (method != "randomization")).all()
    assert (c.sampled == (method != "auto")).all()
    assert (c.n_trials == 100).all()
    assert c.describe(3) == "a and c by mean:better=lower"


@pytest.mark.parametrize("gaps", [False, True])
def test_dependence_of_many_pairs_is_the_analysis_of_variance_of_each(gaps, monkeypatch):
    rng, document = build_rng(3), np.repeat(np.arange(12), 5)
    columns = {f"s{k}": rng.random(60) + rng.random(12)[document] * (k % 3) for k in range(7)}
    if gaps:
        columns["s2"][:7] = np.nan
    counts = Counts.from_scores(columns, groups={"document": [f"d{d}" for d in document]}, missing="pairwise")
    comparison_jobs = ComparisonJobs.from_spec(counts, CompareSpec(("mean",), trials=10), second_run=False)
    [correlation] = nesting.compute_unit_correlations(comparison_jobs.comparisons, comparison_jobs.spec.units)
    assert np.flatnonzero(correlation.n_groups).tolist() == list(range(21))
    for k, (a, b) in enumerate(combinations(columns.values(), 2)):
        d = a - b
        groups = [d[in_group] for g in range(12) if (in_group := (document == g) & ~np.isnan(d)).any()]
        assert correlation.n_groups[k] == len(groups)
        assert correlation.p_value[k] == pytest.approx(stats.f_oneway(*groups).pvalue, rel=1e-6)
    monkeypatch.setattr(nesting, "MAX_COLUMNS", 8)  # two systems of two fields at a time, and so all pairs in tiles
    monkeypatch.setattr(nesting, "MAX_PAIRS", 2)
    [tiled] = nesting.compute_unit_correlations(comparison_jobs.comparisons, comparison_jobs.spec.units)
    for name in ("n_groups", "icc", "design_effect", "p_value"):
        assert getattr(tiled, name) == pytest.approx(getattr(correlation, name), rel=1e-9)


def test_a_black_box_has_its_own_trials_and_enumeration_among_others():
    box = sigdask.metric(lambda outputs, _: float(sum(outputs)), name="total", of="outputs")
    counts = Counts.from_scores({n: build_rng(k).integers(0, 9, 15) for k, n in enumerate("abc")})
    c = ComparisonJobs.from_spec(counts, CompareSpec((box, "mean")), second_run=False).comparisons
    assert c.n_trials.tolist() == [10_000, 2**20] * 3
    assert c.enumerated.tolist() == [bool(d <= most) for d, most in zip(c.n_discordant, [12, 20] * 3, strict=True)]
    with pytest.raises(
        InputError,
        match="p-value of a metric of whole outputs can only be enumerated or sampled, and 1[3-5] discordant units",
    ):
        ComparisonJobs.from_spec(counts, CompareSpec((box, "mean"), method="exact"), second_run=False)


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
        studies.append(prepare_study([(counts, spec, "two-sided")], adjust=adjust))
    jobs = [job for study in studies for job in study.jobs]
    tallies = dict(zip(jobs, count_jobs(jobs, cluster="none"), strict=True))
    assert len({study.layout for study in studies}) == 1
    table, results = judge_studies(studies, tallies)
    alone = [study.build_results([tallies[job] for job in study.jobs]) for study in studies]
    assert [(r.table.adjusted is None) for r in results] == [(r.table.adjusted is None) for r in alone]
    for joint, single in zip(results, alone, strict=True):
        assert joint == single
        assert set(joint.table.a.values) <= {f"one{joint[0].test_set[-1]}", "two"}
    assert [*iter_results(table)] == [result for single in alone for result in single]
