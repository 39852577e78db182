"""Evaluation of candidate rankings: ranked lists, tests of their differences, and validation by repeated samples.

Repeated samples show whether the precision of accepted candidates varies as the binomial model says. Evert 2004,
section 4: a corpus in 80 parts, each ranked and cut off alike; under the model T of N accepted candidates is Bin(N, p)
in every part. Where parts differ (subject, author), precisions vary more, and intervals miss more often.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.candidate_rankings.jobs import (
    SwappedRanks,
    TiedOrders,
    count_true_in_n_best,
    resolve_ties,
)
from sigdask.analysis.candidate_rankings.spec import (
    AverageDifference,
    Difference,
    Measure,
    Precision,
    RankingEvaluation,
    SampledPrecision,
    convert_cutoffs,
    list_default_cutoffs,
)
from sigdask.analysis.comparison.pairs import list_named_pairs
from sigdask.counts import UNKNOWN, Candidates
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.options import RankingOptions, check_options, fill_options
from sigdask.randomization.slabs import Job
from sigdask.randomization.stream import Key, compute_stream_key, draw_sample_ranks
from sigdask.randomization.tallies import FAMILY_TAILS, Tally
from sigdask.results.export import format_csv_rows
from sigdask.statistics.bounds import compute_bound
from sigdask.statistics.candidates import (
    Dispersion,
    IntervalCoverage,
    PrecisionHistogram,
    RankedList,
    average_precision,
    build_histogram,
    compute_coverage,
    compute_expected_misses,
    compute_list_limits,
    compute_outward_interval,
    compute_widened_interval,
    count_difference_sets,
    count_n_best,
    estimate_dispersion,
    fisher_exact,
)
from sigdask.statistics.multiplicity import enforce_step_down
from sigdask.text import describe_items, iter_json, to_plain

TWO_SIDED = FAMILY_TAILS.index("two-sided")

TIE_RUN = 1
"""Run of the sampling stream whose first trial orders tied candidates."""

MEAN_OF_ORDERS = (
    "precision, recall and average precision are means over all orders of tied candidates; each test takes the order "
    "with the smallest difference"
)
RANDOM_ORDER = "tied candidates stand in one random order, the same for all measures (seed {seed})"


@dataclass(frozen=True, eq=False)
class MeasureRankings:
    """The rankings of candidates by each measure, with the jobs of an evaluation and its results.

    Attributes
    ----------
    candidates : Candidates
    options : RankingOptions
        All options, with defaults for those that are not given.
    """

    candidates: Candidates
    options: RankingOptions

    @cached_property
    def key(self) -> Key:
        """The key of the random stream."""
        return compute_stream_key(self.options["seed"], self.candidates.name, self.candidates.named.units)

    @cached_property
    def gold(self) -> NDArray[np.int8]:
        """Whether each candidate is true, false or unknown, in the canonical order of the random stream."""
        return self.candidates.gold[self.candidates.named.place]

    @cached_property
    def ranked_lists(self) -> tuple[RankedList, ...]:
        """The ranked list of each measure; tied candidates stand in a random order, the same for all measures."""
        positions = self.candidates.named.place
        order = draw_sample_ranks(self.key, run=TIE_RUN, first=0, n_trials=1, n_units=len(self.gold))[0].astype(
            np.int64
        )
        return tuple(
            RankedList.from_scores(scores[positions], self.gold == 1, order) for scores in self.candidates.oriented
        )

    @cached_property
    def cutoffs(self) -> Integers:
        """The numbers n of best candidates that are evaluated."""
        n_candidates = len(self.gold)
        cutoffs = convert_cutoffs(self.options["n"]) or list_default_cutoffs(n_candidates)
        if cutoffs[-1] > n_candidates:
            beyond = next(n for n in cutoffs if n > n_candidates)
            raise InputError(
                f"n = {beyond:,} is more than the {n_candidates:,} candidates of the list", remedy="choose a smaller n"
            )
        return np.array(cutoffs, np.int64)

    @cached_property
    def pairs(self) -> Integers:
        """Indices of the measures that are compared, shape (n_pairs, 2)."""
        return list_named_pairs(
            self.candidates.measures, self.options["pairs"], self.options["baseline"], noun="measure"
        )

    @cached_property
    def judged_lists(self) -> tuple[NDArray[np.int32], Integers, NDArray[np.uint8]]:
        """Judged candidates only: their order by each measure, their number in each n best, and which are true."""
        is_judged = self.gold != UNKNOWN
        judged_index = np.cumsum(is_judged) - 1
        orders, sizes = [], []
        for ranked in self.ranked_lists:
            judged_ranks = is_judged[ranked.order]
            orders.append(judged_index[ranked.order[judged_ranks]])
            sizes.append(np.cumsum(judged_ranks)[self.cutoffs - 1])
        return np.array(orders, np.int32), np.array(sizes, np.int64), (self.gold[is_judged] == 1).astype(np.uint8)

    @cached_property
    def panels(self) -> list[SwappedRanks]:
        """Panels for swaps of ranks: of n-best precision and, if all candidates are judged, of average precision."""
        if not len(self.pairs):
            return []
        orders, sizes, gold = self.judged_lists
        if self.candidates.is_sampled:
            key = compute_stream_key(self.options["seed"], self.candidates.name, self._judged_units)
            return [SwappedRanks.build_precision_panel(key, orders, gold, self.pairs, sizes)]
        best, average = self.tied_orders
        cutoffs = np.tile(self.cutoffs, (len(best.orders), 1))
        return [
            SwappedRanks.build_precision_panel(self.key, best.orders, gold, best.pairs, cutoffs, self.tested),
            SwappedRanks.build_average_precision_panel(self.key, average.orders, gold, average.pairs),
        ]

    @property
    def tested(self) -> Integers:
        """Index in the first panel of each pair and n, shape (n_pairs * n_cutoffs,)."""
        if self.candidates.is_sampled:
            return np.arange(len(self.pairs) * len(self.cutoffs))
        n_cutoffs = len(self.cutoffs)
        return (self.tied_orders[0].pair_index * n_cutoffs + np.arange(n_cutoffs)).ravel()

    @cached_property
    def tied_orders(self) -> tuple[TiedOrders, TiedOrders]:
        """The least favourable orders of tied candidates, for n-best precision and for average precision."""
        lists = self.ranked_lists
        scores = [[average_precision(ranked) for ranked in lists]]
        for true_first in (False, True):
            resolved = (resolve_ties(ranked, self.gold, true_first=true_first) for ranked in lists)
            scores.append([*map(_compute_average_precision, resolved)])
        by_average = np.array(scores)[:, :, None]
        best = TiedOrders.from_lists(lists, self.gold, self.pairs, *self._n_best)
        return best, TiedOrders.from_lists(lists, self.gold, self.pairs, *by_average)

    @cached_property
    def _n_best(self) -> tuple[Floats, Floats, Floats]:
        """True candidates in each n best: mean, minimum and maximum over all orders of ties."""
        return count_true_in_n_best(self.ranked_lists, self.cutoffs)

    @property
    def _judged_units(self) -> Sequence[str] | int:
        is_judged, units = self.gold != UNKNOWN, self.candidates.named.units
        return int(is_judged.sum()) if isinstance(units, int) else units[np.flatnonzero(is_judged)]

    @cached_property
    def jobs(self) -> list[Job]:
        """The jobs that swap the ranks of candidates."""
        label = f"rankings{f' of {self.candidates.name}' if self.candidates.name else ''}"
        return [Job(panel, self.options["trials"], label=label) for panel in self.panels]

    def build_evaluation(self, tallies: Sequence[Tally]) -> RankingEvaluation:
        """Return the results of the evaluation from the tallies of `jobs`."""
        candidates, options, is_sampled = self.candidates, self.options, self.candidates.is_sampled
        return RankingEvaluation(
            name=candidates.name,
            n_candidates=len(candidates),
            n_judged=int((candidates.gold != UNKNOWN).sum()),
            n_true=int((candidates.gold == 1).sum()),
            measures=tuple(self._iter_measures()),
            precision=() if is_sampled else tuple(self._iter_precisions()),
            sampled=tuple(self._iter_sampled_precisions()) if is_sampled else (),
            differences=tuple(self._iter_differences(tallies[0])) if tallies else (),
            average_precision=tuple(self._iter_average_differences(tallies[1])) if len(tallies) > 1 else (),
            ties=RANDOM_ORDER.format(seed=options["seed"]) if is_sampled else MEAN_OF_ORDERS,
            seed=options["seed"],
            n_trials=tallies[0].n_trials if tallies else 0,
            alpha=options["alpha"],
            confidence=options["confidence"],
            notes=candidates.notes,
        )

    def _iter_measures(self) -> Iterator[Measure]:
        candidates = self.candidates
        for measure, ranked in zip(candidates.measures, self.ranked_lists, strict=True):
            average = math.nan if candidates.is_sampled else average_precision(ranked)
            yield Measure(measure, measure not in candidates.smaller, ranked.n_distinct, average)

    def _iter_precisions(self) -> Iterator[Precision]:
        n, confidence = self.cutoffs, self.options["confidence"]
        n_true = np.full(len(n), (self.gold == 1).sum())
        for measure, ranked in zip(self.candidates.measures, self.ranked_lists, strict=True):
            best = count_n_best(ranked, n)
            limits, recall_limits = (compute_outward_interval(best.mean, total, confidence) for total in (n, n_true))
            tie_range = best.lowest / n, best.highest / n, best.n_tied
            columns = (n, best.mean, best.mean / n, *limits, best.mean / n_true, *recall_limits, *tie_range)
            yield from (Precision(measure, *row) for row in _iter_rows(*columns))

    def _iter_sampled_precisions(self) -> Iterator[SampledPrecision]:
        """Yield the precision of each n best, estimated from its judged candidates."""
        m, k = self._judged_counts.T
        n, confidence = np.tile(self.cutoffs, len(self.ranked_lists)), self.options["confidence"]
        low, high = compute_list_limits(k, m, n, confidence)
        binomial_low, binomial_high = compute_widened_interval(k, np.maximum(m, 1), confidence)
        columns = (n, m, k, np.where(m > 0, k / np.maximum(m, 1), np.nan), low / n, high / n, binomial_low,
                   np.where(m > 0, binomial_high, 1.0))  # fmt: skip
        names = np.repeat(self.candidates.measures, len(self.cutoffs)).tolist()
        yield from (SampledPrecision(name, *row) for name, row in zip(names, _iter_rows(*columns), strict=True))

    @property
    def _judged_counts(self) -> Integers:
        """Number of judged and of true candidates in each n best, shape (n_measures * n_cutoffs, 2)."""
        orders, sizes, gold = self.judged_lists
        above = np.concatenate([np.zeros((len(orders), 1), np.int64), np.cumsum(gold[orders] == 1, axis=1)], axis=1)
        return np.stack([sizes, np.take_along_axis(above, sizes, axis=1)], axis=2).reshape(-1, 2)

    def _iter_differences(self, tally: Tally) -> Iterator[Difference]:
        """Yield the difference in n-best precision of each pair of measures at each n, with its tests."""
        panel, is_open = self.panels[0], None
        if self.candidates.is_sampled:
            sizes, true = self._judged_counts.reshape(len(self.ranked_lists), -1, 2).transpose(2, 0, 1)
            with np.errstate(invalid="ignore"):  # a list without a judged candidate has no precision
                precision = true / sizes
        else:
            precision, is_open = self._n_best[0] / self.cutoffs, self.tied_orders[0].is_open
        exclusive = count_difference_sets(panel.orders, panel.cutoffs, panel.gold, panel.pairs).reshape(-1, 4)
        exclusive = exclusive[self.tested]
        columns = [fisher_exact(*exclusive.T), *_compute_p_values(panel, tally, self.tested)]
        a, b = (precision[side].ravel() for side in self.pairs.T)
        p_values = _take_largest_p(columns, is_open, tally.n_trials)
        rows = _iter_rows(np.tile(self.cutoffs, len(self.pairs)), a, b, a - b, *exclusive.T, *p_values)
        names = np.repeat(np.array(self.candidates.measures, object)[self.pairs], len(self.cutoffs), axis=0).tolist()
        yield from (Difference(*(*pair, *row, tally.n_trials)) for pair, row in zip(names, rows, strict=True))

    def _iter_average_differences(self, tally: Tally) -> Iterator[AverageDifference]:
        """Yield the difference in average precision of each pair of measures, with its test."""
        tied = self.tied_orders[1]
        columns = _compute_p_values(self.panels[1], tally, tied.pair_index.ravel())
        a, b = np.array([average_precision(ranked) for ranked in self.ranked_lists])[self.pairs.T]
        rows = _iter_rows(a, b, a - b, *_take_largest_p(columns, tied.is_open, tally.n_trials))
        names = np.array(self.candidates.measures, object)[self.pairs].tolist()
        yield from (AverageDifference(*(*pair, *row, tally.n_trials)) for pair, row in zip(names, rows, strict=True))


def _compute_p_values(panel: SwappedRanks, tally: Tally, tested: Integers) -> list[NDArray[Any]]:
    """Return p of the tested hypotheses, p adjusted over these by step-down max-T, and their exceedances."""
    counts = tally.counts[:, 0]
    p = compute_bound(counts[:, TWO_SIDED], tally.n_trials)
    raw = compute_bound(counts[:, FAMILY_TAILS.index("step-down")], tally.n_trials)
    adjusted = np.where(panel.scales > 0, np.maximum(enforce_step_down(raw, panel.order), p), 1.0)
    return [column[tested] for column in (p, adjusted, counts[:, TWO_SIDED])]


def _take_largest_p(columns: Sequence[NDArray[Any]], is_open: Bools | None, n_trials: int) -> Iterator[NDArray[Any]]:
    """Yield columns of p-values and exceedances, set to their maximum where ties let either list be ahead."""
    for column in columns:
        maximum = n_trials if column.dtype.kind == "i" else 1.0
        yield column if is_open is None else np.where(is_open.ravel(), maximum, column)


def _iter_rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of several arrays as tuples of plain numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _compute_average_precision(ranked: RankedList) -> float:
    """Return the average precision of a list in its given order of tied candidates."""
    true_ranks = np.flatnonzero(np.diff(ranked.above)) + 1
    return float((ranked.above[true_ranks] / true_ranks).sum() / ranked.above[-1])


MIN_REPEATED_SAMPLES = 3

MODEL = (
    "binomial: in every sample the true ones of N accepted candidates are Bin(N, p), with one p for all "
    "samples, estimated from all of them; the Clopper-Pearson interval of each sample should contain it"
)


@dataclass(frozen=True, slots=True, eq=False)
class AcceptanceSet:
    """Candidates that one measure accepts in each sample, and how their precision varies.

    Attributes
    ----------
    measure : str
    cutoff : float or None
        Lowest accepted score, or the highest one if smaller scores are better.
    n : int or None
        Number of best candidates that are accepted, instead of a cutoff.
    sample : tuple of str
        Names of the samples with accepted candidates.
    accepted, true : int64 array, shape (n_samples,)
        Candidates accepted in each, and the true ones of them.
    dispersion : Dispersion
        How precisions vary, and how they vary under the model.
    intervals : IntervalCoverage
        Coverage of the samples' intervals, and the coverage that the model predicts.
    widened : IntervalCoverage
        Coverage of intervals widened by the overdispersion that was found in the same samples.
    histogram : PrecisionHistogram
        Precisions, and their distribution under the model.
    """

    measure: str
    cutoff: float | None
    n: int | None
    sample: tuple[str, ...]
    accepted: Integers
    true: Integers
    dispersion: Dispersion
    intervals: IntervalCoverage
    widened: IntervalCoverage
    histogram: PrecisionHistogram

    def __str__(self) -> str:
        return f"{self.measure} = {self.cutoff:g}" if self.cutoff is not None else f"{self.measure}, n = {self.n}"

    def iter_rows(self, confidence: float) -> Iterator[dict[str, Any]]:
        """Yield the counts, the precision and its interval of each sample."""
        limits = compute_widened_interval(self.true, self.accepted, confidence)
        names = ("sample", "accepted", "true", "precision", "low", "high")
        rows = _iter_rows(self.accepted, self.true, self.true / self.accepted, *limits)
        yield from (
            dict(zip(names, (sample, *row), strict=True)) for sample, row in zip(self.sample, rows, strict=True)
        )

    def as_dict(self, confidence: float) -> dict[str, Any]:
        """Return plain values, as JSON has them."""
        bars = self.histogram
        histogram = replace(bars, edges=bars.edges.round(9).tolist(), observed=bars.observed.tolist(),
                            expected=bars.expected.tolist())  # fmt: skip
        parts = {"dispersion": self.dispersion, "intervals": self.intervals, "widened": self.widened}
        names = {"measure": self.measure, "cutoff": self.cutoff, "n": self.n}
        return {
            **names,
            **to_plain(parts | {"histogram": histogram}),
            "samples": list(self.iter_rows(confidence)),
        }


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedSamples:
    """Results of a validation: how well the binomial model describes repeated samples.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    confidence : float
        Confidence level of the intervals.
    found : tuple of AcceptanceSet
        Results of each acceptance set.
    notes : tuple of str
        Notes on all results.
    """

    n_samples: int
    confidence: float
    found: tuple[AcceptanceSet, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the validation as a dictionary of plain Python values, as JSON has them."""
        return {
            "kind": "rankings-validation",
            "n_samples": self.n_samples,
            "confidence": self.confidence,
            "validations": [acceptance.as_dict(self.confidence) for acceptance in self.found],
            "notes": list(self.notes),
            "models": {"precision": MODEL},
        }

    def json_parts(self) -> Iterator[str]:
        """Yield the JSON text of the validation in parts."""
        return iter_json(self.as_dict())

    def csv_lines(self) -> Iterator[str]:
        """Yield the lines of a CSV table, a row for each acceptance set and sample, after the column names."""
        names = ["measure", "cutoff", "n", "sample", "accepted", "true", "precision", "low", "high"]
        rows = [
            [acceptance.measure, acceptance.cutoff, acceptance.n, *row.values()]
            for acceptance in self.found
            for row in acceptance.iter_rows(self.confidence)
        ]
        yield format_csv_rows([names, *rows])


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
        Candidates by the name of the sample. All samples have the same measures.
    cutoffs : mapping of str to float
        Lowest accepted score of each measure. Give either this or `n`.
    n : sequence of int or str
        Numbers of best candidates that are accepted, instead of `cutoffs`.
    confidence : float
        Confidence level of the intervals, by default 0.95.

    Returns
    -------
    RepeatedSamples
        Its attribute `found` has a result for each measure and cutoff or n.

    Raises
    ------
    InputError
        There are too few samples, one lacks a measure, or a candidate is not judged.

    References
    ----------
    Evert 2004, "Significance tests for the evaluation of ranking methods", COLING.

    Examples
    --------
    >>> parts = {f"part {k}": Candidates.of([1, 0, k % 2, 0], {"G2": [9, 8, 7, 1]}) for k in range(4)}
    >>> [found] = validate(parts, cutoffs={"G2": 5.0}).found
    >>> found.accepted.tolist(), found.true.tolist(), found.dispersion.precision
    ([3, 3, 3, 3], [1, 2, 1, 2], 0.5)
    """
    check_options(RankingOptions, {"confidence": confidence})
    numbers = convert_cutoffs(n)
    if bool(cutoffs) == bool(numbers):
        raise InputError(
            "validation: give cutoffs (--cutoff MEASURE=SCORE) or numbers of best candidates (--n), not both"
        )
    if len(samples) < MIN_REPEATED_SAMPLES:
        raise InputError(f"validation needs {MIN_REPEATED_SAMPLES} repeated samples or more, found {len(samples)}")
    for name, sample in samples.items():
        if (sample.gold == UNKNOWN).any():
            raise InputError(f"sample {name!r}: some candidates are not judged; validation needs a judgement of each")
    counts = _accept_by_cutoff(samples, cutoffs) if cutoffs else _accept_n_best(samples, numbers)
    found = tuple(_validate(*key, [*samples], np.array(rows, np.int64), confidence) for key, rows in counts)
    notes = tuple(
        f"{acceptance}: {describe_items(empty, 'sample')} accept{'s' * (len(empty) == 1)} no candidate, left out"
        for acceptance in found
        if (empty := [name for name in samples if name not in {*acceptance.sample}])
    )
    return RepeatedSamples(len(samples), confidence, found, notes)


Acceptances = Iterator[tuple[tuple[str, float | None, int | None], list[tuple[int, int]]]]
"""Measure, cutoff and n, and the accepted and true candidates of each sample."""


def _accept_by_cutoff(samples: Mapping[str, Candidates], cutoffs: Mapping[str, float]) -> Acceptances:
    for measure, cutoff in cutoffs.items():
        counts = []
        for name, sample in samples.items():
            scores = sample.oriented[_get_measure_index(sample, measure, name)]
            is_in = scores >= (-cutoff if measure in sample.smaller else cutoff)
            counts.append((int(is_in.sum()), int((sample.gold[is_in] == 1).sum())))
        yield (measure, cutoff, None), counts


def _accept_n_best(samples: Mapping[str, Candidates], numbers: Sequence[int]) -> Acceptances:
    """Yield the n best of each sample, with ties in random order, for each measure and n."""
    options = fill_options(RankingOptions, {})
    lists = {name: MeasureRankings(sample, options).ranked_lists for name, sample in samples.items()}
    for measure in next(iter(samples.values())).measures:
        for n in numbers:
            counts = []
            for name, sample in samples.items():
                if n > len(sample):
                    raise InputError(f"sample {name!r}: n = {n:,} is more than its {len(sample):,} candidates")
                counts.append((n, int(lists[name][_get_measure_index(sample, measure, name)].above[n])))
            yield (measure, None, n), counts


def _get_measure_index(sample: Candidates, measure: str, name: str) -> int:
    if measure not in sample.measures:
        raise InputError(f"sample {name!r}: no measure {measure!r}; measures: {', '.join(sample.measures)}")
    return sample.measures.index(measure)


def _validate(
    measure: str, cutoff: float | None, n: int | None, names: Sequence[str], counts: Integers, confidence: float
) -> AcceptanceSet:
    """Return how precision varies over samples, of which `counts` has the accepted and the true candidates."""
    some_are = counts[:, 0] > 0
    if some_are.sum() < MIN_REPEATED_SAMPLES:
        raise InputError(
            f"{measure}: only {int(some_are.sum())} of {len(names)} samples have candidates at the cutoff or above, "
            "too few for a validation",
            remedy="lower the cutoff",
        )
    accepted, true = counts[some_are].T
    spread = estimate_dispersion(true, accepted)
    if not 0 < spread.precision < 1:
        raise InputError(
            f"{measure}: all candidates at the cutoff or above are {'true' if spread.precision else 'false'}, "
            "so there is nothing to validate",
            remedy="choose another cutoff",
        )
    expected = compute_expected_misses(accepted, spread.precision, confidence)
    limits = compute_widened_interval(true, accepted, confidence)
    widened_limits = compute_widened_interval(true, accepted, confidence, spread.factor)
    return AcceptanceSet(
        measure,
        cutoff,
        n,
        tuple(name for name, any_is in zip(names, some_are, strict=True) if any_is),
        accepted,
        true,
        spread,
        compute_coverage(*limits, spread.precision, confidence, expected=expected),
        compute_coverage(*widened_limits, spread.precision, confidence),
        build_histogram(true, accepted, spread.precision),
    )
