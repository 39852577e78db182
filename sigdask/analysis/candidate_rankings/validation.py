"""Validation by repeated samples: whether the precision of accepted candidates varies as the binomial model says.

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
from sigdask.analysis.candidate_rankings.results import iter_csv_lines
from sigdask.analysis.candidate_rankings.spec import RankingSpec
from sigdask.counts.candidates import UNKNOWN, Candidates
from sigdask.errors import InputError
from sigdask.statistics.candidates.repeated_samples import (
    Dispersion,
    IntervalCoverage,
    PrecisionHistogram,
    build_histogram,
    compute_coverage,
    compute_expected_misses,
    compute_widened_interval,
    estimate_dispersion,
)
from sigdask.text import describe_items, iter_json, to_plain

FEWEST_SAMPLES = 3

MODEL = (
    "binomial: in every sample the true ones of N accepted candidates are Bin(N, p), with one p for all samples, that "
    "of all of them together; Clopper-Pearson intervals of each sample are to hold it"
)


@dataclass(frozen=True, slots=True, eq=False)
class AcceptanceSet:
    """Candidates that one measure accepts in each sample.

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
    """An acceptance set, with its dispersion and interval coverage under the model.

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
    """Results of a validation: how well the binomial model describes repeated samples.

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
        """Return the JSON object of the validation."""
        return {
            "kind": "rankings-validation",
            "n_samples": self.n_samples,
            "confidence": self.confidence,
            "validations": [_as_json_dict(validation, self.confidence) for validation in self.found],
            "notes": list(self.notes),
            "models": {"precision": MODEL},
        }

    def json_parts(self) -> Iterator[str]:
        """Yield the JSON text of the validation in parts."""
        return iter_json(self.as_dict())

    def csv_lines(self) -> Iterator[str]:
        """Yield the lines of a CSV table, a row for each acceptance set and sample, after the column names."""
        names = ["measure", "cutoff", "n"]
        rows = [
            [validation.sets.measure, validation.sets.cutoff, validation.sets.n, *row.values()]
            for validation in self.found
            for row in _iter_sample_rows(validation.sets, self.confidence)
        ]
        yield from iter_csv_lines([*names, "sample", "accepted", "true", "precision", "low", "high"], rows)


def _as_json_dict(validation: ValidatedAcceptance, confidence: float) -> dict[str, Any]:
    bars = validation.bars
    return {
        "measure": validation.sets.measure,
        "cutoff": validation.sets.cutoff,
        "n": validation.sets.n,
        "dispersion": to_plain(validation.dispersion),
        "intervals": to_plain(validation.intervals),
        "widened": to_plain(validation.widened),
        "histogram": {
            **to_plain(replace(bars, edges=bars.edges.round(9).tolist(), observed=bars.observed.tolist(),
                            expected=bars.expected.tolist())),
        },
        "samples": list(_iter_sample_rows(validation.sets, confidence)),
    }  # fmt: skip


def _iter_sample_rows(sets: AcceptanceSet, confidence: float) -> Iterator[dict[str, Any]]:
    limits = compute_widened_interval(sets.true, sets.accepted, confidence)
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
    """Test whether precision varies over repeated samples as the binomial model says.

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
    spec = RankingSpec.from_options(n=n, confidence=confidence)
    if bool(cutoffs) == bool(spec.cutoffs):
        raise InputError(
            "validation: give cutoffs (--cutoff MEASURE=SCORE) or numbers of best candidates (--n), one of both"
        )
    if len(samples) < FEWEST_SAMPLES:
        raise InputError(f"validation needs {FEWEST_SAMPLES} repeated samples or more, found {len(samples)}")
    for name, sample in samples.items():
        if (sample.gold == UNKNOWN).any():
            raise InputError(f"sample {name!r}: some candidates are not judged")
    sets = list(_accept_by_cutoff(samples, cutoffs) if cutoffs else _accept_n_best(samples, spec))
    notes = tuple(
        f"{_describe_set(acceptance)}: {describe_items(empty, 'sample')} accept{'s' * (len(empty) == 1)} no "
        "candidate, left out"
        for acceptance in sets
        if (empty := [name for name in samples if name not in {*acceptance.sample}])
    )
    return RepeatedSamples(
        len(samples), confidence, tuple(_validate_set(acceptance, confidence) for acceptance in sets), notes
    )


def _describe_set(sets: AcceptanceSet) -> str:
    return f"{sets.measure} = {sets.cutoff:g}" if sets.cutoff is not None else f"{sets.measure}, n = {sets.n}"


def _accept_by_cutoff(samples: Mapping[str, Candidates], cutoffs: Mapping[str, float]) -> Iterator[AcceptanceSet]:
    for measure, cutoff in cutoffs.items():
        counts = []
        for name, sample in samples.items():
            scores = sample.oriented[_get_measure_index(sample, measure, name)]
            is_in = scores >= (-cutoff if measure in sample.smaller else cutoff)
            counts.append((int(is_in.sum()), int((sample.gold[is_in] == 1).sum())))
        yield _build_set(measure, cutoff, None, list(samples), counts)


def _accept_n_best(samples: Mapping[str, Candidates], spec: RankingSpec) -> Iterator[AcceptanceSet]:
    """Yield an acceptance set for each measure and n: the n best of each sample, with ties in random order."""
    lists = {name: MeasureRankings(sample, spec) for name, sample in samples.items()}
    for measure in next(iter(samples.values())).measures:
        for n in spec.cutoffs:
            counts = []
            for name, rankings in lists.items():
                if n > len(rankings.candidates):
                    raise InputError(f"sample {name!r}: n = {n:,}, it has {len(rankings.candidates):,} candidates")
                counts.append(
                    (n, int(rankings.ranked_lists[_get_measure_index(rankings.candidates, measure, name)].above[n]))
                )
            yield _build_set(measure, None, n, list(samples), counts)


def _get_measure_index(sample: Candidates, measure: str, name: str) -> int:
    if measure not in sample.measures:
        raise InputError(f"sample {name!r}: no measure {measure!r}; measures: {', '.join(sample.measures)}")
    return sample.measures.index(measure)


def _build_set(
    measure: str, cutoff: float | None, n: int | None, names: Sequence[str], counts: Sequence[tuple[int, int]]
) -> AcceptanceSet:
    accepted, true = np.array(counts, np.int64).T
    some_are = accepted > 0
    if some_are.sum() < FEWEST_SAMPLES:
        raise InputError(f"{measure}: the cutoff accepts candidates in {int(some_are.sum())} of {len(names)} samples")
    accepting = tuple(name for name, any_is in zip(names, some_are, strict=True) if any_is)
    return AcceptanceSet(measure, cutoff, n, accepting, accepted[some_are], true[some_are])


def _validate_set(sets: AcceptanceSet, confidence: float) -> ValidatedAcceptance:
    spread = estimate_dispersion(sets.true, sets.accepted)
    if not 0 < spread.precision < 1:
        raise InputError(f"{sets.measure}: all accepted candidates are {'true' if spread.precision else 'false'}")
    expected = compute_expected_misses(sets.accepted, spread.precision, confidence)
    limits = compute_widened_interval(sets.true, sets.accepted, confidence)
    widened_limits = compute_widened_interval(sets.true, sets.accepted, confidence, spread.factor)
    return ValidatedAcceptance(
        sets,
        spread,
        compute_coverage(*limits, spread.precision, confidence, expected=expected),
        compute_coverage(*widened_limits, spread.precision, confidence),
        build_histogram(sets.true, sets.accepted, spread.precision),
    )
