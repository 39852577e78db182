"""A metric that only one format has determines the format."""

import pytest
from command import call_sigdask

from sigdask.errors import InputError
from sigdask.formats import Options, detect, find_format, parse_source, read
from sigdask.nightly.plan import load_plan

# single words, each once: a list of ids by its looks (responses)
REFERENCE = ["", "他去了北京", "我们喜欢苹果", "今天下雨了", "天气很好"]
OUTPUT = ["", "他去了北", "我们喜欢苹果", "今天雨了", "天气好"]


@pytest.fixture
def files(tmp_path):
    for name, lines in (("gold", REFERENCE), ("x", OUTPUT), ("y", OUTPUT[:1] + REFERENCE[1:])):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return [tmp_path / f"{name}.txt" for name in ("gold", "x", "y")]


def detect_format(path, gold, *metrics):
    return detect([parse_source(str(path))], gold, Options(metrics=metrics))


@pytest.mark.parametrize(
    ("metric", "format_"),
    [
        ("BLEU", "segments"),
        ("BLEU:tokenize=zh", "segments"),
        ("chrF++", "segments"),
        ("TER", "segments"),
        ("WER", "speech"),
        ("CER", "speech"),
        ("AP", "trec"),
        ("nDCG@10", "trec"),
        ("ndcg_cut_10", "trec"),
        ("type-f1", "terms"),
        ("edit-distance", "pairs"),
    ],
)
def test_a_metric_of_one_format_decides(files, metric, format_):
    gold, path, _ = files
    assert detect_format(path, gold, metric) == format_
    assert detect_format(path, gold, "accuracy", metric) == format_


@pytest.mark.parametrize("metric", ["accuracy", "f1", "precision", "mean", "Accuracy", "mine:metric", "nonsense"])
def test_other_metrics_leave_it_open(files, metric):
    gold, path, _ = files
    assert find_format([metric], [path], gold) is None


def test_metrics_of_two_formats_leave_it_open(files):
    gold, path, _ = files
    assert find_format(["BLEU", "WER"], [path], gold) is None


def test_a_table_is_not_read_line_by_line_for_its_texts(tmp_path):
    for name in ("gold", "x"):
        (tmp_path / name).write_text("id\tlabel\na\tone two\nb\tthree four\n")
    assert find_format(["BLEU"], [tmp_path / "x"], tmp_path / "gold") is None
    (tmp_path / "x").write_text('{"id": 1, "text": "one two"}\n')
    assert find_format(["BLEU"], [tmp_path / "x"], tmp_path / "gold") is None


def test_text_in_brackets_is_no_json(tmp_path):
    for name in ("gold", "x"):
        (tmp_path / name).write_text("[laughter] yes\n[noise]\n")
    assert find_format(["WER"], [tmp_path / "x"], tmp_path / "gold") == "speech"


def test_the_command_line_reads_by_the_metric(files):
    gold, *systems = map(str, files)
    options = ["--metric", "CER", "--interval", "none"]
    result = call_sigdask("compare", *systems, "--gold", gold, *options, cwd=files[0].parent)
    assert result.returncode == 0
    assert "read as speech: 2 systems" in result.stderr


def test_a_plan_reads_by_the_metric(files, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[test_set]]\nname = "t"\nsystems = ["x.txt", "y.txt"]\ngold = "gold.txt"\nmetrics = ["BLEU"]\n')
    counts = load_plan(plan).test_sets[0].read()
    assert counts.suggested == ("BLEU", "chrF")
    assert counts.n_items == 5


def test_agreement_with_people_needs_no_name_of_a_format(tmp_path):
    """Plans, `compare` and `reproduce` read the tables of `meta` by the metric, as the metric reads no other data."""
    path = tmp_path / "scores.csv"
    rows = [f"{system},{k},{k % 4},{k % 3},{k % 5}" for system in "uvw" for k in range(10)]
    path.write_text("\n".join(["system,segment,human,x,y", *rows]))
    assert detect_format(path, None, "meta-spa", "meta-pearson:group=item") == "meta"
    with pytest.raises(InputError, match="choose the score"):
        detect_format(path, None, "meta-spa", "mean")


def test_a_table_with_a_header_is_not_read_line_by_line(tmp_path):
    for name in ("gold", "x"):
        (tmp_path / name).write_text("id,text\na,hello world\nb,one two\n")
    assert find_format(["BLEU"], [tmp_path / "x"], tmp_path / "gold") is None


@pytest.mark.parametrize(
    ("metric", "remedy"),
    [
        ("BLEU", r"give --ref FILE \(the reference translations\)"),
        ("chrF++", r"give --ref FILE \(the reference translations\)"),
        ("TER:normalized=yes", r"give --ref FILE \(the reference translations\)"),
        ("WER", r"give --ref FILE \(the reference transcripts\)"),
        ("AP", r"give --qrels FILE \(the relevance judgements\)"),
        ("MAE", r"give --gold FILE \(the gold standard\)"),
        ("ROUGE-L", r"lines of text\)\. Are these outputs .* give --ref FILE \(the reference translations"),
    ],
)
def test_outputs_without_a_reference_are_an_error_with_the_remedy(tmp_path, metric, remedy):
    path = tmp_path / "a.txt"
    path.write_text("the cat sat on the mat\nhow are you now\nfine\n")
    with pytest.raises(InputError, match=remedy):
        read(path, options=Options(metrics=(metric,)))
