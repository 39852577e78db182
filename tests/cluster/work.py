"""Work for cluster tests, importable by workers: small tasks, some slow, some deadly."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
from builders import build_panel, build_rng

from sigdask.execution.run import count_jobs
from sigdask.metrics.base import BlackBox
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.slabs import Job

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))


def slow_sum(outputs, _gold):
    """Sum the outputs slowly, so that something can happen meanwhile."""
    time.sleep(0.002)
    return float(np.sum(outputs))


def slow_sum_until(path):
    """Return a metric that is slow until a file exists."""
    return partial(_slow_unless_exists, str(path))


def _slow_unless_exists(path, outputs, gold):
    return fast_sum(outputs, gold) if Path(path).exists() else slow_sum(outputs, gold)


def fast_sum(outputs, _gold):
    """Sum the outputs without the sleep, for the same counts."""
    return float(np.sum(outputs))


def deadly_metric(_outputs, _gold):
    """Kill the calling process, unless SIGDASK_TEST_DRIVER names it as the driver."""
    if os.environ.get("SIGDASK_TEST_DRIVER") != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def exact_jobs(n_trials=30_000):
    """Return jobs of counts: a large one of four systems, sent once, and a small one."""
    rng = build_rng(0)
    tp = rng.integers(0, 3, (500, 4))
    values = np.stack([tp, tp + rng.integers(0, 3, tp.shape), np.full_like(tp, 2)], axis=-1)
    return [
        Job(build_panel(values, [F1]), n_trials, 0, label="large"),
        Job(build_panel(values[:15, :2], [F1]), 5000, label="small"),
    ]


def slow_jobs(n_trials=2000, *, function=slow_sum, label="slow"):
    """Return a job of a black box that takes 4 ms a trial."""
    rng = build_rng(1)
    a, b = rng.integers(0, 9, (2, 30)).astype(object)
    panel = OutputsPanel((1, 2), BlackBox(label, function), a, b, None, np.arange(30), 30)
    return [Job(panel, n_trials, label=label)]


def counted(jobs, **options):
    """Return the counts of jobs, as lists."""
    return [tally.counts.tolist() for tally in count_jobs(jobs, **options)]
