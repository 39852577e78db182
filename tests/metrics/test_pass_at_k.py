"""pass@k of several samples of each item, held against all subsets of the samples (exact, by enumeration)."""

import csv
import json
import random
from fractions import Fraction
from itertools import combinations
from statistics import mean

import pytest

from sigdask.analysis.comparison.pairs import bind_metric
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.metrics import find_metric
from sigdask.metrics.replicates import compute_pass


def enumerate_pass(outcomes, k):
    """Return the share of subsets of k samples with at least one that is right."""
    return mean(Fraction(any(subset)) for subset in combinations(outcomes, k))


def compute_score(counts, name, system):
    bound = bind_metric(find_metric(name, counts), counts)
    above, below = (bound.get_field(field, counts) for field in bound.fields)
    return above[:, system].sum() / below.sum()


@pytest.mark.parametrize("k", [1, 2, 5, 7])
def test_the_estimator_is_the_share_of_subsets(k):
    for right in range(8):
        outcomes = [1] * right + [0] * (7 - right)
        assert compute_pass(7, right, k) == enumerate_pass(outcomes, k)


def draw_outcomes(n_samples, seed=3):
    """Return outcomes by system and item; n_samples says how many an item has."""
    generator = random.Random(seed)
    return {
        system: {
            f"t/{i}": [int(generator.random() < rate * (i % 5) / 4) for _ in range(n_samples(i))] for i in range(12)
        }
        for system, rate in (("a", 0.4), ("b", 0.9))
    }


def write_records(folder, outcomes, key="trial"):
    paths = []
    for system, items in outcomes.items():
        lines = [
            json.dumps({"task_id": item, key: t, "passed": bool(right)})
            for item, samples in items.items()
            for t, right in enumerate(samples)
        ]
        random.Random(1).shuffle(lines)
        (folder / f"{system}.jsonl").write_text("\n".join(lines))
        paths.append(folder / f"{system}.jsonl")
    return paths


def expect_scores(outcomes, k):
    return [float(mean(enumerate_pass(samples, k) for samples in items.values())) for items in outcomes.values()]


@pytest.mark.parametrize("format_", ["auto", "wide", "samples"])
@pytest.mark.parametrize("key", ["sample", "trial", "attempt"])
def test_records_of_samples_give_the_scores_of_all_subsets(tmp_path, format_, key):
    outcomes = draw_outcomes(lambda _: 6)
    counts = read(*write_records(tmp_path, outcomes, key), format=format_)
    assert counts.n_items == 12
    for k in (1, 3, 6):
        scores = [compute_score(counts, f"pass@{k}", s) for s in (0, 1)]
        assert scores == pytest.approx(expect_scores(outcomes, k), abs=1e-12)


def test_items_may_have_unlike_numbers_of_samples(tmp_path):
    outcomes = draw_outcomes(lambda i: 4 + i % 3)
    counts = read(*write_records(tmp_path, outcomes), format="samples")
    for k in (2, 4):
        scores = [compute_score(counts, f"pass@{k}", s) for s in (0, 1)]
        assert scores == pytest.approx(expect_scores(outcomes, k), abs=1e-12)
    with pytest.raises(InputError, match=r"'pass@5': item 't/0' of a has 4 samples, fewer than 5; .*at most pass@4"):
        compute_score(counts, "pass@5", 0)


def test_a_table_of_labels_or_of_systems_and_files_of_one_name_are_the_same(tmp_path):
    outcomes = draw_outcomes(lambda _: 3)
    rows = [(system, item, t, right) for system, items in outcomes.items() for item, s in items.items()
            for t, right in enumerate(s)]  # fmt: skip
    with (tmp_path / "long.csv").open("w") as file:
        csv.writer(file).writerows([("system", "item", "trial", "score"), *rows])
    with (tmp_path / "labels.csv").open("w") as file:
        pairs = [("item", "sample", "gold", "a", "b")]
        pairs += [
            (i, t, "yes", *("yes" if outcomes[s][i][t] else "no" for s in "ab")) for s, i, t, _ in rows if s == "a"
        ]
        csv.writer(file).writerows(pairs)
    for system, _, trial, _ in rows:
        with (tmp_path / f"{system}{trial}.csv").open("w") as file:
            csv.writer(file).writerows(
                [("item", "passed"), *((i, r) for s, i, t, r in rows if (s, t) == (system, trial))]
            )
    expected = expect_scores(outcomes, 2)
    replicates = [f"{system}={tmp_path / f'{system}{t}.csv'}" for t in range(3) for system in "ab"]
    for counts in (read(tmp_path / "long.csv"), read(tmp_path / "labels.csv"), read(*replicates)):
        assert [compute_score(counts, "pass@2", s) for s in (0, 1)] == pytest.approx(expected, abs=1e-12)


def test_the_item_is_the_unit_and_ties_are_exact(tmp_path):
    counts = read(*write_records(tmp_path, draw_outcomes(lambda _: 6)))
    (result,) = compare_all(counts, metrics=["pass@3"], trials=4096)
    assert (result.n_units, result.method) == (12, "exact")
    bound = bind_metric(find_metric("pass@3", counts), counts)
    assert {bound.get_field(name, counts).dtype.kind for name in bound.fields} == {"i"}


def test_many_samples_are_numbers_with_a_known_rounding(tmp_path):
    outcomes = draw_outcomes(lambda i: 150 + i)
    counts = read(*write_records(tmp_path, outcomes), format="samples")
    expected = [float(mean(compute_pass(len(s), sum(s), 77) for s in items.values())) for items in outcomes.values()]
    assert [compute_score(counts, "pass@77", s) for s in (0, 1)] == pytest.approx(expected, abs=1e-12)
    assert bind_metric(find_metric("pass@77", counts), counts).get_rounding("pass@77@above", counts) == (2**-53,) * 2


def test_what_is_no_right_or_wrong_is_an_error(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("id,sample,score\n1,1,0.5\n1,2,1\n2,1,1\n2,2,0\n")
        (tmp_path / f"{name}2.jsonl").write_text(
            '{"id": 1, "scores": {"x": 1, "y": 0}}\n{"id": 1, "scores": {"x": 0, "y": 0}}\n'
        )
    counts = read(tmp_path / "a.csv", tmp_path / "b.csv")
    with pytest.raises(InputError, match="needs samples that are right or wrong"):
        compute_score(counts, "pass@1", 0)
    counts = read(tmp_path / "a2.jsonl", tmp_path / "b2.jsonl", format="samples")
    with pytest.raises(InputError, match=r"name one: pass@2\[x\], pass@2\[y\]"):
        compute_score(counts, "pass@2", 0)
    assert compute_score(counts, "pass@2[x]", 0) == 1
    with pytest.raises(InputError, match="needs samples that are right or wrong"):
        compute_score(counts, "pass@2[z]", 0)
    with pytest.raises(InputError, match="needs all samples of an item together"):
        compute_score(Counts.of_replicates([counts, counts], apart=True), "pass@1[x]", 0)


@pytest.mark.parametrize("format_", ["samples", "ratings:raters=mean"])
@pytest.mark.parametrize("missing", ["pairwise", "zero"])
def test_an_item_that_a_system_lacks_is_left_out_or_zero(tmp_path, missing, format_):
    outcomes = draw_outcomes(lambda i: 2 + i % 2)
    del outcomes["b"]["t/9"]
    paths = write_records(tmp_path, outcomes)
    if format_ != "samples":
        rows = [
            f"{s},{i},{right}" for s, items in outcomes.items() for i, samples in items.items() for right in samples
        ]
        paths = [tmp_path / "long.csv"]
        paths[0].write_text("\n".join(["system,item,score", *rows]))
    counts = read(*paths, format=format_, options=Options(missing=missing))
    items = [item for item in outcomes["a"] if missing == "zero" or item != "t/9"]
    expected = [float(mean(enumerate_pass(s.get(i, [0, 0]), 2) for i in items)) for s in outcomes.values()]
    (result,) = compare_all(counts, metrics=["pass@2"], trials=256)
    assert [result.score_a, result.score_b] == pytest.approx(expected, abs=1e-12)
