"""Logs of fairseq-generate, as fairseq_cli/generate.py writes them: S-, T-, H-, D-, P- lines among others."""

import pytest
import sacrebleu

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, Source, detect, read

TARGETS = ["the cat sat on the mat .", "a dog ran away today", "it was cold in here again"]
SYSTEMS = {
    "x": ["the cat sat on a mat .", "a dog ran today", "it was cold in here again"],
    "y": ["the cat sat on the mat .", "the dog ran away", "it is cold here"],
}


def format_log(outputs, *, targets=TARGETS, detokenized=True, order=(2, 0, 1), nbest=1):
    """Return a log as fairseq prints it: sentences in batch order, the best hypothesis first."""
    lines = ["2020-05-01 10:00:00 | INFO | fairseq_cli.generate | Namespace(beam=5, bpe=None)"]
    for k in order:
        lines.append(f"S-{k}\tquelle {k}")
        if targets:
            lines.append(f"T-{k}\t{targets[k]}")
        for j in range(nbest):
            text = outputs[k] if j == 0 else "another one"
            lines.append(f"H-{k}\t-0.{j + 1}234567{k}\t{text if not detokenized else text.replace(' .', ' ▁.')}")
            if detokenized:
                lines.append(f"D-{k}\t-0.{j + 1}234567{k}\t{text}")
            lines.append(f"P-{k}\t-0.1234 -0.2345 -1.2e-05")
    lines.append("2020-05-01 10:00:09 | INFO | fairseq_cli.generate | Translated 3 sentences (21 tokens)")
    lines.append("Generate test with beam=5: BLEU4 = 50.00, 80.0/60.0/50.0/40.0 (BP=1.000, ratio=1.000)")
    return "\n".join(lines) + "\n"


def compute_scores(counts, metric="BLEU"):
    (result,) = compare_all(counts, metrics=[metric], trials=100)
    return {result.a: result.score_a, result.b: result.score_b}


def compute_expected():
    return {name: sacrebleu.corpus_bleu(texts, [TARGETS]).score for name, texts in SYSTEMS.items()}


@pytest.mark.parametrize("how", [{}, {"detokenized": False}, {"nbest": 3}, {"order": (0, 1, 2)}])
def test_hypotheses_and_targets_of_a_log_are_those_that_fairseq_scores(tmp_path, how):
    for name, outputs in SYSTEMS.items():
        (tmp_path / name).write_text(format_log(outputs, **how))
    assert detect([Source(tmp_path / "x"), Source(tmp_path / "y")]) == "fairseq"
    assert compute_scores(read(tmp_path / "x", tmp_path / "y")) == pytest.approx(compute_expected(), abs=1e-9)


def test_a_reference_beside_the_logs_goes_by_the_sentences_numbers(tmp_path):
    for name, outputs in SYSTEMS.items():
        (tmp_path / name).write_text(format_log(outputs, targets=None))
    with pytest.raises(InputError, match=r"x: no targets \(T-0, ...\), which are the references; give gold=FILE"):
        read(tmp_path / "x", tmp_path / "y")
    (tmp_path / "ref").write_text("".join(f"{target}\n" for target in TARGETS))
    (tmp_path / "docs").write_text("a\na\nb\n")
    options = Options(documents=tmp_path / "docs", metrics=("BLEU",))
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "ref", options=options)
    assert compute_scores(counts) == pytest.approx(compute_expected(), abs=1e-9)
    assert list(counts.groups["document"]) == ["a", "a", "b"]


def test_faults_of_logs_name_the_file(tmp_path):
    (tmp_path / "x").write_text(format_log(SYSTEMS["x"]))
    for text, message in (
        (format_log(SYSTEMS["y"], targets=["other", *TARGETS[1:]]), "y: target 0 differs from that in .*x; give gold"),
        (format_log(SYSTEMS["y"], order=(0, 1)), "system 'y' has no text for item at position 3"),
        ("H-0\t-0.5\tone\nH-1\ttwo\n", "y, line 2: found 'H-1\\\\ttwo', expected a number, a score and a text"),
        ("nothing\n", r"y: no hypotheses \(H-0, D-0, ...\)"),
    ):
        (tmp_path / "y").write_text(text)
        with pytest.raises(InputError, match=message):
            read(tmp_path / "x", tmp_path / "y")


def test_pieces_of_words_are_told(tmp_path):
    for name in "xy":
        (tmp_path / name).write_text(format_log(["th@@ e cat", "a", "b"]))
    assert "contain '@@ '" in read(tmp_path / "x", tmp_path / "y").scope[0]
