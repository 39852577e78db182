"""Results found again by their signatures: the data are held against digests first, then counts and p against counts.

What compares is given (`sigdask.compare_all`, on any cluster). The data are looked at by comparing with a single
trial, which counts next to nothing and signs every pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sigdask.analysis.reproduce.reference import INTEGERS, REALS, RecordedResult
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.randomization.stream.shuffles import SCHEME
from sigdask.results.columns.assumptions import kinds_text
from sigdask.results.comparisons import ComparisonResults, made_by
from sigdask.results.record import Result
from sigdask.results.signature import DECISION, EXACT, TRIALS, Signature
from sigdask.statistics.stopping import BesagClifford, ConfidenceSequence
from sigdask.text import listed

Compare = Callable[..., ComparisonResults]

CLOSE = 1e-12
"""By which fraction real numbers may differ that are the same: they were written and read."""

PROBE: dict[str, Any] = {
    "trials": 1, "method": "randomization", "second_run": False, "interval": "none", "adjust": "none", "beside": False,
}  # fmt: skip
"""How data are looked at."""

Place = tuple[str, str, tuple[str, str] | None]
"""Unit, metric and subset."""


@dataclass(frozen=True, slots=True)
class RepeatedResult:
    """A result that was found again.

    Attributes
    ----------
    recorded : RecordedResult
        As it was.
    now : Result
        As it is.
    otherwise : tuple of str
        What is not the same, each with both values.
    """

    recorded: RecordedResult
    now: Result
    otherwise: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReproduceOutcome:
    """What came of it.

    Attributes
    ----------
    found : tuple of RepeatedResult
        ComparisonResults whose data are those of their signatures.
    others : tuple of str
        Of each other result, which data are not the same.
    notes : tuple of str
        What else is to be known.
    """

    found: tuple[RepeatedResult, ...]
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_reproduced(self) -> bool:
        """Whether all data are the same, and all that was recorded."""
        return not self.others and not any(one.otherwise for one in self.found)


def repeat(recorded: Sequence[RecordedResult], counts: Counts, compare: Compare) -> ReproduceOutcome:
    """Find results again.

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
    _check(recorded)
    seen = _CurrentData.of(recorded, counts, compare)
    known, others = [], []
    for one in recorded:
        pair = seen.pair(one.signature)
        if pair is None:
            others.append(f"{one.label}: {seen.why(one)}")
        else:
            known.append((one, pair))
    groups: dict[Signature, list[tuple[RecordedResult, tuple[str, str]]]] = {}
    for own in known:
        groups.setdefault(_settings(own[0]), []).append(own)
    found = [one for group, members in groups.items() for one in _again(group, members, counts, compare)]
    return ReproduceOutcome(tuple(found), tuple(others), tuple(_notes(recorded, found)))


def _check(recorded: Sequence[RecordedResult]) -> None:
    if strange := next((one.signature.scheme for one in recorded if one.signature.scheme != SCHEME), None):
        raise InputError(f"signature: scheme {strange}: this version of sigdask draws by scheme {SCHEME} alone")
    if len(names := dict.fromkeys(one.signature.test_set for one in recorded)) > 1:
        raise InputError(f"results of several test sets: {listed([*names], 9)}; choose one with --name")


@dataclass(frozen=True, slots=True)
class _CurrentData:
    """What the data are now.

    Attributes
    ----------
    pairs : dict of (place, units, a, b) to (str, str)
        Names of the systems, in this order.
    systems : dict of place to dict of str to str
        Digest of each system, by name; of systems without all items, that of one of its pairs.
    units : dict of str to (str, int)
        By what is exchanged: the digest of its ids, and how many units there are.
    """

    pairs: dict[tuple[Place, str, str, str], tuple[str, str]] = field(default_factory=dict)
    systems: dict[Place, dict[str, str]] = field(default_factory=dict)
    units: dict[str, tuple[str, int]] = field(default_factory=dict)

    @staticmethod
    def of(recorded: Sequence[RecordedResult], counts: Counts, compare: Compare) -> _CurrentData:
        """Look at the data under each metric, unit and column that signatures name."""
        seen = _CurrentData()
        wanted: dict[tuple[str, str | None], dict[str, None]] = {}
        for one in recorded:
            own = one.signature
            wanted.setdefault((own.unit, own.subset and own.subset[0]), {})[own.metric] = None
        for (unit, by), metrics in wanted.items():
            for now in compare(counts, metrics=[*metrics], unit=unit, by=by, **PROBE):
                seen.add(now)
        return seen

    def add(self, now: Result) -> None:
        """Take what the signature of a pair says."""
        own = _signature(now)
        place, data = (own.unit, own.metric, own.subset), own.data
        self.pairs[place, data.units, data.a, data.b] = now.a, now.b
        self.pairs[place, data.units, data.b, data.a] = now.b, now.a
        self.systems.setdefault(place, {}).update({now.a: data.a, now.b: data.b})
        self.units[own.unit] = data.units, now.n_units

    def pair(self, own: Signature) -> tuple[str, str] | None:
        """Return the systems of a signature; None where there are none of these data."""
        return self.pairs.get(((own.unit, own.metric, own.subset), own.data.units, own.data.a, own.data.b))

    def why(self, one: RecordedResult) -> str:
        """Say what is not the same."""
        own = one.signature
        units, n_units = self.units[own.unit]
        if units != own.data.units:
            before = one.found.get("n_units")
            than = f" instead of {before:,}" if before is not None and before != n_units else ""
            return f"the ids of the {own.unit}s are others than those of the signature ({n_units:,}{than})"
        now = self.systems.get((own.unit, own.metric, own.subset))
        if now is None:
            return "these files have no such subset"
        sides = (("A", one.a, own.data.a), ("B", one.b, own.data.b))
        changed = [_of_side(*side, now) for side in sides if side[-1] not in now.values()]
        if len(changed) == len(sides):
            changed.append("as both are others, so may be what is right, or how the files are read")
        return "; ".join(changed) or "both systems are there, but not on the same items"


def _of_side(side: str, name: str, digest: str, now: Mapping[str, str]) -> str:
    """Say that no system is the one that a result was of."""
    if name in now:
        return f"{name} ({side}) is not what it was: its data are {now[name]}, in the signature {digest}"
    said = f"{name} ({side})" if name else side
    return f"no system has the data of {said}, {digest}; there are {listed([f'{n} ({d})' for n, d in now.items()], 5)}"


def _settings(one: RecordedResult) -> Signature:
    """Return what results have in common that are found again together."""
    own = one.signature
    return replace(
        own, metric="", options=(), data=replace(own.data, a="", b=""), version="",
        subset=own.subset and (own.subset[0], ""), p="" if one.found else own.p,
        n_trials=None if one.found and own.adjust else own.n_trials,
    )  # fmt: skip


Members = Sequence[tuple[RecordedResult, tuple[str, str]]]


def _again(group: Signature, members: Members, counts: Counts, compare: Compare) -> Iterator[RepeatedResult]:
    """Find results of one group again, and hold them against what they were."""
    trials = {one.signature.n_trials for one, _ in members} - {None}
    alpha = next((one.signature.alpha for one, _ in members if one.signature.alpha is not None), 0.05)
    results = compare(
        counts,
        metrics=[*dict.fromkeys(one.signature.metric for one, _ in members)],
        pairs=[*dict.fromkeys(pair for _, pair in members)],
        unit=group.unit,
        by=group.subset and group.subset[0],
        alternative=group.alternative,
        method=(method := _method(group, members)),
        exact_limit=math.inf if method == "exact" or group.p else group.exact_limit,
        trials=trials.pop() if len(trials) == 1 else None,
        seed=group.seed,
        alpha=alpha,
        adjust=group.adjust if group.adjust and not group.p else "none",
        stop=_rule(group),
        second_run=False,
        interval="none",
        beside=False,
    )
    now = {(r.metric, r.subset and tuple(r.subset.values()), r.a, r.b): r for r in results}
    for one, pair in members:
        result = now[one.signature.metric, one.signature.subset, *pair]
        yield RepeatedResult(one, result, tuple(_otherwise(one, result)))


def _method(group: Signature, members: Members) -> str:
    """Return how p is to be had: as it was asked for where all results are there, else as it was had."""
    if group.p == "":
        return group.method
    [(one, _)] = members
    if group.p in {TRIALS, DECISION}:
        return "randomization"
    return "both" if group.p == EXACT and one.signature.n_trials else "exact"


def _rule(own: Signature) -> BesagClifford | ConfidenceSequence | None:
    if own.stop is None:
        return None
    if own.h is not None:
        return BesagClifford(own.h)
    assert own.epsilon is not None
    assert own.alpha is not None
    return ConfidenceSequence(own.alpha, own.epsilon)


def _otherwise(one: RecordedResult, now: Result) -> Iterator[str]:
    """Say what is not as it was recorded."""
    if not one.found:
        return
    old, new = one.signature, _signature(now)
    if old.adjust is not None and old.family != new.family:
        yield (
            f"p_adjusted: its family of {old.members or 0:,} comparisons is not the one that is found here "
            f"({new.members or 0:,}): {old.family}, now {new.family}"
        )
    for name in (*INTEGERS, *REALS):
        before, after = one.found[name], getattr(now, name)
        if name == "p_adjusted" and old.family != new.family:
            continue
        if not _alike(before, after):
            yield f"{name}: {before!r}, now {after!r}"
    doubts = kinds_text(doubt.kind for doubt in now.assumptions)
    if one.assumptions not in {None, doubts} and old.family == new.family:
        yield f"assumptions: {one.assumptions or 'none'}, now {doubts or 'none'}"


def _alike(before: float | None, after: float | None) -> bool:
    if before is None or after is None or math.isnan(after) or math.isnan(before):
        return (before is None or math.isnan(before)) and (after is None or math.isnan(after))
    return before == after or math.isclose(before, after, rel_tol=CLOSE)


def _notes(recorded: Sequence[RecordedResult], found: Sequence[RepeatedResult]) -> Iterator[str]:
    """Say what else is not as it was: the program, scorers, the user's own code."""
    for version in dict.fromkeys(one.signature.version for one in recorded):
        if version != made_by():
            yield f"found by sigdask {version}; this is sigdask {made_by()}"
    if any(one.signature.adjust and not one.found for one in recorded):
        yield "its adjusted p is of a whole family; a file of results finds that again"
    changed: dict[str, None] = {}
    for one in found:
        old, new = one.recorded.signature, _signature(one.now)
        if old.options != new.options:
            for key in dict(old.options).keys() | dict(new.options).keys():
                before, after = (dict(own.options).get(key, "none") for own in (old, new))
                if before != after:
                    changed[f"{old.metric}: {key} was {before}, is {after}"] = None
    yield from changed


def _signature(now: Result) -> Signature:
    assert now.test_signature is not None
    return Signature.parse(now.test_signature)
