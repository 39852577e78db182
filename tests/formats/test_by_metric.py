"""A metric that only one format has determines the format."""

import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, find_format, read

# single words, each once: a list of ids by its looks (responses)
REFERENCE = ["", "他去了北京", "我们喜欢苹果", "今天下雨了", "天气很好"]
OUTPUT = ["", "他去了北", "我们喜欢苹果", "今天雨了", "天气好"]


@pytest.fixture
def files(tmp_path):
    for name, lines in (("gold", REFERENCE), ("x", OUTPUT), ("y", OUTPUT[:1] + REFERENCE[1:])):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return [tmp_path / f"{name}.txt" for name in ("gold", "x", "y")]


@pytest.mark.parametrize("metric", ["accuracy", "f1", "precision", "mean", "Accuracy", "mine:metric", "nonsense"])
def test_other_metrics_leave_it_open(files, metric):
    gold, path, _ = files
    assert find_format([metric], [path], gold) is None


@pytest.mark.parametrize(
    ("metric", "remedy"),
    [
        ("BLEU", r"give gold=FILE \(the reference translations\)"),
        ("chrF++", r"give gold=FILE \(the reference translations\)"),
        ("TER:normalized=yes", r"give gold=FILE \(the reference translations\)"),
        ("WER", r"give gold=FILE \(the reference transcripts\)"),
        ("AP", r"give gold=FILE \(the relevance judgements\)"),
        ("MAE", r"give gold=FILE \(the gold standard\)"),
        ("ROUGE-L", r"lines of text\)\. Are these outputs .* give gold=FILE \(the reference translations"),
    ],
)
def test_outputs_without_a_reference_are_an_error_with_the_remedy(tmp_path, metric, remedy):
    path = tmp_path / "a.txt"
    path.write_text("the cat sat on the mat\nhow are you now\nfine\n")
    with pytest.raises(InputError, match=remedy):
        read(path, options=Options(metrics=(metric,)))
