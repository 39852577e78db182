"""Measures of rankings agree with ir-measures, for pseudo-systems too, in trec_eval's order."""

import ir_measures
import numpy as np
import pytest
from builders import build_rng

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import read
from sigdask.metrics import find_metric

MEASURES = ("AP", "nDCG@10", "nDCG", "P@5", "RR", "RR@10", "Rprec", "SetP", "SetR", "SetF", "SetF(beta=0.5)", "Bpref",
            "R@20", "AP(rel=2)", "AP@10", "AP(rel=2)@10", "IPrec@0.1", "Success@3", "Judged@10", "P(judged_only=True)@5",
            "nDCG(gains={1:5})@10", "Compat", "infAP", "NumRelRet", "NumRet")  # fmt: skip
N_TOPICS = 12


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("trec"), build_rng(5)
    qrels, runs = [], {"x": [], "y": []}
    for topic in range(N_TOPICS):
        qrels += [f"t-{topic} 0 d{d} {rng.integers(0, 4)}" for d in rng.choice(60, 30, replace=False)]
        for name, lines in runs.items():
            lines += [f"t-{topic} Q0 d{d} 0 {rng.integers(0, 9) / 2} {name}" for d in rng.choice(60, 40, replace=False)]
    for name, lines in {**runs, "qrels": qrels}.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def counts(files):
    return read(files / "x", files / "y", gold=files / "qrels")


def score_with_ir_measures(counts, measure, rankings):
    """Score whole rankings with ir-measures."""
    qrels = dict(zip(counts.ids, counts.outputs.gold, strict=True))
    run = {t: {d: float(len(r) - k) for k, d in enumerate(r)} for t, r in zip(counts.ids, rankings, strict=True)}
    parsed = ir_measures.parse_measure(measure)
    return ir_measures.calc_aggregate([parsed], qrels, run)[parsed]


@pytest.mark.parametrize("measure", MEASURES)
def test_systems_and_pseudo_systems_have_the_librarys_score(counts, measure):
    bound = find_metric(measure, counts).bind(counts)
    arrays = np.stack([np.broadcast_to(bound.get_field(f, counts), (N_TOPICS, 2)) for f in bound.fields], axis=-1)
    x, y = counts.outputs.systems
    for swapped in [np.zeros(N_TOPICS, bool), *(build_rng(6).random((8, N_TOPICS)) < 0.5)]:
        pseudo = [b if s else a for a, b, s in zip(x, y, swapped, strict=True)]
        sums = np.where(swapped[:, None], arrays[:, 1], arrays[:, 0]).sum(0)
        assert float(bound.form.score(sums)) == pytest.approx(
            score_with_ir_measures(counts, measure, pseudo), rel=1e-12
        )


def test_the_order_of_ties_is_that_of_trec_eval(files, counts):
    run = [line.split() for line in (files / "x").read_text().splitlines()]
    scored = [ir_measures.ScoredDoc(t, d, float(s)) for t, _, d, _, s, _ in run]
    qrels = dict(zip(counts.ids, counts.outputs.gold, strict=True))
    r = compare_all(counts, metrics=["AP"], trials=256)[0]
    assert r.score_a == pytest.approx(
        ir_measures.pytrec_eval.calc_aggregate([ir_measures.AP], qrels, scored)[ir_measures.AP]
    )


def test_err_has_the_sum_of_its_definition(counts):
    if not ir_measures.gdeval.is_available():
        pytest.skip("gdeval needs perl")
    scores = find_metric("ERR@10", counts).bind(counts).own["score[ERR@10]"]
    for s, rankings in enumerate(counts.outputs.systems):
        for k, (documents, judgements) in enumerate(zip(rankings, counts.outputs.gold, strict=True)):
            expected, stays = 0.0, 1.0
            for rank, document in enumerate(documents[:10], start=1):
                satisfied = (2 ** judgements.get(document, 0) - 1) / 16
                expected += stays * satisfied / rank
                stays *= 1 - satisfied
            assert scores[k, s] == pytest.approx(expected, abs=5.1e-6)


@pytest.mark.parametrize(
    ("ours", "trec"), [("AP", "map"), ("nDCG@10", "ndcg_cut_10"), ("R@20", "recall_20"), ("RR", "recip_rank")]
)
def test_names_of_trec_eval_are_names_too(counts, ours, trec):
    a, b = compare_all(counts, metrics=[ours, trec], trials=256)
    assert (a.score_a, a.score_b) == (b.score_a, b.score_b)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("P", "stands for|invalid param cutoff"),
        ("recall", "stands for R@5"),
        ("AP(foo=2)", "unsupported params found: .*foo.*; it takes cutoff"),
        ("P@0", "cutoff = 0 must lie between 1"),
        ("P@0.5", "invalid param cutoff=0.5"),
        ("P@99999999999", "must lie between"),
        ("AP(rel=0)", "rel = 0 must lie between 1"),
        ("IPrec@2.0", "recall = 2.0 must lie between 0 and 1"),
        ("AP_IA", "ir-measures cannot compute it"),
        ("nothing", "unknown metric 'nothing'"),
        ("nDCG@ten", "unknown metric 'nDCG@ten'"),
        ("mean", "needs item scores"),
        ("no_such_module:f", "cannot import"),
    ],
)
def test_a_name_that_is_no_measure_is_an_error_with_a_remedy(counts, name, message):
    with pytest.raises(InputError, match=message):
        find_metric(name, counts).bind(counts)


@pytest.mark.parametrize(("name", "listed"), [("ndcg@10", "nDCG@10"), ("map", "map"), ("p@5", "P@5"), ("AP", "AP")])
def test_a_measure_keeps_the_name_that_it_is_listed_by(counts, name, listed):
    assert find_metric(name, counts).bind(counts).name == listed


def test_measures_need_rankings():
    labels = Counts.from_labels(list("AB"), {"x": list("AB"), "y": list("BB")})
    with pytest.raises(InputError, match="needs rankings and judgements"):
        find_metric("AP", labels).bind(labels)


def test_without_the_library_the_extra_is_named(counts, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ir_measures", None)
    with pytest.raises(InputError, match=r"pip install 'ir-measures'"):
        find_metric("AP", counts)


def test_relevance_below_0_is_not_relevant_and_for_bpref_not_judged(files, tmp_path):
    lines = [line.split() for line in (files / "qrels").read_text().splitlines()]
    for name, change in {"below": {"0": "-2"}, "zero": {}, "dropped": {"0": None}}.items():
        changed_lines = [(*words[:3], change.get(words[3], words[3])) for words in lines]
        (tmp_path / name).write_text("".join(" ".join(w) + "\n" for w in changed_lines if w[3] is not None))
    below, zero, dropped = (read(files / "x", files / "y", gold=tmp_path / n) for n in ("below", "zero", "dropped"))
    for measure, equivalent in (("AP", zero), ("nDCG@10", zero), ("Judged@10", zero), ("Bpref", dropped)):
        column = f"score[{measure}]"
        below_values, equivalent_values = (find_metric(measure, c).bind(c).own[column] for c in (below, equivalent))
        assert (below_values == equivalent_values).all()
    with pytest.raises(InputError, match="relevance -2"):
        find_metric("infAP", below).bind(below)


def test_a_total_is_compared_as_a_total(counts):
    total, mean = compare_all(counts, metrics=["NumRelRet", "SetR"], trials=256)
    assert total.score_a == sum(
        grades.get(d, 0) > 0
        for r, grades in zip(counts.outputs.systems[0], counts.outputs.gold, strict=True)
        for d in r
    )
    assert mean.score_a < 1
