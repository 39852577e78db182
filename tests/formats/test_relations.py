"""Relations between spans: brat's lines R, and lists of relations in JSON."""

import json

import numpy as np
import pytest

import sigdask
from sigdask.errors import InputError
from sigdask.formats import read
from sigdask.formats.reading.options import Options
from sigdask.metrics import find_metric

KINDS = ("precision", "recall", "f1")


def _score(counts, metric):
    bound = find_metric(metric, counts).bind(counts)
    shape = counts.n_items, counts.n_systems
    sums = [np.broadcast_to(bound.get_field(name, counts), shape).sum(axis=0) for name in bound.fields]
    return bound.form.score(np.stack(sums, axis=-1)).tolist()


def _read(systems, gold, *metrics, **options):
    return read(*systems, gold=gold, options=Options(metrics=metrics or ("relation-f1",), **options))


def _write_brat(folder, **files):
    for name, text in files.items():
        (folder / name).mkdir()
        (folder / name / "d.ann").write_text(text.replace("~", "\t"))
    return [folder / name for name in files if name != "gold"], folder / "gold"


def test_real_relations_score_as_counted_by_others(shared_data):
    folder = shared_data / "relations_brat"
    expected = json.loads((folder / "reference_scores.json").read_text())["relations_own_count"]
    systems, gold = [folder / "relations" / name for name in expected], folder / "relations" / "gold"
    alone, beside = _read(systems, gold), _read(systems, gold, "relation-f1", "f1")
    for counts in (alone, beside):
        for kind in KINDS:
            assert _score(counts, f"relation-{kind}") == pytest.approx(
                [scores["micro"][kind] for scores in expected.values()], abs=1e-6
            )
            for label in ("ARG1", "ARGM"):
                by_type = [scores["by_type"][label][kind] for scores in expected.values()]
                assert _score(counts, f"relation-{kind}[{label}]") == pytest.approx(by_type, abs=1e-6)
        macro = [scores["macro_f1_over_types"] for scores in expected.values()]
        assert _score(counts, "relation-f1:average=macro") == pytest.approx(macro, abs=1e-6)
        per_document = [[tp for tp, _, _ in s["per_document_tp_fp_fn"].values()] for s in expected.values()]
        assert counts.field("relation-strict-tp").T.tolist() == per_document
    entities = _read(systems, gold, "f1")
    assert _score(beside, "f1") == _score(entities, "f1")


SPANS = "T1~PER 0 3~Ann\nT2~ORG 7 10~IBM\nT3~ORG 20 25~Intel\n"


def test_ids_may_differ_types_count_and_boundaries_alone_where_asked(tmp_path):
    systems, gold = _write_brat(
        tmp_path,
        gold=SPANS + "R1~at Arg1:T1 Arg2:T2\nR2~at Arg1:T1 Arg2:T3\nR3~likes Arg1:T1 Arg2:T3\t\n",
        a="R1~at Arg1:T9 Arg2:T5~\nR2~at Arg2:T5 Arg1:T9\nT9~PER 0 3~Ann\nT5~ORG 7 10~IBM\n",  # one relation, twice
        b="T1~LOC 0 3~Ann\nT2~ORG 7 10~IBM\nR1~at Arg1:T1 Arg2:T2\nR2~at Arg1:T2 Arg2:T1\n",  # a wrong type, and swapped
    )
    counts = _read(systems, gold)
    assert _score(counts, "relation-precision") == [1, 0]
    assert _score(counts, "relation-recall") == [1 / 3, 0]
    assert _score(counts, "relation-precision:match=boundaries") == [1, 1 / 2]
    assert _score(counts, "relation-recall[at]:match=boundaries") == [1 / 2, 1 / 2]
    assert _score(counts, "relation-recall:average=macro,match=boundaries") == [1 / 4, 1 / 4]
    (result,) = sigdask.compare_all(counts, metrics=["relation-f1"])
    assert result.difference == pytest.approx(1 / 2)


def test_json_names_arguments_by_index_id_or_offsets(tmp_path):
    entities = [{"start": 0, "end": 3, "type": "PER", "id": "x"}, {"start": 7, "end": 10, "type": "ORG", "id": "y"}]
    lines = {
        "gold": {"entities": entities, "relations": [{"head": "x", "tail": "y", "type": "at"}]},
        "a": {"entities": entities[::-1], "relations": [{"type": "at", "arg1": "x", "arg2": "y"}]},
        "b": {"entities": entities, "predicted_relations": [{"head": [0, 3], "tail": [7, 10], "type": "at"}]},
        "c": {"relations": [{"head": [0, 3, "PER"], "tail": {"start": 7, "end": 10, "label": "ORG"}, "type": "near"},
                            {"head": [7, 10, "ORG"], "tail": [0, 3, "PER"], "type": "at"}]},
    }  # fmt: skip
    for name, record in lines.items():
        (tmp_path / name).write_text(json.dumps({"id": 1, **record}) + "\n" + json.dumps({"id": 2, **record}) + "\n")
    systems = [tmp_path / name for name in "abc"]
    counts = _read(systems, tmp_path / "gold")
    assert counts.ids is not None
    assert counts.field("relation-strict-tp").T.tolist() == [[1, 1], [1, 1], [0, 0]]
    mapped = _read(systems, tmp_path / "gold", label_map=(("at", ("near",)),))
    assert _score(mapped, "relation-recall") == [1, 1, 1]
    assert _score(mapped, "relation-precision") == [1, 1, 1 / 2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("R1~at Arg1:T1 Arg2:T8", r"d.ann, line 4: a relation names T8, but the file has no line T8"),
        ("R1~at Arg1:T1", r"line 4: found .*, expected R1<tab>TYPE Arg1:T1 Arg2:T2"),
        ("T1~ORG 7 10~IBM", "line 4: the id T1 occurs twice"),
        (f"T7~ORG 7 {'1' * 5000}~IBM", "line 4: found .*, expected T1<tab>LABEL START END"),
    ],
)
def test_wrong_lines_are_errors_that_name_the_line(tmp_path, line, message):
    systems, gold = _write_brat(tmp_path, gold=SPANS, a=SPANS + line + "\n", b=SPANS)
    with pytest.raises(InputError, match=message):
        _read(systems, gold)


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        (
            {"head": 0, "tail": 3, "type": "at"},
            r"a, line 1: a relation names entity 3, which is not among its 1 entities",
        ),
        ({"head": 0, "type": "at"}, r"a, line 1: .*expected a relation: an object with head, tail and type"),
        ("at", "expected a relation"),
        (None, "a, line 1: no list of relations; found: id, spans, links; write a list relations of head"),
    ],
)
def test_wrong_json_is_an_error_that_names_the_line(tmp_path, relation, message):
    for name, relations in (("gold", []), ("a", [relation]), ("b", [])):
        key = "links" if relation is None and name == "a" else "relations"
        (tmp_path / name).write_text(json.dumps({"id": 1, "spans": [[0, 3, "PER"]], key: relations}) + "\n")
    with pytest.raises(InputError, match=message):
        _read([tmp_path / "a", tmp_path / "b"], tmp_path / "gold")


def test_metrics_without_relations_and_wrong_options_say_so(tmp_path):
    counts = sigdask.Counts.from_labels(["A", "B"], {"x": ["A", "A"], "y": ["B", "B"]})
    with pytest.raises(InputError, match="needs relations"):
        find_metric("relation-f1").bind(counts)
    with pytest.raises(InputError, match=r"leave out \[A\]"):
        find_metric("relation-f1[A]:average=macro")
    with pytest.raises(InputError, match="match = 'loose' must be one of strict, boundaries"):
        find_metric("relation-f1:match=loose")
