"""Repeated samples of candidates: under binomial truth nothing is found, under overdispersion it is."""

import json

import numpy as np
import pytest
from command import called

from sigdask.analysis.candidate_rankings import Candidates, validate
from sigdask.errors import InputError
from sigdask.examples.repeated_samples import CUTOFF, draw_probabilities, draw_sample, write


def samples_of(seed, overdispersion, n=80):
    rng = np.random.default_rng(seed)
    made = (draw_sample(rng, p) for p in draw_probabilities(rng, n, overdispersion))
    return {f"part {k}": Candidates.of(gold.tolist(), {"G2": scores}) for k, (gold, scores) in enumerate(made)}


def validated(seed, overdispersion, n=80):
    [found] = validate(samples_of(seed, overdispersion, n), cutoffs={"G2": CUTOFF}).found
    return found


@pytest.fixture(scope="module")
def binomial():
    return [validated(seed, 1.0) for seed in range(25)]


@pytest.fixture(scope="module")
def wider():
    return [validated(seed, 1.7) for seed in range(25)]


def test_binomial_truth_varies_as_the_model_says(binomial):
    assert np.mean([one.dispersion.ratio for one in binomial]) == pytest.approx(1, abs=0.04)
    assert sum(one.dispersion.p_value < 0.05 for one in binomial) <= 4
    missed = sum(one.intervals.n_outside for one in binomial)
    expected = sum(one.intervals.expected for one in binomial)
    assert abs(missed - expected) < 4 * np.sqrt(expected)
    assert sum(one.bars.p_value < 0.05 for one in binomial) <= 5


def test_overdispersion_is_found_and_its_intervals_hold(wider):
    # 80 samples of 100 whose deviations are 1.3 times the predicted ones, as Evert found (2004, section 4)
    assert np.mean([one.dispersion.ratio for one in wider]) == pytest.approx(np.sqrt(1.7), abs=0.06)
    assert sum(one.dispersion.p_value < 0.05 for one in wider) >= 23
    assert np.mean([one.dispersion.factor for one in wider]) == pytest.approx(1.7, abs=0.15)
    share = sum(one.intervals.n_outside for one in wider) / (25 * 80)
    assert 0.08 < share < 0.18  # 9 to 12 of 80 there
    assert sum(one.widened.n_outside for one in wider) / (25 * 80) < 0.05


def test_what_is_accepted_is_counted_from_the_cutoff_on():
    parts = {
        str(k): Candidates.of([1, 0, 1, 0], {"G2": [9, 5, 5, 1], "rank": [1, 2, 3, 4]}, smaller=["rank"])
        for k in range(4)
    }
    [at, down] = validate(parts, cutoffs={"G2": 5, "rank": 2}).found
    assert (at.sets.accepted.tolist(), at.sets.true.tolist()) == ([3] * 4, [2] * 4)
    assert (down.sets.accepted.tolist(), down.sets.true.tolist()) == ([2] * 4, [1] * 4)
    [best, _] = validate(parts, n=[3]).found
    assert (best.sets.n, best.sets.cutoff, best.sets.true.tolist()) == (3, None, [2] * 4)


def test_the_command_shows_distribution_and_coverage(tmp_path):
    write(tmp_path, 30, 1.7, seed=3)
    files = sorted(path.name for path in tmp_path.iterdir())
    done = called("rankings", *files, "--cutoff", "G2=32.5", "--validate", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "30 samples accept",
        "ratio",
        "chi2 = ",
        "intervals that miss it",
        "exact binomial",
        "samples (#)",
        "model: ",
    ):
        assert words in done.stdout
    done = called("rankings", *files, "--cutoff", "G2=32.5", "--validate", "--json", "-", cwd=tmp_path)
    data = json.loads(done.stdout)
    [found] = data["validations"]
    rows = found["samples"]
    true, accepted = (np.array([row[name] for row in rows]) for name in ("true", "accepted"))
    p = true.sum() / accepted.sum()
    assert found["dispersion"]["precision"] == pytest.approx(p)
    assert found["dispersion"]["deviation"] == pytest.approx((true / accepted).std(ddof=1))
    assert found["dispersion"]["predicted"] == pytest.approx(np.sqrt(p * (1 - p) * np.mean(1 / accepted)))
    assert found["intervals"]["n_outside"] == sum(not row["low"] <= p <= row["high"] for row in rows)
    assert sum(found["histogram"]["observed"]) == 30
    done = called("rankings", *files, "--cutoff", "G2=32.5", "--validate", "--csv", "-", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 31


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--validate"], "--cutoff MEASURE=SCORE"),
        (["--validate", "--cutoff", "G2"], "expected MEASURE=SCORE"),
        (["--validate", "--cutoff", "G2=high"], "expected MEASURE=SCORE"),
        (["--validate", "--cutoff", "t=3"], "no column 't'"),
        (["--validate", "--cutoff", "G2=1e9"], "accepts candidates in 0 of 4 samples"),
        (["--validate", "--n", "500"], "n = 500, it has 400 candidates"),
        (["--validate", "--n", "5", "--cutoff", "G2=3"], "one of both"),
        ([], "4 files of candidates: give one"),
        (["--cutoff", "G2=3"], "4 files of candidates"),
    ],
)
def test_what_cannot_be_validated_is_said(tmp_path, arguments, words):
    write(tmp_path, 4)
    files = sorted(path.name for path in tmp_path.iterdir())
    done = called("rankings", *files, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr


def test_too_few_samples_and_samples_without_candidates_are_told():
    parts = {str(k): Candidates.of([1, 0], {"G2": [2.0, 1.0 + k]}) for k in range(4)}
    with pytest.raises(InputError, match="needs 3 repeated samples or more, found 2"):
        validate({name: parts[name] for name in "01"}, cutoffs={"G2": 1})
    found = validate(parts, cutoffs={"G2": 2})
    assert found.notes == ()
    notes = validate({**parts, "empty": Candidates.of([1, 0], {"G2": [0.0, 1.0]})}, cutoffs={"G2": 2}).notes
    assert notes == ("G2 = 2: 1 sample ('empty') accepts no candidate, left out",)
