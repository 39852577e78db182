"""Repeated samples of candidates: whether precisions of acceptance sets vary as the binomial model says.

Evert 2004, section 4: a corpus in 80 parts, each ranked and cut off alike; under the model T of N accepted candidates
is Bin(N, p) in every part. Where parts differ (subject, author), precisions vary more, and intervals miss more often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings
from sigdask.analysis.candidate_rankings.results import csv_lines
from sigdask.analysis.candidate_rankings.spec import RankingSpec
from sigdask.counts.candidates import UNKNOWN, Candidates
from sigdask.errors import InputError
from sigdask.statistics.candidates.repeated import (
    Dispersion,
    IntervalCoverage,
    PrecisionHistogram,
    coverage,
    dispersion,
    expected_outside,
    histogram,
    widened_interval,
)
from sigdask.text import json_parts, plain, some

FEWEST_SAMPLES = 3

MODEL = (
    "binomial: in every sample the true ones of N accepted candidates are Bin(N, p), with one p for all samples, that "
    "of all of them together; Clopper-Pearson intervals of each sample are to hold it"
)


@dataclass(frozen=True, slots=True, eq=False)
class AcceptanceSet:
    """What is accepted in each sample by one measure.

    Attributes
    ----------
    measure : str
    cutoff : float or None
        Score from which on candidates are accepted, or down from which where smaller scores are better.
    n : int or None
        Instead of it, how many of the best are.
    sample : tuple of str
        Names of the samples that accept some.
    accepted, true : int64 array, shape (n_samples,)
        Candidates accepted in each, and the true ones of them.
    """

    measure: str
    cutoff: float | None
    n: int | None
    sample: tuple[str, ...]
    accepted: NDArray[np.int64]
    true: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ValidatedAcceptance:
    """One acceptance set held against the model.

    Attributes
    ----------
    sets : AcceptanceSet
    dispersion : Dispersion
        How precisions vary, and how they should.
    intervals : IntervalCoverage
        Of the samples' intervals, beside what the model expects of them.
    widened : IntervalCoverage
        Of intervals widened by the overdispersion that was found in the same samples.
    bars : PrecisionHistogram
        Precisions beside what the model expects.
    """

    sets: AcceptanceSet
    dispersion: Dispersion
    intervals: IntervalCoverage
    widened: IntervalCoverage
    bars: PrecisionHistogram


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedSamples:
    """What repeated samples say of the model.

    Attributes
    ----------
    n_samples : int
        Samples that were given.
    confidence : float
        Of intervals.
    found : tuple of ValidatedAcceptance
        Of each acceptance set.
    notes : tuple of str
        Beside.
    """

    n_samples: int
    confidence: float
    found: tuple[ValidatedAcceptance, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON holds of it."""
        return {
            "kind": "rankings-validation",
            "n_samples": self.n_samples,
            "confidence": self.confidence,
            "validations": [_members(one, self.confidence) for one in self.found],
            "notes": list(self.notes),
            "models": {"precision": MODEL},
        }

    def json_parts(self) -> Iterator[str]:
        """Yield the text of JSON, part after part."""
        return json_parts(self.as_dict())

    def csv_lines(self) -> Iterator[str]:
        """Yield a table of samples, the names of the columns first."""
        names = ["measure", "cutoff", "n"]
        rows = [
            [one.sets.measure, one.sets.cutoff, one.sets.n, *row.values()]
            for one in self.found
            for row in _samples(one.sets, self.confidence)
        ]
        yield from csv_lines([*names, "sample", "accepted", "true", "precision", "low", "high"], rows)


def _members(one: ValidatedAcceptance, confidence: float) -> dict[str, Any]:
    bars = one.bars
    return {
        "measure": one.sets.measure,
        "cutoff": one.sets.cutoff,
        "n": one.sets.n,
        "dispersion": plain(one.dispersion),
        "intervals": plain(one.intervals),
        "widened": plain(one.widened),
        "histogram": {
            **plain(replace(bars, edges=bars.edges.round(9).tolist(), observed=bars.observed.tolist(),
                            expected=bars.expected.tolist())),
        },
        "samples": list(_samples(one.sets, confidence)),
    }  # fmt: skip


def _samples(sets: AcceptanceSet, confidence: float) -> Iterator[dict[str, Any]]:
    limits = widened_interval(sets.true, sets.accepted, confidence)
    columns = (sets.accepted, sets.true, sets.true / sets.accepted, *limits)
    names = ("accepted", "true", "precision", "low", "high")
    for sample, row in zip(sets.sample, zip(*(c.tolist() for c in columns), strict=True), strict=True):
        yield {"sample": sample, **dict(zip(names, row, strict=True))}


def validate(
    samples: Mapping[str, Candidates],
    *,
    cutoffs: Mapping[str, float] | None = None,
    n: Sequence[int] | str | None = None,
    confidence: float = 0.95,
) -> RepeatedSamples:
    """Hold repeated samples against the binomial model.

    Parameters
    ----------
    samples : mapping of str to Candidates
        Name to candidates, ranked alike in every sample.
    cutoffs : mapping of str to float
        Measure to the score from which on its candidates are accepted.
    n : sequence of int or str
        Instead of cutoffs: accept the n best of every measure.
    confidence : float
        Of intervals.

    Returns
    -------
    RepeatedSamples

    Raises
    ------
    InputError
        There are too few samples, or one lacks a measure.

    Examples
    --------
    >>> parts = {f"part {k}": Candidates.of([1, 0, k % 2, 0], {"G2": [9, 8, 7, 1]}) for k in range(4)}
    >>> [found] = validate(parts, cutoffs={"G2": 5.0}).found
    >>> found.sets.accepted.tolist(), found.sets.true.tolist(), found.dispersion.precision
    ([3, 3, 3, 3], [1, 2, 1, 2], 0.5)
    """
    asked = RankingSpec.of(n=n, confidence=confidence)
    if bool(cutoffs) == bool(asked.cutoffs):
        raise InputError(
            "validation: give cutoffs (--cutoff MEASURE=SCORE) or numbers of best candidates (--n), one of both"
        )
    if len(samples) < FEWEST_SAMPLES:
        raise InputError(f"validation needs {FEWEST_SAMPLES} repeated samples or more, found {len(samples)}")
    for name, sample in samples.items():
        if (sample.gold == UNKNOWN).any():
            raise InputError(f"sample {name!r}: some candidates are not judged")
    sets = list(_by_cutoff(samples, cutoffs) if cutoffs else _by_number(samples, asked))
    notes = tuple(
        f"{_called(one)}: {some(empty, 'sample')} accept{'s' * (len(empty) == 1)} no candidate, left out"
        for one in sets
        if (empty := [name for name in samples if name not in {*one.sample}])
    )
    return RepeatedSamples(len(samples), confidence, tuple(_validated(one, confidence) for one in sets), notes)


def _called(sets: AcceptanceSet) -> str:
    return f"{sets.measure} = {sets.cutoff:g}" if sets.cutoff is not None else f"{sets.measure}, n = {sets.n}"


def _by_cutoff(samples: Mapping[str, Candidates], cutoffs: Mapping[str, float]) -> Iterator[AcceptanceSet]:
    for measure, cutoff in cutoffs.items():
        counts = []
        for name, sample in samples.items():
            scores = sample.oriented[_place(sample, measure, name)]
            is_in = scores >= (-cutoff if measure in sample.smaller else cutoff)
            counts.append((int(is_in.sum()), int((sample.gold[is_in] == 1).sum())))
        yield _accepted(measure, cutoff, None, list(samples), counts)


def _by_number(samples: Mapping[str, Candidates], asked: RankingSpec) -> Iterator[AcceptanceSet]:
    """Yield the n best of every measure; ties in the random order of each sample."""
    lists = {name: MeasureRankings(sample, asked) for name, sample in samples.items()}
    for measure in next(iter(samples.values())).measures:
        for n in asked.cutoffs:
            counts = []
            for name, own in lists.items():
                if n > len(own.candidates):
                    raise InputError(f"sample {name!r}: n = {n:,}, it has {len(own.candidates):,} candidates")
                counts.append((n, int(own.ranked[_place(own.candidates, measure, name)].above[n])))
            yield _accepted(measure, None, n, list(samples), counts)


def _place(sample: Candidates, measure: str, name: str) -> int:
    if measure not in sample.measures:
        raise InputError(f"sample {name!r}: no measure {measure!r}; measures: {', '.join(sample.measures)}")
    return sample.measures.index(measure)


def _accepted(
    measure: str, cutoff: float | None, n: int | None, names: Sequence[str], counts: Sequence[tuple[int, int]]
) -> AcceptanceSet:
    accepted, true = np.array(counts, np.int64).T
    some_are = accepted > 0
    if some_are.sum() < FEWEST_SAMPLES:
        raise InputError(f"{measure}: the cutoff accepts candidates in {int(some_are.sum())} of {len(names)} samples")
    kept = tuple(name for name, any_is in zip(names, some_are, strict=True) if any_is)
    return AcceptanceSet(measure, cutoff, n, kept, accepted[some_are], true[some_are])


def _validated(sets: AcceptanceSet, confidence: float) -> ValidatedAcceptance:
    found = dispersion(sets.true, sets.accepted)
    if not 0 < found.precision < 1:
        raise InputError(f"{sets.measure}: all accepted candidates are {'true' if found.precision else 'false'}")
    expected = expected_outside(sets.accepted, found.precision, confidence)
    own = widened_interval(sets.true, sets.accepted, confidence)
    wide = widened_interval(sets.true, sets.accepted, confidence, found.factor)
    return ValidatedAcceptance(
        sets,
        found,
        coverage(*own, found.precision, confidence, expected=expected),
        coverage(*wide, found.precision, confidence),
        histogram(sets.true, sets.accepted, found.precision),
    )
