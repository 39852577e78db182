"""A list for each item (terms, spans, pairs): encodings, error places, recognition."""

import json

import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, read


def format_json_lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


TERMS = [("d1", 1, ["bin", "glass"]), ("d1", 2, ["paper"]), ("d2", 1, []), ("d2", 2, ["bin", "waste"])]
TERMS_A = [("d1", 1, ["bin"]), ("d1", 2, ["paper", "pen"]), ("d2", 1, ["waste"]), ("d2", 2, ["bin"])]
TERMS_B = [("d1", 1, ["glass", "jar"]), ("d1", 2, []), ("d2", 1, []), ("d2", 2, ["bin", "waste"])]


def build_term_records(rows):
    return [{"document_id": d, "sentence_id": s, "sentence_text": "x", "term_list": terms} for d, s, terms in rows]


def format_term_rows(rows):
    header = "document_id,sentence_id,sentence_text,term\n"
    return header + "".join(f'{d},{s},"a, ""b""\nc",{term}\n' for d, s, terms in rows for term in terms or [""])


CASES = {
    "terms": (json.dumps({"data": build_term_records(TERMS)}, indent=1),
              json.dumps({"data": build_term_records(TERMS_A)}, indent=1),
              json.dumps({"data": build_term_records(TERMS_B)}, indent=1)),
    "terms rows": (format_term_rows(TERMS), format_term_rows(TERMS_A), format_term_rows(TERMS_B)),
    "spans": (format_json_lines({"id": "a", "spans": [[0, 5, "LOC"], [7, 9, "PER"]]}, {"id": "b", "spans": [[1, 2, "LOC"]]}),
              format_json_lines({"id": "a", "spans": [[0, 5, "LOC"]]}, {"id": "b", "spans": [[1, 3, "LOC"]]}),
              format_json_lines({"id": "a", "spans": [[0, 4, "LOC"], [7, 9, "PER"]]}, {"id": "b", "spans": []})),
    "spans rows": ("doc_id\tstart\tend\tlabel\na\t0\t5\tLOC\na\t7\t9\tPER\nb\t1\t2\tLOC\n",
                   "doc_id\tstart\tend\tlabel\na\t0\t5\tLOC\nc\t1\t3\tLOC\n",
                   "doc_id\tstart\tend\tlabel\na\t0\t4\tLOC\na\t7\t9\tPER\n"),
    "pairs": ("under\tun @@der\t100\nпути\tпут @@и\t001\ncats\tcat @@s\t100\n",
              "under\tunder\nпути\tпут @@и\ncats\tca @@ts\n",
              "under\tun @@der\nпути\tпути\ncats\tcat @@s\n"),
}  # fmt: skip


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    suffix = {"{": "json", "d": "csv"}.get(CASES[request.param][0][0], "tsv")
    paths = []
    for name, text in zip(("gold", "x", "y"), CASES[request.param], strict=False):
        paths.append(tmp_path / f"{name}.{suffix}")
        paths[-1].write_text(text, newline="")
    return request.param.split()[0], paths


def test_no_gold_is_an_error(case):
    name, paths = case
    with pytest.raises(InputError, match="give gold="):
        read(*paths[1:], format=name)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace('"b"', '"a"'), "line 2: id 'a' is on line 1 already"),
        (lambda text: text.replace('"b"', '"c"'), r"line 2: 1 item \('c'\) not in .*gold"),
        (lambda text: text.replace('"b"', "null"), "line 2: no id in 'id'"),
        (lambda text: text.replace('{"id": "b"', '{"id": "b", '), "line 2: invalid JSON"),
        (lambda text: text.replace('"spans"', '"parts"'), "line 1: no list of spans; found: id, parts"),
        (lambda text: text.replace("[1, 3", "[4, 3"), "line 2: a span from 4 to 3 ends before it starts"),
        (lambda text: text.replace("[1, 3", "[NaN, 3"), "line 2: found 'nan', expected an offset"),
        (lambda text: text.replace("[1, 3", "[-1, 3"), "line 2: found '-1', expected an offset"),
        (lambda text: text.replace("[1, 3", '["x", 3'), "line 2: found"),
        (lambda text: text.replace("[1, 3", "[[], 3"), "line 2: found .*expected a span"),
        (lambda text: text.replace("[1, 3", "[[1, 3], 3], [[[1]]"), "line 2: found .*expected"),
        (lambda text: text.replace('[[1, 3, "LOC"]]', "7"), "line 2: no list of spans"),
        (lambda text: text.replace('[[1, 3, "LOC"]]', "[7]"), "line 2: found 7, expected a span"),
        (lambda text: "[]", "is empty"),
        (lambda text: "{}", "found {}, expected records"),
        (lambda text: "[1, 2]", "record 1: no list of spans; found: 1"),
    ],
)
def test_damaged_spans_are_named(tmp_path, spoil, message):
    gold, x, y = CASES["spans"]
    for name, text in (("gold", gold), ("x", spoil(x)), ("y", y)):
        (tmp_path / f"{name}.jsonl").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path / "x.jsonl", tmp_path / "y.jsonl", gold=tmp_path / "gold.jsonl", format="spans")
    assert "x.jsonl" in str(error.value)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace('"sentence_id": 2', '"sentence_id": 1'), "record 2: id 'd1/1' is in record 1"),
        (lambda text: text.replace('"sentence_id": 2', '"sentence_id": 3'), r"record 2: 2 items \('d1/3', 'd2/3'\) not in"),
        (lambda text: text.replace('"sentence_id"', '"number"', 1), "record 2: id 'd1' is in record 1"),
        (lambda text: text.replace('"pen"', "[1]"), "record 2: found \\[1\\] in the list, expected a term"),
        (lambda text: text.replace('"bin"', '{"x": 1}', 1), "record 1: found {'x': 1} in the list"),
        (lambda text: text[:-9], r"line \d+: invalid JSON"),
        (lambda text: text.replace("term_list", "words") .replace('"sentence_text": "x"', '"tags": []'), "no list of terms"),
    ],
)  # fmt: skip
def test_damaged_terms_are_named(tmp_path, spoil, message):
    gold, x, y = CASES["terms"]
    for name, text in (("gold", gold), ("x", spoil(x)), ("y", y)):
        (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path / "x.json", tmp_path / "y.json", gold=tmp_path / "gold.json", format="terms")
    assert "x.json" in str(error.value)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace("\tca @@ts", ""), "line 3: found 1 column, expected at least 2: word TAB morphs"),
        (lambda text: text.replace("cats", "dogs", 1), r"1 word \('cats'\) of .*gold"),
        (lambda text: text + "dogs\tdogs\n", r"line 4: 1 word \('dogs'\) not among those of .*gold"),
        (
            lambda text: "cats\tcats\ncats\tcat @@s\nunder\tunder\n",
            "line 2: id 'cats' is on line 1 already",
        ),
    ],
)
def test_damaged_pairs_are_named(tmp_path, spoil, message):
    gold, x, y = CASES["pairs"]
    for name, text in (("gold", gold), ("x", spoil(x)), ("y", y)):
        (tmp_path / f"{name}.tsv").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path / "x.tsv", tmp_path / "y.tsv", gold=tmp_path / "gold.tsv", format="pairs")
    assert "x.tsv" in str(error.value)


def test_ids_may_be_asked_for_and_align_by_position(tmp_path):
    for name, ids in (("gold", "ab"), ("x", "pq"), ("y", "rs")):
        records = ({"name": i, "entities": [{"start": k, "end": 5, "label": "L"}]} for k, i in enumerate(ids))
        (tmp_path / name).write_text(format_json_lines(*records))
    files = tmp_path / "x", tmp_path / "y"
    by_position = read(*files, gold=tmp_path / "gold", options=Options(columns={"item": "name"}, align="position"))
    assert by_position.ids == ("a", "b")
    assert by_position.field("tp").sum() == 4
    assert read(*files, gold=tmp_path / "gold").ids is None
    with pytest.raises(InputError, match="no ids to align by"):
        read(*files, gold=tmp_path / "gold", options=Options(align="id"))
    with pytest.raises(InputError, match="x, line 1: 2 items"):
        read(*files, gold=tmp_path / "gold", options=Options(columns={"item": "name"}))


LABELS = {"predictions": ["pos", "neg", "pos", "neg"], "references": ["pos", "pos", "neg", "neg"]}


def test_lists_of_different_lengths_are_refused_unless_they_are_ignored(tmp_path):
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    paths[1].write_text(json.dumps({**LABELS, "predictions": LABELS["references"]}))
    for other in ({"losses": [0.25]}, {"loss": 0.5}):
        paths[0].write_text(json.dumps({**LABELS, **other}))
        with pytest.raises(InputError, match="lists of different lengths"):
            read(*paths)
        assert read(*paths, options=Options(ignore=tuple(other))).field("correct").sum(axis=0).tolist() == [2, 4]


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize(("gold", "prediction"), [("target", "pred"), ("y_true", "y_pred"), ("labels", "predictions")])
def test_the_name_of_an_only_column_is_no_label(tmp_path, gold, prediction, quote):
    """The labels are counted by hand: a is right on 5 of 6 items, b on 3."""
    for name, header, labels in (("g", gold, "NVNVNJ"), ("a", prediction, "NVVVNJ"), ("b", prediction, "NNVVJJ")):
        (tmp_path / name).write_text("".join(f"{quote}{cell}{quote}\n" for cell in (header, *labels)))
    counts = read(tmp_path / "a", tmp_path / "b", gold=tmp_path / "g")
    assert counts.n_items == 6
    assert counts.field("correct").sum(axis=0).tolist() == [5, 3]
