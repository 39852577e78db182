"""Tests of `sigdask show` and `read`: stored results are shown as they were printed, files are read as `compare` reads."""

import json

import pytest
from command import call_sigdask, write_data_of_commands
from conftest import YEH

import sigdask
from sigdask.errors import InputError
from sigdask.report.analyses import load_results

FORMATS = ("csv", "parquet", "md", "tex", "bib", "txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with results of every command, and what each command printed."""
    folder = tmp_path_factory.mktemp("results")
    write_data_of_commands(folder)
    return folder


COMMANDS = {
    "yeh": ("compare", YEH, "--trials", 999),
    "many": ("compare", "t.csv", "--trials", 999, "--tests", "all", "--by", "c"),
    "together": ("compare", "t.csv", "--trials", 999, "--name", "x", "--adjust", "holm"),
    "meta": ("meta", "human.csv", "--trials", 99),
    "rankings": ("rankings", "candidates.csv", "--n", "5,10", "--trials", 99),
    "independence": ("independence", "labels.csv", "--trials", 99),
    "power": ("power", "t.csv", "--difference", "0.5", "--samples", 100),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_results_are_shown_as_they_were_printed(name, folder):
    printed = call_sigdask(*COMMANDS[name], "-q", "-o", f"{name}.json", "-o", f"{name}.tex", cwd=folder)
    shown = call_sigdask("show", f"{name}.json", "-q", cwd=folder)
    assert (shown.returncode, shown.stdout) == (0, printed.stdout), shown.stderr
    assert call_sigdask("show", f"{name}.json", "-o", "shown.tex", cwd=folder).returncode == 0
    assert (folder / "shown.tex").read_text() == (folder / f"{name}.tex").read_text()


def test_every_format_is_the_same_from_stored_results(folder):
    pytest.importorskip("pyarrow")
    written = [word for ending in FORMATS for word in ("-o", f"made.{ending}")]
    shown = [word.replace("made", "shown") for word in written]
    assert call_sigdask("compare", "t.csv", "--trials", 999, "-o", "made.json", *written, cwd=folder).returncode == 0
    assert call_sigdask("show", "made.json", *shown, "-o", "shown.html", cwd=folder).returncode == 0
    for ending in FORMATS:
        assert (folder / f"shown.{ending}").read_bytes() == (folder / f"made.{ending}").read_bytes(), ending
    assert (folder / "shown.html").read_text().startswith("<!DOCTYPE html>")


def test_results_of_a_plan_are_shown(folder):
    assert call_sigdask("run", "plan.toml", "-q", "-o", "night.json", cwd=folder).returncode == 0
    shown = call_sigdask("show", "night.json", cwd=folder)
    assert (shown.returncode, "a" in shown.stdout) == (0, True), shown.stderr


def test_what_holds_no_results_is_refused(folder, tmp_path):
    altered = json.loads(sigdask.compare_all({"a": [1, 2, 3], "b": [3, 3, 1]}, method="randomization").to_json())
    altered["results"][0]["n_extreme"] = 1
    broken = {
        "absent.json": None,
        "list.json": "[1, 2]",
        "none.json": '{"results": []}',
        "keys.json": '{"results": [{"a": "x"}]}',
        "rankings.json": '{"kind": "rankings"}',
        "power.json": '{"power": [{}]}',
        "verdict.json": '{"results": [{"checks": [{"verdict": "x"}]}]}',
        "number.json": '{"results": [{"notes": [], "n_items": "3"}]}',
        "infinite.json": '{"results": [{"difference": 1e999}]}',
        "large.json": f'{{"results": [{{"n_trials": {2**63}}}]}}',
        "alpha.json": '{"results": [], "alpha": 1}',
        "deep.json": '{"a":' * 100_000,
        "twice.json": '{"results": [{"a": "x", "a": "y"}]}',
        "version.json": '{"schema_version": 2, "results": []}',
        "altered.json": json.dumps(altered),
        "table.csv": (folder / "t.csv").read_text(),
    }
    for name, text in broken.items():
        if text is not None:
            (tmp_path / name).write_text(text)
        for arguments in (["show", name], ["cite", name], ["reproduce", name, folder / "t.csv"]):
            result = call_sigdask(*arguments, cwd=tmp_path)
            assert (result.returncode, name in result.stderr) == (2, True), arguments
            assert "Traceback" not in result.stderr
        with pytest.raises(InputError):
            load_results(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["-o", "o.json"], "o.json"),
        (["-o", "o.html"], "o.html"),
        (["-o", "none/o.tex"], "none"),
        (["--figures", "t.csv"], "t.csv"),
    ],
)
def test_what_cannot_be_written_is_refused(options, named, folder):
    name = "rank.json" if "o.html" in options else "yeh2.json"
    call_sigdask(*COMMANDS["rankings"], "-o", "rank.json", cwd=folder)
    call_sigdask("compare", "t.csv", "--trials", 9, "-o", "yeh2.json", cwd=folder)
    result = call_sigdask("show", name, *options, cwd=folder)
    assert (result.returncode, named in result.stderr) == (2, True)


READ = "sys;qid;F1, macro;doc\na;1;0,5;x\na;2;0,75;y\nb;1;0,25;x\nb;2;1,5;y\n"


def test_read_shows_how_files_are_read(tmp_path):
    (tmp_path / "t.csv").write_text(READ)
    options = ("--columns", "item=qid,system=sys,score=F1, macro", "--format", "table:decimal=,")
    result = call_sigdask("read", "t.csv", *options, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines()[:6])
    assert lines["format"] == "long"
    assert lines["columns"].endswith("score F1, macro")
    assert lines["systems"].endswith("a, b")
    assert "0.25" in result.stdout
    compared = call_sigdask("compare", "t.csv", *options, "--json", "-", cwd=tmp_path)
    assert json.loads(compared.stdout)["results"][0]["score_a"] == 0.625


COLUMNS = [
    ("name=qid", "name"),
    ("qid", "ROLE=COLUMN"),
    ("item=", "item="),
    ("item=qid,item=sys", "item"),
    ("item=none", "none"),
]


@pytest.mark.parametrize(("columns", "named"), COLUMNS)
def test_roles_of_columns_that_cannot_be_are_refused(columns, named, tmp_path):
    (tmp_path / "t.csv").write_text("sys,qid,score\na,1,0\na,2,1\nb,1,0\nb,2,1\n")
    result = call_sigdask("read", "t.csv", "--columns", columns, cwd=tmp_path)
    assert (result.returncode, named in result.stderr) == (2, True)


def test_a_column_may_have_commas_and_equals_signs_in_its_name():
    assert sigdask.formats.parse_columns(["score=a,b=c", "item=x=y,gold=z"]) == {
        "score": "a,b=c", "item": "x=y", "gold": "z",
    }  # fmt: skip


def test_columns_by_role_in_python_and_in_plans(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": [*"aabb"], "nr": [1, 2, 1, 2], "points": [1.0, 2.0, 0.0, 1.0]})
    columns = {"system": "who", "item": "nr", "score": "points"}
    [result] = sigdask.compare_all(frame, columns=columns)
    assert (result.a, result.score_a) == ("a", 1.5)
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "plan.toml").write_text(
        '[[test_set]]\nname = "x"\nsystems = "t.csv"\ncolumns = { system = "who", item = "nr", score = "points" }\n'
    )
    assert call_sigdask("run", "plan.toml", "-o", "r.json", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "r.json").read_text())["results"][0]["score_a"] == 1.5
    (tmp_path / "plan.toml").write_text('[[test_set]]\nname = "x"\nsystems = "t.csv"\ncolumns = { sytem = "who" }\n')
    refused = call_sigdask("run", "plan.toml", cwd=tmp_path)
    assert (refused.returncode, "sytem" in refused.stderr) == (2, True)
