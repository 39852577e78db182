"""A comparison opened: the same counts as the result's, the units as a reader knows them."""

import kinds
import numpy as np
import pytest
from panel_of import rng_of

from sigdask.analysis.details import null_distribution, runs
from sigdask.analysis.details.histogram import EqualBars
from sigdask.analysis.details.units import CUT, MOST_CHARACTERS
from sigdask.api import compare_opened
from sigdask.counts import Counts, Outputs
from sigdask.formats import read
from sigdask.metrics import black_box
from sigdask.statistics import bounds

N = 60


def scores(n_systems=3, *, decimals=2, **more):
    rng = rng_of(3)
    columns = {f"s{k}": np.round(rng.normal(0.1 * k, 1, N), decimals) for k in range(n_systems)}
    return Counts.from_scores(columns, ids=[f"i{k:02}" for k in range(N)], **more)


def texts():
    """Segments with two references, the third output longer than is shown."""
    rng, words = rng_of(5), ["the", "cat", "sat", "on", "a", "mat", "<b>", "&"]
    made = [[" ".join(rng.choice(words, 6)) for _ in range(30)] for _ in range(4)]
    made[0][2] = "long " * 200
    outputs = Outputs(tuple(np.array(own, object) for own in made[:2]), _objects(zip(made[2], made[3], strict=True)))
    return Counts(("new", "old"), {"segments": np.ones((30, 1), np.int64)}, 30, outputs=outputs)


def _objects(values):
    column = np.empty(30, object)
    column[:] = list(values)
    return column


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
def test_the_runs_end_where_the_result_does_and_are_prefixes_of_it(side):
    results, found = compare_opened([scores()], trials=3000, alternative=side, adjust="none")
    assert [one.row for one in found] == [0, 1, 2]
    for one, result in zip(found, results, strict=True):
        first, second = one.runs
        assert first.n_trials.tolist() == [16, 32, 64, 128, 256, 512, 1024, 2048, 3000]
        assert (first.n_extreme[-1], second.n_extreme[-1]) == (result.n_extreme, result.second_run.n_extreme)
        assert (np.diff(first.n_extreme) >= 0).all()
        assert first.p_values[-1] == (result.n_extreme + 1) / 3001
        assert [float(end[-1]) for end in first.intervals] == pytest.approx(list(result.p_interval))
        assert one.null.n_trials == 3000
        assert one.null.n_extreme == result.n_extreme
        assert one.null.observed == pytest.approx(result.difference)
        assert one.null.histogram.counts.sum() == 3000
        assert one.null.histogram.marked.sum() == result.n_extreme


def test_fewer_trials_are_the_first_of_more():
    [_, *_], more = compare_opened([scores()], trials=2048)
    _, fewer = compare_opened([scores()], trials=512)
    for one, other in zip(more, fewer, strict=True):
        for own, few in zip(one.runs, other.runs, strict=True):
            assert own.n_extreme[: len(few.n_extreme)].tolist() == few.n_extreme.tolist()


def test_where_trials_cost_too_much_the_points_are_fewer_and_the_end_is_the_results(monkeypatch):
    monkeypatch.setattr(runs, "MOST_WORK", 100_000)
    monkeypatch.setattr(null_distribution, "MOST_WORK", 10)
    results, found = compare_opened([scores()], trials=4096, adjust="none")
    for one, result in zip(found, results, strict=True):
        assert one.runs[0].n_trials[-1] == 4096
        assert 16 <= one.runs[0].n_trials[-2] < 2048
        assert one.runs[0].n_extreme[-1] == result.n_extreme
        assert one.null.n_trials == null_distribution.FEWEST_TRIALS


def test_few_units_are_drawn_whole():
    few = Counts.from_scores({"a": [3, 2, 5, 7, 1], "b": [1, 1, 1, 1, 1]})
    results, [one] = compare_opened([few])
    assert (one.null.is_whole, one.null.n_trials, one.null.n_extreme) == (True, 16, 2)  # one unit is a tie
    assert results[0].p_value == 2 / 16
    assert one.runs == ()
    assert (one.shares.n_for_a, one.shares.n_for_b, one.shares.n_alike) == (4, 0, 1)


def test_units_of_a_mean_add_up_and_the_largest_are_named():
    counts = scores(2)
    results, [one] = compare_opened([counts], trials=99)
    a, b = (np.asarray(column, float) for column in counts.outputs.systems)
    each = (a - b) / N
    order = np.argsort(-each, kind="stable")
    assert one.shares.add_up
    assert [unit.name for unit in one.deciding_units[:10]] == [f"i{k:02}" for k in order[:10]]
    assert [unit.name for unit in one.deciding_units[10:]] == [f"i{k:02}" for k in order[::-1][:10]]
    np.testing.assert_allclose(one.shares.values[:10], each[order[:10]], atol=1e-12)
    assert one.shares.n_for_a == np.count_nonzero(each > 0)
    assert (one.shares.n_for_a + one.shares.n_for_b + one.shares.n_alike) == N == results[0].n_units
    assert one.deciding_units[0].items[0].a == f"{a[order[0]]:.6g}"


def test_texts_stand_beside_the_units_and_long_ones_are_cut():
    counts = texts()
    _, found = compare_opened([counts], metrics=["BLEU", "chrF"], trials=99)
    for one in found:
        assert not one.shares.add_up
        for unit in one.deciding_units:
            [item] = unit.items
            k = int(item.name) - 1
            assert item.gold == counts.outputs.gold[k]
            assert item.b == counts.outputs.systems[1][k]
            if k != 2:
                assert item.a == counts.outputs.systems[0][k]
    [cut] = {item.a for one in found for unit in one.deciding_units for item in unit.items if item.name == "3"}
    assert cut.endswith(CUT)
    assert len(cut) == MOST_CHARACTERS


def test_documents_are_named_with_the_items_in_which_the_outputs_differ():
    rng = rng_of(2)
    right = rng.integers(0, 2, (2, N))
    right[1, :40] = right[0, :40]  # alike but in the last groups
    right[:, 57:] = [[1, 1, 1], [0, 0, 0]]
    counts = Counts.from_scores(
        dict(zip("ab", right.tolist(), strict=True)), groups={"document": [f"d{k // 6}" for k in range(N)]}
    )
    results, [one] = compare_opened([counts], unit="document", trials=99, method="randomization")
    assert results[0].n_units == 10
    unit = next(unit for unit in one.deciding_units if unit.name == "d9")
    assert unit.n_items == 6
    assert {(item.a, item.b) for item in unit.items} == {("1", "0")}


def test_items_that_one_system_lacks_are_of_no_unit():
    a = rng_of(1).normal(size=N)
    b = np.where(np.arange(N) % 3 == 0, np.nan, a - 1)
    _, [one] = compare_opened([Counts.from_scores({"a": a, "b": b}, missing="pairwise")], trials=99)
    assert one.shares.n_for_a == np.count_nonzero(~np.isnan(b))
    assert all((int(unit.name) - 1) % 3 for unit in one.deciding_units)


def test_a_metric_of_whole_outputs_has_a_null_and_no_units():
    total = black_box(lambda outputs, _: float(np.sum(outputs)), name="total")
    results, [one] = compare_opened([scores(2)], metrics=[total], trials=2000)
    assert one.null.n_trials == 20
    assert (one.shares, one.deciding_units) == (None, ())
    assert one.runs[0].n_trials.tolist() == [2000]
    assert one.runs[0].n_extreme.tolist() == [results[0].n_extreme]


def test_subsets_and_several_sets_are_opened_by_their_rows_of_the_whole_table():
    one_set = scores(2, groups={"kind": ["x", "y"] * (N // 2)})
    results, found = compare_opened([one_set, scores(2).with_name("other")], trials=999, metrics=["mean"])
    assert [one.row for one in found] == list(range(len(results)))
    by_kind, opened = compare_opened([one_set], trials=999, by="kind")
    for one, result in zip(opened, by_kind, strict=True):
        assert one.null.observed == pytest.approx(result.difference)
        assert one.runs[0].n_extreme[-1] == result.n_extreme


def test_bars_are_as_wide_as_steps_so_that_none_is_empty_between_others():
    values = rng_of(7).binomial(300, 0.5, 20_000) * 2.0 - 300
    found = EqualBars.from_values(values / 7, values > 20)
    assert found.counts.sum() == 20_000
    assert found.marked.sum() == np.count_nonzero(values > 20)
    assert (found.counts[5:-5] > 0).all()
    same = EqualBars.from_values(np.zeros(4), np.ones(4, bool))
    assert (same.counts.tolist(), same.marked.tolist()) == ([4], [4])


def test_intervals_are_those_of_clopper_and_pearson():
    run = runs.Convergence(np.array([16, 32]), np.array([1, 4]))
    low, high = bounds.clopper_pearson([1, 4], [16, 32])
    assert [end.tolist() for end in run.intervals] == [low.tolist(), high.tolist()]


def test_sources_stand_beside_references_where_the_files_have_them(tmp_path):
    segments = [(f"Satz {k}", f"sentence {k} is here", f"sentence {k} was here", f"a sentence {k}") for k in range(9)]
    parts = [
        "".join(f'<seg id="{k + 1}">{own[at]}</seg>' for k, own in enumerate(segments)) for at in range(4)
    ]  # fmt: skip
    (tmp_path / "set.xml").write_text(
        f'<dataset id="d"><doc id="news"><src lang="de"><p>{parts[0]}</p></src>'
        f'<ref lang="en" translator="A"><p>{parts[1]}</p></ref>'
        f'<hyp system="x"><p>{parts[2]}</p></hyp><hyp system="y"><p>{parts[3]}</p></hyp></doc></dataset>'
    )
    counts = read(tmp_path / "set.xml")
    for own in (counts, counts.in_order(counts.ids[::-1])):
        _, [one] = compare_opened([own], metrics=["chrF"])
        assert (one.field_names.prompt, one.field_names.gold) == ("source", "reference")
        assert one.deciding_units
        for unit in one.deciding_units:
            k = int(unit.name.partition(":")[2]) - 1
            assert [(item.prompt, *item.gold, item.a, item.b) for item in unit.items] == [segments[k]]


def test_topics_are_shown_by_what_both_runs_score_in_them():
    counts = kinds.rankings()
    results, [one] = compare_opened([counts], metrics=["AP"], trials=99)
    assert one.shares.add_up
    for unit, value, scores in zip(one.deciding_units, one.shares.values, one.shares.scores, strict=True):
        [item] = unit.items
        assert (item.gold, item.a, item.b) == ((), f"{scores[0]:.6g}", f"{scores[1]:.6g}")
        assert value == pytest.approx((scores[0] - scores[1]) / results[0].n_units)
