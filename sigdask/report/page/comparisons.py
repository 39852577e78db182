"""All comparisons as one grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.page.grids import GridColumn, PageTable, by_rows, coded, named
from sigdask.report.summary.sentences import is_adjusted
from sigdask.report.tables.cells import METHODS, confidence, ends_of, how, interval_text, is_bounded, p_cell
from sigdask.results.adjusted import intervals_to_show
from sigdask.results.assumptions import listed_assumptions
from sigdask.results.columns.adjusted import SIMULTANEOUS
from sigdask.results.columns.coded import Coded
from sigdask.results.messages import checks
from sigdask.results.messages.notes import texts
from sigdask.results.record import Result
from sigdask.results.table import AGREES, DISAGREES, Table
from sigdask.statistics.rounding import limits_text, score_text, signed

MOST_ROWS = 20_000
"""Comparisons listed; of more, those with the smallest p."""


def grid(table: Table, close: Sequence[int]) -> tuple[PageTable, NDArray[np.int64]]:
    """Return the grid of comparisons and the rows of the table that it lists.

    Parameters
    ----------
    table : Table
        All comparisons.
    close : sequence of int
        Rows that little could turn.
    """
    rows = listed(table)
    own = table.take(rows)
    left_out = ""
    if len(rows) < len(table):
        left_out = f"The {len(rows):,} with the smallest p of {len(table):,}; the JSON has all."
    more = {
        "rows": rows.tolist() if len(rows) < len(table) else None,
        "notes": _notes(own),
        "better": _better(own),
        "decides": _p_heads(own)[-1],
    }
    if own.intervals is not None:
        more["plot"] = _plot(own)
    return PageTable(
        "comparisons", "Comparisons of systems", [*_columns(own, np.isin(rows, close))], left_out, more
    ), rows


def listed(table: Table) -> NDArray[np.int64]:
    """Return the rows that are listed: all, or those with the smallest p."""
    if len(table) <= MOST_ROWS:
        return np.arange(len(table))
    single = np.where(np.isnan(table.p_value), table.p_high, table.p_value)
    order: NDArray[np.int64] = np.lexsort((single, np.where(np.isnan(table.p_adjusted), single, table.p_adjusted)))
    return order[:MOST_ROWS]


def _columns(table: Table, close: NDArray[np.bool_]) -> Iterator[GridColumn]:
    test_set, subset = named(table.test_set), named(table.subset, lambda s: s.value if s else "")
    yield GridColumn("test set", test_set, is_filter=True, is_hidden=len(np.unique(test_set.codes)) < 2)
    yield GridColumn("subset", subset, is_filter=True, is_hidden=not any(subset.values))
    yield GridColumn("A", named(table.a))
    yield GridColumn("B", named(table.b))
    yield GridColumn("metric", named(table.metric, lambda score: score.name), is_filter=True)
    yield GridColumn("score A", coded(table.score_a, score_text), is_number=True)
    yield GridColumn("score B", coded(table.score_b, score_text), is_number=True)
    yield GridColumn("A − B", coded(table.difference, signed), is_number=True)
    sure, kind = intervals_to_show(table)
    if sure is not None:
        head = f"{kind}{_only(100 * sure.confidence)} interval".strip()
        text = _simultaneous if kind == SIMULTANEOUS else interval_text
        yield GridColumn(head, by_rows(table, (sure.low, sure.high, sure.method.codes), text), is_number=True)
    for head, p in zip(_p_heads(table), (table.p_value, table.p_adjusted), strict=False):
        yield GridColumn(head, coded(p, lambda p: p_cell(p, table.alpha)), is_number=True)
    yield GridColumn("verdict", _verdicts(table), is_filter=True)
    yield GridColumn(
        "calls", coded(close, lambda is_close: "close" if is_close else ""), is_filter=True, is_hidden=True
    )
    yield GridColumn("checks", _checks(table), is_filter=True)
    if bool(table.is_skewed.any()):
        yield GridColumn("units", by_rows(table, _deciding(table), _decide), is_filter=True)
    counted = (table.exact, table.n_trials, table.p_low, table.p_high, np.isnan(table.p_value), _stopped(table))
    yield GridColumn(
        "interval of p", by_rows(table, counted, lambda r: _limits(r, table.alpha)), is_number=True, is_aside=True
    )
    yield GridColumn("method", by_rows(table, counted, how), is_aside=True)
    units = by_rows(table, (table.n_discordant, table.n_units), _units)
    yield GridColumn("discordant units", units, is_number=True, is_aside=True)
    if sure is not None:
        yield GridColumn("paired d", coded(sure.paired_d, _effect), is_number=True, is_aside=True)
        if kind == SIMULTANEOUS and (alone := table.intervals) is not None:
            ends = by_rows(table, (alone.low, alone.high, alone.method.codes), interval_text)
            yield GridColumn("unadjusted interval", ends, is_number=True, is_aside=True)
        how_sure = by_rows(table, (sure.confidence, sure.method.codes), _how_sure)
        yield GridColumn(f"method of the {'unadjusted ' * bool(kind)}interval", how_sure, is_aside=True)


def _p_heads(table: Table) -> list[str]:
    """Return what stands above p, the one that decides last."""
    return ["unadjusted p", "adjusted p"] if is_adjusted(table) else ["p"]


def _only(confidence: NDArray[np.float64]) -> str:
    """Write the confidence that all intervals have, nothing where they differ."""
    found = np.unique(confidence[~np.isnan(confidence)])
    return f"{found[0]:.4g} %" if len(found) == 1 else ""


def _simultaneous(r: Result) -> str:
    return "" if r.interval_simultaneous is None else ends_of(*r.interval_simultaneous)


def _how_sure(r: Result) -> str:
    if r.interval is None:
        return ""
    return f"{100 * r.interval.confidence:.4g} %, {METHODS.get(r.interval.method, r.interval.method)}"


def _effect(d: float) -> str:
    return "" if np.isnan(d) else f"{d:+.2f}"


def _units(r: Result) -> str:
    return f"{r.n_discordant:,} of {r.n_units:,}"


def _deciding(table: Table) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    assert table.assumptions is not None
    return table.is_skewed, table.assumptions.n_deciding


def _decide(r: Result) -> str:
    """Say how few units decide, or that their differences are skewed."""
    found = {one.kind: one for one in r.assumptions}
    if (few := found.get("few-units-decide")) is not None:
        return f"{few.n_deciding:,} decide"
    return "skewed" if "skewed-differences" in found else ""


def _limits(r: Result, alpha: float) -> str:
    """Say between which limits the trials leave p; nothing where it is exact."""
    if r.method == "exact":
        return ""
    return limits_text(*r.p_interval, alpha) + ("" if is_bounded(r) else f" ({confidence(r)})")


def _stopped(table: Table) -> NDArray[np.int64]:
    """Return what a rule to stop says of each row, as a number."""
    found = np.zeros(len(table), np.int64)
    for k, stops in enumerate(table.stops):
        ruled = stops.n_asked > 0
        found = np.where(ruled, 1 + 2 * k + stops.is_early, found)
    return found


def _verdicts(table: Table) -> Coded[str]:
    """Return the verdicts, as `Result.verdict` words them."""
    return by_rows(table, (table.decision,), lambda r: r.verdict(table.alpha))


def _checks(table: Table) -> Coded[str]:
    """Say of each row whether its cross-checks agree."""
    agrees = np.zeros(len(table), np.bool_)
    for checked in table.checks.values():
        agrees |= checked.verdict == AGREES
    codes = np.where(table.disagrees, DISAGREES, np.where(agrees, AGREES, 0))
    return coded(codes, {DISAGREES: "disagree", AGREES: "agree", 0: ""}.__getitem__)


def _better(table: Table) -> str:
    """Return a digit for each row: which system scores better, 0 for neither."""
    higher = np.array([score.higher_is_better for score in table.metric.values], np.bool_)[table.metric.codes]
    first = (table.difference > 0) == higher
    codes = np.where((table.difference == 0) | np.isnan(table.difference), 0, np.where(first, 1, 2))
    return "".join(map(str, codes.tolist()))


def _notes(table: Table) -> dict[str, list[Any]]:
    found = {row: [*texts(own)] for row, own in checks.notes(table).items()}
    for row, own in listed_assumptions(table).items():
        found[row] = [*(one.detail for one in own), *found.get(row, [])]
    return {"rows": [*found], "texts": ["; ".join(own) for own in found.values()]}


def _plot(table: Table) -> dict[str, list[float | None]]:
    """Return the ends of intervals, as far as a picture shows them; None where there is none."""
    sure, _ = intervals_to_show(table)
    assert sure is not None
    ends = {"low": sure.low, "high": sure.high, "at": table.difference}
    return {name: [float(f"{x:.4g}") if np.isfinite(x) else None for x in own.tolist()] for name, own in ends.items()}
