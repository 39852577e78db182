"""Plans and commands with inputs at URLs: patterns, digests, results, and errors with their lines."""

import json

import pytest
from command import call_sigdask
from object_store import write_scores

from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan

TEST_SET = '[[test_set]]\nname = "one"\nmetrics = ["mean"]\n'


@pytest.fixture
def night(memory, tmp_path):
    """A folder with runs of three systems, and the same runs at memory://night."""
    for k, name in enumerate(("base", "new", "old")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        write_scores(tmp_path / "runs" / name / "scores.csv", seed=k)
        memory.pipe(f"/night/runs/{name}/scores.csv", (tmp_path / "runs" / name / "scores.csv").read_bytes())
    memory.pipe({"/night/runs/.old/scores.csv": b"hidden", "/night/gold/x.txt": b"x"})
    return tmp_path


def write_plan(folder, systems, settings="", name="night"):
    file = folder / f"{name}.toml"
    file.write_text(f"trials = 2000\n{settings}{TEST_SET}systems = {systems}\n")
    return file


@pytest.mark.parametrize(
    "systems",
    [
        '"{}/runs/{{system}}/scores.csv"',
        '["{}/runs/base/scores.csv", "{}/runs/new/scores.csv", "{}/runs/old/*.csv"]',
        '{{ base = "{}/runs/base/scores.csv", new = "{}/runs/new/scores.csv", old = "{}/runs/old/*" }}',
        '"{}/runs/**/scores.csv"',
    ],
)
def test_a_plan_of_urls_finds_what_the_plan_of_paths_finds(night, systems):
    local_outcome = run_plan(
        load_plan(write_plan(night, systems.replace("{}", ".").replace("{{", "{").replace("}}", "}"), name="here"))
    )
    url_systems = systems.replace("{}", "memory://night").replace("{{", "{").replace("}}", "}")
    url_outcome = run_plan(load_plan(write_plan(night, url_systems, name="away")))
    assert url_outcome.results["one"].to_json() == local_outcome.results["one"].to_json()
    assert len(url_outcome.results["one"]) == 3


def test_a_plan_records_the_digest_of_what_it_read_at_a_url_and_counts_again_what_changed(night, memory):
    path = write_plan(night, '"memory://night/runs/{system}/scores.csv"')
    first_outcome = run_plan(load_plan(path))
    inputs = first_outcome.report.run.details["inputs"]["one"]
    assert list(inputs) == [f"memory://night/runs/{name}/scores.csv" for name in ("base", "new", "old")]
    local = run_plan(load_plan(write_plan(night, '"runs/{system}/scores.csv"', name="here")))
    assert list(local.report.run.details["inputs"]["one"].values()) == list(inputs.values())
    assert run_plan(load_plan(path)).n_counted == 0
    write_scores(night / "x.csv", seed=9)
    memory.pipe("/night/runs/new/scores.csv", (night / "x.csv").read_bytes())
    second_outcome = run_plan(load_plan(path))
    assert second_outcome.n_counted > 0
    assert (
        second_outcome.report.run.details["inputs"]["one"]["memory://night/runs/new/scores.csv"]
        != inputs["memory://night/runs/new/scores.csv"]
    )


def test_urls_and_paths_may_be_mixed_in_a_plan_and_paths_stay_relative_to_it(night):
    outcome = run_plan(
        load_plan(write_plan(night, '{ here = "runs/new/scores.csv", there = "memory://night/runs/new/scores.csv" }'))
    )
    [result] = outcome.results["one"]
    assert (result.a, result.b, result.difference) == ("here", "there", 0)


def test_what_is_wrong_with_urls_of_a_plan_is_told_with_its_line(night):
    text = (
        f'{TEST_SET}systems = ["memory://night/runs/none.csv", "memory://night/none/*.csv", "memory://night/runs", '
        '"s3://key:5ecret@bucket/x", "nfs://h/x"]\ngold = "memory://night/gold"\n[report]\njson = "s3://b/out.json"\n'
    )
    (night / "bad.toml").write_text(text)
    with pytest.raises(InputError) as raised:
        load_plan(night / "bad.toml")
    message_lines = str(raised.value).splitlines()
    assert 'line 4: test_set[0].systems: found "memory://night/runs/none.csv": no such file' in message_lines[1]
    assert 'found "memory://night/none/*.csv", which matches no file' in message_lines[2]
    assert 'found "memory://night/runs", which is a folder' in message_lines[3]
    assert "s3://***@bucket/x: s3:// URLs take no password" in message_lines[4]
    assert "fsspec knows no nfs:// URLs" in message_lines[5]
    assert "line 5: test_set[0].gold" in message_lines[6]
    assert 'line 7: report.json: found "s3://b/out.json", expected a local file' in message_lines[7]
    assert "5ecret" not in str(raised.value)


def test_compare_spreads_a_pattern_of_a_url_as_a_shell_does_with_files(night):
    pattern_result = call_sigdask("compare", "memory://night/runs/{system}/scores.csv", "--json", "-", cwd=night)
    named_systems = [f"{name}=memory://night/runs/{name}/scores.csv" for name in ("base", "new", "old")]
    assert pattern_result.returncode == 0, pattern_result.stderr
    assert pattern_result.stdout == call_sigdask("compare", *named_systems, "--json", "-", cwd=night).stdout
    assert {r["a"] for r in json.loads(pattern_result.stdout)["results"]} == {"base", "new"}


def test_check_reads_the_data_at_urls(night):
    result = call_sigdask("check", write_plan(night, '"memory://night/runs/{system}/scores.csv"'), cwd=night)
    assert result.returncode == 0
    assert "wide" in result.stdout


@pytest.mark.parametrize("arguments", [("run", "s3://k:5ecret@b/plan.toml"), ("status", "s3://k:5ecret@b/plan.toml")])
def test_a_plan_is_a_file_of_this_machine(arguments, tmp_path):
    result = call_sigdask(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert "s3://***@b/plan.toml: is a URL, but a plan must be a file on this machine" in result.stderr


def test_nothing_is_written_to_urls(night):
    result = call_sigdask(
        "compare", "memory://night/runs/{system}/scores.csv", "-o", "https://u:5ecret@h/x.html", cwd=night
    )
    assert result.returncode == 2
    assert "-o https://***@h/x.html: is a URL, but what is written must be a file on this machine" in result.stderr
