"""Many data sets compared by one call, each as a pair of systems: as a user would, thousands a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask import compare_all
from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Form, Ratios
from sigdask.report.presentable import Results

MEAN = Ratios(((1, 0),), ((0, 1),))
QUIET: dict[str, Any] = {"second_run": False, "cluster": "none", "cache": False, "beside": False}
"""What is not asked for here."""


def counts_of(
    fields: Mapping[str, NDArray[Any]], groups: Mapping[str, Sequence[str]] | None = None, name: str = ""
) -> Counts:
    """Return data sets as systems a0, b0, a1, b1, …; fields of shape (n_items, 2 n_sets), or of one column."""
    n_items, n_systems = max((field.shape for field in fields.values()), key=lambda shape: shape[1])
    names = tuple(f"{side}{k}" for k in range(n_systems // 2) for side in "ab")
    return Counts(names, dict(fields), n_items, groups=groups or {}, name=name)


def interleaved(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Put the columns of each pair beside each other, shape (n_items, 2 n_sets)."""
    return np.stack([a, b], axis=-1).reshape(len(a), -1)


def scores_of(a: NDArray[Any], b: NDArray[Any], groups: Mapping[str, Sequence[str]] | None = None) -> Counts:
    """Return data sets of item scores, shape (n_items, n_sets) a system."""
    return counts_of({"score": interleaved(a, b), "items": np.ones((len(a), 1), np.int64)}, groups)


def pairs(counts: Counts) -> list[tuple[str, str]]:
    """Return the two systems of each data set."""
    return list(zip(counts.systems[::2], counts.systems[1::2], strict=True))


def compared(counts: Counts, *, form: Form = MEAN, **how: Any) -> Results:
    """Compare the two systems of each data set, none adjusted."""
    metric = BoundMetric("mean", tuple(counts.fields), form)
    how = {"adjust": None if "stop" in how else "none", **QUIET, **how}
    return compare_all(counts, metrics=[metric], pairs=pairs(counts), **how)


def p_of(counts: Counts, **how: Any) -> NDArray[np.float64]:
    """Return p of each data set."""
    return compared(counts, **how).table.p_value


def seed_of(rng: np.random.Generator) -> int:
    """Return a seed for the shuffles of one batch."""
    return int(rng.integers(2**31))
