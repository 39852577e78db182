"""Select and open the comparisons that a run's page details: gated and borderline ones."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from sigdask.analysis.details.details import ComparisonDetails, compute_details
from sigdask.analysis.details.select import select_rows
from sigdask.nightly.gate import ComparisonKey, GateVerdict
from sigdask.nightly.run.work import Batch
from sigdask.nightly.store.status import PlanReport
from sigdask.report.summary import verdict
from sigdask.results.table import Table


def open_details(
    batches: Sequence[Batch], report: PlanReport, gate: GateVerdict | None
) -> tuple[ComparisonDetails, ...]:
    """Return the details of the gated and borderline comparisons, with their rows among all results."""
    nonempty = [results for results in report.results.values() if len(results)]
    if not nonempty:
        return ()
    table = Table.join([results.table for results in nonempty])
    offsets = np.cumsum([0, *map(len, nonempty)])
    borderline = [row + start for results, start in zip(nonempty, offsets.tolist(), strict=False)
             for row in verdict.build_verdict(results).close.tolist()]  # fmt: skip
    rows = select_rows(len(table), borderline, _iter_gated_rows(table, gate))
    details_by_row = {detail.row: detail for batch in batches for detail in compute_details(batch.study, table, rows)}
    return tuple(details_by_row[row] for row in rows.tolist() if row in details_by_row)


def _iter_gated_rows(table: Table, gate: GateVerdict | None) -> Iterator[int]:
    """Yield the rows that the rules of a gate judge, failures first."""
    if gate is None:
        return
    findings = [finding for rule in gate.rules for finding in rule.findings]
    keys = dict.fromkeys(finding.key for finding in sorted(findings, key=lambda finding: finding.passed))
    rows_by_key = _find_rows(table, keys)
    yield from (rows_by_key[key] for key in keys if key in rows_by_key)


def _find_rows(table: Table, keys: Container[ComparisonKey]) -> dict[ComparisonKey, int]:
    """Return the row of each comparison in `keys` that the table has."""
    columns = (getattr(table, name).to_list() for name in ("test_set", "subset", "a", "b", "metric"))
    rows = {}
    for row, (test_set, subset, a, b, metric) in enumerate(zip(*columns, strict=True)):
        key = test_set, subset and subset.value, a, b, metric.name
        if key in keys:
            rows[key] = row
    return rows
