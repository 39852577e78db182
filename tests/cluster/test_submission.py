"""Tests of the driver as a batch job: allocation, time limit, requeueing, and names in the shell."""

import json
import re
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from cluster.slurm import wait_until
from conftest import ROOT
from nights import run_sigdask

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.execution.clusters.submission import build_submission
from sigdask.nightly.run import parse_deadline

CLUSTER_TOML = """
class = "slurm"
workers = 2
wait = "60 s"
[options]
cores = 1
memory = "1GB"
walltime = "00:01:00"
[options.scheduler_options]
host = "127.0.0.1"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder whose name a careless shell would run, with a plan whose name it would run too."""
    folder = tmp_path / "a $(touch pwned) b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "plan '; touch pwned.toml").write_text("")
    (folder / "slurm.toml").write_text(CLUSTER_TOML)
    yield folder
    assert not [path for path in tmp_path.rglob("*") if path.name == "pwned"]


def find_plan(folder):
    return next(folder.glob("plan*.toml"))


def test_the_script_is_a_shell_script_and_quotes_everything(folder):
    ready = build_submission(find_plan(folder), folder / "slurm.toml", options=["--store", "x; touch pwned"])
    assert subprocess.run(["bash", "-n"], input=ready.script, text=True, check=True).returncode == 0
    assert "'x; touch pwned'" in ready.script
    assert " --cluster 'allocation:" in ready.script
    assert {"--requeue", "--ntasks=2", "--cpus-per-task=1", "--mem-per-cpu=1000M", "--time=00:01:00"} <= set(
        ready.arguments
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('class = "ssh"', "supports only Slurm"),
        (CLUSTER_TOML + '[submit]\nallocation = "two"', "submit.allocation = 'two'"),
        (CLUSTER_TOML.replace('"1GB"', '"much"'), "much"),
        (CLUSTER_TOML + """[submit]\ndirectives = ["--comment=it's"]""", "No closing quotation"),
    ],
)
def test_a_mistake_is_named(folder, text, message):
    (folder / "slurm.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        build_submission(find_plan(folder), folder / "slurm.toml")


def submit(folder, *options):
    arguments = ["submit", str(find_plan(folder)), "--cluster", str(folder / "slurm.toml"), "--dry-run", *options]
    return CliRunner().invoke(commands, arguments, standalone_mode=False)


def test_a_deadline_is_the_same_moment_whenever_the_job_starts(folder):
    before = parse_deadline("06:00")
    [fixed] = re.findall(r"--deadline (\S+)", submit(folder, "--deadline", "06:00").output)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT06:00:00[+-]\d\d:\d\d", fixed)
    assert before <= parse_deadline(fixed) <= parse_deadline("06:00")
    assert parse_deadline(fixed, datetime(2040, 1, 1)) == parse_deadline(fixed)  # noqa: DTZ001
    start = time.time()
    [fixed] = re.findall(r"--deadline (\S+)", submit(folder, "--deadline", "90m").output)
    assert start - 1 <= parse_deadline(fixed) - 90 * 60 <= time.time()
    assert "--deadline" not in submit(folder).output


def wait_for_end(slurm, job):
    """Wait for a job's stable end: a job that is requeued passes through a final state."""
    final, is_final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"), []

    def has_ended():
        job_info = slurm.run("scontrol", "show", "job", job)
        is_final.append(any(f"JobState={state}" in job_info for state in final))
        time.sleep(0.5)
        return len(is_final) >= 16 and all(is_final[-16:])

    wait_until(has_ended, "end of the job", 900)
    return slurm.run("scontrol", "show", "job", job)


METRIC = "import time\n\n\ndef score(outputs, gold):\n    time.sleep({pause})\n    return sum(map(float, outputs)) / len(outputs)\n"

PLAN = """
name = "night"
metrics = ["{module}:score"]
trials = 2000
[[test_set]]
name = "news"
format = "labels"
gold = "gold.csv"
systems = ["a.csv", "b.csv", "c.csv"]
"""


def write_night(folder, module, pause):
    """Write a plan with a slow user metric into a folder of its own, and return its path."""
    folder.mkdir()
    (folder / f"{module}.py").write_text(METRIC.format(pause=pause))
    for k, name in enumerate(["gold", "a", "b", "c"]):
        column = "gold" if name == "gold" else "prediction"
        rows = "".join(f"q{j},{(j * j * (k + 2) + 5 * k + j) % (7 + k)}\n" for j in range(40))
        (folder / f"{name}.csv").write_text(f"item,{column}\n{rows}")
    (folder / "plan.toml").write_text(PLAN.format(module=module))
    return folder / "plan.toml"


def read_counts(plan):
    """Return the counts in a finished plan's store, without counting anything."""
    result = run_sigdask("run", plan, "--cluster", "none", "--json", "-", cwd=plan.parent)
    assert result.returncode == 0, result.stderr
    results = json.loads(result.stdout)["results"]
    return [(r["a"], r["b"], r["n_trials"], r["n_extreme"], r["second_run"]["n_extreme"]) for r in results]


@pytest.mark.slow
def test_a_submitted_plan_goes_through_its_time_limit_and_ends_with_the_counts_of_this_process(slurm, folder):
    local_plan = write_night(folder / "here", "quick_metric", 0)
    slurm_plan = write_night(folder / "there", "slow_metric", 0.005)
    (slurm_plan.parent / "slurm.toml").write_text(CLUSTER_TOML)
    ready = build_submission(slurm_plan, slurm_plan.parent / "slurm.toml", margin=30)
    job_info = wait_for_end(slurm, ready.send())
    log = next(folder.glob("*.log")).read_text()
    assert "JobState=COMPLETED" in job_info, log
    assert "Restarts=0" not in job_info, log
    assert run_sigdask("status", slurm_plan, cwd=slurm_plan.parent).returncode == 0
    assert read_counts(slurm_plan) == read_counts(local_plan)


def find_drivers(plan):
    """Return the processes that run a plan."""
    commands = [(process, " ".join(process.info["cmdline"] or ())) for process in psutil.process_iter(["cmdline"])]
    return [process for process, command in commands if f"sigdask run {plan}" in command]


@pytest.mark.slow
def test_a_driver_that_is_killed_in_its_job_loses_nothing(slurm, folder):
    local_plan = write_night(folder / "here", "quick_metric", 0)
    slurm_plan = write_night(folder / "there", "slow_metric", 0.002)
    (slurm_plan.parent / "slurm.toml").write_text(CLUSTER_TOML.replace("00:01:00", "00:05:00"))
    job = build_submission(slurm_plan, slurm_plan.parent / "slurm.toml").send()
    wait_until(lambda: find_drivers(slurm_plan), "driver", 300)
    time.sleep(10)
    [driver] = find_drivers(slurm_plan)
    driver.kill()
    assert "JobState=FAILED" in wait_for_end(slurm, job)
    again = build_submission(slurm_plan, slurm_plan.parent / "slurm.toml").send()
    assert "JobState=COMPLETED" in wait_for_end(slurm, again)
    assert read_counts(slurm_plan) == read_counts(local_plan)


def test_the_example_of_a_night_runs_in_one_allocation(slurm, folder):
    plan = write_night(folder / "here", "quick_metric", 0)
    (plan.parent / "slurm.toml").write_text(CLUSTER_TOML)
    size = ["--ntasks=2", "--cpus-per-task=1", "--mem-per-cpu=500M", "--time=5"]
    output = ["--parsable", f"--output={folder}/night.log"]
    program = Path(sys.executable).parent / "sigdask"
    export = f"--export=ALL,SIGDASK={program},SIGDASK_CLUSTER={plan.parent}/slurm.toml,SIGDASK_DEADLINE=10m"
    job = slurm.run(
        "sbatch", *size, *output, export, str(ROOT / "deploy" / "slurm" / "night.sbatch"), str(plan)
    ).strip()
    assert "JobState=COMPLETED" in wait_for_end(slurm, job), (folder / "night.log").read_text()
    assert f"{7500 + 2**14:,} trials counted" in (folder / "night.log").read_text()  # the latter are resamples
