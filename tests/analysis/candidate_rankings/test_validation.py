"""Tests of repeated candidate samples: nothing is found under binomial truth, but overdispersion is."""

import json

import numpy as np
import pytest
from command import call_sigdask

from sigdask.analysis.candidate_rankings import Candidates, validate
from sigdask.errors import InputError
from sigdask.examples.repeated_samples import CUTOFF, draw_probabilities, draw_sample, write


def draw_samples(seed, overdispersion, n=80):
    rng = np.random.default_rng(seed)
    draws = (draw_sample(rng, p) for p in draw_probabilities(rng, n, overdispersion))
    return {f"part {k}": Candidates(gold.tolist(), {"G2": scores}) for k, (gold, scores) in enumerate(draws)}


def validate_samples(seed, overdispersion, n=80):
    [validation] = validate(draw_samples(seed, overdispersion, n), cutoffs={"G2": CUTOFF}).found
    return validation


@pytest.fixture(scope="module")
def binomial():
    return [validate_samples(seed, 1.0) for seed in range(25)]


@pytest.fixture(scope="module")
def wider():
    return [validate_samples(seed, 1.7) for seed in range(25)]


def test_binomial_truth_varies_as_the_model_says(binomial):
    assert np.mean([validation.dispersion.ratio for validation in binomial]) == pytest.approx(1, abs=0.04)
    assert sum(validation.dispersion.p_value < 0.05 for validation in binomial) <= 4
    missed = sum(validation.intervals.n_outside for validation in binomial)
    expected = sum(validation.intervals.expected for validation in binomial)
    assert abs(missed - expected) < 4 * np.sqrt(expected)


@pytest.mark.slow
def test_overdispersion_is_found_and_its_intervals_hold(wider):
    # 80 samples of 100 whose deviations are 1.3 times the predicted ones, as Evert found (2004, section 4)
    assert np.mean([validation.dispersion.ratio for validation in wider]) == pytest.approx(np.sqrt(1.7), abs=0.06)
    assert sum(validation.dispersion.p_value < 0.05 for validation in wider) >= 23
    assert np.mean([validation.dispersion.factor for validation in wider]) == pytest.approx(1.7, abs=0.15)
    share = sum(validation.intervals.n_outside for validation in wider) / (25 * 80)
    assert 0.08 < share < 0.18  # 9 to 12 of 80 there
    assert sum(validation.widened.n_outside for validation in wider) / (25 * 80) < 0.05


def test_what_is_accepted_is_counted_from_the_cutoff_on():
    parts = {
        str(k): Candidates([1, 0, 1, 0], {"G2": [9, 5, 5, 1], "rank": [1, 2, 3, 4]}, smaller=["rank"]) for k in range(4)
    }
    [by_score, by_rank] = validate(parts, cutoffs={"G2": 5, "rank": 2}).found
    assert (by_score.accepted.tolist(), by_score.true.tolist()) == ([3] * 4, [2] * 4)
    assert (by_rank.accepted.tolist(), by_rank.true.tolist()) == ([2] * 4, [1] * 4)


def test_the_command_shows_distribution_and_coverage(tmp_path):
    write(tmp_path, 30, 1.7, seed=3)
    files = sorted(path.name for path in tmp_path.iterdir())
    result = call_sigdask("rankings", *files, "--cutoff", "G2", "32.5", "--validate", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for outputs in (("-o", "t.md"), ("-o", "t.tex"), ("-o", "t.csv")):  # there is no such table of a validation
        refused = call_sigdask("rankings", *files, "--cutoff", "G2", "32.5", "--validate", *outputs, cwd=tmp_path)
        assert (refused.returncode, outputs[1] in refused.stderr) == (2, True)
    assert "standard deviation of precision" in result.stdout
    result = call_sigdask("rankings", *files, "--cutoff", "G2", "32.5", "--validate", "--json", "-", cwd=tmp_path)
    data = json.loads(result.stdout)
    [validation] = data["validations"]
    rows = validation["samples"]
    true, accepted = (np.array([row[name] for row in rows]) for name in ("true", "accepted"))
    p = true.sum() / accepted.sum()
    assert validation["dispersion"]["precision"] == pytest.approx(p)
    assert validation["dispersion"]["deviation"] == pytest.approx((true / accepted).std(ddof=1))
    assert validation["dispersion"]["predicted"] == pytest.approx(np.sqrt(p * (1 - p) * np.mean(1 / accepted)))
    assert validation["intervals"]["n_outside"] == sum(not row["low"] <= p <= row["high"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--validate"], "--cutoff MEASURE SCORE"),
        (["--validate", "--cutoff", "G2", "high"], "'high' is not a valid float"),
        (["--validate", "--cutoff", "t", "3"], "no column 't'"),
        (["--validate", "--cutoff", "G2", "1e9"], "only 0 of 4 samples have candidates"),
        (["--validate", "--n", "5", "--cutoff", "G2", "3"], "--n"),
        ([], "4 files of candidates: give one"),
    ],
)
def test_what_cannot_be_validated_is_said(tmp_path, arguments, words):
    write(tmp_path, 4)
    files = sorted(path.name for path in tmp_path.iterdir())
    result = call_sigdask("rankings", *files, *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert words in result.stderr


def test_too_few_samples_and_samples_without_candidates_are_told():
    parts = {str(k): Candidates([1, 0], {"G2": [2.0, 1.0 + k]}) for k in range(4)}
    with pytest.raises(InputError, match="needs 3 repeated samples or more, found 2"):
        validate({name: parts[name] for name in "01"}, cutoffs={"G2": 1})
    report = validate(parts, cutoffs={"G2": 2})
    assert report.notes == ()
    notes = validate({**parts, "empty": Candidates([1, 0], {"G2": [0.0, 1.0]})}, cutoffs={"G2": 2}).notes
    assert notes == ("G2 = 2: 1 sample ('empty') accepts no candidate, left out",)
