"""Tests of power from Python and the command line: consistent answers, and refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command import call_sigdask

import sigdask
from sigdask.statistics.power import compute_sign_power

RNG = np.random.default_rng(11)
BASE = RNG.normal(0.4, 0.15, 60)
SCORES = {
    "old": BASE.round(3).tolist(),
    "new": (BASE + RNG.normal(0.02, 0.08, 60)).round(3).tolist(),
    "same": BASE.round(3).tolist(),
}
TWO = {name: SCORES[name] for name in ("old", "new")}


@pytest.fixture
def table(tmp_path):
    """A table of three systems, of which two are alike."""
    rows = [",".join(SCORES), *(",".join(map(str, row)) for row in zip(*SCORES.values(), strict=True))]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_units_and_differences_answer_each_other():
    [result] = sigdask.power(TWO, difference=0.04)
    [inverse] = sigdask.power(TWO, units=round(result.needed.value))
    assert inverse.detectable.low * 0.97 <= 0.04 <= inverse.detectable.high * 1.03
    assert result.needed.low <= result.needed.value <= result.needed.high
    assert result.at_wanted.power < 0.8 if result.needed.value > 62 else result.at_wanted.power > 0.7


def test_another_pair_changes_no_answer():
    three_systems = sigdask.power(SCORES, difference=0.04, samples=300)
    assert three_systems[0] == sigdask.power(TWO, difference=0.04, samples=300)[0]


def test_the_side_of_a_one_sided_test_is_the_alternative_s():
    greater = sigdask.power(TWO, difference=0.04, alternative="greater", samples=500)[0]
    less = sigdask.power(TWO, difference=0.04, alternative="less", samples=500)[0]
    two_sided = sigdask.power(TWO, difference=0.04, samples=500)[0]
    assert (greater.ahead, less.ahead, two_sided.ahead) == ("old", "new", "new")
    assert less.needed.value < two_sided.needed.value


@pytest.mark.parametrize("is_binary", [False, True])
def test_the_order_of_systems_in_the_data_changes_no_answer(is_binary):
    systems = {name: [int(score > 0.4) for score in TWO[name]] for name in TWO} if is_binary else TWO
    pair = {"pairs": [("new", "old")], "difference": 0.04, "samples": 300}
    expected = sigdask.power({name: systems[name] for name in ("new", "old")}, **pair)
    assert sigdask.power(systems, **pair) == expected
    assert sigdask.power(systems, baseline="old", difference=0.04, samples=300)[0] == expected[0]


def test_zero_or_one_scores_are_answered_exactly():
    is_correct = {"a": [1] * 60 + [0] * 40, "b": [1] * 45 + [0] * 45 + [1] * 10}
    [result] = sigdask.power(is_correct, difference=0.15)
    assert (result.method, result.n_samples, result.at_wanted.error) == ("exact", 0, 0)
    # tilted to 0.15 of 25 discordant units of 100: wins and losses in the ratio exp(2 s) of 15 to 10, ties as they are
    weights = np.array([15, 10, 75]) * np.exp(np.array([1, -1, 0]) * np.log(solve_tilt(0.15)))
    wins, losses, _ = weights / weights.sum()
    n = round(result.needed.value)
    assert wins - losses == pytest.approx(0.15)
    assert compute_sign_power(n, wins, losses, 0.05, 2) >= 0.8 > compute_sign_power(n - 1, wins, losses, 0.05, 2)


def solve_tilt(wanted):
    """Return x = exp(s) of (15 x - 10 / x) / (15 x + 10 / x + 75) = wanted, a quadratic."""
    roots = np.roots([15 * (1 - wanted), -75 * wanted, -10 * (1 + wanted)])
    return roots[roots > 0].real[0]


def test_the_command_says_the_answer_first_and_keeps_it_in_json(table):
    command = call_sigdask("power", table.name, "--pair", "old", "new", "--difference", "0.04", "--samples", "500", "-q",
                  "--json", "power.json", cwd=table.parent)  # fmt: skip
    assert command.returncode == 0, command.stderr
    assert command.stdout.startswith(
        "To detect a difference of 0.04 in mean with power 0.8 (test at 0.05, two-sided), you need about"
    )
    [json_result] = json.loads((table.parent / "power.json").read_text())["power"]
    [result] = sigdask.power(TWO, difference=0.04, samples=500)
    assert json_result["needed"]["value"] == result.needed.value
    assert {"low", "high"} <= json_result["detectable"].keys()
    assert json_result["n_samples"] == 500


def test_pairs_that_cannot_be_answered_are_named_beside_those_that_can(table):
    result = call_sigdask("power", table.name, "--difference", "0.04", "--samples", "300", cwd=table.parent)
    assert result.returncode == 0
    assert "old and same: the systems are equal on every unit" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--difference", "0"], "must be above 0"),
        (["--difference", "-0.1", "--alternative", "greater"], "must be above 0"),
        (["--difference", "0.9", "--pair", "old", "new"], "impossible with units like these: possible are"),
        (["--difference", "0.1", "--pair", "old", "same"], "the systems are equal on every unit"),
        (["--units", "1"], "units = 1: must be at least 2"),
        (["--units", "100", "--power", "0.04"], "power = 0.04: must be above alpha (0.05)"),
        (["--units", "100", "--power", "1"], "must lie between"),
        (["--units", "100", "--difference", "0.1"], "give only one of them"),
        (["--samples", "3", "--units", "100"], "samples = 3: must be at least 100"),
        (["--difference", "nan"], "must be above 0"),
        (["--alpha", "1e-9", "--units", "50"], "take too long"),
    ],
)
def test_what_makes_no_sense_is_refused(table, arguments, said):
    result = call_sigdask("power", table.name, *arguments, cwd=table.parent)
    assert result.returncode == 2
    assert said in result.stderr


def test_pairs_without_a_common_item_are_left_out():
    counts = sigdask.Counts.from_scores({"a": [1, 2, 3, 5], "b": [2, 2, 5, 4], "c": [9, 9, 9, 9]}, ids=list("wxyz"))
    with_gaps = replace(counts, present=np.array([[1, 1, 0]] * 3 + [[0, 0, 1]], np.bool_))
    [result] = sigdask.power(with_gaps, units=40, samples=100)
    assert (result.a, result.b, result.n_units) == ("a", "b", 3)


def test_units_of_several_items_need_not_be_of_one_size():
    documents = np.repeat(np.arange(30), RNG.integers(1, 6, 30))
    scores = {name: (RNG.random(len(documents)) < p).astype(int) for name, p in (("a", 0.7), ("b", 0.5))}
    counts = sigdask.Counts.from_scores(scores, groups={"document": [f"d{k}" for k in documents]})
    [result] = sigdask.power(counts, unit="document", difference=0.2, samples=400)
    assert result.n_units == 30
    assert result.at_wanted.difference == 0.2
    [item_result] = sigdask.power(counts, difference=0.2)
    assert result.needed.value < item_result.needed.value


def test_very_many_units_are_told_by_the_normal_approximation():
    is_correct = {"a": [1] * 60 + [0] * 40, "b": [1] * 45 + [0] * 45 + [1] * 10}
    [result] = sigdask.power(is_correct, difference=1e-4)
    assert result.method == "normal approximation"
    assert result.needed.value == pytest.approx(2.8016**2 * 0.25 / 1e-8, rel=0.02)


def test_correlated_items_are_warned_of_before_the_answer(tmp_path):
    rows = [f"{k},d{k // 20},{k // 20 % 2},{(k // 20 + 1) % 2 * (k % 9 > 0)}" for k in range(240)]
    (path := tmp_path / "t.csv").write_text("\n".join(["id,document,a,b", *rows]))
    result = call_sigdask("power", path, "--difference", "0.1", cwd=tmp_path)
    assert result.stdout.startswith("warning: the answer below is too optimistic: differences are correlated")
    assert "--unit document" in result.stdout.splitlines()[0]
    by_document = call_sigdask("power", path, "--difference", "0.1", "--unit", "document", cwd=tmp_path)
    assert "correlated" not in by_document.stdout
    assert any("unit='document'" in note for note in sigdask.power(sigdask.read(path), difference=0.1).notes)
