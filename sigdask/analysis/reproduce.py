"""Reproduction of recorded results: find their data by digest, compute them again, and compare the numbers.

Recorded results are read from signatures or from the JSON and CSV files that `compare` and plans write. What compares
is given (`sigdask.compare_all`, on any cluster). The data are looked at by comparing with a single trial, which counts
next to nothing and signs every pair.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.randomization.stream import SCHEME
from sigdask.results.columns import format_kinds
from sigdask.results.comparisons import ComparisonResults, get_version
from sigdask.results.record import Result
from sigdask.results.signature import DECISION, EXACT, TRIALS, Signature
from sigdask.statistics.stopping import BesagClifford, ConfidenceSequence
from sigdask.text import format_list

INTEGERS = ("n_items", "n_units", "n_discordant", "n_trials", "n_extreme")
REALS = ("score_a", "score_b", "difference", "p_value", "p_adjusted")
"""Of a result, what is held against what is found again."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """One result as it was recorded, with its signature.

    Attributes
    ----------
    signature : Signature
        By what it is found again.
    a, b : str
        What its systems were called; empty where a signature is all there is.
    values : mapping of str to number
        What was found, by the names of JSON; None where there is none.
    assumptions : str or None
        Kinds of doubts that the units gave; None where an earlier version wrote none.
    """

    signature: Signature
    a: str = ""
    b: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    assumptions: str | None = None

    @property
    def label(self) -> str:
        """Name of the result in messages: test set, subset, metric and systems."""
        signature = self.signature
        parts = [signature.test_set] if signature.test_set else []
        parts += [f"{signature.subset[0]} {signature.subset[1]}"] if signature.subset else []
        pair = f" of {self.a} and {self.b}" if self.a or self.b else ""
        return f"{', '.join([*parts, signature.metric])}{pair}"


def read(path: Path) -> list[RecordedResult]:
    """Return the recorded results in a JSON or CSV file.

    Raises
    ------
    InputError
        It cannot be read, is neither, or holds results without signatures.
    """
    text = _read_text(path)
    rows = _parse_json(path, text)["results"] if text.lstrip().startswith("{") else _parse_csv(path, text)
    if not rows:
        raise InputError(f"{path}: holds no results")
    return [_build_result(path, number, row) for number, row in enumerate(rows, 1)]


def read_json_results(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file of results, with its list of results as "results"."""
    return _parse_json(path, _read_text(path))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from None


def _parse_json(path: Path, text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: is no JSON ({error.msg})") from None
    rows = document.get("results") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f'{path}: expected the JSON that `sigdask compare --json` writes, with "results"')
    return {**document, "results": rows}


def _parse_csv(path: Path, text: str) -> Sequence[Mapping[str, Any]]:
    rows = [*csv.DictReader(text.splitlines())]
    if rows and "test_signature" not in rows[0]:
        raise InputError(
            f"{path}: has no column test_signature; expected what `sigdask compare --json` or --csv writes"
        )
    return rows


def _build_result(path: Path, number: int, row: Mapping[str, Any]) -> RecordedResult:
    if not row.get("test_signature"):
        raise InputError(f"{path}, result {number}: has no test_signature, which this version of sigdask writes")
    try:
        signature = Signature.parse(row["test_signature"])
        values = {**_parse_numbers(row, INTEGERS, int), **_parse_numbers(row, REALS, float)}
    except (InputError, ValueError, TypeError) as error:
        raise InputError(f"{path}, result {number}: {error}") from None
    return RecordedResult(signature, str(row.get("a", "")), str(row.get("b", "")), values, _get_assumptions(row))


def _get_assumptions(row: Mapping[str, Any]) -> str | None:
    recorded = row.get("assumptions")
    return (
        recorded if recorded is None or isinstance(recorded, str) else format_kinds(doubt["kind"] for doubt in recorded)
    )


def _parse_numbers(row: Mapping[str, Any], names: Iterable[str], kind: type[int | float]) -> dict[str, float | None]:
    return {name: None if row.get(name) in {None, ""} else kind(row[name]) for name in names}


Compare = Callable[..., ComparisonResults]

TOLERANCE = 1e-12
"""By which fraction real numbers may differ that are the same: they were written and read."""

PROBE_OPTIONS: dict[str, Any] = {
    "trials": 1, "method": "randomization", "second_run": False, "interval": "none", "adjust": "none", "beside": False,
}  # fmt: skip
"""How data are looked at."""

MetricKey = tuple[str, str, tuple[str, str] | None]
"""Unit, metric and subset."""


@dataclass(frozen=True, slots=True)
class RepeatedResult:
    """A recorded result and the same result computed again, with the differences.

    Attributes
    ----------
    recorded : RecordedResult
        As it was.
    result : Result
        As it is.
    differences : tuple of str
        What is not the same, each with both values.
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
        ComparisonResults whose data are those of their signatures.
    changed : tuple of str
        Of each other result, which data are not the same.
    notes : tuple of str
        What else is to be known.
    """

    repeated: tuple[RepeatedResult, ...]
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_reproduced(self) -> bool:
        """Whether all data and all recorded values are the same."""
        return not self.changed and not any(entry.differences for entry in self.repeated)


def reproduce_results(recorded: Sequence[RecordedResult], counts: Counts, compare: Compare) -> ReproduceOutcome:
    """Compute recorded results again, and return how they compare with the record.

    Parameters
    ----------
    recorded : sequence of RecordedResult
        Of one test set, that of `counts`.
    counts : Counts
        The systems, as they are read now.
    compare : callable
        `sigdask.compare_all`, or what takes and returns the same.

    Raises
    ------
    InputError
        A signature is of another layout of the stream, or what it asks for cannot be had from these data.
    """
    _check_recorded(recorded)
    current = _CurrentData.from_counts(recorded, counts, compare)
    matched, changed = [], []
    for entry in recorded:
        pair = current.find_pair(entry.signature)
        if pair is None:
            changed.append(f"{entry.label}: {current.describe_change(entry)}")
        else:
            matched.append((entry, pair))
    groups: dict[Signature, list[tuple[RecordedResult, tuple[str, str]]]] = {}
    for member in matched:
        groups.setdefault(_extract_settings(member[0]), []).append(member)
    repeated = [entry for group, members in groups.items() for entry in _rerun_group(group, members, counts, compare)]
    return ReproduceOutcome(tuple(repeated), tuple(changed), tuple(_iter_notes(recorded, repeated)))


def _check_recorded(recorded: Sequence[RecordedResult]) -> None:
    if scheme := next((entry.signature.scheme for entry in recorded if entry.signature.scheme != SCHEME), None):
        raise InputError(f"signature: scheme {scheme}: this version of sigdask draws by scheme {SCHEME} alone")
    if len(names := dict.fromkeys(entry.signature.test_set for entry in recorded)) > 1:
        raise InputError(f"results of several test sets: {format_list([*names], 9)}; choose one with --name")


@dataclass(frozen=True, slots=True)
class _CurrentData:
    """Digests of the current data, by which the systems of recorded results are found.

    Attributes
    ----------
    pairs : dict of (place, units, a, b) to (str, str)
        Names of the systems, in this order.
    systems : dict of place to dict of str to str
        Digest of each system, by name; of systems without all items, that of one of its pairs.
    units : dict of str to (str, int)
        By what is exchanged: the digest of its ids, and how many units there are.
    """

    pairs: dict[tuple[MetricKey, str, str, str], tuple[str, str]] = field(default_factory=dict)
    systems: dict[MetricKey, dict[str, str]] = field(default_factory=dict)
    units: dict[str, tuple[str, int]] = field(default_factory=dict)

    @staticmethod
    def from_counts(recorded: Sequence[RecordedResult], counts: Counts, compare: Compare) -> _CurrentData:
        """Return the digests of the data under each metric, unit and column that the recorded signatures name."""
        current = _CurrentData()
        metrics_of: dict[tuple[str, str | None], dict[str, None]] = {}
        for entry in recorded:
            signature = entry.signature
            metrics_of.setdefault((signature.unit, signature.subset and signature.subset[0]), {})[signature.metric] = (
                None
            )
        for (unit, by), metrics in metrics_of.items():
            for result in compare(counts, metrics=[*metrics], unit=unit, by=by, **PROBE_OPTIONS):
                current.add(result)
        return current

    def add(self, result: Result) -> None:
        """Add the digests in the signature of one result."""
        signature = _parse_signature(result)
        key, data = (signature.unit, signature.metric, signature.subset), signature.data
        self.pairs[key, data.units, data.a, data.b] = result.a, result.b
        self.pairs[key, data.units, data.b, data.a] = result.b, result.a
        self.systems.setdefault(key, {}).update({result.a: data.a, result.b: data.b})
        self.units[signature.unit] = data.units, result.n_units

    def find_pair(self, signature: Signature) -> tuple[str, str] | None:
        """Return the names of the two systems of a signature, or None if the current data do not have them."""
        return self.pairs.get(
            (
                (signature.unit, signature.metric, signature.subset),
                signature.data.units,
                signature.data.a,
                signature.data.b,
            )
        )

    def describe_change(self, entry: RecordedResult) -> str:
        """Return a message on how the current data differ from those of a recorded result."""
        signature = entry.signature
        units, n_units = self.units[signature.unit]
        if units != signature.data.units:
            recorded_units = entry.values.get("n_units")
            comparison = (
                f" instead of {recorded_units:,}" if recorded_units is not None and recorded_units != n_units else ""
            )
            return f"the ids of the {signature.unit}s are others than those of the signature ({n_units:,}{comparison})"
        digests = self.systems.get((signature.unit, signature.metric, signature.subset))
        if digests is None:
            return "these files have no such subset"
        sides = (("A", entry.a, signature.data.a), ("B", entry.b, signature.data.b))
        changed = [_describe_side(*side, digests) for side in sides if side[-1] not in digests.values()]
        if len(changed) == len(sides):
            changed.append("as both are others, so may be what is right, or how the files are read")
        return "; ".join(changed) or "both systems are there, but not on the same items"


def _describe_side(side: str, name: str, digest: str, digests: Mapping[str, str]) -> str:
    """Return a message that no current system has the recorded digest of system A or B."""
    if name in digests:
        return f"{name} ({side}) is not what it was: its data are {digests[name]}, in the signature {digest}"
    label = f"{name} ({side})" if name else side
    return (
        f"no system has the data of {label}, {digest}; there are "
        f"{format_list([f'{n} ({d})' for n, d in digests.items()], 5)}"
    )


def _extract_settings(entry: RecordedResult) -> Signature:
    """Return the result's signature without all that may differ among results that are computed again together."""
    signature = entry.signature
    return replace(
        signature, metric="", options=(), data=replace(signature.data, a="", b=""), version="",
        subset=signature.subset and (signature.subset[0], ""), p="" if entry.values else signature.p,
        n_trials=None if entry.values and signature.adjust else signature.n_trials,
    )  # fmt: skip


GroupMembers = Sequence[tuple[RecordedResult, tuple[str, str]]]


def _rerun_group(group: Signature, members: GroupMembers, counts: Counts, compare: Compare) -> Iterator[RepeatedResult]:
    """Compute the results of one group again, and compare each with its record."""
    trials = {entry.signature.n_trials for entry, _ in members} - {None}
    alpha = next((entry.signature.alpha for entry, _ in members if entry.signature.alpha is not None), 0.05)
    results = compare(
        counts,
        metrics=[*dict.fromkeys(entry.signature.metric for entry, _ in members)],
        pairs=[*dict.fromkeys(pair for _, pair in members)],
        unit=group.unit,
        by=group.subset and group.subset[0],
        alternative=group.alternative,
        method=(method := _choose_method(group, members)),
        exact_limit=math.inf if method == "exact" or group.p else group.exact_limit,
        trials=trials.pop() if len(trials) == 1 else None,
        seed=group.seed,
        alpha=alpha,
        adjust=group.adjust if group.adjust and not group.p else "none",
        stop=_build_rule(group),
        second_run=False,
        interval="none",
        beside=False,
    )
    results_of = {(r.metric, r.subset and tuple(r.subset.values()), r.a, r.b): r for r in results}
    for entry, pair in members:
        result = results_of[entry.signature.metric, entry.signature.subset, *pair]
        yield RepeatedResult(entry, result, tuple(_iter_differences(entry, result)))


def _choose_method(group: Signature, members: GroupMembers) -> str:
    """Return the method for p: the requested one if the record has values, else the one by which p was obtained."""
    if group.p == "":
        return group.method
    [(entry, _)] = members
    if group.p in {TRIALS, DECISION}:
        return "randomization"
    return "both" if group.p == EXACT and entry.signature.n_trials else "exact"


def _build_rule(signature: Signature) -> BesagClifford | ConfidenceSequence | None:
    if signature.stop is None:
        return None
    if signature.h is not None:
        return BesagClifford(signature.h)
    assert signature.epsilon is not None
    assert signature.alpha is not None
    return ConfidenceSequence(signature.alpha, signature.epsilon)


def _iter_differences(entry: RecordedResult, result: Result) -> Iterator[str]:
    """Yield a description of each value in which the new result differs from the record."""
    if not entry.values:
        return
    old, new = entry.signature, _parse_signature(result)
    if old.adjust is not None and old.family != new.family:
        yield (
            f"p_adjusted: its family of {old.members or 0:,} comparisons is not the one that is found here "
            f"({new.members or 0:,}): {old.family}, now {new.family}"
        )
    for name in (*INTEGERS, *REALS):
        recorded, current = entry.values[name], getattr(result, name)
        if name == "p_adjusted" and old.family != new.family:
            continue
        if not _are_equal(recorded, current):
            yield f"{name}: {recorded!r}, now {current!r}"
    doubts = format_kinds(doubt.kind for doubt in result.assumptions)
    if entry.assumptions not in {None, doubts} and old.family == new.family:
        yield f"assumptions: {entry.assumptions or 'none'}, now {doubts or 'none'}"


def _are_equal(before: float | None, after: float | None) -> bool:
    if before is None or after is None or math.isnan(after) or math.isnan(before):
        return (before is None or math.isnan(before)) and (after is None or math.isnan(after))
    return before == after or math.isclose(before, after, rel_tol=TOLERANCE)


def _iter_notes(recorded: Sequence[RecordedResult], repeated: Sequence[RepeatedResult]) -> Iterator[str]:
    """Yield notes on changes of the program's version, of scorers, and of the user's own code."""
    for version in dict.fromkeys(entry.signature.version for entry in recorded):
        if version != get_version():
            yield f"found by sigdask {version}; this is sigdask {get_version()}"
    if any(entry.signature.adjust and not entry.values for entry in recorded):
        yield "its adjusted p is of a whole family; a file of results finds that again"
    changed: dict[str, None] = {}
    for entry in repeated:
        old, new = entry.recorded.signature, _parse_signature(entry.result)
        if old.options != new.options:
            for key in dict(old.options).keys() | dict(new.options).keys():
                recorded_option, current_option = (dict(signature.options).get(key, "none") for signature in (old, new))
                if recorded_option != current_option:
                    changed[f"{old.metric}: {key} was {recorded_option}, is {current_option}"] = None
    yield from changed


def _parse_signature(result: Result) -> Signature:
    assert result.test_signature is not None
    return Signature.parse(result.test_signature)
