"""BLEU, chrF and TER: the corpus scores of sacrebleu, of systems and of pseudo-systems."""

import json

import numpy as np
import pytest
import sacrebleu
from panel_of import rng_of

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.kernels.scored import count_scored, parameters
from sigdask.metrics import find
from sigdask.metrics.forms import Bleu, ChrF, Ratios
from sigdask.panels import Units
from sigdask.randomization import tally
from sigdask.shuffles import swap_bits

TOOLS = {
    "BLEU": sacrebleu.BLEU(force=True),
    "BLEU:tokenize=char": sacrebleu.BLEU(force=True, tokenize="char"),
    "chrF": sacrebleu.CHRF(),
    "chrF++": sacrebleu.CHRF(word_order=2),
    "chrF:beta=0.5": sacrebleu.CHRF(beta=0.5),
    "TER": sacrebleu.TER(),
}
WORDS = ["the", "a", "cat", "dog", "sat", "on", "mat", "and", ",", ".", "ran", "over", "house", "big", "small"]


@pytest.fixture(scope="module")
def texts():
    rng = rng_of(0)

    def sentence(like=None):
        words = list(rng.choice(WORDS, rng.integers(3, 12))) if like is None else like.split()
        changed = [w if rng.random() < 0.75 else str(rng.choice(WORDS)) for w in words]
        return " ".join(changed[: max(1, len(changed) - rng.integers(0, 2))])

    references = [[sentence() for _ in range(60)] for _ in range(2)]
    systems = [[sentence(r) for r in references[0]] for _ in range(2)]
    systems[0][3] = ""  # an empty line is an output
    return systems, references


@pytest.fixture
def counts(texts, tmp_path):
    systems, references = texts
    for name, lines in zip(("x", "y", "r1", "r2"), (*systems, *references), strict=True):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    options = Options(references=(tmp_path / "r2",))
    return read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "r1", options=options)


@pytest.mark.parametrize("metric", TOOLS)
def test_systems_and_pseudo_systems_have_sacrebleus_corpus_score(texts, counts, metric):
    systems, references = texts
    bound = find(metric).bind(counts)
    arrays = np.stack([bound.field(f, counts) for f in bound.fields], axis=-1)  # (n_items, 2, n_fields)
    units = Units.of(counts, 0)
    bits = swap_bits(units.key, run=0, first=0, n_trials=25, n_units=60)
    bits[0] = False
    for row in bits:
        pseudo = [y if s else x for x, y, s in zip(*systems, row, strict=True)]
        sums = np.where(row[:, None], arrays[:, 1], arrays[:, 0]).sum(0)
        assert float(bound.form.score(sums)) == pytest.approx(
            TOOLS[metric].corpus_score(pseudo, references).score, rel=1e-12
        )


@pytest.mark.parametrize(
    ("form", "n_fields"),
    [(Bleu(), 10), (ChrF(), 18), (ChrF(1.0), 24), (Ratios(((1, 0), (0, 2)), ((0, 1), (3, 1))), 2)],
    ids=["bleu", "chrf", "chrf++", "ratios"],
)
def test_the_fused_score_is_that_of_the_form(form, n_fields):
    rng = rng_of(1)
    sums = rng.integers(0, 4, (2, 500, n_fields)) * rng.integers(0, 2, (2, 500, 1))
    if isinstance(form, Bleu):
        sums[..., 6:10] = np.maximum(sums[..., 6:10], sums[..., 2:6])
    a, b = form.score(sums[0]), form.score(sums[1])
    counted = np.zeros((500, 3), np.int64)
    for k in range(500):  # one pair at a time, nothing moved: T is the difference itself
        totals = sums[:, k].astype(float)
        observed = np.array([a[k] - b[k]])
        moved = np.zeros((2, n_fields, 1))
        count_scored(*parameters(form), moved, totals, np.array([[0, 1]]), observed, counted[k : k + 1])
    assert (counted == 1).all()


@pytest.mark.parametrize("metric", ["BLEU", "chrF"])
def test_the_fused_kernel_counts_what_plain_numpy_counts(counts, metric):
    from sigdask.panels import build

    bound = find(metric).bind(counts)
    units = Units.of(counts, 0)
    [placed] = build(counts, units, [bound], [(0, 1)])
    arrays = np.stack([bound.field(f, counts) for f in bound.fields], axis=-1)
    bits = swap_bits(units.key, run=0, first=0, n_trials=2000, n_units=60).astype(np.int64)
    moved = bits @ (arrays[:, 1] - arrays[:, 0]).reshape(60, -1)
    a = bound.form.score(arrays[:, 0].sum(0) + moved)
    b = bound.form.score(arrays[:, 1].sum(0) - moved)
    t = float(bound.form.score(arrays[:, 0].sum(0)) - bound.form.score(arrays[:, 1].sum(0)))
    tie = 1e-11
    want = [(a - b >= t - tie).sum(), (a - b <= t + tie).sum(), (abs(a - b) >= abs(t) - tie).sum()]
    assert tally(placed.panel, n_trials=2000).counts[0, 0, :3].tolist() == want


def test_ter_is_better_when_lower(counts):
    [r] = compare_all(counts, metrics=["TER"], trials=100)
    assert not r.higher_is_better
    assert r.better() == ("x" if r.score_a < r.score_b else "y")


@pytest.mark.parametrize("metric", ["BLEU", "chrF", "TER"])
def test_a_text_metric_asked_for_twice_is_answered_twice(counts, metric):
    first, second = compare_all(counts, metrics=[metric, metric], trials=100)
    assert first == second


def test_texts_need_as_many_lines_as_the_reference(counts, tmp_path):
    (tmp_path / "y").write_text("one\ntwo\n")
    with pytest.raises(InputError, match=r"y: 2 lines, but .*r1 has 60"):
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "r1", format="segments")


def test_lines_end_at_lf_alone(tmp_path):
    for name in "xyr":
        (tmp_path / name).write_text("one\u2028still one\ntwo\x85still two\n", newline="")
    assert read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "r", format="segments").n_items == 2


def test_bleu_of_labels_is_refused():
    from sigdask.counts import Counts

    with pytest.raises(InputError, match="needs texts and references"):
        find("BLEU").bind(Counts.from_labels(["A"], {"x": ["A"], "y": ["B"]}))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_wmt24_has_its_official_scores(shared_data):
    folder = shared_data / "mt_wmt24_en-de"
    official = json.loads((folder / "reference_scores.json").read_text())["scores"]
    names = ("Aya23", "CycleL", "CycleL2", "Occiglot")
    options = Options(documents=folder / "en-de.docs")
    counts = read(*(folder / "systems" / f"{n}.txt" for n in names), gold=folder / "en-de.refA.txt", options=options)
    assert counts.n_items == 997
    assert "canary" in counts.warnings[0]
    for r in compare_all(counts, metrics=["BLEU", "chrF"], unit="document", trials=500):
        key = {"BLEU": "BLEU", "chrF": "chrF2"}[r.metric]
        for system, score in ((r.a, r.score_a), (r.b, r.score_b)):
            assert round(score, 6) == official[system]["refA"][key]
        if {r.a, r.b} == {"CycleL", "CycleL2"}:
            assert r.p_value == 1.0
        else:
            assert r.n_units == 170
