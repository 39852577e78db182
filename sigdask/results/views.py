"""`Result` objects built on demand from the rows of a table, with their messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigdask.options import INDEPENDENT_TESTS
from sigdask.results import signature
from sigdask.results.doubts import list_assumptions
from sigdask.results.messages import checks as check_messages
from sigdask.results.record import ClassicalTest, Exact, Interval, OtherUnitResult, Result, SecondRun, Stopped
from sigdask.statistics.crosscheck import Check
from sigdask.statistics.dependence import Dependence

if TYPE_CHECKING:
    from sigdask.results.table import Table

CHUNK_ROWS = 4096
"""Rows whose words are made at a time."""

VERDICTS: tuple[Literal["not applicable", "agrees", "disagrees"], ...] = ("not applicable", "agrees", "disagrees")
"""Words of the codes of what a cross-check found."""

METHODS = "approximate", "exact"
"""Words for how p was had: by random trials, or of all arrangements."""


def get_result(table: Table, row: int) -> Result:
    """Return one row of a table as a `Result`, with its messages."""
    [result] = _iter_chunk(table.take(slice(row, row + 1)))
    return result


def iter_results(table: Table) -> Iterator[Result]:
    """Yield each row of a table as a `Result`, building some thousand at a time."""
    for start in range(0, len(table), CHUNK_ROWS):
        yield from _iter_chunk(table.take(slice(start, start + CHUNK_ROWS)))


def _iter_chunk(table: Table) -> Iterator[Result]:
    """Yield each row of a small table as a `Result`, building all its columns at once."""
    columns = zip(
        table.test_set.to_list(), table.subset.to_list(), table.unit.to_list(), table.a.to_list(), table.b.to_list(),
        table.metric.to_list(), table.score_a.tolist(), table.score_b.tolist(), table.difference.tolist(),
        table.alternative.to_list(), table.n_items.tolist(), table.n_units.tolist(), table.n_discordant.tolist(),
        list_methods(table.exact), table.n_trials.tolist(), table.n_extreme.tolist(), table.p_value.tolist(),
        table.p_low.tolist(), table.p_high.tolist(), nan_to_none(table.p_adjusted), nan_to_none(table.p_adjusted_low),
        table.p_adjusted_high.tolist(), nan_to_none(table.r12), strict=True,
    )  # fmt: skip
    notes, runs, exact, stopped = (
        check_messages.build_notes(table),
        _build_second_runs(table),
        _build_exact(table),
        _build_stopped(table),
    )
    checks, dependence, other_units, tests = (
        _build_checks(table),
        _build_dependence(table),
        _build_other_units(table),
        _build_tests(table),
    )
    intervals, signatures, doubts = _build_intervals(table), signature.format_signatures(table), list_assumptions(table)
    adjusted = _build_adjusted(table)
    for row, (
        test_set, subset, unit, a, b, metric, score_a, score_b, difference, alternative, n_items, n_units,
        n_discordant, p_method, n_trials, n_extreme, p, low, high, p_adjusted, adjusted_low, adjusted_high, r12,
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
            method=p_method,
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
            beside=tuple(other_units.get(row, ())),
            notes=notes.get(row, ()),
            signature=metric.signature,
            stopped=stopped.get(row),
            p_adjusted_interval=None if adjusted_low is None else (adjusted_low, adjusted_high),
            tests=tuple(tests.get(row, ())),
            test_signature=signatures[row],
            assumptions=doubts.get(row, ()),
            **intervals.get(row, {}),
            **adjusted.get(row, {}),
        )


def list_methods(exact: NDArray[np.bool_]) -> list[str]:
    """Return "exact" or "approximate" for each row."""
    return [METHODS[code] for code in exact.tolist()]


def nan_to_none(values: NDArray[np.float64]) -> list[float | None]:
    """Return the numbers as a list, with None for NaN."""
    return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124  # NaN is not itself


def _build_second_runs(table: Table) -> dict[int, SecondRun]:
    rows = np.flatnonzero(table.second_trials)
    trials, extreme = table.second_trials[rows], table.second_extreme[rows]
    columns = (trials, extreme, compute_second_p(trials, extreme), table.agreement_p[rows])
    second_runs = map(SecondRun, *(column.tolist() for column in columns))
    return dict(zip(rows.tolist(), second_runs, strict=True))


def compute_second_p(n_trials: NDArray[np.int64], n_extreme: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return p-values (k + 1) / (n + 1) of second runs."""
    return (n_extreme + 1) / (n_trials + 1)


def _build_exact(table: Table) -> dict[int, Exact]:
    rows = np.flatnonzero(~np.isnan(table.exact_low)).tolist()
    exact_by_row = {}
    for row in rows:
        method_and_guarantee = table.exact_by[row]
        assert method_and_guarantee is not None
        exact_by_row[row] = Exact(float(table.exact_low[row]), float(table.exact_high[row]), *method_and_guarantee)
    return exact_by_row


def _build_checks(table: Table) -> dict[int, list[Check]]:
    checks_by_row: dict[int, list[Check]] = {}
    for name, checked in table.checks.items():
        row_checks = zip(
            checked.verdict.tolist(),
            nan_to_none(checked.p_value),
            check_messages.describe_checks(table, name),
            strict=True,
        )
        for row, (verdict, p, detail) in enumerate(row_checks):
            if verdict >= 0:
                checks_by_row.setdefault(row, []).append(Check(name, VERDICTS[verdict], p, detail))
    return checks_by_row


def _build_dependence(table: Table) -> dict[int, list[Dependence]]:
    dependence_by_row: dict[int, list[Dependence]] = {}
    for correlation in table.dependence:
        columns = (
            correlation.rows,
            correlation.n_groups,
            correlation.icc,
            correlation.design_effect,
            correlation.p_value,
        )
        for row, *numbers in zip(*(column.tolist() for column in columns), strict=True):
            dependence_by_row.setdefault(row, []).append(Dependence(correlation.column, *numbers))
    return dependence_by_row


def _build_other_units(table: Table) -> dict[int, list[OtherUnitResult]]:
    units_by_row: dict[int, list[OtherUnitResult]] = {}
    for other_unit in table.beside:
        columns: tuple[list[Any], ...] = (
            other_unit.unit.to_list(),
            other_unit.n_units.tolist(),
            list_methods(other_unit.exact),
            other_unit.n_trials.tolist(),
            other_unit.n_extreme.tolist(),
            other_unit.p_value.tolist(),
        )
        for row, values in enumerate(zip(*columns, strict=True)):
            if values[1]:
                units_by_row.setdefault(row, []).append(OtherUnitResult(*values))
    return units_by_row


def _build_tests(table: Table) -> dict[int, list[ClassicalTest]]:
    tests_by_row: dict[int, list[ClassicalTest]] = {}
    for test in table.tests:
        columns = (
            nan_to_none(test.statistic),
            nan_to_none(test.p_value),
            test.n.tolist(),
            check_messages.describe_test(test),
        )
        for row, (statistic, p, n, detail) in enumerate(zip(*columns, strict=True)):
            if detail:
                classical_test = ClassicalTest(
                    test.name, statistic, p, None if p is None else n, test.name in INDEPENDENT_TESTS, detail
                )
                tests_by_row.setdefault(row, []).append(classical_test)
    return tests_by_row


def _build_intervals(table: Table) -> dict[int, dict[str, Any]]:
    """Return for each row the fields of `Result` that hold intervals and effect sizes."""
    intervals = table.intervals
    if intervals is None:
        return {}
    numbers = (
        intervals.confidence.tolist(),
        intervals.low.tolist(),
        intervals.high.tolist(),
        intervals.n_resamples.tolist(),
    )
    columns = zip(intervals.method.to_list(), *numbers, strict=True)
    percentile, a, b = (
        [None if low is None else (low, high) for low, high in zip(nan_to_none(low), high.tolist(), strict=True)]
        for low, high in (
            (intervals.plain_low, intervals.plain_high),
            (intervals.a_low, intervals.a_high),
            (intervals.b_low, intervals.b_high),
        )
    )
    return {
        row: {
            "interval": Interval(method, confidence, low, high, n or None, plain) if method else None,
            "score_a_interval": a[row],
            "score_b_interval": b[row],
            "paired_d": d,
        }
        for row, ((method, confidence, low, high, n), plain, d) in enumerate(
            zip(columns, percentile, nan_to_none(intervals.paired_d), strict=True)
        )
    }


def _build_adjusted(table: Table) -> dict[int, dict[str, Any]]:
    """Return for each row the fields of `Result` that hold two methods' p-values and simultaneous intervals."""
    details = table.adjusted
    if details is None:
        return {}
    names = details.first.to_list(), details.second.to_list()
    p_values = zip(*names, details.p_first.tolist(), details.p_second.tolist(), strict=True)
    ends = zip(nan_to_none(details.low), details.high.tolist(), strict=True)
    return {
        row: {
            "p_adjusted_by": {first_method: p_first, second_method: p_second} if first_method else None,
            "interval_simultaneous": None if low is None else (low, high),
        }
        for row, ((first_method, second_method, p_first, p_second), (low, high)) in enumerate(
            zip(p_values, ends, strict=True)
        )
    }


def _build_stopped(table: Table) -> dict[int, Stopped]:
    stopped_by_row = {}
    for stops in table.stops:
        for row in np.flatnonzero(stops.n_asked).tolist():
            decided = int(stops.is_significant[row])
            is_significant = None if decided < 0 else bool(decided)
            stopped_by_row[row] = Stopped(
                stops.rule, int(stops.n_asked[row]), bool(stops.is_early[row]), is_significant, stops.epsilon, stops.h
            )
    return stopped_by_row
