"""The table of roles: which column is what, by its name alone, and what is refused with all ways shown."""

import json
import random
import re
import shlex

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import csv, parquet

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.formats.roles import ROLES, name_role
from sigdask.interface import spell, use_interface

N = 12
RANDOM = random.Random(5)
IDS = [f"q{k:02}" for k in range(N)]
SCORES = {name: [RANDOM.randrange(100) / 100 for _ in IDS] for name in ("x", "y", "AP", "nDCG@10")}


def write(path, columns, separator=","):
    rows = [columns, *zip(*columns.values(), strict=True)]
    path.write_text("\n".join(separator.join(map(str, row)) for row in rows) + "\n")
    return path


def write_long(path, item="qid", system="system", extra=None, order=None):
    """Write rows of two systems and two metrics, each system's rows in an order of its own."""
    rows = [
        (name, k) for name in ("new", "old") for k in sorted(range(N), key=lambda k: -SCORES["xy"[name == "old"]][k])
    ]
    first = {"x": "AP", "y": "nDCG@10"}
    columns = {
        **({"": range(2 * N)} if order else {}),
        system: [name for name, _ in rows],
        item: [IDS[k] for _, k in rows],
        **(extra or {}),
        first["x"]: [SCORES["xy"[name == "old"]][k] for name, k in rows],
        first["y"]: [SCORES["yx"[name == "old"]][k] for name, k in rows],
    }
    return write(path, columns)


def get_scores(counts, field="score"):
    return {system: counts.fields[field][:, k].tolist() for k, system in enumerate(counts.systems)}


@pytest.mark.parametrize("item", ["qid", "query_id", "question_id", "doc_id", "task_id", "example_id", "id", "Segment"])
@pytest.mark.parametrize("system", ["system", "model", "name"])
def test_a_long_table_with_an_unnamed_index_is_paired_by_its_items(tmp_path, item, system):
    counts = read(write_long(tmp_path / "long.csv", item, system, order=True))
    assert counts.format == "long"
    assert sorted(counts.ids) == IDS
    order = [IDS.index(item) for item in counts.ids]
    assert get_scores(counts, "score[AP]") == {
        "new": [SCORES["x"][k] for k in order],
        "old": [SCORES["y"][k] for k in order],
    }


@pytest.mark.parametrize("index", ["index", "idx", "uuid", "sample_id", "row", "nr"])
def test_two_claims_of_the_items_are_refused_and_each_remedy_reads_the_table(tmp_path, index):
    path = write_long(tmp_path / "long.csv", extra={index: range(2 * N)})
    with use_interface("command line"), pytest.raises(InputError) as raised:
        read(path)
    assert f"--columns item={index}," in raised.value.remedy
    assert "--columns item=qid," in raised.value.remedy
    assert read(path, options=Options(columns={"item": "qid"})).n_items == N
    assert read(path, options=Options(ignore=(index,))).n_items == N


def test_metrics_in_rows_are_metrics_of_the_systems(tmp_path):
    rows = [(s, q, m, SCORES[c][k]) for s in ("a", "b") for k, q in enumerate(IDS)
            for m, c in (("AP", "x" if s == "a" else "y"), ("nDCG@10", "AP"))]  # fmt: skip
    columns = dict(zip(("name", "qid", "measure", "value"), zip(*rows, strict=True), strict=True))
    counts = read(write(tmp_path / "perquery.csv", columns))
    assert counts.systems == ("a", "b")
    assert counts.suggested == ("AP", "nDCG@10")
    assert get_scores(counts, "score[AP]") == {"a": SCORES["x"], "b": SCORES["y"]}


def test_no_index_of_a_table_that_was_written_twice_is_a_system(tmp_path):
    indices = {"Unnamed: 0.1": range(N), "Unnamed: 0": range(N)}
    counts = read(write(tmp_path / "t.csv", {**indices, "x": SCORES["x"], "y": SCORES["y"]}))
    assert counts.systems == ("x", "y")


def test_a_wide_table_has_a_system_in_each_column_without_a_role(tmp_path):
    path = write(
        tmp_path / "wide.csv", {"qid": IDS, "document": ["d1", "d2"] * 6, "BM25": SCORES["x"], "DPH": SCORES["y"]}
    )
    counts = read(path)
    assert (counts.format, counts.systems, [*counts.groups]) == ("wide", ("BM25", "DPH"), ["document"])
    assert get_scores(counts) == {"BM25": SCORES["x"], "DPH": SCORES["y"]}


def test_an_id_that_counts_the_rows_is_the_item(tmp_path):
    texts = [f"answer {k % 5}" for k in range(N)]
    paths = [
        write(tmp_path / f"{name}.csv", {"id": range(1, N + 1), "output": texts, "score": SCORES[name]})
        for name in ("x", "y")
    ]
    counts = read(*paths, options=Options(ignore=("output",)))
    assert [*counts.ids] == [str(k) for k in range(1, N + 1)]


@pytest.mark.parametrize("name", ["#", "No.", "Frage Nr", "Sentence #", "hit-id"])
def test_no_number_of_the_rows_is_a_system(tmp_path, name):
    counts = read(write(tmp_path / "t.csv", {name: range(1, N + 1), "x": SCORES["x"], "y": SCORES["y"]}))
    assert (counts.systems, counts.ids[0]) == (("x", "y"), "1")


def test_rows_of_several_metrics_are_not_to_be_averaged_as_samples(tmp_path):
    columns = {"id": IDS[:6] * 2, "metric": ["AP"] * 6 + ["RR"] * 6, "x": SCORES["x"], "y": SCORES["y"]}
    with pytest.raises(InputError, match="columns 'metric' have other roles") as raised:
        read(write(tmp_path / "t.csv", columns))
    assert "ignore" not in raised.value.remedy


@pytest.mark.parametrize("extra", ["n_tokens", "latency", "length", "foo"])
def test_a_column_without_a_role_beside_scores_is_refused_in_any_shape(tmp_path, extra):
    numbers = {extra: range(2 * N)}
    with pytest.raises(InputError, match=extra):
        read(write_long(tmp_path / "long.csv", extra=numbers))
    paths = [
        write(tmp_path / f"{name}.csv", {"id": IDS, extra: range(N), "score": SCORES[name]}) for name in ("x", "y")
    ]
    for sources in (paths, [f"a={paths[0]}", f"b={paths[1]}"]):
        with pytest.raises(InputError, match=extra):
            read(*sources)
    counts = read(f"a={paths[0]}", f"b={paths[1]}", options=Options(ignore=(extra,)))
    assert get_scores(counts) == {"a": SCORES["x"], "b": SCORES["y"]}


@pytest.mark.parametrize("named", [True, False])
def test_a_name_does_not_change_how_a_file_is_read(tmp_path, named):
    paths = [
        write(tmp_path / f"{name}.csv", {"id": IDS, "AP": SCORES[name], "nDCG@10": SCORES["AP"]}) for name in ("x", "y")
    ]
    counts = read(*(f"{path.stem}={path}" if named else path for path in paths))
    assert counts.systems == ("x", "y")
    assert counts.suggested == ("AP", "nDCG@10")
    assert get_scores(counts, "score[AP]") == {"x": SCORES["x"], "y": SCORES["y"]}


def test_truth_values_of_json_are_scores(tmp_path):
    for name in ("x", "y"):
        records = [{"id": q, "resolved": s > 0.5} for q, s in zip(IDS, SCORES[name], strict=True)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    counts = read(tmp_path / "x.jsonl", tmp_path / "y.jsonl")
    expected = [[float(s > 0.5) for s in SCORES[name]] for name in ("x", "y")]
    assert counts.field("score[resolved]").T.tolist() == expected
    (tmp_path / "means.json").write_text('{"accuracy": 0.9, "f1": 0.8}')
    with pytest.raises(InputError, match="found an object with accuracy, f1"):
        read(tmp_path / "means.json")


@pytest.mark.parametrize("name", ["mean", "ALL", "Average"])
def test_a_row_that_sums_up_the_others_is_no_item(tmp_path, name):
    path = write(tmp_path / "wide.csv", {"id": [*IDS[:-1], name], "a": SCORES["x"], "b": SCORES["y"]})
    with pytest.raises(InputError, match=f"item '{name}' may sum up the others") as error:
        read(path)
    assert spell("align", "position") in str(error.value)
    assert read(path, options=Options(align="position")).n_items == N


def test_one_row_for_each_system_holds_no_scores_of_items(tmp_path):
    path = write(tmp_path / "means.csv", {"model": ["a", "b"], "params": ["7B", "8B"], "accuracy": [0.8, 0.9]})
    with pytest.raises(InputError, match="one row for each 'model', but needs one for each item"):
        read(path)


@pytest.mark.parametrize("columns", [{}, {"gold": [*"xy"] * 6}])
def test_a_file_lists_the_systems_of_a_table(tmp_path, columns):
    path = write(tmp_path / "wide.csv", {"id": IDS, **columns, "x": ["x"] * N, "y": ["y"] * N} if columns else SCORES)
    (names := tmp_path / "names.txt").write_text("y\nx\n")
    format_ = f"{'labels' if columns else 'wide'}:systems=@{names}"
    assert read(path, format=format_, options=Options(own={})).systems == ("y", "x")


@pytest.mark.parametrize("cell", ["yes", "pass", "12 %", "3/4", "1,200", "n/a?"])
def test_a_score_that_is_no_number_is_an_error_with_its_line(tmp_path, cell):
    path = write(tmp_path / "wide.tsv", {"id": IDS, "a": [*SCORES["x"][:-1], cell], "b": SCORES["y"]}, "\t")
    with pytest.raises(InputError, match=f"line {N + 1}.*'a'"):
        read(path)


def test_a_column_without_any_score_is_refused(tmp_path):
    path = write(tmp_path / "wide.csv", {"id": IDS, "a": [""] * N, "b": SCORES["y"], "c": SCORES["x"]})
    with pytest.raises(InputError, match="'a' has no score"):
        read(path)


def test_a_metric_of_the_command_line_picks_a_column_of_scores(tmp_path):
    path = write_long(tmp_path / "long.csv")
    result = CliRunner().invoke(commands, ["compare", str(path), "-m", "nDCG@10", "--trials", "64", "--json", "-"])
    assert result.exit_code == 0, result.output
    assert '"nDCG@10"' in result.output
    assert '"AP"' not in result.output


UNCLEAR = {
    "two items": {"id": IDS, "doc_id": IDS, "x": SCORES["x"], "y": SCORES["y"]},
    "two indices": {"index": range(N), "qid": IDS, "x": SCORES["x"], "y": SCORES["y"]},
    "unnamed items": {"": IDS, "x": SCORES["x"], "y": SCORES["y"]},
    "a score among systems": {"id": IDS, "x": SCORES["x"], "y": SCORES["y"], "score": SCORES["AP"]},
    "a run among systems": {"id": IDS, "x": SCORES["x"], "y": SCORES["y"], "seed": [1] * N},
    "a text among systems": {"id": IDS, "x": SCORES["x"], "y": SCORES["y"], "text": IDS},
    "an unknown column of a long table": {
        "qid": IDS * 2, "system": ["a"] * N + ["b"] * N, "score": SCORES["x"] + SCORES["y"], "z": range(2 * N),
    },
    "two unknown columns of a long table": {
        "qid": IDS * 2, "system": ["a"] * N + ["b"] * N, "p": SCORES["x"] + SCORES["y"], "z": range(2 * N),
    },
    "scores beside gold": {
        "id": IDS * 2, "system": ["a"] * N + ["b"] * N, "target": IDS * 2, "acc": SCORES["x"] + SCORES["y"],
    },
    "a frame that was melted": {"qid": IDS * 2, "variable": ["a"] * N + ["b"] * N, "value": SCORES["x"] + SCORES["y"]},
    "rows of systems without items": {"system": ["a"] * N + ["b"] * N, "score": SCORES["x"] + SCORES["y"]},
    "a text that may be a score": {"system": ["a"] * N + ["b"] * N, "id": IDS * 2, "p": SCORES["x"] * 2, "q": IDS * 2},
    "a number among systems": {"id": IDS, "x": SCORES["x"], "worker id": range(N), "y": SCORES["y"]},
    "a counter of steps among systems": {"Step": range(N), "x": SCORES["x"], "y": SCORES["y"]},
    "samples with several gold labels": {"id": [*"abcdef"] * 2, "gold": [*"PPQPPPQPQPPP"], "x": [*"PQ"] * 6},
    "rejected rows": {"id": IDS, "x": SCORES["x"], "y": SCORES["y"], "status": ["discarded"] + ["ok"] * (N - 1)},
    "two systems of a row": {
        "qid": IDS * 2, "system": ["a"] * N + ["b"] * N, "model": ["a"] * N + ["b"] * N,
        "score": SCORES["x"] + SCORES["y"],
    },
}  # fmt: skip
"""Tables of unclear roles, by what is unclear. Each remedy that an error shows reads the table."""


def list_remedies(remedy):
    """Return the options of each way that a remedy shows."""
    ways = re.split(r", or |\bChoose ", remedy)
    options = [re.findall(r"(--(?:columns|ignore|format|align) (?:'[^']*'|[^ ,]+?))(?=[., )]|$)", way) for way in ways]
    return [[word for option in way for word in shlex.split(option)] for way in options if way]


@pytest.mark.parametrize("name", UNCLEAR)
def test_every_remedy_of_an_error_reads_the_table(tmp_path, name):
    path = write(tmp_path / "table.csv", UNCLEAR[name])
    with use_interface("command line"), pytest.raises(InputError) as raised:
        read(path)
    assert all(column in str(raised.value) for column in UNCLEAR[name])
    remedies = list_remedies(raised.value.remedy)
    assert remedies
    for options in remedies:
        result = CliRunner().invoke(commands, ["read", str(path), *options])
        assert result.exit_code == 0, (options, result.output)


def test_every_remedy_of_an_error_about_lists_reads_them(tmp_path):
    for name in ("gold.txt", "a.txt", "b.txt"):
        (tmp_path / name).write_text("1\n0\n1\n")
    command = ["read", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "--gold", str(tmp_path / "gold.txt")]
    with use_interface("command line"):
        remedies = re.findall(r"(--metric|--format) ([\w:=]+)", CliRunner().invoke(commands, command).exception.remedy)
    assert len(remedies) > 4
    for option in remedies:
        assert CliRunner().invoke(commands, [*command, *option]).exit_code == 0, option


def test_read_shows_roles_and_first_items_and_computes_nothing(tmp_path):
    result = CliRunner().invoke(commands, ["read", str(write_long(tmp_path / "long.csv", order=True))])
    assert result.exit_code == 0, result.output
    for word in ("long", "new", "old", "qid", "AP", "nDCG@10", "index"):
        assert word in result.output
    assert "p =" not in result.output


def test_read_shows_missing_scores_as_missing(tmp_path):
    path = write(tmp_path / "wide.csv", {"id": IDS, "a": ["", *SCORES["x"][1:]], "b": SCORES["y"]})
    result = CliRunner().invoke(commands, ["read", str(path), "--missing", "pairwise"])
    assert f"item {IDS[0]}: a: missing; b: score" in result.output


@pytest.mark.parametrize("column", ["system", "id", "metric"])
@pytest.mark.parametrize("value", ["score", "prediction"])
def test_an_empty_name_is_an_error_with_its_line(tmp_path, column, value):
    names = {"system": ["a", "a", "b", "b"], "id": ["1", "2", "1", "2"], "metric": ["m"] * 4, "gold": ["P", "Q"] * 2}
    names.pop("gold" if value == "score" else "metric")
    names[column if column in names else "system"][2] = ""
    path = write(tmp_path / "t.csv", {**names, value: [1, 0, 0, 1]})
    with pytest.raises(InputError, match=r"t.csv, line 4: column '\w+' is empty, expected"):
        read(path)


@pytest.mark.parametrize("option", ["no-such=1", "decimal=;", "systems"])
def test_an_unknown_option_of_a_format_or_a_value_that_it_lacks_is_an_error(tmp_path, option):
    path = write(tmp_path / "wide.csv", {"id": IDS, "a": SCORES["x"], "b": SCORES["y"]})
    result = CliRunner().invoke(commands, ["read", str(path), "--format", f"wide:{option}"])
    assert isinstance(result.exception, InputError)


def test_files_with_scores_by_different_metrics_are_not_compared(tmp_path):
    bleu = write(tmp_path / "a.csv", {"id": IDS, "bleu": SCORES["x"]})
    with pytest.raises(InputError, match="bleu"):
        read(bleu, write(tmp_path / "b.csv", {"id": IDS, "ter": SCORES["y"]}))
    counts = read(bleu, write(tmp_path / "c.csv", {"id": IDS, "bleu": SCORES["y"]}))
    assert get_scores(counts, "score[bleu]") == {"a": SCORES["x"], "c": SCORES["y"]}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_are_stripped_in_every_kind_of_file(tmp_path, ending):
    table = pa.table({"gold": ["a ", "b"], "x": ["a", "b"], "y": ["b", "b"]})
    path = tmp_path / f"t.{ending}"
    parquet.write_table(table, path) if ending == "parquet" else csv.write_csv(table, path)
    assert read(path).labels == ("a", "b")


def test_no_name_has_two_roles():
    names = [name for names in ROLES.values() for name in names]
    assert len(names) == len({*names})
    assert all(name_role(name) == (role,) for role, names in ROLES.items() for name in names)
