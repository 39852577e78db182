"""Details of the comparisons that a run's page opens: gated, leading and doubtful ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sigdask.analysis.details import ComparisonDetails, compute_details, select_rows
from sigdask.nightly.gate.rules import ComparisonKey, GateVerdict
from sigdask.nightly.report.page import list_keys
from sigdask.nightly.run.work import Batch
from sigdask.nightly.store.status import PlanReport
from sigdask.report.sentences import build_verdict
from sigdask.report.standings import Standings
from sigdask.results.table import Table


def list_gated_comparisons(gate: GateVerdict | None) -> list[ComparisonKey]:
    """Return the comparisons that the rules of a gate judge, failures first."""
    findings = [] if gate is None else [finding for rule in gate.rules for finding in rule.findings]
    return [finding.key for finding in sorted(findings, key=lambda finding: finding.passed)]


def open_details(
    batches: Sequence[Batch],
    report: PlanReport,
    gated: Sequence[ComparisonKey] = (),
) -> tuple[ComparisonDetails, ...]:
    """Return the details of gated, leading and doubtful comparisons, with their rows among all results."""
    nonempty = [results for results in report.results.values() if len(results)]
    if not nonempty:
        return ()
    table = Table.join([results.table for results in nonempty])
    offsets = np.cumsum([0, *map(len, nonempty)])
    doubtful = [row + start for results, start in zip(nonempty, offsets.tolist(), strict=False)
             for row in build_verdict(results).doubtful.tolist()]  # fmt: skip
    leading = Standings(table).list_leading_rows()
    rows = select_rows(len(table), doubtful, _iter_rows(table, gated), leading)
    studies = [study for batch in batches for study in batch.studies]
    details_by_row = {detail.row: detail for study in studies for detail in compute_details(study, table, rows)}
    return tuple(details_by_row[row] for row in rows.tolist() if row in details_by_row)


def _iter_rows(table: Table, keys: Sequence[ComparisonKey]) -> Iterator[int]:
    """Yield the rows of some comparisons, in their order."""
    rows_by_key = {key: row for row, key in enumerate(list_keys(table))}
    yield from (rows_by_key[key] for key in dict.fromkeys(keys) if key in rows_by_key)
