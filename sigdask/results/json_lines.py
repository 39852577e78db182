"""The JSON of results: a line each, made of columns whose texts are made once for equal values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import repeat
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sigdask.results import signature, views
from sigdask.results.assumptions import listed_assumptions
from sigdask.results.columns.coded import Coded
from sigdask.results.messages import checks
from sigdask.results.messages.notes import dicts, texts
from sigdask.results.table import AlternativeUnit, ClassicalColumn, StoppedCounts, Table, UnitCorrelation
from sigdask.statistics.classical.names import INDEPENDENT
from sigdask.text import as_line

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
BESIDE = ("unit", "n_units", "method", "n_trials", "n_extreme", "p_value")
TEST = ("name", "statistic", "p_value", "n", "assumes_independence", "detail")
INTERVAL = ("method", "confidence", "low", "high", "n_resamples", "percentile")
STOPPED = ("rule", "n_asked", "is_early", "is_significant", "epsilon", "h")

Texts = list[str]


def of(table: Table) -> Iterator[str]:
    """Yield the JSON of all results, some thousand lines at a time, with commas between them."""
    for first in range(0, len(table), views.AT_ONCE):
        yield ",\n".join(_rows(table.take(slice(first, first + views.AT_ONCE))))


def objects(keys: Sequence[str], *columns: Iterable[str]) -> Iterator[str]:
    """Yield an object for each row of the texts of its members.

    Examples
    --------
    >>> [*objects(("a", "b"), ["1", "2"], ["null", "3"])]
    ['{"a":1,"b":null}', '{"a":2,"b":3}']
    """
    between = [f',"{key}":' for key in keys]
    between[0] = "{" + between[0][1:]
    parts = (part for before, column in zip(between, columns, strict=True) for part in (repeat(before), column))
    return map("".join, zip(*parts, repeat("}")))  # repeats have no end


def _rows(table: Table) -> Iterator[str]:
    notes = checks.notes(table)
    return objects(
        KEYS,
        coded(table.test_set),
        coded(table.subset),
        coded(table.unit),
        coded(table.a),
        coded(table.b),
        coded(table.metric, lambda score: score.name),
        coded(table.metric, lambda score: score.higher_is_better),
        numbers(table.score_a),
        numbers(table.score_b),
        numbers(table.difference),
        coded(table.alternative),
        numbers(table.n_items),
        numbers(table.n_units),
        numbers(table.n_discordant),
        _method(table.exact),
        numbers(table.n_trials),
        numbers(table.n_extreme),
        numbers(table.p_value),
        _intervals(table.p_low, table.p_high),
        numbers(table.p_adjusted),
        numbers(table.r12),
        _second_runs(table),
        _exact(table),
        _checks(table),
        _listed(len(table), [_dependence(own) for own in table.dependence]),
        _listed(len(table), [_beside(own) for own in table.beside]),
        _sparse(len(table), {row: as_line(dicts(own)) for row, own in notes.items()}, "[]"),
        coded(table.metric, lambda score: score.signature),
        _stopped(table),
        _where(~np.isnan(table.p_adjusted_low), _intervals(table.p_adjusted_low, table.p_adjusted_high)),
        _listed(len(table), [_test(own) for own in table.tests]),
        *_sure(table),
        _sparse(len(table), {row: as_line(texts(own)) for row, own in notes.items()}, "[]"),
        maybe(signature.lines(table)),
        _assumptions(table),
        *_adjusted(table),
    )


def _assumptions(table: Table) -> Texts:
    doubts = listed_assumptions(table)
    return _sparse(len(table), {row: as_line([*map(asdict, own)]) for row, own in doubts.items()}, "[]")


def _adjusted(table: Table) -> list[Texts]:
    """Return the p-values of two methods, and simultaneous intervals."""
    own = table.adjusted
    if own is None:
        return [["null"] * len(table)] * 2
    parts = (coded(own.first), numbers(own.p_first), coded(own.second), numbers(own.p_second))
    by = (f"{{{first}:{p},{second}:{q}}}" for first, p, second, q in zip(*parts, strict=True))
    return [_where(own.has_two, by), _where(own.has_interval, _intervals(own.low, own.high))]


def _sure(table: Table) -> list[Texts]:
    """Return intervals of differences and of both scores, and paired d."""
    own = table.intervals
    if own is None:
        return [["null"] * len(table)] * 4
    pairs = ((own.plain_low, own.plain_high), (own.a_low, own.a_high), (own.b_low, own.b_high))
    percentiles, a, b = (_where(~np.isnan(low), _intervals(low, high)) for low, high in pairs)
    n_resamples = _where(own.n_resamples > 0, numbers(own.n_resamples))
    parts = (coded(own.method), *map(numbers, (own.confidence, own.low, own.high)), n_resamples, percentiles)
    has = np.array([method != "" for method in own.method.values], np.bool_)[own.method.codes]
    return [_where(has, objects(INTERVAL, *parts)), a, b, numbers(own.paired_d)]


def numbers(values: NDArray[Any]) -> Texts:
    """Return the JSON of each number: the shortest that is read as the same, null for NaN."""
    if not len(values):
        return []
    whole = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return whole[1:-1].split(",")


def words(values: Sequence[str]) -> Texts:
    r"""Return the JSON of each text.

    Examples
    --------
    >>> words(['","', "", "\\"]) == [as_line('","'), as_line(""), as_line("\\")]
    True
    """
    if not values:
        return []
    try:
        whole = orjson.dumps(values).decode()
    except TypeError:
        return [as_line(value) for value in values]
    return [f'"{text}"' for text in whole[2:-2].split('","')]  # within a text, quotes follow a backslash


def maybe(values: Sequence[str | None]) -> Texts:
    """Return the JSON of each text, null where there is none.

    Examples
    --------
    >>> maybe(["a", None])
    ['"a"', 'null']
    """
    made = words([value or "" for value in values])
    return ["null" if value is None else text for value, text in zip(values, made, strict=True)]


def coded(column: Coded[Any], of: Callable[[Any], Any] = lambda value: value) -> Texts:
    """Return the JSON of (what is taken `of`) each row's value, made once for each."""
    used, places = np.unique(column.codes, return_inverse=True)
    made = [as_line(of(column.values[code])) for code in used.tolist()]
    return [made[place] for place in places.tolist()]


def _method(exact: NDArray[np.bool_]) -> Texts:
    return coded(Coded(exact.astype(np.int32), views.METHODS))


def _intervals(low: NDArray[np.float64], high: NDArray[np.float64]) -> Texts:
    return [f"[{start},{end}]" for start, end in zip(numbers(low), numbers(high), strict=True)]


def _where(rows: NDArray[np.bool_], made: Iterable[str]) -> Texts:
    """Return what is made of columns where rows have it, else null."""
    if not rows.any():
        return ["null"] * len(rows)
    return [text if has else "null" for has, text in zip(rows.tolist(), made, strict=True)]


def _sparse(n: int, found: dict[int, str], otherwise: str) -> Texts:
    made = [otherwise] * n
    for row, text in found.items():
        made[row] = text
    return made


def _second_runs(table: Table) -> Texts:
    trials, extreme = table.second_trials, table.second_extreme
    p = views.second_p(trials, extreme)
    return _where(trials > 0, objects(RUN, *map(numbers, (trials, extreme, p, table.agreement_p))))


def _exact(table: Table) -> Texts:
    how, guarantee = coded(table.exact_by, lambda by: by and by[0]), coded(table.exact_by, lambda by: by and by[1])
    limits = numbers(table.exact_low), numbers(table.exact_high)
    return _where(~np.isnan(table.exact_low), objects(EXACT, *limits, how, guarantee))


def _checks(table: Table) -> Texts:
    return _listed(len(table), [_check(table, name) for name in table.checks])


def _check(table: Table, name: str) -> dict[int, str]:
    checked = table.checks[name]
    rows = np.flatnonzero(checked.verdict >= 0)
    verdicts = coded(Coded(checked.verdict[rows].astype(np.int32), views.VERDICTS))
    said = checks.details(table, name)
    details = words([said[row] for row in rows.tolist()])
    made = objects(CHECK, repeat(as_line(name)), verdicts, numbers(checked.p_value[rows]), details)
    return dict(zip(rows.tolist(), made, strict=True))


def _dependence(own: UnitCorrelation) -> dict[int, str]:
    columns = map(numbers, (own.n_groups, own.icc, own.design_effect, own.p_value))
    made = objects(DEPENDENCE, repeat(as_line(own.column)), *columns)
    return dict(zip(own.rows.tolist(), made, strict=True))


def _beside(own: AlternativeUnit) -> dict[int, str]:
    rows = np.flatnonzero(own.n_units)
    columns = (numbers(column[rows]) for column in (own.n_trials, own.n_extreme, own.p_value))
    units = coded(Coded(own.unit.codes[rows], own.unit.values))
    made = objects(BESIDE, units, numbers(own.n_units[rows]), _method(own.exact[rows]), *columns)
    return dict(zip(rows.tolist(), made, strict=True))


def _listed(n: int, parts: Sequence[dict[int, str]]) -> Texts:
    """Return an array for each row of the parts that it has."""
    whole = [list(part.values()) for part in parts if len(part) == n]
    if len(whole) == len(parts):
        return [f"[{','.join(own)}]" for own in zip(*whole, strict=True)] if parts else ["[]"] * n
    return [f"[{','.join(part[row] for part in parts if row in part)}]" for row in range(n)]


def _test(own: ClassicalColumn) -> dict[int, str]:
    rows = np.flatnonzero(own.is_asked)
    said = checks.of_test(own)
    statistic, p, n = own.statistic[rows], own.p_value[rows], own.n[rows]
    made = objects(
        TEST, repeat(as_line(own.name)), numbers(statistic), numbers(p), _where(~np.isnan(p), numbers(n)),
        repeat(as_line(own.name in INDEPENDENT)), words([said[row] for row in rows.tolist()]),
    )  # fmt: skip
    return dict(zip(rows.tolist(), made, strict=True))


def _stopped(table: Table) -> Texts:
    found: dict[int, str] = {}
    for own in table.stops:
        found |= _of_rule(own)
    return _sparse(len(table), found, "null")


def _of_rule(own: StoppedCounts) -> dict[int, str]:
    rows = np.flatnonzero(own.n_asked)
    decided = coded(Coded(own.is_significant[rows].astype(np.int32), (False, True, None)))
    asked, early, epsilon, h = numbers(own.n_asked[rows]), numbers(own.is_early[rows]), own.epsilon, own.h
    made = objects(
        STOPPED, repeat(as_line(own.rule)), asked, early, decided, repeat(as_line(epsilon)), repeat(as_line(h))
    )
    return dict(zip(rows.tolist(), made, strict=True))
