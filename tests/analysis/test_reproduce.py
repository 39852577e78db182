"""Tests of `sigdask reproduce`: the same data give the recorded results, other data are named."""

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from command import call_sigdask
from conftest import YEH
from nights import write_plan, write_scores
from recorded_runs import RUNS, read_run

from sigdask import formats
from sigdask.analysis import reproduce as reproduce_module
from sigdask.analysis.reproduce import read, reproduce_results
from sigdask.api import compare_all
from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.results import comparisons
from sigdask.statistics.rounding import format_p


@pytest.fixture
def folder(tmp_path):
    shutil.copy(YEH, tmp_path / "yeh.tsv")
    write_scores(tmp_path / "scores.csv", 4, n_items=30)
    return tmp_path


def record_results(folder, *arguments):
    result = call_sigdask("compare", *arguments, "-o", "r.json", "-o", "r.csv", "-q", cwd=folder)
    assert result.returncode == 0, result.stderr
    return json.loads((folder / "r.json").read_text())


def test_a_signature_alone_gives_its_p_also_among_other_systems(folder):
    results = record_results(folder, "scores.csv", "--trials", "4000", "--method", "randomization")["results"]
    for row in results[:3]:
        result = call_sigdask("reproduce", row["test_signature"], "scores.csv", "-q", cwd=folder)
        assert result.returncode == 0, result.stdout
        assert "reproduced: data and settings" in result.stdout
        assert f"{row['a']} and {row['b']}: " in result.stdout
        assert format_p(row["p_value"], 0.05) in result.stdout
        assert "note: its adjusted p needs the whole family" in result.stdout
    header, *rows = (folder / "scores.csv").read_text().splitlines()
    swapped = [",".join(reversed(line.split(","))) for line in (header, *rows)]
    (folder / "swapped.csv").write_text("\n".join(swapped) + "\n")
    result = call_sigdask("reproduce", results[0]["test_signature"], "swapped.csv", "-q", cwd=folder)
    assert result.returncode == 0
    assert "s0 and s1: " in result.stdout  # in their order of then


def test_other_data_are_named_before_anything_is_counted(folder):
    record_results(folder, "yeh.tsv")
    text = (folder / "yeh.tsv").read_text()
    (folder / "other.tsv").write_text(text.replace("r120\t0\t1\t0", "r120\t0\t1\t1"))  # one more that II has wrongly
    result = call_sigdask("reproduce", "r.json", "other.tsv", "-q", cwd=folder)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("other data: precision of I and II: no system has the data of II (digest ")
    assert lines[-1] == "not reproduced: 2 of 3 results"  # recall is of what is right alone
    signature = json.loads((folder / "r.json").read_text())["results"][2]["test_signature"]
    (folder / "both.tsv").write_text(text.replace("r120\t0", "r120\t1"))  # one more that is right
    output = call_sigdask("reproduce", signature, "both.tsv", "-q", cwd=folder).stdout
    assert "no system has the data of A" in output
    (folder / "less.tsv").write_text("".join(text.splitlines(keepends=True)[:-1]))
    result = call_sigdask("reproduce", "r.json", "less.tsv", "-q", cwd=folder)
    assert result.returncode == 1
    assert "the ids of the items differ from those of the signature" in result.stdout


def test_systems_that_are_renamed_or_exchanged_are_not_the_same(folder):
    document = record_results(folder, "scores.csv", "--trials", "500", "--method", "randomization")
    header, *rows = (folder / "scores.csv").read_text().splitlines()
    (folder / "renamed.csv").write_text("\n".join([header.replace("s3", "best"), *rows]) + "\n")
    result = call_sigdask("reproduce", "r.json", "renamed.csv", "-q", cwd=folder)
    assert (result.returncode, "b: 's3', now 'best'" in result.stdout) == (1, True)
    for row in document["results"]:
        row["a"], row["b"] = row["b"], row["a"]
    (folder / "r.json").write_text(json.dumps(document))
    result = call_sigdask("reproduce", "r.json", "scores.csv", "-q", cwd=folder)
    assert result.returncode == 1
    assert "not the same: mean of s1 and s0: a: 's1', now 's0'; b: 's0', now 's1'" in result.stdout


def test_systems_with_equal_data_keep_their_names(folder):
    rows = [f"{x},{x},{y}" for x, y in np.random.default_rng(8).integers(0, 9, (20, 2)).tolist()]
    (folder / "twins.csv").write_text("\n".join(["one,two,other", *rows]) + "\n")
    record_results(folder, "twins.csv", "--trials", "500")
    assert call_sigdask("reproduce", "r.json", "twins.csv", "-q", cwd=folder).returncode == 0


def test_a_family_of_which_comparisons_were_removed_is_not_the_same(folder):
    recorded_json = record_results(folder, "scores.csv", "--trials", "1000", "--method", "randomization")
    recorded_json["results"] = recorded_json["results"][:2]
    (folder / "r.json").write_text(json.dumps(recorded_json))
    result = call_sigdask("reproduce", "r.json", "scores.csv", "-q", cwd=folder)
    assert result.returncode == 1


def test_a_plans_results_are_found_again_test_set_by_test_set(tmp_path):
    write_plan(tmp_path, sets=2, systems=3, trials=1000)
    assert call_sigdask("run", "night.toml", "--json", "night.json", "-q", cwd=tmp_path).returncode == 0
    result = call_sigdask("reproduce", "night.json", "set1.csv", "-q", cwd=tmp_path)
    assert (result.returncode, "choose one with --name" in result.stderr) == (2, True)
    assert call_sigdask("reproduce", "night.json", "set1.csv", "--name", "set1", "-q", cwd=tmp_path).returncode == 0
    assert call_sigdask("reproduce", "night.json", "set0.csv", "--name", "set1", "-q", cwd=tmp_path).returncode == 1


def list_paths(value, path=()):
    """Return the paths to all in a JSON value; of results, the first one stands for all."""
    if isinstance(value, dict):
        members = value.items()
    else:
        members = enumerate(value[: 1 if path == ("results",) else None]) if isinstance(value, list) else ()
    return [deeper for key, member in members for deeper in ((*path, key), *list_paths(member, (*path, key)))]


def alter_value(value):
    """Return another value of the same type, or of another type in place of null."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value * 0.75 if 0 < value < 1 else 3 * value + 1
    return f"{value}x" if isinstance(value, str) else [] if value else ["x"]


def alter_document(document, path):
    altered = json.loads(json.dumps(document))
    place = altered
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = alter_value(place[path[-1]])
    return json.dumps(altered)


@pytest.fixture
def compute_rows_once(monkeypatch):
    """Keep the rows that are made of a table, as each alteration is held against the same few tables."""

    def keep(module, name, convert=lambda rows: rows):
        function, kept = getattr(module, name), {}

        def get_rows(table, *arguments):
            key = id(table), repr(arguments)
            if key not in kept:
                kept[key] = table, [*function(table, *arguments)]  # with the table, so that no other has its id
            return convert(kept[key][1])

        monkeypatch.setattr(module, name, get_rows)

    keep(comparisons, "iter_results", iter)
    keep(reproduce_module, "iter_json_lines")


def compare_runs():
    """Return a function that compares as `compare_all`, and each time once."""
    done = {}

    def compare(counts, **options):
        key = repr((counts.systems, sorted(options.items())))
        if key not in done:
            done[key] = compare_all(counts, **options, cluster="none")
        return done[key]

    return compare


MAY_HAVE_NO_EFFECT = {"together", "exact_limit", "trials", "resamples", "confidence", "second_run", "adjust"}
"""Options that change nothing for some data, such as the resamples of an interval that needs none."""


def assert_each_alteration_is_noticed(altered, reproduce):
    """Assert that altering a value is refused, with both values or an error, or listed as not compared.

    `altered` yields the dotted name of each value, and the content of a file in which it is another.
    """
    unnoticed = []
    for name, content in altered:
        try:
            outcome = reproduce(content)
        except InputError:  # it cannot have this value
            continue
        texts = [*outcome.differences, *(text for entry in outcome.repeated for text in entry.differences)]
        parts, listed = name.split("."), list_names(outcome)
        names = {".".join(parts[: k + 1]) for k in range(len(parts))}
        is_listed = listed & names or any(
            entry.startswith((f"{name}.", "notes of the kind" if parts[0] in {"notes", "warnings"} else "\0"))
            or entry == f"{parts[0]} of other test sets"
            for entry in listed
        )
        is_without_effect = parts[0] == "options" and parts[1] in MAY_HAVE_NO_EFFECT
        if not (any(", now " in text for text in texts) or outcome.changed or is_listed or is_without_effect):
            unnoticed.append(name)
    assert not unnoticed


def assert_json_is_compared(document, reproduce):
    paths = [path for path in list_paths(document) if path not in {("results",), ("results", 0)}]
    names = [".".join(key for key in path if isinstance(key, str)).removeprefix("results.") for path in paths]
    texts = (alter_document(document, path) for path in paths)
    assert_each_alteration_is_noticed(zip(names, texts, strict=True), reproduce)


def list_names(outcome):
    return {name for names in outcome.not_compared.values() for name in names}


QUICK = ("baseline, Holm", "documents")


@pytest.fixture
def run(request, tmp_path, compute_rows_once):
    """Return results of a kind of run, and a function that reproduces them from the text of a file."""
    files, reading, options = RUNS[request.param]
    counts, compare = read_run(tmp_path, files, reading), compare_runs()
    results = compare_all(counts, **{"trials": 200, "seed": 3, "resamples": 100, "cluster": "none"} | options)

    def reproduce(content):
        (tmp_path / "results").write_bytes(content if isinstance(content, bytes) else content.encode())
        return reproduce_results(read(tmp_path / "results"), counts, compare)

    return results, reproduce


def assert_reproduced(outcome):
    assert outcome.is_reproduced, (outcome.differences, [entry.differences for entry in outcome.repeated])


@pytest.mark.parametrize(
    "run", [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in RUNS], indirect=True
)
def test_each_altered_key_of_json_is_refused_or_listed(run):
    results, reproduce = run
    document = results.to_dict()
    genuine = reproduce(json.dumps(document))
    assert_reproduced(genuine)
    assert not list_names(genuine) & {"alpha", "options", *document["results"][0]}
    assert_json_is_compared(document, reproduce)


@pytest.mark.parametrize("run", ["one pair"], indirect=True)
@pytest.mark.parametrize(
    "path", [("results", 0, "test_signature"), ("options",), ("options", "alpha"), ("options", "resamples")]
)
def test_a_deleted_signature_or_option_is_refused(run, path):
    results, reproduce = run
    document = results.to_dict()
    *parents, key = path
    place = document
    for parent in parents:
        place = place[parent]
    del place[key]
    with pytest.raises(InputError):
        reproduce(json.dumps(document))


@pytest.mark.usefixtures("compute_rows_once")
@pytest.mark.slow
def test_each_altered_key_of_a_gated_plan_is_refused_or_listed(tmp_path):
    gate = '[gate]\nrules = [{ rule = "not-worse" }, { rule = "non-inferior", margin = 0.2 }]\n'
    plan = write_plan(tmp_path, sets=2, systems=2, trials=200)
    plan.write_text(plan.read_text().replace('["mean"]', '["mean"]\npairs = { baseline = "s0" }') + gate)
    assert call_sigdask("run", plan, "--json", "r.json", "-q", cwd=tmp_path).returncode in {0, 1}
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["gate"]
    document["results"].reverse()  # so that the first is of the test set that is reproduced
    counts, compare = formats.read(tmp_path / "set1.csv", options=formats.Options(name="set1")), compare_runs()

    def reproduce(text):
        (tmp_path / "r.json").write_text(text)
        return reproduce_results(read(tmp_path / "r.json").select_test_set("set1"), counts, compare)

    assert_reproduced(reproduce(json.dumps(document)))
    assert_json_is_compared(document, reproduce)
    for path in [*list_paths(document["families"]["set1"], ("families", "set1"))]:
        assert not reproduce(alter_document(document, path)).is_reproduced


OTHER_COMMANDS = {
    "power": ("item,a,b\ni,1,2\nj,3,1\nk,2,2\n", ("--difference", "0.5", "--samples", "100")),
    "independence": ("item,gold,one\ni,x,x\nj,y,x\nk,x,y\n", ("-m", "accuracy")),
    "rankings": ("gold,t,u\n1,3,1\n0,2,2\n1,1,3\n", ("--n", "2")),
}


@pytest.mark.parametrize("command", OTHER_COMMANDS)
def test_results_of_other_commands_are_refused_with_what_to_do(command, tmp_path):
    text, options = OTHER_COMMANDS[command]
    (tmp_path / "t.csv").write_text(text)
    assert call_sigdask(command, "t.csv", *options, "--json", "r.json", cwd=tmp_path).returncode == 0
    with pytest.raises(InputError, match=f"holds results of `sigdask {command}`.*again and compare the files"):
        read(tmp_path / "r.json")


@pytest.mark.cluster
def test_reproduce_starts_one_cluster(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("id,a,b\n" + "".join(f"q{k},{k % 7 / 7},{k % 5 / 5}\n" for k in range(60)))
    monkeypatch.chdir(tmp_path)
    started = []
    connect = clusters.connect

    def count_connections(cluster, **options):
        started.append(cluster)
        return connect(cluster, **options)

    runner = CliRunner()
    assert runner.invoke(commands, ["compare", "t.csv", "--trials", "1000", "-q", "-o", "r.json"]).exit_code == 0
    monkeypatch.setattr(clusters, "connect", count_connections)
    arguments = ["reproduce", "r.json", "t.csv", "--cluster", "local", "--workers", "1"]
    assert runner.invoke(commands, arguments).exit_code == 0
    assert started.count("local") == 1
