"""Metrics of predicted numbers, against scikit-learn and official scores."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from builders import build_panels
from command import call_sigdask
from scipy import stats
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

import sigdask
from sigdask.analysis.comparison.pairs import bind_metric
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import parse_source, read
from sigdask.formats.reading.options import Options
from sigdask.metrics import find_metric
from sigdask.metrics.base import BoundRanks
from sigdask.randomization.panels.ranks import RankPanel
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream import draw_swap_bits

ORACLES = {
    "MAE": sk.mean_absolute_error,
    "MSE": sk.mean_squared_error,
    "RMSE": sk.root_mean_squared_error,
    "R2": sk.r2_score,
    "pearson": lambda gold, x: stats.pearsonr(gold, x)[0],
    "spearman": lambda gold, x: stats.spearmanr(gold, x)[0],
    "kendall": lambda gold, x: stats.kendalltau(gold, x)[0],
}


def _compute_calibration_error(gold, x, n_bins):
    """Return the ECE from the bins of scikit-learn's calibration curve."""
    shares, means = calibration_curve(gold, x, n_bins=n_bins)
    bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], x)
    _, sizes = np.unique(bins, return_counts=True)
    return (sizes * np.abs(shares - means)).sum() / len(x)


BINARY_ORACLES = {
    "AUC": sk.roc_auc_score,
    "average-precision": sk.average_precision_score,
    "brier": sk.brier_score_loss,
    "log-loss": sk.log_loss,
    "ECE": lambda gold, x: _compute_calibration_error(gold, x, 15),
    "ECE:bins=4": lambda gold, x: _compute_calibration_error(gold, x, 4),
}
RANKS = ("spearman", "kendall", "AUC", "average-precision")


def _write(folder, **columns):
    for name, values in columns.items():
        (folder / f"{name}.csv").write_text(
            "id,value\n" + "".join(f"q{k},{float(v)!r}\n" for k, v in enumerate(values))
        )
    return [parse_source(str(folder / f"{name}.csv")) for name in columns if name != "gold"], folder / "gold.csv"


def _build_panel(counts, metric, pair=(0, 1)):
    bound, units = bind_metric(find_metric(metric, counts), counts), SwapUnits.from_counts(counts, 0)
    if isinstance(bound, BoundRanks):
        return RankPanel.from_counts(counts, units, bound, pair)
    [placed] = build_panels(counts, units, [bound], [pair])
    return placed.panel


def _score(counts, metric):
    pairs = [(s, (s + 1) % counts.n_systems) for s in range(counts.n_systems)]
    return np.array([_build_panel(counts, metric, pair).pair_scores[0, 0, 0] for pair in pairs])


@pytest.mark.slow
def test_random_sets_with_ties_equal_scipy_and_scikit_learn():
    random = np.random.default_rng(7)
    for k in range(48):  # four of each kind: rounded to 0, 1, 2 or 15 digits
        gold, a, b = random.normal(size=(3, random.integers(3, 30))).round(k % 3 if k % 4 else 15)
        gold[0], a[0], b[0] = gold[1] + 1, a[1] + 1, b[1] + 1  # not constant
        binary = (gold > np.median(gold)).astype(float)
        binary[:2] = 1, 0
        probabilities = (1 / (1 + np.exp(-np.stack([a, b])))).round(1 + k % 3 if k % 4 else 15)
        for oracles, columns in ((ORACLES, (gold, a, b)), (BINARY_ORACLES, (binary, *probabilities))):
            counts = Counts.from_numbers(columns[0], {"a": columns[1], "b": columns[2]})
            for metric, oracle in oracles.items():
                expected = [oracle(columns[0], column) for column in columns[1:]]
                np.testing.assert_allclose(_score(counts, metric), expected, rtol=1e-12, atol=1e-12, err_msg=metric)


def _draw_columns(metric, n, *, digits):
    """Return gold values, and predictions of two systems with ties within and between them."""
    random = np.random.default_rng(n)
    gold, a, b = random.normal(size=(3, n)).round(digits)
    if metric.partition(":")[0] in BINARY_ORACLES:
        gold, a, b = (gold > 0).astype(float), *(1 / (1 + np.exp(-np.stack([a, b])))).round(digits)
    return gold, a, b


def _standardise(metric, values):
    """Return what trials swap in place of predictions, by SciPy."""
    if metric == "pearson":
        return np.nan_to_num(stats.zscore(values))
    return stats.rankdata(values) if metric in RANKS else values


def _rescale(metric, values):
    """Yield the predictions, and others with which the score is the same."""
    yield values
    if metric != "ECE":
        yield 100 * values + 7e6
    if metric in RANKS:
        yield np.exp(3 * values)


@pytest.mark.parametrize("metric", [*RANKS, "pearson", "ECE"])
@pytest.mark.parametrize("digits", [1, 15])
@pytest.mark.slow
def test_trials_count_what_a_library_scores_after_the_same_swaps_in_any_partition(metric, digits):
    gold, a, b = _draw_columns(metric, 80, digits=digits)
    groups = {"unit": [f"u{k // 2}" for k in range(80)]}
    oracle = (ORACLES | BINARY_ORACLES)[metric]
    for unit, other in ((unit, other) for unit in ("item", "unit") for other in _rescale(metric, a)):
        counts = Counts.from_numbers(gold, {"a": other, "b": b}, groups=groups).with_unit(unit)
        panel, units = _build_panel(counts, metric), SwapUnits.from_counts(counts, 0)
        swaps = draw_swap_bits(units.key, run=1, first=77, n_trials=60, n_units=units.n_units)[:, units.index]
        x, y = (_standardise(metric, values) for values in (a, b))
        a_swapped, b_swapped = np.where(swaps, y, x), np.where(swaps, x, y)
        differences = [oracle(gold, x) - oracle(gold, y) for x, y in zip(a_swapped, b_swapped, strict=True)]
        observed = oracle(gold, a) - oracle(gold, b)
        expected = [np.greater_equal(differences, observed - 1e-12).sum(), np.less_equal(differences, observed + 1e-12).sum(),
                    np.greater_equal(np.abs(differences), abs(observed) - 1e-12).sum()]  # fmt: skip
        whole = panel.tally(run=1, first=77, n_trials=60).counts
        assert whole.ravel().tolist() == expected
        parts = [panel.tally(run=1, first=first, n_trials=n).counts for first, n in ((77, 1), (78, 16), (94, 43))]
        assert (sum(parts) == whole).all()


@pytest.mark.parametrize("metric", [*RANKS, "pearson", "ECE"])
@pytest.mark.slow
def test_p_of_few_items_is_that_of_all_arrangements_on_any_scale_in_each_subset(metric):
    gold, a, b = _draw_columns(metric, 13, digits=1)
    oracle, part = (ORACLES | BINARY_ORACLES)[metric], np.arange(13) < 7
    gold[[0, 7]], gold[[1, 8]] = 0, 1
    for column in (a,) if metric == "ECE" else (a, -a):
        expected = {}
        for items in (part, ~part):
            x, y = (_standardise(metric, values[items]) for values in (column, b))
            scores = [oracle(gold[items], np.where(swap, y, x)) for swap in product((False, True), repeat=len(x))]
            differences = np.subtract(scores, scores[::-1])  # the last swap is the first one's opposite
            expected[str(items[0])] = ("exact", np.mean(np.abs(differences) >= abs(differences[0]) - 1e-12))
        for other in _rescale(metric, column):
            counts = Counts.from_numbers(gold, {"a": other, "b": b}, groups={"part": [*part.astype(str)]})
            results = sigdask.compare_all(counts, metrics=[metric], by="part")
            assert {r.subset["value"]: (r.method, r.p_value) for r in results} == expected


@pytest.mark.slow
def test_the_scale_of_a_system_changes_no_p_of_the_command(tmp_path):
    gold, a, b = _draw_columns("AUC", 60, digits=2)
    found = []
    for column in _rescale("pearson", a):
        rows = [f"{g:g},{float(x)!r},{float(y)!r}" for g, x, y in zip(gold, column, b, strict=True)]
        (tmp_path / "t.csv").write_text("\n".join(["gold,a,b", *rows]))
        metrics = [word for metric in ("pearson", *RANKS) for word in ("-m", metric)]
        options = ("--trials", 500, "--interval", "none", "--json", "-")
        printed = call_sigdask("compare", "t.csv", *metrics, *options, cwd=tmp_path)
        assert printed.returncode == 0, printed.stderr
        found.append([(r["metric"], r["p_value"], r["n_extreme"]) for r in json.loads(printed.stdout)["results"]])
    assert len(found[0]) == 5
    assert found[0] == found[1]


@pytest.mark.parametrize("metric", ["pearson", "spearman", "kendall"])
def test_a_correlation_with_constant_predictions_is_undefined_and_counts_as_0(metric):
    result = sigdask.compare([0.1] * 6, [1, 2, 4, 3, 5, 6], gold=[1, 2, 3, 4, 5, 6.5], metric=metric)
    assert result.score_a == 0
    assert result.score_b > 0.8
    assert any("A: its score is undefined (0/0), and counts as 0" in warning for warning in result.warnings)
    assert result.p_value < 1


@pytest.mark.parametrize(
    ("metric", "gold", "message"),
    [
        ("AUC", [0, 1, 0.5], "item 3"),
        ("AUC", [1, 1, 1], "not defined"),
        ("average-precision", [0, 0, 0], "not defined"),
        ("spearman", [2, 2, 2], "not defined"),
        ("R2", [2, 2, 2], "not defined"),
        ("brier", [0, 1, 1], "of 'A'; item 2 has 1.5"),
        ("ECE:bins=0", [0, 1, 1], "bins = 0"),
        (f"ECE:bins={'1' * 5000}", [0, 1, 1], "must be a whole number from 1 to 100"),
        ("log-loss:bins=3", [0, 1, 1], "'bins'"),
    ],
)
def test_what_a_metric_cannot_score_is_an_error_that_says_why(metric, gold, message):
    with pytest.raises(InputError, match=message):
        sigdask.compare([0.1, 1.5, 0.2], [0.1, 0.5, 0.3], gold=gold, metric=metric)


def test_digests_do_not_depend_on_the_order_of_the_items():
    gold, a, b = _draw_columns("spearman", 30, digits=1)
    order, ids = np.random.default_rng(1).permutation(30), [f"q{k}" for k in range(30)]
    counts = Counts.from_numbers(gold, {"a": a, "b": b}, ids=ids)
    mixed = Counts.from_numbers(gold[order], {"a": a[order], "b": b[order]}, ids=[ids[k] for k in order])
    first, second = (_build_panel(data, "spearman") for data in (counts, mixed))
    assert first.compute_digests() == second.compute_digests()
    assert (first.hash_contents(0) == second.hash_contents(0)).all()
    changed = Counts.from_numbers(gold, {"a": a, "b": b**2}, ids=ids)
    assert _build_panel(changed, "spearman").compute_digests() != first.compute_digests()


def test_p_equals_enumeration_in_fractions_where_errors_tie(tmp_path):
    columns = {
        "gold": ["1000.1", "0.1", "0.3", "7", "2.5", "0.7", "1.1"],
        "a": ["1000.0", "0.3", "0.1", "8", "2.5", "0.6", "1.3"],
        "b": ["1000.2", "0.2", "0.2", "6", "2.4", "0.9", "1.0"],
    }
    systems, gold_path = _write(tmp_path, **columns)
    counts = read(*systems, gold=gold_path, format="numbers")
    gold, a, b = ([Fraction(cell) for cell in columns[name]] for name in ("gold", "a", "b"))
    for metric, power in (("MAE", 1), ("MSE", 2), ("RMSE", 2), ("R2", 2)):
        # the errors of both systems add up to the same in each arrangement, so that all scores order them alike
        moved = [abs(x - g) ** power - abs(y - g) ** power for g, x, y in zip(gold, a, b, strict=True)]
        sizes = [abs(sum(s * m for s, m in zip(signs, moved, strict=True))) for signs in product((1, -1), repeat=7)]
        (result,) = sigdask.compare_all(counts, metrics=[metric])
        assert result.p_value == sum(size >= sizes[0] for size in sizes) / 2**7, metric


@pytest.mark.parametrize("cell", ["nan", "x", ""])
def test_gold_that_is_no_number_names_file_and_line(tmp_path, cell):
    systems, gold_path = _write(tmp_path, gold=[1, 2, 3], a=[1, 2, 4], b=[2, 2, 5])
    gold_path.write_text(gold_path.read_text().replace("q1,2.0", f"q1,{cell}"))
    with pytest.raises(InputError, match="gold.csv, line 3"):
        read(*systems, gold=gold_path, format="numbers")


def test_official_scores_of_wmt22_quality_estimation(shared_data):
    folder = shared_data / "regression_wmtqe22"
    reference = json.loads((folder / "reference_scores.json").read_text())["systems"]
    systems = [parse_source(str(folder / f"en-mr/systems/{name}.txt")) for name in reference]
    metrics = {"MAE": "mae", "RMSE": "rmse", "pearson": "pearson", "spearman": "spearman", "kendall": "kendall_tau_b"}
    counts = read(*systems, gold=folder / "en-mr/gold.da_score", options=Options(metrics=tuple(metrics)))
    for metric, key in metrics.items():
        scores = _score(counts, metric)
        np.testing.assert_allclose(scores, [expected[key] for expected in reference.values()], rtol=1e-10)
        if metric != "kendall":
            printed = [expected["leaderboard"][key] for expected in reference.values()]
            assert scores.round(4).tolist() == pytest.approx(printed, abs=1e-9)


def test_submissions_are_read_by_their_indices(tmp_path):
    (tmp_path / "gold").write_text("0.5\n1.5\n2.5\n")
    rows = ["en-mr\tMy method\t2\t3.5", "en-mr\tMy method\t0\t-1.5", "en-mr\tMy method\t1\t0.25"]
    (path := tmp_path / "a.txt").write_text("\n".join(["12345", "99", "1", *rows]))
    (tmp_path / "b.txt").write_text("1\n2\n3\n")
    counts = read(path, tmp_path / "b.txt", gold=tmp_path / "gold", format="numbers")
    assert counts.outputs.systems[0].tolist() == [-1.5, 0.25, 3.5]
    path.write_text("\n".join(["12345", "99", "1", *rows[:2], "en-mr\tm\t2\t1"]))
    with pytest.raises(InputError, match=r"a.txt: no row has the index 1"):
        read(path, tmp_path / "b.txt", gold=tmp_path / "gold", format="numbers")
