"""Output of TiMBL and Mbt: gold and predicted classes in adjacent columns, whatever follows."""

import json

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read

ROWS = [("=,+", "T", "T"), ("},{", "E", "J"), ("@,|", "J", "J"), ("*,#", "T", "E"), ("#,)", "K", "K")]


def format_instances(change=(), separator=",", after=""):
    rows = [(f, g, dict(change).get(k, p)) for k, (f, g, p) in enumerate(ROWS)]
    return "".join(separator.join((*f.split(","), g, p)) + after + "\n" for f, g, p in rows)


def write_files(folder, a, b):
    folder.mkdir(exist_ok=True)
    for name, text in (("a", a), ("b", b)):
        (folder / f"{name}.out").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / "a.out", folder / "b.out"


def compare_files(paths, format_="timbl", metrics=("accuracy", "macro-f1", "f1[T]", "mcc", "kappa"), **options):
    counts = read(*paths, format=format_, options=Options(**options))
    results = compare_all(counts, metrics=metrics, method="randomization", trials=64, interval="none")
    return [(r.metric, r.score_a, r.score_b, r.n_items, r.n_extreme) for r in results]


@pytest.fixture
def plain(tmp_path):
    return write_files(tmp_path / "plain", format_instances(), format_instances([(1, "E"), (4, "T")]))


# the real set


@pytest.fixture(scope="module")
def official(shared_data):
    return json.loads((shared_data / "timbl_dimin" / "reference_scores.json").read_text())


@pytest.fixture(scope="module")
def dimin(shared_data, official):
    # out1, out2 and out3 look like extensions: named, they stay apart
    return read(*(f"{name}={shared_data / 'timbl_dimin' / name}" for name in official["scores"]))


def test_dimin_has_its_official_scores(dimin, official):
    names = {"accuracy": "accuracy", "macro-f1": "macro_f1"}
    seen = set()
    for r in compare_all(dimin, metrics=[*names], trials=64, interval="none"):
        for system, score in ((r.a, r.score_a), (r.b, r.score_b)):
            assert round(score, 6) == official["scores"][system][names[r.metric]]
            seen.add((system, r.metric))
    assert len(seen) == 8
    for system_scores in official["scores"].values():
        assert (dimin.n_items, list(dimin.labels)) == (system_scores["n"], system_scores["labels"])


def test_dimin_is_recognised(shared_data, official):
    for name in official["scores"]:
        assert detect([parse_source(str(shared_data / "timbl_dimin" / name))]) == "timbl"


def test_settings_called_alike_are_told_apart_by_their_endings(shared_data):
    names = ("dimin.train.bug21.out1", "dimin.train.bug21.out2")
    assert read(*(shared_data / "timbl_dimin" / name for name in names)).systems == names


# TiMBL


def test_classes_may_be_numbers(tmp_path):
    for k, separator in enumerate(", \t"):
        text = "".join(
            separator.join(("1", "2", gold, predicted)) + "        0.5\n" for gold, predicted in ("11", "12", "22")
        )
        counts = read(*write_files(tmp_path / str(k), text, text), format="timbl")
        assert counts.labels == ("1", "2")
        assert counts.field("correct").sum(0).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ("", "b.out: is empty"),
        ("word\n", r"b.out, line 1: found 'word', expected features, class and predicted class"),
        (format_instances() + "T,T\n", "b.out, line 6: found 'T,T', .* 2 features"),
        (format_instances().replace("#,),K,K", "#,),K"), r"b.out, line 5: found '#,\),K'"),
        (format_instances() + ROWS[0][0] + ",T,T\n", r"b.out: 6 rows, but .*a.out has 5"),
        (format_instances().replace("@,|,J", "@,|,T"), r"b.out, line 3: gold 'T', but 'J' in .*a.out, line 3"),
        (format_instances().encode() + b"\xe9,x,T,T\n", "b.out, line 6: is not UTF-8"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_place(tmp_path, spoilt, message):
    paths = write_files(tmp_path, format_instances(), spoilt)
    with pytest.raises(InputError, match=message):
        read(*paths, format="timbl")


# Mbt


WORDS = [[("emissie", "N", "N"), ("is", "V", "V"), (".", "Punc", "Punc")], [("van", "N", "Prep"), ("#", "N", "Adj")]]


def format_tagged(change=None, line="{}\t/\t{}\t{}\n", end="<utt>\n"):
    sentences = [[(w, g, (change or {}).get(w, p)) for w, g, p in sentence] for sentence in WORDS]
    return "".join("".join(line.format(*word) for word in sentence) + end for sentence in sentences)


SHAPES = [
    ("{}\t/\t{}\t{}\n", "<utt>\n"),
    ("{}\t//\t{}\t{}\n", "\n"),
    ("{}\t/\t{}\t{} 0.339083\n", "<utt>\n"),
    ("{}\t/\t{}\t{} [0.5] {{ Pron 5174.00, N 11.0000 }} 0.3\n", "<utt>\n"),
    ("{}\t/\t---\t{}\t{}\n", "\n<utt>\n"),
    ("{}\t{}\t{}\n", "\n"),
    ("{} / {} {}\n", "<utt>\n"),
    ("{} {} {}\n", "<utt>\n\n\n"),
    ("{}//{}//{}\n", "<utt>\n"),
    ("{}//{}//{} ", "<utt>\n"),
]
MBT = ("accuracy", "macro-f1", "f1[N]", "mcc", "kappa")


@pytest.mark.parametrize(("line", "end"), SHAPES)
def test_mbt_output_in_each_of_its_shapes(tmp_path, line, end):
    plain = write_files(tmp_path / "plain", format_tagged(), format_tagged({"is": "N", "#": "N"}))
    paths = write_files(
        tmp_path / "other", format_tagged(None, line, end), format_tagged({"is": "N", "#": "N"}, line, end)
    )
    assert compare_files(paths, "mbt", MBT) == compare_files(plain, "mbt", MBT)


def test_mbt_output_is_counted_by_sentence(tmp_path):
    counts = read(*write_files(tmp_path, format_tagged({"#": "N"}), format_tagged({"is": "N"})), format="mbt")
    assert counts.field("correct").tolist() == [[3, 2], [1, 0]]


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ("", "b.out: is empty"),
        (format_tagged().replace("is\t/\tV\t", "is\t/\tN\t"), r"b.out, line 2: gold 'N', but 'V' in .*a.out, line 2"),
        (
            format_tagged().replace("is\t/\tV\tV", "is\tV"),
            r"b.out, line 2: found 'is\\tV', expected word, tag and predicted tag",
        ),
        ("emissie/N is/V <utt>\n", "tagged file .-T, not -t"),
        (format_tagged() + format_tagged(), r"b.out, line 8: sentence 3 has 3 tokens, but 0 in .*a.out"),
        (format_tagged().replace("<utt>\n", "", 1), r"b.out, line 1: sentence 1 has 5 tokens, but 3 in .*a.out"),
    ],
)
def test_mbt_output_that_does_not_fit_is_an_error(tmp_path, spoilt, message):
    paths = write_files(tmp_path, format_tagged(), spoilt)
    with pytest.raises(InputError, match=message):
        read(*paths, format="mbt")


def test_altered_words_are_a_warning(tmp_path):
    counts = read(*write_files(tmp_path, format_tagged(), format_tagged().replace("emissie", "Emissie")), format="mbt")
    assert len(counts.warnings) == 1
    assert "1 of 5 tokens" in counts.warnings[0]
