"""Texts made from the columns of a table: notes, details of checks and tests, remarks on intervals, and doubts.

Notes on intervals say that one is missing and why, or that its coverage may be too low.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from sigdask.counts.fields import Bools
from sigdask.interface import spell
from sigdask.metrics.agreement import PREFIX as AGREEMENT_PREFIX
from sigdask.options import Option
from sigdask.results.columns import (
    BCA,
    NORMAL,
    PERCENTILE,
    format_deciding,
)
from sigdask.results.notes import Note, read_note
from sigdask.results.table import AGREES, DISAGREES, Table
from sigdask.statistics.bounds import (
    ARRANGEMENTS_TEXT,
    KNOWN_DIGITS,
    RUNS_TEXT,
    SECOND_RUN,
    TRIALS_TEXT,
    estimate_trials_to_decide,
)
from sigdask.statistics.rounding import format_limits, format_p_equals, round_up
from sigdask.text import format_count

RowNotes = Iterator[tuple[int, Note]]

FEW_UNITS = 30
"""Below this number of units, bootstrap intervals are too narrow: 95 % intervals cover the truth in 0.92 of cases at 25
units, in 0.90 at 10.
"""

FEW_DISCORDANT = 10
"""Below this number of discordant units, bootstrap intervals are too narrow."""

SKEWNESS_LIMIT = 0.1
"""Skewness of units' contributions, over the root of their number, from which bootstrap intervals are too narrow:
0.947 of BCa intervals cover the truth below it, 0.91 from 0.1 to 0.2, and 0.89 from 0.2 to 0.4.
"""


SHORTFALLS = {
    "few-units": "units are few",
    "few-discordant": "few units differ",
    "skewed": "the contributions of units are skewed",
}
"""Conditions under which measured coverage is below the nominal level (docs/error-rates.md), by name."""


def iter_shortfalls(table: Table) -> Iterator[tuple[str, Bools]]:
    """Yield the name of each coverage shortfall with a mask of the rows to which it applies."""
    is_resampled = table["interval.method"].find(lambda method: method in {BCA, PERCENTILE, NORMAL})
    resampled = is_resampled & (table.n_discordant > 0)
    skewness = np.abs(np.nan_to_num(table["interval.skewness"])) / np.sqrt(np.maximum(table.n_units, 1))
    yield "few-units", resampled & (table.n_units < FEW_UNITS)
    yield "few-discordant", resampled & (table.n_discordant < FEW_DISCORDANT)
    yield "skewed", resampled & (skewness >= SKEWNESS_LIMIT)


def iter_interval_notes(table: Table) -> RowNotes:
    """Yield (row, note) for all notes on the intervals of single rows."""
    methods, why = table["interval.method"], table["interval.why"]
    for row in np.flatnonzero(why.find(bool)).tolist():
        head = "interval" if methods[row] else "no interval"
        yield row, Note("interval", f"{head}: {why[row]}", {"method": methods[row] or None})
    shortfalls_by_row: dict[int, list[str]] = {}
    for shortfall, rows in iter_shortfalls(table):
        for row in np.flatnonzero(rows).tolist():
            shortfalls_by_row.setdefault(row, []).append(shortfall)
    for row, row_shortfalls in shortfalls_by_row.items():
        reasons = " and ".join(SHORTFALLS[name] for name in row_shortfalls)
        text = (
            f"{reasons}: in simulations, intervals of such data contained the true difference less often than "
            f"{100 * table['interval.confidence'][row]:.4g} % of the time (docs/error-rates.md); the interval is "
            "probably too short"
        )
        skewness = float(table["interval.skewness"][row])
        numbers = {"shortfalls": ", ".join(row_shortfalls), "skewness": None if np.isnan(skewness) else skewness}
        yield row, Note("interval-coverage", text, numbers)


def note_unused(option: Option, reason: str) -> Note:
    """Return a note on an option that has no effect, and why."""
    written = spell(option.name, False if option.default is True else None)  # who turns it off writes `--no-…`
    return Note("unused-option", f"{written} has no effect {reason}; leave it out", {"option": option.name})


DROPPED_PLACEHOLDER = "{dropped}"
"""Placeholder for the number of dropped observations in the description of a test."""

NOT_REACHED = Note("not-reached", "not computed yet: no trial is counted, so p is shown as 1")


def describe_checks(table: Table, name: str) -> list[str]:
    """Return the sentence on the outcome of one check for each row, empty where the row has no such check.

    Parameters
    ----------
    table : Table
        The rows, a few thousand at a time.
    name : str
        Name of the check.
    """
    if f"checks.{name}.detail" in table.paths:
        return list(table[f"checks.{name}.detail"].to_list())
    texts: list[str] = table[f"checks.{name}.why"].to_list()
    rows = np.flatnonzero(table[f"checks.{name}.verdict"].find((AGREES, DISAGREES).__contains__))
    columns = [
        table.is_enumerated, table.n_extreme, table.n_trials, table["second_run.n_extreme"],
        table["second_run.n_trials"], round_up(table["second_run.agreement_p"], 3),
        round_up(table[f"checks.{name}.p_value"], KNOWN_DIGITS), round_up(table[f"checks.{name}.fit"], 3),
    ]  # fmt: skip
    for row, *values in zip(rows.tolist(), *(column[rows].tolist() for column in columns), strict=True):
        texts[row] = _describe_check(name, *values)
    return texts


def _describe_check(name: str, *values: Any) -> str:
    """Return the sentence on a check that applies to a row, from the row's numbers."""
    is_enumerated, extreme, trials, second_extreme, second_trials, agreement, known, fit = values
    if name == SECOND_RUN:
        second = f"{second_extreme:,}", _format_trials(second_trials)
        return RUNS_TEXT.format(f"{extreme:,}", f"{trials:,}", *second, _format_rounded_p(agreement))
    known_p = _format_rounded_p(known, KNOWN_DIGITS)
    if is_enumerated:
        return ARRANGEMENTS_TEXT.format(known_p, f"{extreme:,}", f"{trials:,}")
    return TRIALS_TEXT.format(known_p, f"{extreme:,}", _format_trials(trials), _format_rounded_p(fit))


@lru_cache
def _format_trials(n: int) -> str:
    return format_count(n, "trial")


@lru_cache(maxsize=2**16)
def _format_rounded_p(p: float, digits: int = 3) -> str:
    return format_p_equals(p, digits=digits)


def describe_test(table: Table, name: str) -> list[str]:
    """Return the sentence on a classical test for each row, empty where the test was not requested."""
    pairs = zip(table[f"tests.{name}.detail"].to_list(), table[f"tests.{name}.n_dropped"].tolist(), strict=True)
    return [text.replace(DROPPED_PLACEHOLDER, f"{n:,}") for text, n in pairs]


def build_notes(table: Table) -> dict[int, tuple[Note, ...]]:
    """Return the notes of each row that has any, in the order in which they are shown."""
    if "kept_notes" in table.paths:
        texts = table["kept_notes"].map(lambda text: tuple(map(read_note, json.loads(text))))
        return {row: notes for row, notes in enumerate(texts.to_list()) if notes}
    notes_by_row: dict[int, list[Note]] = {}
    for iter_notes in (
        _note_identical,
        _note_upper_bound,
        _note_undefined,
        _note_not_reached,
        _note_undecided,
        _note_second_look,
        _note_deciding_units,
        iter_interval_notes,
    ):
        for row, note in iter_notes(table):
            notes_by_row.setdefault(row, []).append(note)
    return {row: tuple(row_notes) for row, row_notes in notes_by_row.items()}


def _note_identical(table: Table) -> RowNotes:
    for row in np.flatnonzero(table.n_discordant == 0).tolist():
        step = table.step[row]
        finely = f" by {step:.2g} or more, the smallest difference that rounding of such large scores allows"
        yield row, Note("identical", f"identical: no unit differs in what the metric counts{finely if step else ''}")


def _note_upper_bound(table: Table) -> RowNotes:
    """Yield notes on rows whose p from trials is an upper bound, as scores of very unequal size may tie by rounding."""
    for row in np.flatnonzero((table.step < 0) & (table.n_trials > 0) & ~table.is_enumerated).tolist():
        text = (
            f"the sampled p is an upper bound: some differences are smaller than {-table.step[row]:.2g}, the "
            "rounding error of sums of such large scores, and trials count possible ties as ties"
        )
        yield row, Note("upper-bound", text, {"step": -float(table.step[row])})


def _note_undefined(table: Table) -> RowNotes:
    for names, scores in ((table.a, table.undefined_a), (table.b, table.undefined_b)):
        for row in np.flatnonzero(~np.isnan(scores)).tolist():
            name, score = names[row], float(scores[row])
            text = f"{name}: its score is undefined (0/0), and counts as {score:g}"
            if table.metric[row].startswith(AGREEMENT_PREFIX):
                text = f"{name}: its agreement is undefined, as scores are constant; it counts as {score:g}"
            yield row, Note("zero-division", text, {"system": name, "score": score})


def _note_not_reached(table: Table) -> RowNotes:
    yield from (
        (row, NOT_REACHED) for row in np.flatnonzero((table.n_trials == 0) & np.isnan(table["exact.p_hi"])).tolist()
    )


def _note_undecided(table: Table) -> RowNotes:
    """Yield a note for each row whose Monte Carlo interval of the unadjusted p contains alpha."""
    rows = np.flatnonzero(table.is_open & (table.n_trials > 0))
    limits = table["p_interval.0"], table["p_interval.1"]
    columns = (*limits, table.n_extreme, table.n_trials, ~np.isnan(table.p_adjusted))
    for row, low, high, extreme, trials, is_adjusted in zip(
        rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        note = build_undecided_note(low, high, extreme / trials, table.alpha)
        yield row, Note("unadjusted-undecided", f"unadjusted p {note.text}", note.numbers) if is_adjusted else note


@lru_cache(maxsize=4096)
def build_undecided_note(low: float, high: float, rate: float, alpha: float) -> Note:
    """Return the note that the Monte Carlo interval of p contains alpha, with the number of trials to decide."""
    needed = estimate_trials_to_decide(rate, alpha)
    remedy = (
        f"about {format_count(needed, 'trial')} would decide" if needed else "no number of trials is likely to decide"
    )
    text = f"undecided at {alpha:g}: the 99 % interval of p is {format_limits(low, high, alpha)}; {remedy}"
    return Note("undecided", text, {"alpha": alpha, "low": low, "high": high, "needed": needed})


def _note_second_look(table: Table) -> RowNotes:
    for row in np.flatnonzero(table.seen_with).tolist():
        n_seen = int(table.seen_with[row])
        text = f"second look: p was computed before, with {format_count(n_seen, 'trial')}"
        yield row, Note("second-look", text, {"n_trials": n_seen})


def _note_deciding_units(table: Table) -> RowNotes:
    """Yield a note for each row whose verdict, or whose significant lead, rests on few units."""
    n_deciding, is_reversed = table["deciding.n_deciding"], table["deciding.reverses"]
    for row in np.flatnonzero((n_deciding > 0) & ((table.decision == 1) | ~is_reversed)).tolist():
        n, reverses = int(n_deciding[row]), bool(is_reversed[row])
        consequence = "the other system would be ahead" if reverses else "the verdict would change"
        decide = format_deciding(n, int(table.n_units[row]), table.unit[row])
        text = f"{decide} it: without {'it' if n == 1 else 'them'} {consequence}"
        yield row, Note("few-units-decide", text, {"n_deciding": n, "changes": "sign" if reverses else "verdict"})
