"""Work for tests of clusters, by name so that workers can import it: small tasks, some slow, some deadly."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
from panel_of import panel_of, rng_of

from sigdask.execution.run import count_jobs
from sigdask.metrics.base import BlackBox
from sigdask.metrics.forms import Ratios
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels.outputs import OutputsPanel

F1 = Ratios(((2, 0, 0),), ((0, 1, 1),))


def slowly(outputs, _gold):
    """A metric that sleeps, so that something can happen while it runs."""
    time.sleep(0.002)
    return float(np.sum(outputs))


def slowly_until(path):
    """The same metric, that sleeps until a file is there: work that lasts as long as what it waits for."""
    return partial(_slow_without, str(path))


def _slow_without(path, outputs, gold):
    return at_once(outputs, gold) if Path(path).exists() else slowly(outputs, gold)


def at_once(outputs, _gold):
    """The same metric without the sleep: the same counts."""
    return float(np.sum(outputs))


def deadly(_outputs, _gold):
    """A metric that kills its worker, and would kill this process if it were called here."""
    if os.environ.get("SIGDASK_TEST_DRIVER") != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def exact_jobs(n_trials=30_000):
    """Jobs of counts: one of four systems that is sent once, one small."""
    rng = rng_of(0)
    tp = rng.integers(0, 3, (500, 4))
    values = np.stack([tp, tp + rng.integers(0, 3, tp.shape), np.full_like(tp, 2)], axis=-1)
    return [
        Job(panel_of(values, [F1]), n_trials, 0, label="large"),
        Job(panel_of(values[:15, :2], [F1]), 5000, label="small"),
    ]


def slow_jobs(n_trials=2000, *, function=slowly, label="slow"):
    """A job of a black box, 4 ms a trial."""
    rng = rng_of(1)
    a, b = rng.integers(0, 9, (2, 30)).astype(object)
    panel = OutputsPanel((1, 2), BlackBox(label, function), a, b, None, np.arange(30), 30)
    return [Job(panel, n_trials, label=label)]


def counted(jobs, **where):
    """The counts alone."""
    return [tally.counts.tolist() for tally in count_jobs(jobs, **where)]
