"""Reproduction of recorded results: find their data by digest, compute them again, and compare every field.

Recorded results are read from signatures, or from files that `compare` and plans write. The function that compares is
an argument (`sigdask.compare_all`, on any cluster). To find the data, it is first called with a single trial, which
costs little and gives the signature of every pair.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sigdask.analysis.comparison.intervals import NO_ITEM_DIFFERS, NO_MEAN, NOT_BINARY
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import is_parquet, open_text
from sigdask.formats.reading.json_records import is_json, load_json
from sigdask.interface import spell
from sigdask.options import INDEPENDENT_TESTS, MATCHED_TESTS, OPTIONS
from sigdask.randomization.stream import SCHEME
from sigdask.results.columns import BCA, CONDITIONAL, INVERSION, NORMAL, PERCENTILE, TANGO
from sigdask.results.comparisons import ComparisonResults, get_version
from sigdask.results.fields import iter_json_lines
from sigdask.results.record import Result
from sigdask.results.signature import EXACT, TRIALS, Signature
from sigdask.results.validation import find_fault
from sigdask.text import format_list

MAX_ROWS = 2_000_000
"""Maximum rows of a Parquet file, in which repeated rows take no space."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """One result as it was recorded, with its signature.

    Attributes
    ----------
    signature : Signature
        The signature that identifies it.
    values : mapping of str to value
        The recorded row, by keys of JSON or columns of CSV; empty if there is only a signature.
    """

    signature: Signature
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, str]:
        """Recorded names of the two systems; empty without a recorded row."""
        return str(self.values.get("a", "")), str(self.values.get("b", ""))

    @property
    def label(self) -> str:
        """Name of the result in messages: test set, subset, metric and systems."""
        signature, (a, b) = self.signature, self.names
        parts = [signature.test_set] if signature.test_set else []
        parts += [f"{signature.subset[0]} {signature.subset[1]}"] if signature.subset else []
        pair = f" of {a} and {b}" if a or b else ""
        return f"{', '.join([*parts, signature.metric])}{pair}"


@dataclass(frozen=True, slots=True)
class RecordedResults:
    """The recorded results of a signature or of a file.

    Attributes
    ----------
    results : tuple of RecordedResult
        The results to reproduce.
    document : mapping of str to value
        Keys of the JSON other than the results. Empty for CSV, Parquet and signatures.
    other_sets : tuple of str
        Other test sets in the file, which are not reproduced.
    """

    results: tuple[RecordedResult, ...]
    document: Mapping[str, Any] = field(default_factory=dict)
    other_sets: tuple[str, ...] = ()

    @property
    def test_sets(self) -> list[str]:
        """Names of the test sets."""
        return [*dict.fromkeys(result.signature.test_set for result in self.results)]

    def select_test_set(self, name: str) -> RecordedResults:
        """Return the results of one test set alone."""
        others = tuple(other for other in self.test_sets if other != name)
        results = tuple(result for result in self.results if result.signature.test_set == name)
        return RecordedResults(results, self.document, others)

    def find_values(self, key: str) -> list[Any]:
        """Return the values that results have of a field, without null."""
        values = (result.values.get(key) for result in self.results)
        return [value for value in values if value is not None]

    def find_members(self, key: str, member: str) -> list[Any]:
        """Return the values of a member of a field that is an object or a list of objects, without null."""
        values = self.find_values(key)
        objects = (item for value in values for item in (value if isinstance(value, list) else [value]))
        return [value for item in objects if (value := item.get(member)) is not None]


def read(path: Path) -> RecordedResults:
    """Return the recorded results in a JSON, CSV or Parquet file.

    Raises
    ------
    InputError
        The file cannot be read, has no known format, or contradicts the signatures in it.
    """
    if not is_parquet(path) and is_json(path):
        document = check_results(path, load_document(path))
    else:
        document = {"results": _read_parquet(path) if is_parquet(path) else _read_csv(path)}
        check_signatures(path, document)
    results = tuple(_build_result(path, number, row) for number, row in enumerate(document["results"], 1))
    return RecordedResults(results, {key: value for key, value in document.items() if key != "results"})


def _read_parquet(path: Path) -> Sequence[Mapping[str, Any]]:
    try:
        with parquet.ParquetFile(path) as file:
            if (n_rows := file.metadata.num_rows) > MAX_ROWS:
                raise InputError(
                    f"has {n_rows:,} rows, more than {MAX_ROWS:,}",
                    file=path,
                    remedy="give the JSON file of these results instead",
                )
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"not Parquet that can be read ({error})", file=path) from None
    _check_columns(path, table.column_names)
    return list(table.to_pylist())


def load_document(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file."""
    return document if isinstance(document := load_json(path), dict) else {}


def check_results(path: Path, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON object of a file; raise if it does not hold results of comparisons, or was altered."""
    if command := find_other_command(document):
        raise InputError(
            f"holds results of `sigdask {command}`, and reproduce repeats those of compare, meta and plans",
            file=path,
            remedy=f"run `sigdask {command} --json` again and compare the files",
        )
    if "results" not in document:
        raise InputError(file=path, expected='the JSON that `sigdask compare --json` writes, with "results"')
    if (fault := find_fault(document)) is not None:
        raise InputError(f"not results of `sigdask compare --json`: {fault}", file=path)
    check_signatures(path, document)
    return document


def find_other_command(document: Mapping[str, Any]) -> str | None:
    """Return the command that wrote results of another kind; None for those of comparisons."""
    if str(document.get("kind")).startswith("rankings"):
        return "rankings"
    if "power" in document and "results" not in document:
        return "power"
    rows = document.get("results")
    has_labellings = isinstance(rows, list) and rows and all(isinstance(row, dict) and "score" in row for row in rows)
    return "independence" if has_labellings else None


def _check_columns(path: Path, names: Collection[str]) -> None:
    if "test_signature" not in names:
        raise InputError(
            "not a file of results: it has no column test_signature. Give a file that `sigdask compare` wrote with "
            "-o, as JSON, CSV or Parquet",
            file=path,
        )


def _read_csv(path: Path) -> Sequence[Mapping[str, Any]]:
    try:
        with open_text(path) as file:
            rows = [*csv.DictReader(file, restkey="", restval="")]
    except csv.Error as error:
        raise InputError(f"not CSV ({error})", file=path) from None
    if rows:
        _check_columns(path, rows[0])
    return rows


def _build_result(path: Path, number: int, row: Mapping[str, Any]) -> RecordedResult:
    if not row.get("test_signature"):
        raise InputError(
            f"{path}, result {number}: has no test_signature",
            remedy="write the results again with this version of sigdask",
        )
    try:
        return RecordedResult(Signature.parse(str(row["test_signature"])), row)
    except InputError as error:
        raise InputError(f"{path}, result {number}: {error}") from None


def check_signatures(path: Path, document: Mapping[str, Any]) -> None:
    """Raise if a file of results contradicts the signatures in it, as after an edit by hand.

    Parameters
    ----------
    document : mapping of str to value
        The file's JSON, or only its `results`.
    """
    if not document["results"]:
        raise InputError("holds no results", file=path, remedy="give a file that `sigdask compare` wrote")
    names: set[tuple[Any, ...]] = set()
    for number, row in enumerate(document["results"], 1):
        signature = _build_result(path, number, row).signature
        if (name := (row["test_signature"], row.get("a"), row.get("b"))) in names:
            raise InputError(f"{path}, result {number}: occurs twice", remedy="remove one of them")
        names.add(name)
        stated = {"seed": document.get("seed")} | {key: row.get(key) for key in ("metric", "alternative", "unit")}
        signed: dict[str, Any] = {key: getattr(signature, key) for key in stated}
        if signature.p == TRIALS:
            signed["n_trials"] = signature.n_trials
            signed["p_value"] = (float(row.get("n_extreme") or 0) + 1) / (float(row.get("n_trials") or 0) + 1)
            stated |= {key: float(row[key]) for key in ("n_trials", "p_value") if row.get(key)}
        for key in (key for key in stated if key in signed):
            if stated[key] is not None and not _are_equal(stated[key], signed[key]):
                raise InputError(
                    f"{path}, result {number}: {key} is {stated[key]!r}, but {signed[key]!r} by its signature and "
                    "counts; the file was altered after sigdask wrote it: write it again"
                )


Compare = Callable[..., ComparisonResults]

TOLERANCE = 1e-12
"""Relative difference by which real numbers may differ between machines. Everything else must be equal."""

PROBE_OPTIONS: dict[str, Any] = {
    "trials": 1, "method": "randomization", "second_run": False, "interval": "none", "adjust": "none", "beside": False,
}  # fmt: skip
"""Options of the call that only finds the data."""

MetricKey = tuple[str, str, tuple[str, str] | None]
"""Unit, metric and subset."""

Match = tuple[RecordedResult, tuple[str, str]]
"""A recorded result, and the names of its two systems in the current data."""


@dataclass(frozen=True, slots=True)
class RepeatedResult:
    """A recorded result and the same result computed again, with the differences.

    Attributes
    ----------
    recorded : RecordedResult
        The recorded result.
    result : Result
        The current result.
    differences : tuple of str
        Values that differ, each with both values.
    """

    recorded: RecordedResult
    result: Result
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReproduceOutcome:
    """The outcome of reproducing results: results computed again, results whose data have changed, and notes.

    Attributes
    ----------
    repeated : tuple of RepeatedResult
        Results whose data match their signatures.
    changed : tuple of str
        Other results whose data have changed, with the names of these data.
    differences : tuple of str
        Differences in a JSON file outside the results, each with both values.
    not_compared : mapping of str to tuple of str
        Fields of the file that are not compared, by the reason.
    notes : tuple of str
        Further remarks.
    """

    repeated: tuple[RepeatedResult, ...]
    changed: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    not_compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def is_reproduced(self) -> bool:
        """Whether all data and all recorded values are the same."""
        return not (self.changed or self.differences or any(entry.differences for entry in self.repeated))


def reproduce_results(recorded: RecordedResults, counts: Counts, compare: Compare) -> ReproduceOutcome:
    """Compute recorded results again, and return how they compare with the record.

    Parameters
    ----------
    recorded : RecordedResults
        Recorded results of one call and one test set, that of `counts`.
    compare : callable
        `sigdask.compare_all`, or a function with the same arguments and result.
    counts : Counts
        The current data of the systems.

    Raises
    ------
    InputError
        A signature is of another layout of the stream, or its settings do not fit these data.
    """
    _check_settings(recorded)
    current = _CurrentData.from_counts(recorded.results, counts, compare)
    pairs = [(entry, current.find_pair(entry)) for entry in recorded.results]
    changed = [f"{entry.label}: {current.describe_change(entry)}" for entry, pair in pairs if pair is None]
    matches = [(entry, pair) for entry, pair in pairs if pair is not None]
    signatures = [entry.signature for entry in recorded.results]
    comparison = FieldComparison(has_same_words={signature.version for signature in signatures} == {get_version()})
    repeated: list[RepeatedResult] = []
    if matches:
        results = _compute_again(_build_options(matches, recorded, counts), recorded, counts, compare)
        repeated = _compare_results(matches, results, comparison)
        if recorded.document and not changed:
            _compare_document(recorded, results, comparison)
    reasons: dict[str, tuple[str, ...]] = {}
    for name, reason in comparison.not_compared.items():
        reasons[reason] = (*reasons.get(reason, ()), name)
    notes = _iter_notes(recorded.results, repeated)
    return ReproduceOutcome(tuple(repeated), tuple(changed), tuple(comparison.differences), reasons, tuple(notes))


def _check_settings(recorded: RecordedResults) -> None:
    """Raise if the recorded results are not of one call on one test set, or cannot be computed again."""
    if recorded.results[0].values and not recorded.document:
        raise InputError(
            "CSV and Parquet lack the settings of a comparison",
            remedy="give the JSON file of the results, or a signature of the column test_signature",
        )
    signatures = [entry.signature for entry in recorded.results]
    if (scheme := next((s.scheme for s in signatures if s.scheme != SCHEME), None)) is not None:
        raise InputError(
            f"signature: scheme {scheme}: this version of sigdask has only scheme {SCHEME} of random swaps",
            remedy="use the version that wrote it",
        )
    for name in ("test_set", "unit", "alternative", "method", "seed"):
        values = [*dict.fromkeys(getattr(signature, name) for signature in signatures)]
        if len(values) > 1:
            remedy = "choose one with --name" if name == "test_set" else "give a file of one call of compare"
            raise InputError(
                f"results of several values of {name}: {format_list([*map(str, values)], 9)}", remedy=remedy
            )


def _get_metric_key(signature: Signature) -> MetricKey:
    return signature.unit, signature.metric, signature.subset


@dataclass(frozen=True, slots=True)
class _CurrentData:
    """Digests of the current data, by which the systems of recorded results are found.

    Attributes
    ----------
    pairs : dict of (place, units, a, b) to list of (str, str)
        Names of the systems, in this order; several pairs if systems have equal data.
    systems : dict of place to dict of str to str
        Digest of each system, by name; that of one of its pairs if the system lacks items.
    units : dict of str to (str, int)
        Digest of the ids and number of units, by kind of swapped unit.
    """

    pairs: dict[tuple[MetricKey, str, str, str], list[tuple[str, str]]] = field(default_factory=dict)
    systems: dict[MetricKey, dict[str, str]] = field(default_factory=dict)
    units: dict[str, tuple[str, int]] = field(default_factory=dict)

    @staticmethod
    def from_counts(recorded: Sequence[RecordedResult], counts: Counts, compare: Compare) -> _CurrentData:
        """Return the digests of the data under each metric, unit and column that the recorded signatures name."""
        current = _CurrentData()
        metrics_of: dict[tuple[str, str | None], dict[str, None]] = {}
        for entry in recorded:
            signature = entry.signature
            key = signature.unit, signature.subset and signature.subset[0]
            metrics_of.setdefault(key, {})[signature.metric] = None
        for (unit, by), metrics in metrics_of.items():
            for result in compare(counts, metrics=[*metrics], unit=unit, by=by, **PROBE_OPTIONS):
                current.add(result)
        return current

    def add(self, result: Result) -> None:
        """Add the digests in the signature of one result."""
        signature = _parse_signature(result)
        key, data = _get_metric_key(signature), signature.data
        self.pairs.setdefault((key, data.units, data.a, data.b), []).append((result.a, result.b))
        self.pairs.setdefault((key, data.units, data.b, data.a), []).append((result.b, result.a))
        self.systems.setdefault(key, {}).update({result.a: data.a, result.b: data.b})
        self.units[signature.unit] = data.units, result.n_units

    def find_pair(self, entry: RecordedResult) -> tuple[str, str] | None:
        """Return the names of the two systems of a result, or None if the current data do not have them.

        Systems with equal data are distinguished by their recorded names.
        """
        data = entry.signature.data
        pairs = self.pairs.get((_get_metric_key(entry.signature), data.units, data.a, data.b), [])
        return entry.names if entry.names in pairs else next(iter(pairs), None)

    def describe_change(self, entry: RecordedResult) -> str:
        """Return a message on how the current data differ from those of a recorded result."""
        signature = entry.signature
        units, n_units = self.units[signature.unit]
        if units != signature.data.units:
            before = entry.values.get("n_units", n_units)
            instead = f" instead of {before:,}" if before != n_units else ""
            return f"the ids of the {signature.unit}s differ from those of the signature ({n_units:,}{instead})"
        digests = self.systems.get(_get_metric_key(signature))
        if digests is None:
            return "these files do not have this subset"
        sides = zip("AB", entry.names, (signature.data.a, signature.data.b), strict=True)
        absent = [
            f"no system has the data of {name or side} (digest {digest})"
            for side, name, digest in sides
            if digest not in digests.values()
        ]
        if len(absent) == len(entry.names):
            absent.append("since both differ, the gold standard or the reading options may differ as well")
        found = format_list([f"{name} ({digest})" for name, digest in digests.items()], 5)
        return f"{'; '.join(absent)}; digests found: {found}" if absent else "both systems exist, but on other items"


def _build_options(matches: Sequence[Match], recorded: RecordedResults, counts: Counts) -> dict[str, Any]:
    """Return the options of the call that computes the results again."""
    signatures = [entry.signature for entry, _ in matches]
    first, is_held = signatures[0], bool(matches[0][0].values)
    method = first.method if is_held else _choose_method(first)
    limit = next((s.exact_limit for s in signatures if s.exact_limit is not None), None)
    together = recorded.document.get("together")
    margins = [margin["margin"] for margin in recorded.find_values("margin")]
    alpha = recorded.document.get("alpha", OPTIONS["alpha"].default)
    return {
        "metrics": [*dict.fromkeys(signature.metric for signature in signatures)],
        "pairs": [*dict.fromkeys(pair for _, pair in matches)],
        "unit": [first.unit, *(unit for unit in list_finer_units(recorded) if unit in counts.groups)],
        "by": first.subset and first.subset[0],
        "alternative": first.alternative,
        "method": method,
        "exact_limit": math.inf if method == "exact" or not is_held else limit,
        "trials": _find_trials(signatures, recorded),
        "seed": first.seed,
        "alpha": alpha,
        "adjust": next((s.adjust for s in signatures if s.adjust and is_held), "none"),
        "margin": margins[0] if margins else None,
        "second_run": bool(recorded.find_values("second_run")),
        "beside": any(recorded.find_values("beside")),
        "tests": _list_tests(recorded) or None,
        "together": bool(together) and not recorded.other_sets and first.subset is not None,
        **_find_interval_options(recorded),
    }


def _compute_again(
    options: Mapping[str, Any], recorded: RecordedResults, counts: Counts, compare: Compare
) -> ComparisonResults:
    """Return the results of a call. Inversion has a default number of resamples that depends on the data."""
    number = options.get("resamples")
    if number is not None and INVERSION in recorded.find_members("interval", "method"):
        results = compare(counts, **{**options, "resamples": None})
        if number in {r.interval.n_resamples for r in results if r.interval is not None}:
            return results
    return compare(counts, **options)


def _choose_method(signature: Signature) -> str:
    """Return the method by which the p of a signature was obtained."""
    if signature.p == TRIALS:
        return "randomization"
    return "both" if signature.p == EXACT and signature.n_trials else "exact"


def _find_trials(signatures: Sequence[Signature], recorded: RecordedResults) -> int | None:
    """Return the requested random trials: the one number that all results with such have, or None for the default.

    If no result has any, they are those of the family, over all subsets, or by other units.
    """
    numbers = {signature.n_trials for signature in signatures} - {None}
    if not numbers:
        contrasts = [item for value in recorded.find_values("beside") for item in value]
        contrasts += [] if recorded.other_sets else recorded.document.get("together") or []
        counted = [item["n_trials"] for item in contrasts if item["method"] != "exact"]
        family = recorded.document.get("family") or {}
        counted += [] if family.get("exact") else [family.get("n_trials")]
        return next((number for number in counted if number), None)
    return numbers.pop() if len(numbers) == 1 else None


def list_finer_units(recorded: RecordedResults) -> list[str]:
    """Return the contrast units of the results that are finer than their own unit, other than items."""
    coarser = {"item", *recorded.find_members("dependence", "column")}
    return [unit for unit in dict.fromkeys(recorded.find_members("beside", "unit")) if unit not in coarser]


def _list_tests(recorded: RecordedResults) -> list[str]:
    """Return the names of the classical tests that a file of results has."""
    names = dict.fromkeys(recorded.find_members("tests", "name"))
    return [name for name in names if name in MATCHED_TESTS | INDEPENDENT_TESTS]


INTERVAL_KEYS = ("interval", "score_a_interval", "score_b_interval", "paired_d", "interval_simultaneous")
"""Fields that results have if intervals were requested."""


def _find_interval_options(recorded: RecordedResults) -> dict[str, Any]:
    """Return the options of intervals with which a file of results was computed."""
    notes = [note for value in recorded.find_values("notes") for note in value if note["kind"] == "interval"]
    if not (notes or any(recorded.find_values(key) for key in INTERVAL_KEYS)):
        return {"interval": "none"}
    confidences = recorded.find_members("interval", "confidence")
    resamples = {*recorded.find_members("interval", "n_resamples")}
    return {
        "interval": _find_interval_kind(recorded, " ".join(note["text"] for note in notes)),
        "confidence": confidences[0] if confidences else OPTIONS["confidence"].default,
        "resamples": resamples.pop() if len(resamples) == 1 else None,
    }


def _find_interval_kind(recorded: RecordedResults, reasons: str) -> str:
    """Return the kind of intervals, given the methods that were used and why results have none."""
    methods = {*recorded.find_members("interval", "method")}
    if CONDITIONAL in methods or NOT_BINARY in reasons or NO_ITEM_DIFFERS in reasons:
        return CONDITIONAL
    if methods & {TANGO, NORMAL}:
        return "auto"
    if INVERSION in methods:
        return "auto" if recorded.find_values("score_a_interval") else "inversion"
    if NO_MEAN in reasons:
        return "inversion"
    return "bootstrap" if methods & {BCA, PERCENTILE} else "auto"


OTHER_WORDS = "text by another version of sigdask"
OTHER_SCORER = "options by another version of the scorer"
TAKEN_SETTING = "settings, which the new run took from the file"
VERSIONS = "versions of sigdask"

MAX_CHARACTERS = 200
"""Maximum characters of a value in a message."""


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """The outcome of comparing recorded values with current ones, field by field.

    Attributes
    ----------
    differences : list of str
        Fields that differ, each with both values.
    not_compared : dict of str to str
        Fields that are not compared, with the reason.
    has_same_words : bool
        Whether the version that recorded the values has the same fields and sentences as this one.
    """

    differences: list[str] = field(default_factory=list)
    not_compared: dict[str, str] = field(default_factory=dict)
    has_same_words: bool = True

    def compare(self, path: str, recorded: Any, current: Any) -> None:
        """Compare a recorded value with the current one, and their members one by one."""
        if isinstance(recorded, dict) and isinstance(current, dict):
            self.compare_members(path, recorded, current)
        elif isinstance(recorded, list) and isinstance(current, list) and len(recorded) == len(current):
            for k, values in enumerate(zip(recorded, current, strict=True)):
                self.compare(f"{path}[{k}]", *values)
        elif not _are_equal(recorded, current):
            self.differences.append(f"{path}: {_shorten(recorded)}, now {_shorten(current)}")

    def compare_members(self, path: str, recorded: Mapping[str, Any], current: Mapping[str, Any]) -> None:
        """Compare the members of two objects."""
        for key in dict.fromkeys((*current, *recorded)):
            name = f"{path}.{key}" if path else key
            if key in ("detail", "text") and not self.has_same_words:
                self.skip(name, OTHER_WORDS)
            elif key in current and (key in recorded or self.has_same_words):
                self.compare(name, recorded.get(key), current[key])
            else:
                self.skip(name, "not in the file" if key in current else "not known to this version of sigdask")

    def skip(self, name: str, reason: str) -> None:
        """Add a field that is not compared."""
        self.not_compared.setdefault(re.sub(r"\[\d+\]", "", name), reason)


def _shorten(value: Any) -> str:
    """Return a value as messages show it: findings and notes by their kinds, anything else cut if it is long."""
    if isinstance(value, list) and all(isinstance(entry, dict) and "kind" in entry for entry in value):
        return ", ".join(str(entry["kind"]) for entry in value) or "none"
    text = repr(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


def _are_equal(recorded: Any, current: Any) -> bool:
    """Return whether two values are the same: real numbers within the tolerance."""
    if isinstance(recorded, bool) or isinstance(current, bool):
        return recorded is current
    if isinstance(current, float) and isinstance(recorded, int | float):
        return recorded == current or math.isclose(recorded, current, rel_tol=TOLERANCE)
    return bool(recorded == current)


def _compare_results(
    matches: Sequence[Match], results: ComparisonResults, comparison: FieldComparison
) -> list[RepeatedResult]:
    """Compare recorded results with those that were computed again."""
    rows = {(r.metric, r.subset and tuple(r.subset.values()), r.a, r.b): k for k, r in enumerate(results)}
    numbers = [rows[entry.signature.metric, entry.signature.subset, *pair] for entry, pair in matches]
    table = results.table.take(np.array(numbers))
    lines = json.loads(f"[{','.join(iter_json_lines(table))}]")
    repeated = []
    for (entry, _), number, current in zip(matches, numbers, lines, strict=True):
        own = replace(comparison, differences=[])
        if entry.values:
            _compare_result(entry, _parse_signature(results[number]), current, own)
        repeated.append(RepeatedResult(entry, results[number], tuple(own.differences)))
    return repeated


def _compare_result(
    entry: RecordedResult, new: Signature, current: Mapping[str, Any], comparison: FieldComparison
) -> None:
    """Compare the recorded fields of a result with the current ones."""
    old, recorded = entry.signature, entry.values
    apart = {"test_signature", "notes", "warnings"}
    options = [dict(signature.options) for signature in (old, new)]
    sides = [asdict(signature) | {"options": own} for signature, own in zip((old, new), options, strict=True)]
    if any(options[0].get(key) != options[1].get(key) for key in ("version", "code")):
        comparison.skip("signature", OTHER_SCORER)
        apart.add("signature")
        sides = [side | {"options": {}} for side in sides]
    if old.version != new.version:
        comparison.skip("test_signature.version", VERSIONS)
        sides = [side | {"version": ""} for side in sides]
    comparison.compare("test_signature", *sides)
    interval = recorded.get("interval") or {}
    if interval.get("method") == INVERSION and interval.get("n_resamples") is None:
        for name in ("score_a_interval", "score_b_interval"):
            comparison.skip(name, "the file does not say their number of resamples")
            apart.add(name)
    comparison.compare_members("", *({key: row[key] for key in row if key not in apart} for row in (recorded, current)))
    _compare_notes(recorded, current, comparison)


UNDETERMINED_NOTES = {
    **dict.fromkeys(("scope", "reading", "missing"), "how the files were read and chosen"),
    "second-look": "earlier runs of a plan",
    "unused-option": "options that have no effect",
}
"""Kinds of notes that data, settings and seed do not determine, with the reason."""


def _compare_notes(recorded: Mapping[str, Any], current: Mapping[str, Any], comparison: FieldComparison) -> None:
    """Compare notes without their texts, in which each front end has its own words, and warnings with these texts."""
    if not comparison.has_same_words:
        for name in ("notes", "warnings"):
            comparison.skip(name, OTHER_WORDS)
        return
    listed = recorded.get("notes", [])
    fixed = [
        [{**note, "text": ""} for note in notes if note["kind"] not in UNDETERMINED_NOTES]
        for notes in (listed, current["notes"])
    ]
    comparison.compare("notes", *fixed)
    for kind in dict.fromkeys(note["kind"] for note in listed if note["kind"] in UNDETERMINED_NOTES):
        comparison.skip(f"notes of the kind {kind}", UNDETERMINED_NOTES[kind])
    comparison.compare("warnings", recorded.get("warnings"), [note["text"] for note in listed])


DOCUMENT_UNDETERMINED = {
    **dict.fromkeys(("plan", "run", "changes", "gate"), "the run of a plan"),
    **dict.fromkeys(("candidates", "independence"), "other analyses of a plan"),
    "grouping": "how rankings are shown",
}
"""Keys of the JSON that the results do not determine, with the reason."""


def _compare_document(recorded: RecordedResults, results: ComparisonResults, comparison: FieldComparison) -> None:
    """Compare the keys of a JSON file other than its results."""
    skipped = dict(DOCUMENT_UNDETERMINED)
    document, current = dict(recorded.document), results.around()
    if recorded.other_sets or "plan" in document:
        skipped |= dict.fromkeys(("notes", "warnings", "together"), "of all test sets of the plan together")
    if not comparison.has_same_words:
        skipped["sigdask"] = VERSIONS
    for name in recorded.document:
        if name in skipped:
            comparison.skip(name, skipped[name])
    for name in ("results", "rankings", "families") if recorded.other_sets else ():
        comparison.skip(f"{name} of other test sets", "--name chooses another")
    document["rankings"] = [
        row for row in document.get("rankings", []) if row.get("test_set") not in recorded.other_sets
    ]
    if "families" in document:
        families = document["families"] | {recorded.test_sets[0]: current["family"]}
        is_same = all(family == current["family"] for family in families.values())
        current |= {"families": families, "family": current["family"] if is_same else None}
    apart = {*skipped, "results", "notes", "warnings"}
    comparison.compare_members(
        "", *({key: side[key] for key in side if key not in apart} for side in (document, current))
    )
    if "notes" not in skipped:
        _compare_notes(document, current, comparison)
    taken = [name for name in ("beside", "tests") if not any(recorded.find_values(name))]
    for name in (*taken, "alpha"):
        comparison.skip(name, TAKEN_SETTING)
    if not document.get("together") and recorded.results[0].signature.subset:
        comparison.skip("together", f"empty, as it is without {spell('together')}")


def _iter_notes(recorded: Sequence[RecordedResult], repeated: Sequence[RepeatedResult]) -> Iterator[str]:
    """Yield notes on changes of the program's version, of scorers, and of the user's own code."""
    for version in dict.fromkeys(entry.signature.version for entry in recorded):
        if version != get_version():
            yield f"found by sigdask {version}; this is sigdask {get_version()}"
    if any(entry.signature.adjust and not entry.values for entry in recorded):
        yield "its adjusted p needs the whole family: reproduce a file of results instead"
    pairs = [(entry.recorded.signature, _parse_signature(entry.result)) for entry in repeated]
    yield from dict.fromkeys(
        f"{old.metric}: {key} was {dict(old.options).get(key, 'none')}, is {dict(new.options).get(key, 'none')}"
        for old, new in pairs
        for key in dict(old.options + new.options)
        if dict(old.options).get(key) != dict(new.options).get(key)
    )


def _parse_signature(result: Result) -> Signature:
    assert result.test_signature is not None
    return Signature.parse(result.test_signature)
