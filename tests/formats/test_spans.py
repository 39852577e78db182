"""Spans: the official MUC-4 scores, brat folders, and other layouts of spans."""

import json

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read

F1_ONLY = Options(metrics=("f1",))
KINDS = {"precision": "P", "recall": "R", "f1": "F1"}


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "spans_muc4"


@pytest.fixture(scope="module")
def muc(folder):
    return read(*sorted(folder.glob("*.out")), gold=folder / "test.json")


@pytest.mark.slow
def test_all_models_have_their_official_scores_by_role_and_in_all(folder, muc):
    official = json.loads((folder / "reference_scores.json").read_text())["scores"]
    assert {f"{name}.out" for name in muc.systems} == set(official)
    metrics = [m for kind in KINDS for m in (kind, f"micro-{kind}", *(f"{kind}[{role}]" for role in muc.labels))]
    results = compare_all(muc, metrics=metrics, trials=64)
    assert len(results) == 3 * len(metrics)
    for r in results:
        kind, _, role = r.metric.removeprefix("micro-").rstrip("]").partition("[")
        for system, score in ((r.a, r.score_a), (r.b, r.score_b)):
            assert round(score, 6) == official[f"{system}.out"][role or "micro"][KINDS[kind]]


def test_muc_documents_are_known_by_number_and_may_be_empty(folder, muc):
    assert muc.ids[0] == "TST3-MUC4-0001"
    assert muc.n_items == 200
    assert muc.field("gold").sum() == 511
    assert not muc.warnings
    assert ((muc.field("gold")[:, 0] == 0) & (muc.field("predicted").sum(1) == 0)).any()
    for path in folder.glob("*.out"):
        assert detect([parse_source(str(path))], folder / "test.json") == "spans"


GOLD = {"a": [(0, 5, "LOC"), (7, 9, "PER")], "b": [], "c": [(1, 2, "LOC"), (1, 2, "PER")]}
X = {"a": [(0, 5, "LOC"), (0, 5, "LOC"), (7, 9, "ORG")], "b": [(3, 4, "PER")], "c": [(1, 2, "PER")]}
FORMS = {
    "lists": lambda s: {"spans": [[b, e, t] for b, e, t in s]},
    "doccano": lambda s: {"text": "x", "label": [[b, e, t] for b, e, t in s]},
    "doccano entities": lambda s: {"entities": [{"id": 1, "label": t, "start_offset": b, "end_offset": e} for b, e, t in s]},
    "prodigy": lambda s: {"text": "x", "tokens": [{"start": 0, "end": 1}], "spans": [{"start": b, "end": e, "label": t, "token_start": 1} for b, e, t in s], "answer": "accept"},
    "spacy": lambda s: {"ents": [{"start": b, "end": e, "label": t} for b, e, t in s]},
    "label studio export": lambda s: {"annotations": [{"id": 3, "result": [{"type": "labels", "value": {"start": b, "end": e, "labels": [t]}} for b, e, t in s]}]},
    "texts of numbers": lambda s: {"spans": [{"start": str(b), "end": float(e), "type": t} for b, e, t in s]},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same(tmp_path, form):
    make = FORMS[form]
    for name, docs in (("gold", GOLD), ("x", X), ("y", {**GOLD, "a": []})):
        records = [{"id": k, **make(v)} for k, v in docs.items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    counts = read(tmp_path / "x.jsonl", tmp_path / "y.jsonl", gold=tmp_path / "gold.jsonl")
    assert counts.labels == ("LOC", "PER")
    assert counts.predicted_labels == ("ORG",)
    assert counts.field("tp").tolist() == [[1, 0], [0, 0], [1, 2]]
    assert counts.field("predicted").tolist() == [[2, 0], [1, 0], [1, 2]]
    assert counts.field("tp[PER]").tolist() == [[0, 0], [0, 0], [1, 1]]
    assert counts.field("gold[LOC]").tolist() == [[1], [0], [1]]
    assert counts.field("predicted[ORG]").tolist() == [[1, 0], [0, 0], [0, 0]]
    assert counts.suggested == ("f1", "macro-f1")


def test_spans_without_labels(tmp_path):
    (tmp_path / "gold.json").write_text(json.dumps({"a": [[0, 5], [7, 9]]}))
    (tmp_path / "x.json").write_text(json.dumps({"a": [[7, 9]]}))
    (tmp_path / "y.json").write_text(json.dumps({"a": [{"start": 0, "end": 5}]}))
    counts = read(tmp_path / "x.json", tmp_path / "y.json", gold=tmp_path / "gold.json", format="spans")
    assert counts.labels == ()
    assert counts.suggested == ("f1",)
    assert counts.field("tp").tolist() == [[1, 1]]


def write_brat(folder, docs):
    for name, text in docs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, newline="")
    return folder


def test_brat_folders(tmp_path):
    notes = "R1\tWorks Arg1:T1 Arg2:T2\r\nA1\tNegated T1\r\n*\tEquiv T1 T2\r\n#1\tAnnotatorNotes T1\tsure\r\nE1\tMove:T2\r\n"
    gold = write_brat(tmp_path / "gold", {
        "d1.ann": "T1\tLOC 0 5\tRome\r\nT2\tPER 7 9;12 15\tAn Lee\r\n" + notes, "d1.txt": "T1 not this",
        "sub/d2.ann": "", "sub/d3.ann": "T1\tLOC 3 4\tx",
    })  # fmt: skip
    x = write_brat(
        tmp_path / "x", {"d1.ann": "T9\tPER 12 15;7 9\tAn Lee\n", "sub/d2.ann": "T1\tPER 1 2\ty\n", "sub/d3.ann": ""}
    )
    y = write_brat(
        tmp_path / "y", {"d1.ann": "T1\tPER 7 15\tAn Lee\nT2\tLOC 0 5\tRome\n", "sub/d3.ann": "T1\tLOC 3 4\tx\n"}
    )
    assert detect([parse_source(str(x))], gold) == "spans"
    with pytest.raises(InputError, match=r"'y' has no list for item 'sub/d2' \(1 missing"):
        read(x, y, gold=gold, options=F1_ONLY)
    counts = read(x, y, gold=gold, options=Options(metrics=("f1",), missing="zero"))
    assert counts.ids == ("d1", "sub/d2", "sub/d3")
    assert counts.field("tp").tolist() == [[1, 1], [0, 0], [0, 1]]
    assert counts.field("tp[PER]").tolist() == [[1, 0], [0, 0], [0, 0]]
    assert "y lacks 1 of 3 items: scored 0" in counts.scope[1]
    assert counts.scope[0] == "Relations are not scored: the files hold 1 relations"
    single = read(x / "d1.ann", f"y={y}/d1.ann", gold=gold / "d1.ann", options=F1_ONLY)
    assert single.field("tp").tolist() == [[1, 1]]
    write_brat(y, {"d4.ann": ""})
    with pytest.raises(InputError, match=r"y, file d4.ann: 1 item \('d4'\) not in .*gold"):
        read(x, y, gold=gold, options=F1_ONLY)
    write_brat(x, {"d1.ann": "T1\tLOC 0 5\tRome\nT2 PER 7 9 An\n"})
    with pytest.raises(InputError, match="d1.ann, line 2: found 'T2 PER 7 9 An', expected T1<tab>LABEL"):
        read(x, y, gold=gold, options=F1_ONLY)
    write_brat(x, {"d1.ann": ""})
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no files ending in .ann"):
        read(x, tmp_path / "none", gold=gold, format="spans", options=F1_ONLY)


def test_real_relations_are_refused_and_their_number_is_named(shared_data):
    folder = shared_data / "relations_brat" / "relations"
    files = [folder / "system_A", folder / "system_B"]
    n = sum(line.startswith("R") for path in folder.rglob("*.ann") for line in path.read_text().splitlines())
    with pytest.raises(InputError, match=f"the files hold {n:,} relations: name a metric"):
        read(*files, gold=folder / "gold")
    assert f"hold {n:,} relations" in read(*files, gold=folder / "gold", options=F1_ONLY).scope[0]
    entities = shared_data / "relations_brat" / "entities"
    counts = read(f"x={entities}/system_upstream", f"y={entities}/gold", gold=entities / "gold")
    assert "relations" not in str(counts.scope)


def test_relations_in_json_are_refused(tmp_path):
    for name, extra in (("gold", {"relations": [{"head": 0, "tail": 0, "type": "at"}]}), ("x", {}), ("y", {})):
        (tmp_path / name).write_text(json.dumps({"doc_key": "d", "spans": [[0, 4, "PER"]], **extra}) + "\n")
    files, gold = (tmp_path / "x", tmp_path / "y"), tmp_path / "gold"
    with pytest.raises(InputError, match="the files hold 1 relations"):
        read(*files, gold=gold)
    assert "1 relations" in read(*files, gold=gold, options=F1_ONLY).scope[0]


def test_tables_of_offsets_join_the_documents_of_all(tmp_path):
    (tmp_path / "gold.tsv").write_text("filename\tmark\toff0\toff1\tspan\nd1\tLOC\t0\t5\tRome\nd2\tPER\t1\t3\tAn\n")
    (tmp_path / "x.tsv").write_text("filename\tmark\toff0\toff1\tspan\nd3\tLOC\t0\t5\tRome\nd2\tPER\t1\t3\tAn\n")
    (tmp_path / "y.tsv").write_text("filename\tmark\toff0\toff1\tspan\nd1\tLOC\t0\t5\tRome\n")
    counts = read(tmp_path / "x.tsv", tmp_path / "y.tsv", gold=tmp_path / "gold.tsv")
    assert counts.ids == ("d1", "d2", "d3")
    assert counts.field("tp").tolist() == [[0, 1], [1, 0], [0, 0]]
    (tmp_path / "z.tsv").write_text("filename\tmark\toff0\toff2\tspan\nd1\tLOC\t0\t5\tRome\n")
    with pytest.raises(InputError, match="z.tsv: found columns filename, mark, off0"):
        read(tmp_path / "x.tsv", tmp_path / "z.tsv", gold=tmp_path / "gold.tsv")
    (tmp_path / "z.tsv").write_text("filename\tkind\toff0\toff1\tspan\nd1\tLOC\t0\t4\tRome\n")
    with pytest.raises(InputError, match="z.tsv: found columns filename, kind.*expected .* label"):
        read(tmp_path / "x.tsv", tmp_path / "z.tsv", gold=tmp_path / "gold.tsv")
    (tmp_path / "z.tsv").write_text("filename\tmark\toff0\toff1\tspan\nd1\tLOC\t0\tx\tRome\n")
    with pytest.raises(InputError, match="z.tsv, line 2: found 'x', expected an offset"):
        read(tmp_path / "x.tsv", tmp_path / "z.tsv", gold=tmp_path / "gold.tsv")


def test_entities_of_slots_match_one_to_one(tmp_path):
    gold = {"a": {"extracts": {"Victim": [["Ann", "she"]], "Target": ["the bank"]}}}
    (tmp_path / "gold.json").write_text(json.dumps(gold))
    (tmp_path / "x.json").write_text(json.dumps({"a": {"extracts": {"Victim": ["she"], "Object": ["Bank."]}}}))
    files = f"x={tmp_path}/x.json", f"y={tmp_path}/gold.json"
    counts = read(*files, gold=tmp_path / "gold.json", options=Options(label_map=(("Target", ("Object",)),)))
    assert counts.field("tp").tolist() == [[2, 2]]


# layouts of annotation tools


def write_records(folder, **files):
    """Write files of JSON and return the paths of gold and of the systems."""
    for name, records in files.items():
        (folder / f"{name}.json").write_text(json.dumps(records))
    return folder / "gold.json", [folder / f"{name}.json" for name in files if name != "gold"]


def make_task(number, spans, *others, **status):
    """Return a task of Label Studio's export, whose list of predictions is always there."""
    annotations = [
        {
            "id": 50 + k,
            "completed_by": 1,
            "was_cancelled": False,
            "result": [
                {"type": "labels", "value": {"start": b, "end": e, "labels": [t]}, "id": f"r{b}"} for b, e, t in found
            ]
            + [{"type": "choices", "value": {"choices": ["fine"]}, "id": "c"}],
            **status,
        }
        for k, found in enumerate((spans, *others))
    ]
    return {"id": number, "data": {"text": "x"}, "annotations": annotations, "drafts": [], "predictions": []}


LOC, PER = [(0, 4, "LOC")], [(6, 9, "PER")]


def test_empty_predictions_of_label_studio_are_not_the_spans(tmp_path):
    gold, systems = write_records(
        tmp_path,
        gold=[make_task(1, LOC), make_task(2, PER)],
        x=[make_task(2, PER), make_task(1, PER)],
        y=[make_task(1, LOC), make_task(2, [])],
    )
    counts = read(*systems, gold=gold)
    assert counts.field("tp").sum(0).tolist() == [1, 1]
    assert counts.field("gold").sum() == 2
    both = [{**make_task(k, LOC), "predictions": make_task(k, PER)["annotations"]} for k in (1, 2)]
    _, systems = write_records(tmp_path, x=both, y=both)
    with pytest.raises(InputError, match="'prediction': 'annotations'.*'prediction': 'predictions'"):
        read(*systems, gold=gold)
    for key, n_right in (("predictions", 1), ("annotations", 1)):
        chosen = read(*systems, gold=gold, options=Options(columns={"prediction": key}))
        assert chosen.field("tp").sum(0).tolist() == [n_right, n_right]


def test_several_annotations_of_a_task_are_refused(tmp_path):
    gold, systems = write_records(tmp_path, gold=[make_task(1, LOC, PER)], x=[make_task(1, LOC)])
    with pytest.raises(InputError, match="record 1: 2 annotations of one task; leave one annotation"):
        read(*systems, gold=gold)


def test_rejected_skipped_and_cancelled_records_are_left_out_with_their_number(tmp_path):
    spans = [{"start": 0, "end": 4, "label": "LOC"}]
    answers = ["accept", "reject", "accept", "ignore"]
    records = [{"text": f"t{k}", "spans": spans, "answer": answer} for k, answer in enumerate(answers)]
    accepted = [{**record, "answer": "accept"} for record in records]
    gold, systems = write_records(tmp_path, gold=records, x=accepted)
    counts = read(*systems, gold=gold)
    assert counts.field("gold").sum() == 2
    assert "2 of 4 records are left out of all files: 1 with answer reject, 1 with answer ignore" in counts.scope[0]
    _, systems = write_records(tmp_path, x=records, gold=accepted)
    with pytest.raises(InputError, match="records do not count"):
        read(*systems, gold=gold)
    tasks = [make_task(1, LOC), make_task(2, LOC, was_cancelled=True), {**make_task(3, LOC), "annotations": []}]
    _, systems = write_records(tmp_path, gold=tasks, x=[make_task(k, LOC) for k in (1, 2, 3)])
    counts = read(*systems, gold=gold)
    assert (counts.ids, counts.field("gold").sum()) == (("1",), 1)
    write_records(tmp_path, gold=[{"id": 1, "spans": spans, "status": "Discarded"}], x=[{"id": 1, "spans": spans}])
    with pytest.raises(InputError, match="no record counts"):
        read(*systems, gold=gold)


def test_tuples_of_spacy_are_read_in_the_order_of_their_texts(tmp_path):
    records = [["Rome is old", {"entities": [[0, 4, "LOC"]]}], ["Ann left", {"entities": [[0, 3, "PER"]]}]]
    gold, systems = write_records(tmp_path, gold=records, x=[records[0], [records[1][0], {"entities": []}]])
    assert read(*systems, gold=gold).field("tp").tolist() == [[1], [0]]
    write_records(tmp_path, x=records[::-1])
    with pytest.raises(InputError, match="record 1: the text 'Ann left' is not 'Rome is old'"):
        read(*systems, gold=gold)


def test_keys_that_are_not_declared_or_fit_twice_are_refused_with_ways_that_work(tmp_path):
    other = [{"id": 1, "marks": [[0, 4, "LOC"]]}]
    gold, systems = write_records(tmp_path, gold=other, x=other)
    with pytest.raises(InputError, match="no list of spans; found: id, marks; .*'gold': KEY.*'prediction': KEY"):
        read(*systems, gold=gold, format="spans")
    twice = [{"id": 1, "entities": [], "spans": [[0, 4, "LOC"]]}]
    write_records(tmp_path, gold=twice)
    with pytest.raises(InputError, match="spans, entities may hold.*'gold': 'spans'"):
        read(*systems, gold=gold, format="spans")
    options = Options(columns={"gold": "spans", "prediction": "marks"})
    assert read(*systems, gold=gold, format="spans", options=options).field("tp").sum() == 1
    with pytest.raises(InputError, match="no record has a key 'none'"):
        read(*systems, gold=gold, format="spans", options=Options(columns={"prediction": "none", "gold": "spans"}))


def test_gold_without_spans_and_systems_without_a_type_of_gold_are_errors(tmp_path):
    empty, found, foreign = ([{"id": 1, "spans": spans}] for spans in ([], [[0, 4, "LOC"]], [[0, 4, "GPE"]]))
    gold, systems = write_records(tmp_path, gold=empty, x=found)
    with pytest.raises(InputError, match="gold.json: no spans"):
        read(*systems, gold=gold)
    write_records(tmp_path, gold=found, x=empty)
    with pytest.raises(InputError, match="system 'x' has 0 spans, gold has 1"):
        read(*systems, gold=gold)
    write_records(tmp_path, x=foreign)
    with pytest.raises(InputError, match="'x': the types of all its 1 spans never occur in gold: it has GPE"):
        read(*systems, gold=gold)
    assert read(*systems, gold=gold, options=Options(label_map=(("LOC", ("GPE",)),))).field("tp").sum() == 1
    with pytest.raises(InputError, match="label that neither gold nor a system has: 'nope'"):
        read(*systems, gold=gold, options=Options(label_map=(("LOC", ("GPE", "nope")),)))


def test_a_span_with_two_labels_says_what_helps_and_a_huge_offset_is_none(tmp_path):
    for span, message in (
        ({"start": 0, "end": 4, "type": "LOC", "category": "x"}, "may be the label; remove one of these fields"),
        (["1" * 5000, 4, "LOC"], "expected an offset"),
    ):
        gold, systems = write_records(tmp_path, gold=[{"id": 1, "spans": [span]}], x=[{"id": 1, "spans": []}])
        with pytest.raises(InputError, match=message):
            read(*systems, gold=gold, format="spans")
