"""Tests of counting: the same counts on every cluster and in every partition."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from builders import build_panel, build_rng

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.execution import run
from sigdask.execution.clusters import Cluster, choose_cluster, connect
from sigdask.execution.clusters.description import parse_description
from sigdask.execution.run import count_jobs, split_jobs
from sigdask.metrics.forms import Ratios
from sigdask.randomization.slabs import Job, sum_trials

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))
N_TRIALS = 30_000


@pytest.fixture(scope="module")
def jobs():
    rng = build_rng(0)
    tp = rng.integers(0, 3, (500, 4))
    values = np.stack([tp, tp + rng.integers(0, 3, tp.shape), np.full_like(tp, 2)], axis=-1)
    large = build_panel(values, [F1, Ratios(((1, 0, 0),), ((0, 0, 1),))])
    small = build_panel(values[:15, :2], [F1])
    return [
        Job(large, N_TRIALS, 0),
        Job(large, N_TRIALS, 1),
        Job(small, 5000),
        Job(small.build_enumeration(0, 0), 2 ** int(small.n_discordant[0, 0])),
    ]


@pytest.fixture(scope="module")
def expected(jobs):
    return [tally.counts.tolist() for tally in count_jobs(jobs, cluster="none")]


def list_counts(jobs, **options):
    return [tally.counts.tolist() for tally in count_jobs(jobs, **options)]


@pytest.mark.parametrize("blocks", [1, 3, 7, None])
def test_any_partition_gives_the_same_counts(jobs, expected, blocks):
    assert list_counts(jobs, cluster="none", blocks_per_task=blocks) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_threads_gives_the_same_counts(jobs, expected, workers):
    assert list_counts(jobs, cluster="threads", workers=workers, blocks_per_task=1) == expected


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.cluster), 2])
@pytest.mark.slow
def test_any_number_of_worker_processes_gives_the_same_counts(jobs, expected, workers):
    with connect("local", workers=workers) as cluster:
        for blocks in (1, 7):
            assert list_counts(jobs, cluster=cluster, blocks_per_task=blocks) == expected


@pytest.mark.slow
def test_a_cluster_of_no_workers_starts_some_when_there_is_work(jobs, expected):
    description = parse_description({"class": "local", "minimum": 0, "maximum": 2}, source="zero.toml")
    with connect(description) as cluster:
        assert not cluster.client.nthreads()
        assert list_counts(jobs, cluster=cluster, blocks_per_task=1) == expected
        assert 1 <= len(cluster.client.nthreads()) <= 2


SHADOW = "from pathlib import Path\nPath(__file__).with_suffix('.executed').touch()\nraise ImportError(__file__)\n"


@pytest.mark.slow
def test_worker_processes_import_no_module_of_the_working_directory(jobs, expected, tmp_path, monkeypatch):
    for name in ("random", "signal", "numpy", "socket"):
        (tmp_path / f"{name}.py").write_text(SHADOW)
    monkeypatch.chdir(tmp_path)
    with connect("local", workers=1) as cluster:
        assert list_counts(jobs, cluster=cluster) == expected
        assert not any(cluster.client.run(os.getenv, "PYTHONSAFEPATH").values())  # as for the user's own programs
    assert not list(tmp_path.glob("*.executed"))
    assert "PYTHONSAFEPATH" not in os.environ


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_an_error(monkeypatch):
    monkeypatch.setattr("sigdask.execution.clusters.connecting.CONNECT_SECONDS", 1)
    with (
        pytest.raises(InputError, match="no dask scheduler answers at tcp://127.0.0.1:1"),
        connect("tcp://127.0.0.1:1"),
    ):
        pass


def test_tasks_cover_every_trial_once(jobs):
    for seconds in (1e-4, 0.01, 10):
        tasks = split_jobs(jobs, [1e-6] * len(jobs), seconds)
        for k, job in enumerate(jobs):
            ranges = sorted((p.first, p.n_trials) for task in tasks for p in task if p.job == k)
            assert sum(n for _, n in ranges) == job.n_trials
            assert all(a + n == b for (a, n), (b, _) in itertools.pairwise(ranges))


def test_auto_stays_in_the_process_when_the_work_is_short():
    assert choose_cluster(0.01, vectorised=True) == "none"
    assert choose_cluster(1000, vectorised=True) in {"threads", "none"}
    assert choose_cluster(1000, vectorised=False) in {"local", "none"}


def test_progress_ends_at_all_trials(jobs):
    calls = []
    count_jobs(jobs, cluster=Cluster("none"), progress=lambda n_done, total: calls.append((n_done, total)))
    assert calls[-1][0] == calls[-1][1] == sum_trials(jobs)
    assert [n_done for n_done, _ in calls] == sorted(n_done for n_done, _ in calls)


@pytest.mark.cluster
def test_an_error_of_a_users_metric_on_a_worker_is_the_users_error(yeh):
    from sigdask.metrics.user import metric

    def fails(tp, predicted, gold):
        return np.where(tp + predicted + gold < 0, 0.0, np.inf if np.ndim(tp) else 1.0)

    with pytest.raises(InputError, match="inf for sums"):
        compare_all(yeh, metrics=[metric(fails)], cluster="local", workers=1, trials=100)


def test_a_panel_above_a_quarter_of_a_workers_memory_is_refused_before_it_is_sent(jobs, monkeypatch):
    from distributed import Client, LocalCluster

    one_worker = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**one_worker, memory_limit="4 GB") as small, Client(small) as client:
        assert list_counts(jobs[:1], cluster=client)
        monkeypatch.setattr(run, "QUARTER", 10**6)
        with pytest.raises(InputError, match=r"needs workers with \d.* GiB of memory; the smallest has 3.73 GiB"):
            count_jobs(jobs, cluster=client)


@pytest.mark.slow
def test_memory_does_not_grow_with_trials(tmp_path):
    script = tmp_path / "peak.py"
    script.write_text(
        "import resource, sys\nimport numpy as np\nfrom sigdask.api import compare\n"
        "a, b = np.random.default_rng(0).random((2, 1000))\n"
        "compare(a, b, trials=int(sys.argv[1]), cluster='none')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    peaks = [int(subprocess.check_output([sys.executable, script, str(n)])) for n in (2**16, 2**22)]
    assert peaks[1] < peaks[0] + 10 * 1024  # kB
