"""Highlights of a plan's run: counts of changes, and the comparisons to show first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.nightly.store.status import Changes, PlanReport
from sigdask.results.table import Table


def select_first(report: PlanReport, table: Table, n_rows: int) -> tuple[NDArray[np.int64], list[str]]:
    """Return the first rows to show, with reasons: gate failures, then other gated, then changed comparisons.

    Parameters
    ----------
    report : PlanReport
        Of a run.
    table : Table
        All that it found.
    n_rows : int
        Rows in all.
    """
    rank = np.full(len(table), 3)
    row_index = {key: k for k, key in enumerate(list_keys(table))}
    for key in _iter_changed(report.changes):
        if key in row_index:
            rank[row_index[key]] = 2
    verdict = report.run.details.get("verdict") or {"rules": ()}
    for finding in (finding for rule in verdict["rules"] for finding in rule["findings"]):
        key = tuple(finding["key"])
        if key in row_index:
            rank[row_index[key]] = min(rank[row_index[key]], 1 if finding["passed"] else 0)
    rows = np.argsort(rank, kind="stable")[:n_rows].astype(np.int64)
    words = ("fails the gate", "judged by the gate", "changed", "")
    return rows, [words[k] for k in rank[rows].tolist()]


def _iter_changed(changes: Changes) -> Iterator[tuple[Any, ...]]:
    """Yield the keys of comparisons whose scores or significance changed since the run before."""
    names = list_keys(changes.new)
    for row, kinds in zip(changes.new_rows.tolist(), changes.kinds, strict=True):
        if row >= 0 and "new" not in kinds and {"lost", "gained", "scores"} & {*kinds}:
            yield names[row]


def list_keys(table: Table) -> list[tuple[Any, ...]]:
    """Return the key by which the gate identifies each row's comparison: test set, subset, systems and metric."""
    subsets = [subset and subset.value for subset in table.subset.to_list()]
    metrics = [score.name for score in table.metric.to_list()]
    return list(zip(table.test_set.to_list(), subsets, table.a.to_list(), table.b.to_list(), metrics, strict=True))


SINGULAR = {"lost": "significance lost", "gained": "significance gained"}
PLURAL = {
    "lost": "significances lost", "gained": "significances gained", "new": "new", "gone": "gone",
    "scores": "with other scores", "p": "with another p", "details": "with other details",
}  # fmt: skip
"""What changes are called that are counted, in their order."""


def count_changes(changes: Changes) -> str:
    """Return text on how many results changed in each way, such as those that became significant."""
    numbers = Counter(kind for kinds in changes.kinds for kind in kinds)
    return ", ".join(
        f"{n:,} {SINGULAR.get(kind, text) if n == 1 else text}" for kind, text in PLURAL.items() if (n := numbers[kind])
    )
