"""Rows of tables as records: their JSON, `Result` objects, columns of data frames, and tables of records read back."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sigdask.counts.fields import Bools, Floats
from sigdask.options import INDEPENDENT_TESTS, Grouping
from sigdask.results import messages
from sigdask.results.columns import UNADJUSTED, CodedColumn, Column, Columns
from sigdask.results.notes import Note, list_dicts
from sigdask.results.record import Result
from sigdask.results.schema import KEYED, build_column, flatten, get_type, nest
from sigdask.results.signature import Signature, format_signatures
from sigdask.results.table import DISAGREES, GROUPS, Table, decide_runs, get_group, to_arrow
from sigdask.statistics.bounds import EQUAL_SCORES
from sigdask.text import as_json_line, value_from_json

CHUNK_ROWS = 4096
"""Rows whose records are built at a time."""

VERDICTS = ("not applicable", "agrees", "disagrees")
"""Words for the outcomes of a cross-check, by code."""

DECISIONS = ("not significant", "significant", "contested", "undecided")
"""Words for verdicts."""

MARGIN_CLAIMS = ("not worse", "not better", "equivalent")
"""Claims that the tests of a margin can show."""

RUN_VERDICTS = ("too few runs", "not significant", "significant")
"""Words for verdicts on recipes."""

METHODS = ("approximate", "exact")
"""Words for how p was computed: from random trials, or from all arrangements."""

NAN_KEYS = ("score_a", "score_b", "difference", "p_value")
"""Numbers that are NaN rather than None if there is none."""


def iter_records(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the JSON of each row as a dictionary, building some thousand at a time."""
    for part in table.split(CHUNK_ROWS):
        yield from _build_records(part, messages.build_notes(part))


def _build_records(table: Table, notes: Mapping[int, Sequence[Note]]) -> list[dict[str, Any]]:
    given = _list_values(table, notes) | dict(_iter_entries(table))
    presence = {path: mask.tolist() for path, mask in _list_presence(table).items()}
    keys = {group: [*getattr(table, group)] for group in KEYED}
    if table.equal_scores is not None:
        keys["checks"].append(EQUAL_SCORES)

    def read(path: str, kind: str, is_nullable: bool) -> list[Any]:
        column = table[path]
        values = column.to_list() if isinstance(column, CodedColumn) else column.tolist()
        if not is_nullable or path in NAN_KEYS:
            return list(values)
        return _list_numbers(column) if kind == "number" else [value or None for value in values]

    return nest(len(table), given, presence, keys, read)


def _list_values(table: Table, notes: Mapping[int, Sequence[Note]]) -> dict[str, list[Any]]:
    """Return the values of records that no column of a table has, by path."""
    n, rows = len(table), range(len(table))
    margins, runs = get_group(table, "margins"), get_group(table, "runs")
    return {
        "method": _pick(METHODS, table.exact),
        "second_run.p_value": ((table.second_extreme + 1) / (table.second_trials + 1)).tolist(),
        "notes": [list_dicts(notes.get(row, ())) for row in rows],
        "warnings": [[note.text for note in notes.get(row, ())] for row in rows],
        "test_signature": format_signatures(table),
        f"p_adjusted_by.{UNADJUSTED}": table.p_value.tolist(),
        "verdict": _pick(DECISIONS, table.outcome % 4),
        "margin.p_equivalent": np.maximum(margins.not_worse, margins.not_better).tolist(),
        "margin.verdicts": _list_claims(margins, table.alpha) if table.margins else [()] * n,
        "runs.verdict": _pick(RUN_VERDICTS, decide_runs(runs, table.alpha) + 1),
    }


def _list_presence(table: Table) -> dict[str, Bools]:
    """Return which rows have an object of records, by path."""
    presence = {
        "second_run": table.second_trials > 0,
        "exact": ~np.isnan(table.exact_low),
        "interval": table["interval.method"].find(bool),
        "margin": ~np.isnan(table["margin.margin"]),
        "runs": table["runs.n_runs"] > 0,
        "equal_scores": np.full(len(table), table.equal_scores is not None),
        "p_adjusted_by": ~np.isnan(table["p_adjusted_by.tukey"]),
        "subset": table["subset.column"].find(bool),
    }
    presence |= {f"checks.{name}": checked.verdict >= 0 for name, checked in table.checks.items()}
    presence |= {f"tests.{name}": test.detail.find(bool) for name, test in table.tests.items()}
    presence |= {f"dependence.{name}": column.n_groups > 0 for name, column in table.dependence.items()}
    return presence | {f"beside.{name}": other.n_units > 0 for name, other in table.beside.items()}


def _iter_entries(table: Table) -> Iterator[tuple[str, list[Any]]]:
    """Yield the values of entries of lists in records that no column has, with their paths."""
    n = len(table)
    for name, checked in table.checks.items():
        yield f"checks.{name}.verdict", _pick(VERDICTS, checked.verdict)
        yield f"checks.{name}.detail", messages.describe_checks(table, name)
        yield f"checks.{name}.p_adjusted", [None] * n
    if (test := table.equal_scores) is not None:
        codes = np.where(table.is_contested, 2, ~np.isnan(test.p_value))
        reasons = zip(test.why.to_list(), test.cause.to_list(), strict=True)
        yield f"checks.{EQUAL_SCORES}.verdict", _pick((*VERDICTS[:2], "contested"), codes)
        yield f"checks.{EQUAL_SCORES}.p_value", _list_numbers(test.p_value)
        yield f"checks.{EQUAL_SCORES}.detail", [why or cause for why, cause in reasons]
        yield f"checks.{EQUAL_SCORES}.p_adjusted", _list_numbers(test.p_adjusted)
    for name, test in table.tests.items():
        yield f"tests.{name}.assumes_independence", [name in INDEPENDENT_TESTS] * n
        yield f"tests.{name}.detail", messages.describe_test(test)
    for name, other in table.beside.items():
        yield f"beside.{name}.method", _pick(METHODS, other.exact)
    names = {group: [*getattr(table, group)] for group in KEYED}
    for group, keys in names.items():
        for key in [*keys, EQUAL_SCORES] if group == "checks" else keys:
            yield f"{group}.{key}.{KEYED[group]}", [key] * n


def _pick(words: Sequence[str], codes: Any) -> list[str]:
    return [words[code] for code in np.asarray(codes).astype(np.int64).tolist()]


def _list_numbers(values: Floats) -> list[float | None]:
    has_all = not np.isnan(values).any()
    return values.tolist() if has_all else [None if math.isnan(value) else value for value in values.tolist()]


def _list_claims(margins: Columns, alpha: float) -> list[tuple[str, ...]]:
    """Return what the tests of a margin show of each row."""
    p_values = margins.not_worse, margins.not_better, np.maximum(margins.not_worse, margins.not_better)
    adjusted = margins.holm_not_worse, margins.holm_not_better, margins.holm_equivalent
    shown = [np.where(np.isnan(h), p, h) <= alpha for p, h in zip(p_values, adjusted, strict=True)]
    return [tuple(c for c, is_shown in zip(MARGIN_CLAIMS, row, strict=True) if is_shown) for row in np.transpose(shown)]


def get_result(table: Table, row: int) -> Result:
    """Return one row of a table as a `Result`, with its messages."""
    [result] = iter_results(table.take(slice(row, row + 1)))
    return result


def iter_results(table: Table) -> Iterator[Result]:
    """Yield each row of a table as a `Result`, building some thousand at a time."""
    for part in table.split(CHUNK_ROWS):
        notes = messages.build_notes(part)
        for row, record in enumerate(_build_records(part, notes)):
            yield replace(value_from_json(Result, record | {"notes": ()}), notes=tuple(notes.get(row, ())))


def iter_json_lines(table: Table) -> Iterator[str]:
    """Yield the JSON of all results, comma-separated, in chunks of some thousand lines."""
    for part in table.split(CHUNK_ROWS):
        with _pause_collection():
            text = ",\n".join(map(as_json_line, iter_records(part)))
        yield text


@contextmanager
def _pause_collection() -> Iterator[None]:
    """Collect no garbage for the while: records have no cycles, and half of the time went into looking for them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def build_table(records: Sequence[Mapping[str, Any]], alpha: float, grouping: Grouping = "auto") -> Table:
    """Return a table of the JSON of results, with all texts as they are.

    Parameters
    ----------
    records : sequence of mapping
        Results as their schema describes them.
    alpha : float
        Level of the verdicts.
    grouping : str
        How rankings mark systems.
    """
    if not records:
        return Table.build_empty(alpha)
    records = [
        r | {"checks": [c for c in r.get("checks", ()) if c["name"] != EQUAL_SCORES]} for r in map(dict, records)
    ]
    columns: dict[str, Any] = flatten(records)
    columns["is_exact"] = columns["method"].find("exact".__eq__)
    columns["kept_notes"] = CodedColumn.from_values(as_json_line(r.get("notes", ())) for r in records)
    if "interval.method" in columns:  # an end that is null is infinite
        has_interval, nans = columns["interval.method"].find(bool), np.full(len(records), np.nan)
        for path, limit in (("interval.low", -np.inf), ("interval.high", np.inf)):
            ends = columns.get(path, nans)
            columns[path] = np.where(np.isnan(ends) & has_interval, limit, ends)
    for path in [*columns]:
        group, _, rest = path.partition(".")
        if group == "checks" and rest.endswith(".verdict"):
            columns[path] = np.array([VERDICTS.index(v) if v else -1 for v in columns[path].to_list()], np.int8)
        elif group == "beside" and rest.endswith(".method"):
            columns[path.removesuffix("method") + "exact"] = columns[path].find("exact".__eq__)
    if "test_signature" in columns:
        columns |= _read_origins(columns["test_signature"])
    few = [[n.get("n_deciding") for n in r.get("notes", ()) if n["kind"] == "few-units-decide"] for r in records]
    if any(few):
        columns["deciding.n_deciding"] = np.array([sum(n for n in ns if type(n) is int) for ns in few])
    return Table(pa.table({path: to_arrow(column) for path, column in columns.items()}), alpha, grouping)


def _read_origins(texts: CodedColumn[str]) -> dict[str, Column]:
    """Return the inputs of p in the signatures of results."""
    signatures = [Signature.parse(text) if text else None for text in texts.values]
    values = [{} if s is None else {
        "seed": s.seed, "method": s.method if s.exact_limit is None else f"{s.method}:{s.exact_limit}",
        "units": s.data.units, "data_a": s.data.a, "data_b": s.data.b, "code": dict(s.options).get("code"),
        "adjust": s.adjust, "members": None if s.members is None else str(s.members), "family": s.family,
        "version": s.version,
    } for s in signatures]  # fmt: skip
    paths = GROUPS["origins"]
    rows = [values[code] for code in texts.codes.tolist()]
    return {path: build_column(get_type(path), [row.get(name) for row in rows]) for name, path in paths.items()}


FRAME_COLUMNS = {
    **{name: name for name in (
        "test_set", "subset", "unit", "a", "b", "metric", "higher_is_better", "score_a", "score_b", "difference",
        "alternative", "n_items", "n_units", "n_discordant", "method", "n_trials", "n_extreme", "p_value", "p_adjusted",
        "r12", "signature",
    )},
    "p_low": "p_interval.0", "p_high": "p_interval.1", "p_adjusted_low": "p_adjusted_interval.0",
    "p_adjusted_high": "p_adjusted_interval.1", "second_run_p_value": "second_run.p_value",
    "agreement_p": "second_run.agreement_p", "disagreements": "disagreements", "tests": "tests",
    "interval_method": "interval.method", "interval_confidence": "interval.confidence", "interval_low": "interval.low",
    "interval_high": "interval.high", "score_a_low": "score_a_interval.0", "score_a_high": "score_a_interval.1",
    "score_b_low": "score_b_interval.0", "score_b_high": "score_b_interval.1", "paired_d": "paired_d",
    "test_signature": "test_signature", "p_tukey": "p_adjusted_by.tukey",
    "interval_simultaneous_low": "interval_simultaneous.0", "interval_simultaneous_high": "interval_simultaneous.1",
    "p_equal_scores": "equal_scores.p_value", "p_equal_scores_adjusted": "equal_scores.p_adjusted",
    "verdict": "verdict", "margin": "margin.margin", "p_not_worse": "margin.p_not_worse",
    "p_not_better": "margin.p_not_better", "p_equivalent": "margin.p_equivalent", "p_runs": "runs.p_runs",
    "p_recipes": "runs.p_value", "p_recipes_adjusted": "runs.p_adjusted",
}  # fmt: skip
"""Columns of data frames, CSV and Parquet, in their order, with the paths of their values. `tests` stands for the
statistic and p-value of each classical test. New columns are appended.
"""


def build_frame_data(table: Table, tests: Sequence[str] | None = None) -> pa.Table:
    """Return the columns of a data frame, with nulls for what is missing.

    Parameters
    ----------
    table : Table
        The results.
    tests : sequence of str, optional
        The classical tests whose statistic and p-value have columns; by default those that were requested.
    """
    tests = list(table.tests) if tests is None else tests
    paths: dict[str, str] = {}
    for name, path in FRAME_COLUMNS.items():
        of_tests = {f"{t}_{key}": f"tests.{t}.{key}" for t in tests for key in ("statistic", "p_value")}
        paths |= of_tests if name == "tests" else {name: path}
    margins, trials = get_group(table, "margins"), table.second_trials
    values = {
        "subset": [subset and subset.value for subset in table.subset.to_list()],
        "method": _pick(METHODS, table.exact),
        "signature": [metric.signature for metric in table.metric.to_list()],
        "second_run.p_value": np.where(trials > 0, (table.second_extreme + 1) / (trials + 1), np.nan),
        "disagreements": _list_disagreements(table),
        "interval.method": [method or None for method in table["interval.method"].to_list()],
        "test_signature": format_signatures(table),
        "verdict": _pick(DECISIONS, table.outcome % 4),
        "margin.p_equivalent": np.maximum(margins.not_worse, margins.not_better),
    }
    return pa.table({name: _to_nullable(values[p] if p in values else table[p]) for name, p in paths.items()})


def _to_nullable(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray):
        return pa.array(values, from_pandas=True)  # NaN is null
    return pa.array(values.to_list() if isinstance(values, CodedColumn) else values, pa.string())


def _list_disagreements(table: Table) -> list[str]:
    """Return for each row the names of the checks that disagree."""
    disagrees = {name: (checked.verdict == DISAGREES).tolist() for name, checked in table.checks.items()}
    return [", ".join(name for name in disagrees if disagrees[name][row]) for row in range(len(table))]
