"""Reproduction of recorded results: find their data by digest, compute them again, and compare every field.

Recorded results are read from signatures, or from the JSON that `compare` and plans write, which names the options of
the call. The function that compares is an argument (`sigdask.compare_all`, on any cluster). To find the data, it is
first called with a single trial, which costs little and gives the signature of every pair.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import open_bytes, read_head
from sigdask.formats.reading.json_records import load_json
from sigdask.randomization.stream import SCHEME
from sigdask.results.columns import find_fault
from sigdask.results.comparisons import ComparisonResults, get_version
from sigdask.results.fields import iter_json_lines
from sigdask.results.record import Result
from sigdask.results.signature import EXACT, TRIALS, Signature
from sigdask.text import format_list


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """One result as it was recorded, with its signature.

    Attributes
    ----------
    signature : Signature
        The signature that identifies it.
    values : mapping of str to value
        The recorded row; empty if there is only a signature.
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
        Keys of the JSON other than the results. Empty for signatures.
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

    @property
    def options(self) -> Mapping[str, Any]:
        """The options with which the results of one test set were computed.

        Raises
        ------
        InputError
            The file does not name them.
        """
        if not self.document:
            return _infer_options(self.results[0].signature)
        by_set = self.document.get("options_by_set", {})
        options = by_set.get(self.test_sets[0]) or self.document["options"]
        if options is None:
            raise InputError("the results do not name their options", remedy="compute them again and write the JSON")
        return dict(options)


def _infer_options(signature: Signature) -> Mapping[str, Any]:
    """Return the options that give the p of a signature and nothing else."""
    method = "randomization" if signature.p == TRIALS else "exact"
    return {
        "alternative": signature.alternative, "seed": signature.seed, "trials": signature.n_trials,
        "method": "both" if signature.p == EXACT and signature.n_trials else method, "exact_limit": math.inf,
        "unit": signature.unit, "by": signature.subset and signature.subset[0],
        "adjust": "none", "interval": "none", "second_run": False, "together": False,
    }  # fmt: skip


def read(path: Path) -> RecordedResults:
    """Return the recorded results in a JSON file.

    Raises
    ------
    InputError
        The file cannot be read, holds no results of comparisons, or contradicts the signatures in it.
    """
    return check_results(path, load_document(path))


def load_document(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file of results."""
    with open_bytes(path):
        pass  # a missing file is not a question of formats
    if not read_head(path).is_json:
        raise InputError(
            file=path, expected="the JSON of results", remedy="write it with --json FILE, or with -o FILE.json"
        )
    return document if isinstance(document := load_json(path), dict) else {}


def check_results(path: Path, document: Mapping[str, Any]) -> RecordedResults:
    """Return the results in the JSON of a file; raise if they are not of comparisons, or were altered."""
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
    if not document["results"]:
        raise InputError("holds no results", file=path, remedy="give a file that `sigdask compare` wrote")
    results: dict[tuple[Any, ...], RecordedResult] = {}
    for number, row in enumerate(document["results"], 1):
        try:
            result = RecordedResult(Signature.parse(row["test_signature"] or ""), row)
            _check_signature(result, document)
        except InputError as error:
            raise InputError(f"{path}, result {number}: {error}") from None
        if results.setdefault((row["test_signature"], *result.names), result) is not result:
            raise InputError(f"{path}, result {number}: occurs twice", remedy="remove one of them")
    others = {key: value for key, value in document.items() if key != "results"}
    return RecordedResults(tuple(results.values()), others)


def find_other_command(document: Mapping[str, Any]) -> str | None:
    """Return the command that wrote results of another kind; None for those of comparisons."""
    return str(document.get("kind", "")).partition("-")[0] or None


def _check_signature(result: RecordedResult, document: Mapping[str, Any]) -> None:
    """Raise if a result contradicts its signature, as after an edit by hand."""
    signature, row = result.signature, result.values
    keys, subset = ("test_set", "metric", "alternative", "unit"), row["subset"] and tuple(row["subset"].values())
    stated: dict[str, Any] = {"seed": document["seed"], "subset": subset} | {key: row[key] for key in keys}
    signed = {key: getattr(signature, key) for key in stated}
    if signature.p == TRIALS:
        stated |= {"n_trials": row["n_trials"], "p_value": row["p_value"]}
        signed |= {"n_trials": signature.n_trials, "p_value": (row["n_extreme"] + 1) / (row["n_trials"] + 1)}
    elif row["exact"] is not None:
        stated["p_value"], signed["p_value"] = row["p_value"], row["exact"]["p_hi"]
    if row["n_trials"] and len({*row["p_interval"]}) == 1:  # all arrangements were counted
        stated["n_extreme"], signed["n_extreme"] = row["n_extreme"], round(row["p_value"] * row["n_trials"])
    scores, difference = [row[f"score_{name}"] or 0 for name in "ab"], row["difference"]
    if difference is not None and abs(scores[0] - scores[1] - difference) > ROUNDING * max(map(abs, scores)):
        stated["difference"], signed["difference"] = difference, scores[0] - scores[1]
    for key, value in stated.items():
        if not _are_equal(value, signed[key]):
            raise InputError(
                f"{key} is {value!r}, but {signed[key]!r} by its signature, counts and scores; the file was altered "
                "after sigdask wrote it: use the original, or compute it again"
            )


Compare = Callable[..., ComparisonResults]

ROUNDING = 1e-9
"""Error of a difference of two scores, relative to the larger one, that rounding explains."""

TOLERANCE = 1e-12
"""Relative difference by which real numbers may differ between machines. Everything else must be equal."""

PROBE_OPTIONS: dict[str, Any] = {
    "trials": 1, "method": "randomization", "second_run": False, "interval": "none", "adjust": "none",
}  # fmt: skip
"""Options of the call that only finds the data."""

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
    not_compared : mapping of str to list of str
        Fields of the file that are not compared, by the reason.
    notes : tuple of str
        Further remarks.
    """

    repeated: tuple[RepeatedResult, ...]
    changed: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    not_compared: Mapping[str, Sequence[str]] = field(default_factory=dict)
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
        A signature is of another layout of the stream, or the recorded options are unknown or do not fit these data.
    """
    signatures = [entry.signature for entry in recorded.results]
    if (scheme := next((s.scheme for s in signatures if s.scheme != SCHEME), None)) is not None:
        raise InputError(
            f"signature: scheme {scheme}: this version of sigdask has only scheme {SCHEME} of random swaps",
            remedy="use the version that wrote it",
        )
    options = recorded.options
    matches, changed = _find_pairs(recorded.results, counts, compare)
    comparison = FieldComparison(is_same_version={signature.version for signature in signatures} == {get_version()})
    repeated: list[RepeatedResult] = []
    differences: tuple[str, ...] = ()
    if matches:
        limits = {signature.exact_limit for signature in signatures}
        results = compare(counts, **{
            **options,
            "metrics": [*dict.fromkeys(signature.metric for signature in signatures)],
            "pairs": [*dict.fromkeys(pair for _, pair in matches)],
            "exact_limit": math.inf if math.inf in limits else options["exact_limit"],  # infinity is null in JSON
            "together": options["together"] and not recorded.other_sets,
        })  # fmt: skip
        repeated = _compare_results(matches, results, comparison)
        if recorded.document and not changed:
            differences = tuple(_compare_document(recorded, results, comparison))
    notes = dict.fromkeys(_iter_notes(recorded.results, repeated))
    return ReproduceOutcome(tuple(repeated), tuple(changed), differences, comparison.not_compared, tuple(notes))


def _find_pairs(recorded: Sequence[RecordedResult], counts: Counts, compare: Compare) -> tuple[list[Match], list[str]]:
    """Return the results whose data the current files have, and messages on how the others have changed.

    Systems are found by the digests of their data. Those with equal data are distinguished by their recorded names.
    """
    metrics_of: dict[tuple[str, str | None], dict[str, None]] = {}
    for entry in recorded:
        metrics_of.setdefault((entry.signature.unit, entry.signature.by), {})[entry.signature.metric] = None
    pairs: dict[Any, list[tuple[str, str]]] = {}
    systems: dict[Any, dict[str, str]] = {}
    for (unit, by), metrics in metrics_of.items():
        for result in compare(counts, metrics=[*metrics], unit=unit, by=by, **PROBE_OPTIONS):
            signature = Signature.parse(result.test_signature or "")
            key, data = _get_key(signature), signature.data
            pairs.setdefault((key, data.a, data.b), []).append((result.a, result.b))
            pairs.setdefault((key, data.b, data.a), []).append((result.b, result.a))
            systems.setdefault(key, {}).update({result.a: data.a, result.b: data.b})
    matches, changed = [], []
    for entry in recorded:
        key, data = _get_key(entry.signature), entry.signature.data
        if found := pairs.get((key, data.a, data.b)):
            matches.append((entry, entry.names if entry.names in found else found[0]))
        else:
            changed.append(f"{entry.label}: {_describe_change(entry, systems.get(key))}")
    return matches, changed


def _get_key(signature: Signature) -> tuple[Any, ...]:
    """Return what tells on which units, under which metric and on which subset systems are compared."""
    return signature.unit, signature.data.units, signature.metric, signature.subset


def _describe_change(entry: RecordedResult, digests: Mapping[str, str] | None) -> str:
    """Return a message on how the current data, with these digests by system, differ from a recorded result."""
    signature = entry.signature
    if digests is None:
        subset = " of this subset" if signature.subset else ""
        return f"the ids of the {signature.unit}s{subset} differ from those of the signature"
    sides = zip("AB", entry.names, (signature.data.a, signature.data.b), strict=True)
    absent = [
        f"no system has the data of {name or side} (digest {digest})"
        for side, name, digest in sides
        if digest not in digests.values()
    ]
    found = format_list([f"{name} ({digest})" for name, digest in digests.items()], 5)
    return f"{'; '.join(absent)}; digests found: {found}" if absent else "both systems exist, but on other items"


OTHER_VERSION = "another version of sigdask wrote them"
OTHER_SCORER = "options by another version of the scorer"

TEXTS = frozenset({"detail", "text", "notes", "warnings", "sigdask", "version"})
"""Fields in which versions of sigdask differ although the results are the same."""

MAX_CHARACTERS = 200
"""Maximum characters of a value in a message."""


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """A comparison of recorded values with current ones, field by field.

    Attributes
    ----------
    is_same_version : bool
        Whether this version recorded the values, with the same fields and sentences.
    not_compared : dict of str to list of str
        Fields that are not compared, by the reason.
    """

    is_same_version: bool
    not_compared: dict[str, list[str]] = field(default_factory=dict)

    def iter_differences(self, recorded: Any, current: Any, path: str = "") -> Iterator[str]:
        """Yield the fields of a value in which it differs from the current one, each with both values."""
        if isinstance(recorded, dict) and isinstance(current, dict):
            for key in dict.fromkeys((*current, *recorded)):
                name = f"{path}.{key}" if path else key
                if self.is_same_version or (key in recorded and key in current and key not in TEXTS):
                    yield from self.iter_differences(recorded.get(key), current.get(key), name)
                else:
                    self.skip(name, OTHER_VERSION)
        elif isinstance(recorded, list) and isinstance(current, list) and len(recorded) == len(current):
            for k, values in enumerate(zip(recorded, current, strict=True)):
                yield from self.iter_differences(*values, f"{path}[{k}]")
        elif not _are_equal(recorded, current):
            yield f"{path}: {_shorten(recorded)}, now {_shorten(current)}"

    def skip(self, name: str, reason: str) -> None:
        """Add a field that is not compared."""
        names, name = self.not_compared.setdefault(reason, []), re.sub(r"\[\d+\]", "", name)
        names += [name] * (name not in names)


def _shorten(value: Any) -> str:
    """Return a value as messages show it, cut if it is long."""
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
    lines = json.loads(f"[{','.join(iter_json_lines(results.table.take(np.array(numbers))))}]")
    return [
        RepeatedResult(entry, results[k], tuple(_compare_result(entry, row, comparison)) if entry.values else ())
        for (entry, _), k, row in zip(matches, numbers, lines, strict=True)
    ]


def _compare_result(entry: RecordedResult, current: dict[str, Any], comparison: FieldComparison) -> Iterator[str]:
    """Yield the recorded fields of a result that differ from the current ones."""
    before, now = _align_notes(entry.values, current, comparison)
    scorers = [dict(Signature.parse(row["test_signature"]).options) for row in (before, now)]
    if not comparison.is_same_version:
        comparison.skip("test_signature.version", OTHER_VERSION)
        for row in (before, now):
            row["test_signature"] = row["test_signature"].rpartition("|v:")[0]
    if any(scorers[0].get(key) != scorers[1].get(key) for key in ("version", "code")):
        for name in ("signature", "test_signature"):
            comparison.skip(name, OTHER_SCORER)
            before[name] = now[name] = None
    yield from comparison.iter_differences(before, now)


UNDETERMINED_NOTES = {
    **dict.fromkeys(("scope", "reading", "missing"), "how the files were read and chosen"),
    "second-look": "earlier runs of a plan",
}
"""Kinds of notes that data, settings and seed do not determine, with the reason."""


def _align_notes(
    recorded: Mapping[str, Any], current: Mapping[str, Any], comparison: FieldComparison
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return recorded and current values with notes without texts, in which each front end has its own words.

    Warnings are compared with the recorded texts of notes.
    """
    listed = recorded["notes"]
    for kind in (note["kind"] for note in listed if note["kind"] in UNDETERMINED_NOTES):
        comparison.skip(f"notes of the kind {kind}", UNDETERMINED_NOTES[kind])
    before, now = (
        [{**note, "text": ""} for note in notes if note["kind"] not in UNDETERMINED_NOTES]
        for notes in (listed, current["notes"])
    )
    return {**recorded, "notes": before}, {**current, "notes": now, "warnings": [note["text"] for note in listed]}


DOCUMENT_UNDETERMINED = dict.fromkeys(("plan", "run", "changes", "gate"), "the run of a plan")
"""Keys of the JSON that the results do not determine, with the reason."""

OF_ALL_SETS = "of all test sets of the plan together"


def _compare_document(
    recorded: RecordedResults, results: ComparisonResults, comparison: FieldComparison
) -> Iterator[str]:
    """Yield the keys of a JSON file, other than its results, that differ from the current ones."""
    skipped = dict(DOCUMENT_UNDETERMINED)
    document, current = _align_notes(recorded.document, results.around(), comparison)
    del current["results"]
    if recorded.other_sets or "plan" in document:
        skipped |= dict.fromkeys(("notes", "warnings", "together"), OF_ALL_SETS)
    for name in ("results", "rankings", "families", "options_by_set") if recorded.other_sets else ():
        comparison.skip(f"{name} of other test sets", "--name chooses another")
    document["rankings"] = [row for row in document["rankings"] if row["test_set"] not in recorded.other_sets]
    if recorded.other_sets:
        current["options"]["together"] = recorded.options["together"]  # of all test sets together
    for name, by_set in (("family", "families"), ("options", "options_by_set")):
        if by_set in document:
            comparison.skip(name, OF_ALL_SETS)
            document[name] = document.pop(by_set).get(recorded.test_sets[0])
    for name in skipped.keys() & document.keys():
        comparison.skip(name, skipped[name])
    before, now = ({key: side[key] for key in side if key not in skipped} for side in (document, current))
    yield from comparison.iter_differences(before, now)


def _iter_notes(recorded: Sequence[RecordedResult], repeated: Sequence[RepeatedResult]) -> Iterator[str]:
    """Yield notes on changes of the program's version, of scorers, and of the user's own code."""
    for entry in recorded:
        if entry.signature.version != get_version():
            yield f"found by sigdask {entry.signature.version}; this is sigdask {get_version()}"
    if any(entry.signature.adjust and not entry.values for entry in recorded):
        yield "its adjusted p needs the whole family: reproduce a file of results instead"
    for again in repeated:
        old = dict(again.recorded.signature.options)
        new = dict(Signature.parse(again.result.test_signature or "").options)
        changed = [key for key in old | new if old.get(key) != new.get(key)]
        yield from (f"{again.result.metric}: {k} was {old.get(k, 'none')}, is {new.get(k, 'none')}" for k in changed)
