"""Table of many test sets: the best system of each by each metric, its verdict, and how many results are doubtful."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import number_rows
from sigdask.report.layout import format_table
from sigdask.report.summary.checks import describe_checks, find_doubtful
from sigdask.report.summary.headline import count_tests, describe_chance
from sigdask.report.summary.standings import BASELINE, SOME, GroupKey, Standings, get_group_key, join_phrases
from sigdask.report.terminal.remarks import select_warnings
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import CONTESTED, Table
from sigdask.statistics.rounding import format_p
from sigdask.text import format_count, format_list, make_printable

MAX_LISTED = 20
"""Number of rows of the table shown by default."""

MAX_WARNINGS = 5
"""Number of different warnings shown by default."""

MAX_NAMED = 3
"""Maximum number of systems or test sets that a line names."""


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
    standings = Standings.from_table(table)
    keys = _list_keys(table, standings.first_rows)
    n_doubtful = np.bincount(standings.group[find_doubtful(table)], minlength=standings.n_groups)
    is_doubtful = np.bincount(standings.group[table.has_disagreement], minlength=standings.n_groups) > 0
    is_changed = np.array([key in changed for key in keys], np.bool_)
    order = np.lexsort((-n_doubtful, ~is_doubtful, ~is_changed))
    shown = range(len(keys)) if everything else sorted(order[:MAX_LISTED].tolist())
    rows = [
        [
            *keys[g],
            *_describe_group(table.take(np.flatnonzero(standings.group == g))),
            f"{n_doubtful[g] or ''}",
            "yes" if is_changed[g] else "",
        ]
        for g in shown
    ]
    names = ["test set", "subset", "metric", "best system", "verdict", "p", "doubtful", "changed"]
    optional = {"subset": any(key[1] for key in keys), "metric": len({key[2] for key in keys}) > 1, "changed": changed}
    kept = [k for k, name in enumerate(names) if optional.get(name, True)]
    parts = [format_table([names[k] for k in kept], [[row[k] for k in kept] for row in rows], width)]
    if len(rows) < len(keys):
        parts.append(
            f"{len(rows)} of {len(keys):,} rows, chosen by changes, failed checks and number of doubtful results "
            "(--all lists all)"
        )
    return "\n".join([*parts, "", _describe_totals(table)])


def _list_keys(table: Table, rows: NDArray[np.int64]) -> list[GroupKey]:
    """Return the test set, subset and metric of some rows."""
    return [get_group_key(table, row) for row in rows.tolist()]


def list_changed_groups(sides: Collection[tuple[Table, NDArray[np.int64]]]) -> set[GroupKey]:
    """Return the groups of the rows (-1 for none) of tables before and after a change."""
    return {key for table, rows in sides for key in _list_keys(table, rows[rows >= 0])}


def _describe_group(table: Table) -> tuple[str, str, str]:
    """Return the best system of one group, the verdict on it in a few words, and the p of that verdict."""
    c = Standings.from_table(table)
    if c.design == BASELINE:
        return _describe_baseline(table, c)
    if c.design == SOME:
        n = int(np.count_nonzero(c.outcome == 1))
        return "", f"{n:,} of {len(table):,} significant", ""
    top, row = int(c.top[0]), c.find_rival(0)
    others = [c.get_opponent(k, top) for k in c.near_top_rows.tolist()]
    if not others:
        verdict = "better than the other" if len(table) == 1 else "better than all others"
    else:
        verdict = f"not better than {_name_some(others)}"
    return c.names[top], verdict, _format_p(table, row)


def _describe_baseline(table: Table, c: Standings) -> tuple[str, str, str]:
    """Return the best of the systems that were compared with a baseline, how many are better, and its p."""
    row = int(np.nanargmax(np.where(np.isnan(c.ahead), -np.inf, c.ahead)))
    base = c.names[int(c.b[row])]
    kinds = (("better than", c.ahead > 0), ("worse than", c.ahead < 0))
    counts = [(name, int(np.count_nonzero((c.outcome == 1) & side))) for name, side in kinds]
    parts = [f"{n:,} of {len(table):,} {name} {base}" for name, n in counts if n]
    best = c.names[int((c.a if c.ahead[row] > 0 else c.b)[row])]
    return best, join_phrases(parts) if parts else f"none differs from {base}", _format_p(table, row)


def _name_some(systems: list[str]) -> str:
    return join_phrases(systems) if len(systems) <= MAX_NAMED else f"{len(systems):,} others"


def _format_p(table: Table, row: int) -> str:
    p = table.p_value[row] if np.isnan(table.p_adjusted[row]) else table.p_adjusted[row]
    return "" if np.isnan(p) else format_p(float(p), table.alpha)


def _describe_totals(table: Table) -> str:
    """Return lines on the number of comparisons by verdict and on the checks of all of them."""
    n_sets = len(np.unique(table.test_set.codes))
    n_significant, n_undecided, n_contested = (int(np.count_nonzero(table.outcome == k)) for k in (1, -1, CONTESTED))
    counts = [
        f"{n_significant:,} significant at {table.alpha:g}",
        *([f"{n_undecided:,} undecided"] if n_undecided else []),
        *([f"{n_contested:,} contested"] if n_contested else []),
        f"{len(table) - n_significant - n_undecided - n_contested:,} not significant",
    ]  # fmt: skip
    n = count_tests(table, number_rows(table.test_set.codes, table.metric.codes))
    noun = "test sets" if n == n_sets else "comparisons" if n == len(table) else "families (metrics of test sets)"
    lines = [f"{format_count(n_sets, 'test set')}, {format_count(len(table), 'comparison')}: {', '.join(counts)}"]
    lines += describe_chance(n, table.alpha, noun)
    return "\n".join([*lines, *([f"checks: {describe_checks(table)}"] if table.has_disagreement.any() else [])])


def format_shared_warnings(results_by_set: Mapping[str, ComparisonResults], *, everything: bool) -> Iterator[str]:
    """Yield each different warning once, with the test sets that it holds for."""
    sets_by_text: dict[str, list[str]] = {}
    for name, results in results_by_set.items():
        for note in select_warnings(results):
            sets_by_text.setdefault(note.text, []).append(name)
    texts = sorted(sets_by_text, key=lambda text: -len(sets_by_text[text]))
    shown = texts if everything else texts[:MAX_WARNINGS]
    for text in shown:
        yield make_printable(f"warning ({format_list(sets_by_text[text], MAX_NAMED)}): {text}")
    if len(shown) < len(texts):
        yield f"warning: and {len(texts) - len(shown):,} more warnings (--all lists all)"
