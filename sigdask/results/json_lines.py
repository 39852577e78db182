"""JSON of results, one line each, built column by column so that equal values are formatted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import repeat
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sigdask.options import INDEPENDENT_TESTS
from sigdask.results import signature, views
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.doubts import list_assumptions
from sigdask.results.messages import checks
from sigdask.results.messages.notes import list_dicts, list_texts
from sigdask.results.table import AlternativeUnit, ClassicalColumn, StoppedCounts, Table, UnitCorrelation
from sigdask.text import as_json_line

KEYS = (
    "test_set", "subset", "unit", "a", "b", "metric", "higher_is_better", "score_a", "score_b", "difference",
    "alternative", "n_items", "n_units", "n_discordant", "method", "n_trials", "n_extreme", "p_value", "p_interval",
    "p_adjusted", "r12", "second_run", "exact", "checks", "dependence", "beside", "notes", "signature", "stopped",
    "p_adjusted_interval", "tests", "interval", "score_a_interval", "score_b_interval", "paired_d", "warnings",
    "test_signature", "assumptions", "p_adjusted_by", "interval_simultaneous",
)  # fmt: skip
"""Of each result, which stay."""


RUN = ("n_trials", "n_extreme", "p_value", "agreement_p")
EXACT = ("p_lo", "p_hi", "method", "guarantee")
CHECK = ("name", "verdict", "p_value", "detail")
DEPENDENCE = ("column", "n_groups", "icc", "design_effect", "p_value")
OTHER_UNIT = ("unit", "n_units", "method", "n_trials", "n_extreme", "p_value")
TEST = ("name", "statistic", "p_value", "n", "assumes_independence", "detail")
INTERVAL = ("method", "confidence", "low", "high", "n_resamples", "percentile")
STOPPED = ("rule", "n_asked", "is_early", "is_significant", "epsilon", "h")

Texts = list[str]


def iter_json_lines(table: Table) -> Iterator[str]:
    """Yield the JSON of all results, comma-separated, in chunks of some thousand lines."""
    for start in range(0, len(table), views.CHUNK_ROWS):
        yield ",\n".join(_iter_rows(table.take(slice(start, start + views.CHUNK_ROWS))))


def iter_objects(keys: Sequence[str], *columns: Iterable[str]) -> Iterator[str]:
    """Yield a JSON object for each row, from the JSON texts of its members.

    Examples
    --------
    >>> [*iter_objects(("a", "b"), ["1", "2"], ["null", "3"])]
    ['{"a":1,"b":null}', '{"a":2,"b":3}']
    """
    prefixes = [f',"{key}":' for key in keys]
    prefixes[0] = "{" + prefixes[0][1:]
    columns_with_keys = (
        texts_or_key
        for prefix, column in zip(prefixes, columns, strict=True)
        for texts_or_key in (repeat(prefix), column)
    )
    return map("".join, zip(*columns_with_keys, repeat("}")))  # repeats have no end


def _iter_rows(table: Table) -> Iterator[str]:
    notes = checks.build_notes(table)
    return iter_objects(
        KEYS,
        format_coded(table.test_set),
        format_coded(table.subset),
        format_coded(table.unit),
        format_coded(table.a),
        format_coded(table.b),
        format_coded(table.metric, lambda score: score.name),
        format_coded(table.metric, lambda score: score.higher_is_better),
        format_numbers(table.score_a),
        format_numbers(table.score_b),
        format_numbers(table.difference),
        format_coded(table.alternative),
        format_numbers(table.n_items),
        format_numbers(table.n_units),
        format_numbers(table.n_discordant),
        _format_methods(table.exact),
        format_numbers(table.n_trials),
        format_numbers(table.n_extreme),
        format_numbers(table.p_value),
        _format_pairs(table.p_low, table.p_high),
        format_numbers(table.p_adjusted),
        format_numbers(table.r12),
        _format_second_runs(table),
        _format_exact(table),
        _format_checks(table),
        _format_lists(len(table), [_format_dependence(item) for item in table.dependence]),
        _format_lists(len(table), [_format_other_unit(item) for item in table.beside]),
        _fill_rows(len(table), {row: as_json_line(list_dicts(item)) for row, item in notes.items()}, "[]"),
        format_coded(table.metric, lambda score: score.signature),
        _format_stops(table),
        _format_where(~np.isnan(table.p_adjusted_low), _format_pairs(table.p_adjusted_low, table.p_adjusted_high)),
        _format_lists(len(table), [_format_test(item) for item in table.tests]),
        *_format_estimates(table),
        _fill_rows(len(table), {row: as_json_line(list_texts(item)) for row, item in notes.items()}, "[]"),
        format_optional_texts(signature.format_signatures(table)),
        _format_assumptions(table),
        *_format_adjusted(table),
    )


def _format_assumptions(table: Table) -> Texts:
    doubts = list_assumptions(table)
    return _fill_rows(
        len(table), {row: as_json_line([*map(asdict, row_doubts)]) for row, row_doubts in doubts.items()}, "[]"
    )


def _format_adjusted(table: Table) -> list[Texts]:
    """Return for each row the JSON of the two methods' adjusted p-values, and of the simultaneous interval."""
    details = table.adjusted
    if details is None:
        return [["null"] * len(table)] * 2
    members = (
        format_coded(details.first),
        format_numbers(details.p_first),
        format_coded(details.second),
        format_numbers(details.p_second),
    )
    p_objects = (
        f"{{{first_method}:{p},{second_method}:{q}}}"
        for first_method, p, second_method, q in zip(*members, strict=True)
    )
    return [
        _format_where(details.has_two_methods, p_objects),
        _format_where(details.has_interval, _format_pairs(details.low, details.high)),
    ]


def _format_estimates(table: Table) -> list[Texts]:
    """Return for each row the JSON of the intervals of the difference and of both scores, and of paired d."""
    intervals = table.intervals
    if intervals is None:
        return [["null"] * len(table)] * 4
    pairs = (
        (intervals.plain_low, intervals.plain_high),
        (intervals.a_low, intervals.a_high),
        (intervals.b_low, intervals.b_high),
    )
    percentiles, a, b = (_format_where(~np.isnan(low), _format_pairs(low, high)) for low, high in pairs)
    n_resamples = _format_where(intervals.n_resamples > 0, format_numbers(intervals.n_resamples))
    members = (
        format_coded(intervals.method),
        *map(format_numbers, (intervals.confidence, intervals.low, intervals.high)),
        n_resamples,
        percentiles,
    )
    has_interval = np.array([method != "" for method in intervals.method.values], np.bool_)[intervals.method.codes]
    return [_format_where(has_interval, iter_objects(INTERVAL, *members)), a, b, format_numbers(intervals.paired_d)]


def format_numbers(values: NDArray[Any]) -> Texts:
    """Return the JSON of each number: its shortest exact form, or null for NaN."""
    if not len(values):
        return []
    array_text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return array_text[1:-1].split(",")


def format_texts(values: Sequence[str]) -> Texts:
    r"""Return the JSON of each text.

    Examples
    --------
    >>> format_texts(['","', "", "\\"]) == [as_json_line('","'), as_json_line(""), as_json_line("\\")]
    True
    """
    if not values:
        return []
    try:
        array_text = orjson.dumps(values).decode()
    except TypeError:
        return [as_json_line(value) for value in values]
    return [f'"{text}"' for text in array_text[2:-2].split('","')]  # within a text, quotes follow a backslash


def format_optional_texts(values: Sequence[str | None]) -> Texts:
    """Return the JSON of each text, or null for None.

    Examples
    --------
    >>> format_optional_texts(["a", None])
    ['"a"', 'null']
    """
    json_texts = format_texts([value or "" for value in values])
    return ["null" if value is None else text for value, text in zip(values, json_texts, strict=True)]


def format_coded(column: CodedColumn[Any], get: Callable[[Any], Any] = lambda value: value) -> Texts:
    """Return the JSON of `get(value)` for each row of a coded column, formatting each distinct value once."""
    used_codes, positions = np.unique(column.codes, return_inverse=True)
    json_texts = [as_json_line(get(column.values[code])) for code in used_codes.tolist()]
    return [json_texts[position] for position in positions.tolist()]


def _format_methods(exact: NDArray[np.bool_]) -> Texts:
    return format_coded(CodedColumn(exact.astype(np.int32), views.METHODS))


def _format_pairs(low: NDArray[np.float64], high: NDArray[np.float64]) -> Texts:
    return [f"[{start},{end}]" for start, end in zip(format_numbers(low), format_numbers(high), strict=True)]


def _format_where(rows: NDArray[np.bool_], json_texts: Iterable[str]) -> Texts:
    """Return the JSON texts with null in place of those where the mask `rows` is false."""
    if not rows.any():
        return ["null"] * len(rows)
    return [text if has else "null" for has, text in zip(rows.tolist(), json_texts, strict=True)]


def _fill_rows(n: int, texts_by_row: dict[int, str], default: str) -> Texts:
    filled = [default] * n
    for row, text in texts_by_row.items():
        filled[row] = text
    return filled


def _format_second_runs(table: Table) -> Texts:
    trials, extreme = table.second_trials, table.second_extreme
    p = views.compute_second_p(trials, extreme)
    return _format_where(trials > 0, iter_objects(RUN, *map(format_numbers, (trials, extreme, p, table.agreement_p))))


def _format_exact(table: Table) -> Texts:
    methods, guarantees = (
        format_coded(table.exact_by, lambda pair: pair and pair[0]),
        format_coded(table.exact_by, lambda pair: pair and pair[1]),
    )
    limits = format_numbers(table.exact_low), format_numbers(table.exact_high)
    return _format_where(~np.isnan(table.exact_low), iter_objects(EXACT, *limits, methods, guarantees))


def _format_checks(table: Table) -> Texts:
    return _format_lists(len(table), [_format_check(table, name) for name in table.checks])


def _format_check(table: Table, name: str) -> dict[int, str]:
    checked = table.checks[name]
    rows = np.flatnonzero(checked.verdict >= 0)
    verdicts = format_coded(CodedColumn(checked.verdict[rows].astype(np.int32), views.VERDICTS))
    messages = checks.describe_checks(table, name)
    details = format_texts([messages[row] for row in rows.tolist()])
    json_objects = iter_objects(
        CHECK, repeat(as_json_line(name)), verdicts, format_numbers(checked.p_value[rows]), details
    )
    return dict(zip(rows.tolist(), json_objects, strict=True))


def _format_dependence(correlation: UnitCorrelation) -> dict[int, str]:
    columns = map(
        format_numbers, (correlation.n_groups, correlation.icc, correlation.design_effect, correlation.p_value)
    )
    json_objects = iter_objects(DEPENDENCE, repeat(as_json_line(correlation.column)), *columns)
    return dict(zip(correlation.rows.tolist(), json_objects, strict=True))


def _format_other_unit(other_unit: AlternativeUnit) -> dict[int, str]:
    rows = np.flatnonzero(other_unit.n_units)
    columns = (
        format_numbers(column[rows]) for column in (other_unit.n_trials, other_unit.n_extreme, other_unit.p_value)
    )
    units = format_coded(CodedColumn(other_unit.unit.codes[rows], other_unit.unit.values))
    json_objects = iter_objects(
        OTHER_UNIT, units, format_numbers(other_unit.n_units[rows]), _format_methods(other_unit.exact[rows]), *columns
    )
    return dict(zip(rows.tolist(), json_objects, strict=True))


def _format_lists(n: int, parts: Sequence[dict[int, str]]) -> Texts:
    """Return for each row a JSON array of the texts that the parts have for this row."""
    full_parts = [list(part.values()) for part in parts if len(part) == n]
    if len(full_parts) == len(parts):
        return [f"[{','.join(row_texts)}]" for row_texts in zip(*full_parts, strict=True)] if parts else ["[]"] * n
    return [f"[{','.join(part[row] for part in parts if row in part)}]" for row in range(n)]


def _format_test(test: ClassicalColumn) -> dict[int, str]:
    rows = np.flatnonzero(test.is_requested)
    messages = checks.describe_test(test)
    statistic, p, n = test.statistic[rows], test.p_value[rows], test.n[rows]
    json_objects = iter_objects(
        TEST,
        repeat(as_json_line(test.name)),
        format_numbers(statistic),
        format_numbers(p),
        _format_where(~np.isnan(p), format_numbers(n)),
        repeat(as_json_line(test.name in INDEPENDENT_TESTS)),
        format_texts([messages[row] for row in rows.tolist()]),
    )
    return dict(zip(rows.tolist(), json_objects, strict=True))


def _format_stops(table: Table) -> Texts:
    texts_by_row: dict[int, str] = {}
    for stops in table.stops:
        texts_by_row |= _format_rule_stops(stops)
    return _fill_rows(len(table), texts_by_row, "null")


def _format_rule_stops(stops: StoppedCounts) -> dict[int, str]:
    rows = np.flatnonzero(stops.n_asked)
    is_significant = format_coded(CodedColumn(stops.is_significant[rows].astype(np.int32), (False, True, None)))
    n_requested, is_early, epsilon, h = (
        format_numbers(stops.n_asked[rows]),
        format_numbers(stops.is_early[rows]),
        stops.epsilon,
        stops.h,
    )
    json_objects = iter_objects(
        STOPPED,
        repeat(as_json_line(stops.rule)),
        n_requested,
        is_early,
        is_significant,
        repeat(as_json_line(epsilon)),
        repeat(as_json_line(h)),
    )
    return dict(zip(rows.tolist(), json_objects, strict=True))
