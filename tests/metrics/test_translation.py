"""BLEU, chrF and TER agree with sacrebleu's corpus scores, for systems and pseudo-systems."""

import json

import numpy as np
import pytest
import sacrebleu
from builders import build_panels, build_rng

from sigdask.api import compare, compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.metrics import find_metric
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.stream import draw_swap_bits

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
    rng = build_rng(0)

    def draw_sentence(original=None):
        words = list(rng.choice(WORDS, rng.integers(3, 12))) if original is None else original.split()
        changed = [w if rng.random() < 0.75 else str(rng.choice(WORDS)) for w in words]
        return " ".join(changed[: max(1, len(changed) - rng.integers(0, 2))])

    references = [[draw_sentence() for _ in range(60)] for _ in range(2)]
    systems = [[draw_sentence(r) for r in references[0]] for _ in range(2)]
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
    bound = find_metric(metric).bind(counts)
    arrays = np.stack([bound.get_field(f, counts) for f in bound.fields], axis=-1)  # (n_items, 2, n_fields)
    units = SwapUnits.from_counts(counts, 0)
    bits = draw_swap_bits(units.key, run=0, first=0, n_trials=25, n_units=60)
    bits[0] = False
    for row in bits:
        pseudo = [y if s else x for x, y, s in zip(*systems, row, strict=True)]
        sums = np.where(row[:, None], arrays[:, 1], arrays[:, 0]).sum(0)
        assert float(bound.form.score(sums)) == pytest.approx(
            TOOLS[metric].corpus_score(pseudo, references).score, rel=1e-12
        )


@pytest.mark.parametrize("metric", [name for name in TOOLS if name != "TER"])
def test_every_segment_with_one_reference_has_sacrebleus_statistics(metric):
    rng = build_rng(1)
    pieces = ["a", "b", "A", ".", "(", " ", "  ", "\t", "\u3000", "\u00e9", "\u0130", "\U0001f600"]
    outputs, references = (["".join(rng.choice(pieces, rng.integers(0, 40))) for _ in range(300)] for _ in range(2))
    outputs[:2], references[1:3] = ["", ""], ["", ""]
    (counted,) = find_metric(metric).extraction.count([outputs], [[text] for text in references])
    np.testing.assert_array_equal(counted, TOOLS[metric]._extract_corpus_statistics(outputs, [references]))


@pytest.mark.parametrize("metric", ["BLEU", "chrF"])
def test_the_fused_kernel_counts_what_plain_numpy_counts(counts, metric):
    bound = find_metric(metric).bind(counts)
    units = SwapUnits.from_counts(counts, 0)
    [placed] = build_panels(counts, units, [bound], [(0, 1)])
    arrays = np.stack([bound.get_field(f, counts) for f in bound.fields], axis=-1)
    bits = draw_swap_bits(units.key, run=0, first=0, n_trials=2000, n_units=60).astype(np.int64)
    moved = bits @ (arrays[:, 1] - arrays[:, 0]).reshape(60, -1)
    a = bound.form.score(arrays[:, 0].sum(0) + moved)
    b = bound.form.score(arrays[:, 1].sum(0) - moved)
    t = float(bound.form.score(arrays[:, 0].sum(0)) - bound.form.score(arrays[:, 1].sum(0)))
    tie = 1e-11
    expected = [(a - b >= t - tie).sum(), (a - b <= t + tie).sum(), (abs(a - b) >= abs(t) - tie).sum()]
    assert placed.panel.tally(n_trials=2000).counts[0, 0, :3].tolist() == expected


def test_ter_is_better_when_lower(counts):
    [r] = compare_all(counts, metrics=["TER"], trials=100)
    assert not r.higher_is_better
    assert r.better() == ("x" if r.score_a < r.score_b else "y")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("key", ["refA", "refB", "multi_ref"])
def test_every_system_of_wmt24_has_its_official_scores(shared_data, key):
    folder = shared_data / "mt_wmt24_en-de"
    official = json.loads((folder / "reference_scores.json").read_text())["scores"]
    gold, *others = [folder / f"en-de.{name}.txt" for name in ("refA", "refB") if key in {name, "multi_ref"}]
    files = [folder / "systems" / f"{name}.txt" for name in official]
    counts = read(*files, gold=gold, format="segments", options=Options(references=tuple(others)))
    for metric, column in (("BLEU", "BLEU"), ("chrF", "chrF2")):
        assert compute_scores(counts, metric) == [official[system][key][column] for system in counts.systems]


@pytest.mark.slow
def test_ted_has_its_official_scores_and_two_conclusions(shared_data):
    folder = shared_data / "mt_ted_comparemt"
    official = json.loads((folder / "reference_scores.json").read_text())["scores"]
    keys = {
        "": (("BLEU:tokenize=none", "BLEU_tokenized_text_tok_none"),),
        "detok.": (("BLEU", "BLEU_detok_13a"), ("chrF", "chrF2_detok")),
    }
    for kind, metrics in keys.items():
        counts = read(
            *(f"{n}={folder / n}.{kind}eng" for n in official), gold=folder / f"ted.ref.{kind}eng", format="segments"
        )
        assert counts.n_items == 2445
        for name, key in metrics:
            assert compute_scores(counts, name) == [official[system][key] for system in official]
    bleu, chrf = compare_all(counts, metrics=["BLEU", "chrF"], trials=2000)
    assert (bleu.better(), chrf.better()) == ("ted.sys2", "ted.sys1")


def compute_scores(counts, metric):
    bound = find_metric(metric).bind(counts)
    sums = np.stack([bound.get_field(f, counts).sum(0) for f in bound.fields], axis=-1)
    return bound.form.score(sums).round(6).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "gold", "systems"),
    [
        ("mt_multeval", "refs.test2010.lc.tok.en.0", ["baseline.opt0", "baseline.opt1", "baseline.opt2", "sys1.opt0"]),
        ("mt_ted_comparemt", "ted.ref.eng", ["ted.sys1.eng", "ted.sys2.eng"]),
        ("mt_ted_comparemt", "sum.ref.eng", ["sum.sys1.eng", "sum.sys2.eng"]),
    ],
)
def test_p_agrees_with_sacrebleus_own_paired_test(shared_data, folder, gold, systems):
    from sacrebleu.significance import PairedTest

    files = [shared_data / folder / (f"hyps.lc.tok.en.{n}" if folder == "mt_multeval" else n) for n in systems]
    metrics = ["BLEU:tokenize=none", "chrF"]
    counts = read(
        *(f"{n}={f}" for n, f in zip(systems, files, strict=True)), gold=shared_data / folder / gold, format="segments"
    )
    results = compare_all(counts, metrics=metrics, pairs=[(n, systems[0]) for n in systems[1:]], trials=2**15)
    named_outputs = [(n, outputs.tolist()) for n, outputs in zip(systems, counts.outputs.systems, strict=True)]
    references = [[text for (text,) in counts.outputs.gold]]
    tools = {"BLEU": sacrebleu.BLEU(tokenize="none", force=True), "chrF": sacrebleu.CHRF()}
    n = 2500
    _, scores = PairedTest(named_outputs, tools, references, test_type="ar", n_samples=n)()
    scores = dict(zip(metrics, (scores["BLEU"], scores["chrF2"]), strict=True))
    for r in results:
        expected = scores[r.metric][systems.index(r.a)]
        assert r.score_a == pytest.approx(expected.score, rel=1e-9)
        p = max(r.p_value, 1 / n)
        assert abs(r.p_value - expected.p_value) <= 4.5 * (p * (1 - p) * (1 / n + 1 / 2**15)) ** 0.5 + 1 / n


def test_a_tokenizer_that_cannot_be_had_is_an_error(counts, monkeypatch):
    with pytest.raises(InputError, match="tokenize = 'de' must be one of 13a, none"):
        find_metric("BLEU:tokenize=de")

    def missing(**_options):
        raise RuntimeError('Please install "sacrebleu[ja]"')

    monkeypatch.setattr(sacrebleu.metrics, "BLEU", missing)
    with pytest.raises(InputError, match="sacrebleu refuses these options .*sacrebleu\\[ja\\]"):
        find_metric("BLEU:tokenize=ja-mecab").bind(counts)


@pytest.mark.parametrize("metric", TOOLS)
@pytest.mark.slow
def test_lists_of_texts_in_python_have_sacrebleus_scores_and_the_results_of_files(texts, counts, metric):
    (x, y), references = texts
    expected = [TOOLS[metric].corpus_score(own, references).score for own in (x, y)]
    result = compare(x, y, gold=references, metric=metric, names=["x", "y"], trials=99, interval="none")
    assert [result.score_a, result.score_b] == pytest.approx(expected, rel=1e-12)
    [of_dict] = compare_all({"x": x, "y": y}, gold=references, metrics=metric, trials=99, interval="none")
    [of_files] = compare_all(counts, metrics=metric, trials=99, interval="none")
    assert result.p_value == of_dict.p_value == of_files.p_value
    assert of_dict.signature == of_files.signature
    first = compare(x, y, gold=references[0], metric=metric, trials=99, interval="none")
    assert first.score_a == pytest.approx(TOOLS[metric].corpus_score(x, references[:1]).score, rel=1e-12)


def test_texts_that_do_not_fit_are_refused_with_a_remedy(texts):
    (x, y), references = texts
    for arguments, options, message in (
        ((x, y[:-1]), {}, "B: 59"),
        ((x, y), {"gold": references[0][:3]}, "gold: 3"),
        ((x, y), {"gold": [*zip(*references, strict=True)]}, "different numbers of items"),
        ((x, "y"), {}, "'B'"),
        ((x, [*y[:-1], None]), {}, "'B': item 60"),
        ((x, y), {"gold": None}, "gold="),
    ):
        with pytest.raises(InputError, match=message):
            compare(*arguments, **{"gold": references, "metric": "BLEU", **options})
