"""Compare many data sets by one call, each as a pair of systems."""

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
QUIET: dict[str, Any] = {"second_run": False, "cluster": "none", "cache": False}
"""What is not asked for here."""


def build_counts(
    fields: Mapping[str, NDArray[Any]], groups: Mapping[str, Sequence[str]] | None = None, name: str = ""
) -> Counts:
    """Return data sets as systems a0, b0, a1, b1, …; a field has 2 n_sets columns or one."""
    n_items, n_systems = max((field.shape for field in fields.values()), key=lambda shape: shape[1])
    names = tuple(f"{side}{k}" for k in range(n_systems // 2) for side in "ab")
    return Counts(names, dict(fields), n_items, groups=groups or {}, name=name)


def interleave(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Put the two columns of each pair next to each other, shape (n_items, 2 n_sets)."""
    return np.stack([a, b], axis=-1).reshape(len(a), -1)


def build_score_counts(a: NDArray[Any], b: NDArray[Any], groups: Mapping[str, Sequence[str]] | None = None) -> Counts:
    """Return data sets of item scores; each system's scores have shape (n_items, n_sets)."""
    return build_counts({"score": interleave(a, b), "items": np.ones((len(a), 1), np.int64)}, groups)


def list_pairs(counts: Counts) -> list[tuple[str, str]]:
    """Return the two systems of each data set."""
    return list(zip(counts.systems[::2], counts.systems[1::2], strict=True))


def compare_pairs(counts: Counts, *, form: Form = MEAN, **options: Any) -> Results:
    """Compare the two systems of each data set, without adjustment."""
    metric = BoundMetric("mean", tuple(counts.fields), form)
    options = {"adjust": None if "stop" in options else "none", **QUIET, **options}
    return compare_all(counts, metrics=[metric], pairs=list_pairs(counts), **options)


def compute_p_values(counts: Counts, **options: Any) -> NDArray[np.float64]:
    """Return the p-value of each data set."""
    return compare_pairs(counts, **options).table.p_value


def draw_seed(rng: np.random.Generator) -> int:
    """Return a random seed for the comparisons of one batch."""
    return int(rng.integers(2**31))
