"""The registry of result fields: what each key of a result is read from.

`FIELDS` drives the records of results and their JSON, and `FRAME_COLUMNS` beside it data frames, CSV and Parquet.
A field without a reader is a column of the table. It is an attribute of `Table` and of `Result`, or, where these
have no such attribute, a column of `Table.added` and an item of `Result.added`. Rows are taken, joined and stored
with all columns, and the JSON schema describes fields with their `help` that `schema.json` does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np

from sigdask.counts.fields import Bools
from sigdask.options import INDEPENDENT_TESTS
from sigdask.results import messages
from sigdask.results.columns import CodedColumn, EqualScores, Intervals, Margins
from sigdask.results.notes import list_dicts, list_texts
from sigdask.results.record import (
    ClassicalTest,
    EqualScoreResult,
    Exact,
    Interval,
    Margin,
    OtherUnitResult,
    Result,
    SecondRun,
)
from sigdask.results.signature import format_signatures
from sigdask.results.table import DISAGREES, ClassicalColumn, Table, get_details, get_equal_scores
from sigdask.results.values import (
    Composite,
    Lists,
    Nullable,
    SparseLists,
    Values,
    build_optional,
    build_optional_pairs,
    build_pairs,
    build_records,
    format_values,
    list_values,
)
from sigdask.statistics.bounds import EQUAL_SCORES, Check
from sigdask.statistics.dependence import Dependence

CHUNK_ROWS = 4096
"""Rows whose texts are built at a time."""

VERDICTS = ("not applicable", "agrees", "disagrees")
"""Words for the outcomes of a cross-check, by code."""

DECISIONS = ("not significant", "significant", "contested", "undecided")
"""Words for verdicts."""

MARGIN_VERDICTS = tuple(
    tuple(claim for k, claim in enumerate(("not worse", "not better", "equivalent")) if code & 1 << k)
    for code in range(8)
)
"""Claims that the tests of a margin show, by code."""

METHODS = ("approximate", "exact")
"""Words for how p was computed: from random trials, or from all arrangements."""


@dataclass(frozen=True, slots=True)
class ResultField:
    """A key of a result.

    Attributes
    ----------
    name : str
        The key in JSON, and the name of the attribute or column.
    read : callable or None
        Reads it from a table; None for a column of the table.
    kind : {"number", "integer", "boolean", "string"}
        JSON type of a field that `schema.json` does not list. Values may be null.
    unit, help : str
        Unit of measurement, and description.
    undetermined : str
        Why data, settings and seed do not determine the field, such as "a measured time". `sigdask reproduce` then does
        not compare it. Empty for other fields.
    """

    name: str
    read: Callable[[Table], Values] | None = None
    kind: str = "number"
    unit: str = ""
    help: str = ""
    undetermined: str = ""

    def get_values(self, table: Table) -> Values:
        """Return the values of a table's rows."""
        if self.read is not None:
            return self.read(table)
        if self.name in Table.__slots__:
            column: Values = getattr(table, self.name)
            return column
        column = table.added.get(self.name, [None] * len(table))
        return build_optional(column) if isinstance(column, np.ndarray) and column.dtype.kind == "f" else column

    def describe(self) -> dict[str, Any]:
        """Return the JSON schema of the field."""
        return {"type": [self.kind, "null"], "description": self.help + (f" In {self.unit}." if self.unit else "")}


def _read_methods(exact: Bools) -> CodedColumn[str]:
    return CodedColumn(exact.astype(np.int32), METHODS)


def _read_second_runs(table: Table) -> Values:
    trials, extreme = table.second_trials, table.second_extreme
    p = (extreme + 1) / (trials + 1)
    return Nullable(build_records(SecondRun, trials, extreme, p, table.agreement_p), trials > 0)


def _read_exact(table: Table) -> Values:
    method, guarantee = (table.exact_by.map(lambda by, k=k: by and by[k]) for k in range(2))  # type: ignore[misc]
    limits = table.exact_low, table.exact_high
    return Nullable(build_records(Exact, *limits, method, guarantee), ~np.isnan(table.exact_low))


def _read_checks(table: Table) -> Values:
    n, parts = len(table), []
    nothing = build_optional(np.full(n, np.nan))
    for name, results in table.checks.items():
        verdicts = CodedColumn(results.verdict.astype(np.int32), VERDICTS)
        details = messages.describe_checks(table, name)
        members = CodedColumn.from_constant(name, n), verdicts, build_optional(results.p_value), details, nothing
        parts.append(Nullable(build_records(Check, *members), results.verdict >= 0))
    if table.equal_scores is not None:
        parts.append(_read_equal_score_check(table, table.equal_scores))
    return Lists(parts, n)


def _read_equal_score_check(table: Table, test: EqualScores) -> Nullable:
    """Return the equal-score test as an entry of the checks; its verdict is "contested" where the two tests differ."""
    n, has_p = len(table), ~np.isnan(test.p_value)
    verdict = CodedColumn(np.where(table.is_contested, 2, has_p).astype(np.int32), (*VERDICTS[:2], "contested"))
    pairs = CodedColumn.from_values(zip(test.why.codes.tolist(), test.cause.codes.tolist(), strict=True))
    detail = pairs.map(lambda pair: test.why.values[pair[0]] or test.cause.values[pair[1]])
    p_values = build_optional(test.p_value), detail, build_optional(test.p_adjusted)
    return Nullable(
        build_records(Check, CodedColumn.from_constant(EQUAL_SCORES, n), verdict, *p_values), np.ones(n, np.bool_)
    )


def _read_equal_scores(table: Table) -> Values:
    test = get_equal_scores(table)
    p_values = build_optional(test.p_value), build_optional(test.p_adjusted)
    records = build_records(EqualScoreResult, *p_values, test.n_resamples, test.why, test.cause)
    return Nullable(records, np.full(len(table), table.equal_scores is not None))


def _read_verdicts(table: Table) -> Values:
    """Return the verdict of each row, in the words of `Result.verdict` without the level."""
    return CodedColumn(table.outcome.astype(np.int32) % 4, DECISIONS)


def _read_dependence(table: Table) -> Values:
    n, parts = len(table), []
    for correlation in table.dependence:
        column = CodedColumn.from_constant(correlation.column, n)
        members = build_records(Dependence, column, *correlation.columns.values())
        parts.append(Nullable(members, correlation.n_groups > 0))
    return Lists(parts, n)


def _read_other_units(table: Table) -> Values:
    parts = [
        Nullable(
            build_records(
                OtherUnitResult, other.unit, other.n_units, _read_methods(other.exact), other.n_trials, other.n_extreme,
                other.p_value,
            ),
            other.n_units > 0,
        )
        for other in table.beside
    ]  # fmt: skip
    return Lists(parts, len(table))


def _read_tests(table: Table) -> Values:
    n, parts = len(table), []
    for test in table.tests:
        name, is_independent = (CodedColumn.from_constant(v, n) for v in (test.name, test.name in INDEPENDENT_TESTS))
        p = build_optional(test.p_value)
        numbers = build_optional(test.statistic), p, Nullable(test.n, p.has_value)
        members = build_records(ClassicalTest, name, *numbers, is_independent, messages.describe_test(test))
        parts.append(Nullable(members, test.is_requested))
    return Lists(parts, n)


def _get_intervals(table: Table) -> Intervals:
    return Intervals.build_empty(len(table)) if table.intervals is None else table.intervals


def _read_intervals(table: Table) -> Values:
    intervals = _get_intervals(table)
    n_resamples = Nullable(intervals.n_resamples, intervals.n_resamples > 0)
    percentile = build_optional_pairs(intervals.plain_low, intervals.plain_high)
    numbers = intervals.confidence, intervals.low, intervals.high
    return Nullable(
        build_records(Interval, intervals.method, *numbers, n_resamples, percentile), intervals.method.find(bool)
    )


def _read_score_intervals(side: str) -> Callable[[Table], Values]:
    def read(table: Table) -> Values:
        intervals = _get_intervals(table)
        return build_optional_pairs(getattr(intervals, f"{side}_low"), getattr(intervals, f"{side}_high"))

    return read


def _read_adjusted_by(table: Table) -> Values:
    details = get_details(table)
    members = details.first, details.p_first, details.second, details.p_second
    p_values = Composite(members, lambda first, p, second, q: {first: p, second: q}, ("{", ":", ",", ":", "}"))
    return Nullable(p_values, details.has_two_methods)


def _get_margins(table: Table) -> Margins:
    return Margins.build_empty(len(table)) if table.margins is None else table.margins


def _read_margins(table: Table) -> Values:
    m = _get_margins(table)
    p_values = m.not_worse, m.not_better, np.maximum(m.not_worse, m.not_better)
    holm = m.holm_not_worse, m.holm_not_better, m.holm_equivalent
    shown = [np.where(np.isnan(h), p, h) <= table.alpha for p, h in zip(p_values, holm, strict=True)]
    codes = np.array([1, 2, 4], np.int32) @ np.array(shown, np.int32)
    adjusted = Nullable(Composite(holm, lambda *p: p, ("[", ",", ",", "]")), ~np.isnan(m.holm_equivalent))
    members = m.margin, *p_values, adjusted, CodedColumn(codes, MARGIN_VERDICTS), m.method
    return Nullable(build_records(Margin, *members), ~np.isnan(m.margin))


def _read_margin_p(*names: str) -> Callable[[Table], Values]:
    def read(table: Table) -> Values:
        margins = _get_margins(table)
        return build_optional(np.maximum.reduce([getattr(margins, name) for name in names]))

    return read


FIELDS = (
    ResultField("test_set"),
    ResultField("subset", lambda t: t.subset.map(lambda s: s and {"column": s.column, "value": s.value})),
    *map(ResultField, ("unit", "a", "b")),
    ResultField("metric", lambda t: t.metric.map(lambda metric: metric.name)),
    ResultField("higher_is_better", lambda t: t.metric.find(lambda metric: metric.higher_is_better)),
    *map(ResultField, ("score_a", "score_b", "difference", "alternative", "n_items", "n_units", "n_discordant")),
    ResultField("method", lambda t: _read_methods(t.exact)),
    *map(ResultField, ("n_trials", "n_extreme", "p_value")),
    ResultField("p_interval", lambda t: build_pairs(t.p_low, t.p_high)),
    ResultField("p_adjusted", lambda t: build_optional(t.p_adjusted)),
    ResultField("r12", lambda t: build_optional(np.asarray(t.r12))),
    ResultField("second_run", _read_second_runs),
    ResultField("exact", _read_exact),
    ResultField("checks", _read_checks),
    ResultField("dependence", _read_dependence),
    ResultField("beside", _read_other_units),
    ResultField("notes", lambda t: SparseLists(messages.build_notes(t), len(t), list_dicts)),
    ResultField("signature", lambda t: t.metric.map(lambda metric: metric.signature)),
    ResultField("p_adjusted_interval", lambda t: build_optional_pairs(t.p_adjusted_low, t.p_adjusted_high)),
    ResultField("tests", _read_tests),
    ResultField("interval", _read_intervals),
    ResultField("score_a_interval", _read_score_intervals("a")),
    ResultField("score_b_interval", _read_score_intervals("b")),
    ResultField("paired_d", lambda t: build_optional(_get_intervals(t).paired_d)),
    ResultField("warnings"),  # the texts of the notes
    ResultField("test_signature", format_signatures),
    ResultField("p_adjusted_by", _read_adjusted_by),
    ResultField("interval_simultaneous", lambda t: build_optional_pairs(get_details(t).low, get_details(t).high)),
    ResultField("equal_scores", _read_equal_scores),
    ResultField("verdict", _read_verdicts),  # of the method `Result.verdict` at the table's level
    ResultField("margin", _read_margins),
    ResultField("runs", lambda t: [None] * len(t) if t.runs is None else t.runs.read(t.alpha)),
)
"""Keys of each result, in their order. None is ever removed."""


DOCUMENT_UNDETERMINED = {
    **dict.fromkeys(("plan", "run", "changes", "gate"), "the run of a plan"),
    **dict.fromkeys(("candidates", "independence"), "other analyses of a plan"),
    "grouping": "how rankings are shown",
}
"""Keys of the JSON that the results do not determine, with the reason. `sigdask reproduce` does not compare them."""

UNDETERMINED_NOTES = {
    **dict.fromkeys(("scope", "reading", "missing"), "how the files were read and chosen"),
    "second-look": "earlier runs of a plan",
    "unused-option": "options that have no effect",
}
"""Kinds of notes that data, settings and seed do not determine, with the reason."""


def list_added_fields() -> list[ResultField]:
    """Return the fields that are not attributes of `Result`."""
    return [field for field in FIELDS if not hasattr(Result, field.name)]


def _read_values(table: Table) -> dict[str, Values]:
    """Return the values of all fields but the warnings, which are texts of the notes."""
    return {field.name: field.get_values(table) for field in FIELDS if field.name != "warnings"}


def get_result(table: Table, row: int) -> Result:
    """Return one row of a table as a `Result`, with its messages."""
    [result] = iter_results(table.take(slice(row, row + 1)))
    return result


def iter_results(table: Table) -> Iterator[Result]:
    """Yield each row of a table as a `Result`, building some thousand at a time."""
    added_names = [field.name for field in list_added_fields()]
    for part in table.split(CHUNK_ROWS):
        columns = {name: list_values(values) for name, values in _read_values(part).items() if name != "verdict"}
        if added_names:
            added_rows = zip(*(columns.pop(name) for name in added_names), strict=True)
            columns["added"] = [dict(zip(added_names, values, strict=True)) for values in added_rows]
        for values in zip(*columns.values(), strict=True):
            yield Result(**dict(zip(columns, values, strict=True)))


def iter_json_lines(table: Table) -> Iterator[str]:
    """Yield the JSON of all results, comma-separated, in chunks of some thousand lines."""
    names = [field.name for field in FIELDS]
    pieces = [f'{"," if k else "{"}"{name}":' for k, name in enumerate(names)]
    for part in table.split(CHUNK_ROWS):
        values = _read_values(part)
        notes = values["notes"]
        assert isinstance(notes, SparseLists)
        values["warnings"] = replace(notes, convert=list_texts)
        members = tuple(values[name] for name in names)
        yield ",\n".join(format_values(Composite(members, dict, (*pieces, "}"))))


def read_schema() -> str:
    """Return the JSON schema of results as text."""
    schema = json.loads(files("sigdask.results").joinpath("schema.json").read_text("utf-8"))
    result = schema["$defs"]["result"]
    for field in list_added_fields():
        result["properties"][field.name] = field.describe()
        result["required"].append(field.name)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _read_second_p(table: Table) -> Values:
    trials = table.second_trials
    return build_optional(np.where(trials > 0, (table.second_extreme + 1) / (trials + 1), np.nan))


def _read_disagreements(table: Table) -> Values:
    """Return for each row the names of the checks that disagree."""
    names = [""] * len(table)
    for name, results in table.checks.items():
        for row in np.flatnonzero(results.verdict == DISAGREES).tolist():
            names[row] = f"{names[row]}, {name}" if names[row] else name
    return list(names)


def _read_interval_column(name: str) -> Callable[[Table], Values]:
    return lambda table: build_optional(getattr(_get_intervals(table), name))


def _read_method_p(*names: str) -> Callable[[Table], Values]:
    def read(table: Table) -> Values:
        details, p = get_details(table), np.full(len(table), np.nan)
        for methods, values in ((details.first, details.p_first), (details.second, details.p_second)):
            p = np.where(methods.find(lambda method: method in names), values, p)
        return build_optional(p)

    return read


INTERVAL_COLUMNS = {
    "interval_confidence": "confidence", "interval_low": "low", "interval_high": "high", "score_a_low": "a_low",
    "score_a_high": "a_high", "score_b_low": "b_low", "score_b_high": "b_high",
}  # fmt: skip
"""Columns of intervals, by their names in `Intervals`."""

FRAME_COLUMNS: dict[str, Callable[[Table], Values] | None] = {
    **dict.fromkeys(("test_set",)),
    "subset": lambda t: t.subset.map(lambda subset: subset and subset.value),
    **dict.fromkeys(
        ("unit", "a", "b", "metric", "higher_is_better", "score_a", "score_b", "difference", "alternative", "n_items",
         "n_units", "n_discordant", "method", "n_trials", "n_extreme", "p_value", "p_adjusted", "r12", "signature")
    ),
    "p_low": lambda t: t.p_low,
    "p_high": lambda t: t.p_high,
    "p_adjusted_low": lambda t: build_optional(t.p_adjusted_low),
    "p_adjusted_high": lambda t: build_optional(t.p_adjusted_high),
    "second_run_p_value": _read_second_p,
    "agreement_p": lambda t: build_optional(t.agreement_p),
    "disagreements": _read_disagreements,
    "tests": None,
    "interval_method": lambda t: _get_intervals(t).method.map(lambda method: method or None),
    **{name: _read_interval_column(column) for name, column in INTERVAL_COLUMNS.items()},
    **dict.fromkeys(("paired_d", "test_signature")),
    "p_tukey": _read_method_p("tukey"),
    "interval_simultaneous_low": lambda t: build_optional(get_details(t).low),
    "interval_simultaneous_high": lambda t: build_optional(get_details(t).high),
    "p_equal_scores": lambda t: build_optional(get_equal_scores(t).p_value),
    "p_equal_scores_adjusted": lambda t: build_optional(get_equal_scores(t).p_adjusted),
    **dict.fromkeys(("verdict",)),
    "margin": _read_margin_p("margin"),
    "p_not_worse": _read_margin_p("not_worse"),
    "p_not_better": _read_margin_p("not_better"),
    "p_equivalent": _read_margin_p("not_worse", "not_better"),
}  # fmt: skip
"""Columns of data frames, CSV and Parquet, in their order. Those without a reader are fields of results. `tests`
stands for the statistic and p-value of each classical test. New columns are appended.
"""

CSV_UNDETERMINED = dict.fromkeys(
    ("interval_method", *INTERVAL_COLUMNS, "paired_d", "interval_simultaneous_low", "interval_simultaneous_high"),
    "CSV and Parquet do not say the number of resamples and the level",
)  # fmt: skip
"""Columns that CSV and Parquet files alone do not determine. `sigdask reproduce` does not compare them."""


def build_columns(table: Table, tests: Sequence[str] | None = None) -> dict[str, Values]:
    """Return the columns of a data frame.

    Parameters
    ----------
    table : Table
        The results.
    tests : sequence of str, optional
        The classical tests whose statistic and p-value have columns; by default those that were requested.
    """
    results = {field.name: field for field in FIELDS}
    tested = {test.name: test for test in table.tests}
    untested = ClassicalColumn.build_empty(len(table), name="")
    columns: dict[str, Values] = {}
    for name, read in (FRAME_COLUMNS | {field.name: None for field in list_added_fields()}).items():
        if name == "tests":
            for test_name in tested if tests is None else tests:
                test = tested.get(test_name, untested)
                columns[f"{test_name}_statistic"] = build_optional(test.statistic)
                columns[f"{test_name}_p_value"] = build_optional(test.p_value)
        else:
            columns[name] = results[name].get_values(table) if read is None else read(table)
    return columns
