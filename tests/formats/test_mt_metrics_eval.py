"""The folder of a test set of mt-metrics-eval, laid out as its README specifies ("File organization")."""

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read

MQM = {"sysA": ["-1", "None", "0", "-5"], "sysB": ["-2", "None", "-1", "0"], "refB": ["None"] * 4}
COMET = {"sysA": ["0.5", "0.25", "0.75", "1"], "sysB": ["0.25", "0.5", "1", "0"], "refB": ["1", "1", "1", "1"]}


@pytest.fixture
def wmt(tmp_path):
    folder = tmp_path / "mt-metrics-eval-v2" / "wmt22"
    rows = {
        "human-scores/en-de.mqm.seg.score": MQM,
        "metric-scores/en-de/COMET-22-refA.seg.score": COMET,
        "metric-scores/en-de/BLEU-refA.seg.score": COMET,
    }
    for name, scores in rows.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{system}\t{score}\n" for system, values in scores.items() for score in values]
        (folder / name).write_text("".join(lines))
    (folder / "human-scores/en-de.mqm.sys.score").write_text("sysA\t-2.0\nsysB\t-1.0\n")
    (folder / "documents").mkdir()
    (folder / "documents/en-de.docs").write_text("news\td1\nnews\td1\ntalk\td2\ntalk\td2\n")
    return folder


def test_metrics_are_compared_that_are_asked_for(wmt):
    counts = read(wmt, options=Options(metrics=("COMET-22-refA",)))
    assert counts.systems == ("sysA", "sysB", "refB")
    np.testing.assert_array_equal(counts.field("score[COMET-22-refA]").T, np.array([*COMET.values()], float))
    counts = read(wmt, format="mt-metrics-eval:scores=mqm+BLEU-refA,pair=en-de")
    assert counts.suggested == ("mqm", "BLEU-refA")
    mqm, bleu = compare_all(counts)
    assert (mqm.n_items, bleu.n_items) == (3, 4)
    with pytest.raises(InputError, match="wmt22: no scores 'TER' of en-de; choose with metrics=: BLEU-refA, COMET-22-"):
        read(wmt, options=Options(metrics=("TER",)))


def test_the_language_pair_is_asked_for_where_there_are_several(wmt):
    (wmt / "human-scores/zh-en.mqm.seg.score").write_text("x\t1\ny\t0\n")
    with pytest.raises(InputError, match="several language pairs; .*mt-metrics-eval:pair=en-de.*: en-de, zh-en"):
        read(wmt)
    assert read(wmt, format="mt-metrics-eval:pair=zh-en").systems == ("x", "y")
    with pytest.raises(InputError, match="no language pair 'de-en'; choose"):
        read(wmt, format="mt-metrics-eval:pair=de-en")


def test_the_folder_of_all_test_sets_is_refused(wmt):
    with pytest.raises(
        InputError, match="mt-metrics-eval-v2: no scores of segments .*; give the folder of one test set"
    ):
        read(wmt.parent)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sysA\t-1\nsysA\n", r"mqm.seg.score, line 2: found 1 field, expected 2"),
        ("sysA\t-1\nsysA\tbad\n", r"mqm.seg.score, line 2, column 'score': found 'bad', expected a number"),
        ("sysA\t-1\nsysA\t0\n", r"mqm.seg.score: system 'sysA' has 2 scores, but there are 4 segments"),
        ("", r"mqm.seg.score: is empty"),
    ],
)
def test_faults_name_file_and_line(wmt, text, message):
    (wmt / "human-scores/en-de.mqm.seg.score").write_text(text)
    with pytest.raises(InputError, match=message):
        read(wmt)
