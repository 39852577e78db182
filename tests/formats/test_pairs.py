"""Word pairs: the official SIGMORPHON 2022 scores, and pairing by word or by position."""

import json
import random
import re

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.randomization.stream import draw_swap_bits

MEASURES = {"precision": "precision", "recall": "recall", "f1": "f_measure"}


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "seg_sigmorphon2022"


def find_predictions(folder, name):
    return {
        p.name.removeprefix(f"{name}.").removesuffix(".predictions"): p
        for p in sorted((folder / "systems").glob(f"{name}.*"))
    }


def read_systems(folder, name, leave_out=(), **options):
    paths = {system: path for system, path in find_predictions(folder, name).items() if system not in leave_out}
    gold = folder / "gold" / f"{name}.test.gold.tsv"
    return read(*(f"{system}={path}" for system, path in paths.items()), gold=gold, options=Options(**options))


@pytest.mark.parametrize("name", ["ces.word", "mon.word"])
@pytest.mark.slow
def test_all_systems_have_their_official_scores_in_file_order(folder, name):
    reference = json.loads((folder / "reference_scores.json").read_text())["sets"][name]
    counts = read_systems(folder, name, align="position")
    assert counts.n_items == reference["n_items"]
    assert set(counts.systems) == set(reference["scores"])
    for r in compare_all(counts, metrics=[*MEASURES, "accuracy"], baseline="ULM", trials=64, interval="none"):
        for system, score in ((r.a, r.score_a), (r.b, r.score_b)):
            official = reference["scores"][system]
            if r.metric == "accuracy":
                assert round(score, 6) == official["accuracy"]
            else:
                assert round(100 * score, 6) == official[MEASURES[r.metric]]
            if r.metric == "f1" and official["published_f_measure"] is not None:
                assert 100 * score == pytest.approx(official["published_f_measure"], rel=1e-13)


def test_a_file_of_other_words_is_refused_unless_by_position(folder):
    gold = folder / "gold" / "ces.word.test.gold.tsv"
    paths = find_predictions(folder, "ces.word")
    with pytest.raises(InputError, match=r"NUM_DI.predictions: lacks 3,790 words .* align='position'"):
        read_systems(folder, "ces.word")
    counts = read(paths["NUM_DI"], paths["CLUZH"], gold=gold, options=Options(align="position"))
    assert "3,997 of 4,000 words are not those of" in counts.scope[0]


def test_categories_keep_their_zeros(folder):
    counts = read_systems(folder, "mon.word")
    assert set(counts.group("category")) == {"000", "001", "010", "100", "101", "110"}
    assert counts.suggested == ("f1", "accuracy", "edit-distance")
    assert not counts.warnings
    results = compare_all(counts, metrics=["f1"], pairs=[("CLUZH", "AUUH_A")], by="category", trials=64)
    assert len(results) == 6


def lcs(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if x == y else max(table[i][j - 1], table[i - 1][j])
    return table[-1][-1]


def compute_edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def test_sums_of_swapped_words_are_the_scorers_on_swapped_files(folder):
    counts = read_systems(
        folder, "mon.word", leave_out=[s for s in find_predictions(folder, "mon.word") if s not in ("BERT", "JB132")]
    )
    gold, (a, b) = counts.outputs.gold, counts.outputs.systems
    for swapped in draw_swap_bits((3, 4), run=0, first=0, n_trials=2, n_units=counts.n_items):
        pseudo = [y if swap else x for x, y, swap in zip(a, b, swapped, strict=True)]
        overlap = sum(lcs(g.split("|"), p.split("|")) for g, p in zip(gold, pseudo, strict=True))
        edits = sum(compute_edit_distance(g, p) for g, p in zip(gold, pseudo, strict=True))
        for field, expected in (("tp", overlap), ("score[edit-distance]", edits)):
            values = counts.field(field)
            assert int(values[~swapped, 0].sum() + values[swapped, 1].sum()) == expected


def read_tables(tmp_path, gold, x, y, options=Options(), format="pairs"):  # noqa: A002, B008
    for name, text in (("gold", gold), ("x", x), ("y", y)):
        (tmp_path / f"{name}.tsv").write_text(text)
    return read(tmp_path / "x.tsv", tmp_path / "y.tsv", gold=tmp_path / "gold.tsv", format=format, options=options)


def test_another_order_is_paired_by_word_with_a_warning(tmp_path):
    gold, x = "a\ta @@a\nb\tb @@b\nc\tc\n", "c\tc\na\taa\nb\tb @@b\n"
    counts = read_tables(tmp_path, gold, x, gold)
    assert counts.field("tp").tolist() == [[0, 2], [2, 2], [1, 1]]
    assert "words stand in another order than in" in counts.warnings[0]
    by_position = read_tables(tmp_path, gold, x, gold, Options(align="position"))
    assert by_position.field("tp").tolist() == [[0, 2], [0, 2], [0, 1]]


def test_columns_separators_headers_and_bare_predictions(tmp_path):
    gold = "word\tkind\tsegmentation\nab\tN\ta+b\ncd\tN\tcd\n"
    counts = read_tables(tmp_path, gold, "ab\tN\ta+b\ncd\tN\tc+d\n", gold, format="pairs:column=3,separator=+")
    assert counts.field("tp").tolist() == [[2, 2], [0, 1]]
    assert counts.group("category") == ("N", "N")
    bare = read_tables(tmp_path, "ab\ta b\ncd\tcd\n", "a b\nc d\n", "ab\nc d\n")
    assert bare.field("tp").tolist() == [[2, 0], [0, 0]]
    with pytest.raises(InputError, match="column = '1': must be a number of 2 or more"):
        read_tables(tmp_path, gold, gold, gold, format="pairs:column=1")
    with pytest.raises(InputError, match="must be a number of 2 or more"):
        read_tables(tmp_path, gold, gold, gold, format=f"pairs:column={'1' * 5000}")


def test_quotes_and_empty_predictions_are_texts(tmp_path):
    counts = read_tables(tmp_path, 'a"b\ta" @@b\n"\t"\n', 'a"b\t\n"\t"\n', 'a"b\ta" b\n"\t"\n')
    assert counts.field("predicted").tolist() == [[1, 2], [1, 1]]
    assert counts.field("tp").tolist() == [[0, 2], [1, 1]]


def score_as_sigmorphon(gold, predicted, level):
    """Return (tp, gold, predicted, distance) as the scorer of SIGMORPHON 2022 does (evaluate.py, --level)."""
    columns = []
    for text in (gold, predicted):
        column = []
        for line in text.splitlines():
            segments = line.split("\t")[1].replace(" @@", "|")
            column += [segments.replace(" ", "|")] if level == "word" else segments.split(" ")
        columns.append(column)
    tp = sum(lcs(a.split("|"), b.split("|")) for a, b in zip(*columns, strict=True))
    return (
        tp,
        *(sum(len(word.split("|")) for word in column) for column in columns),
        sum(compute_edit_distance(a, b) for a, b in zip(*columns, strict=True)),
    )


def sum_fields(counts, system):
    names = ("tp", "gold", "predicted", "score[edit-distance]")
    return tuple(int(counts.field(name)[:, min(system, counts.field(name).shape[1] - 1)].sum()) for name in names)


def draw_sentences(rng, n_rows, words):
    """Return the same sentences twice, segmented differently."""
    texts = ["", ""]
    for _ in range(n_rows):
        row = rng.choices(words, k=rng.randint(2, 5))
        for k in range(2):
            cut = [" @@".join(re.findall(rf".{{1,{rng.randint(1, 3)}}}", word)) for word in row]
            texts[k] += " ".join(row) + "\t" + " ".join(cut) + "\n"
    return texts


def test_words_of_sentences_are_compared_one_by_one(tmp_path):
    rng = random.Random(3)
    gold, predicted = draw_sentences(rng, 60, ["ababa", "bab", "aabb", "abba", "ba"])
    with pytest.raises(InputError, match="are rows words or sentences.*pairs:level=sentence"):
        read_tables(tmp_path, gold, predicted, gold)
    counts = read_tables(tmp_path, gold, predicted, gold, format="pairs:level=sentence")
    assert sum_fields(counts, 0) == score_as_sigmorphon(gold, predicted, "sentence")
    assert (
        sum_fields(counts, 0)[0] < score_as_sigmorphon(gold, predicted, "word")[0]
    )  # a morph of another word is not right
    assert sum_fields(counts, 1)[:1] == (sum_fields(counts, 1)[1],)


@pytest.mark.parametrize("name", ["space", " "])
def test_a_blank_can_be_asked_for_as_the_separator(tmp_path, name):
    gold = "undo\tun do\nredo\tre do\n"
    counts = read_tables(tmp_path, gold, "undo\tun @@do\nredo\tre do\n", gold, format=f"pairs:separator={name}")
    assert counts.field("tp").T.tolist() == [[1, 2], [2, 2]]
