"""Agreement of metrics with people, against recorded results of WMT's toolkit and against SciPy after every swap."""

import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from command import call_sigdask
from scipy import stats

import sigdask
from sigdask.analysis.comparison.pairs import CompareSpec, list_comparisons
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.metrics import find_metric
from sigdask.randomization.panels.agreement import DecisionPanel
from sigdask.randomization.panels.cells import draw_signs, sort_metrics
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.statistics.ranking_letters import number_clusters

GROUPS = {"none": "none", "item": "item", "sys": "system"}
NAMES = {
    "pearson": "pearson", "spearman": "spearman", "kendall_b": "kendall", "acc23_eps0": "accuracy",
    "acc23_optimal": "acc-eq",
}  # fmt: skip
SYSTEM_NAMES = {"pearson": "pearson", "spearman": "spearman", "kendall_b": "kendall", "pairwise_accuracy": "accuracy"}


def compare(counts, metric, pairs=None, unit="item", **options):
    settings = {"interval": "none", "second_run": False, "seed": 1}
    return compare_all(counts, metrics=[metric], pairs=pairs, unit=unit, **settings | options)


@pytest.fixture(scope="module")
def recorded(shared_data):
    return json.loads((shared_data / "meta_wmt21ted_en-de" / "reference_scores.json").read_text())


@pytest.fixture(scope="module")
def data(shared_data, recorded):
    full = read(shared_data / "meta_wmt21ted_en-de" / "scores.csv", format="meta")
    systems, segments = {*recorded["subset"]["systems"]}, {*map(str, recorded["subset"]["segments"])}
    cells = zip(full.group("system"), full.group("segment"), strict=True)
    mask = np.array([system in systems and segment in segments for system, segment in cells])
    groups = {name: [v for v, inside in zip(full.group(name), mask, strict=True) if inside]
              for name in ("system", "segment")}  # fmt: skip
    own = {name: full.field(name)[mask] for name in ("human", "score")}
    return {"full": full, "subset": Counts(full.systems, own, int(mask.sum()), groups=groups)}


@pytest.mark.slow
@pytest.mark.parametrize("by", GROUPS)
@pytest.mark.parametrize("name", NAMES)
def test_segment_agreement_equals_that_of_the_public_toolkit(name, by, data, recorded):
    for part, counts in data.items():
        known = {m: values[by][name] for m, values in recorded["segment_level"][part].items() if name in values[by]}
        if known:
            scores = get_scores(build_panel(counts, f"meta-{NAMES[name]}:group={GROUPS[by]}"))
            assert {m: scores[m] for m in known} == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize("name", SYSTEM_NAMES)
@pytest.mark.slow
def test_system_agreement_equals_that_of_the_public_toolkit(name, data, recorded):
    for part, counts in data.items():
        scores = get_scores(build_panel(counts, f"meta-{SYSTEM_NAMES[name]}:level=system", "system"))
        known = recorded["system_level"][part]
        assert scores == pytest.approx({m: known[m][name] for m in counts.systems}, abs=1e-9)


@pytest.mark.slow
def test_soft_pairwise_accuracy_equals_that_of_the_public_toolkit_within_its_random_signs(data, recorded):
    for part, counts in data.items():
        scores = get_scores(build_panel(counts, "meta-spa:signs=20000"))
        known = recorded["system_level"][part]
        assert scores == pytest.approx({m: known[m]["spa_100000"] for m in counts.systems}, abs=0.003)


P_VALUES = [
    ("system level, Pearson", "none", "full", "meta-pearson:level=system", "system"),
    ("system level, pairwise accuracy (acc23, epsilon 0)", "none", "full", "meta-accuracy:level=system", "system"),
    ("segment level (subset), Pearson", "item", "subset", "meta-pearson:group=item", "item"),
    ("segment level (subset), Pearson", "sys", "subset", "meta-pearson:group=system", "item"),
    ("segment level (subset), acc23, epsilon 0", "item", "subset", "meta-accuracy:group=item", "item"),
    ("PairwisePermutationSigDiff (subset), acc23, both epsilons optimal", "sys", "subset",
     "meta-acc-eq:group=system,permute=pairs", "item"),
    ("PairwisePermutationSigDiff (subset), acc23, fixed epsilons", "item", "subset",
     "meta-accuracy:group=item,permute=pairs,epsilon=1", "item"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("title", "by", "part", "metric", "unit"), P_VALUES)
def test_p_equals_that_of_the_public_toolkit_within_both_monte_carlo_errors(
    title, by, part, metric, unit, data, recorded
):
    rows = [row for row in recorded["permutation_tests"][title][f"average_by {by}"]
            if row.get("epsilon1") == row.get("epsilon2")]  # fmt: skip
    pairs = [(row["metric1"], row["metric2"]) for row in rows]
    results = compare(data[part], metric, pairs, unit, alternative="less", trials=4000)
    for row, result in zip(rows, results, strict=True):
        assert -result.difference == pytest.approx(row["delta"], abs=1e-9)
        p = result.exact.p_hi if result.exact else result.n_extreme / result.n_trials
        # the toolkit compares without a tolerance: last digits drop swaps that tie with the observed difference
        ties = 0.07 if "accuracy" in title and row["metric1"] == "bleu" and row["metric2"] == "chrf" else 0.0
        error = math.sqrt(max(p * (1 - p), 1e-3) * (1 / row["k"] + 1 / 4000))
        assert abs(p - row["p"]) < 4.5 * error + ties


def make_data(n_systems=6, n_segments=9, n_sets=2, n_metrics=3, seed=0, share=0.9):
    """Return scores with ties and missing cells, of several sets whose systems have names of their own."""
    rng = np.random.default_rng(seed)
    cells = [
        (lp, f"{lp}/s{i}", f"{lp}/{k}") for lp in range(n_sets) for i in range(n_systems) for k in range(n_segments)
    ]
    cells = [cell for cell in cells if rng.random() < share]
    human = rng.integers(0, 4, len(cells)).astype(float)
    scores = human[:, None] * 0.4 + rng.integers(0, 6, (len(cells), n_metrics)) * rng.uniform(0.5, 2, n_metrics)
    columns = dict(zip(("language-pair", "system", "segment"), zip(*cells, strict=True), strict=True))
    groups = {name: [*map(str, column)] for name, column in columns.items()}
    metrics = tuple(f"m{k}" for k in range(n_metrics))
    return Counts(metrics, {"human": human[:, None], "score": scores}, len(cells), groups=groups)


def build_panel(counts, metric, unit="item"):
    counts = counts.with_unit(unit)
    [panel] = list_comparisons(counts, CompareSpec([metric], seed=1)).panels
    return panel


def get_scores(panel):
    pairs = {tuple(pair): scores for pair, scores in zip(panel.pairs.tolist(), panel.pair_scores[:, 0], strict=True)}
    names = ("bleu", "chrf", "chrfpp", "ter")
    return {names[m]: scores[side] for pair, scores in pairs.items() for side, m in enumerate(pair)}


def compute_accuracy(x, h, epsilon=0.0):
    pairs = [*itertools.combinations(range(len(x)), 2)]
    decided = [0 if abs(x[i] - x[j]) <= epsilon else np.sign(x[i] - x[j]) for i, j in pairs]
    right = [d == np.sign(h[i] - h[j]) for d, (i, j) in zip(decided, pairs, strict=True)]
    return np.mean(right) if pairs else np.nan


def compute_spa(x, h, signs):
    def wins(values):
        pairs = itertools.combinations(range(len(values)), 2)
        return np.array(
            [np.mean(signs @ (values[i] - values[j]) >= (values[i] - values[j]).sum() - 1e-6) for i, j in pairs]
        )

    return 1 - np.abs(wins(x) - wins(h)).mean()


SCIPY = {
    "pearson": lambda x, h: stats.pearsonr(x, h)[0] if np.ptp(x) > 1e-9 and np.ptp(h) else np.nan,
    "spearman": lambda x, h: stats.spearmanr(x, h)[0] if np.ptp(x) and np.ptp(h) else np.nan,
    "kendall": lambda x, h: stats.kendalltau(x, h)[0] if np.ptp(x) and np.ptp(h) else np.nan,
    "accuracy": compute_accuracy,
}


def score_slowly(counts, statistic, level, group, zero, x):
    """Return the agreement of one column of scores by SciPy, group by group."""
    human, sets = counts.field("human")[:, 0], np.array(counts.group("language-pair"))
    columns = {name: np.array(counts.group(name)) for name in ("system", "segment")}
    means = []
    for lp in dict.fromkeys(sets):
        here = sets == lp
        own = {"none": sets, "item": columns["segment"], "system": columns["system"]}[group][here]
        h, scores, systems = human[here], x[here], columns["system"][here]
        if level == "system":
            h, scores = (np.array([v[systems == s].mean() for s in np.unique(systems)]) for v in (h, scores))
            own = np.zeros(len(h))
            scores = np.round(scores, 9)
        parts = [(scores[own == g], h[own == g]) for g in np.unique(own)]
        if statistic == "acc-eq":
            sizes = {0.0, *(abs(a - b) for s, _ in parts for a, b in itertools.combinations(s, 2))}
            means.append(max(np.nanmean([compute_accuracy(s, v, e + 1e-9) for s, v in parts]) for e in sizes))
            continue
        values = np.array([SCIPY[statistic](s, v) if len(s) > 1 else np.nan for s, v in parts])
        means.append(np.nan_to_num(values).mean() if zero else np.nanmean(values))
    return np.mean(means)


def standardise(counts, statistic="", level="segment"):
    by_rank = statistic in {"spearman", "kendall"} and level == "segment"
    sets, scores = np.array(counts.group("language-pair")), counts.field("score")
    result = np.empty_like(scores)
    for lp in np.unique(sets):
        here = sets == lp
        result[here] = stats.rankdata(scores[here], axis=0) if by_rank else stats.zscore(scores[here]).round(12)
    return result


CASES = [
    ("pearson", "segment", "none"), ("pearson", "segment", "item"), ("pearson", "segment", "system"),
    ("spearman", "segment", "none"), ("spearman", "segment", "item"), ("kendall", "segment", "none"),
    ("kendall", "segment", "item"), ("accuracy", "segment", "system"), ("accuracy", "segment", "item"),
    ("acc-eq", "segment", "item"), ("acc-eq", "segment", "system"), ("pearson", "system", "none"),
    ("spearman", "system", "none"), ("kendall", "system", "none"), ("accuracy", "system", "none"),
]  # fmt: skip


@pytest.mark.parametrize("unit", ["item", "segment", "system"])
@pytest.mark.parametrize(("statistic", "level", "group"), CASES)
@pytest.mark.slow
def test_scores_after_swaps_are_those_that_scipy_gives(statistic, level, group, unit):
    if level == "system" and unit == "system":
        pytest.skip("system scores are standardised: the next test")
    large = group == "none" and level == "segment"  # groups of more than 64 cells are counted otherwise
    by_threshold = statistic == "acc-eq"  # SciPy's way tries all thresholds, so fewer cells
    n_trials = 2  # SciPy takes most of the time
    counts = make_data(9, 12, 1) if large else make_data(5, 6) if by_threshold else make_data()
    zero = ",undefined=zero" if statistic == "pearson" and group == "item" else ""
    panel = build_panel(counts, f"meta-{statistic}:level={level},group={group}{zero}", unit)
    z = standardise(counts, statistic, level)
    trials = compute_trial_scores(panel, first=5, n_trials=n_trials)
    swaps = draw_swaps_by_item(counts, panel, unit, first=5, n_trials=n_trials)
    for p, (i, j) in enumerate(panel.pairs):
        for t in range(n_trials):
            pseudo = np.where(swaps[t], z[:, j], z[:, i]), np.where(swaps[t], z[:, i], z[:, j])
            expected = [score_slowly(counts, statistic, level, group, bool(zero), x) for x in pseudo]
            assert trials[p, :, t] == pytest.approx(np.nan_to_num(expected), abs=1e-9)


@pytest.mark.slow
def test_thresholds_over_groups_whose_weights_have_no_small_common_denominator():
    n_systems = (11, 14, 17, 19, 23)  # of each item; their numbers of pairs have a common multiple above 2**31
    item, system = map(np.array, zip(*((k, i) for k, n in enumerate(n_systems) for i in range(n)), strict=True))
    rng = np.random.default_rng(2)
    human, scores = rng.integers(0, 4, len(item)).astype(float), rng.integers(0, 6, (len(item), 2)).astype(float)
    groups = {"language-pair": ["x"] * len(item), "segment": [*map(str, item)], "system": [*map(str, system)]}
    counts = Counts(("m0", "m1"), {"human": human[:, None], "score": scores}, len(item), groups=groups)
    panel = build_panel(counts, "meta-acc-eq:group=item")
    first, second = np.array([p for p in itertools.combinations(range(len(item)), 2) if item[p[0]] == item[p[1]]]).T
    weights = 1 / np.bincount(item[first])[item[first]] / len(n_systems)

    def score(x):
        d = x[first] - x[second]
        by_threshold = [np.where(abs(d) <= e + 1e-9, 0, np.sign(d)) for e in (0.0, *np.unique(abs(d)))]
        return max(weights[right].sum() for right in by_threshold == np.sign(human[first] - human[second]))

    z = standardise(counts)
    swaps = draw_swaps_by_item(counts, panel, "item", first=5, n_trials=3)
    expected = [[score(np.where(swap, z[:, 1 - k], z[:, k])) for swap in swaps] for k in (0, 1)]
    assert compute_trial_scores(panel, first=5, n_trials=3)[0] == pytest.approx(np.array(expected), abs=1e-9)


def compute_trial_scores(panel, first, n_trials):
    return np.stack([scores for *_, scores in panel.iter_trial_scores(run=0, first=first, n_trials=n_trials)])


def draw_swaps_by_item(counts, panel, unit, first, n_trials):
    from sigdask.randomization.stream import draw_swap_bits

    units = SwapUnits.from_counts(counts.with_unit(unit), 1)
    assert units.key == panel.key
    return draw_swap_bits(units.key, run=0, first=first, n_trials=n_trials, n_units=units.n_units)[:, units.index]


@pytest.mark.parametrize("statistic", ["pearson", "spearman", "kendall", "accuracy"])
@pytest.mark.slow
def test_system_scores_are_standardised_and_swapped_and_all_arrangements_counted(statistic):
    counts = make_data(n_sets=1)
    [result] = compare(counts, f"meta-{statistic}:level=system", [("m0", "m1")], "system")
    systems, human = np.array(counts.group("system")), counts.field("human")[:, 0]
    names = np.unique(systems)
    h = np.array([human[systems == s].mean() for s in names])
    means = np.array([counts.field("score")[systems == s, :2].mean(axis=0) for s in names])
    by_rank = statistic in {"spearman", "kendall"}
    z = stats.rankdata(means.round(12), axis=0) if by_rank else stats.zscore(means).round(12)
    observed = SCIPY[statistic](z[:, 0], h) - SCIPY[statistic](z[:, 1], h)
    assert result.difference == pytest.approx(observed)
    n = 0
    for choice in itertools.product((0, 1), repeat=len(names)):
        picked = np.array(choice, bool)
        a, b = np.where(picked, z[:, 1], z[:, 0]), np.where(picked, z[:, 0], z[:, 1])
        n += abs(SCIPY[statistic](a, h) - SCIPY[statistic](b, h)) >= abs(observed) - 1e-9
    assert (result.method, result.n_extreme, result.n_trials) == ("exact", n, 2 ** len(names))


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["item", "segment", "system"])
def test_soft_accuracy_after_swaps_is_that_of_the_formula(unit):
    counts = make_data(5, 8, 1, share=1.0)
    panel = build_panel(counts, "meta-spa:signs=50", unit)
    z, signs = standardise(counts), draw_signs(50, 8).astype(float)
    swaps = draw_swaps_by_item(counts, panel, unit, first=0, n_trials=5)
    trials = compute_trial_scores(panel, first=0, n_trials=5)
    human = counts.field("human").reshape(5, 8)
    for p, (i, j) in enumerate(panel.pairs):
        for t in range(5):
            pseudo = np.where(swaps[t], z[:, j], z[:, i]), np.where(swaps[t], z[:, i], z[:, j])
            expected = [compute_spa(x.reshape(5, 8), human, signs) for x in pseudo]
            assert trials[p, :, t] == pytest.approx(expected, abs=0.004)  # signs whose difference is within rounding


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["meta-pearson:group=item", "meta-kendall:group=item", "meta-acc-eq:group=item"])
def test_counts_are_the_same_in_any_partition_and_on_any_scale_for_any_selection_of_pairs(metric):
    counts = make_data()
    panel = build_panel(counts, metric)
    whole = panel.tally(run=1, first=0, n_trials=700).counts
    parts = [panel.tally(run=1, first=first, n_trials=n).counts for first, n in ((0, 100), (100, 513), (613, 87))]
    assert (whole == sum(parts)).all()
    assert (panel.select([2]).tally(run=1, first=0, n_trials=700).counts == whole[[2]]).all()
    assert (panel.select([2]).compute_digests() == panel.compute_digests()[[2]]).all()
    own = counts.field("score") * [100, 1, 1] + [7, 0, 0] if "kendall" not in metric else np.exp(counts.field("score"))
    rescaled = build_panel(replace(counts, fields={**counts.fields, "score": own}), metric)
    assert (rescaled.tally(run=1, first=0, n_trials=700).counts == whole).all()


def test_decisions_on_pairs_have_exact_p_of_a_weighted_sum_of_signs():
    counts = make_data(4, 4, 2, n_metrics=2, share=0.8)
    [result] = compare(counts, "meta-accuracy:group=item,permute=pairs")
    panel = build_panel(counts, "meta-accuracy:group=item,permute=pairs")
    assert isinstance(panel, DecisionPanel)
    human, scores = counts.field("human")[:, 0], counts.field("score")
    sets, segments = np.array(counts.group("language-pair")), np.array(counts.group("segment"))
    gains = []
    for lp in np.unique(sets):
        groups = [np.flatnonzero(segments == s) for s in np.unique(segments[sets == lp])]
        groups = [g for g in groups if len(g) > 1]
        for g in groups:
            pairs = [*itertools.combinations(g, 2)]
            for i, j in pairs:
                right = [np.sign(scores[i, m] - scores[j, m]) == np.sign(human[i] - human[j]) for m in (0, 1)]
                gains.append((int(right[0]) - int(right[1])) / len(pairs) / len(groups) / 2)
    moving = np.array([gain for gain in gains if gain])
    assert result.difference == pytest.approx(moving.sum())
    signs = np.array([*itertools.product((-1, 1), repeat=len(moving))])
    assert result.p_value == np.mean(np.abs(signs @ moving) >= abs(moving.sum()) - 1e-9)


def test_undefined_agreement_is_no_error_and_is_said():
    counts = make_data(n_sets=1, n_metrics=2)
    constant = Counts(counts.systems, {"human": counts.field("human"), "score": counts.field("score") * [1, 0]},
                      counts.n_items, groups=dict(counts.groups))  # fmt: skip
    [result] = compare(constant, "meta-pearson", trials=200)
    assert result.score_b == 0
    assert result.difference == result.score_a
    assert 0 < result.p_value <= 1
    assert "m1: its agreement is undefined, as scores are constant; it counts as 0" in [n.text for n in result.notes]


def test_a_system_alone_and_a_metric_alone_are_errors(tmp_path):
    alone = write_table(tmp_path, [row for row in ROWS if row[0] == "a"])
    for statistic, message in (("spa", "has scores of one system only"), ("accuracy", "no group has two scores")):
        options = ["--permute", "pairs", "--group", "item"] if statistic == "accuracy" else []
        printed = call_sigdask("meta", alone, "--statistic", statistic, *options, cwd=tmp_path)
        assert printed.returncode == 2
        assert message in printed.stderr
    single = write_table(tmp_path, [row.rpartition(",")[0] for row in ROWS], "system,segment,human,bleu")
    with pytest.raises(InputError, match="only the metric 'bleu' has scores"):
        read(single, format="meta")


def test_scores_that_cannot_tell_metrics_apart_are_said_first(tmp_path):
    few = read(write_table(tmp_path, [row for row in ROWS if row[0] in "ab"]), format="meta")
    assert any(note.startswith("only 2 systems: ") for note in few.scope)
    one = read(write_table(tmp_path, [row for row in ROWS if row[2] in "12"]), format="meta")
    assert any(note.startswith("only 2 segments: ") for note in one.scope)
    with pytest.raises(InputError, match="all human scores are 3, so no metric can agree"):
        read(write_table(tmp_path, [re.sub(r"^(.,.),.", r"\1,3", row) for row in ROWS]), format="meta")


@pytest.mark.parametrize("seed", range(4))
def test_soft_accuracy_of_ties_and_missing_cells_is_that_of_the_formula_on_complete_segments(seed):
    counts, shares = make_data(4, 14, 2, n_metrics=2, seed=seed), []
    sets, systems, segments = (np.array(counts.group(name)) for name in ("language-pair", "system", "segment"))
    for lp in np.unique(sets):
        names = np.unique(systems[sets == lp])
        complete = [k for k in np.unique(segments[sets == lp]) if (segments == k).sum() == len(names)]
        cells = [[np.flatnonzero((systems == s) & (segments == k))[0] for k in complete] for s in names]
        signs, human = draw_signs(1000, len(complete)).astype(float), counts.field("human")[:, 0][cells]
        shares.append([compute_spa(column[cells], human, signs) for column in counts.field("score").T])
    panel = build_panel(counts, "meta-spa")
    assert panel.pair_scores[0, 0] == pytest.approx(np.mean(shares, axis=0)[panel.pairs[0]], abs=0.01)


def test_clusters_are_those_of_wmt():
    # as `AssignRanks` of mt-metrics-eval: 3 is beaten by 1, 4 by 2 of the first cluster but not by 3
    beaten = np.zeros((5, 5), bool)
    beaten[0, 2] = beaten[1, 3] = beaten[2, 4] = True
    assert number_clusters(beaten) == [1, 1, 2, 2, 3]


def write_table(folder, rows, header="system,segment,human,bleu,ter"):
    path = folder / "scores.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


ROWS = [
    f"{s},{k},{(k * 7 + i * 3) % 5},{(k * 5 + i) % 7},{(k + 2 * i) % 4}"
    for i, s in enumerate("abcde")
    for k in range(8)
]


def test_meta_compares_metrics_and_prints_clusters(tmp_path):
    path = write_table(tmp_path, ROWS)
    printed = call_sigdask("meta", path, "--level", "system", "--json", tmp_path / "r.json", cwd=tmp_path)
    assert printed.returncode == 0, printed.stderr
    assert "lower is better in 1 column ('ter')" in printed.stderr
    found = json.loads((tmp_path / "r.json").read_text())["results"][0]
    assert found["metric"] == "meta-pearson:level=system"
    assert found["method"] == "exact"
    again = call_sigdask("reproduce", tmp_path / "r.json", path, "--format", "meta", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*ROWS, ROWS[0]], "line 42: system 'a', segment '0' is on line 2 already"),
        ([*ROWS, "f,1,x,1,1"], "line 42, column 'human': found 'x'"),
        ([",1,1,1,1"], "line 2: column 'system' is empty"),
        (["a,1,,1,1"], "no human scores"),
    ],
)
def test_errors_of_tables_name_the_line(rows, message, tmp_path):
    with pytest.raises(InputError, match=re.escape(message)):
        read(write_table(tmp_path, rows), format="meta")


def test_cells_without_a_score_are_left_out_and_said(tmp_path):
    counts = read(write_table(tmp_path, [*ROWS, "f,1,3,,1", "f,2,,1,1"]), format="meta")
    assert counts.n_items == len(ROWS)
    assert any("1 human score left out, because a metric has no score" in text for text in counts.notices)
    assert any("1 cell without human scores" in text for text in counts.notices)


def write_wmt_folder(folder, pairs=("en-de", "zh-en"), humans=("mqm",)):
    rng = np.random.default_rng(3)
    for pair in pairs:
        (folder / "human-scores").mkdir(exist_ok=True)
        (folder / "metric-scores" / pair).mkdir(parents=True)
        for human in humans:
            lines = [
                f"{s} {'None' if s == 'ref' else -rng.integers(0, 5)}" for s in ("a", "b", "c", "ref") for _ in range(6)
            ]
            (folder / "human-scores" / f"{pair}.{human}.seg.score").write_text("\n".join(lines) + "\n")
        for metric in ("COMET-refA", "chrF-refA", "BLEU-refA"):
            lines = [f"{s} {rng.normal():.4f}" for s in ("a", "b", "c", "ref") for _ in range(6)]
            (folder / "metric-scores" / pair / f"{metric}.seg.score").write_text("\n".join(lines) + "\n")
    return folder


def test_language_pairs_of_a_folder_are_averaged(tmp_path):
    folder = write_wmt_folder(tmp_path)
    both = read(folder, format="meta")
    assert both.systems == ("BLEU-refA", "COMET-refA", "chrF-refA")
    assert both.n_items == 2 * 3 * 6
    assert "agreement is the mean over 2 sets: en-de, zh-en" in both.scope
    single = [read(folder, format=f"meta:pair={pair}") for pair in ("en-de", "zh-en")]
    scores = [compare(counts, "meta-pearson", trials=10)[0].score_a for counts in single]
    average, *_ = compare(both, "meta-pearson", trials=10)
    assert average.score_a == pytest.approx(np.mean(scores))
    by_pair = compare(both, "meta-pearson", trials=10, by="language-pair")
    assert [r.score_a for r in by_pair if r.b == "COMET-refA"] == pytest.approx(scores)


def test_several_human_scores_must_be_chosen(tmp_path):
    folder = write_wmt_folder(tmp_path, humans=("mqm", "esa"))
    with pytest.raises(InputError, match="several human scores of en-de: esa, mqm; choose one with columns="):
        read(folder, format="meta")
    assert read(folder, format="meta", options=Options(columns={"gold": "esa"})).n_items == 36


@pytest.mark.parametrize(
    "options", ["--statistic pearson --permute pairs", "--statistic spa --group item", "--level system --group item",
                "--threshold 1"]
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(options, tmp_path):
    printed = call_sigdask("meta", write_table(tmp_path, ROWS), *options.split(), cwd=tmp_path)
    assert printed.returncode == 2
    assert any(
        word in printed.stderr for word in ("no option 'permute'", "no option 'group'", "group=item", "--threshold")
    )


def test_metrics_are_sorted_by_agreement():
    counts = make_data(n_metrics=4)
    metric = find_metric("meta-pearson").bind(counts)
    scores = [r.score_a for r in compare(sort_metrics(counts, metric), "meta-pearson", trials=2)]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("metric", "unit", "swapped"),
    [
        ("meta-pearson", "item", "scores"),
        ("meta-pearson", "segment", "segments"),
        ("meta-acc-eq:group=item,permute=pairs", "item", "pairs"),
        ("meta-pearson", "system", None),
    ],
)
def test_a_warning_says_what_is_swapped_as_if_it_were_independent(metric, unit, swapped):
    notes = compare(make_data(n_metrics=2), metric, unit=unit, trials=20).notes
    assert [note.numbers["swapped"] for note in notes if note.kind == "permutation"] == ([swapped] if swapped else [])


def test_calibrated_ties_of_all_pairs_are_named_and_too_many_pairs_refused(tmp_path):
    """The metric `against` orders all pairs wrong, so its best threshold ties all; `other` finds all ties and orders."""
    human = [k % 2 if k < 6 else 0 for k in range(16)]
    rows = [f"{'ab'[k % 2]},{k // 2},{score},{-score},{score}" for k, score in enumerate(human)]
    printed = call_sigdask(
        "meta", write_table(tmp_path, rows, "system,segment,human,against,other"), "--statistic", "acc-eq",
        "--trials", "50", cwd=tmp_path,
    )  # fmt: skip
    n_tied = sum(x == y for x, y in itertools.combinations(human, 2))
    score = n_tied / math.comb(16, 2)
    assert f"against: the best threshold calls all pairs ties. So the score {score:.4f}" in printed.stdout
    large = write_table(tmp_path, [f"a,{k},{k % 7},{k % 5},{k % 3}" for k in range(2100)], "system,segment,human,x,y")
    printed = call_sigdask("meta", large, "--statistic", "acc-eq", cwd=tmp_path)
    assert printed.returncode == 2
    assert "2,203,950 pairs of segments" in printed.stderr
    assert "--group item" in printed.stderr


def test_meta_in_python_compares_by_the_metric_of_agreement_that_its_options_describe(tmp_path):
    path = write_table(tmp_path, ROWS)
    metrics, options = ["meta-kendall:group=item"], {"pairs": [("bleu", "ter")], "trials": 99}
    [expected] = compare_all(read(path, format="meta"), metrics=metrics, **options)
    [result] = sigdask.meta(path, statistic="kendall", group="item", trials=99)
    assert {result.a, result.b} == {"bleu", "ter"}
    assert (result.metric, result.n_extreme) == (expected.metric, expected.n_extreme)


def test_a_huge_number_of_signs_is_refused():
    with pytest.raises(InputError, match="a whole number from 1 to 1,000,000"):
        find_metric(f"meta-spa:signs={'1' * 5000}")
