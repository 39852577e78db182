"""Which comparisons the page of a run opens: those that the gate looks at and the close ones, with the data at hand."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from sigdask.analysis.details.details import ComparisonDetails, opened
from sigdask.analysis.details.select import chosen
from sigdask.nightly.gate import GateVerdict, Key
from sigdask.nightly.run.work import Batch
from sigdask.nightly.store.status import PlanReport
from sigdask.report.summary import verdict
from sigdask.results.table import Table


def opened_for(batches: Sequence[Batch], report: PlanReport, gate: GateVerdict | None) -> tuple[ComparisonDetails, ...]:
    """Open comparisons of a run, by their rows of all results of its report, one test set after the other."""
    shown = [results for results in report.results.values() if len(results)]
    if not shown:
        return ()
    table = Table.joined([results.table for results in shown])
    before = np.cumsum([0, *map(len, shown)])
    close = [row + start for results, start in zip(shown, before.tolist(), strict=False)
             for row in verdict.of(results).close.tolist()]  # fmt: skip
    rows = chosen(len(table), close, _looked_at(table, gate))
    every = {one.row: one for batch in batches for one in opened(batch.study, table, rows)}
    return tuple(every[row] for row in rows.tolist() if row in every)


def _looked_at(table: Table, gate: GateVerdict | None) -> Iterator[int]:
    """Yield the rows that the rules of a gate speak of, failures first."""
    if gate is None:
        return
    findings = [finding for rule in gate.rules for finding in rule.findings]
    keys = dict.fromkeys(finding.key for finding in sorted(findings, key=lambda finding: finding.passed))
    row_of = _rows(table, keys)
    yield from (row_of[key] for key in keys if key in row_of)


def _rows(table: Table, keys: Container[Key]) -> dict[Key, int]:
    """Return the rows of some comparisons."""
    columns = (getattr(table, name).listed() for name in ("test_set", "subset", "a", "b", "metric"))
    found = {}
    for row, (test_set, subset, a, b, metric) in enumerate(zip(*columns, strict=True)):
        key = test_set, subset and subset.value, a, b, metric.name
        if key in keys:
            found[key] = row
    return found
