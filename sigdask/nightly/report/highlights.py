"""What is looked at first of a plan's run: what changed, counted, and which comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.nightly.store.status import Changes, PlanReport
from sigdask.results.table import Table


def first(report: PlanReport, table: Table, most: int) -> tuple[NDArray[np.int64], list[str]]:
    """Return the rows that are looked at first, and why: of the gate, failures first, what changed, then others.

    Parameters
    ----------
    report : PlanReport
        Of a run.
    table : Table
        All that it found.
    most : int
        Rows in all.
    """
    rank = np.full(len(table), 3)
    place = {key: k for k, key in enumerate(keys(table))}
    for key in _otherwise(report.changes):
        if key in place:
            rank[place[key]] = 2
    verdict = report.run.details.get("verdict") or {"rules": ()}
    for finding in (finding for rule in verdict["rules"] for finding in rule["findings"]):
        key = tuple(finding["key"])
        if key in place:
            rank[place[key]] = min(rank[place[key]], 1 if finding["passed"] else 0)
    rows = np.argsort(rank, kind="stable")[:most].astype(np.int64)
    words = ("fails the gate", "judged by the gate", "changed", "")
    return rows, [words[k] for k in rank[rows].tolist()]


def _otherwise(changes: Changes) -> Iterator[tuple[Any, ...]]:
    """Yield the comparisons of before whose scores or verdicts are otherwise now."""
    names = keys(changes.now)
    for after, kinds in zip(changes.after.tolist(), changes.kinds, strict=True):
        if after >= 0 and "new" not in kinds and {"lost", "gained", "scores"} & {*kinds}:
            yield names[after]


def keys(table: Table) -> list[tuple[Any, ...]]:
    """Return test set, value of the subset (or None), systems and metric of each row, as the gate knows them."""
    subsets = [subset and subset.value for subset in table.subset.listed()]
    metrics = [score.name for score in table.metric.listed()]
    return list(zip(table.test_set.listed(), subsets, table.a.listed(), table.b.listed(), metrics, strict=True))


ONE = {"lost": "significance lost", "gained": "significance gained"}
SEVERAL = {
    "lost": "significances lost", "gained": "significances gained", "new": "new", "gone": "gone",
    "scores": "with other scores", "p": "with another p", "details": "with other details",
}  # fmt: skip
"""What changes are called that are counted, in their order."""


def counted(changes: Changes) -> str:
    """Count what changed, significances first."""
    numbers = Counter(kind for kinds in changes.kinds for kind in kinds)
    return ", ".join(
        f"{n:,} {ONE.get(kind, text) if n == 1 else text}" for kind, text in SEVERAL.items() if (n := numbers[kind])
    )
