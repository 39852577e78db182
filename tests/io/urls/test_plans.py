"""Plans and commands with inputs at URLs: patterns, digests, results, and errors with their lines."""

import pytest
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
        '"HERE/runs/{system}/scores.csv"',
        '{ base = "HERE/runs/base/scores.csv", new = "HERE/runs/new/scores.csv", old = "HERE/runs/old/*" }',
        '"HERE/runs/**/scores.csv"',
    ],
)
@pytest.mark.slow
def test_a_plan_of_urls_finds_what_the_plan_of_paths_finds(night, systems):
    local, remote = (
        run_plan(load_plan(write_plan(night, systems.replace("HERE", place), name=name))).results["one"]
        for name, place in (("here", "."), ("away", "memory://night"))
    )
    assert remote.to_json() == local.to_json()
    assert len(remote) == 3


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


@pytest.mark.parametrize(
    ("systems", "place"),
    [
        ("memory://night/runs/none.csv", "night/runs/none.csv"),
        ("memory://night/none/*.csv", "night/none/*.csv"),
        ("s3://key:5ecret@bucket/x", "s3://***@bucket/x"),
        ("nfs://h/x", "nfs://"),
    ],
)
def test_what_is_wrong_with_urls_of_a_plan_is_told_with_its_key(night, systems, place):
    text = f'{TEST_SET}systems = "{systems}"\ngold = "memory://night/none"\n[report]\njson = "s3://b/out.json"\n'
    (night / "bad.toml").write_text(text)
    with pytest.raises(InputError) as raised:
        load_plan(night / "bad.toml")
    message = str(raised.value)
    assert all(f", {key}: " in message for key in ("test_set[0].systems", "test_set[0].gold", "report.json"))
    assert place in message
    assert "5ecret" not in message
