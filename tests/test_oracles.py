"""The shared oracles: small inputs with values from R, exact rational enumeration and published tables."""

import json
from pathlib import Path

import numpy as np
import pytest

from sigdask.api import compare, compare_all
from sigdask.classical import correlations, inflation, sign_test
from sigdask.counts import Counts
from sigdask.randomization import bound, interval

FILE = Path(__file__).parent.parent.parent / "shared" / "oracles.json"


@pytest.fixture(scope="module")
def oracles():
    if not FILE.is_file():
        pytest.skip("the oracles are not beside the project (../shared/oracles.json)")
    return {o["name"]: o for o in json.loads(FILE.read_text())}


def p_of(d, alternative):
    return compare(d, np.zeros(len(d)), alternative=alternative).p_value


@pytest.mark.parametrize(
    "name",
    [
        "sleep_signflip_two_sided",
        "sleep_signflip_greater",
        "tague1981_signflip_two_sided",
        "identical_systems",
        "float_ties_decimal10",
    ],
)
def test_sign_flips_of_differences(oracles, name):
    o = oracles[name]
    sides = o["alternative"].strip("[]").split(",")
    values = o["expected"] if isinstance(o["expected"], list) else [o["expected"]]
    for side, value in zip(sides, values, strict=True):
        assert p_of(o["inputs"]["d"], side) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["yeh2000_recall_sign_test", "ir_slides_sign_12_3", "ir_slides_sign_18_9", "tague1981_sign"]
)
def test_sign_tests(oracles, name):
    o = oracles[name]
    assert sign_test(o["inputs"]["wins"], o["inputs"]["losses"]) == pytest.approx(o["expected"], rel=1e-12)


def sentences(inputs):
    """Responses of 12 sentences, one row a response, exchanged by sentence."""
    gold, found, unit = [], {"a": [], "b": []}, []
    for s in range(12):
        counts = {k: inputs[k][s] for k in ("tp_a", "fp_a", "tp_b", "fp_b", "gold")}
        for k in range(counts["gold"]):
            gold.append(1)
            found["a"].append(k < counts["tp_a"])
            found["b"].append(k < counts["tp_b"])
            unit.append(f"s{s}")
        for k in range(max(counts["fp_a"], counts["fp_b"])):
            gold.append(0)
            found["a"].append(k < counts["fp_a"])
            found["b"].append(k < counts["fp_b"])
            unit.append(f"s{s}")
    return Counts.from_responses(gold, found, groups={"sentence": unit})


@pytest.mark.parametrize(("name", "metric"), [("sentence12_precision", "precision"), ("sentence12_f1", "f1")])
def test_sentences_exchanged_as_wholes(oracles, name, metric):
    o = oracles[name]
    data = sentences(o["inputs"])
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
    assert correlations(cells.astype(float))[0, 1] == pytest.approx(oracles["yeh2000_r12"]["expected"], rel=1e-9)
    for r in ("0.38", "0.5", "0.8"):
        assert inflation(float(r)) == pytest.approx(oracles[f"yeh2000_sd_factor_{r}"]["expected"][1], rel=1e-12)


def test_r12_of_yehs_recall_is_over_the_gold_items(oracles, yeh):
    [r] = compare_all(yeh, metrics=["recall"], trials=10)
    assert r.r12 == pytest.approx(oracles["yeh2000_r12"]["expected"], rel=1e-9)


def test_the_bounds_that_yeh_prints(oracles):
    o = oracles["yeh2000_noreen_bound"]
    assert [bound(nc, o["inputs"]["nt"]) for nc in o["inputs"]["nc"]] == pytest.approx(o["expected"], rel=1e-12)


def test_a_further_monte_carlo_run_of_yehs_example(oracles, yeh):
    # art.py v2.1, 2^20 trials: both within Monte Carlo error of each other
    o = oracles["vanasch_art_replication_of_yeh"]
    results = compare_all(yeh, metrics=["f1", "precision", "recall"], alternative="greater")
    for r, p in zip(results, o["expected"], strict=True):
        assert r.p_value == pytest.approx(p, abs=5 * np.sqrt(2 * p * (1 - p) / 2**20))


@pytest.mark.parametrize("name", ["cp_30_100", "cp_mc_96", "cp_zero_999"])
def test_intervals(oracles, name):
    o = oracles[name]
    i = o["inputs"]
    assert interval(i["k"], i["n"], i["conf"]) == pytest.approx(o["expected"], rel=1e-9)


def test_f_and_its_relatives(oracles):
    i = oracles["f_beta"]["inputs"]
    gold = [1] * (i["tp"] + i["fn"]) + [0] * i["fp"]
    found = [1] * i["tp"] + [0] * i["fn"] + [1] * i["fp"]
    data = Counts.from_responses(gold, {"a": found, "b": gold})
    results = compare_all(data, metrics=["precision", "recall", "f1", "f:beta=2", "f:beta=0.5"], trials=10)
    assert [r.score_a for r in results] == pytest.approx(oracles["f_beta"]["expected"], rel=1e-12)


def test_max_t_single_step_from_joint_counts(oracles):
    from sigdask.metrics.forms import Ratios
    from sigdask.randomization import Tally, tally
    from sigdask.shuffles import swap_bits

    o = oracles["maxT_signflip_single_step"]
    from panel_of import panel_of

    scores = np.array(o["inputs"]["scores"])
    panel = panel_of(np.stack([scores, np.ones_like(scores)], axis=-1), [Ratios(((1, 0),), ((0, 1),))])
    # the 32 arrangements are drawn at random; the joint rate must fit the exact one
    n = 2**16
    counted: Tally = tally(panel, n_trials=n, joint=True)
    assert swap_bits(panel.key, run=0, first=0, n_trials=1, n_units=5).shape == (1, 5)
    for k, p in enumerate(o["expected"]):
        assert abs(counted.counts[k, 0, 3] - n * p) < 5 * np.sqrt(n * p * (1 - p))
