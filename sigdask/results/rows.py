"""Columns of what comes as rows: results that were read one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.results import views
from sigdask.results.columns.adjusted import AdjustmentDetails
from sigdask.results.columns.assumptions import assumptions_of
from sigdask.results.columns.coded import Coded, ScoredMetric, Subset
from sigdask.results.columns.inputs import InputDigests
from sigdask.results.columns.intervals import Intervals
from sigdask.results.messages.checks import NOT_FOUND, SECOND_RUN
from sigdask.results.record import ClassicalTest, Result, Stopped
from sigdask.results.signature import Signature
from sigdask.results.table import (
    AlternativeUnit,
    CheckResults,
    ClassicalColumn,
    StoppedCounts,
    Table,
    UnitCorrelation,
    merged,
    no_intervals,
)
from sigdask.results.views import result_views
from sigdask.statistics.classical.names import in_order
from sigdask.statistics.crosscheck import CHECKS, EXACT_VALUE, Check, count_fits_within


def table_from_results(results: Sequence[Result], alpha: float) -> Table:
    """Return columns whose views are these results.

    What a row says in other words than its numbers give (an earlier version's) is kept as it is.
    """
    numbers = _numbers(results)
    table = Table(
        alpha=alpha,
        test_set=Coded.of(r.test_set for r in results),
        subset=Coded.of(None if r.subset is None else Subset(r.subset["column"], r.subset["value"]) for r in results),
        unit=Coded.of(r.unit for r in results),
        a=Coded.of(r.a for r in results),
        b=Coded.of(r.b for r in results),
        metric=Coded.of(ScoredMetric(r.metric, r.higher_is_better, r.signature) for r in results),
        alternative=Coded.of(r.alternative for r in results),
        exact=np.array([r.method == "exact" for r in results], np.bool_),
        exact_by=Coded.of(None if r.exact is None else (r.exact.method, r.exact.guarantee) for r in results),
        **numbers,
        checks=_checks(results),
        dependence=_dependence(results),
        beside=_beside(results),
        stops=_stops(results),
        tests=_tests(results),
        intervals=_intervals(results),
        origins=_origins(results),
        assumptions=assumptions_of([r.assumptions for r in results]),
        adjusted=_adjusted(results),
    )
    return _with_words(table, results)


def _numbers(results: Sequence[Result]) -> dict[str, Any]:
    def whole(get: Callable[[Result], int]) -> NDArray[np.int64]:
        return np.array([get(r) for r in results], np.int64)

    def real(get: Callable[[Result], float | None]) -> NDArray[np.float64]:
        return np.array([get(r) for r in results], np.float64)  # None becomes NaN

    return {
        "score_a": real(lambda r: r.score_a),
        "score_b": real(lambda r: r.score_b),
        "difference": real(lambda r: r.difference),
        "n_items": whole(lambda r: r.n_items),
        "n_units": whole(lambda r: r.n_units),
        "n_discordant": whole(lambda r: r.n_discordant),
        "n_trials": whole(lambda r: r.n_trials),
        "n_extreme": whole(lambda r: r.n_extreme),
        "p_value": real(lambda r: r.p_value),
        "p_low": real(lambda r: r.p_interval[0]),
        "p_high": real(lambda r: r.p_interval[1]),
        "r12": real(lambda r: r.r12),
        "second_trials": whole(lambda r: r.second_run.n_trials if r.second_run else 0),
        "second_extreme": whole(lambda r: r.second_run.n_extreme if r.second_run else 0),
        "agreement_p": real(lambda r: r.second_run.agreement_p if r.second_run else None),
        "exact_low": real(lambda r: r.exact.p_lo if r.exact else None),
        "exact_high": real(lambda r: r.exact.p_hi if r.exact else None),
        "p_adjusted": real(lambda r: r.p_adjusted),
        "p_adjusted_low": real(lambda r: r.p_adjusted_interval[0] if r.p_adjusted_interval else None),
        "p_adjusted_high": real(lambda r: r.p_adjusted_interval[1] if r.p_adjusted_interval else None),
        "undefined_a": real(lambda r: _noted(r, "zero-division", "score", r.a)),
        "undefined_b": real(lambda r: _noted(r, "zero-division", "score", r.b)),
        "step": np.zeros(len(results)),
        "seen_with": whole(lambda r: int(_noted(r, "second-look", "n_trials") or 0)),
    }


def _noted(result: Result, kind: str, number: str, system: str | None = None) -> Any:
    """Return a number of a result's note, None where it has no such note."""
    own = (note.numbers for note in result.notes if note.kind == kind)
    return next((numbers.get(number) for numbers in own if numbers.get("system") == system), None)


def _checks(results: Sequence[Result]) -> dict[str, CheckResults]:
    found = [{check.name: check for check in r.checks} for r in results]
    usual = tuple(name for name in CHECKS if any(name in own for own in found))
    names = merged([usual, *map(tuple, found)])
    return {name: _checked(name, results, [own.get(name) for own in found]) for name in names}


def _checked(name: str, results: Sequence[Result], checks: Sequence[Check | None]) -> CheckResults:
    return CheckResults(
        verdict=np.array([-1 if c is None else views.VERDICTS.index(c.verdict) for c in checks], np.int8),
        p_value=np.array([None if c is None else c.p_value for c in checks], np.float64),
        fit=np.array([_fit(name, r, c) for r, c in zip(results, checks, strict=True)], np.float64),
        why=Coded.of("" if c is None or c.verdict != "not applicable" else c.detail for c in checks),
    )


def _fit(name: str, result: Result, check: Check | None) -> float | None:
    whole = result.method == "exact" and result.p_interval[0] == result.p_interval[1]
    if check is None or check.p_value is None or name == SECOND_RUN or whole or not result.n_trials:
        return None
    low = result.exact.p_lo if name == EXACT_VALUE and result.exact is not None else check.p_value
    return float(count_fits_within(result.n_extreme, result.n_trials, low, check.p_value))


def _dependence(results: Sequence[Result]) -> tuple[UnitCorrelation, ...]:
    columns = merged(tuple(d.column for d in r.dependence) for r in results)
    found: dict[str, list[tuple[Any, ...]]] = {column: [] for column in columns}
    for row, r in enumerate(results):
        for d in r.dependence:
            found[d.column].append((row, d.n_groups, d.icc, d.design_effect, d.p_value))
    return tuple(_hanging(column, own) for column, own in found.items())


def _hanging(column: str, tested: Sequence[tuple[Any, ...]]) -> UnitCorrelation:
    rows, n_groups, icc, effect, p = (np.array(values) for values in zip(*tested, strict=True))
    return UnitCorrelation(
        column, rows, n_groups, icc.astype(np.float64), effect.astype(np.float64), p.astype(np.float64)
    )


def _beside(results: Sequence[Result]) -> tuple[AlternativeUnit, ...]:
    most = max((len(r.beside) for r in results), default=0)
    return tuple(_other_unit([r.beside[k] if k < len(r.beside) else None for r in results]) for k in range(most))


def _other_unit(besides: Sequence[Any]) -> AlternativeUnit:
    return AlternativeUnit(
        unit=Coded.of("" if b is None else b.unit for b in besides),
        n_units=np.array([0 if b is None else b.n_units for b in besides], np.int64),
        exact=np.array([b is not None and b.method == "exact" for b in besides], np.bool_),
        n_trials=np.array([0 if b is None else b.n_trials for b in besides], np.int64),
        n_extreme=np.array([0 if b is None else b.n_extreme for b in besides], np.int64),
        p_value=np.array([None if b is None else b.p_value for b in besides], np.float64),
    )


def _stops(results: Sequence[Result]) -> tuple[StoppedCounts, ...]:
    rules = dict.fromkeys((r.stopped.rule, r.stopped.epsilon, r.stopped.h) for r in results if r.stopped is not None)
    return tuple(_stops_of(results, *rule) for rule in rules)


def _stops_of(results: Sequence[Result], rule: str, epsilon: float | None, h: int | None) -> StoppedCounts:
    def own(r: Result) -> Stopped | None:
        stopped = r.stopped
        return stopped if stopped and (stopped.rule, stopped.epsilon, stopped.h) == (rule, epsilon, h) else None

    found = [own(r) for r in results]
    decided = {None: -1, False: 0, True: 1}
    return StoppedCounts(
        rule=rule,
        n_asked=np.array([0 if s is None else s.n_asked for s in found], np.int64),
        is_early=np.array([s is not None and s.is_early for s in found], np.bool_),
        is_significant=np.array([-1 if s is None else decided[s.is_significant] for s in found], np.int8),
        epsilon=epsilon,
        h=h,
        is_unknown=np.array(
            [s is not None and NOT_FOUND in r.notes for s, r in zip(found, results, strict=True)], np.bool_
        ),
        n_counted=np.array([0 if s is None else r.n_trials for s, r in zip(found, results, strict=True)], np.int64),
        n_counted_extreme=np.array(
            [0 if s is None else r.n_extreme for s, r in zip(found, results, strict=True)], np.int64
        ),
    )


def _tests(results: Sequence[Result]) -> tuple[ClassicalColumn, ...]:
    names = in_order(test.name for r in results for test in r.tests)
    return tuple(_tested(name, [{t.name: t for t in r.tests}.get(name) for r in results]) for name in names)


def _tested(name: str, tests: Sequence[ClassicalTest | None]) -> ClassicalColumn:
    return ClassicalColumn(
        name=name,
        statistic=np.array([None if t is None else t.statistic for t in tests], np.float64),
        p_value=np.array([None if t is None else t.p_value for t in tests], np.float64),
        n=np.array([0 if t is None else t.n or 0 for t in tests], np.int64),
        n_dropped=np.zeros(len(tests), np.int64),  # which stands in the words
        detail=Coded.of("" if t is None else t.detail for t in tests),
    )


def _why(result: Result) -> str:
    """Return what a note says of a result's interval."""
    return next((note.text.partition(": ")[2] for note in result.notes if note.kind == "interval"), "")


def _intervals(results: Sequence[Result]) -> Intervals | None:
    every = ((r.interval, r.score_a_interval, r.score_b_interval, r.paired_d, _why(r) or None) for r in results)
    if all(one is None for own in every for one in own):
        return None

    def ends(get: Callable[[Result], tuple[float | None, float | None] | None]) -> NDArray[np.float64]:
        return np.array([get(r) or (None, None) for r in results], np.float64).T

    nothing = no_intervals(len(results))
    plain_low, plain_high = ends(lambda r: r.interval.percentile if r.interval else None)
    a_low, a_high = ends(lambda r: r.score_a_interval)
    b_low, b_high = ends(lambda r: r.score_b_interval)
    low, high = ends(lambda r: (r.interval.low, r.interval.high) if r.interval else None)
    return replace(
        nothing,
        method=Coded.of("" if r.interval is None else r.interval.method for r in results),
        confidence=np.array([None if r.interval is None else r.interval.confidence for r in results], np.float64),
        low=low, high=high, plain_low=plain_low, plain_high=plain_high,
        a_low=a_low, a_high=a_high, b_low=b_low, b_high=b_high,
        n_resamples=np.array([(r.interval.n_resamples or 0) if r.interval else 0 for r in results], np.int64),
        paired_d=np.array([r.paired_d for r in results], np.float64),
        skewness=np.array([_noted(r, "interval-coverage", "skewness") for r in results], np.float64),
        why=Coded.of(_why(r) for r in results),
    )  # fmt: skip


def _adjusted(results: Sequence[Result]) -> AdjustmentDetails | None:
    """Return what stands beside the adjusted p-values of results."""
    if all(r.p_adjusted_by is None and r.interval_simultaneous is None for r in results):
        return None
    nothing = ("", math.nan)
    by = [[*(r.p_adjusted_by or {}).items()] or [nothing, nothing] for r in results]
    first, second = zip(*by, strict=True)
    ends = [r.interval_simultaneous for r in results]
    return AdjustmentDetails(
        first=Coded.of(name for name, _ in first),
        second=Coded.of(name for name, _ in second),
        p_first=np.array([p for _, p in first], np.float64),
        p_second=np.array([p for _, p in second], np.float64),
        low=np.array([np.nan if own is None else own[0] for own in ends], np.float64),
        high=np.array([np.nan if own is None else own[1] for own in ends], np.float64),
    )


def _origins(results: Sequence[Result]) -> InputDigests | None:
    """Return what the signatures of results say of what they come from."""
    if all(r.test_signature is None for r in results):
        return None
    read = {text: Signature.parse(text) for r in results if (text := r.test_signature) is not None}
    own = [read[r.test_signature] if r.test_signature is not None else None for r in results]

    def texts(get: Callable[[Signature], object]) -> Coded[str]:
        return Coded.of("" if one is None or get(one) is None else str(get(one)) for one in own)

    return InputDigests(
        seed=np.array([0 if one is None else one.seed for one in own], np.int64),
        method=texts(lambda one: one.method),
        units=texts(lambda one: one.data.units),
        data_a=texts(lambda one: one.data.a),
        data_b=texts(lambda one: one.data.b),
        code=texts(lambda one: dict(one.options).get("code")),
        adjust=texts(lambda one: one.adjust),
        members=texts(lambda one: one.members),
        family=texts(lambda one: one.family),
        version=texts(lambda one: one.version),
    )


def _with_words(table: Table, results: Sequence[Result]) -> Table:
    """Keep what a row says in other words than its columns do."""
    notes: dict[int, Any] = {}
    kept: dict[str, dict[int, str]] = {name: {} for name in table.checks}
    for row, (given, made) in enumerate(zip(results, result_views(table), strict=True)):
        if given.notes != made.notes:
            notes[row] = given.notes
        for one, other in zip(given.checks, made.checks, strict=True):
            if one.detail != other.detail:
                kept[one.name][row] = one.detail
    checks: Mapping[str, CheckResults] = {name: replace(c, kept=kept[name]) for name, c in table.checks.items()}
    return replace(table, checks=checks, notes=notes)
