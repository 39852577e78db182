"""An overview of many test sets in the terminal: a row for each, the totals, and each different warning once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigdask.report.comparisons import format_deciding_p
from sigdask.report.document import Column, DocumentTable
from sigdask.report.screen import MAX_NOTES, count_verdicts, iter_shared_notes, select_warnings
from sigdask.report.sentences import describe_chance, describe_checks, find_doubtful
from sigdask.report.standings import SOME, GroupKey, Standings, get_group_key
from sigdask.report.text import render_table
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import get_result
from sigdask.results.table import Table
from sigdask.text import format_count, make_printable

MAX_LISTED = 20
"""Number of rows of the table shown by default."""


def format_overview(
    table: Table, *, changed: Collection[GroupKey] = (), everything: bool = False, width: int | None = None
) -> str:
    """Return a table with one row for each test set, subset and metric, and a line of totals below it.

    If rows are omitted, changed rows are kept first, then those with a failed check, then those with most doubtful
    results. Rows are in the order of the plan.

    Parameters
    ----------
    table : Table
        The comparisons of all test sets.
    changed : collection of (str, str, str)
        Test set, subset and metric of the groups that changed since the previous run.
    everything : bool
        List all rows, in the order of the plan.
    width : int, optional
        Columns of the terminal; unlimited when None (a pipe).
    """
    standings = Standings(table)
    n_groups = standings.n_groups
    keys = _list_keys(table, standings.first_rows)
    n_doubtful = np.bincount(standings.group[find_doubtful(table)], minlength=n_groups)
    has_alarm = np.bincount(standings.group[table.has_disagreement], minlength=n_groups) > 0
    is_changed = np.array([key in changed for key in keys], np.bool_)
    order = np.lexsort((-n_doubtful, ~has_alarm, ~is_changed))
    shown = range(n_groups) if everything else sorted(order[:MAX_LISTED].tolist())
    has_metrics = len({key[2] for key in keys}) > 1
    verdicts = [_describe_group(table.take(np.flatnonzero(standings.group == g))) for g in shown]
    headers = ("test set", "subset", "metric", "best system", "verdict", "p", "doubtful", "changed")
    rows = [
        (*keys[g], *verdict, f"{n_doubtful[g] or ''}", "yes" if is_changed[g] else "")
        for g, verdict in zip(shown, verdicts, strict=True)
    ]
    columns = [
        Column(header, texts, is_name=header not in {"p", "doubtful"})
        for header, texts in zip(headers, zip(*rows, strict=True), strict=True)
    ]
    kept = [column for column in columns if any(column.texts) and (column.header != "metric" or has_metrics)]
    more = f"{len(shown)} of {n_groups:,} rows, chosen by changes, failed checks and doubtful results (--all lists all)"
    shown_table = render_table(DocumentTable.of("", kept), width)
    return "\n".join([shown_table, *[more] * (len(shown) < n_groups), "", *_describe_totals(table)])


def _list_keys(table: Table, rows: NDArray[np.int64]) -> list[GroupKey]:
    return [get_group_key(table, row) for row in rows.tolist()]


def list_changed_groups(sides: Collection[tuple[Table, NDArray[np.int64]]]) -> set[GroupKey]:
    """Return the groups of the rows (-1 for none) of tables before and after a change."""
    return {key for table, rows in sides for key in _list_keys(table, rows[rows >= 0])}


def _describe_group(table: Table) -> tuple[str, str, str]:
    """Return a group's best system ("" at a tie), the number of significant comparisons, and the p of its lead."""
    c = Standings(table)
    count = f"{np.count_nonzero(c.outcome == 1):,} of {len(table):,} significant"
    if c.design == SOME:
        return "", count, ""
    lead = get_result(table, c.list_leading_rows()[0])
    return lead.better() or "", count, format_deciding_p(lead, table.alpha)


def _describe_totals(table: Table) -> Iterator[str]:
    """Yield lines on the number of comparisons by verdict and on the checks of all of them."""
    yield f"{format_count(len(np.unique(table.test_set.codes)), 'test set')}, {count_verdicts(table)}"
    yield from describe_chance(table, table.number_rows("test_set", "metric"))
    if table.has_disagreement.any():
        yield f"checks: {describe_checks(table)}"


def format_shared_warnings(sets: Mapping[str, ComparisonResults], *, everything: bool) -> Iterator[str]:
    """Yield each different warning once, with the test sets that it holds for; only the first ones by default."""
    warned = {name: replace(results, notes=tuple(select_warnings(results))) for name, results in sets.items()}
    notes = [*iter_shared_notes(warned)]
    for note in notes if everything else notes[:MAX_NOTES]:
        yield make_printable(f"warning: {note.text}")
    if len(notes) > MAX_NOTES and not everything:
        yield f"warning: and {len(notes) - MAX_NOTES:,} more warnings (--all lists all)"
