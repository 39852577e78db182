"""Tests against the oracles of tests/data: values from R, exact enumeration and published tables."""

from fractions import Fraction

import numpy as np
import pytest
import reference
from scipy import stats

from sigdask.api import compare, compare_all
from sigdask.counts import Counts
from sigdask.metrics import find_metric
from sigdask.statistics.bounds import compute_bound, compute_fit_p
from sigdask.statistics.candidates import fisher_exact
from sigdask.statistics.classical import compute_correlations, compute_inflation, compute_t, sign_test, wilcoxon
from sigdask.verify import yeh_exact


def compute_p(d, alternative):
    return compare(d, np.zeros(len(d)), alternative=alternative).p_value


SIGN_FLIPS = ("sleep_signflip_two_sided", "sleep_signflip_greater", "tague1981_signflip_two_sided", "identical_systems",
              "float_ties_decimal10")  # fmt: skip


@pytest.mark.parametrize("name", SIGN_FLIPS)
def test_sign_flips_of_differences(oracles, name):
    o = oracles[name]
    sides = o["alternative"].strip("[]").split(",")
    values = o["expected"] if isinstance(o["expected"], list) else [o["expected"]]
    for side, value in zip(sides, values, strict=True):
        assert compute_p(o["inputs"]["d"], side) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["yeh2000_recall_sign_test", "ir_slides_sign_12_3", "ir_slides_sign_18_9", "tague1981_sign"]
)
def test_sign_tests(oracles, name):
    o = oracles[name]
    assert sign_test(o["inputs"]["wins"], o["inputs"]["losses"]) == pytest.approx(o["expected"], rel=1e-12)


def test_the_size_and_power_of_the_sign_test(oracles):
    o = oracles["sign_test_size_power_n34"]
    n, alpha, chance = (o["inputs"][name] for name in ("n", "alpha", "p1"))
    wins = np.arange(n + 1)
    rejected = sign_test(wins, n - wins) <= alpha
    rates = [stats.binom.pmf(wins[rejected], n, p).sum() for p in (0.5, chance)]
    assert rates == pytest.approx(o["expected"], rel=1e-11)


def test_fishers_test_of_yehs_precision(oracles):
    o = oracles["yeh2000_fisher_precision_p"]
    cells = [np.array([n]) for row in o["inputs"]["table"] for n in row]
    assert fisher_exact(*cells)[0] == pytest.approx(o["expected"], rel=1e-11)


def test_matched_t_tests(oracles):
    for name in ("sleep_t", "tague1981_t"):
        o = oracles[name]
        d = np.array(o["inputs"]["d"])
        t, p = compute_t(d.sum(), d.var() * len(d), len(d), len(d) - 1, "two-sided")
        assert np.array([t, p] if name == "tague1981_t" else p) == pytest.approx(o["expected"], abs=1e-12)


def test_wilcoxons_test(oracles):
    tague = oracles["tague1981_wilcoxon"]
    assert wilcoxon([tague["inputs"]["d"]]).p_value[0] == pytest.approx(tague["expected"], rel=1e-12)


def build_sentences(inputs):
    """Build responses of 12 sentences, one row per response, to be swapped by sentence."""
    gold, predictions, unit = [], {"a": [], "b": []}, []
    for s in range(12):
        counts = {k: inputs[k][s] for k in ("tp_a", "fp_a", "tp_b", "fp_b", "gold")}
        for k in range(counts["gold"]):
            gold.append(1)
            predictions["a"].append(k < counts["tp_a"])
            predictions["b"].append(k < counts["tp_b"])
            unit.append(f"s{s}")
        for k in range(max(counts["fp_a"], counts["fp_b"])):
            gold.append(0)
            predictions["a"].append(k < counts["fp_a"])
            predictions["b"].append(k < counts["fp_b"])
            unit.append(f"s{s}")
    return Counts.from_responses(gold, predictions, groups={"sentence": unit})


@pytest.mark.parametrize(("name", "metric"), [("sentence12_precision", "precision"), ("sentence12_f1", "f1")])
def test_sentences_exchanged_as_wholes(oracles, name, metric):
    o = oracles[name]
    data = build_sentences(o["inputs"])
    difference, greater, two_sided = o["expected"]
    [r] = compare_all(data, metrics=[metric], unit="sentence", alternative="greater")
    assert r.difference == pytest.approx(difference, rel=1e-12)
    assert r.p_value == pytest.approx(greater, rel=1e-12)
    assert compare_all(data, metrics=[metric], unit="sentence")[0].p_value == pytest.approx(two_sided, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "side"), [("vanasch_precisionA_one_sided", "greater"), ("vanasch_precisionA_two_sided", "two-sided")]
)
def test_van_aschs_precision_of_label_a(oracles, name, side):
    i = oracles[name]["inputs"]
    r = compare(i["system1"], i["system2"], gold=i["reference"], metric="precision[A]", alternative=side)
    assert r.p_value == oracles[name]["expected"]


def test_r12_and_what_independence_costs(oracles):
    i = oracles["yeh2000_r12"]["inputs"]
    cells = np.array([[1, 1]] * i["both"] + [[1, 0]] * i["only1"] + [[0, 1]] * i["only2"] + [[0, 0]] * i["neither"])
    assert compute_correlations(cells.astype(float))[0, 1] == pytest.approx(
        oracles["yeh2000_r12"]["expected"], rel=1e-9
    )
    for r in ("0.38", "0.5", "0.8"):
        assert compute_inflation(float(r)) == pytest.approx(oracles[f"yeh2000_sd_factor_{r}"]["expected"][1], rel=1e-12)


def test_r12_of_yehs_recall_is_over_the_gold_items(oracles, yeh):
    [r] = compare_all(yeh, metrics=["recall"], trials=10)
    assert r.r12 == pytest.approx(oracles["yeh2000_r12"]["expected"], rel=1e-9)


def test_the_bounds_that_yeh_prints(oracles):
    o = oracles["yeh2000_noreen_bound"]
    assert [compute_bound(nc, o["inputs"]["nt"]) for nc in o["inputs"]["nc"]] == pytest.approx(o["expected"], rel=1e-12)


def test_a_further_monte_carlo_run_of_yehs_example(oracles, yeh):
    # art.py v2.1, 2^20 trials: both within Monte Carlo error of each other
    o = oracles["vanasch_art_replication_of_yeh"]
    results = compare_all(yeh, metrics=["f1", "precision", "recall"], alternative="greater")
    for r, p in zip(results, o["expected"], strict=True):
        assert r.p_value == pytest.approx(p, abs=5 * np.sqrt(2 * p * (1 - p) / 2**20))


def test_f_and_its_relatives(oracles):
    i = oracles["f_beta"]["inputs"]
    gold = [1] * (i["tp"] + i["fn"]) + [0] * i["fp"]
    predictions = [1] * i["tp"] + [0] * i["fn"] + [1] * i["fp"]
    data = Counts.from_responses(gold, {"a": predictions, "b": gold})
    results = compare_all(data, metrics=["precision", "recall", "f1", "f:beta=2", "f:beta=0.5"], trials=10)
    assert [r.score_a for r in results] == pytest.approx(oracles["f_beta"]["expected"], rel=1e-12)


def test_van_aschs_table_row_by_row(oracles):
    # the slide's row BA AB BA (mask 101) is wrong; these are the right values
    o = oracles["vanasch_precisionA_table"]
    i = o["inputs"]
    data = Counts.from_labels(i["reference"], {"a": i["system1"], "b": i["system2"]})
    bound_metric = find_metric("precision[A]").bind(data)
    fields = np.stack([data.field(f) for f in bound_metric.fields], axis=-1).astype(int)  # (3, 2, n_fields)
    for mask, row in o["expected"].items():
        swap = np.array([bit == "1" for bit in mask])
        a, b = reference.compute_pseudo_sums(fields[:, 0], fields[:, 1], swap[None])
        scores = [float(bound_metric.form.score(x)[0]) for x in (a, b)]
        assert [*scores, scores[0] - scores[1]] == [float(Fraction(text)) for text in row]
    differences = {mask: Fraction(row[2]) for mask, row in o["expected"].items()}
    printed = {**differences, "101": Fraction(1, 2)}  # as the slide has it
    shares = [sum(d >= Fraction(1, 3) for d in rows.values()) for rows in (differences, printed)]
    assert shares == [4, 5]  # of 8


def test_word_errors_of_1000_sentences_fit_the_exact_p(oracles):
    o = oracles["wer1000_signflip_greater"]
    d = [(i * 7919 + 13) % 21 - 10 for i in range(1000)]
    d = np.array([abs(x) if i % 11 == 0 else x for i, x in enumerate(d)])
    assert d.sum() == o["inputs"]["sum"]
    r = compare(d, np.zeros(1000), alternative="greater")
    assert compute_fit_p(r.n_extreme, r.n_trials, o["expected"]) > 1e-4
    assert compute_fit_p(r.second_run.n_extreme, r.second_run.n_trials, o["expected"]) > 1e-4


def test_the_upper_tail_of_yehs_precision(oracles, yeh):
    [r] = compare_all(yeh, metrics=["precision"], alternative="greater")
    assert compute_fit_p(r.n_extreme, r.n_trials, oracles["yeh2000_precision_upper_tail"]["expected"]) > 1e-4


@pytest.mark.parametrize("metric", ["recall", "f1", "precision"])
def test_yehs_differences_and_p_values(oracles, yeh, metric):
    one_sided = oracles[f"yeh2000_{metric}_one_sided"]
    for name in ("one_sided", "two_sided"):
        o = oracles[f"yeh2000_{metric}_{name}"]
        side = one_sided["alternative"] if name == "one_sided" else "two-sided"
        [r] = compare_all(yeh, metrics=[metric], alternative=side)
        assert r.difference == pytest.approx(oracles[f"yeh2000_{metric}_observed_diff"]["expected"], rel=1e-12)
        assert compute_fit_p(r.n_extreme, r.n_trials, o["expected"]) > 1e-4
    exact = Fraction(one_sided["expected_rational"])
    assert yeh_exact(metric) == exact


def test_yehs_printed_counts_are_as_far_from_the_exact_values_as_the_oracle_says(oracles):
    i = oracles["yeh2000_mc_counts_consistency"]
    n = i["inputs"]["nt"]
    for (metric, count), z in zip(i["inputs"]["counts"].items(), i["expected"], strict=True):
        p = float(yeh_exact(metric))
        assert (count - n * p) / np.sqrt(n * p * (1 - p)) == pytest.approx(z, abs=1e-6)
        assert (compute_fit_p(count, n, p) > 1e-4) == (abs(z) < 3.9)


@pytest.mark.parametrize("name", ["strict_gt_regression_yeh_recall", "dropping_concordant_regression_yeh"])
def test_what_is_known_to_be_wrong_does_not_fit(oracles, yeh, name):
    assert oracles[name]["known_wrong"]
    wrong = oracles[name]["expected"]
    if name.startswith("strict"):
        comparisons = [("recall", "greater", wrong)]
    else:
        comparisons = [("precision", "less", wrong[0]), ("f1", "greater", wrong[1])]
    for metric, side, p in comparisons:
        [r] = compare_all(yeh, metrics=[metric], alternative=side)
        assert compute_fit_p(r.n_extreme, r.n_trials, p) < 1e-9
