"""Tests of comparison details: the counts of the result, and the units under their own names."""

import numpy as np
import pytest
from builders import build_rng

from sigdask.api import compare_opened
from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.formats import read
from sigdask.metrics import black_box
from sigdask.text import CUT, MAX_VALUE

N = 60


def draw_scores(n_systems=3, *, decimals=2, **options):
    rng = build_rng(3)
    columns = {f"s{k}": np.round(rng.normal(0.1 * k, 1, N), decimals) for k in range(n_systems)}
    return Counts.from_scores(columns, ids=[f"i{k:02}" for k in range(N)], **options)


def draw_texts():
    """Return segments with two references, the third output longer than what is shown."""
    rng, words = build_rng(5), ["the", "cat", "sat", "on", "a", "mat", "<b>", "&"]
    columns = [[" ".join(rng.choice(words, 6)) for _ in range(30)] for _ in range(4)]
    columns[0][2] = "long " * 200
    gold = to_object_array([*zip(columns[2], columns[3], strict=True)])
    outputs = Outputs(tuple(np.array(column, object) for column in columns[:2]), gold)
    return Counts(("new", "old"), {"segments": np.ones((30, 1), np.int64)}, 30, outputs=outputs)


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
def test_the_null_distribution_is_that_of_the_trials_of_a_result(side):
    results, all_details = compare_opened([draw_scores()], trials=8192, alternative=side, adjust="none")
    assert [details.row for details in all_details] == [0, 1, 2]
    for details, result in zip(all_details, results, strict=True):
        assert details.null.counts.sum() == 8192
        assert details.null.marked.sum() == result.n_extreme


def test_units_on_which_systems_tie_favour_neither():
    five_units = Counts.from_scores({"a": [3, 2, 5, 7, 1], "b": [1, 1, 1, 1, 1]})
    _, [details] = compare_opened([five_units])
    assert details.shares.counts == (4, 1, 0)


def test_units_of_a_mean_add_up_and_the_largest_are_named():
    counts = draw_scores(2)
    results, [details] = compare_opened([counts], trials=99)
    a, b = (np.asarray(column, float) for column in counts.outputs.systems)
    unit_shares = (a - b) / N
    order = np.argsort(-unit_shares, kind="stable")
    assert details.shares.add_up
    assert [unit.name for unit in details.deciding_units[:10]] == [f"i{k:02}" for k in order[:10]]
    assert [unit.name for unit in details.deciding_units[10:]] == [f"i{k:02}" for k in order[::-1][:10]]
    np.testing.assert_allclose(
        [unit.value for unit in details.deciding_units[:10]], unit_shares[order[:10]], atol=1e-12
    )
    assert details.shares.counts[0] == np.count_nonzero(unit_shares > 0)
    assert sum(details.shares.counts) == N == results[0].n_units
    assert details.deciding_units[0].items[0].a == f"{a[order[0]]:.6g}"


def test_texts_stand_beside_the_units_and_long_ones_are_cut():
    counts = draw_texts()
    _, all_details = compare_opened([counts], metrics=["BLEU", "chrF"], trials=99)
    for details in all_details:
        assert not details.shares.add_up
        for unit in details.deciding_units:
            [item] = unit.items
            k = int(item.name) - 1
            assert item.gold == counts.outputs.gold[k]
            assert item.b == counts.outputs.systems[1][k]
            if k != 2:
                assert item.a == counts.outputs.systems[0][k]
    [cut] = {
        item.a for details in all_details for unit in details.deciding_units for item in unit.items if item.name == "3"
    }
    assert cut.endswith(CUT)
    assert len(cut) == MAX_VALUE


def test_documents_are_named_with_the_items_in_which_the_outputs_differ():
    rng = build_rng(2)
    is_correct = rng.integers(0, 2, (2, N))
    is_correct[1, :40] = is_correct[0, :40]  # alike but in the last groups
    is_correct[:, 57:] = [[1, 1, 1], [0, 0, 0]]
    counts = Counts.from_scores(
        dict(zip("ab", is_correct.tolist(), strict=True)), groups={"document": [f"d{k // 6}" for k in range(N)]}
    )
    results, [details] = compare_opened([counts], unit="document", trials=99, method="randomization")
    assert results[0].n_units == 10
    unit = next(unit for unit in details.deciding_units if unit.name == "d9")
    assert unit.n_items == 6
    assert {(item.a, item.b) for item in unit.items} == {("1", "0")}


def test_a_metric_of_whole_outputs_has_no_units():
    total = black_box(lambda outputs, _: float(np.sum(outputs)), name="total")
    _, [details] = compare_opened([draw_scores(2)], metrics=[total], trials=2000, cluster="none")
    assert (details.shares, details.deciding_units) == (None, ())


def test_subsets_and_several_sets_are_opened_by_their_rows_of_the_whole_table():
    test_set = draw_scores(2, groups={"kind": ["x", "y"] * (N // 2)})
    results, all_details = compare_opened([test_set, draw_scores(2, name="other")], trials=999, metrics=["mean"])
    assert [details.row for details in all_details] == list(range(len(results)))
    by_kind, subset_details = compare_opened([test_set], trials=999, by="kind")
    for details, result in zip(subset_details, by_kind, strict=True):
        assert sum(details.shares.counts) == result.n_units


def test_sources_stand_beside_references_where_the_files_have_them(tmp_path):
    segments = [(f"Satz {k}", f"sentence {k} is here", f"sentence {k} was here", f"a sentence {k}") for k in range(9)]
    segment_texts = [
        "".join(f'<seg id="{k + 1}">{ordered[column]}</seg>' for k, ordered in enumerate(segments)) for column in range(4)
    ]  # fmt: skip
    (tmp_path / "set.xml").write_text(
        f'<dataset id="d"><doc id="news"><src lang="de"><p>{segment_texts[0]}</p></src>'
        f'<ref lang="en" translator="A"><p>{segment_texts[1]}</p></ref>'
        f'<hyp system="x"><p>{segment_texts[2]}</p></hyp><hyp system="y"><p>{segment_texts[3]}</p></hyp></doc></dataset>'
    )
    counts = read(tmp_path / "set.xml")
    for ordered in (counts, counts.in_order(counts.ids[::-1])):
        _, [details] = compare_opened([ordered], metrics=["chrF"])
        assert details.field_names == ("source", "reference")
        assert details.deciding_units
        for unit in details.deciding_units:
            k = int(unit.name.partition(":")[2]) - 1
            assert [(item.prompt, *item.gold, item.a, item.b) for item in unit.items] == [segments[k]]
