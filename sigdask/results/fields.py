"""Rows of tables as records: their JSON, `Result` objects, columns of data frames, and tables of records read back.

Notes and the details of checks and tests become sentences when a row is shown or written.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from sigdask.counts.fields import Bools, Floats
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.metrics.regression import PREFIX as AGREEMENT_PREFIX
from sigdask.options import INDEPENDENT_TESTS, Option
from sigdask.results.columns import (
    BCA,
    KEYED,
    NORMAL,
    PERCENTILE,
    UNADJUSTED,
    Columns,
    Schema,
    build_column,
    encode,
    flatten,
    get_frame_columns,
    get_type,
    join_path,
    load_schema,
    pluralize,
    resolve,
)
from sigdask.results.record import Note, Result, list_dicts, read_note
from sigdask.results.signature import Signature, format_signatures
from sigdask.results.table import AGREES, CHUNK_ROWS, DISAGREES, NOT_APPLICABLE, Table, to_arrow
from sigdask.statistics.bounds import EQUAL_SCORES, SECOND_RUN, describe_fit, describe_runs, estimate_trials_to_decide
from sigdask.statistics.rounding import format_limits, round_up
from sigdask.text import as_json_line, as_json_lines, format_count

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


def iter_shortfalls(table: Table) -> Iterator[tuple[str, str, Bools]]:
    """Yield conditions under which measured coverage is below the nominal level (docs/error-rates.md).

    Each has a name, words, and a mask of the rows to which it applies.
    """
    is_resampled = table["interval.method"].find(lambda method: method in {BCA, PERCENTILE, NORMAL})
    resampled = is_resampled & (table.n_discordant > 0)
    skewness = np.abs(np.nan_to_num(table["interval.skewness"])) / np.sqrt(np.maximum(table.n_units, 1))
    yield "few-units", "units are few", resampled & (table.n_units < FEW_UNITS)
    yield "few-discordant", "few units differ", resampled & (table.n_discordant < FEW_DISCORDANT)
    yield "skewed", "the contributions of units are skewed", resampled & (skewness >= SKEWNESS_LIMIT)


def iter_interval_notes(table: Table) -> RowNotes:
    """Yield (row, note) for all notes on the intervals of single rows."""
    methods, why = table["interval.method"], table["interval.why"]
    for row in np.flatnonzero(why.find(bool)).tolist():
        head = "interval" if methods[row] else "no interval"
        yield row, Note("interval", f"{head}: {why[row]}", {"method": methods[row] or None})
    shortfalls = [*iter_shortfalls(table)]
    for row in np.flatnonzero(np.logical_or.reduce([rows for *_, rows in shortfalls])).tolist():
        names, words = zip(*(words for *words, rows in shortfalls if rows[row]), strict=True)
        text = (
            f"{' and '.join(words)}: in simulations, intervals of such data contained the true difference less often "
            f"than {100 * table['interval.confidence'][row]:.4g} % of the time (docs/error-rates.md); the interval is "
            "probably too short"
        )
        skewness = float(table["interval.skewness"][row])
        numbers = {"shortfalls": ", ".join(names), "skewness": None if np.isnan(skewness) else skewness}
        yield row, Note("interval-coverage", text, numbers)


def note_unused(option: Option, reason: str) -> Note:
    """Return a note on an option that has no effect, and why."""
    written = spell(option.name, False if option.default is True else None)  # who turns it off writes `--no-…`
    return Note("unused-option", f"{written} has no effect {reason}; leave it out", {"option": option.name})


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
        return list(table[f"checks.{name}.detail"].tolist())
    texts: list[str] = table[f"checks.{name}.why"].tolist()
    rows = np.flatnonzero(table[f"checks.{name}.verdict"].find((AGREES, DISAGREES).__contains__))
    describe: Callable[..., str]
    if name == SECOND_RUN:
        describe, paths = describe_runs, ["second_run.n_extreme", "second_run.n_trials"]
        p = round_up(table["second_run.agreement_p"])
    else:
        describe, paths = describe_fit, [f"checks.{name}.p_value"]
        p = round_up(np.where(table.is_enumerated, np.nan, table[f"checks.{name}.fit"]))
    columns = table.n_extreme, table.n_trials, *(table[path] for path in paths), p  # rounded, so that texts repeat
    for row, *values in zip(rows.tolist(), *(column[rows].tolist() for column in columns), strict=True):
        texts[row] = describe(*values)
    return texts


def build_notes(table: Table) -> dict[int, tuple[Note, ...]]:
    """Return the notes of each row that has any, in the order in which they are shown."""
    if "kept_notes" in table.paths:
        texts = enumerate(table["kept_notes"].tolist())
        return {row: tuple(map(read_note, json.loads(text))) for row, text in texts if text != "[]"}
    notes_by_row: dict[int, list[Note]] = {}
    for iter_notes in (_note_counts, _note_undefined, _note_undecided, _note_deciding_units, iter_interval_notes):
        for row, note in iter_notes(table):
            notes_by_row.setdefault(row, []).append(note)
    return {row: tuple(row_notes) for row, row_notes in notes_by_row.items()}


def _note_counts(table: Table) -> RowNotes:
    """Yield notes on rows without a discordant unit or a trial, whose p is an upper bound, or that were seen before.

    The sampled p is an upper bound where scores of very unequal size may tie by rounding.
    """
    n_trials = table.n_trials
    for row in np.flatnonzero(table.n_discordant == 0).tolist():
        step = table.step[row]
        finely = f" by {step:.2g} or more, the smallest difference that rounding of such large scores allows"
        yield row, Note("identical", f"identical: no unit differs in what the metric counts{finely if step else ''}")
    for row in np.flatnonzero((table.step < 0) & (n_trials > 0) & ~table.is_enumerated).tolist():
        text = (
            f"the sampled p is an upper bound: some differences are smaller than {-table.step[row]:.2g}, the "
            "rounding error of sums of such large scores, and trials count possible ties as ties"
        )
        yield row, Note("upper-bound", text, {"step": -float(table.step[row])})
    for row in np.flatnonzero((n_trials == 0) & np.isnan(table["exact.p_hi"])).tolist():
        yield row, Note("not-reached", "not computed yet: no trial is counted, so p is shown as 1")
    for row in np.flatnonzero(table.seen_with).tolist():
        n_seen = int(table.seen_with[row])
        text = f"second look: p was computed before, with {format_count(n_seen, 'trial')}"
        yield row, Note("second-look", text, {"n_trials": n_seen})


def _note_undefined(table: Table) -> RowNotes:
    for names, scores in ((table.a, table.undefined_a), (table.b, table.undefined_b)):
        for row in np.flatnonzero(~np.isnan(scores)).tolist():
            name, score = names[row], float(scores[row])
            text = f"{name}: its score is undefined (0/0), and counts as {score:g}"
            if table.metric[row].startswith(AGREEMENT_PREFIX):
                text = f"{name}: its agreement is undefined, as scores are constant; it counts as {score:g}"
            yield row, Note("zero-division", text, {"system": name, "score": score})


def _note_undecided(table: Table) -> RowNotes:
    """Yield a note for each row whose Monte Carlo interval of the unadjusted p contains alpha."""
    rows = np.flatnonzero(table.is_open & (table.n_trials > 0))
    names = "p_interval.0", "p_interval.1", "n_extreme", "n_trials", "p_adjusted"
    values = (table[name][rows].tolist() for name in names)
    for row, low, high, extreme, trials, adjusted in zip(rows.tolist(), *values, strict=True):
        needed = estimate_trials_to_decide(extreme / trials, table.alpha)
        remedy = f"about {format_count(needed, 'trial')} would" if needed else "no number of trials is likely to"
        limits_text = format_limits(low, high, table.alpha)
        text = f"undecided at {table.alpha:g}: the 99 % interval of p is {limits_text}; {remedy} decide"
        kind, start = ("undecided", "") if np.isnan(adjusted) else ("unadjusted-undecided", "unadjusted p ")
        yield row, Note(kind, start + text, {"alpha": table.alpha, "low": low, "high": high, "needed": needed})


def _note_deciding_units(table: Table) -> RowNotes:
    """Yield a note for each row whose verdict, or whose significant lead, rests on few units."""
    n_deciding, is_reversed = table["deciding.n_deciding"], table["deciding.reverses"]
    for row in np.flatnonzero((n_deciding > 0) & ((table.decision == 1) | ~is_reversed)).tolist():
        n, reverses = int(n_deciding[row]), bool(is_reversed[row])
        consequence = "the other system would be ahead" if reverses else "the verdict would change"
        n_units = int(table.n_units[row])
        decide = f"{n:,} of {n_units:,} {pluralize(table.unit[row], n_units)} decide{'s' if n == 1 else ''}"
        text = f"{decide} it: without {'it' if n == 1 else 'them'} {consequence}"
        yield row, Note("few-units-decide", text, {"n_deciding": n, "changes": "sign" if reverses else "verdict"})


DECISIONS = ("not significant", "significant", "contested", "undecided")
"""Words for verdicts."""

MARGIN_CLAIMS = ("not worse", "not better", "equivalent")
"""Claims that the tests of a margin can show."""

RUN_VERDICTS = ("too few runs", "not significant", "significant")
"""Words for verdicts on recipes."""


def _build_records(table: Table, notes: Mapping[int, Sequence[Note]]) -> list[dict[str, Any]]:
    rows, keys = range(len(table)), {group: table.list_keys(group) for group in KEYED}
    keys["checks"] += [EQUAL_SCORES] if table.has("equal_scores") else []
    given = _derive_columns(table) | dict(_iter_entries(table, keys))
    given |= {  # no column of a table has these
        "notes": [list_dicts(notes.get(row, ())) for row in rows],
        "warnings": [[note.text for note in notes.get(row, ())] for row in rows],
        "margin.verdicts": _list_claims(table) if table.has("margin") else [()] * len(table),
    }
    return _list_members(table, given, keys, "", load_schema()["$defs"]["result"])


def _list_members(
    table: Table, given: Mapping[str, list[Any]], keys: Mapping[str, Sequence[str]], path: str, schema: Schema
) -> list[Any]:
    """Return the value at a path in the record of each row: from `given`, or from the table's columns."""
    if path in given:
        return given[path]
    schema, kind, is_nullable = resolve(schema)
    collect = partial(_list_members, table, given, keys)
    if path in keys:
        entries = [range(len(table)), *(collect(f"{path}.{key}", schema["items"]) for key in keys[path])]
        return [[entry for entry in row if entry is not None] for _, *row in zip(*entries, strict=True)]
    if is_nullable and kind in {"array", "object"} and not table.has(path):
        return [None] * len(table)
    if kind == "array":
        columns = [collect(f"{path}.{k}", schema["items"]) for k in range(schema["maxItems"])]
        kept = _have_values(columns[0]) if is_nullable else [True] * len(table)
        return [row if is_kept else None for is_kept, row in zip(kept, zip(*columns, strict=True), strict=True)]
    if kind != "object":
        rows = table[path].tolist()
        return [value or None for value in rows] if is_nullable and kind != "number" else rows
    members, mark = schema["properties"], schema.get("mark")
    columns = [collect(join_path(path, name), inner) for name, inner in members.items()]
    # the mark is the member that has a value in the rows that have the object
    kept = _have_values(columns[[*members].index(mark)]) if mark else [True] * len(table)
    records = map(dict, map(zip, repeat([*members]), zip(*columns, strict=True)))  # takes 0.7 of a loop's time
    return [record if is_kept else None for is_kept, record in zip(kept, records, strict=True)]


def _have_values(column: list[Any]) -> list[bool]:
    """Return whether each number is none of NaN, or each text not empty and each integer not 0."""
    if column and isinstance(column[0], float):
        return [value == value for value in column]  # noqa: PLR0124
    return [*map(bool, column)]


def _derive_columns(table: Table) -> dict[str, list[Any]]:
    """Return the columns of JSON and data frames that follow from those of a table, by path."""
    p_runs = np.where(np.isnan(table["runs.p_adjusted"]), table["runs.p_value"], table["runs.p_adjusted"])
    trials = table["second_run.n_trials"]
    return {
        "second_run.p_value": np.where(trials > 0, (table["second_run.n_extreme"] + 1) / (trials + 1), np.nan).tolist(),
        "test_signature": format_signatures(table),
        f"p_adjusted_by.{UNADJUSTED}": table.p_value.tolist(),
        "verdict": _pick(DECISIONS, table.outcome % 4),
        "margin.p_equivalent": _compute_equivalence(table).tolist(),
        "runs.verdict": _pick(RUN_VERDICTS, np.where(np.isnan(p_runs), 0, 1 + (p_runs <= table.alpha))),
    }


def _iter_entries(table: Table, keys: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the values of entries of lists in records that no column has, with their paths."""
    n = len(table)
    for name in keys["checks"]:
        yield f"checks.{name}.detail", describe_checks(table, name)
    codes = np.where(table.is_contested, 2, ~np.isnan(table["equal_scores.p_value"]))
    reasons = zip(table["equal_scores.why"].tolist(), table["equal_scores.cause"].tolist(), strict=True)
    yield f"checks.{EQUAL_SCORES}.verdict", _pick((NOT_APPLICABLE, AGREES, "contested"), codes)
    yield f"checks.{EQUAL_SCORES}.detail", [why or cause for why, cause in reasons]
    for name in ("p_value", "p_adjusted"):
        yield f"checks.{EQUAL_SCORES}.{name}", table[f"equal_scores.{name}"].tolist()
    for name in keys["tests"]:
        yield f"tests.{name}.assumes_independence", [name in INDEPENDENT_TESTS] * n
        details = zip(table[f"tests.{name}.detail"].tolist(), table[f"tests.{name}.n_dropped"].tolist(), strict=True)
        yield f"tests.{name}.detail", [text.replace("{dropped}", f"{n:,}") for text, n in details]
    for group, names in keys.items():
        for key in names:
            yield f"{group}.{key}.{KEYED[group]}", [key] * n


def _pick(words: Sequence[str], codes: Any) -> list[str]:
    return [words[code] for code in np.asarray(codes).astype(np.int64).tolist()]


def _compute_equivalence(table: Table) -> Floats:
    """Return p of the two one-sided tests of a margin: the larger of both."""
    return np.asarray(np.maximum(table["margin.p_not_worse"], table["margin.p_not_better"]))


def _list_claims(table: Table) -> list[tuple[str, ...]]:
    """Return what the tests of a margin show of each row."""
    p_values = table["margin.p_not_worse"], table["margin.p_not_better"], _compute_equivalence(table)
    adjusted = (table[f"margin.p_adjusted.{k}"] for k in range(3))
    shown = [np.where(np.isnan(h), p, h) <= table.alpha for p, h in zip(p_values, adjusted, strict=True)]
    return [tuple(c for c, is_shown in zip(MARGIN_CLAIMS, row, strict=True) if is_shown) for row in np.transpose(shown)]


def get_result(table: Table, row: int) -> Result:
    """Return one row of a table as a `Result`, with its messages."""
    return next(iter_results(Table(table.data.slice(row, 1), table.alpha)))


def iter_results(table: Table) -> Iterator[Result]:
    """Yield each row of a table as a `Result`, building some thousand at a time; a number that is NaN becomes None."""
    for part in table.split(CHUNK_ROWS):
        for row, record in enumerate(_build_records(part, notes := build_notes(part))):
            yield Result.from_record(record, notes.get(row, ()))


TEXT_ROWS = 256
"""Rows in one text of JSON. Longer texts take a third more time, because their memory is not used again."""


def iter_json_lines(table: Table) -> Iterator[str]:
    """Yield the JSON of all results, comma-separated, in chunks of some hundred lines."""
    for part in table.split(CHUNK_ROWS):
        records = _build_records(part, build_notes(part))
        for first in range(0, len(part), TEXT_ROWS):
            yield as_json_lines(records[first : first + TEXT_ROWS])


def build_table(records: Sequence[Mapping[str, Any]], alpha: float) -> Table:
    """Return a table of the JSON of results, with all texts as they are.

    Parameters
    ----------
    records : sequence of mapping
        Results as their schema describes them.
    alpha : float
        Level of the verdicts.

    Raises
    ------
    InputError
        A value that follows from others of its record, such as the verdict, is another one.
    """
    values: dict[str, list[Any]] = defaultdict(lambda: [None] * len(records))
    for row, record in enumerate(records):
        for path, value in flatten("", record):
            values[path][row] = value
        values["kept_notes"][row] = as_json_line(record.get("notes", ()))
    columns: dict[str, Any] = {path: build_column(kind, values[path]) for path in values if (kind := get_type(path))}
    table = Table(pa.table({path: to_arrow(c) for path, c in (columns | _read_origins(columns)).items()}), alpha)
    for path, derived in _derive_columns(table).items():
        for row, (stated, value) in enumerate(zip(values.get(path, ()), derived, strict=False)):
            if stated is not None and stated != value:
                raise InputError(f"result {row + 1}: {path} is {stated!r}, but {value!r} by its other values")
    return table


def _read_origins(columns: Columns) -> Columns:
    """Return what the signatures of results say of their families and versions, as columns."""
    if (texts := columns.get("test_signature")) is None:
        return {}
    signatures = [vars(Signature.parse(text)) if text else {} for text in texts.levels]
    values = {name: tuple(str(s.get(name) or "") for s in signatures) for name in ("adjust", "members", "version")}
    return {f"origins.{name}": encode(values[name], texts.codes) for name in values}


FIRST_COLUMNS = (
    "a", "b", "metric", "difference", "interval_low", "interval_high", "p_value", "p_adjusted", "verdict"
)  # fmt: skip
"""Columns with which data frames begin: what most readers look for."""


def build_frame_data(table: Table, tests: Sequence[str] | None = None) -> pa.Table:
    """Return the columns of a data frame, with nulls for what is missing.

    Parameters
    ----------
    table : Table
        The results.
    tests : sequence of str, optional
        The classical tests whose statistic and p-value have columns; by default those that were requested.
    """
    subsets = zip(table["subset.column"].tolist(), table["subset.value"].tolist(), strict=True)
    derived = _derive_columns(table) | {"subset.value": [value if column else None for column, value in subsets]}
    data = {}
    for name, path in get_frame_columns().items():
        for test in (table.list_keys("tests") if tests is None else tests) if "*" in path else [""]:
            own = path.replace("*", test)
            data[name.replace("*", test)] = _to_nullable(own, derived[own] if own in derived else table[own])
    disagrees = {name: table[f"checks.{name}.verdict"].equals(DISAGREES).tolist() for name in table.list_keys("checks")}
    names = [", ".join(name for name in disagrees if disagrees[name][row]) for row in range(len(table))]
    data["disagreements"] = pa.array(names, pa.string())  # of the checks that disagree
    return pa.table({name: data[name] for name in dict.fromkeys((*FIRST_COLUMNS, *data))})


ARROW_TYPES = {"number": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_(), "string": pa.string()}


def _to_nullable(path: str, values: Any) -> pa.Array:
    """Return the values of a column, with null for NaN and for a scorer's signature or an interval that is missing."""
    values = values.tolist() if isinstance(values, Texts) else values
    if path in {"signature", "interval.method"}:
        values = [value or None for value in values]
    return pa.array(values, ARROW_TYPES[get_type(path)], from_pandas=True)
