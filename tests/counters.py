"""Extraction counters that worker processes import by name, as they import those of metrics."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.errors import InputError
from sigdask.metrics.base import Metric
from sigdask.metrics.extraction import Extraction


def lengths(systems, gold, *, times=1, log="", refuses="", rests=0.0):
    """Count lengths of outputs and gold; log every call, and fail if asked to."""
    if log:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {len(systems)} {len(gold)}\n")
    if refuses and any(refuses in text for outputs in systems for text in outputs):
        raise InputError(f"{refuses!r} is refused")
    time.sleep(rests)
    wanted = [len(right) for right in gold]
    return [np.column_stack([times * np.array(list(map(len, outputs))), wanted]) for outputs in systems]


def deadly(systems, gold):
    """Kill every process except the one that probes a few items."""
    if len(gold) > 70:
        os.kill(os.getpid(), signal.SIGKILL)
    return [np.zeros((len(outputs), 1), np.int64) for outputs in systems]


def build_metric(name="lengths", counter=lengths, block=4096, **options):
    extraction = Extraction(counter.__name__, counter, options, block=block)
    return Metric(name, lambda counts: extraction.count(counts, []), extraction)


def build_texts(n_items, n_systems, seed=0):
    """Build random texts of a small vocabulary, where each system copies some of the gold standard."""
    rng = np.random.default_rng(seed)
    words = np.array(
        ["the", "a", "cat", "dog", "sat", "on", "mat", "and", ",", ".", "ran", "house", "big", "müde", "猫"]
    )

    def texts():
        return [" ".join(rng.choice(words, rng.integers(1, 25))) for _ in range(n_items)]

    gold = texts()
    systems = [[g if rng.random() < 0.3 else t for g, t in zip(gold, texts(), strict=True)] for _ in range(n_systems)]
    systems[0][n_items // 2] = ""
    ones = np.ones((n_items, 1), np.int64)
    return Counts(
        systems=tuple(f"s{k}" for k in range(n_systems)),
        fields={"segments": ones, "items": ones},
        n_items=n_items,
        outputs=Outputs(tuple(map(to_object_array, systems)), to_object_array([(g,) for g in gold])),
    )
