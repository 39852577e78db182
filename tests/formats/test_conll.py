"""Tagged tokens: chunks as in conlleval and seqeval, columns, comments, documents, errors."""

import json
import random
import re

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_maps, parse_source, read
from sigdask.formats.tagging.chunks import PREFIXES, SCHEMES, find_chunks, parse_tag
from sigdask.metrics import find_metric

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
    return sorted((k, types[t], a - int(offsets[k]), b - int(offsets[k])) for a, b, t, k in chunks.tolist())


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
        ("conlleval", "B-X L-X U-X", [(0, 2), (2, 3)]),
        ("conlleval", "B M E W", [(0, 3), (3, 4)]),
        ("BIO", "B-X B-X", [(0, 1), (1, 2)]),
        ("BMES", "B-X M-X E-X", [(0, 3)]),
        ("IO", "PER PER O LOC I-LOC", [(0, 2), (3, 5)]),
        ("raw", "NN NN O VB", [(0, 1), (1, 2), (3, 4)]),
    ],
)
def test_chunks_of_each_scheme(scheme, tags, chunks):
    assert sorted((a, b) for _, _, a, b in find_all_chunks([tags.split()], scheme)) == chunks


def test_gold_without_a_chunk_and_systems_of_foreign_types_are_errors(tmp_path, files):
    outside = re.sub(r"\t[BI]-\w+", "\tO", GOLD)
    a, b, gold = write_files(tmp_path / "empty", A, B, outside)
    with pytest.raises(InputError, match="gold.txt: no chunks, so no score is defined"):
        read(a, b, gold=gold)
    a, b, gold = write_files(tmp_path / "foreign", A, re.sub(r"-\w+", "-NP", B), GOLD)
    with pytest.raises(InputError, match="'b': the types of all its 5 chunks never occur in gold: it has NP"):
        read(a, b, gold=gold)
    a, b, gold = write_files(tmp_path / "silent", A, outside, GOLD)
    assert compute_score(read(a, b, gold=gold), "f1", 1) == 0  # a system may find nothing


def to_iob1(text):
    """Return tags in which only a chunk after another one of its type begins with B."""
    chunks = [line.replace("\tB-", "\tI-") for line in text.split("\n")]
    return "\n".join(chunks)


def test_gold_that_breaks_the_named_scheme_is_an_error_with_count_and_line(tmp_path):
    a, b, gold = write_files(tmp_path, A, B, to_iob1(GOLD))
    with pytest.raises(InputError, match=r"gold.txt, line 1: gold tag 'I-ORG' breaks .*IOB2.* 5 of 5 tags"):
        read(a, b, gold=gold, format="conll:scheme=IOB2")
    with pytest.raises(InputError, match=r"gold.txt, line 1: gold tag 'B-ORG' breaks the scheme IOB1"):
        read(*write_files(tmp_path, A, B, GOLD)[:2], gold=gold, format="conll:scheme=IOB1")
    # predictions are counted as seqeval does in strict mode: chunks that break the scheme are left out
    counts = read(*write_files(tmp_path, to_iob1(A), B)[:2], gold=gold, format="conll:scheme=IOB2")
    assert [sum_field(counts, "predicted", k) for k in (0, 1)] == [0, 5]


# files


def add_gold_column(system, gold=GOLD, extra_columns=""):
    rows = zip(system.split("\n"), gold.split("\n"), strict=True)
    return "\n".join(f"{g.split()[0]} {extra_columns}{g.split()[1]} {s.split()[1]}" if s else "" for s, g in rows)


def test_labels_and_types_are_mapped(tmp_path, files):
    a = A.replace("B-PER", "B-PERSON").replace("I-PER", "I-PERSON").replace("rejects\tO", "rejects\tX")
    maps = parse_maps(["PER=PERSON", "O=X"])
    mapped_files = write_files(tmp_path / "mapped", a)
    assert compare_files(mapped_files, "conll", label_map=maps) == compare_files(files)
    with pytest.raises(InputError, match="1 label that neither gold nor a system has: 'GPE'"):
        read(*mapped_files[:2], gold=mapped_files[2], options=Options(label_map=(*maps, *parse_maps(["LOC=GPE"]))))


@pytest.mark.parametrize(
    ("a", "message"),
    [
        ("\n\n", "a.txt: is empty"),
        (A.replace("call\tO\n", ""), r"a.txt, line 1: sentence 1 has 3 tokens, but 4 in .*gold.txt, line 1"),
        (A.replace("Blackburn", "Blackburn\tO\n\nx"), r"a.txt, line 9: sentence 3 has 1 token, but 2"),
        (A + "x\tO\n", r"a.txt, line 12: sentence 4 has 1 token, but 0 in .*gold.txt, at its end \(of 4 and 3"),
        (A.partition("#")[0], r"a.txt, at its end: sentence 3 has 0 tokens, but 2 in .*gold.txt, line 9"),
        (
            A.replace("Blackburn\tI-PER", "Blackburn"),
            r"a.txt, line 7: found 1 column \('Blackburn'\), expected 2 as on line 1",
        ),
        (A.replace("call\tO", "call\tO\tO"), "a.txt, line 4: found 3 columns"),
        ("word\tpos\tner\n" + A, "a.txt, line 2: found 2 columns .*, expected 3 as on line 1"),
        (A.replace("I-PER", "PER"), "a.txt, line 7: label 'PER', expected O or one that begins with B-, I-"),
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
        ("conll:column=0", "found 2 columns, but column is 0"),
        ("conll:column=2+", "found 2 columns, but column is "),
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
    with pytest.raises(InputError, match=r"a.txt, line 1: label 'EU', expected O .*gold.FILE"):
        read(a, b, format="conll")
    a, b, _ = write_files(tmp_path, "O\nB-X\n", "O\nB-X\n", None)
    with pytest.raises(InputError, match="found 1 column, but gold-column is -2; .*gold=FILE"):
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
    by_form = read(*files[:2], gold=files[2], format="conll:scheme=raw,column=3,gold-column=3")
    assert sum_field(by_form, "correct") == sum_field(by_form, "items") == 6


def write_columns(folder, files, *further, header=""):
    """Write a file of words, further columns, gold tags and the tags of two systems."""
    rows = zip(*(path.read_text().splitlines() for path in (files[2], *files[:2])), strict=True)
    cells = ([line.split("\t") for line in row] for row in rows)
    lines = ["\t".join([g[0], *further, g[1], a[1], b[1]]) if g != [""] else "" for g, a, b in cells]
    (folder / "all.txt").write_text(header + "\n".join(lines) + "\n")
    return folder / "all.txt"


@pytest.mark.parametrize("further", [(), ("NN", "B-NP"), ("B-NP",)])
def test_several_columns_of_tags_are_refused_with_each_reading(tmp_path, files, further):
    path, expected = write_columns(tmp_path, files, *further), read(*files[:2], gold=files[2])
    with pytest.raises(InputError, match="columns hold tags") as refusal:
        read(path)
    readings = re.findall(r"'(conll:[^']+)'", refusal.value.remedy)
    assert len(readings) == 1  # chunks of phrases are no gold standard of entities
    for reading in readings:
        counts = read(path, format=reading)
        for field in ("tp", "predicted", "gold", "correct"):
            assert counts.field(field).tolist() == expected.field(field).tolist()
    gold = 2 + len(further)
    selected = read(f"x={path}", format=f"conll:column={gold + 2}+{gold + 1},gold-column={gold}")
    assert selected.systems == (f"x:{gold + 2}", f"x:{gold + 1}")
    assert selected.field("tp").tolist() == expected.field("tp")[:, ::-1].tolist()


def test_a_header_names_the_gold_column_and_the_systems(tmp_path, files):
    path = write_columns(tmp_path, files, "NN", "B-NP", header="token pos chunk gold crf lstm\n".replace(" ", "\t"))
    counts, expected = read(path), read(*files[:2], gold=files[2])
    assert counts.systems == read(path, format="conll:gold-column=gold,column=crf+lstm").systems == ("crf", "lstm")
    assert counts.field("tp").tolist() == expected.field("tp").tolist()


def format_tags(*tags, sep="\t"):
    words = iter(zip(("The", "dog", "barks", "It", "is", "#"), tags, strict=True))
    return "".join(f"{sep.join(next(words))}\n{chr(10) * (k == 2)}" for k in range(6))


def test_types_of_chunks_beside_o_are_not_taken_for_plain_labels(tmp_path):
    gold = format_tags("O", "PER", "O", "O", "O", "LOC")
    paths = write_files(tmp_path, gold, gold, gold)
    with pytest.raises(InputError, match="label 'PER', expected O .*conll:scheme=raw"):
        read(*paths[:2], gold=paths[2])


HEADERS = {
    "first": "word ner\n",
    "before an empty line": "word ner\n\n",
    "after a document": "-DOCSTART- O\n\nword ner\n",
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


# which column is scored


def test_real_parses_name_the_column_that_is_scored(shared_data):
    folder = shared_data / "parsing_conll18" / "it_pud_250"
    files = [folder / "system_A.conllu", folder / "system_B.conllu"]
    counts = read(*files, gold=folder / "gold.conllu", format="conll")
    reference = json.loads((folder.parent / "reference_scores.json").read_text())
    assert counts.scope[0] == "Only these columns are scored: UPOS (column 4)"
    official = [reference["treebanks"]["it_pud_250"]["systems"][f"system_{name}"]["UPOS"] for name in "AB"]
    for system, scores in enumerate(official):
        assert sum_field(counts, "correct", system) == scores["correct"]


HIPE = """TOKEN	NE-COARSE-LIT	NE-FINE-LIT	NEL-LIT	MISC
# hipe2022:document_id = d1
# hipe2022:date = 1798-01-01
Paris	B-loc	B-loc.adm	_	_
.	_	O	_	EndOfSentence
# hipe2022:document_id = d2
Ann	B-pers	B-pers.ind	_	NoSpaceAfter|EndOfLine
#	O	O	_	_
"""


def test_historical_entities_are_those_of_the_first_column_of_entities(tmp_path):
    files = write_files(tmp_path, HIPE.replace("B-pers\t", "O\t"), HIPE.replace("loc.adm", "loc.phys"), HIPE)
    assert detect([parse_source(str(files[0]))], files[2]) == "conll"
    with pytest.raises(InputError, match=r"line 5: label '_', expected O .*{'O': \['LABEL'\]}"):
        read(*files[:2], gold=files[2])
    options = Options(label_map=(("O", ("_",)),))
    counts = read(*files[:2], gold=files[2], options=options)
    assert counts.scope[0] == "Only these columns are scored: NE-COARSE-LIT (column 2)"
    assert counts.field("tp").tolist() == [[1, 2]]
    by_fine = read(*files[:2], gold=files[2], format="conll:column=NE-FINE-LIT")
    assert by_fine.field("tp").tolist() == [[2, 1]]


# JSON


@pytest.mark.parametrize("arrangement", ["lines", "list", "predictions"])
def test_json_records_of_tokens_and_tags_are_tagged_sentences(tmp_path, files, arrangement):
    texts = []
    for name, path in zip("abg", files, strict=True):
        sentences = [sentence.splitlines() for sentence in path.read_text().strip().split("\n\n")]
        pairs = [zip(*(line.split("\t") for line in sentence), strict=True) for sentence in sentences]
        records = [{"id": k, "tokens": words, "ner_tags": tags} for k, (words, tags) in enumerate(pairs)]
        if arrangement == "predictions" and name != "g":
            records = [{"id": record["id"], "predictions": record["ner_tags"]} for record in records]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        texts.append(json.dumps(records, indent=1) if arrangement == "list" else lines)
    paths = write_files(tmp_path / "json", *texts)
    counts, expected = read(*paths[:2], gold=paths[2]), read(*files[:2], gold=files[2])
    for field in ("tp", "predicted", "gold", "correct", "items"):
        assert counts.field(field).tolist() == expected.field(field).tolist()
    if arrangement != "list":
        paths[0].write_text("".join(texts[0].splitlines(keepends=True)[::-1]))
        with pytest.raises(InputError, match="a.txt: sentence '2', but '0' in"):
            read(*paths[:2], gold=paths[2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"tags": ["O", "B-PER"]}, {"tags": ["O"]', "a.txt, line 1: invalid JSON"),
        ('[{"tags": ["O", "B-PER"]}]', "sentence 2 has 0 tokens, but 1 in .*gold.txt, record 2"),
        (
            '[{"tags": ["O"]}, {"tags": ["O"]}]',
            r"a.txt, record 1: sentence 1 has 1 token, but 2 in .*gold.txt, record 1",
        ),
        (
            '[{"tags": ["O", 3]}, {"tags": ["O"]}]',
            r"a.txt, record 1: found 'tags': \['O', 3\], expected a list of names",
        ),
        ('[{"tags": ["O", "O"], "tokens": ["a"]}, {"tags": ["O"]}]', "record 1: .* one for each of 1 tokens"),
        ('[{"words": ["O", "O"]}, {"words": ["O"]}]', "no list among the keys 'words' .*conll:column=KEY"),
    ],
)
def test_json_that_does_not_fit_is_an_error_that_names_the_place(tmp_path, text, message):
    gold = '[{"tags": ["O", "B-PER"]}, {"tags": ["O"]}]'
    paths = write_files(tmp_path, text, gold, gold)
    with pytest.raises(InputError, match=message):
        read(*paths[:2], gold=paths[2], format="conll")


def test_two_lists_of_tags_in_a_record_are_asked_about(tmp_path):
    record = {"tokens": ["Ann", "ran"], "pos_tags": ["NNP", "VBD"], "ner_tags": ["B-PER", "O"]}
    paths = write_files(tmp_path, *[json.dumps(record) + "\n"] * 3)
    with pytest.raises(InputError, match="'pos_tags' and 'ner_tags' among the keys") as refusal:
        read(*paths[:2], gold=paths[2])
    assert re.findall(r"conll:(?:gold-)?column=(\w+)", refusal.value.remedy) == ["pos_tags", "ner_tags"]
    counts = read(*paths[:2], gold=paths[2], format="conll:column=ner_tags,gold-column=ner_tags")
    assert counts.field("tp").tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d1 0 w (1)\nd1 1 v -\n\nd1 0 w (1\nd1 1 v 1)\n", "brackets over several lines"),
        ("the DT (S* (A0*\ndog NN * *)\n\nran VB *) *\n", "brackets over several lines"),
        ("the\tDT\t\n\nran\tVB\t\n", "holds nothing but '_'"),
        ("id,tags\n1,\"['O', 'B-PER', 'O']\"\n2,\"['O']\"\n", "lists as text .* write them as JSON lines"),
    ],
)
def test_what_no_metric_scores_is_refused_by_its_name(tmp_path, text, message):
    paths = write_files(tmp_path, text, text, text)
    with pytest.raises(InputError, match=message):
        read(*paths[:2], gold=paths[2])


def test_a_system_without_chunks_does_not_make_another_one_the_gold_standard(tmp_path):
    (path := tmp_path / "all.txt").write_text("a B-PER B-PER O\nb O O O\n\nc B-LOC B-LOC O\n")
    with pytest.raises(InputError, match="3 columns hold tags") as refusal:
        read(path)
    (reading,) = re.findall(r"'(conll:[^']+)'", refusal.value.remedy)
    assert read(path, format=reading).field("gold").sum() == 2
    assert read(path, format=reading).systems == ("column 3", "column 4")
