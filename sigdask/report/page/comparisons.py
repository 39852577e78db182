"""The page's summary and its table of all comparisons.

The summary has a sentence for each test set, the checks, and the numbers of verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from sigdask.report.page.grids import PageColumn, PageTable, encode_names, encode_rows, encode_values
from sigdask.report.summary.checks import explain_checks
from sigdask.report.summary.headline import Verdict, build_verdict
from sigdask.report.summary.margins import describe_shown_margin
from sigdask.report.summary.sentences import is_adjusted
from sigdask.report.tables.cells import (
    describe_method,
    format_ends,
    format_interval,
    format_marked_p,
    format_p_cell,
    is_bounded,
    mark_bounds,
)
from sigdask.report.wording import INTERVAL_METHODS
from sigdask.results import messages
from sigdask.results.columns import SIMULTANEOUS, CodedColumn
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.notes import list_texts
from sigdask.results.record import Result
from sigdask.results.table import AGREES, CONTESTED, Table, get_equal_scores, select_intervals
from sigdask.statistics.rounding import format_limits, format_score, format_signed
from sigdask.text import format_count

VERDICT_HINTS = {
    "significant": "chance alone would rarely give a difference as large",
    "not significant": "the data do not show which system is better; the two need not be equal",
    "undecided": "more trials would decide",
    "contested": "only one of two tests rejects: that of swapped outputs, or that of equal scores",
}
CHECK_HINTS = {
    "agree": "an independent computation gives the same p up to chance",
    "interval differs": "interval and p disagree on whether the difference can be 0",
    "disagree": "another way to compute p gives another value: do not use this p",
}
"""Hover texts that explain verdicts and outcomes of checks."""

MAX_ROWS = 20_000
"""Maximum number of comparisons listed, those with the smallest p."""


def build_grid(table: Table) -> tuple[PageTable, NDArray[np.int64]]:
    """Return the grid of comparisons, and the table rows that it lists.

    Parameters
    ----------
    table : Table
        All comparisons.
    """
    rows = select_listed(table)
    shown_table = table.take(rows)
    left_out = ""
    if len(rows) < len(table):
        left_out = f"The {len(rows):,} with the smallest p of {len(table):,}; the JSON has all."
    notes_by_row = {row: [*list_texts(row_notes)] for row, row_notes in messages.build_notes(shown_table).items()}
    for row in np.flatnonzero(shown_table.is_contested).tolist():
        cause = get_equal_scores(shown_table).cause[row]
        notes_by_row[row] = [*filter(None, [cause]), *notes_by_row.get(row, [])]
    extra = {
        "rows": rows.tolist() if len(rows) < len(table) else None,
        "notes": {"rows": [*notes_by_row], "texts": ["; ".join(row_notes) for row_notes in notes_by_row.values()]},
        "better": _encode_better(shown_table),
        "decides": _list_p_heads(shown_table)[-1],
    }
    if shown_table.intervals is not None:
        extra["plot"] = _list_interval_ends(shown_table)
    columns = [*_iter_columns(shown_table)]
    return PageTable("comparisons", "Comparisons of systems", columns, left_out, extra), rows


def select_listed(table: Table) -> NDArray[np.int64]:
    """Return the rows to list: all, or those with the smallest p."""
    if len(table) <= MAX_ROWS:
        return np.arange(len(table))
    single = table.p_value
    order: NDArray[np.int64] = np.lexsort((single, np.where(np.isnan(table.p_adjusted), single, table.p_adjusted)))
    return order[:MAX_ROWS]


def _iter_columns(table: Table) -> Iterator[PageColumn]:
    test_set, subset = encode_names(table.test_set), encode_names(table.subset, lambda s: s.value if s else "")
    yield PageColumn("test set", test_set, is_filter=True, is_hidden=len(np.unique(test_set.codes)) < 2)
    yield PageColumn("subset", subset, is_filter=True, is_hidden=not any(subset.values))
    yield PageColumn("A", encode_names(table.a))
    yield PageColumn("B", encode_names(table.b))
    yield PageColumn("metric", encode_names(table.metric, lambda score: score.name), is_filter=True)
    yield PageColumn("score A", encode_values(table.score_a, format_score), is_number=True)
    yield PageColumn("score B", encode_values(table.score_b, format_score), is_number=True)
    yield PageColumn("A − B", encode_values(table.difference, format_signed), is_number=True)
    intervals, kind = select_intervals(table)
    if intervals is not None:
        head = f"{kind}{_format_common(100 * intervals.confidence)} interval".strip()
        text = _format_simultaneous if kind == SIMULTANEOUS else format_interval
        ends = encode_rows(table, (intervals.low, intervals.high, intervals.method.codes), text)
        yield PageColumn(head, ends, is_number=True)
    p_heads = _list_p_heads(table)
    adjusted = mark_bounds(table.p_adjusted, table.p_adjusted_low)
    p_columns = mark_bounds(table.p_value, table.p_low, table.exact), adjusted
    for head, p_column in zip(p_heads, p_columns, strict=False):
        p_texts = encode_values(p_column, lambda p: format_marked_p(p, table.alpha))
        is_last = head == p_heads[-1]
        yield PageColumn(head, p_texts, is_number=True, is_pinned=is_last, is_aside=not is_last)
    if table.equal_scores is not None:
        p_texts = encode_values(table.equal_score_p, lambda p: format_p_cell(p, table.alpha))
        yield PageColumn("equal-score p", p_texts, is_number=True, is_aside=not table.is_contested.any())
    verdicts = encode_values(table.outcome, VERDICTS.__getitem__)
    yield PageColumn("verdict", verdicts, is_filter=True, is_pinned=True, hints=VERDICT_HINTS)
    if table.margins is not None:
        p_values = [column for column in vars(table.margins).values() if isinstance(column, np.ndarray)]
        shown = encode_rows(table, p_values, describe_shown_margin)
        yield PageColumn("within margin", shown, is_filter=True)
    has_alarm = bool(table.has_disagreement.any())
    yield PageColumn("checks", _encode_checks(table), is_filter=True, is_aside=not has_alarm, hints=CHECK_HINTS)
    method_columns = (table.exact, table.n_trials, table.p_low, table.p_high)
    limits = encode_rows(table, method_columns, lambda r: _format_limits(r, table.alpha))
    yield PageColumn("interval of p", limits, is_number=True, is_aside=True)
    yield PageColumn("method", encode_rows(table, method_columns, describe_method), is_aside=True)
    units = encode_rows(table, (table.n_discordant, table.n_units), _format_units)
    yield PageColumn("discordant units", units, is_number=True, is_aside=True)
    if intervals is not None:
        yield PageColumn("paired d", encode_values(intervals.paired_d, _format_effect), is_number=True, is_aside=True)
        if kind == SIMULTANEOUS and (unadjusted := table.intervals) is not None:
            ends = encode_rows(table, (unadjusted.low, unadjusted.high, unadjusted.method.codes), format_interval)
            yield PageColumn("unadjusted interval", ends, is_number=True, is_aside=True)
        method_texts = encode_rows(table, (intervals.confidence, intervals.method.codes), _format_interval_method)
        yield PageColumn(f"method of the {'unadjusted ' * bool(kind)}interval", method_texts, is_aside=True)


def _list_p_heads(table: Table) -> list[str]:
    """Return the headings of the columns of p; the last one is the p that verdicts use."""
    return ["unadjusted p", "adjusted p"] if is_adjusted(table) else ["unadjusted p" if len(table) > 1 else "p"]


def _format_common(confidence: NDArray[np.float64]) -> str:
    """Return the confidence that all intervals share as text, or "" where they differ."""
    distinct = np.unique(confidence[~np.isnan(confidence)])
    return f"{distinct[0]:.4g} %" if len(distinct) == 1 else ""


def _format_simultaneous(r: Result) -> str:
    return "" if r.interval_simultaneous is None else format_ends(*r.interval_simultaneous)


def _format_interval_method(r: Result) -> str:
    if r.interval is None:
        return ""
    return f"{100 * r.interval.confidence:.4g} %, {INTERVAL_METHODS[r.interval.method].name}"


def _format_effect(d: float) -> str:
    return "" if np.isnan(d) else f"{d:+.2f}"


def _format_units(r: Result) -> str:
    return f"{r.n_discordant:,} of {r.n_units:,}"


def _format_limits(r: Result, alpha: float) -> str:
    """Return the confidence interval of p as text, or "" where p is exact."""
    if r.method == "exact":
        return ""
    return format_limits(*r.p_interval, alpha) + ("" if is_bounded(r) else " (99 %)")


def _encode_checks(table: Table) -> CodedColumn[str]:
    """Return for each row whether its cross-checks agree, and whether its interval contradicts p."""
    agrees = np.zeros(len(table), np.bool_)
    for checked in table.checks.values():
        agrees |= checked.verdict == AGREES
    codes = np.select([table.has_disagreement, _find_contrary_intervals(table), agrees], [3, 2, 1], 0)
    return encode_values(codes, ("", "agree", "interval differs", "disagree").__getitem__)


def _find_contrary_intervals(table: Table) -> NDArray[np.bool_]:
    """Return where interval and p disagree on whether the difference can be 0, as `describe_contradiction` says it."""
    intervals, _ = select_intervals(table)
    if intervals is None:
        return np.zeros(len(table), np.bool_)
    is_above, is_below = (
        np.array([side != other for side in table.alternative.values])[table.alternative.codes]
        for other in ("less", "greater")
    )
    excludes = (is_above & (intervals.low > 0)) | (is_below & (intervals.high < 0))
    is_known = ~np.isnan(intervals.low) & np.isin(table.outcome, (0, 1))
    return np.asarray(is_known & (excludes != (table.outcome == 1)))


def _encode_better(table: Table) -> str:
    """Return a text with a digit for each row: 1 if A scores better, 2 if B does, 0 for neither."""
    higher = np.array([score.higher_is_better for score in table.metric.values], np.bool_)[table.metric.codes]
    is_a = (table.difference > 0) == higher
    codes = np.where((table.difference == 0) | np.isnan(table.difference), 0, np.where(is_a, 1, 2))
    return "".join(map(str, codes.tolist()))


def _list_interval_ends(table: Table) -> dict[str, list[float | None]]:
    """Return the differences and the ends of their intervals, rounded for drawing; None where there is none."""
    intervals, _ = select_intervals(table)
    assert intervals is not None
    ends = {"low": intervals.low, "high": intervals.high, "at": table.difference}
    return {
        name: [float(f"{x:.4g}") if np.isfinite(x) else None for x in values.tolist()] for name, values in ends.items()
    }


MAX_HEADLINES, MAX_SETS = 3, 200
"""Number of test sets whose sentence is in the card at first, and when it is opened."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerCard:
    """Content of the summary card.

    Attributes
    ----------
    verdicts : mapping of str to Verdict
        Verdicts of the first test sets.
    n_sets : int
        Number of all test sets.
    counts : sequence of (str, str)
        Numbers of comparisons by verdict, each with what it means.
    check_meanings : sequence of str
        What each check compares the p-values with.
    """

    verdicts: Mapping[str, Verdict]
    n_sets: int
    counts: Sequence[tuple[str, str]]
    check_meanings: Sequence[str]

    @property
    def first(self) -> list[tuple[str, Verdict]]:
        """Verdicts of the first test sets, which the card shows before it is opened."""
        return [*self.verdicts.items()][:MAX_HEADLINES]

    @property
    def more(self) -> list[tuple[str, Verdict]]:
        """Verdicts of the other test sets, which the card shows when it is opened."""
        return [*self.verdicts.items()][MAX_HEADLINES:]

    @property
    def checks(self) -> list[tuple[str, Verdict]]:
        """Verdicts with distinct lines on checks, one for each line, disagreements first."""
        by_line: dict[str, tuple[str, Verdict]] = {}
        for name, verdict in sorted(self.verdicts.items(), key=lambda item: item[1].is_checked):
            by_line.setdefault(verdict.checks, (name, verdict))
        distinct = [*by_line.values()][:MAX_HEADLINES]
        return [("", verdict) for _, verdict in distinct] if len(by_line) == 1 else distinct


def build_card(sets: Mapping[str, ComparisonResults], table: Table) -> AnswerCard:
    """Return the card of all test sets, given one table of their comparisons."""
    verdicts = {name: build_verdict(results) for name, results in islice(sets.items(), MAX_SETS)}
    return AnswerCard(verdicts, len(sets), [*_describe_counts(table)], explain_checks(table))


VERDICTS = {1: "significant", CONTESTED: "contested", 0: "not significant", -1: "undecided"}


def _describe_counts(table: Table) -> Iterator[tuple[str, str]]:
    """Yield numbers of comparisons by verdict, each with what it means."""
    n = len(table)
    if not n:
        yield "0 comparisons", "nothing was compared"
    for code, name in VERDICTS.items():
        if n_verdict := int((table.outcome == code).sum()):
            total = f"{n_verdict:,} of {format_count(n, 'comparison')}" if n > 1 else "1 comparison"
            words = name.replace("significant", "significantly different")
            yield f"{total} {words} at {table.alpha:g}", VERDICT_HINTS[name]
