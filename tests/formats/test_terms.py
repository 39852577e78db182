"""Term lists: the official ATE-IT scores, and the layouts of lists."""

import json

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read

KINDS = ("precision", "recall", "f1")


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "terms_ateit2026"


@pytest.fixture(scope="module")
def ateit(folder):
    gold, options = folder / "subtask_a_test_with_labels.json", Options(missing="zero")
    return read(*sorted((folder / "system_results").iterdir()), gold=gold, options=options)


@pytest.mark.slow
def test_all_runs_have_their_official_scores(folder, ateit):
    official = json.loads((folder / "reference_scores.json").read_text())["scores"]
    assert set(official) == set(ateit.systems)
    metrics = [*KINDS, *(f"type-{kind}" for kind in KINDS)]
    results = compare_all(ateit, metrics=metrics, baseline="jt_a_1", trials=256, interval="none")
    assert len(results) == 60
    for r in results:
        level, kind = ("type", r.metric[5:]) if r.metric.startswith("type") else ("micro", r.metric)
        for system, score in ((r.a, r.score_a), (r.b, r.score_b)):
            assert round(score, 6) == official[system][level][3 + KINDS.index(kind)]
        assert not r.disagreements()


def test_a_lacking_sentence_is_empty_with_a_warning(folder, ateit):
    [note] = ateit.scope
    assert note.startswith("oa_te_a_1 lacks 1, oa_te_a_2 lacks 1 of 1,142 items: scored 0")
    pairwise = read(
        *(folder / "system_results" / f"{name}.json" for name in ("oa_te_a_1", "smte_a_1", "jt_a_1")),
        gold=folder / "subtask_a_test_with_labels.json",
        options=Options(missing="pairwise"),
    )
    results = compare_all(pairwise, metrics=["f1", "type-f1"], trials=64)
    assert [r.n_items for r in results] == [1141, 1141, 1141, 1141, 1142, 1142]


def test_documents_are_units(ateit):
    [r] = compare_all(ateit, metrics=["type-f1"], pairs=[("smte_a_1", "trietnlp_a_1")], unit="document_id", trials=256)
    assert r.n_units == 29


GOLD = {"a": ["bin", "glass"], "b": [], "c": ["Bin", "waste bin"]}
X = {"a": ["bin", "bin", " bin "], "b": ["jar"], "c": ["waste bin"]}


def iter_layouts(lists):
    records = [{"id": k, "terms": v} for k, v in lists.items()]
    yield "mapping.json", json.dumps(lists)
    yield "array.json", json.dumps(records)
    yield "lines.jsonl", "".join(json.dumps(r) + "\n" for r in records)
    yield "objects.json", json.dumps({k: {"terms": v} for k, v in lists.items()})
    yield "wrapped.json", json.dumps({"meta": {"run": "a"}, "n": 3, "data": records})
    yield "rows.tsv", "id\tterm\n" + "".join(f"{k}\t{t}\n" for k, v in lists.items() for t in v or [""])
    yield "cells.csv", "id,terms\n" + "".join(f"{k},{' ; '.join(v)}\n" for k, v in lists.items())
    yield "python.csv", "id;term_list\n" + "".join(f"{k};{v!r}\n" for k, v in lists.items())
    yield "json.tsv", "id\tkeywords\n" + "".join(f"{k}\t{v!s}\n" for k, v in lists.items())


@pytest.mark.parametrize("k", range(9))
def test_every_layout_holds_the_same(tmp_path, k):
    for name, lists in (("gold", GOLD), ("x", X), ("y", GOLD)):
        kind, text = list(iter_layouts(lists))[k]
        (tmp_path / f"{name}.{kind}").write_text(text)
    counts = read(f"x={tmp_path}/x.{kind}", f"y={tmp_path}/y.{kind}", gold=tmp_path / f"gold.{kind}", format="terms")
    assert counts.ids == ("a", "b", "c")
    assert counts.field("tp").tolist() == [[1, 2], [0, 0], [1, 2]]
    assert counts.field("predicted").tolist() == [[1, 2], [1, 0], [1, 2]]
    assert counts.field("gold").tolist() == [[2], [0], [2]]
    if k != 0:  # an id-to-list object is asked for by name
        assert detect([parse_source(f"x={tmp_path}/x.{kind}")], tmp_path / f"gold.{kind}") == "terms"


def test_a_folder_of_lists_a_system(tmp_path):
    for name, lists in (("gold", GOLD), ("x", X), ("y", {"a": ["glass"], "b": []})):
        (tmp_path / name).mkdir()
        for item, terms in lists.items():
            (tmp_path / name / f"{item}.key").write_text("\n".join(terms))
    with pytest.raises(InputError, match=r"system 'y' has no list for item 'c' .*missing='zero'"):
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "gold")
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "gold", options=Options(missing="zero"))
    assert counts.systems == ("x", "y")
    assert counts.field("tp").tolist() == [[1, 1], [0, 0], [1, 0]]
    assert "y lacks 1 of 3 items: scored 0" in counts.scope[0]


def test_one_flat_list_a_system_scores_types(tmp_path):
    (tmp_path / "gold.tsv").write_text(
        "bin\tSpecific_Term\nglass\tCommon_Term\nbin\tSpecific_Term\nwaste, wet\tOOD_Term\n"
    )
    (tmp_path / "x.txt").write_text("bin\nwaste, wet\nbin\npen\n")
    (tmp_path / "y.txt").write_text("term\nglass\n")
    counts = read(tmp_path / "x.txt", tmp_path / "y.txt", gold=tmp_path / "gold.tsv", format="terms")
    [r] = compare_all(counts, metrics=["f1"])
    assert (r.score_a, r.score_b, r.n_items) == (4 / 6, 2 / 4, 4)
    with pytest.raises(InputError, match="type-f1' needs a list of terms for each item"):
        compare_all(counts, metrics=["type-f1"])


def test_keys_and_columns_may_be_chosen(tmp_path):
    (tmp_path / "gold.json").write_text(json.dumps([{"id": 1, "words": ["Bin"], "tags": ["x"], "domain": "w"}]))
    (tmp_path / "x.csv").write_text("id,concept\n1,Bin\n")
    files, gold = (f"x={tmp_path}/x.csv", f"y={tmp_path}/x.csv"), tmp_path / "gold.json"
    options = Options(columns={"gold": "words", "prediction": "concept"}, groups=("domain",))
    counts = read(*files, gold=gold, format="terms", options=options)
    assert counts.field("tp").tolist() == [[1, 1]]
    assert counts.group("domain") == ("w",)
    with pytest.raises(InputError, match="no list of terms; found: id, words, tags.*'gold': KEY"):
        read(*files, gold=gold, format="terms", options=Options(columns={"prediction": "concept"}))
    with pytest.raises(InputError, match="which column holds the terms.*'prediction': COLUMN"):
        read(*files, gold=gold, format="terms", options=Options(columns={"gold": "words"}))


ACTER = (
    "heart failure\tSpecific_Term\npatient\tCommon_Term\nejection fraction\tOOD_Term\nNYHA\tNamed_Entity\n"
    "dose\tCommon_Term\nmortality\tCommon_Term\nheart\tCommon_Term\nplacebo\tCommon_Term\n"
)


def test_lists_of_terms_with_their_kinds_are_lists_of_terms(tmp_path):
    (tmp_path / "gold.tsv").write_text(ACTER)
    (tmp_path / "x.tsv").write_text("heart failure\tSpecific_Term\npatient\tSpecific_Term\nchild\tCommon_Term\n")
    (tmp_path / "y.txt").write_text("heart failure\npatient\nchild\ndose\n")
    sources = [parse_source(str(tmp_path / name)) for name in ("x.tsv", "y.txt")]
    assert [detect([source], tmp_path / "gold.tsv") for source in sources] == ["terms", "terms"]
    for format_name in ("auto", "terms"):
        counts = read(*sources, gold=tmp_path / "gold.tsv", format=format_name)
        [r] = compare_all(counts, metrics=["f1"])
        assert (r.score_a, r.score_b, counts.n_items) == (2 * 2 / 11, 2 * 3 / 12, 9)


def test_no_terms_and_two_keys_of_terms_are_errors(tmp_path):
    (tmp_path / "full").write_text(json.dumps([{"id": 1, "terms": ["bin"], "keywords": []}]))
    (tmp_path / "none").write_text(json.dumps([{"id": 1, "terms": []}]))
    with pytest.raises(InputError, match="terms and keywords may hold the terms; choose: .*'gold': 'terms'"):
        read(tmp_path / "none", gold=tmp_path / "full", format="terms")
    options = Options(columns={"gold": "terms", "prediction": "terms"})
    for system, gold, message in (("none", "full", "'none' has 0 terms, gold has 1"), ("full", "none", "no terms")):
        with pytest.raises(InputError, match=message):
            read(f"{system}={tmp_path}/{system}", gold=tmp_path / gold, format="terms", options=options)
