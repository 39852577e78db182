"""Parses in CoNLL-U and brackets, held against the official scorers' results where the data are there."""

import json
import random
import re

import numpy as np
import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read
from sigdask.metrics import find_metric
from sigdask.metrics.labels import WORD_METRICS

SCORES = {"f1": "f1", "precision": "precision", "recall": "recall", "aligned": "aligned_accuracy"}
"""Options of metrics, and what the reference file of the CoNLL 2018 script calls them."""


def compute_score(counts, name, system=0):
    """Return the score of a system over all items."""
    bound = find_metric(name, counts).bind(counts)
    fields = [np.broadcast_to(counts.field(field), (counts.n_items, counts.n_systems)) for field in bound.fields]
    return float(bound.form.score(np.array([field[:, system].sum() for field in fields])))


def format_sentence(rows, comments=()):
    """Return a sentence of CoNLL-U; rows are form, UPOS, head and relation, or whole lines."""
    lines = [*(f"# {comment}" for comment in comments)]
    number = 0
    for row in rows:
        number += not isinstance(row, str)
        lines.append(
            row
            if isinstance(row, str)
            else "\t".join((str(number), row[0], row[0].lower(), row[1], "_", "_", str(row[2]), row[3], "_", "_"))
        )
    return "\n".join(lines) + "\n\n"


DOG = [("The", "DET", 2, "det"), ("dog", "NOUN", 3, "nsubj"), ("ran", "VERB", 0, "root"), (".", "PUNCT", 3, "punct")]
CAT = [("A", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj:pass"), ("was", "AUX", 4, "aux"), ("seen", "VERB", 0, "root")]
WRONG = [("A", "DET", 3, "det"), ("cat", "NOUN", 4, "obj"), ("was", "AUX", 4, "aux"), ("seen", "VERB", 0, "root")]
GOLD = format_sentence(DOG, ["newdoc id = d", "sent_id = 1"]) + format_sentence(CAT, ["newdoc", "sent_id = 2"])
WORSE = format_sentence(DOG) + format_sentence(WRONG)


def read_texts(folder, *systems, gold=GOLD, **options):
    """Read systems a, b, ... and gold."""
    (folder / "gold").write_text(gold)
    paths = []
    for name, text in zip("abcd", systems, strict=False):
        (folder / name).write_text(text)
        paths.append(folder / name)
    return read(*paths, gold=folder / "gold", **options)


# CoNLL-U


@pytest.mark.parametrize("kind", ["official_tests", "treebanks"])
def test_scores_are_those_of_the_conll_2018_script(shared_data, kind):
    folder = shared_data / "parsing_conll18"
    reference = json.loads((folder / "reference_scores.json").read_text())
    if kind == "treebanks":
        cases = [
            (folder / bank / "gold.conllu", folder / bank / f"{name}.conllu", scores)
            for bank, content in reference["treebanks"].items()
            for name, scores in content["systems"].items()
        ]
    else:
        names = [(*key.split("|"), scores) for key, scores in reference["official_tests"].items()]
        cases = [(folder / kind / gold, folder / kind / system, scores) for gold, system, scores in names]
    n_scores = 0
    for gold, system, scores in cases:
        counts = read(f"a={system}", gold=gold, format="conllu")
        for metric, (unit, *_) in WORD_METRICS.items():
            official = scores[metric]
            name = unit if unit in {"tokens", "sentences"} else metric
            fields = {"correct": f"correct[{name}]", "gold": f"gold[{unit}]", "system": f"system[{unit}]"}
            assert {key: counts.field(field).sum() for key, field in fields.items()} == {k: official[k] for k in fields}
            for score, key in SCORES.items():
                if official[key] is not None:
                    assert round(100 * compute_score(counts, f"{metric}:score={score}"), 6) == official[key]
                    n_scores += 1
    assert n_scores == 49 * len(cases)


def test_counts_of_single_sentences_are_those_of_the_script(shared_data):
    folder = shared_data / "parsing_conll18" / "it_pud_250"
    systems = ("system_A", "system_B")
    counts = read(*(folder / f"{name}.conllu" for name in systems), gold=folder / "gold.conllu")
    header, *rows = [line.split("\t") for line in (folder / "sentence_counts.tsv").read_text().splitlines()]
    assert len(rows) == 2 * counts.n_items
    columns = {}
    for name in header[2:]:
        metric, kind = name.split("_")
        unit = "content" if metric in {"CLAS", "MLAS", "BLEX"} else "words"
        field = counts.field(f"correct[{metric}]" if kind == "correct" else f"{kind}[{unit}]")
        columns[name] = np.broadcast_to(field, (counts.n_items, 2))
    places = {name: k for k, name in enumerate(counts.ids)}
    for system, sentence, *numbers in rows:
        got = [int(columns[name][places[sentence], systems.index(system)]) for name in header[2:]]
        assert got == [*map(int, numbers)]


def test_scores_of_a_relation_and_of_a_tag(tmp_path):
    counts = read_texts(tmp_path, WORSE)
    # gold has two subjects, the system one, which is right; subtypes are cut
    assert compute_score(counts, "LAS[nsubj]") == pytest.approx(2 / 3)
    assert compute_score(counts, "LAS[nsubj]:score=recall") == 0.5
    assert compute_score(counts, "LAS[obj]") == 0
    assert compute_score(counts, "UPOS[NOUN]") == 1
    assert compute_score(counts, "LAS[det]") == 0.5
    with pytest.raises(
        InputError, match=r"no word of gold or systems has 'iobj'; those of gold: aux, det, nsubj, punct"
    ):
        compute_score(counts, "LAS[iobj]")
    with pytest.raises(InputError, match="'nsubj:pass'; those of gold"):
        compute_score(counts, "LAS[nsubj:pass]")
    with pytest.raises(InputError, match="no content word of gold or systems has 'det'"):
        compute_score(counts, "CLAS[det]")
    with pytest.raises(InputError, match=r"UAS takes no \[label\]"):
        find_metric("UAS[nsubj]")
    with pytest.raises(InputError, match="must be one of f1, precision, recall"):
        find_metric("Tokens:score=aligned")


def parse_randomly(generator, text):
    """Return a random parse of a text: tokens, multiword tokens, sentences, trees, tags."""
    tokens, place = [], 0
    while place < len(text):
        size = generator.choice((1, 2, 2, 3))
        tokens.append(text[place : place + size])
        place += size
    sentences = []
    while tokens:
        count = generator.randint(1, 6)
        sentence, tokens = tokens[:count], tokens[count:]
        rows, forms = [], []
        for token in sentence:
            if generator.random() < 0.3:
                parts = [*token] if generator.random() < 0.5 else ["a", "b"]
                rows.append(f"{len(forms) + 1}-{len(forms) + len(parts)}\t{token}" + "\t_" * 8)
            else:
                parts = [token]
            rows += [None] * len(parts)
            forms += parts
        order = generator.sample(range(1, len(forms) + 1), len(forms))
        heads = {word: order[generator.randrange(k)] if k else 0 for k, word in enumerate(order)}
        words = iter(
            (form, generator.choice(("NOUN", "VERB")), heads[k], generator.choice(("nsubj", "obj", "det", "case")))
            for k, form in enumerate(forms, 1)
        )
        sentences.append(format_sentence([row or next(words) for row in rows]))
    return sentences


def list_words(text):
    """Return words as (start, end, form, whether it belongs to a multiword token); start and end in characters."""
    words, place, inside = [], 0, 0
    for line in text.splitlines():
        if not line:
            continue
        number, form = line.split("\t")[:2]
        if "-" in number:
            first, last = map(int, number.split("-"))
            token, inside = (place, place + len(form)), last - first + 1
            place += len(form)
        elif inside:
            words.append((*token, form.lower(), True))
            inside -= 1
        else:
            words.append((place, place + len(form), form.lower(), False))
            place += len(form)
    return words


def align_plainly(gold, system):
    """Count aligned words: the longest common subsequence where multiword tokens overlap, equal offsets elsewhere."""
    regions = []
    for start, end in sorted({word[:2] for word in gold + system if word[3]}):
        if regions and start < regions[-1][1]:
            regions[-1][1] = max(regions[-1][1], end)
        else:
            regions.append([start, end])
    n = 0
    for low, high in regions:
        if any(w[0] < high and low < w[1] and not low <= w[0] < w[1] <= high for w in gold + system):
            return (
                None  # a word lies across the border of a multiword token: what it belongs to is a matter of the script
            )
        a, b = ([w[2] for w in words if low <= w[0] and w[1] <= high] for words in (gold, system))
        longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i, x in enumerate(a, 1):
            for j, y in enumerate(b, 1):
                longest[i][j] = max(longest[i - 1][j], longest[i][j - 1], longest[i - 1][j - 1] + (x == y))
        n += longest[-1][-1]
    rest = [{w[:2] for w in words if not any(a <= w[0] and w[1] <= b for a, b in regions)} for words in (gold, system)]
    return n + len(rest[0] & rest[1])


def test_words_are_aligned_as_by_comparing_all_offsets(tmp_path):
    generator = random.Random(11)
    n_compared = 0
    while n_compared < 60:
        text = "".join(generator.choices("abAB", k=generator.choice((5, 9, 14))))
        gold, system = ("".join(parse_randomly(generator, text)) for _ in range(2))
        expected = align_plainly(list_words(gold), list_words(system))
        if expected is not None:
            options = Options(metrics=("Words",))  # relations may all differ
            counts = read_texts(tmp_path, system, gold=gold, format="conllu", options=options)
            assert counts.field("correct[Words]").sum() == expected
            n_compared += 1


def test_the_order_of_sentences_changes_no_score(tmp_path):
    generator = random.Random(7)
    texts = ["".join(generator.choices("abAB", k=9)) for _ in range(12)]
    end = format_sentence([(".", "PUNCT", 0, "root")])  # both sides begin anew after it
    pairs = [["".join([*parse_randomly(generator, text), end]) for _ in range(2)] for text in texts]
    scores = []
    for order in (range(12), generator.sample(range(12), 12)):
        system, gold = ("".join(pairs[k][side] for k in order) for side in range(2))
        counts = read_texts(tmp_path, system, gold=gold, format="conllu")
        scores.append([compute_score(counts, name) for name in WORD_METRICS])
    assert scores[0] == scores[1]
    assert 0 < scores[0][0] < 1


RANGE = "1-2\tThedog" + "\t_" * 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dog", "cow", "a, line 2: found 'cowran.Acatwasseen', expected 'dogran.Acatwasseen', as in .*gold"),
        ("seen", "seen!", "a, line 9: found '!', expected 'the end of the text', as in .*gold"),
        ("\t2\tdet", "\t7\tdet", "a, line 1: the head is no word of the sentence"),
        ("\t2\tdet", "\tx\tdet", "a, line 1: the head is no number"),
        ("\t3\tnsubj", "\t1\tnsubj", "a, line 1: the heads lead in a circle"),
        ("\t2\tdet", "\t0\tdet", "a, line 1: the sentence has more than one root"),
        ("\tdog\tdog", "\tdog", "a, line 2: found 9 columns .*, expected 10"),
        ("2\tdog", "3\tdog", "a, line 2: words are numbered from 1"),
        ("2\tdog", "x\tdog", "a, line 2: the id is no number, range or empty node"),
        (".\n\n", ".\n", "a, line 5: words are numbered .*empty lines"),
        ("3\tran", "# text\n3\tran", "a, line 3: found 1 column .*'# text'.*, expected 10"),
        (
            "1\tThe",
            f"{RANGE.replace('1-2', '2-3')}\n1\tThe",
            "a, line 1: a multiword token begins before its first word",
        ),
        ("4\t.", "4-9\t." + "\t_" * 8 + "\n4\t.", "a, line 4: a multiword token .* ends in its sentence"),
        ("The\tthe", " \tthe", "a, line 1: the form is empty"),
    ],
)
def test_wrong_files_are_errors_that_name_the_line(tmp_path, old, new, message):
    wrong = WORSE.replace(old, new, 1) if old != ".\n\n" else WORSE.replace("punct\t_\t_\n\n", "punct\t_\t_\n", 1)
    assert wrong != WORSE
    with pytest.raises(InputError, match=message):
        read_texts(tmp_path, wrong, format="conllu")


def test_a_unit_that_is_not_marked_is_an_error(tmp_path):
    plain = re.sub("# newdoc.*\n", "", GOLD)
    with pytest.raises(InputError, match="no column 'document' .*# newdoc lines.*; columns: sentence"):
        read_texts(tmp_path, WORSE, gold=plain, options=Options(groups=("document",)))
    assert len(read_texts(tmp_path, WORSE, options=Options(groups=("sentence",))).group("sentence")) == 2


def test_files_without_heads_are_tags(tmp_path):
    (tmp_path / "gold").write_text(GOLD)
    for text, expected in ((WORSE, "conllu"), (re.sub(r"\t\d\t(\w+(:\w+)?)\t", r"\t_\t_\t", WORSE), "conll")):
        (tmp_path / "a").write_text(text)
        assert detect([parse_source(str(tmp_path / "a"))], tmp_path / "gold") == expected


def test_relations_that_gold_never_has_are_told_and_refused_if_they_are_all(tmp_path):
    [note] = read_texts(tmp_path, WORSE.replace("\tobj", "\tdobj")).warnings
    assert "a 1 of 8 (such as 'dobj')" in note
    other = re.sub(r"\t(\w+)(\t_\t_\n)", r"\tx\1\2", WORSE)
    with pytest.raises(InputError, match="'a': the relations of all its 8 words never occur in gold"):
        read_texts(tmp_path, other)
    assert compute_score(read_texts(tmp_path, other, options=Options(metrics=("UAS",))), "UAS") == 6 / 8


# bracketed trees


@pytest.mark.parametrize("parameters", ["sample.prm", "COLLINS.prm", "new.prm"])
def test_scores_are_those_of_evalb(shared_data, parameters):
    folder = shared_data / "parsing_evalb"
    reference = json.loads((folder / "reference_scores.json").read_text())["parameter_files"][parameters]
    format_ = f"trees:parameters={folder / parameters}"
    counts = read(folder / "sample.tst", gold=folder / "sample.gld", format=format_)
    names = {"bracket-recall": "Bracketing Recall", "bracket-precision": "Bracketing Precision",
             "bracket-f1": "Bracketing FMeasure", "tag-accuracy": "Tagging accuracy"}  # fmt: skip
    short = read(folder / "sample.tst", gold=folder / "sample.gld", format=f"{format_},length=40")
    for kind, scored in (("All", counts), ("len<=40", short)):
        for name, key in names.items():
            assert f"{100 * compute_score(scored, name):.2f}" == f"{reference['summary'][kind][key]:.2f}"
    keys = {"correct[brackets]": "matched", "gold[brackets]": "gold", "system[brackets]": "test",
            "gold[tags]": "words", "correct[tags]": "correct_tags"}  # fmt: skip
    for field, key in keys.items():
        assert counts.field(field)[:, 0].tolist() == [sentence[key] for sentence in reference["sentences"]]


def test_sentences_that_evalb_leaves_out_are_told_first(shared_data):
    folder = shared_data / "parsing_evalb"
    counts = read(folder / "sample.tst", f"x={folder / 'sample.gld'}", gold=folder / "sample.gld")
    first, left_out = counts.scope
    assert "COLLINS.prm" in first
    assert left_out.endswith(
        "sample.tst: 8 of 24 sentences are left out of its scores, as evalb does: they have no parse, or other "
        "words than gold (first on line 11)"
    )


TREES = (
    "(TOP (S (NP (DT the) (NN dog)) (VP (VB ran)) (. .)))\n(TOP (S (NP-SBJ (PRP it)) (ADVP (RB so)) (VP (VBD was))))\n"
)


def test_trees_over_several_lines_are_those_of_one(tmp_path):
    system = TREES.replace("ADVP", "PRT").replace("(NP (DT the) (NN dog))", "(DT the) (NN dog)")
    spread = system.replace("(S", "\n    (S").replace(" (VP", "\n      (VP") + "\n"
    plain, other = (read_texts(tmp_path, text, gold=TREES) for text in (system, spread))
    for name in plain.fields:
        assert plain.field(name).tolist() == other.field(name).tolist()
    # (2 + 4) of (2 + 4) brackets of the system, of 3 + 4 of gold; ADVP is PRT
    assert compute_score(plain, "bracket-f1") == pytest.approx(12 / 13)
    assert compute_score(plain, "tag-accuracy") == 1


def test_labels_that_gold_never_has_are_told_and_refused_if_they_are_all(tmp_path):
    counts = read_texts(tmp_path, re.sub(r"\(TOP (.*)\)", r"(ROOT \1)", TREES), gold=TREES)
    assert "labels that gold never has are never correct: a 2 of 9 (such as 'ROOT')" in counts.warnings[0]
    with pytest.raises(InputError, match="'a': the labels of all its 7 brackets never occur in gold"):
        read_texts(tmp_path, re.sub(r"\((S|NP|VP|ADVP)\b", r"(X\1", TREES), gold=TREES)
    with pytest.raises(InputError, match="gold: no brackets"):
        read_texts(tmp_path, TREES, gold="(TOP (DT the) (NN dog) (VB ran) (. .))\n(TOP (PRP it) (RB so) (VBD was))\n")


@pytest.mark.parametrize(
    ("text", "format_", "message"),
    [
        (TREES.partition("\n")[0], "trees", "a: 1 tree, but .*gold has 2; .* an empty line where there is no parse"),
        (TREES.replace("(VB ran)", "(VB ran"), "trees", "a, line 1: 1 bracket left open"),
        (TREES.replace("(RB so)", "(RB so so)"), "trees", "a, line 2: found 'so', expected a bracket"),
        (
            TREES.replace("the", "a").replace("it", "he"),
            "trees",
            "a, line 1: found .*, expected the words of .* line 1 of .*gold",
        ),
        (TREES, "trees:parameters=none.prm", "none.prm: no such file"),
    ],
)
def test_wrong_trees_are_errors_that_name_the_line(tmp_path, text, format_, message):
    with pytest.raises(InputError, match=message):
        read_texts(tmp_path, text, gold=TREES, format=format_)


def test_parameter_files_are_read_and_checked(tmp_path):
    (tmp_path / "own.prm").write_text("# none\nLABELED 0\nMAX_ERROR 10\nDELETE_LABEL TOP\nEQ_WORD dog hound\n")
    text = TREES.replace("(NN dog)", "(NN hound)").replace("(VP", "(XP")
    counts = read_texts(tmp_path, text, gold=TREES, format=f"trees:parameters={tmp_path}/own.prm")
    assert compute_score(counts, "bracket-f1") == 1
    (tmp_path / "own.prm").write_text("DELETE_LABEL TOP\nDELETE TOP\n")
    with pytest.raises(InputError, match="own.prm, line 2: found 'DELETE TOP', expected one of DELETE_LABEL"):
        read_texts(tmp_path, text, gold=TREES, format=f"trees:parameters={tmp_path}/own.prm")
