"""Tests of the columns that list what is compared, pair by pair against the definition."""

from itertools import combinations

import numpy as np
import pytest
from builders import build_rng, find_cells
from scipy import stats

import sigdask
from sigdask.analysis.comparison import nesting
from sigdask.analysis.comparison.jobs import ComparisonJobs, FamilyComparisons
from sigdask.analysis.comparison.pairs import CompareSpec, list_pairs
from sigdask.analysis.comparison.study import SetAnalysis, judge_studies, prepare_study
from sigdask.counts import Counts
from sigdask.counts.factors import group_rows, number_pairs, number_rows
from sigdask.errors import InputError
from sigdask.execution.run import count_jobs
from sigdask.metrics.forms import Bleu, Formula, Ratios, compute_gradient, compute_gradients
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


def test_what_has_no_item_in_common_is_told_apart_from_what_both_lack():
    counts = Counts.from_scores(draw_scores(), groups={"task": TASK}, missing="pairwise")
    left_out = SetAnalysis.from_spec(counts, CompareSpec(("mean",), by="task"), second_run=False).left_out
    has = {name: ~np.isnan(column) for name, column in draw_scores().items()}
    expected = [
        (task, a, b, "mean")
        for task in "xyz"
        for a, b in combinations(SYSTEMS, 2)
        if (in_task := np.array(TASK) == task).any()
        and not (has[a] & has[b] & in_task).any()
        and ((has[a] & in_task).any() or (has[b] & in_task).any())
    ]
    assert list(left_out) == expected
    assert expected


def test_every_comparison_finds_its_counts_where_its_slots_say():
    comparison_jobs = build_jobs(method="both", trials=64)
    c, cells = comparison_jobs.comparisons, comparison_jobs.cells
    tallies = {job: job.panel.tally(run=job.run, first=0, n_trials=job.n_trials) for job in comparison_jobs.jobs}
    for k in range(len(c)):
        pair_panel = c.panels[c.panel[k]].select([c.row[k]], [c.column[k]])
        for run, kind in enumerate(("first run", "second run")):
            [(job, row, column)] = find_cells([part for part in cells if part.kind == kind], k)
            pair_counts = tallies[job].counts[row, column]
            assert (pair_counts == pair_panel.tally(run=run, first=0, n_trials=64).counts[0, 0]).all()
        n_arrangements = 2 ** int(c.n_discordant[k])
        [(job, row, column)] = find_cells([part for part in cells if part.kind == "all arrangements"], k)
        assert job.n_trials == n_arrangements
        pair_counts = tallies[job].counts[row, column]
        enumeration = pair_panel.build_enumeration(0, 0)
        assert (pair_counts == enumeration.tally(run=0, first=0, n_trials=n_arrangements).counts[0, 0]).all()
        assert job.panel.compute_digests()[row, 0] == enumeration.compute_digests()[0, 0]
    assert (
        len(comparison_jobs.jobs) < len(c.panels) * 4
    )  # of three subsets and many panels, those of one size are one job


def test_a_study_says_where_the_counts_of_all_its_results_stand():
    rng = build_rng(1)
    document = [f"d{k // 2}" for k in range(120)]
    sets = [
        Counts.from_scores({n: rng.random(120) for n in "abc"}, groups={"document": document}, name="many"),
        Counts.from_scores({n: rng.integers(0, 2, 6) for n in "abcd"}, groups={"g": ["x"] * 6}, name="few"),
    ]
    levels = [("document",), ("item",)]
    requests = [
        (c, CompareSpec(("mean",), trials=50, levels=unit_levels), "two-sided")
        for c, unit_levels in zip(sets, levels, strict=True)
    ]
    study = prepare_study(requests, adjust="max-t")
    jobs, (many, few) = study.jobs, study.analyses
    found = [
        [
            (part.kind, jobs.index(job), row, column)
            for part in study.cells
            for job, row, column in find_cells([part], k)
        ]
        for k in range(9)
    ]
    for k in range(3):  # the first set's: by document, then by item, then in the family
        by_document, by_item = many.main.cells, many.contrasts[0].cells
        assert found[k] == [
            ("first run", 0, *by_document[0].row[[k]], 0),
            ("second run", 1, *by_document[1].row[[k]], 0),
            ("first run", 2, *by_item[0].row[[k]], 0),
            ("family", len(jobs) - 1, 0, 0),
        ]
    for k in range(3, 9):
        [(job, row, column)] = find_cells(few.main.cells, k - 3)
        assert found[k] == [("all arrangements", jobs.index(job), row, column), ("family", len(jobs) - 1, 0, 0)]
    assert jobs[-1].panel.is_whole


def test_half_a_million_comparisons_are_a_few_columns_and_two_jobs():
    rng = build_rng(4)
    counts = Counts.from_scores({f"s{k}": rng.integers(0, 2, 40) for k in range(300)})
    comparison_jobs = ComparisonJobs.from_spec(
        counts, CompareSpec(("mean",), method="randomization", trials=100), second_run=True
    )
    assert (len(comparison_jobs.comparisons), len(comparison_jobs.jobs), len(comparison_jobs.comparisons.panels)) == (
        44850,
        2,
        1,
    )
    assert comparison_jobs.jobs[0].panel is comparison_jobs.comparisons.panels[0]  # no copy: all its pairs are sampled
    default_jobs = ComparisonJobs.from_spec(counts, CompareSpec(("mean",), by=None), second_run=True)
    assert len(default_jobs.jobs) < 44850 / 64


def test_pairs_are_those_asked_for_in_their_order():
    counts = Counts.from_scores({n: [1, 2] for n in "abcd"})
    assert list_pairs(counts, None, None).tolist() == [list(pair) for pair in combinations(range(4), 2)]
    assert list_pairs(counts, None, "c").tolist() == [[0, 2], [1, 2], [3, 2]]
    assert list_pairs(counts, [("d", "a"), ("b", "c")], None).tolist() == [[3, 0], [1, 2]]
    assert list_pairs(counts, [], None).shape == (0, 2)
    with pytest.raises(InputError, match="no system 'z'"):
        list_pairs(counts, [("a", "z")], None)


def test_what_is_asked_of_several_sets_knows_systems_and_metrics_by_name():
    set_one = Counts.from_scores({n: build_rng(1).random(5) for n in "abc"}, name="one")
    set_two = Counts.from_scores({n: build_rng(2).random(5) for n in "cab"}, name="two")
    set_jobs = [
        ComparisonJobs.from_spec(c, CompareSpec((m,)), second_run=False)
        for c, m in ((set_one, "mean"), (set_two, "mean:better=lower"))
    ]
    family = FamilyComparisons.from_jobs(*set_jobs)
    assert [family.get_system_names(k) for k in range(6)] == [*combinations("abc", 2), *combinations("cab", 2)]
    names = "abc"
    assert "".join(names[code] for code in family.encode_systems("a")) == "aabcca"
    assert "".join(names[code] for code in family.encode_systems("b")) == "bccabb"
    assert family.metric.tolist() == [0, 0, 0, 1, 1, 1]
    assert family.panel.tolist() == [k // 3 + family.panel[0] for k in range(6)]
    assert family.select(np.array([4])).get_system_names(0) == ("c", "b")


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


@pytest.mark.parametrize(
    "form",
    [Ratios(((1, 0, 1), (0, 1, 0)), ((0, 1, 1), (1, 0, 0))), Bleu(), Formula("own", lambda a, b, c: a * b / (c + 1))],
    ids=["ratios", "BLEU", "a formula"],
)
def test_slopes_at_many_sums_are_those_at_each(form):
    n_fields = 10 if isinstance(form, Bleu) else 3
    sums = build_rng(6).integers(0, 50, (20, n_fields)).astype(float)
    sums[0] = 0
    with np.errstate(all="ignore"):
        expected = np.array([compute_gradient(form, sum_row) for sum_row in sums])
        assert compute_gradients(form, sums) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_rows_are_numbered_in_the_order_in_which_what_they_have_comes():
    rng = build_rng(2)
    first, second = rng.integers(-3, 3, 200), rng.integers(0, 4, 200)
    numbers = {}
    expected = [numbers.setdefault(pair, len(numbers)) for pair in zip(first.tolist(), second.tolist(), strict=True)]
    row_numbers = number_rows(first, second)
    assert row_numbers.tolist() == expected
    assert [rows.tolist() for rows in group_rows(row_numbers)] == [
        [k for k in range(200) if expected[k] == number] for number in range(len(numbers))
    ]
    assert number_rows(first[:0]).tolist() == []
    assert group_rows(first[:0]) == []
    pairs = rng.integers(0, 5, (50, 2))
    codes = np.array([0, 1, 0, 2, 1])
    values = np.array([(codes[i] + codes[j]) % 3 for i, j in pairs])
    pair_numbers = number_pairs(codes, pairs, lambda i, j: (codes[i] + codes[j]) % 3)
    assert number_rows(pair_numbers).tolist() == number_rows(values).tolist()


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


def test_studies_whose_results_have_other_columns_are_judged_apart():
    columns, spec = draw_scores(), CompareSpec(("mean",), trials=50)
    with_groups = Counts.from_scores(columns, name="x", groups={"task": TASK}, missing="pairwise")
    without = Counts.from_scores(columns, name="y", missing="pairwise")
    sided = [(with_groups, "two-sided"), (without, "two-sided"), (with_groups, "less"), (with_groups, "two-sided")]
    layouts = [prepare_study([(counts, spec, side)], adjust="holm").layout for counts, side in sided]
    assert layouts[0] == layouts[3]
    assert len(set(layouts)) == 3
