"""Tests that the code in docs/random-streams.md gives the same counts as the program."""

import re
from pathlib import Path

import numpy as np
import pytest

from sigdask import compare, compare_all, independence
from sigdask.counts import Counts

PAGE = (Path(__file__).parent.parent / "docs" / "random-streams.md").read_text()
N_TRIALS = 600


@pytest.fixture(scope="module")
def page():
    """Return the names that the page's block of code defines."""
    section = PAGE[PAGE.index("## Scheme 1") :]
    code = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    defined = {}
    exec(compile(code[1], "docs/random-streams.md", "exec"), defined)
    return defined


def draw_scores(n_items, n_systems=2):
    return np.random.default_rng(n_items).integers(0, 9, (n_systems, n_items))


# ids out of order, beyond ASCII, one in decomposed form (e and a combining accent), which is sorted as composed
IDS = [f"q{k}" for k in range(140, 3, -1)] + ["Ω", "e\u0301", "z"]


@pytest.mark.parametrize("ids", [None, IDS], ids=["positions", "ids"])
@pytest.mark.parametrize("seed", [0, 5_000_000_000])
def test_the_page_gives_the_counts_of_items_in_both_runs(page, ids, seed):
    scores = draw_scores(140)
    result = compare(*scores, ids=ids, seed=seed, trials=N_TRIALS)
    units = ids or 140
    assert result.n_extreme == page["count_exceedances"](scores, units, N_TRIALS, seed=seed)
    second = page["count_exceedances"](scores, units, N_TRIALS // 4, seed=seed, run=1)
    assert result.second_run.n_extreme == second


def test_the_page_gives_the_counts_of_larger_units_of_a_named_set(page):
    scores = draw_scores(120)
    documents = [f"doc {k * 7 % 31}" for k in range(120)]
    counts = Counts.from_scores(
        dict(zip("ab", scores, strict=True)), ids=[f"i{k}" for k in range(120)], groups={"document": documents},
        name="newstest",
    )  # fmt: skip
    [result] = compare_all(counts, metrics=["mean"], unit="document", seed=3, trials=N_TRIALS)
    assert result.n_extreme == page["count_exceedances"](scores, documents, N_TRIALS, seed=3, name="newstest")


@pytest.mark.parametrize("apart", [False, True])
def test_the_page_gives_the_counts_of_replicates(page, apart):
    scores = draw_scores(30).reshape(2, 1, 30) + np.random.default_rng(1).integers(0, 4, (2, 3, 30))
    parts = [Counts.from_scores({"a": scores[0, r], "b": scores[1, r]}) for r in range(3)]
    [result] = compare_all(Counts.of_replicates(parts, apart=apart), metrics=["mean"], trials=N_TRIALS)
    flat, units = scores.sum(axis=1), 30
    if apart:
        flat, units = scores.reshape(2, 90), [f"{item} {r}" for r in (1, 2, 3) for item in range(1, 31)]
    assert result.n_extreme == page["count_exceedances"](flat, units, N_TRIALS)


@pytest.mark.parametrize("n_systems", [3, 7])
def test_the_page_gives_the_counts_of_tukeys_test(page, n_systems):
    names, ids = "abcdefg"[:n_systems], [f"i{k}" for k in range(30)]
    scores = draw_scores(30, n_systems)
    counts = Counts.from_scores(dict(zip(names, scores, strict=True)), ids=ids)
    results = compare_all(counts, metrics=["mean"], adjust="tukey", trials=120)
    want = page["count_tukey_exceedances"](scores, ids, 120)
    for result in results:
        n_extreme = want[names.index(result.a), names.index(result.b)]
        assert result.p_adjusted == pytest.approx(max((n_extreme + 1) / 121, result.p_value), rel=1e-12)
    assert any((n_extreme + 1) / 121 > r.p_value for n_extreme, r in zip(want.values(), results, strict=True))


@pytest.mark.parametrize("within", [None, [f"part {k * 5 % 3}" for k in range(40)]], ids=["whole", "strata"])
def test_the_page_gives_the_counts_of_label_permutation(page, within):
    rng = np.random.default_rng(6)
    ids = [*IDS[:38], *IDS[-3:-1]]
    labels_a, labels_b = (rng.choice(list("abc"), 40).tolist() for _ in range(2))
    result = independence(
        labels_a, labels_b, ids=ids, within=within, names=("a", "b"), method="randomization", trials=200, seed=7
    )
    for run, n_trials, n_extreme in ((0, 200, result.n_extreme), (1, 50, result.second_run.n_extreme)):
        assert n_extreme == page["count_label_exceedances"](
            labels_a, labels_b, ids, n_trials, within=within, seed=7, run=run
        )
