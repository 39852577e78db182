"""Tables built from `Result` objects, such as results read from a store."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.results import views
from sigdask.results.columns.adjusted import AdjustmentDetails
from sigdask.results.columns.assumptions import build_assumptions
from sigdask.results.columns.coded import CodedColumn, ScoredMetric, Subset
from sigdask.results.columns.inputs import InputDigests
from sigdask.results.columns.intervals import Intervals
from sigdask.results.messages.checks import SECOND_RUN, STOP_UNKNOWN
from sigdask.results.record import ClassicalTest, Result, Stopped
from sigdask.results.signature import Signature
from sigdask.results.table import (
    AlternativeUnit,
    CheckResults,
    ClassicalColumn,
    StoppedCounts,
    Table,
    UnitCorrelation,
    build_empty_intervals,
    merge_orders,
)
from sigdask.results.views import iter_results
from sigdask.statistics.classical.names import sort_tests
from sigdask.statistics.crosscheck import CHECKS, EXACT_VALUE, Check, compute_fit_p_within


def results_to_table(results: Sequence[Result], alpha: float) -> Table:
    """Return a table whose rows are the given results.

    What a row says in other words than its numbers give (an earlier version's) is kept as it is.
    """
    numbers = _build_numbers(results)
    table = Table(
        alpha=alpha,
        test_set=CodedColumn.from_values(r.test_set for r in results),
        subset=CodedColumn.from_values(
            None if r.subset is None else Subset(r.subset["column"], r.subset["value"]) for r in results
        ),
        unit=CodedColumn.from_values(r.unit for r in results),
        a=CodedColumn.from_values(r.a for r in results),
        b=CodedColumn.from_values(r.b for r in results),
        metric=CodedColumn.from_values(ScoredMetric(r.metric, r.higher_is_better, r.signature) for r in results),
        alternative=CodedColumn.from_values(r.alternative for r in results),
        exact=np.array([r.method == "exact" for r in results], np.bool_),
        exact_by=CodedColumn.from_values(
            None if r.exact is None else (r.exact.method, r.exact.guarantee) for r in results
        ),
        **numbers,
        checks=_build_checks(results),
        dependence=_build_correlations(results),
        beside=_build_other_units(results),
        stops=_build_stops(results),
        tests=_build_tests(results),
        intervals=_build_intervals(results),
        origins=_build_digests(results),
        assumptions=build_assumptions([r.assumptions for r in results]),
        adjusted=_build_adjusted(results),
    )
    return _add_kept_texts(table, results)


def _build_numbers(results: Sequence[Result]) -> dict[str, Any]:
    def integers(get: Callable[[Result], int]) -> NDArray[np.int64]:
        return np.array([get(r) for r in results], np.int64)

    def floats(get: Callable[[Result], float | None]) -> NDArray[np.float64]:
        return np.array([get(r) for r in results], np.float64)  # None becomes NaN

    return {
        "score_a": floats(lambda r: r.score_a),
        "score_b": floats(lambda r: r.score_b),
        "difference": floats(lambda r: r.difference),
        "n_items": integers(lambda r: r.n_items),
        "n_units": integers(lambda r: r.n_units),
        "n_discordant": integers(lambda r: r.n_discordant),
        "n_trials": integers(lambda r: r.n_trials),
        "n_extreme": integers(lambda r: r.n_extreme),
        "p_value": floats(lambda r: r.p_value),
        "p_low": floats(lambda r: r.p_interval[0]),
        "p_high": floats(lambda r: r.p_interval[1]),
        "r12": floats(lambda r: r.r12),
        "second_trials": integers(lambda r: r.second_run.n_trials if r.second_run else 0),
        "second_extreme": integers(lambda r: r.second_run.n_extreme if r.second_run else 0),
        "agreement_p": floats(lambda r: r.second_run.agreement_p if r.second_run else None),
        "exact_low": floats(lambda r: r.exact.p_lo if r.exact else None),
        "exact_high": floats(lambda r: r.exact.p_hi if r.exact else None),
        "p_adjusted": floats(lambda r: r.p_adjusted),
        "p_adjusted_low": floats(lambda r: r.p_adjusted_interval[0] if r.p_adjusted_interval else None),
        "p_adjusted_high": floats(lambda r: r.p_adjusted_interval[1] if r.p_adjusted_interval else None),
        "undefined_a": floats(lambda r: _find_note_number(r, "zero-division", "score", r.a)),
        "undefined_b": floats(lambda r: _find_note_number(r, "zero-division", "score", r.b)),
        "step": np.zeros(len(results)),
        "seen_with": integers(lambda r: int(_find_note_number(r, "second-look", "n_trials") or 0)),
    }


def _find_note_number(result: Result, kind: str, number: str, system: str | None = None) -> Any:
    """Return a number in the first note of a result with the given kind and system, or None."""
    note_numbers = (note.numbers for note in result.notes if note.kind == kind)
    return next((numbers.get(number) for numbers in note_numbers if numbers.get("system") == system), None)


def _build_checks(results: Sequence[Result]) -> dict[str, CheckResults]:
    checks_by_result = [{check.name: check for check in r.checks} for r in results]
    standard_names = tuple(name for name in CHECKS if any(name in result_checks for result_checks in checks_by_result))
    names = merge_orders([standard_names, *map(tuple, checks_by_result)])
    return {
        name: _build_check(name, results, [result_checks.get(name) for result_checks in checks_by_result])
        for name in names
    }


def _build_check(name: str, results: Sequence[Result], checks: Sequence[Check | None]) -> CheckResults:
    return CheckResults(
        verdict=np.array([-1 if c is None else views.VERDICTS.index(c.verdict) for c in checks], np.int8),
        p_value=np.array([None if c is None else c.p_value for c in checks], np.float64),
        fit=np.array([_compute_fit(name, r, c) for r, c in zip(results, checks, strict=True)], np.float64),
        why=CodedColumn.from_values("" if c is None or c.verdict != "not applicable" else c.detail for c in checks),
    )


def _compute_fit(name: str, result: Result, check: Check | None) -> float | None:
    is_enumerated = result.method == "exact" and result.p_interval[0] == result.p_interval[1]
    if check is None or check.p_value is None or name == SECOND_RUN or is_enumerated or not result.n_trials:
        return None
    low = result.exact.p_lo if name == EXACT_VALUE and result.exact is not None else check.p_value
    return float(compute_fit_p_within(result.n_extreme, result.n_trials, low, check.p_value))


def _build_correlations(results: Sequence[Result]) -> tuple[UnitCorrelation, ...]:
    columns = merge_orders(tuple(d.column for d in r.dependence) for r in results)
    tested_rows: dict[str, list[tuple[Any, ...]]] = {column: [] for column in columns}
    for row, r in enumerate(results):
        for d in r.dependence:
            tested_rows[d.column].append((row, d.n_groups, d.icc, d.design_effect, d.p_value))
    return tuple(_build_correlation(column, tested) for column, tested in tested_rows.items())


def _build_correlation(column: str, tested: Sequence[tuple[Any, ...]]) -> UnitCorrelation:
    rows, n_groups, icc, effect, p = (np.array(values) for values in zip(*tested, strict=True))
    return UnitCorrelation(
        column, rows, n_groups, icc.astype(np.float64), effect.astype(np.float64), p.astype(np.float64)
    )


def _build_other_units(results: Sequence[Result]) -> tuple[AlternativeUnit, ...]:
    n_other_units = max((len(r.beside) for r in results), default=0)
    return tuple(
        _build_other_unit([r.beside[k] if k < len(r.beside) else None for r in results]) for k in range(n_other_units)
    )


def _build_other_unit(other_units: Sequence[Any]) -> AlternativeUnit:
    return AlternativeUnit(
        unit=CodedColumn.from_values("" if b is None else b.unit for b in other_units),
        n_units=np.array([0 if b is None else b.n_units for b in other_units], np.int64),
        exact=np.array([b is not None and b.method == "exact" for b in other_units], np.bool_),
        n_trials=np.array([0 if b is None else b.n_trials for b in other_units], np.int64),
        n_extreme=np.array([0 if b is None else b.n_extreme for b in other_units], np.int64),
        p_value=np.array([None if b is None else b.p_value for b in other_units], np.float64),
    )


def _build_stops(results: Sequence[Result]) -> tuple[StoppedCounts, ...]:
    rules = dict.fromkeys((r.stopped.rule, r.stopped.epsilon, r.stopped.h) for r in results if r.stopped is not None)
    return tuple(_build_rule_stops(results, *rule) for rule in rules)


def _build_rule_stops(results: Sequence[Result], rule: str, epsilon: float | None, h: int | None) -> StoppedCounts:
    def get_stopped(r: Result) -> Stopped | None:
        stopped = r.stopped
        return stopped if stopped and (stopped.rule, stopped.epsilon, stopped.h) == (rule, epsilon, h) else None

    stopped_results = [get_stopped(r) for r in results]
    codes = {None: -1, False: 0, True: 1}
    return StoppedCounts(
        rule=rule,
        n_asked=np.array([0 if s is None else s.n_asked for s in stopped_results], np.int64),
        is_early=np.array([s is not None and s.is_early for s in stopped_results], np.bool_),
        is_significant=np.array([-1 if s is None else codes[s.is_significant] for s in stopped_results], np.int8),
        epsilon=epsilon,
        h=h,
        is_unknown=np.array(
            [s is not None and STOP_UNKNOWN in r.notes for s, r in zip(stopped_results, results, strict=True)], np.bool_
        ),
        n_counted=np.array(
            [0 if s is None else r.n_trials for s, r in zip(stopped_results, results, strict=True)], np.int64
        ),
        n_counted_extreme=np.array(
            [0 if s is None else r.n_extreme for s, r in zip(stopped_results, results, strict=True)], np.int64
        ),
    )


def _build_tests(results: Sequence[Result]) -> tuple[ClassicalColumn, ...]:
    names = sort_tests(test.name for r in results for test in r.tests)
    return tuple(_build_test(name, [{t.name: t for t in r.tests}.get(name) for r in results]) for name in names)


def _build_test(name: str, tests: Sequence[ClassicalTest | None]) -> ClassicalColumn:
    return ClassicalColumn(
        name=name,
        statistic=np.array([None if t is None else t.statistic for t in tests], np.float64),
        p_value=np.array([None if t is None else t.p_value for t in tests], np.float64),
        n=np.array([0 if t is None else t.n or 0 for t in tests], np.int64),
        n_dropped=np.zeros(len(tests), np.int64),  # which stands in the words
        detail=CodedColumn.from_values("" if t is None else t.detail for t in tests),
    )


def _find_interval_note(result: Result) -> str:
    """Return the text of a result's note on why it has no interval or on how to read it; empty without one."""
    return next((note.text.partition(": ")[2] for note in result.notes if note.kind == "interval"), "")


def _build_intervals(results: Sequence[Result]) -> Intervals | None:
    all_fields = (
        (r.interval, r.score_a_interval, r.score_b_interval, r.paired_d, _find_interval_note(r) or None)
        for r in results
    )
    if all(value is None for row_fields in all_fields for value in row_fields):
        return None

    def split_ends(get: Callable[[Result], tuple[float | None, float | None] | None]) -> NDArray[np.float64]:
        return np.array([get(r) or (None, None) for r in results], np.float64).T

    empty = build_empty_intervals(len(results))
    plain_low, plain_high = split_ends(lambda r: r.interval.percentile if r.interval else None)
    a_low, a_high = split_ends(lambda r: r.score_a_interval)
    b_low, b_high = split_ends(lambda r: r.score_b_interval)
    low, high = split_ends(lambda r: (r.interval.low, r.interval.high) if r.interval else None)
    return replace(
        empty,
        method=CodedColumn.from_values("" if r.interval is None else r.interval.method for r in results),
        confidence=np.array([None if r.interval is None else r.interval.confidence for r in results], np.float64),
        low=low, high=high, plain_low=plain_low, plain_high=plain_high,
        a_low=a_low, a_high=a_high, b_low=b_low, b_high=b_high,
        n_resamples=np.array([(r.interval.n_resamples or 0) if r.interval else 0 for r in results], np.int64),
        paired_d=np.array([r.paired_d for r in results], np.float64),
        skewness=np.array([_find_note_number(r, "interval-coverage", "skewness") for r in results], np.float64),
        why=CodedColumn.from_values(_find_interval_note(r) for r in results),
    )  # fmt: skip


def _build_adjusted(results: Sequence[Result]) -> AdjustmentDetails | None:
    """Return the columns with details of adjusted p-values, or None if no result has any."""
    if all(r.p_adjusted_by is None and r.interval_simultaneous is None for r in results):
        return None
    nothing = ("", math.nan)
    methods = [[*(r.p_adjusted_by or {}).items()] or [nothing, nothing] for r in results]
    first_methods, second_methods = zip(*methods, strict=True)
    ends = [r.interval_simultaneous for r in results]
    return AdjustmentDetails(
        first=CodedColumn.from_values(name for name, _ in first_methods),
        second=CodedColumn.from_values(name for name, _ in second_methods),
        p_first=np.array([p for _, p in first_methods], np.float64),
        p_second=np.array([p for _, p in second_methods], np.float64),
        low=np.array([np.nan if interval is None else interval[0] for interval in ends], np.float64),
        high=np.array([np.nan if interval is None else interval[1] for interval in ends], np.float64),
    )


def _build_digests(results: Sequence[Result]) -> InputDigests | None:
    """Return the columns of inputs from the signatures of results, or None if no result has a signature."""
    if all(r.test_signature is None for r in results):
        return None
    parsed = {text: Signature.parse(text) for r in results if (text := r.test_signature) is not None}
    signatures = [parsed[r.test_signature] if r.test_signature is not None else None for r in results]

    def get_column(get: Callable[[Signature], object]) -> CodedColumn[str]:
        return CodedColumn.from_values(
            "" if signature is None or get(signature) is None else str(get(signature)) for signature in signatures
        )

    return InputDigests(
        seed=np.array([0 if signature is None else signature.seed for signature in signatures], np.int64),
        method=get_column(lambda signature: signature.method),
        units=get_column(lambda signature: signature.data.units),
        data_a=get_column(lambda signature: signature.data.a),
        data_b=get_column(lambda signature: signature.data.b),
        code=get_column(lambda signature: dict(signature.options).get("code")),
        adjust=get_column(lambda signature: signature.adjust),
        members=get_column(lambda signature: signature.members),
        family=get_column(lambda signature: signature.family),
        version=get_column(lambda signature: signature.version),
    )


def _add_kept_texts(table: Table, results: Sequence[Result]) -> Table:
    """Return the table with those texts of results added that differ from what the columns would give."""
    notes: dict[int, Any] = {}
    kept_texts: dict[str, dict[int, str]] = {name: {} for name in table.checks}
    for row, (original, rebuilt) in enumerate(zip(results, iter_results(table), strict=True)):
        if original.notes != rebuilt.notes:
            notes[row] = original.notes
        for original_check, rebuilt_check in zip(original.checks, rebuilt.checks, strict=True):
            if original_check.detail != rebuilt_check.detail:
                kept_texts[original_check.name][row] = original_check.detail
    checks: Mapping[str, CheckResults] = {name: replace(c, kept=kept_texts[name]) for name, c in table.checks.items()}
    return replace(table, checks=checks, notes=notes)
