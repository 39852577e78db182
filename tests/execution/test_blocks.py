"""Tests of large panels on worker processes: split into blocks, with sums that tasks exchange."""

import itertools
import os
import pickle
import signal

import numpy as np
import pytest
from builders import build_panel, build_rng

from sigdask.execution import run as packing
from sigdask.execution.clusters import Cluster, connect
from sigdask.execution.run import TransientBytes, count_jobs, split_jobs
from sigdask.metrics.forms import Ratios
from sigdask.randomization import blocks
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.panels.build import FamilyMember
from sigdask.randomization.slabs import Job

F1, MEAN = Ratios(((2, 0, 0),), ((0, 1, 1),)), Ratios(((1, 0, 0),), ((0, 0, 1),))
N_TRIALS = 9000


@pytest.fixture(scope="module")
def jobs():
    rng = build_rng(0)
    tp = rng.integers(0, 3, (400, 9))
    values = np.stack([tp, tp + rng.integers(0, 3, tp.shape), np.full_like(tp, 2)], axis=-1)
    panel, small = build_panel(values, [F1, MEAN]), build_panel(values[:30, :2], [F1])
    members = np.array([[[0, row]] for row in range(len(panel.pairs))])
    family = MaxTFamily((FamilyMember(panel, 1),), members, studentised=True)
    return [Job(panel, N_TRIALS, 0), Job(panel, N_TRIALS, 1), Job(family, N_TRIALS), Job(small, N_TRIALS)]


@pytest.fixture
def cut(monkeypatch, jobs):
    """Make the panel count as large, with four blocks, and limit tasks to 1,024 trials."""
    panel = jobs[0].panel
    monkeypatch.setattr(blocks, "LARGE_BYTES", panel.nbytes // 2)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", panel.nbytes // 4)
    monkeypatch.setattr(blocks, "SUMS_BYTES", 1024 * 4 * panel.totals.size)


def list_counts(jobs, cluster):
    return [tally.counts.tolist() for tally in count_jobs(jobs, cluster=cluster)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.cluster)])
def test_any_number_of_workers_counts_the_same_from_blocks(jobs, cut, workers):
    expected = list_counts(jobs, "none")
    with connect("local", workers=workers) as cluster:
        sent = packing.send_panels(cluster, jobs)
        large, family, small = (sent[id(job.panel)] for job in jobs[1:])
        blocks_of_large, blocks_of_family = (argument.args[-1] for argument in (large, family))
        assert len(blocks_of_large[0]) == 4
        assert blocks_of_family[0] is blocks_of_large[0]  # sent once
        assert isinstance(small.args[-1], bytes)
        assert list_counts(jobs, cluster) == expected


def test_a_task_of_a_large_panel_has_no_more_trials_than_fit_its_workers(jobs, cut):
    tasks = split_jobs(jobs, [1e-9] * len(jobs), 1.0)
    sizes = [trials.n_trials for task in tasks for trials in task if trials.job < 3]
    assert max(sizes) == 1024
    assert sum(sizes) == 3 * N_TRIALS
    assert [trials.n_trials for task in tasks for trials in task if trials.job == 3] == [N_TRIALS]


def test_a_frame_that_travels_has_no_contributions(jobs, cut):
    packed_size = len(packing._pack_panel(jobs[0].panel, code=False))
    frame = len(packing._pack_panel(blocks.build_frame(jobs[0].panel), code=False))
    assert frame < packed_size / 3


@pytest.mark.chaos
def test_blocks_and_sums_that_die_with_a_worker_are_made_again(jobs, cut, monkeypatch):
    long = [Job(job.panel, 20 * job.n_trials, job.run) for job in jobs]
    expected = list_counts(long, "none")
    with connect("local", workers=3) as cluster:
        pids = list(cluster.client.run(os.getpid).values())
        kills = itertools.count()

        def progress(done, n_trials):
            if next(kills) in {3, 12}:
                os.kill(pids.pop(), signal.SIGKILL)

        tallies = count_jobs(long, cluster=Cluster("dask", 3, cluster.client), progress=progress)
        assert len(pids) == 1
    assert [tally.counts.tolist() for tally in tallies] == expected


def test_what_was_unpacked_is_let_go_where_it_arrived_and_kept_where_it_may_be_sent_again():
    sent = TransientBytes(b"panel")
    for _ in range(2):  # again, after a worker was lost
        received = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(sent))))  # by way of the scheduler
        assert (received.take(), received.content) == (b"panel", None)
    assert [sent.take(), sent.take()] == [b"panel", b"panel"]
