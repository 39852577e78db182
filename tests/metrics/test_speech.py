"""WER and CER agree with jiwer's corpus scores, for systems and pseudo-systems."""

import jiwer
import numpy as np
import pytest
from builders import build_rng

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.metrics import find_metric
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream import draw_swap_bits

WORDS = ["so", "Well", "we", "we", "went", "to", "the", "uh,", "sea", "and", "it's", "über", "cold"]


@pytest.fixture(scope="module")
def texts():
    rng = build_rng(4)

    def draw_sentence(original=None):
        words = list(rng.choice(WORDS, rng.integers(1, 12))) if original is None else original.split()
        changed = [w for w in words if rng.random() < 0.9]
        changed = [w if rng.random() < 0.8 else str(rng.choice(WORDS)) for w in changed]
        return "  ".join(changed + ["uh"] * int(rng.random() < 0.2))

    gold = [draw_sentence() for _ in range(50)]
    systems = [[draw_sentence(g) for g in gold] for _ in range(2)]
    gold[7] = ""  # silence; what is said there is inserted
    systems[1][3] = ""
    return gold, systems


@pytest.fixture
def counts(texts, tmp_path):
    gold, systems = texts
    for name, lines in zip(("gold", "x", "y"), (gold, *systems), strict=True):
        (tmp_path / name).write_text("".join(f"{line} (s{k % 5}-{k})\n" for k, line in enumerate(lines)))
    return read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "gold")


def normalise_text(text):
    return jiwer.RemovePunctuation()(jiwer.ToLowerCase()(text))


@pytest.mark.parametrize(
    ("metric", "score", "changed"),
    [
        ("WER", jiwer.wer, str),
        ("CER", jiwer.cer, str),
        ("WER:lowercase=1,punctuation=0", jiwer.wer, normalise_text),
        ("CER:lowercase=1,punctuation=0", jiwer.cer, normalise_text),
    ],
)
@pytest.mark.slow
def test_systems_and_pseudo_systems_have_jiwers_corpus_score(texts, counts, metric, score, changed):
    gold, systems = texts
    bound = find_metric(metric).bind(counts)
    arrays = np.stack([np.broadcast_to(bound.get_field(f, counts), (50, 2)) for f in bound.fields], axis=-1)
    assert arrays.dtype == np.int64
    units = SwapUnits.from_counts(counts, 0)
    bits = draw_swap_bits(units.key, run=0, first=0, n_trials=25, n_units=50)[:, units.index]
    bits[0] = False
    for row in bits:
        pseudo = [changed(y if s else x) for x, y, s in zip(*systems, row, strict=True)]
        sums = np.where(row[:, None], arrays[:, 1], arrays[:, 0]).sum(0)
        assert float(bound.form.score(sums)) == pytest.approx(score([changed(g) for g in gold], pseudo), rel=1e-12)


def test_rates_are_linear_lower_is_better_and_say_how_they_counted(counts):
    wer, cer = compare_all(counts, metrics=["WER", "CER"], trials=500, unit="speaker")
    assert wer.n_units == 5
    assert wer.method == cer.method == "exact"
    assert not wer.higher_is_better
    assert wer.r12 is not None  # one denominator: a mean over a fixed set of items
    assert wer.signature.startswith("case:mixed|punct:kept|unit:words|jiwer:")
    assert cer.signature.startswith("case:mixed|punct:kept|unit:characters|jiwer:")


def test_rates_need_texts_of_one_reference_with_words(tmp_path):
    with pytest.raises(InputError, match="needs texts and references"):
        find_metric("WER").bind(Counts.from_labels(["A"], {"x": ["A"], "y": ["B"]}))
    for name in ("x", "y", "g"):
        (tmp_path / name).write_text("a b\n")
    two = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "g", options=Options(references=(tmp_path / "g",)))
    with pytest.raises(InputError, match="takes one reference, but each item has 2"):
        find_metric("CER").bind(two)
    (tmp_path / "g").write_text(" \n")
    with pytest.raises(InputError, match="references are empty"):
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "g", format="speech:ids=none")
    with pytest.raises(InputError, match="punctuation = '2' must be one of 1, 0"):
        find_metric("WER:punctuation=2")
