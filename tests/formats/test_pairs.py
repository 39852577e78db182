"""Word pairs: the official SIGMORPHON 2022 scores, and pairing by word or by position."""

import json

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
    assert counts.n_items == 4000


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


def test_other_columns_and_sentences_are_refused(tmp_path):
    forms, sentences = "gaan\tging\tV;PST\n", "un do\tun do @@it\n"
    for text, message in ((forms, "more than two columns, and no marks"), (sentences, "blanks in 1 row")):
        with pytest.raises(InputError, match=message):
            read_tables(tmp_path, text, text, text)
    counts = read_tables(tmp_path, "ab\ta b\ncd\tcd\n", "ab\ta b\ncd\tc d\n", "ab\tab\ncd\tcd\n")
    assert counts.field("tp").tolist() == [[2, 0], [0, 1]]


def test_quotes_and_empty_predictions_are_texts(tmp_path):
    counts = read_tables(tmp_path, 'a"b\ta" @@b\n"\t"\n', 'a"b\t\n"\t"\n', 'a"b\ta" b\n"\t"\n')
    assert counts.field("predicted").tolist() == [[1, 2], [1, 1]]
    assert counts.field("tp").tolist() == [[0, 2], [1, 1]]
