"""Systems whose labels are not gold labels are named in the first lines of the report."""

import json
from pathlib import Path

import pytest
from command import call_sigdask

from sigdask import compare, compare_all
from sigdask.formats import Options, read

OPTIONS = ("zero", "one", "two", "three")


def _write_table(path: Path, a: list[str], n: int = 40) -> Path:
    rows = "".join(f"q{k},{k % 4},{a[k % len(a)]},{k % 3}\n" for k in range(n))
    path.write_text(f"id,gold,a,b\n{rows}")
    return path


def test_options_written_out_instead_of_numbered_are_named_in_the_first_lines_and_in_json(tmp_path: Path) -> None:
    path = _write_table(tmp_path / "t.csv", [*OPTIONS])
    result = call_sigdask("compare", path, "--json", "out.json", cwd=tmp_path)
    first_lines = result.stdout.splitlines()[:2]
    assert (
        "a: none of its labels occurs in the gold standard (such as 'zero' where gold has '0'), so none is correct"
        in first_lines[0]
    )
    assert "replace labels with --map NEW=OLD" in first_lines[0]
    document = json.loads((tmp_path / "out.json").read_text())
    assert any("a: none of its labels occurs in the gold standard" in warning for warning in document["warnings"])
    assert [note["kind"] for note in document["notes"] if "none of its labels" in note["text"]] == ["scope"]


def test_json_on_standard_output_leaves_the_warning_on_standard_error(tmp_path: Path) -> None:
    result = call_sigdask("compare", _write_table(tmp_path / "t.csv", [*OPTIONS]), "--json", "-", cwd=tmp_path)
    assert "a: none of its labels occurs in the gold standard" in result.stderr
    json.loads(result.stdout)


def test_labels_that_differ_in_case_alone_are_told_so(tmp_path: Path) -> None:
    rows = "".join(f"q{k},{'yes' if k % 2 else 'no'},{'Yes' if k % 3 else 'No'},yes\n" for k in range(40))
    (path := tmp_path / "t.csv").write_text(f"id,gold,a,b\n{rows}")
    [note] = [warning for warning in read(path, format="labels").notices if warning.startswith("a:")]
    assert "differ only in case" in note


def test_most_labels_outside_are_told_in_the_first_lines_and_few_in_a_note(tmp_path: Path) -> None:
    most_foreign = read(_write_table(tmp_path / "most.csv", ["0", "one", "two", "three"]))
    few_foreign = read(_write_table(tmp_path / "few.csv", [*"0123" * 9, "0", "1", "2", "three"]))
    assert any("a: 30 of 40 labels do not occur in the gold standard (such as 'one')" in s for s in most_foreign.scope)
    [note] = [warning for warning in few_foreign.warnings if "gold never has" in warning]
    assert note.endswith("a 1 of 40 (such as 'three')")  # b has labels of gold alone
    assert not few_foreign.scope


def test_free_answers_whose_gold_hardly_repeats_are_no_label_set(tmp_path: Path) -> None:
    rows = "".join(f"q{k},answer {k},{'answer' if k % 3 else 'other'} {k},answer {k}\n" for k in range(40))
    (path := tmp_path / "t.csv").write_text(f"id,gold,a,b\n{rows}")
    assert not any("in the gold standard" in warning for warning in read(path).notices)


def test_python_warns_too() -> None:
    result = compare([*OPTIONS] * 5, ["0", "1", "2", "0"] * 5, gold=["0", "1", "2", "3"] * 5)
    assert result.score_a == 0
    assert any("A: none of its labels occurs in the gold standard" in warning for warning in result.warnings)


def test_predictions_and_references_in_lists_are_labels_and_their_gold(tmp_path: Path) -> None:
    gold = [k % 2 for k in range(20)]
    for name, n_wrong in (("a", 4), ("b", 6)):
        labels = [1 - label if k < n_wrong else label for k, label in enumerate(gold)]
        (tmp_path / f"{name}.json").write_text(json.dumps({"predictions": labels, "references": gold}))
    [result] = compare_all(read(tmp_path / "a.json", tmp_path / "b.json"))
    assert (str(result.metric), result.score_a, result.score_b) == ("accuracy", 16 / 20, 14 / 20)


@pytest.mark.parametrize(
    ("change", "place"),
    [(("PER", "per"), "scope"), (("PER", "PERSON"), "scope"), (("B-LOC", "B-GPE"), "warnings")],
)
def test_types_of_chunks_that_gold_never_has_are_named(tmp_path, change, place):
    sentences = ["Ann B-PER\nruns O\n\n", "Bob B-PER\nsees O\nRome B-LOC\n\n", "Eve B-PER\nin O\nOslo B-LOC\n\n"]
    (tmp_path / "gold").write_text("".join(sentences))
    (tmp_path / "a").write_text("".join(sentences).replace(*change))
    (tmp_path / "b").write_text("".join(sentences))
    counts = read(tmp_path / "a", tmp_path / "b", gold=tmp_path / "gold")
    (note,) = [note for note in getattr(counts, place) if "gold never has" in note]
    n = 3 if "PER" in change else 2
    assert f"a {n} of 5 (such as {change[1].removeprefix('B-')!r})" in note
    assert ("--map PER=per" in note) == (change[1] == "per")


def test_types_of_spans_and_relations_that_gold_never_has_are_named(tmp_path):
    text = "T1\tPER 0 3\tAnn\nT2\tORG 8 12\tAcme\nR1\tWorks Arg1:T1 Arg2:T2\n"
    for name, cells in {"gold": text, "a": text.replace("PER", "Per").replace("Works", "works"), "b": text}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.ann").write_text(cells)
    for metric, example in (("f1", "--map PER=Per"), ("relation-f1", "works(Arg1, Arg2)")):
        options = Options(metrics=(metric,))
        counts = read(tmp_path / "a", tmp_path / "b", gold=tmp_path / "gold", options=options)
        assert any(example in note and "gold never has" in note for note in counts.scope)


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        (["1", "2", "3", "4"], "a: its label '1' mostly stands where gold has '0'"),
        (["0", "2", "1", "3"], "a: its label '1' mostly stands where gold has '2'"),
        (["0", "1", "2", "3", "2", "1"], ""),
        (["0", "1", "2", "x"], "labels that gold never has, so they are never correct: a 10 of 40 (such as 'x')"),
    ],
)
def test_labels_under_other_names_or_numbers_are_named_in_the_first_lines(
    tmp_path: Path, labels: list[str], note: str
) -> None:
    scope = read(_write_table(tmp_path / "t.csv", labels)).scope
    assert any(text.startswith(note) for text in scope) if note else not any(text.startswith("a:") for text in scope)
