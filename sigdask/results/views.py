"""Views of rows: results as they are looked at, with their words, made of columns when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigdask.results import signature
from sigdask.results.assumptions import listed_assumptions
from sigdask.results.messages import checks as sentences
from sigdask.results.record import ClassicalTest, Exact, Interval, OtherUnitResult, Result, SecondRun, Stopped
from sigdask.statistics.classical.names import INDEPENDENT
from sigdask.statistics.crosscheck import Check
from sigdask.statistics.dependence import Dependence

if TYPE_CHECKING:
    from sigdask.results.table import Table

AT_ONCE = 4096
"""Rows whose words are made at a time."""

VERDICTS: tuple[Literal["not applicable", "agrees", "disagrees"], ...] = ("not applicable", "agrees", "disagrees")
"""Words of the codes of what a cross-check found."""

METHODS = "approximate", "exact"
"""Words for how p was had: by random trials, or of all arrangements."""


def result_view(table: Table, row: int) -> Result:
    """Return the view of one row, with its words."""
    [result] = _views(table.take(slice(row, row + 1)))
    return result


def result_views(table: Table) -> Iterator[Result]:
    """Yield the view of each row, some thousands made at a time."""
    for first in range(0, len(table), AT_ONCE):
        yield from _views(table.take(slice(first, first + AT_ONCE)))


def _views(table: Table) -> Iterator[Result]:
    """Yield the view of each row of a small table."""
    columns = zip(
        table.test_set.listed(), table.subset.listed(), table.unit.listed(), table.a.listed(), table.b.listed(),
        table.metric.listed(), table.score_a.tolist(), table.score_b.tolist(), table.difference.tolist(),
        table.alternative.listed(), table.n_items.tolist(), table.n_units.tolist(), table.n_discordant.tolist(),
        method(table.exact), table.n_trials.tolist(), table.n_extreme.tolist(), table.p_value.tolist(),
        table.p_low.tolist(), table.p_high.tolist(), optional(table.p_adjusted), optional(table.p_adjusted_low),
        table.p_adjusted_high.tolist(), optional(table.r12), strict=True,
    )  # fmt: skip
    notes, runs, exact, stopped = sentences.notes(table), _second_runs(table), _exact(table), _stopped(table)
    checks, dependence, beside, tests = _checks(table), _dependence(table), _beside(table), _tests(table)
    sure, signed, doubts = _sure(table), signature.lines(table), listed_assumptions(table)
    adjusted = _adjusted(table)
    for row, (
        test_set, subset, unit, a, b, metric, score_a, score_b, difference, alternative, n_items, n_units,
        n_discordant, how, n_trials, n_extreme, p, low, high, p_adjusted, adjusted_low, adjusted_high, r12,
    ) in enumerate(columns):  # fmt: skip
        yield Result(
            test_set=test_set,
            subset=None if subset is None else {"column": subset.column, "value": subset.value},
            unit=unit,
            a=a,
            b=b,
            metric=metric.name,
            higher_is_better=metric.higher_is_better,
            score_a=score_a,
            score_b=score_b,
            difference=difference,
            alternative=alternative,
            n_items=n_items,
            n_units=n_units,
            n_discordant=n_discordant,
            method=how,
            n_trials=n_trials,
            n_extreme=n_extreme,
            p_value=p,
            p_interval=(low, high),
            p_adjusted=p_adjusted,
            r12=r12,
            second_run=runs.get(row),
            exact=exact.get(row),
            checks=tuple(checks.get(row, ())),
            dependence=tuple(dependence.get(row, ())),
            beside=tuple(beside.get(row, ())),
            notes=notes.get(row, ()),
            signature=metric.signature,
            stopped=stopped.get(row),
            p_adjusted_interval=None if adjusted_low is None else (adjusted_low, adjusted_high),
            tests=tuple(tests.get(row, ())),
            test_signature=signed[row],
            assumptions=doubts.get(row, ()),
            **sure.get(row, {}),
            **adjusted.get(row, {}),
        )


def method(exact: NDArray[np.bool_]) -> list[str]:
    """Return the word for how p was had."""
    return [METHODS[each] for each in exact.tolist()]


def optional(values: NDArray[np.float64]) -> list[float | None]:
    """Return numbers, None where there are none."""
    return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124  # NaN is not itself


def _second_runs(table: Table) -> dict[int, SecondRun]:
    rows = np.flatnonzero(table.second_trials)
    trials, extreme = table.second_trials[rows], table.second_extreme[rows]
    columns = (trials, extreme, second_p(trials, extreme), table.agreement_p[rows])
    made = map(SecondRun, *(column.tolist() for column in columns))
    return dict(zip(rows.tolist(), made, strict=True))


def second_p(n_trials: NDArray[np.int64], n_extreme: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the bounds on p of second runs, as `bound`."""
    return (n_extreme + 1) / (n_trials + 1)


def _exact(table: Table) -> dict[int, Exact]:
    rows = np.flatnonzero(~np.isnan(table.exact_low)).tolist()
    found = {}
    for row in rows:
        by = table.exact_by[row]
        assert by is not None
        found[row] = Exact(float(table.exact_low[row]), float(table.exact_high[row]), *by)
    return found


def _checks(table: Table) -> dict[int, list[Check]]:
    found: dict[int, list[Check]] = {}
    for name, checked in table.checks.items():
        said = zip(checked.verdict.tolist(), optional(checked.p_value), sentences.details(table, name), strict=True)
        for row, (verdict, p, detail) in enumerate(said):
            if verdict >= 0:
                found.setdefault(row, []).append(Check(name, VERDICTS[verdict], p, detail))
    return found


def _dependence(table: Table) -> dict[int, list[Dependence]]:
    found: dict[int, list[Dependence]] = {}
    for own in table.dependence:
        columns = (own.rows, own.n_groups, own.icc, own.design_effect, own.p_value)
        for row, *numbers in zip(*(column.tolist() for column in columns), strict=True):
            found.setdefault(row, []).append(Dependence(own.column, *numbers))
    return found


def _beside(table: Table) -> dict[int, list[OtherUnitResult]]:
    found: dict[int, list[OtherUnitResult]] = {}
    for own in table.beside:
        columns: tuple[list[Any], ...] = (
            own.unit.listed(), own.n_units.tolist(), method(own.exact), own.n_trials.tolist(), own.n_extreme.tolist(),
            own.p_value.tolist(),
        )  # fmt: skip
        for row, values in enumerate(zip(*columns, strict=True)):
            if values[1]:
                found.setdefault(row, []).append(OtherUnitResult(*values))
    return found


def _tests(table: Table) -> dict[int, list[ClassicalTest]]:
    found: dict[int, list[ClassicalTest]] = {}
    for own in table.tests:
        columns = optional(own.statistic), optional(own.p_value), own.n.tolist(), sentences.of_test(own)
        for row, (statistic, p, n, detail) in enumerate(zip(*columns, strict=True)):
            if detail:
                made = ClassicalTest(own.name, statistic, p, None if p is None else n, own.name in INDEPENDENT, detail)
                found.setdefault(row, []).append(made)
    return found


def _sure(table: Table) -> dict[int, dict[str, Any]]:
    """Return what intervals and sizes of effect a result has, by the names of its fields."""
    own = table.intervals
    if own is None:
        return {}
    listed = (own.confidence.tolist(), own.low.tolist(), own.high.tolist(), own.n_resamples.tolist())
    columns = zip(own.method.listed(), *listed, strict=True)
    percentile, a, b = (
        [None if low is None else (low, high) for low, high in zip(optional(low), high.tolist(), strict=True)]
        for low, high in ((own.plain_low, own.plain_high), (own.a_low, own.a_high), (own.b_low, own.b_high))
    )
    return {
        row: {
            "interval": Interval(method, confidence, low, high, n or None, plain) if method else None,
            "score_a_interval": a[row],
            "score_b_interval": b[row],
            "paired_d": d,
        }
        for row, ((method, confidence, low, high, n), plain, d) in enumerate(
            zip(columns, percentile, optional(own.paired_d), strict=True)
        )
    }


def _adjusted(table: Table) -> dict[int, dict[str, Any]]:
    """Return what stands beside an adjusted p, by the names of a result's fields."""
    own = table.adjusted
    if own is None:
        return {}
    names = own.first.listed(), own.second.listed()
    by = zip(*names, own.p_first.tolist(), own.p_second.tolist(), strict=True)
    ends = zip(optional(own.low), own.high.tolist(), strict=True)
    return {
        row: {
            "p_adjusted_by": {first: p_first, second: p_second} if first else None,
            "interval_simultaneous": None if low is None else (low, high),
        }
        for row, ((first, second, p_first, p_second), (low, high)) in enumerate(zip(by, ends, strict=True))
    }


def _stopped(table: Table) -> dict[int, Stopped]:
    found = {}
    for own in table.stops:
        for row in np.flatnonzero(own.n_asked).tolist():
            decided = int(own.is_significant[row])
            is_significant = None if decided < 0 else bool(decided)
            found[row] = Stopped(
                own.rule, int(own.n_asked[row]), bool(own.is_early[row]), is_significant, own.epsilon, own.h
            )
    return found
