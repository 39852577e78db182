"""Aligning the rows of several files: few common ids, differently written words, other columns."""

import random

import pytest
from command import call_sigdask

from sigdask import InputError
from sigdask.formats import Options, read

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnr"]  # 100 words
LABELS = [random.Random(5).choice("NVA") for _ in WORDS]


def write_tagged_words(folder, name, words, labels=LABELS):
    (folder / name).write_text("".join(f"{w}\t{label}\n" for w, label in zip(words, labels, strict=True)))
    return folder / name


def uppercase_first(words, n):
    return [word.upper() if k < n else word for k, word in enumerate(words)]


SENTENCES = [f"the {word} of {other}" for word, other in zip(WORDS, WORDS[1:] + WORDS[:1], strict=True)]


@pytest.mark.parametrize("texts", [WORDS, SENTENCES, [*WORDS[:60], *WORDS[:40]]], ids=["words", "sentences", "running"])
def test_files_whose_words_nearly_agree_are_aligned_by_position(tmp_path, texts):
    gold, x = write_tagged_words(tmp_path, "gold", texts), write_tagged_words(tmp_path, "x", texts)
    y = write_tagged_words(tmp_path, "y", uppercase_first(texts, 9), LABELS[:50] + LABELS[49:-1])
    counts = read(x, y, gold=gold)
    assert "91 of 100 rows have the same words as in" in counts.notices[0]
    assert counts.field("correct")[:, 0].all()
    assert counts.field("correct")[:50, 1].all()
    result = call_sigdask("compare", "x", "y", "--gold", "gold", cwd=tmp_path)
    assert "aligned by position" in result.stdout.splitlines()[0]


@pytest.mark.parametrize("texts", [WORDS, SENTENCES], ids=["words", "sentences"])
def test_files_whose_words_agree_less_ask_for_align_position(tmp_path, texts):
    gold, x, y = (
        write_tagged_words(tmp_path, name, uppercase_first(texts, n)) for name, n in (("gold", 0), ("x", 0), ("y", 10))
    )
    with pytest.raises(InputError, match="align='position'"):
        read(x, y, gold=gold)
    assert read(x, y, gold=gold, options=Options(align="position")).field("correct").all()


def test_sentences_in_another_order_are_aligned_by_their_text(tmp_path):
    order = random.Random(3).sample(range(100), 100)
    gold, x = write_tagged_words(tmp_path, "gold", SENTENCES), write_tagged_words(tmp_path, "x", SENTENCES)
    y = write_tagged_words(tmp_path, "y", [SENTENCES[k] for k in order], [LABELS[k] for k in order])
    counts = read(x, y, gold=gold)
    assert counts.field("correct").all()
    assert any("another order" in text for text in counts.notices)


def write_named_scores(folder, name, header, scores, order):
    rows = "".join(f"{key},{scores[key]}\n" for key in order)
    (folder / f"{name}.csv").write_text(f"{header},score\n{rows}")
    return folder / f"{name}.csv"


@pytest.mark.parametrize("header", ["filename", "Question ID", "#id", "docno", "name", "text_id"])
def test_rows_are_aligned_by_the_column_that_names_the_items_whatever_it_is_called(tmp_path, header):
    keys, random_numbers = [f"x{k * 37}" for k in range(40)], random.Random(5)
    a, b = ({key: round(random_numbers.random(), 3) for key in keys} for _ in "ab")
    first = write_named_scores(tmp_path, "a", header, a, keys)
    second = write_named_scores(tmp_path, "b", header, b, random_numbers.sample(keys, len(keys)))
    counts = read(first, second)
    (score,) = (field for field in counts.fields if field.startswith("score"))
    assert counts.field(score).tolist() == [[a[key], b[key]] for key in keys]
    assert any("another order" in text for text in counts.notices)


def test_a_name_that_differs_in_its_place_is_told_in_the_first_lines(tmp_path):
    keys = [f"x{k}" for k in range(40)]
    first = write_named_scores(tmp_path, "a", "filename", dict.fromkeys(keys, 1), keys)
    second = write_named_scores(tmp_path, "b", "filename", dict.fromkeys([*keys[:39], "y"], 1), [*keys[:39], "y"])
    assert "39 of 40 rows have the same words as in" in read(first, second).scope[0]


@pytest.mark.parametrize("name", ["conversation_id", "custom_id", "#", "line_number"])
@pytest.mark.parametrize("metrics", ["score", "f1,em"])
def test_numbers_of_items_in_another_order_ask_for_their_column(tmp_path, name, metrics):
    """The sorted file's numbers were left out as a counter, so rows were matched by position without a word."""
    rows = [f"{k},{','.join(str((k * 7 + i) % 11 / 11) for i, _ in enumerate(metrics.split(',')))}" for k in range(40)]
    for path, lines in (("a.csv", rows), ("b.csv", random.Random(1).sample(rows, len(rows)))):
        (tmp_path / path).write_text("\n".join([f"{name},{metrics}", *lines]) + "\n")
    with pytest.raises(InputError, match=f"column '{name}' has the same cells as .*columns="):
        read(tmp_path / "a.csv", tmp_path / "b.csv")
    counts = read(tmp_path / "a.csv", tmp_path / "b.csv", options=Options(columns={"item": name}))
    scores = next(values for field, values in counts.fields.items() if values.shape[1] == 2)
    assert (scores[:, 0] == scores[:, 1]).all()


def test_a_counter_of_another_name_is_asked_about(tmp_path):
    for path, start in (("a.csv", 0), ("b.csv", 1)):
        lines = [f"{k % 7 / 7},{start + k},{k % 5 / 5}" for k in range(40)]
        (tmp_path / path).write_text("\n".join(["f1,tc,em", *lines]) + "\n")
    with pytest.raises(InputError, match="column 'tc' has the same cells as in .*, but in another order"):
        read(tmp_path / "a.csv", tmp_path / "b.csv")
    assert read(tmp_path / "a.csv", tmp_path / "b.csv", options=Options(align="position")).n_items == 40


def test_measures_of_queries_in_rows_are_not_averaged(tmp_path):
    """As ir_measures writes them by query, one file for each run."""
    for path in ("a.csv", "b.csv"):
        rows = [f"q{k},{measure},{k % 7 / 7}" for k in range(20) for measure in ("AP", "nDCG@10")]
        (tmp_path / path).write_text("\n".join(["query_id,measure,value", *rows]) + "\n")
    with pytest.raises(InputError, match="rows of one 'query_id' differ in 'measure', so they hold scores of several"):
        read(tmp_path / "a.csv", tmp_path / "b.csv")
