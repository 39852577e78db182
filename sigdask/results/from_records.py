"""Tables built from `Result` objects, such as results of a JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from sigdask.results import fields
from sigdask.results.columns import (
    AdjustmentDetails,
    CodedColumn,
    Column,
    DecidingUnits,
    EqualScores,
    Group,
    InputDigests,
    Intervals,
    Margins,
    ScoredMetric,
    Subset,
    get_filling,
)
from sigdask.results.record import Result
from sigdask.results.signature import Signature
from sigdask.results.table import (
    AlternativeUnit,
    CheckResults,
    ClassicalColumn,
    Table,
    UnitCorrelation,
    merge_orders,
)
from sigdask.statistics.bounds import (
    CHECKS,
    EQUAL_SCORES,
    EXACT_VALUE,
    SECOND_RUN,
    Check,
    compute_fit_p_within,
)
from sigdask.statistics.classical import sort_tests

PATHS = {
    "p_low": "p_interval.0", "p_high": "p_interval.1",
    "p_adjusted_low": "p_adjusted_interval.0", "p_adjusted_high": "p_adjusted_interval.1",
    "second_trials": "second_run.n_trials", "second_extreme": "second_run.n_extreme",
    "agreement_p": "second_run.agreement_p", "exact_low": "exact.p_lo", "exact_high": "exact.p_hi",
}  # fmt: skip
"""Paths in a result to the values of table columns, where they differ from the columns' names."""

INTERVAL_PATHS = {
    **{name: f"interval.{name}" for name in ("method", "confidence", "low", "high", "n_resamples")},
    "plain_low": "interval.percentile.0", "plain_high": "interval.percentile.1", "a_low": "score_a_interval.0",
    "a_high": "score_a_interval.1", "b_low": "score_b_interval.0", "b_high": "score_b_interval.1",
}  # fmt: skip

ADJUSTMENT_PATHS = {"low": "interval_simultaneous.0", "high": "interval_simultaneous.1"}
MARGIN_PATHS = {
    "margin": "margin.margin", "not_worse": "margin.p_not_worse", "not_better": "margin.p_not_better",
    "holm_not_worse": "margin.p_adjusted.0", "holm_not_better": "margin.p_adjusted.1",
    "holm_equivalent": "margin.p_adjusted.2", "method": "margin.method",
}  # fmt: skip
METHOD_PATHS = {"first": "0.0", "p_first": "0.1", "second": "1.0", "p_second": "1.1"}
DIGEST_PATHS = {"units": "data.units", "data_a": "data.a", "data_b": "data.b"}


def _follow(records: Sequence[Any], path: str) -> list[Any]:
    """Return the value at the end of a path in each record, or None if a value on the path is None."""
    values = list(records)
    for name in path.split("."):
        get: Any = itemgetter(int(name)) if name.isdigit() else attrgetter(name)
        values = [None if value is None else get(value) for value in values]
    return values


def _fill_group(
    group: type[Group], records: Sequence[Any], paths: Mapping[str, str] | None = None, **known: Any
) -> Group:
    """Return a group with the values of records, or of their paths, and of `known` fields as columns."""
    empty = group.build_empty(len(records), **known)
    columns = {
        name: _build_column(_follow(records, (paths or {}).get(name, name)), column)
        for name, column in empty.columns.items()
        if name not in known
    }
    return replace(empty, **columns)


def _build_column(values: Sequence[Any], example: Column) -> Column:
    """Return a column of the same type as an example; None becomes its filling."""
    if isinstance(example, CodedColumn):
        return CodedColumn.from_values("" if value is None else str(value) for value in values)
    filling = get_filling(example.dtype)
    return np.array([filling if value is None else value for value in values], example.dtype)


def results_to_table(results: Sequence[Result], alpha: float) -> Table:
    """Return a table whose rows are the given results.

    Sentences that the numbers in the columns do not reproduce are kept.
    """
    undefined_a, undefined_b = (
        [_find_note_number(r, "zero-division", "score", system) for r, system in zip(results, systems, strict=True)]
        for systems in ([r.a for r in results], [r.b for r in results])
    )
    exact_by = [None if r.exact is None else (r.exact.method, r.exact.guarantee) for r in results]
    table = _fill_group(
        Table,
        results,
        PATHS,
        alpha=alpha,
        subset=CodedColumn.from_values(None if r.subset is None else Subset(**r.subset) for r in results),
        metric=CodedColumn.from_values(ScoredMetric(r.metric, r.higher_is_better, r.signature) for r in results),
        exact=np.array([r.method == "exact" for r in results], np.bool_),
        exact_by=CodedColumn.from_values(exact_by),
        undefined_a=np.array(undefined_a, np.float64),
        undefined_b=np.array(undefined_b, np.float64),
        step=np.zeros(len(results)),
        seen_with=np.array([_find_note_number(r, "second-look", "n_trials") or 0 for r in results], np.int64),
        checks=_build_checks(results),
        dependence=_build_correlations(results),
        beside=_build_other_units(results),
        tests=_build_tests(results),
        intervals=_build_intervals(results),
        origins=_build_digests(results),
        deciding=_build_deciding(results),
        adjusted=_build_adjusted(results),
        equal_scores=_build_equal_scores(results),
        margins=_fill_group(Margins, results, MARGIN_PATHS) if any(r.margin for r in results) else None,
        added=_build_registered_columns(results),
    )
    return _add_kept_texts(table, results)


def _find_note_number(result: Result, kind: str, number: str, system: str | None = None) -> Any:
    """Return a number in the first note of a result with the given kind and system, or None."""
    note_numbers = (note.numbers for note in result.notes if note.kind == kind)
    return next((numbers.get(number) for numbers in note_numbers if numbers.get("system") == system), None)


def _build_deciding(results: Sequence[Result]) -> DecidingUnits | None:
    """Return the columns of units that decide, from the notes on them, or None if there are none."""
    n_deciding = [_find_note_number(r, "few-units-decide", "n_deciding") or 0 for r in results]
    changes = [_find_note_number(r, "few-units-decide", "changes") for r in results]
    reverses = np.array([change == "sign" for change in changes])
    if not any(n_deciding):
        return None
    return DecidingUnits(np.array(n_deciding), reverses)


def _build_checks(results: Sequence[Result]) -> dict[str, CheckResults]:
    checks_by_result = [{check.name: check for check in r.checks if check.name != EQUAL_SCORES} for r in results]
    standard_names = tuple(name for name in CHECKS if any(name in result_checks for result_checks in checks_by_result))
    names = merge_orders([standard_names, *map(tuple, checks_by_result)])
    return {
        name: _build_check(name, results, [result_checks.get(name) for result_checks in checks_by_result])
        for name in names
    }


def _build_check(name: str, results: Sequence[Result], checks: Sequence[Check | None]) -> CheckResults:
    fit = [_compute_fit(name, r, c) for r, c in zip(results, checks, strict=True)]
    return _fill_group(
        CheckResults,
        checks,
        verdict=np.array([-1 if c is None else fields.VERDICTS.index(c.verdict) for c in checks], np.int8),
        fit=np.array(fit, np.float64),
        why=CodedColumn.from_values("" if c is None or c.verdict != "not applicable" else c.detail for c in checks),
    )


def _compute_fit(name: str, result: Result, check: Check | None) -> float | None:
    is_enumerated = result.method == "exact" and result.p_interval[0] == result.p_interval[1]
    if check is None or check.p_value is None or name == SECOND_RUN or is_enumerated or not result.n_trials:
        return None
    low = result.exact.p_lo if name == EXACT_VALUE and result.exact is not None else check.p_value
    return float(compute_fit_p_within(result.n_extreme, result.n_trials, low, check.p_value))


def _build_correlations(results: Sequence[Result]) -> tuple[UnitCorrelation, ...]:
    by_column = [{d.column: d for d in r.dependence} for r in results]
    return tuple(
        _fill_group(UnitCorrelation, [dependence.get(column) for dependence in by_column], column=column)
        for column in merge_orders(map(tuple, by_column))
    )


def _build_other_units(results: Sequence[Result]) -> tuple[AlternativeUnit, ...]:
    n_other_units = max((len(r.beside) for r in results), default=0)
    columns = [[r.beside[k] if k < len(r.beside) else None for r in results] for k in range(n_other_units)]
    return tuple(
        _fill_group(AlternativeUnit, other, exact=np.array([o is not None and o.method == "exact" for o in other]))
        for other in columns
    )


def _build_tests(results: Sequence[Result]) -> tuple[ClassicalColumn, ...]:
    names = sort_tests(test.name for r in results for test in r.tests)
    n_dropped = np.zeros(len(results), np.int64)  # the number is only in the sentence
    columns = ([next((t for t in r.tests if t.name == name), None) for r in results] for name in names)
    return tuple(
        _fill_group(ClassicalColumn, tests, name=name, n_dropped=n_dropped)
        for name, tests in zip(names, columns, strict=True)
    )


def _build_intervals(results: Sequence[Result]) -> Intervals | None:
    notes = [next((note.text.partition(": ")[2] for note in r.notes if note.kind == "interval"), "") for r in results]
    all_fields = ((r.interval, r.score_a_interval, r.score_b_interval, r.paired_d) for r in results)
    if not any(notes) and all(value is None for row_fields in all_fields for value in row_fields):
        return None
    skewness = [_find_note_number(r, "interval-coverage", "skewness") for r in results]
    return _fill_group(
        Intervals, results, INTERVAL_PATHS, skewness=np.array(skewness, np.float64), why=CodedColumn.from_values(notes)
    )


def _build_adjusted(results: Sequence[Result]) -> AdjustmentDetails | None:
    """Return the columns with details of adjusted p-values, or None if no result has any."""
    if all(r.p_adjusted_by is None and r.interval_simultaneous is None for r in results):
        return None
    methods = [[*r.p_adjusted_by.items()] if r.p_adjusted_by else None for r in results]
    empty = AdjustmentDetails.build_empty(len(results)).columns
    by_method = {name: _build_column(_follow(methods, path), empty[name]) for name, path in METHOD_PATHS.items()}
    return _fill_group(AdjustmentDetails, results, ADJUSTMENT_PATHS, **by_method)


def _build_equal_scores(results: Sequence[Result]) -> EqualScores | None:
    """Return the columns of equal-score tests, or None if no result has one."""
    tests = [r.equal_scores for r in results]
    return _fill_group(EqualScores, tests) if any(tests) else None


def _build_digests(results: Sequence[Result]) -> InputDigests | None:
    """Return the columns of inputs from the signatures of results, or None if no result has a signature."""
    if all(r.test_signature is None for r in results):
        return None
    parsed = {text: Signature.parse(text) for r in results if (text := r.test_signature) is not None}
    signatures = [None if r.test_signature is None else parsed[r.test_signature] for r in results]
    codes = [None if signature is None else dict(signature.options).get("code") for signature in signatures]
    return _fill_group(InputDigests, signatures, DIGEST_PATHS, code=CodedColumn.from_values(c or "" for c in codes))


def _build_registered_columns(results: Sequence[Result]) -> dict[str, Column]:
    """Return the columns of fields that extensions registered; other fields are attributes of results."""
    columns: dict[str, Column] = {}
    for field in fields.list_added_fields():
        values = [r.added.get(field.name) for r in results]
        is_text = field.kind == "string"
        columns[field.name] = CodedColumn.from_values(values) if is_text else np.array(values, np.float64)
    return columns


def _add_kept_texts(table: Table, results: Sequence[Result]) -> Table:
    """Return the table with those texts of results added that the columns would not reproduce."""
    notes: dict[int, Any] = {}
    kept_texts: dict[str, dict[int, str]] = {name: {} for name in table.checks}
    for row, (original, rebuilt) in enumerate(zip(results, fields.iter_results(table), strict=True)):
        if original.notes != rebuilt.notes:
            notes[row] = original.notes
        for original_check, rebuilt_check in zip(original.checks, rebuilt.checks, strict=True):
            if original_check.name != EQUAL_SCORES and original_check.detail != rebuilt_check.detail:
                kept_texts[original_check.name][row] = original_check.detail
    checks: Mapping[str, CheckResults] = {name: replace(c, kept=kept_texts[name]) for name, c in table.checks.items()}
    return replace(table, checks=checks, notes=notes)
