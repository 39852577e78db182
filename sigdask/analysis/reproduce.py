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
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sigdask.analysis.comparison.families import SHARED_TRIALS
from sigdask.analysis.comparison.intervals import NO_ITEM_DIFFERS, NO_MEAN, NOT_BINARY
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import is_parquet, open_text
from sigdask.formats.reading.json_records import is_json, load_json
from sigdask.interface import spell
from sigdask.options import INDEPENDENT_TESTS, MATCHED_TESTS, OPTIONS
from sigdask.randomization.panels import agreement, outputs, sums
from sigdask.randomization.stream import SCHEME
from sigdask.results.columns import BCA, CONDITIONAL, INVERSION, NORMAL, PERCENTILE, TANGO
from sigdask.results.comparisons import VERSION, ComparisonResults, get_version
from sigdask.results.export import list_csv_rows
from sigdask.results.fields import iter_json_lines
from sigdask.results.record import Result
from sigdask.results.signature import ATTRIBUTES, EXACT, TRIALS, Signature, split_scorer_signature
from sigdask.results.table import Table
from sigdask.text import format_list

MAX_JSON_DEPTH = 50
"""Maximum nesting of a file of results, which has five levels."""


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
        Keys of the JSON other than the results. Empty for CSV files and signatures.
    other_sets : tuple of str
        Other test sets in the file, which are not reproduced.
    """

    results: tuple[RecordedResult, ...]
    document: Mapping[str, Any] = field(default_factory=dict)
    other_sets: tuple[str, ...] = ()

    @property
    def is_csv(self) -> bool:
        """Whether the results are rows of a CSV or Parquet file."""
        return not self.document and bool(self.results[0].values)

    @property
    def test_sets(self) -> list[str]:
        """Names of the test sets."""
        return [*dict.fromkeys(result.signature.test_set for result in self.results)]

    def select_test_set(self, name: str) -> RecordedResults:
        """Return the results of one test set alone."""
        others = tuple(other for other in self.test_sets if other != name)
        results = tuple(result for result in self.results if result.signature.test_set == name)
        return RecordedResults(results, self.document, others)

    def get_family(self, key: str) -> Any:
        """Return a value of the document's `family` object, or None if it is missing."""
        family = self.document.get("family")
        return family.get(key) if isinstance(family, dict) else None

    def find_values(self, key: str) -> list[Any]:
        """Return the values that results have of a field, without null and the empty cells of CSV."""
        values = (result.values.get(key) for result in self.results)
        return [value for value in values if value is not None and value != ""]

    def find_members(self, key: str, member: str) -> list[Any]:
        """Return the values of a member of a field that is an object or a list of objects."""
        values = self.find_values(key)
        objects = [item for value in values for item in (value if isinstance(value, list) else [value])]
        members = (item.get(member) for item in objects if isinstance(item, dict))
        return [value for value in members if isinstance(value, str | int | float)]


def read(path: Path) -> RecordedResults:
    """Return the recorded results in a JSON, CSV or Parquet file.

    Raises
    ------
    InputError
        The file cannot be read, has no known format, or its results have no signatures.
    """
    if is_parquet(path):
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
        document: Mapping[str, Any] = {"results": list(table.to_pylist())}
    else:
        document = read_json_results(path) if is_json(path) else {"results": _read_csv(path)}
    rows = document["results"]
    if not rows:
        raise InputError("holds no results", file=path)
    results = tuple(_build_result(path, number, row) for number, row in enumerate(rows, 1))
    return RecordedResults(results, {key: value for key, value in document.items() if key != "results"})


def load_document(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file."""
    document = load_json(path)
    _check_depth(path, document)
    return document if isinstance(document, dict) else {}


def read_json_results(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file of results of comparisons, with its list of results as "results"."""
    return check_results(path, load_document(path))


def check_results(path: Path, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON object of a file; raise if it does not hold results of comparisons."""
    rows = document.get("results")
    if command := find_other_command(document):
        raise InputError(
            f"holds results of `sigdask {command}`, and reproduce repeats those of compare, meta and plans",
            file=path,
            remedy=f"run `sigdask {command} --json` again and compare the files",
        )
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(file=path, expected='the JSON that `sigdask compare --json` writes, with "results"')
    version = document.get("schema_version", VERSION)
    if type(version) is not int or version != VERSION:
        raise InputError(f"schema_version = {version!r}: this version of sigdask reads version {VERSION}", file=path)
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


def _check_depth(path: Path, document: Any) -> None:
    """Raise if lists and objects are nested deeper than those of any file of results."""
    level = [document]
    for _ in range(MAX_JSON_DEPTH):
        containers = (value for value in level if isinstance(value, list | dict))
        level = [item for value in containers for item in (value.values() if isinstance(value, dict) else value)]
    if any(isinstance(value, list | dict) for value in level):
        raise InputError(
            f"lists or objects are nested more than {MAX_JSON_DEPTH} deep; expected the JSON that `sigdask compare "
            "--json` writes",
            file=path,
        )


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
        Recorded results of one test set, that of `counts`.
    compare : callable
        `sigdask.compare_all`, or a function with the same arguments and result.
    counts : Counts
        The current data of the systems.

    Raises
    ------
    InputError
        A signature is of another layout of the stream, or its settings do not fit these data.
    """
    schemes = (result.signature.scheme for result in recorded.results)
    if (scheme := next((scheme for scheme in schemes if scheme != SCHEME), None)) is not None:
        raise InputError(
            f"signature: scheme {scheme}: this version of sigdask has only scheme {SCHEME} of random swaps",
            remedy="use the version that wrote it",
        )
    if len(names := recorded.test_sets) > 1:
        raise InputError(f"results of several test sets: {format_list(names, 9)}", remedy="choose one with --name")
    current = _CurrentData.from_counts(recorded.results, counts, compare)
    matches, changed = _match_systems(recorded, current)
    absent = [] if changed else [*_note_absent(matches, current)]
    versions = {result.signature.version for result in recorded.results}
    comparison = FieldComparison(has_same_words=versions == {get_version()})
    counts, matches = _restore_names(matches, counts, comparison)
    groups = _group_matches(matches)
    reruns = [_rerun_group(settings, members, recorded, counts, compare) for settings, members in groups.items()]
    repeated = [entry for rerun in reruns for entry in rerun.repeated]
    for rerun in reruns:
        comparison.merge(rerun.comparison)
    for name in ("beside", "tests"):
        if any(name in result.values for result in recorded.results) and not any(recorded.find_values(name)):
            comparison.skip(name, TAKEN_SETTING)
    if recorded.document and reruns and not changed:
        _compare_document(recorded, [rerun.results for rerun in reruns], comparison)
    notes = (*_iter_notes(recorded.results, repeated), *absent)
    differences = (*_find_repeats(matches), *comparison.differences)
    return ReproduceOutcome(tuple(repeated), tuple(changed), differences, comparison.list_reasons(), notes)


Match = tuple[RecordedResult, tuple[str, str]]
"""A recorded result, and the names of its two systems in the current data."""


def _match_systems(recorded: RecordedResults, current: _CurrentData) -> tuple[list[Match], list[str]]:
    """Return the results whose data exist, with the systems' current names, and messages on data that changed."""
    matches: list[Match] = []
    changed = []
    for entry in recorded.results:
        pair = current.find_pair(entry)
        if pair is None:
            changed.append(f"{entry.label}: {current.describe_change(entry)}")
        else:
            matches.append((entry, pair))
    return matches, changed


def _restore_names(matches: Sequence[Match], counts: Counts, comparison: FieldComparison) -> tuple[Counts, list[Match]]:
    """Give systems with renamed files their recorded names, if these are the same in all results; note it."""
    pairs = {pair for entry, names in matches if entry.values for pair in zip(names, entry.names, strict=True)}
    times = Counter(name for pair in pairs for name in set(pair))
    renamed = {new: old for new, old in pairs if new != old and old and times[new] == times[old] == 1}
    renamed = {new: old for new, old in renamed.items() if old not in counts.systems}
    if not renamed:
        return counts, list(matches)
    for new, old in renamed.items():
        comparison.skip(f"{old!r} is now called {new!r}", "system names: the data are the same")
    systems = tuple(renamed.get(name, name) for name in counts.systems)
    restored = [(entry, (renamed.get(a, a), renamed.get(b, b))) for entry, (a, b) in matches]
    return replace(counts, systems=systems), restored


def _find_repeats(matches: Sequence[Match]) -> Iterator[str]:
    """Yield a message on each result that the file has twice."""
    keys = Counter(
        (entry.label, entry.signature.metric, entry.signature.subset, pair) for entry, pair in matches if entry.values
    )
    for (label, *_), n in keys.items():
        if n > 1:
            yield f"results: {label} occurs {n} times in the file, and once now"


def _note_absent(matches: Sequence[Match], current: _CurrentData) -> Iterator[str]:
    """Yield a note on the comparisons of these systems that a file of results does not have."""
    present = {(_get_metric_key(entry.signature), frozenset(pair)) for entry, pair in matches if entry.values}
    compared = dict.fromkeys((key[0], frozenset(pair)) for key, pairs in current.pairs.items() for pair in pairs)
    absent = [
        f"{' and '.join(sorted(pair))} on {' '.join((*(subset or ()), metric))}"
        for (unit, metric, subset), pair in compared
        if ((unit, metric, subset), pair) not in present
    ]
    if present and absent:
        n = len(present) + len(absent)
        yield f"of {n:,} comparisons of these systems, the file lacks {len(absent):,}: {format_list(absent, 5)}"


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
        signature = entry.signature
        data = signature.data
        key = _get_metric_key(signature), data.units, data.a, data.b
        pairs = self.pairs.get(key, [])
        return entry.names if entry.names in pairs else next(iter(pairs), None)

    def describe_change(self, entry: RecordedResult) -> str:
        """Return a message on how the current data differ from those of a recorded result."""
        signature = entry.signature
        units, n_units = self.units[signature.unit]
        if units != signature.data.units:
            recorded_units = str(entry.values.get("n_units", n_units))
            instead = f" instead of {recorded_units}" if recorded_units != str(n_units) else ""
            return f"the ids of the {signature.unit}s differ from those of the signature ({n_units:,}{instead})"
        digests = self.systems.get(_get_metric_key(signature))
        if digests is None:
            return "these files do not have this subset"
        a, b = entry.names
        sides = (("A", a, signature.data.a), ("B", b, signature.data.b))
        changed = [_describe_side(*side, digests) for side in sides if side[-1] not in digests.values()]
        if len(changed) == len(sides):
            changed.append("since both differ, the gold standard or the reading options may differ as well")
        return "; ".join(changed) or "both systems are in the data, but not on the same items"


def _describe_side(side: str, name: str, digest: str, digests: Mapping[str, str]) -> str:
    """Return a message that no current system has the recorded digest of system A or B."""
    if name in digests:
        return f"{name} ({side}) has changed: the digest of its data is {digests[name]}, and {digest} in the signature"
    label = f"{name} ({side})" if name else side
    return (
        f"no system has the data of {label}, digest {digest}; digests found: "
        f"{format_list([f'{n} ({d})' for n, d in digests.items()], 5)}. Give the file that was compared then"
    )


def _extract_settings(entry: RecordedResult) -> Signature:
    """Return the result's signature without the values in which results of one call may differ."""
    signature = entry.signature
    return replace(
        signature, metric="", options=(), data=replace(signature.data, a="", b=""), version="",
        subset=signature.subset and (signature.subset[0], ""), p="" if entry.values else signature.p,
        members=None, family=None,
    )  # fmt: skip


DEFAULT_TRIALS = {sums.DEFAULT_TRIALS, outputs.DEFAULT_TRIALS, agreement.DEFAULT_TRIALS}
"""Default trials of metrics of sums, and of metrics of whole outputs."""


def _group_matches(matches: Sequence[Match]) -> dict[Signature, list[Match]]:
    """Return the results grouped by settings. Results of one call are in one group if this can be determined.

    Results without random trials (all arrangements were counted) join the group of those that have some.
    """
    settings_of = [_extract_settings(entry) for entry, _ in matches]
    sampled: dict[Signature, set[Signature]] = {}
    for settings in settings_of:
        if settings.n_trials is not None:
            sampled.setdefault(_drop_trials(settings), set()).add(settings)
    groups: dict[Signature, list[Match]] = {}
    for match, settings in zip(matches, settings_of, strict=True):
        others = sampled.get(_drop_trials(settings), set())
        chosen = _choose_settings(settings, others) if match[0].values else settings
        groups.setdefault(chosen, []).append(match)
    return groups


def _drop_trials(settings: Signature) -> Signature:
    return replace(settings, n_trials=None)


def _choose_settings(settings: Signature, sampled: set[Signature]) -> Signature:
    """Return the settings with which a result is computed again, given those of all results with random trials."""
    if len(sampled) == 1:
        return next(iter(sampled))
    has_defaults = {other.n_trials for other in sampled} <= DEFAULT_TRIALS
    return replace(settings, n_trials=None) if settings.adjust or has_defaults else settings


@dataclass(frozen=True, slots=True)
class RepeatedResults:
    """Results that were computed again together, and how they compare with their records."""

    repeated: list[RepeatedResult]
    comparison: FieldComparison
    results: ComparisonResults

    def list_interval_differences(self, recorded: RecordedResults) -> list[str]:
        """Return the differences that other options of intervals might explain."""
        texts = [text for entry in self.repeated for text in entry.differences if "interval" in text]
        recorded_family = recorded.get_family("n_resamples")
        resamples = None if self.results.family is None else self.results.family.n_resamples
        is_same = recorded_family in {None, resamples} or recorded.other_sets
        return texts if is_same else [*texts, f"family.n_resamples: {recorded_family!r}, now {resamples!r}"]


def _rerun_group(
    group: Signature, members: Sequence[Match], recorded: RecordedResults, counts: Counts, compare: Compare
) -> RepeatedResults:
    """Compute the results of one group again, and compare each with its record.

    A file does not state every option of its intervals. Of several possible options, the first that gives no
    differences is used, otherwise the one with the fewest.
    """
    reruns: list[RepeatedResults] = []
    for interval_options in _list_interval_options(recorded):
        results = compare(counts, **_build_options(group, members, recorded, counts), **interval_options)
        reruns.append(_compare_group(members, recorded, results))
        if not reruns[-1].list_interval_differences(recorded):
            break
    return min(reruns, key=lambda rerun: len(rerun.list_interval_differences(recorded)))


def _build_options(
    group: Signature, members: Sequence[Match], recorded: RecordedResults, counts: Counts
) -> dict[str, Any]:
    """Return the options of a call that computes the results of a group, without those of intervals."""
    return {
        "metrics": [*dict.fromkeys(entry.signature.metric for entry, _ in members)],
        "pairs": [*dict.fromkeys(pair for _, pair in members)],
        "unit": [group.unit, *(unit for unit in list_finer_units(recorded) if unit in counts.groups)],
        "by": group.subset and group.subset[0],
        "alternative": group.alternative,
        "method": (method := _choose_method(group, members)),
        "exact_limit": math.inf if method == "exact" or group.p else group.exact_limit,
        "trials": group.n_trials or _find_trials(recorded),
        "seed": group.seed,
        "alpha": _get_number(recorded.document, "alpha", None),
        "adjust": group.adjust if group.adjust and not group.p else "none",
        "margin": _find_margin(recorded),
        "second_run": any(recorded.find_values(key) for key in ("second_run", "second_run_p_value")),
        "beside": any(recorded.find_values("beside")),
        "tests": _list_tests(recorded) or None,
        "together": bool(recorded.document.get("together")) and not recorded.other_sets and group.subset is not None,
    }


def _find_margin(recorded: RecordedResults) -> float | None:
    margins = recorded.find_values("margin") if recorded.is_csv else recorded.find_members("margin", "margin")
    try:
        return next(map(float, margins), None)
    except ValueError:
        raise InputError("must be a number", option="margin", found=repr(margins[0])) from None


def _find_trials(recorded: RecordedResults) -> int | None:
    """Return the random trials of a family, over all subsets or by other units, if the results have none."""
    contrasts = [item for value in recorded.find_values("beside") if isinstance(value, list) for item in value]
    together = recorded.document.get("together")
    contrasts += together if isinstance(together, list) and not recorded.other_sets else []
    numbers = [item.get("n_trials") for item in contrasts if isinstance(item, dict) and item.get("method") != "exact"]
    if not recorded.get_family("exact"):
        numbers.append(recorded.get_family("n_trials"))
    return next((number for number in numbers if type(number) is int and number > 0), None)


def list_finer_units(recorded: RecordedResults) -> list[str]:
    """Return the contrast units of the results that are finer than their own unit, other than items."""
    coarser = {"item", *map(str, recorded.find_members("dependence", "column"))}
    units = dict.fromkeys(map(str, recorded.find_members("beside", "unit")))
    return [unit for unit in units if unit not in coarser]


def _list_tests(recorded: RecordedResults) -> list[str]:
    """Return the names of the classical tests that a file of results has."""
    columns = [key.removesuffix("_statistic") for key in recorded.results[0].values if key.endswith("_statistic")]
    names = columns if recorded.is_csv else map(str, recorded.find_members("tests", "name"))
    return [name for name in dict.fromkeys(names) if name in MATCHED_TESTS | INDEPENDENT_TESTS]


def _get_number(values: Mapping[str, Any], key: str, default: float | None) -> Any:
    """Return a number that the document of a file states, checked as the option of the same name is."""
    value = values.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise InputError("must be a number", option=key, found=repr(value))
    OPTIONS[key].check(key, value)
    return OPTIONS[key].default if value is None else value


def _list_notes(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    notes = document.get("notes")
    return [note for note in notes if isinstance(note, dict) and "kind" in note] if isinstance(notes, list) else []


INTERVAL_KEYS = ("interval", "score_a_interval", "score_b_interval", "paired_d", "interval_simultaneous")
"""Fields that results have if intervals were requested."""


def _list_interval_options(recorded: RecordedResults) -> list[dict[str, Any]]:
    """Return the options of intervals with which a file of results may have been computed, the likeliest first."""
    has_intervals = any(recorded.find_values(key) for key in INTERVAL_KEYS) or _list_reasons(recorded)
    if recorded.is_csv or not has_intervals:
        return [{"interval": "none"}]
    confidences = Counter(recorded.find_members("interval", "confidence"))
    confidence = next((value for value, _ in confidences.most_common(1)), OPTIONS["confidence"].default)
    _get_number({"confidence": confidence}, "confidence", None)
    kinds = _list_interval_kinds(recorded)
    return [
        {"interval": kind, "confidence": confidence, "resamples": n}
        for kind, n in product(kinds, _list_resamples(recorded))
    ]


def _list_reasons(recorded: RecordedResults) -> str:
    """Return the texts of notes on why results have no interval."""
    notes = [note for result in recorded.results for note in _list_notes(result.values)]
    return "\n".join(dict.fromkeys(str(note.get("text")) for note in notes if note["kind"] == "interval"))


def _list_interval_kinds(recorded: RecordedResults) -> list[str]:
    """Return the kinds of intervals that may have been requested, given the methods that were used."""
    methods = set(recorded.find_members("interval", "method"))
    if CONDITIONAL in methods:
        return [CONDITIONAL]
    if methods & {TANGO, NORMAL}:
        return ["auto"]
    if INVERSION in methods:
        return ["auto"] if any(recorded.find_values("score_a_interval")) else ["inversion"]
    reasons = _list_reasons(recorded)
    if NO_MEAN in reasons:
        return ["inversion"]
    if NOT_BINARY in reasons or NO_ITEM_DIFFERS in reasons:
        return [CONDITIONAL]
    return ["bootstrap"] if methods & {BCA, PERCENTILE} else ["auto", "bootstrap", "inversion", CONDITIONAL]


def _list_resamples(recorded: RecordedResults) -> list[int | None]:
    """Return the numbers of resamples that may have been requested; None stands for the default."""
    numbers = [*recorded.find_members("interval", "n_resamples"), recorded.get_family("n_resamples")]
    counted = Counter(number for number in numbers if isinstance(number, int) and not isinstance(number, bool))
    return [None, *(number for number, _ in counted.most_common(2))]


def _choose_method(group: Signature, members: Sequence[Match]) -> str:
    """Return the method for p: the requested one if the record has values, else the one by which p was obtained."""
    if group.p == "":
        return group.method
    [(entry, _)] = members
    if group.p == TRIALS:
        return "randomization"
    return "both" if group.p == EXACT and entry.signature.n_trials else "exact"


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
        Whether the version that recorded the values uses the same sentences as this one.
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
        """Compare the members of two objects; members that one object lacks are not compared."""
        for key in dict.fromkeys((*current, *recorded)):
            name = f"{path}.{key}" if path else key
            if key in ("detail", "text") and not self.has_same_words:
                self.skip(name, OTHER_WORDS)
            elif key in current and key in recorded:
                self.compare(name, recorded[key], current[key])
            else:
                self.skip(name, FILE_LACKS if key in current else "not known to this version of sigdask")

    def skip(self, name: str, reason: str) -> None:
        """Add a field that is not compared."""
        self.not_compared.setdefault(re.sub(r"\[\d+\]", "", name), reason)

    def move_differences(self, names: Sequence[str], reason: str) -> None:
        """Mark fields that differ as not compared."""
        for name in names:
            is_named = [text.startswith((f"{name}:", f"{name}[")) for text in self.differences]
            if any(is_named):
                self.skip(name, reason)
                kept = [text for text, is_of_name in zip(self.differences, is_named, strict=True) if not is_of_name]
                self.differences[:] = kept

    def merge(self, other: FieldComparison) -> None:
        """Add the fields that another comparison skipped."""
        for name, reason in other.not_compared.items():
            self.skip(name, reason)

    def list_reasons(self) -> dict[str, tuple[str, ...]]:
        """Return the fields that are not compared by reason."""
        names: dict[str, tuple[str, ...]] = {}
        for name, reason in self.not_compared.items():
            names[reason] = (*names.get(reason, ()), name)
        return names


FILE_LACKS = "not in the file"
TAKEN_SETTING = "settings, which the new run took from the file"
OTHER_WORDS = "text by another version of sigdask"
VERSIONS = "versions of sigdask"

MAX_CHARACTERS = 200
"""Maximum characters of a value in a message."""


def _shorten(value: Any) -> str:
    """Return a value as messages show it: findings and notes by their kinds, anything else cut if it is long."""
    if isinstance(value, list) and all(isinstance(entry, dict) and "kind" in entry for entry in value):
        return ", ".join(str(entry["kind"]) for entry in value) or "none"
    text = repr(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


def _are_equal(recorded: Any, current: Any) -> bool:
    """Return whether two values are the same: real numbers within the tolerance, NaN and null alike."""
    recorded, current = (
        None if isinstance(value, float) and math.isnan(value) else value for value in (recorded, current)
    )
    if isinstance(recorded, bool) or isinstance(current, bool):
        return recorded is current
    if isinstance(current, float) and isinstance(recorded, int | float):
        return recorded == current or math.isclose(recorded, current, rel_tol=TOLERANCE)
    return bool(recorded == current)


def _compare_group(members: Sequence[Match], recorded: RecordedResults, results: ComparisonResults) -> RepeatedResults:
    """Compare the records of a group with results that were computed again."""
    rows = {(r.metric, r.subset and tuple(r.subset.values()), r.a, r.b): k for k, r in enumerate(results)}
    numbers = [rows[entry.signature.metric, entry.signature.subset, *pair] for entry, pair in members]
    used, order = np.unique(numbers, return_inverse=True)
    if len(results) > len(used):
        results = replace(results, table=results.table.take(used))
    current_rows, found = _list_rows(results.table, recorded), [*results]
    skipped, repeated = FieldComparison(), []
    for (entry, _), number in zip(members, order.tolist(), strict=True):
        row = current_rows[number]
        values = entry.values
        if recorded.is_csv:
            values = {name: _parse_cell(text, row.get(name)) for name, text in values.items()}
        comparison = _compare_result(replace(entry, values=values), found[number], row)
        if recorded.is_csv and _has_unknown_trials(members):
            comparison.move_differences(FAMILY_FIELDS, "CSV and Parquet do not say the number of trials of the family")
        skipped.merge(comparison)
        repeated.append(RepeatedResult(entry, found[number], tuple(comparison.differences)))
    return RepeatedResults(repeated, skipped, results)


def _has_unknown_trials(members: Sequence[Match]) -> bool:
    """Return whether p-values of results without random trials were adjusted by such trials."""
    signatures = [entry.signature for entry, _ in members]
    return all(signature.n_trials is None for signature in signatures) and signatures[0].adjust in SHARED_TRIALS


def _list_rows(table: Table, recorded: RecordedResults) -> list[dict[str, Any]]:
    """Return the rows that a JSON or CSV file would have of a table."""
    if recorded.is_csv:
        return list_csv_rows(table, _list_tests(recorded))
    return list(json.loads(f"[{','.join(iter_json_lines(table))}]"))


def _parse_cell(text: Any, current: Any) -> Any:
    if text is None or text == "":
        return "" if isinstance(current, str) else None
    if not isinstance(text, str):
        return text
    if isinstance(current, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return float(text) if isinstance(current, float) else int(text) if isinstance(current, int) else text
    except ValueError:
        return text


FAMILY_FIELDS = (
    "p_adjusted", "p_adjusted_interval", "p_adjusted_by", "interval_simultaneous", "notes", "warnings",
    "p_adjusted_low", "p_adjusted_high", "p_tukey", "equal_scores", "p_equal_scores_adjusted", "verdict", "checks",
)  # fmt: skip
"""Fields of a result that depend on the other comparisons of its family."""


def _compare_result(entry: RecordedResult, result: Result, current: Mapping[str, Any]) -> FieldComparison:
    """Compare the recorded fields of a result with the current ones."""
    old, new = entry.signature, _parse_signature(result)
    comparison = FieldComparison(has_same_words=old.version == get_version())
    recorded = entry.values
    if not recorded:
        return comparison
    _compare_signatures(old, new, comparison)
    has_other_family = old.adjust is not None and old.family != new.family
    apart = {"test_signature", "signature", "notes", "warnings", *(FAMILY_FIELDS if has_other_family else ())}
    for name, reason in _find_undetermined(recorded).items():
        comparison.skip(name, reason)
        apart.add(name)
    members = [{key: value for key, value in row.items() if key not in apart} for row in (recorded, current)]
    comparison.compare_members("", *members)
    interval = recorded.get("interval")
    if isinstance(interval, dict) and interval.get("method") == INVERSION and interval.get("n_resamples") is None:
        comparison.move_differences(SCORE_INTERVALS, "the file does not say their number of resamples")
    old_scorer, new_scorer = recorded.get("signature"), current["signature"]
    if isinstance(old_scorer, str) and new_scorer:
        old_options, new_options = map(split_scorer_signature, (old_scorer, new_scorer))
        _compare_scorers("signature", old_options, new_options, comparison)
    elif "signature" in recorded:
        comparison.compare("signature", old_scorer or None, new_scorer or None)
    if not has_other_family:
        _compare_notes(recorded, current, comparison)
    return comparison


SCORE_INTERVALS = ("score_a_interval", "score_b_interval")


CSV_UNDETERMINED = dict.fromkeys(
    ("interval_method", "interval_confidence", "interval_low", "interval_high", "score_a_low", "score_a_high",
     "score_b_low", "score_b_high", "paired_d", "interval_simultaneous_low", "interval_simultaneous_high"),
    "CSV and Parquet do not say the number of resamples and the level",
)  # fmt: skip
"""Columns that CSV and Parquet files alone do not determine."""

DOCUMENT_UNDETERMINED = {
    **dict.fromkeys(("plan", "run", "changes", "gate"), "the run of a plan"),
    **dict.fromkeys(("candidates", "independence"), "other analyses of a plan"),
    "grouping": "how rankings are shown",
}
"""Keys of the JSON that the results do not determine, with the reason."""

UNDETERMINED_NOTES = {
    **dict.fromkeys(("scope", "reading", "missing"), "how the files were read and chosen"),
    "second-look": "earlier runs of a plan",
    "unused-option": "options that have no effect",
}
"""Kinds of notes that data, settings and seed do not determine, with the reason."""


def _find_undetermined(recorded: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a recorded row that a run does not determine, with the reasons."""
    reasons = CSV_UNDETERMINED if "interval_method" in recorded else {}
    return {name: reason for name, reason in reasons.items() if name in recorded}


def _compare_signatures(old: Signature, new: Signature, comparison: FieldComparison) -> None:
    """Compare what two signatures say, except for the version of the program if it differs."""
    if old.adjust is not None and old.family != new.family:
        comparison.differences.append(
            f"p_adjusted: the family had {old.members or 0:,} comparisons (digest {old.family}), now it has "
            f"{new.members or 0:,} ({new.family})"
        )
    else:
        comparison.compare("test_signature.m", old.members, new.members)
    for key, attribute in ATTRIBUTES.items():
        if key not in {"v", "m", "family"}:
            comparison.compare(f"test_signature.{key}", *(getattr(signature, attribute) for signature in (old, new)))
    comparison.compare("test_signature.value", old.subset, new.subset)
    if old.version != new.version:
        comparison.skip("test_signature.v", VERSIONS)
    _compare_scorers("test_signature.metric", old.options, new.options, comparison)


SCORER_VERSIONS = ("version", "code")
"""Scorer options that change with the scorer's code."""


def _compare_scorers(
    path: str, old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]], comparison: FieldComparison
) -> None:
    """Compare the options of two scorers, unless they are of different versions."""
    recorded, current = dict(old), dict(new)
    if any(key in recorded and key in current and recorded[key] != current[key] for key in SCORER_VERSIONS):
        comparison.skip(path, "options by another version of the scorer")
    else:
        comparison.compare(path, recorded, current)
        for key in sorted(recorded.keys() ^ current.keys()):
            comparison.compare(f"{path}.{key}", recorded.get(key), current.get(key))


def _drop_texts(notes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return notes without their sentences, in which each front end has its own words for options."""
    return [{name: value for name, value in note.items() if name != "text"} for note in notes]


def _compare_notes(recorded: Mapping[str, Any], current: Mapping[str, Any], comparison: FieldComparison) -> None:
    """Compare notes, and warnings with the texts of the notes beside them."""
    notes, warnings = recorded.get("notes"), recorded.get("warnings")
    if notes is None or not comparison.has_same_words:
        reason = FILE_LACKS if notes is None else OTHER_WORDS
        for name in ("notes", "warnings"):
            if name in current:
                comparison.skip(name, reason)
        return
    listed = _list_notes(recorded)
    if len(listed) != len(notes):
        comparison.compare("notes", notes, current["notes"])
    is_fixed = [
        [note for note in side if note["kind"] not in UNDETERMINED_NOTES] for side in (listed, _list_notes(current))
    ]
    comparison.compare("notes", *map(_drop_texts, is_fixed))
    for kind in dict.fromkeys(note["kind"] for note in listed if note["kind"] in UNDETERMINED_NOTES):
        comparison.skip(f"notes of the kind {kind}", UNDETERMINED_NOTES[kind])
    if "warnings" in recorded:
        comparison.compare("warnings", warnings, [note.get("text") for note in listed])
    else:
        comparison.skip("warnings", FILE_LACKS)


def _compare_document(
    recorded: RecordedResults, reruns: Sequence[ComparisonResults], comparison: FieldComparison
) -> None:
    """Compare the keys of a JSON file other than its results."""
    skipped = _find_skipped_keys(recorded, len(reruns))
    if not comparison.has_same_words:
        skipped["sigdask"] = VERSIONS
    for name in recorded.document:
        if name in skipped:
            comparison.skip(name, skipped[name])
    for name in ("results", "rankings", "families"):
        if recorded.other_sets:
            comparison.skip(f"{name} of other test sets", "--name chooses another")
    document, current = _select_rankings(recorded), reruns[0].around()
    if isinstance(families := document.get("families"), dict):
        current |= _build_families(families, recorded.test_sets[0], current["family"])
    apart = {*skipped, "results", "notes", "warnings"}
    members = [{key: value for key, value in side.items() if key not in apart} for side in (document, current)]
    comparison.compare_members("", *members)
    if "notes" not in skipped:
        _compare_notes(document, current, comparison)
    signatures = [result.signature for result in recorded.results]
    comparison.skip("alpha", TAKEN_SETTING)
    if not document.get("together") and any(signature.subset for signature in signatures):
        comparison.skip("together", f"empty, as it is without {spell('together')}")


def _find_skipped_keys(recorded: RecordedResults, n_groups: int) -> dict[str, str]:
    """Return the keys of a document that are not compared, with the reasons."""
    skipped = dict(DOCUMENT_UNDETERMINED)
    if recorded.other_sets or "plan" in recorded.document:
        skipped |= dict.fromkeys(("notes", "warnings", "together"), "of all test sets of the plan together")
    if n_groups > 1:
        reason = "of results with different settings together"
        skipped |= dict.fromkeys(("notes", "warnings", "family", "families", "rankings", "together"), reason)
    return skipped


def _select_rankings(recorded: RecordedResults) -> dict[str, Any]:
    """Return the document without the rankings of test sets that are not reproduced."""
    document = dict(recorded.document)
    if isinstance(rankings := document.get("rankings"), list):
        document["rankings"] = [
            row for row in rankings if not (isinstance(row, dict) and row.get("test_set") in recorded.other_sets)
        ]
    return document


def _build_families(recorded: Mapping[str, Any], name: str, family: Any) -> dict[str, Any]:
    """Return how the p-values of each test set were adjusted: for one test set as now, for the others as recorded."""
    families = dict(recorded) | {name: family}
    is_same = all(value == family for value in families.values())
    return {"families": families, "family": family if is_same else None}


def _iter_notes(recorded: Sequence[RecordedResult], repeated: Sequence[RepeatedResult]) -> Iterator[str]:
    """Yield notes on changes of the program's version, of scorers, and of the user's own code."""
    for version in dict.fromkeys(entry.signature.version for entry in recorded):
        if version != get_version():
            yield f"found by sigdask {version}; this is sigdask {get_version()}"
    if any(entry.signature.adjust and not entry.values for entry in recorded):
        yield "its adjusted p needs the whole family: reproduce a file of results instead"
    changed: dict[str, None] = {}
    for entry in repeated:
        old, new = entry.recorded.signature, _parse_signature(entry.result)
        if old.options != new.options:
            for key in sorted(dict(old.options).keys() | dict(new.options).keys()):
                recorded_option, current_option = (dict(signature.options).get(key, "none") for signature in (old, new))
                if recorded_option != current_option:
                    changed[f"{old.metric}: {key} was {recorded_option}, is {current_option}"] = None
    yield from changed


def _parse_signature(result: Result) -> Signature:
    assert result.test_signature is not None
    return Signature.parse(result.test_signature)
