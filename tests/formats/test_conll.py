"""Tagged tokens: chunks as in conlleval and seqeval, columns, comments, documents, errors."""

import gzip
import json
import random
import re
import subprocess

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_map, parse_source, read
from sigdask.formats.tagging.chunks import PREFIXES, SCHEMES, find_chunks, parse_tag
from sigdask.metrics import find_metric
from sigdask.report.page import render_page
from sigdask.report.terminal import render

GOLD = "EU\tB-ORG\nrejects\tO\nGerman\tB-MISC\ncall\tO\n\nPeter\tB-PER\nBlackburn\tI-PER\n\n#\tO\nParis\tB-LOC\n\n"
A = GOLD.replace("German\tB-MISC", "German\tO")
B = GOLD.replace("Blackburn\tI-PER", "Blackburn\tB-PER").replace("EU\tB-ORG", "EU\tB-LOC")
METRICS = ("f1", "precision", "recall", "accuracy", "macro-f1", "f1[PER]")


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def write_files(folder, a=A, b=B, gold=GOLD):
    folder.mkdir(exist_ok=True)
    for name, text in (("a", a), ("b", b), ("gold", gold)):
        if text is not None:
            (folder / f"{name}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / "a.txt", folder / "b.txt", (folder / "gold.txt" if gold is not None else None)


def compare_files(files, format_="auto", **options):
    a, b, gold = files
    counts = read(a, b, gold=gold, format=format_, options=Options(**options))
    results = compare_all(counts, metrics=METRICS, method="randomization", trials=64, interval="none")
    return [(r.metric, r.score_a, r.score_b, r.n_items, r.n_extreme) for r in results]


def sum_field(counts, field, system=0):
    column = counts.field(field)
    return int(column[:, system if column.shape[1] > 1 else 0].sum())


def compute_score(counts, metric, system=0):
    bound = find_metric(metric).bind(counts)
    return float(bound.form.score(np.array([sum_field(counts, f, system) for f in bound.fields])))


# the real set


@pytest.fixture(scope="module")
def wnut(shared_data):
    folder = shared_data / "seqlab_wnut17"
    return read(*sorted((folder / "submissions").iterdir()), gold=folder / "emerging.test.annotated")


@pytest.fixture(scope="module")
def official(shared_data):
    return json.loads((shared_data / "seqlab_wnut17" / "reference_scores.json").read_text())


@pytest.mark.slow
def test_wnut_has_its_official_scores(wnut, official):
    names = {"f1": "f1", "precision": "precision", "recall": "recall", "accuracy": "token_accuracy"}
    seen = set()
    for r in compare_all(wnut, metrics=[*names], trials=64, second_run=False, interval="none"):
        for system, value in ((r.a, r.score_a), (r.b, r.score_b)):
            assert round(value, 6) == official["scores"][system][names[r.metric]]
            if r.metric == "f1":
                assert round(100 * value, 2) == official["published_F1_entity"][system]
            seen.add((system, r.metric))
    assert len(seen) == 4 * len(official["scores"]) == 28


def test_wnut_has_its_official_numbers(wnut, official):
    assert wnut.n_items == official["n_sentences"]
    assert sum_field(wnut, "items") == official["n_tokens"]
    assert sum_field(wnut, "gold") == official["n_gold_entities"]
    for k, system in enumerate(wnut.systems):
        assert sum_field(wnut, "predicted", k) == official["scores"][system]["n_pred_entities"]
        altered = official["scores"][system]["token_strings_differing_from_gold"]
        warnings = [w for w in wnut.warnings if f"{system}.txt:" in w or f"/{system}:" in w]
        assert len(warnings) == (altered > 0)
        assert all(f"{altered:,} of 23,394 tokens" in w for w in warnings)


def test_wnut_types_that_a_system_leaves_out_count_as_missed(wnut):
    assert wnut.labels == ("corporation", "creative-work", "group", "location", "person", "product")
    assert compute_score(wnut, "micro-f1") == compute_score(wnut, "f1")
    for kind in ("tp", "predicted", "gold"):
        assert sum(sum_field(wnut, f"{kind}[{label}]") for label in wnut.labels) == sum_field(wnut, kind)


def test_wnut_is_recognised(shared_data):
    folder = shared_data / "seqlab_wnut17"
    for path in (folder / "submissions").iterdir():
        assert detect([parse_source(str(path))], folder / "emerging.test.annotated") == "conll"


def test_swapped_systems_have_the_scores_of_the_swapped_outputs(wnut):
    metrics = pytest.importorskip("seqeval.metrics")
    rng = np.random.default_rng(1)
    gold = wnut.outputs.gold.tolist()
    for first, second in ((0, 5), (3, 6)):
        swapped = rng.integers(0, 2, wnut.n_items).astype(bool)
        x, y = (wnut.outputs.systems[k] for k in (first, second))
        for name in ("f1", "precision", "recall", "accuracy"):
            bound = find_metric(name).bind(wnut)
            sums = [_sum_swapped(wnut.field(f), swapped, first, second) for f in bound.fields]
            of_seqeval = getattr(metrics, f"{name}_score")(gold, np.where(swapped, y, x).tolist())
            assert float(bound.form.score(np.array(sums))) == pytest.approx(of_seqeval, rel=1e-12)


def _sum_swapped(field, swapped, first, second):
    if field.shape[1] == 1:
        return int(field.sum())
    return int(np.where(swapped, field[:, second], field[:, first]).sum())


# chunks


def find_all_chunks(sentences, scheme):
    tags = [parse_tag(label, scheme) for sentence in sentences for label in sentence]
    types = ["", *sorted({tag[1] for tag in tags} - {""})]
    lengths = np.array([len(sentence) for sentence in sentences])
    chunks = find_chunks(
        np.array([PREFIXES.index(p) for p, _ in tags]),
        np.array([types.index(t) for _, t in tags]),
        lengths,
        SCHEMES[scheme],
    )
    offsets = np.cumsum(lengths) - lengths + np.arange(len(lengths)) + 1
    return sorted(
        (int(k), types[t], int(a - offsets[k]), int(b - offsets[k]))
        for k, t, a, b in zip(chunks.sentence, chunks.type, chunks.start, chunks.end, strict=True)
    )


def find_chunks_as_conlleval(sentences):
    """Find chunks token by token by conlleval's rules, with S for chunks of one token."""
    chunks = []
    for k, sentence in enumerate(sentences):
        start, previous, chunk_type = None, "O", ""
        for i, label in enumerate([*sentence, "O"]):
            letter, _, kind = label.partition("-")
            begins = letter in "BS" or (letter in "IE" and (previous in "OES" or kind != chunk_type))
            if start is not None and (begins or letter == "O"):
                chunks.append((k, chunk_type, start, i))
                start = None
            start, previous, chunk_type = (i if begins else start), letter, kind
    return sorted(chunks)


def draw_sentences(letters, seed, n=300):
    rng = random.Random(seed)
    labels = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("X", "Y"))]
    return [[rng.choice(labels) for _ in range(rng.randint(1, 7))] for _ in range(n)]


@pytest.mark.parametrize("letters", ["BI", "I", "IE", "BIE", "BIES"])
def test_chunks_are_those_of_conlleval_whatever_the_scheme(letters):
    sentences = draw_sentences(letters, seed=len(letters))
    assert find_all_chunks(sentences, "conlleval") == find_chunks_as_conlleval(sentences)


@pytest.mark.parametrize(
    ("scheme", "letters"),
    [
        ("conlleval", "BIES"),
        ("IOB1", "BI"),
        ("IOB2", "BI"),
        ("IOE1", "IE"),
        ("IOE2", "IE"),
        ("IOBES", "BIES"),
        ("BILOU", "BILU"),
    ],
)
def test_chunks_are_those_of_seqeval_in_either_mode(scheme, letters):
    pytest.importorskip("seqeval")
    from seqeval import scheme as schemes
    from seqeval.metrics.sequence_labeling import get_entities

    sentences = draw_sentences(letters, seed=7)
    if scheme == "conlleval":
        expected = [(k, kind, a, b + 1) for k, s in enumerate(sentences) for kind, a, b in get_entities(s)]
    else:
        entities = schemes.Entities(sentences, getattr(schemes, scheme)).entities
        expected = [(e.sent_id, e.tag, e.start, e.end) for sentence_entities in entities for e in sentence_entities]
    assert find_all_chunks(sentences, scheme) == sorted(expected)


@pytest.mark.parametrize(
    ("scheme", "tags", "chunks"),
    [
        ("conlleval", "I-X I-X O I-X B-X", [(0, 2), (3, 4), (4, 5)]),
        ("conlleval", "I-X I-Y", [(0, 1), (1, 2)]),
        ("conlleval", "B-X L-X U-X", [(0, 2), (2, 3)]),
        ("conlleval", "B M E W", [(0, 3), (3, 4)]),
        ("IOB2", "I-X B-X I-X I-Y", [(1, 3)]),
        ("BIO", "B-X B-X", [(0, 1), (1, 2)]),
        ("IOBES", "B-X I-X O S-X B-X E-X", [(3, 4), (4, 6)]),
        ("BMES", "B-X M-X E-X", [(0, 3)]),
        ("IO", "PER PER O LOC I-LOC", [(0, 2), (3, 5)]),
        ("raw", "NN NN O VB", [(0, 1), (1, 2), (3, 4)]),
    ],
)
def test_chunks_of_each_scheme(scheme, tags, chunks):
    assert sorted((a, b) for _, _, a, b in find_all_chunks([tags.split()], scheme)) == chunks


def test_no_chunk_reaches_over_the_end_of_a_sentence():
    assert len(find_all_chunks([["B-X"], ["I-X"]], "conlleval")) == 2
    assert len(find_all_chunks([["B-X"], ["I-X"]], "IOB2")) == 1


def test_without_any_chunk_scores_are_zero(tmp_path):
    files = write_files(tmp_path, *(["a\tO\nb\tO\n\nc\tO\n"] * 3))
    counts = read(*files[:2], gold=files[2], format="conll")
    assert compute_score(counts, "f1") == 0
    assert compute_score(counts, "accuracy") == 1
    [r] = compare_all(counts, metrics=["f1"], trials=64)
    assert r.p_value == 1


# files


def test_counts_of_a_small_set(files):
    counts = read(*files[:2], gold=files[2])
    assert counts.n_items == 3
    assert [[sum_field(counts, f, k) for f in ("tp", "predicted", "gold", "correct", "items")] for k in (0, 1)] == [
        [3, 3, 4, 7, 8],
        [2, 5, 4, 6, 8],
    ]
    assert counts.suggested[0] == "f1"
    assert counts.labels == ("LOC", "MISC", "ORG", "PER")
    assert not counts.warnings


def test_types_that_only_systems_use_count_in_f1_and_not_among_the_gold_ones(tmp_path):
    a, b, gold = write_files(tmp_path, a=A.replace("Paris\tB-LOC", "Paris\tB-NEW"))
    counts = read(a, b, gold=gold)
    assert counts.predicted_labels == ("NEW",)
    assert sum_field(counts, "predicted") == 3
    assert sum_field(counts, "predicted[NEW]") == 1
    assert compute_score(counts, "micro-f1") > compute_score(counts, "f1")


def test_kappa_of_chunks_is_refused(files):
    counts = read(*files[:2], gold=files[2])
    for name in ("kappa", "mcc"):
        with pytest.raises(InputError, match="needs one label per item; these have several per item, or chunks"):
            find_metric(name).bind(counts)


@pytest.mark.parametrize("kind", ["crlf", "bom", "gz", "no last newline", "more empty lines", "blanks", "trailing"])
def test_encodings_and_line_ends_do_not_matter(tmp_path, files, kind):
    change = {
        "crlf": lambda t: t.replace("\n", "\r\n").encode(),
        "bom": lambda t: t.encode("utf-8-sig"),
        "gz": lambda t: gzip.compress(t.encode()),
        "no last newline": lambda t: t.rstrip("\n").encode(),
        "more empty lines": lambda t: b"\n" + t.replace("\n\n", "\n \t\n\n").encode() + b"\n\n",
        "blanks": lambda t: t.replace("\t", "  ").encode(),
        "trailing": lambda t: t.replace("\nc", " \nc").replace("O\n", "O\t\n").encode(),
    }[kind]
    changed_files = write_files(tmp_path / "other", *(change(t) for t in (A, B, GOLD)))
    assert compare_files(changed_files) == compare_files(files)
    assert compare_files((changed_files[0], files[1], files[2])) == compare_files(files)


def add_gold_column(system, gold=GOLD, extra_columns=""):
    rows = zip(system.split("\n"), gold.split("\n"), strict=True)
    return "\n".join(f"{g.split()[0]} {extra_columns}{g.split()[1]} {s.split()[1]}" if s else "" for s, g in rows)


def test_gold_may_stand_beside_the_predictions(tmp_path, files):
    for extra_columns in ("", "NN B-NP "):
        assert compare_files(
            write_files(
                tmp_path / f"beside{len(extra_columns)}",
                add_gold_column(A, extra_columns=extra_columns),
                add_gold_column(B, extra_columns=extra_columns),
                None,
            )
        ) == compare_files(files)


def test_columns_are_chosen_by_number(tmp_path, files):
    def reorder(text):  # label, id, token, score
        return "".join(
            f"{r[1]}\t7\t{r[0]}\t0.5\n" if (r := line.split("\t"))[1:] else "\n" for line in text.splitlines()
        )

    reordered_files = write_files(tmp_path / "turned", reorder(A), reorder(B), reorder(GOLD))
    results = compare_files(reordered_files, "conll:column=1,gold-column=-4,tokens=3")
    assert results == compare_files(files)
    assert compare_files(reordered_files, "conll:tokens=3", columns={"prediction": "1", "gold": "1"}) == results


def test_labels_alone_are_a_system(tmp_path, files):
    def select_labels(text):
        return "".join(line.partition("\t")[2] + "\n" for line in text.splitlines())

    assert compare_files(write_files(tmp_path / "alone", select_labels(A), select_labels(B))) == compare_files(files)


def test_other_white_space_and_blanks_are_part_of_tokens(tmp_path):
    text = "New York\tB-LOC\n\u00a0\tO\n\tO\n\u3000x\tO\n\n"
    counts = read(
        *write_files(tmp_path, text, text, None)[:2], gold=write_files(tmp_path, text, text, text)[2], format="conll"
    )
    assert sum_field(counts, "items") == 4
    assert not counts.warnings


def test_comments_are_no_tokens_and_a_hash_is_one(tmp_path, files):
    head = "# newdoc id = d1\n# sent_id = 1\n# text = EU rejects\n"
    middle = "# id 1b16 domain=en\n"
    commented = [
        (head + t).replace("\n\nP", f"\n\n{middle}P").replace("#\tO", "# newdoc id = d2\n#\tO") for t in (A, B, GOLD)
    ]
    commented_files = write_files(tmp_path / "commented", *commented)
    assert compare_files(commented_files) == compare_files(files)
    counts = read(*commented_files[:2], gold=commented_files[2])
    assert counts.groups["document"] == ("d1", "d1", "d2")
    assert compare_files((files[0], files[1], commented_files[2])) == compare_files(files)


def test_comments_with_as_many_columns_as_tokens_are_told_by_their_label(tmp_path):
    text = "# id 1b16 domain=en\n# _ _ O\nEU _ _ B-ORG\n\n# id 2c domain=en\nx _ _ O\n"
    counts = read(*write_files(tmp_path, text, text.replace("B-ORG", "O"), text)[:2], gold=tmp_path / "gold.txt")
    assert sum_field(counts, "items") == 3


def test_docstart_marks_documents(tmp_path, files):
    def add_docstart(text):
        return "-DOCSTART- -X- O O\n\n" + text.replace("\n\n#", "\n\n-DOCSTART- O\n\n#")

    marked_files = write_files(tmp_path / "marked", add_docstart(A), B, add_docstart(GOLD))
    assert compare_files(marked_files) == compare_files(files)
    counts = read(*marked_files[:2], gold=marked_files[2])
    assert counts.groups["document"] == ("1", "1", "2")
    [r] = compare_all(counts, metrics=["f1"], unit="document", trials=64)
    assert r.n_units == 2


def test_docstart_may_be_counted_as_conlleval_counts_it(tmp_path):
    text = "-DOCSTART- O\n\n" + A
    paths = write_files(tmp_path, text, text.replace("B-ORG", "O"), "-DOCSTART- O\n\n" + GOLD)
    counts = read(*paths[:2], gold=paths[2], format="conll:docstart=token")
    assert (counts.n_items, sum_field(counts, "items")) == (4, 9)


def test_sentences_are_a_unit_by_name(files):
    options = Options(groups=("sentence",))
    counts = read(*files[:2], gold=files[2], options=options)
    assert counts.group("sentence") == ("1", "2", "3")
    with pytest.raises(InputError, match=r"gold.txt: no column 'document' .*DOCSTART.*columns: sentence"):
        read(*files[:2], gold=files[2], options=Options(groups=("document",)))


def test_labels_and_types_are_mapped(tmp_path, files):
    a = A.replace("B-PER", "B-PERSON").replace("I-PER", "I-PERSON").replace("rejects\tO", "rejects\tX")
    maps = (parse_map("PER=PERSON"), parse_map("O=X"), parse_map("LOC=GPE"))
    mapped_files = write_files(tmp_path / "mapped", a)
    assert compare_files(mapped_files, "conll", label_map=maps) == compare_files(files)
    counts = read(*mapped_files[:2], gold=mapped_files[2], format="conll", options=Options(label_map=maps))
    [warning] = counts.warnings
    assert warning.startswith("--map: no label 'GPE' in gold or systems; labels: ")


def test_altered_tokens_are_one_warning_with_their_number(tmp_path, files):
    altered_files = write_files(tmp_path / "altered", A.replace("EU", "eu").replace("call", "CALL"))
    counts = read(*altered_files[:2], gold=altered_files[2])
    assert len(counts.warnings) == 1
    assert "a.txt: 2 of 8 tokens" in counts.warnings[0]
    assert "first on line 1: 'eu' for 'EU'" in counts.warnings[0]
    assert compare_files(altered_files) == compare_files(files)


def test_whole_outputs_are_lists_of_labels(files):
    counts = read(*files[:2], gold=files[2])
    assert counts.outputs.gold.tolist() == [["B-ORG", "O", "B-MISC", "O"], ["B-PER", "I-PER"], ["O", "B-LOC"]]


@pytest.mark.parametrize(
    ("a", "message"),
    [
        ("", "a.txt: is empty"),
        ("\n\n", "a.txt: is empty"),
        (A.replace("call\tO\n", ""), r"a.txt, line 1: sentence 1 has 3 tokens, but 4 in .*gold.txt, line 1"),
        (A.replace("Blackburn", "Blackburn\tO\n\nx"), r"a.txt, line 9: sentence 3 has 1 token, but 2"),
        (A + "x\tO\n", r"a.txt: 4 sentences, but .*gold.txt has 3 .*line 12 of .*a.txt"),
        (A.partition("#")[0], r"a.txt: 2 sentences, but .*gold.txt has 3 .*line 9 of .*gold.txt"),
        (
            A.replace("Blackburn\tI-PER", "Blackburn"),
            r"a.txt, line 7: found 1 column \('Blackburn'\), expected 2 as on line 1",
        ),
        (A.replace("call\tO", "call\tO\tO"), "a.txt, line 4: found 3 columns"),
        (A.replace("I-PER", "PER"), "a.txt, line 7: label 'PER', expected O or one that begins with B-, I-"),
        (A.encode() + b"caf\xe9\tO\n", r"a.txt, line 12: byte 0xe9"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_place(tmp_path, a, message):
    paths = write_files(tmp_path, a)
    with pytest.raises(InputError, match=message):
        read(*paths[:2], gold=paths[2], format="conll")


@pytest.mark.parametrize(
    ("format_", "message"),
    [
        ("conll:scheme=IOB3", "scheme = 'IOB3'"),
        ("conll:schema=IOB1", "did you mean 'scheme'"),
        ("conll:column=0", "column = '0': must be the number of a column"),
        ("conll:column=3", "line 1: found 2 columns, but column is 3"),
        ("conll:gold-column=-3", "gold.txt, line 1: found 2 columns, but gold-column is -3"),
        ("conll:scheme=IOE2", "gold.txt, line 1: label 'B-ORG', expected O or one that begins with I-, E-"),
    ],
)
def test_options_are_checked(files, format_, message):
    with pytest.raises(InputError, match=message):
        read(*files[:2], gold=files[2], format=format_)


def test_gold_columns_must_be_there_and_agree(tmp_path):
    other_gold = GOLD.replace("German\tB-MISC", "German\tB-LOC")
    paths = write_files(tmp_path, add_gold_column(A), add_gold_column(B, other_gold), None)
    with pytest.raises(InputError, match=r"b.txt, line 3: gold 'B-LOC', but 'B-MISC' in .*a.txt, line 3"):
        read(*paths[:2])
    a, b, _ = write_files(tmp_path, gold=None)
    with pytest.raises(InputError, match=r"a.txt, line 1: label 'EU', expected O .*--gold FILE"):
        read(a, b, format="conll")
    a, b, _ = write_files(tmp_path, "O\nB-X\n", "O\nB-X\n", None)
    with pytest.raises(InputError, match="found 1 column, but gold-column is -2: give gold labels with --gold FILE"):
        read(a, b, format="conll")


def format_conllu(*tags):
    rows = ["# text = Don't go", "1-2\tDon't" + "\t_" * 8]
    rows += [
        f"{k}\t{w}\t{w}\t{t}" + "\t_" * 6 for k, (w, t) in enumerate(zip(("Do", "n't", "go"), tags, strict=True), 1)
    ]
    return "\n".join([*rows, "3.1\tgo" + "\t_" * 8]) + "\n\n"


def test_conllu_is_judged_by_parts_of_speech_of_words(tmp_path):
    gold, wrong = format_conllu("AUX", "PART", "VERB"), format_conllu("VERB", "PART", "VERB")
    files = write_files(tmp_path, gold + wrong, wrong + wrong, gold + gold)
    counts = read(*files[:2], gold=files[2])
    assert counts.suggested == ("accuracy",)
    assert counts.field("correct").tolist() == [[3, 2], [2, 2]]
    assert sum_field(counts, "items") == 6
    with pytest.raises(InputError, match="a.txt: CoNLL-U holds predicted labels, but no gold labels"):
        read(*files[:2])
    by_form = read(*files[:2], gold=files[2], format="conll:scheme=raw,column=3,gold-column=3,tokens=2")
    assert sum_field(by_form, "correct") == sum_field(by_form, "items") == 6


def test_columns_of_one_file_are_systems(tmp_path, files):
    rows = zip(*(path.read_text().splitlines() for path in (files[2], *files[:2])), strict=True)
    lines = [
        "\t".join((gold, *(cell.split("\t")[1] for cell in predictions))) if gold else "" for gold, *predictions in rows
    ]
    (tmp_path / "all.txt").write_text("\n".join(lines) + "\n")
    counts = read(tmp_path / "all.txt")
    assert counts.systems == ("column 3", "column 4")
    expected = read(*files[:2], gold=files[2])
    for field in ("tp", "predicted", "gold", "correct"):
        assert counts.field(field).tolist() == expected.field(field).tolist()
    selected = read(f"x={tmp_path / 'all.txt'}", format="conll:column=4+3,gold-column=2")
    assert selected.systems == ("x:4", "x:3")
    assert selected.field("tp").tolist() == expected.field("tp")[:, ::-1].tolist()


def test_letters_may_stand_after_the_type(tmp_path, files):
    def swap_prefix(text):
        return re.sub(r"\t([BI])-(\w+)", r"\t\2-\1", text)

    assert compare_files(write_files(tmp_path / "turned", *map(swap_prefix, (A, B, GOLD)))) == compare_files(files)


def test_forgotten_gold_labels_are_asked_for(files):
    with pytest.raises(InputError, match="a.txt, line 1: label 'EU', .* give the gold labels with --gold FILE"):
        read(*files[:2])


def test_two_systems_of_one_name_are_an_error(tmp_path, files):
    with pytest.raises(InputError, match=r"a.txt and .*b.txt would both be system 'a'; .*NAME=FILE"):
        read(files[0], f"a={files[1]}", gold=files[2])


@pytest.mark.parametrize(
    "text",
    [
        "item,gold,x,y\na,B-X,O,O\n",
        "item\tgold\tx\na\tO\tO\n",
        "O\nB-X\n",
        "B\nB\n",
        "a b c\n\nd e f\n",
        "",
        "\n\n",
        "{}\n",
    ],
)
def test_other_files_are_not_taken_for_tagged_tokens(tmp_path, text):
    from sigdask.formats.tagging.detection import sniff

    (tmp_path / "x").write_text(text)
    assert not sniff([parse_source(str(tmp_path / "x"))], None, Options())


def format_tags(*tags, sep="\t"):
    words = iter(zip(("The", "dog", "barks", "It", "is", "#"), tags, strict=True))
    return "".join(f"{sep.join(next(words))}\n{chr(10) * (k == 2)}" for k in range(6))


@pytest.mark.parametrize("asked", ["auto", "conll", "conll:column=2", "conll:scheme=raw"])
@pytest.mark.parametrize("sep", ["\t", " "])
def test_parts_of_speech_are_scored_by_tokens(tmp_path, asked, sep):
    gold = format_tags("DT", "NN", "VBZ", "PRP", "VBZ", "CD", sep=sep)
    paths = write_files(tmp_path, gold.replace("NN", "NNP"), gold.replace("VBZ", "NNS"), gold)
    counts = read(*paths[:2], gold=paths[2], format=asked)
    assert counts.suggested == ("accuracy",)
    assert counts.field("correct").tolist() == [[2, 2], [3, 2]]
    assert any("column 2 holds plain labels" in note for note in counts.warnings) == (asked != "conll:scheme=raw")


def test_of_dependencies_the_last_column_that_differs_is_compared(tmp_path):
    rows = [("1", "The", "DT", "2", "NMOD"), ("2", "dog", "NN", "0", "ROOT"), (), ("1", "Go", "VB", "0", "ROOT")]
    gold = "\n".join("\t".join(row) for row in rows) + "\n"
    paths = write_files(tmp_path, gold.replace("NMOD", "SBJ"), gold.replace("VB", "NN"), gold)
    counts = read(*paths[:2], gold=paths[2])
    assert counts.field("correct").tolist() == [[1, 2], [1, 1]]
    other_counts = read(f"x={paths[1]}", f"y={paths[2]}", gold=paths[2])
    assert other_counts.field("correct").tolist() == [[2, 2], [0, 1]]
    assert "column 3 holds plain labels" in other_counts.warnings[0]


def test_types_of_chunks_beside_o_are_not_taken_for_plain_labels(tmp_path):
    gold = format_tags("O", "PER", "O", "O", "O", "LOC")
    paths = write_files(tmp_path, gold, gold, gold)
    with pytest.raises(InputError, match="label 'PER', expected O .* conll:scheme=raw"):
        read(*paths[:2], gold=paths[2])


@pytest.mark.parametrize(
    "other", ["a b\nc d\n\ne f\n", "The\tDT\ndog\tNN\n", "The\tDT\tx\n\ndog\tNN\tx\n", "", "a\n\n"]
)
def test_files_of_other_tokens_are_not_taken_for_parts_of_speech(tmp_path, other):
    from sigdask.formats.tagging.detection import sniff

    path, _, gold = write_files(tmp_path, other, other, format_tags("DT", "NN", "VBZ", "PRP", "VBZ", "CD"))
    assert not sniff([parse_source(str(path))], gold, Options())


def test_tagged_words_without_punctuation_are_no_pairs_of_words(tmp_path):
    gold = "The\tDT\ndog\tNN\n\nShe\tPRP\nbarks\tVBZ\n"
    path, _, gold_path = write_files(tmp_path, gold.replace("NN", "NNP"), gold, gold)
    assert detect([parse_source(str(path))], gold_path) == "conll"


HEADERS = {
    "first": "word ner\n",
    "before an empty line": "word ner\n\n",
    "after a document": "-DOCSTART- O\n\nword ner\n",
    "between comments": "# global.columns = WORD NER\nWord NER\n# sent_id = 1\n",
    "as a comment": "#word ner\n",
}
CHUNKED = "EU B-ORG\nrejects O\n\nGerman B-MISC\ncall O\nnow O\n"
SPOKEN = "the DT\ndog NN\n\nruns VBZ\nfast RB\n"


def read_texts(tmp_path, first, second, gold, **options):
    for name, text in (("one", first), ("two", second), ("gold.conll", gold)):
        (tmp_path / name).write_text(text)
    return read(tmp_path / "one", tmp_path / "two", gold=tmp_path / "gold.conll", **options)


@pytest.mark.parametrize("tab", [" ", "\t"])
@pytest.mark.parametrize("head", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize(("gold", "other"), [(CHUNKED, "MISC MISC"), (SPOKEN, "RB JJ")])
def test_a_header_is_no_token_wherever_it_stands(tmp_path, head, gold, other, tab):
    old, new = other.split()
    system = gold.replace(old, new).replace("-MISC", "-ORG")
    head, system, gold = ((text if text.startswith("-D") else text.replace(" ", tab)) for text in (head, system, gold))
    counts = read_texts(tmp_path, head + system, gold, head + gold)
    assert counts.field("correct")[:, 1].tolist() == [2, gold.count("\n") - 3]
    assert counts.field("correct")[:, 0].tolist() == [2, gold.count("\n") - 4]


def test_an_empty_last_cell_is_a_cell(tmp_path):
    gold = SPOKEN.replace(" ", "\t")
    system = gold.replace("fast\tRB", "fast\t")
    counts = read_texts(tmp_path, system, gold, gold, format="conll:scheme=raw")
    assert counts.field("correct").tolist() == [[2, 2], [1, 2]]
    with pytest.raises(InputError, match=r"one, line 6: label '', expected O"):
        read_texts(tmp_path, CHUNKED.replace(" ", "\t")[:-2] + "\n", CHUNKED, CHUNKED)


def test_empty_last_cells_of_conllu_are_cells(tmp_path):
    rows = [f"{k}\t{word}\t_\t{pos}\t_\t_\t0\troot\t_\t" for k, (word, pos) in enumerate([("a", "DET"), ("b", "X")], 1)]
    gold = "\n".join(["# sent_id = 1", *rows, "", rows[0] + "_", "", ""])
    counts = read_texts(tmp_path, gold.replace("DET", "NOUN"), gold, gold)
    assert counts.field("correct").tolist() == [[1, 2], [0, 1]]


def test_a_tab_at_the_end_of_every_line_makes_no_column(tmp_path):
    gold = CHUNKED.replace(" ", "\t")
    counts = read_texts(tmp_path, gold.replace("\n", "\t\n"), gold, gold)
    assert counts.field("correct").tolist() == [[2, 2], [3, 3]]


@pytest.mark.parametrize("gold", [CHUNKED, SPOKEN])
def test_a_file_without_sentence_breaks_is_told_how_to_get_them(tmp_path, gold):
    lacking = gold.replace("\n\n", "\n")
    with pytest.raises(
        InputError, match=r"one: lacks all the 1 sentence breaks of .*gold.conll \(the first before line 3\)"
    ):
        read_texts(tmp_path, lacking, gold, gold)
    awk = re.search("awk .* does this", str(catch_error(read_texts, tmp_path, lacking, gold, gold)))[0].removesuffix(
        " does this"
    )
    mended = subprocess.run(awk, shell=True, capture_output=True, text=True, check=True).stdout
    assert read_texts(tmp_path, mended, gold, gold).field("correct").tolist() == [
        [2, 2],
        [len(gold.split()) // 2 - 2] * 2,
    ]


def catch_error(function, *arguments):
    with pytest.raises(InputError) as error:
        function(*arguments)
    return error.value


def test_some_sentence_breaks_that_lack_are_counted(tmp_path):
    gold = CHUNKED + "\n" + CHUNKED
    assert "one: lacks 1 of the 3 sentence breaks" in str(
        catch_error(read_texts, tmp_path, gold.replace("\n\n", "\n", 1), gold, gold)
    )


def test_many_tokens_in_one_sentence_are_noted(tmp_path):
    gold = CHUNKED.replace("\n\n", "\n") * 50
    assert any("has no sentence break" in w for w in read_texts(tmp_path, gold, gold, gold).warnings)


# which column is scored


def format_parse(tags, heads, relation="dep"):
    """Return a sentence of CoNLL-U."""
    rows = zip(tags, heads, strict=True)
    return "".join(f"{k}\tw{k}\tw\t{t}\t_\t_\t{h}\t{relation}\t_\t_\n" for k, (t, h) in enumerate(rows, 1)) + "\n"


def test_parses_that_differ_in_heads_alone_are_told_so_before_the_answer(tmp_path):
    gold = "# sent_id = 1\n" + format_parse(("NOUN", "VERB"), (2, 0), "nsubj")
    files = write_files(tmp_path, format_parse(("NOUN", "VERB"), (0, 1)), gold, gold)
    counts = read(*files[:2], gold=files[2], format="conll")
    scope = "Only UPOS (column 4) is scored; HEAD (column 7), DEPREL (column 8) differ between the systems and are not scored"
    assert counts.scope == (scope,)
    results = compare_all(counts)
    first_line, second_line, *_ = render(results).splitlines()
    assert first_line == f"{scope}."
    assert "same" not in second_line
    assert f'<p class="scope">{scope}.</p>' in render_page({"it": results}, title="parses")
    assert results.to_dict()["notes"][0] == {"kind": "scope", "text": scope}
    head_counts = read(*files[:2], gold=files[2], format="conll:column=HEAD")
    assert head_counts.scope[0].startswith("Only HEAD (column 7) is scored; DEPREL (column 8) differs")
    assert head_counts.field("correct").tolist() == [[0, 2]]


def test_real_parses_name_the_column_that_is_scored(shared_data):
    folder = shared_data / "parsing_conll18" / "it_pud_250"
    files = [folder / "system_A.conllu", folder / "system_B.conllu"]
    counts = read(*files, gold=folder / "gold.conllu", format="conll")
    reference = json.loads((folder.parent / "reference_scores.json").read_text())
    assert "Only UPOS (column 4) is scored; " in counts.scope[0]
    assert "HEAD (column 7), DEPREL (column 8)" in counts.scope[0]
    official = [reference["treebanks"]["it_pud_250"]["systems"][f"system_{name}"]["UPOS"] for name in "AB"]
    for system, scores in enumerate(official):
        assert sum_field(counts, "correct", system) == scores["correct"]


def test_files_of_several_columns_name_the_one_that_is_scored(tmp_path, files):
    assert read(*files[:2], gold=files[2]).scope == ()
    rows = [line.split("\t") for line in GOLD.splitlines()]
    gold = "\n".join("\t".join((row[0], "POS", *row[1:])) if row[0] else "" for row in rows) + "\n"
    a = gold.replace("Paris\tPOS\tB-LOC", "Paris\tNNP\tO")
    paths = write_files(tmp_path / "more", "word pos ner\n".replace(" ", "\t") + a, gold, gold)
    counts = read(*paths[:2], gold=paths[2])
    assert counts.scope == (
        "Only ner (column 3) is scored; pos (column 2) differs between the systems and is not scored",
    )
    systems = [text.replace("\tO", "\tO\tO").replace("LOC", "LOC\tO") for text in (gold, gold)]
    systems = [re.sub(r"(\t[BI]-(?:ORG|MISC|PER))", r"\1\1", text) for text in systems]
    paths = write_files(tmp_path / "four", *systems, None)
    assert read(*paths[:2]).scope == ("Only column 4 (the last) is scored, against column 3",)


def test_a_column_of_underscores_is_refused(tmp_path):
    gold = format_parse(("NOUN", "VERB"), (2, 0))
    files = write_files(tmp_path, gold.replace("NOUN", "_").replace("VERB", "_"), gold, gold)
    with pytest.raises(InputError, match=r"a.txt: UPOS \(column 4\) has only '_' and no labels"):
        read(*files[:2], gold=files[2])


# historical named entities


HIPE_COLUMNS = (
    "TOKEN NE-COARSE-LIT NE-COARSE-METO NE-FINE-LIT NE-FINE-METO NE-FINE-COMP NE-NESTED NEL-LIT NEL-METO MISC"
)


def format_hipe(*documents, comment="# hipe2022:document_id = {}\n# hipe2022:date = 1798-01-01\n", end=""):
    """Return a HIPE file; a token is a word, its coarse and fine tags, and its MISC field."""
    text = HIPE_COLUMNS.replace(" ", "\t") + "\n"
    for number, tokens in enumerate(documents, 1):
        rows = [(word, coarse, "O", fine, "O", "O", "_", "_", "_", misc) for word, coarse, fine, misc in tokens]
        text += comment.format(f"d{number}") + "".join("\t".join(row) + "\n" for row in rows) + end
    return text


FIRST_DOCUMENT = [("Paris", "B-loc", "B-loc.adm", "_"), (".", "O", "O", "EndOfSentence"), ("Ann", "B-pers", "B-pers.ind", "_"),
       ("Lee", "I-pers", "I-pers.ind", "NoSpaceAfter|EndOfLine"), ("#", "O", "O", "_")]  # fmt: skip
SECOND_DOCUMENT = [("Rome", "B-loc", "B-loc.adm", "_"), ("'", "_", "_", "_")]


@pytest.mark.parametrize(
    "comment", ["# hipe2022:document_id = {}\n# hipe2022:date = 1798\n", "# date =\n# document = {}\n"]
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_historical_entities_are_read_without_options(tmp_path, comment, end):
    def text(first, second):
        return format_hipe(first, second, comment=comment, end=end)

    coarse = [("Paris", "O", "B-loc.adm", "_"), *FIRST_DOCUMENT[1:]]
    fine = [("Rome", "B-loc", "B-loc.phys", "_"), *SECOND_DOCUMENT[1:]]
    files = write_files(
        tmp_path, text(coarse, SECOND_DOCUMENT), text(FIRST_DOCUMENT, fine), text(FIRST_DOCUMENT, SECOND_DOCUMENT)
    )
    assert detect([parse_source(str(files[0]))], files[2]) == "conll"
    counts = read(*files[:2], gold=files[2])
    assert counts.scope[0].startswith("Only NE-COARSE-LIT (column 2) is scored; NE-FINE-LIT (column 4) differs")
    assert list(counts.group("document")) == ["d1", "d1", "d2"]
    assert counts.field("gold").tolist() == [[1], [1], [1]]
    assert counts.field("tp").tolist() == [[0, 1], [1, 1], [1, 1]]
    by_fine = read(*files[:2], gold=files[2], format="conll:column=NE-FINE-LIT")
    assert by_fine.field("tp").tolist() == [[1, 1], [1, 1], [1, 0]]
    by_number = read(*files[:2], gold=files[2], options=Options(columns={"prediction": "4"}))
    assert by_number.field("tp").tolist() == by_fine.field("tp").tolist()


def test_historical_files_without_gold_labels_or_of_masked_ones_are_refused(tmp_path):
    masked = format_hipe([(word, "_", "_", "_") for word, *_ in FIRST_DOCUMENT])
    files = write_files(tmp_path, format_hipe(FIRST_DOCUMENT), format_hipe(FIRST_DOCUMENT), masked)
    with pytest.raises(InputError, match=r"gold.txt: NE-COARSE-LIT \(column 2\) has only '_'"):
        read(*files[:2], gold=files[2])
    with pytest.raises(
        InputError, match=r"a.txt: .*NE-COARSE-LIT.* holds predicted labels, but no gold labels; give --gold FILE"
    ):
        read(*files[:2])


# JSON


def format_json(sequences, arrangement, name):
    """Return sentences of tags as JSON."""
    tokens = [[f"w{k}" for k in range(len(tags))] for tags in sequences]
    key = "gold" if name == "gold" else "predictions"
    ids = [f"s{k}" for k in range(len(sequences))]
    records = {
        "lists": sequences,
        "tags": [{"tags": tags} for tags in sequences],
        "tokens": [{"tokens": words, "ner_tags": tags} for words, tags in zip(tokens, sequences, strict=True)],
        "ids": [{"id": name, key: tags} for name, tags in zip(ids, sequences, strict=True)][
            :: 1 if name != "b" else -1
        ],
    }
    if arrangement == "object":
        return json.dumps({key: sequences})
    if arrangement == "by id":
        return json.dumps(dict(zip(ids, sequences, strict=True)))
    if arrangement.endswith(" indented"):
        return json.dumps(records[arrangement.removesuffix(" indented")], indent=2)
    if arrangement.endswith(" by line"):
        return "".join(json.dumps(record) + "\n" for record in records[arrangement.removesuffix(" by line")])
    return json.dumps(records[arrangement])


ARRANGEMENTS = ["lists", "lists indented", "lists by line", "tags", "tags by line", "tokens by line", "ids", "ids by line",
                "object", "by id"]  # fmt: skip


@pytest.mark.parametrize("format_", ["auto", "conll"])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_json_of_tag_sequences_is_read_as_tagged_sentences(tmp_path, files, arrangement, format_):
    texts = {path.stem: [[line.split("\t")[1] for line in sentence.splitlines()] for sentence in path.read_text().strip().split("\n\n")]
             for path in files}  # fmt: skip
    paths = write_files(
        tmp_path / "json", *(format_json(texts[name], arrangement, name) for name in ("a", "b", "gold"))
    )
    counts, expected = read(*paths[:2], gold=paths[2], format=format_), read(*files[:2], gold=files[2])
    for field in ("tp", "predicted", "gold", "correct", "items"):
        assert counts.field(field).tolist() == expected.field(field).tolist()
    assert counts.suggested == expected.suggested


def test_json_with_gold_tags_beside_needs_no_gold_file(tmp_path):
    for name, tags in (("a", ["B-PER", "O"]), ("b", ["O", "O"])):
        (tmp_path / name).write_text(
            json.dumps({"tokens": ["Ann", "ran"], "gold": ["B-PER", "O"], "pred": tags}) + "\n"
        )
    counts = read(tmp_path / "a", tmp_path / "b")
    assert counts.field("tp").tolist() == [[1, 0]]
    for name, tags in (("a", ["B-PER", "O"]), ("b", ["O", "O"])):
        (tmp_path / name).write_text(json.dumps({"y_true": [["B-PER", "O"]], "y_pred": [tags]}))
    assert read(tmp_path / "a", tmp_path / "b").field("tp").tolist() == [[1, 0]]


def test_json_of_parts_of_speech_is_compared_token_by_token(tmp_path):
    gold = [["DET", "NOUN", "NOUN"], ["VERB"]]
    paths = write_files(tmp_path, *(json.dumps(tags) for tags in ([["DET", "NOUN", "VERB"], ["VERB"]], gold, gold)))
    counts = read(*paths[:2], gold=paths[2])
    assert counts.suggested == ("accuracy",)
    assert counts.field("correct").tolist() == [[2, 3], [1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[["O", "B-PER"], ["O"', "a.txt, line 1: invalid JSON"),
        ('[["O", "B-PER"]]', "lacks|1 sentences, but .*gold.txt has 2"),
        ('[["O"], ["O"]]', r"a.txt, record 1: sentence 1 has 1 token, but 2 in .*gold.txt, record 1"),
        ('[["O", 3], ["O"]]', "a.txt, record 1: found 3 among the tags, expected names of tags"),
        ('[{"tags": ["O", "O"], "tokens": ["a"]}, {"tags": ["O"]}]', "record 1: 2 tags, but 1 tokens"),
        (
            '[{"words": ["O", "O"]}, {"words": ["O"]}]',
            "no list of tags among the keys 'words'; name its key: --format conll:column=KEY",
        ),
    ],
)
def test_json_that_does_not_fit_is_an_error_that_names_the_place(tmp_path, text, message):
    gold = '[["O", "B-PER"], ["O"]]'
    paths = write_files(tmp_path, text, gold, gold)
    with pytest.raises(InputError, match=message):
        read(*paths[:2], gold=paths[2], format="conll")


def test_columns_whose_first_token_is_a_bracket_are_no_json(tmp_path):
    gold = "[\t[\tO\nAnn\tAnn\tB-PER\n\n{\t{\tO\n"
    paths = write_files(tmp_path, gold, gold, gold)
    assert read(*paths[:2], gold=paths[2]).field("tp").tolist() == [[1, 1], [0, 0]]


# a sentence a line, and what is refused


@pytest.mark.parametrize("mark", ["", "/", "_"])
def test_sentences_of_a_line_each_are_read_as_tagged_sentences(tmp_path, mark):
    def text(*sentences):
        cells = ([f"w{k}{mark}{tag}" if mark else tag for k, tag in enumerate(s.split())] for s in sentences)
        return "".join(" ".join(line) + "\n" for line in cells)

    gold = ("O B-PER I-PER", "B-LOC O", "O O O B-LOC")
    paths = write_files(tmp_path, text("O B-PER O", *gold[1:]), text(*gold[:2], "O O O O"), text(*gold))
    counts = read(*paths[:2], gold=paths[2])
    assert counts.field("tp").tolist() == [[0, 1], [1, 1], [1, 0]]
    assert counts.field("items").tolist() == [[3], [2], [4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d1 0 w (1)\nd1 1 v -\n\nd1 0 w (1\nd1 1 v 1)\n", "column 4 holds coreference chains in brackets"),
        ("the DT (S* (A0*\ndog NN * *)\n\nran VB *) *\n", "column 4 holds arguments or constituents in brackets"),
        ("id,tags\n1,\"['O', 'B-PER', 'O']\"\n2,\"['O']\"\n", "sequences of tags .* write them as JSON lines"),
    ],
)
def test_what_no_metric_scores_is_refused_by_its_name(tmp_path, text, message):
    paths = write_files(tmp_path, text, text, text)
    with pytest.raises(InputError, match=message):
        read(*paths[:2], gold=paths[2])


def test_numbered_tags_beside_ids_are_no_sets_of_labels(tmp_path):
    """They were read as sets of labels, in which a tag counts once a sentence."""
    for name, last in (("gold", 3), ("a", 3), ("b", 0)):
        records = [{"id": k, "ner_tags": [0, 1, 2, 0, last]} for k in range(5)]
        (tmp_path / f"{name}.json").write_text(json.dumps(records))
    files = [tmp_path / f"{name}.json" for name in ("a", "b")]
    with pytest.raises(InputError, match="write the name of each tag instead of its number"):
        read(*files, gold=tmp_path / "gold.json", options=Options(metrics=("f1",)))
