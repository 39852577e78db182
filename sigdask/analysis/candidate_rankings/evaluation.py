"""Evaluation of candidate rankings: ranked lists, tests of their differences, random and repeated samples.

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
    RandomSamples,
    SwappedRanks,
    TiedOrders,
    TiedRanks,
    count_true_in_n_best,
    resolve_ties,
)
from sigdask.analysis.candidate_rankings.spec import (
    AverageDifference,
    Difference,
    Measure,
    Precision,
    RankingEvaluation,
    RankingSpec,
    SampledPrecision,
    Validation,
)
from sigdask.counts.candidates import UNKNOWN, Candidates
from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError
from sigdask.interface import spell
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

MIN_SAMPLES = 2
"""Minimum number of samples for a validation."""

TIE_RUN = 1
"""Run of the sampling stream whose first trial orders tied candidates. Samples use run 0."""

TIES = {
    "expected": "precision, recall and average precision are means over all orders of tied candidates; each test takes "
    "the order with the smallest difference",
    "random": "tied candidates stand in one random order, the same for all measures (seed {seed})",
    "given": "tied candidates stand in the order in which they were given",
}


@dataclass(frozen=True, eq=False)
class MeasureRankings:
    """The rankings of candidates by each measure, with the jobs of an evaluation and its results.

    Attributes
    ----------
    candidates : Candidates
    spec : RankingSpec
    """

    candidates: Candidates
    spec: RankingSpec

    @cached_property
    def key(self) -> Key:
        """The key of the random stream."""
        return compute_stream_key(self.spec.seed, self.candidates.name, self.candidates.named.units)

    @cached_property
    def gold(self) -> NDArray[np.int8]:
        """Whether each candidate is true, false or unknown, in the canonical order of the random stream."""
        return self.candidates.gold[self.candidates.named.place]

    @cached_property
    def ranked_lists(self) -> tuple[RankedList, ...]:
        """The ranked list of each measure."""
        positions = self.candidates.named.place
        tie_order = positions if self.spec.ties == "given" else self._random_order
        return tuple(
            RankedList.from_scores(scores[positions], self.gold == 1, tie_order) for scores in self.candidates.oriented
        )

    @property
    def _random_order(self) -> Integers:
        """A random order of all candidates, which breaks ties alike for all measures."""
        ranks = draw_sample_ranks(self.key, run=TIE_RUN, first=0, n_trials=1, n_units=len(self.gold))[0]
        order = np.empty(len(ranks), np.int64)
        order[np.argsort(ranks, kind="stable")] = np.arange(len(ranks))
        return order

    @cached_property
    def cutoffs(self) -> Integers:
        """The numbers n of best candidates that are evaluated."""
        return np.array(self.spec.list_cutoffs(len(self.gold)), np.int64)

    @cached_property
    def pairs(self) -> Integers:
        """Indices of the measures that are compared, shape (n_pairs, 2)."""
        found = self.spec.list_pairs(self.candidates.measures)
        return np.array(found, np.int64).reshape(-1, 2)

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
    def swap_panels(self) -> list[SwappedRanks]:
        """Panels for swaps of ranks: of n-best precision and, if all candidates are judged, of average precision."""
        if not len(self.pairs):
            return []
        orders, sizes, gold = self.judged_lists
        if self.candidates.is_sampled:
            key = compute_stream_key(self.spec.seed, self.candidates.name, self._judged_units)
            return [SwappedRanks.build_precision_panel(key, orders, gold, self.pairs, sizes)]
        if self.spec.ties == "expected" and any(ranked.n_distinct < len(gold) for ranked in self.ranked_lists):
            best, average = self.tied_orders
            cutoffs = np.tile(self.cutoffs, (len(best.orders), 1))
            used = best.pair_index * len(self.cutoffs) + np.arange(len(self.cutoffs))
            by_precision = SwappedRanks.build_precision_panel(self.key, best.orders, gold, best.pairs, cutoffs)
            by_average = SwappedRanks.build_average_precision_panel(self.key, average.orders, gold, average.pairs)
            return [
                TiedRanks.from_panel(by_precision, used.ravel()),
                TiedRanks.from_panel(by_average, average.pair_index.ravel()),
            ]
        return [
            SwappedRanks.build_precision_panel(self.key, orders, gold, self.pairs, sizes),
            SwappedRanks.build_average_precision_panel(self.key, orders, gold, self.pairs),
        ]

    @cached_property
    def tied_orders(self) -> tuple[TiedOrders, TiedOrders]:
        """The least favourable orders of tied candidates, for n-best precision and for average precision."""
        lists = self.ranked_lists
        scores = [[average_precision(ranked) for ranked in lists]]
        for true_first in (False, True):
            resolved = (resolve_ties(ranked, self.gold, true_first=true_first) for ranked in lists)
            scores.append([*map(_compute_average_precision, resolved)])
        by_average = np.array(scores)[:, :, None]
        best = TiedOrders.from_lists(lists, self.gold, self.pairs, *count_true_in_n_best(lists, self.cutoffs))
        return best, TiedOrders.from_lists(lists, self.gold, self.pairs, *by_average)

    @property
    def _judged_units(self) -> Sequence[str] | int:
        is_judged, units = self.gold != UNKNOWN, self.candidates.named.units
        return int(is_judged.sum()) if isinstance(units, int) else units[np.flatnonzero(is_judged)]

    @cached_property
    def samples(self) -> RandomSamples | None:
        """The random samples to draw, if any."""
        if not self.spec.samples:
            return None
        if self.candidates.is_sampled:
            raise InputError(
                f"some candidates are not judged, and {spell('samples', 'needs')} a judgement of each",
                remedy=f"leave out {spell('samples')}",
            )
        size = self.spec.sample_size or 0
        if size > len(self.gold):
            raise InputError(f"sample_size = {size:,}: must be at most {len(self.gold):,}, the number of candidates")
        orders, _, gold = self.judged_lists
        return RandomSamples(self.key, orders, gold, self.cutoffs, size, self.spec.samples)

    @property
    def jobs(self) -> list[Job]:
        """All jobs to count: those of swaps of ranks, then those of random samples."""
        return [*self.swap_jobs, *self.sample_jobs]

    @cached_property
    def swap_jobs(self) -> list[Job]:
        """Jobs that swap the ranks of candidates."""
        return [Job(panel, self.spec.trials, label=self._label) for panel in self.swap_panels]

    @cached_property
    def sample_jobs(self) -> list[Job]:
        """Jobs that draw random samples."""
        return [] if self.samples is None else [Job(self.samples, self.samples.n_samples, label=self._label)]

    @property
    def _label(self) -> str:
        return f"rankings{f' of {self.candidates.name}' if self.candidates.name else ''}"

    def build_evaluation(self, tallies: Sequence[Tally]) -> RankingEvaluation:
        """Return the results of the evaluation from the tallies of `jobs`."""
        candidates, spec = self.candidates, self.spec
        swap_tallies = list(tallies)
        sample_counts = None if self.samples is None else swap_tallies.pop().counts
        ties = "random" if candidates.is_sampled and spec.ties == "expected" else spec.ties
        return RankingEvaluation(
            name=candidates.name,
            n_candidates=len(candidates),
            n_judged=int((candidates.gold != UNKNOWN).sum()),
            n_true=int((candidates.gold == 1).sum()),
            measures=tuple(self._iter_measures()),
            precision=() if candidates.is_sampled else tuple(self._iter_precisions()),
            sampled=tuple(self._iter_sampled_precisions(sample_counts)),
            differences=tuple(self._iter_differences(swap_tallies[0])) if swap_tallies else (),
            average_precision=tuple(self._iter_average_differences(swap_tallies[1])) if len(swap_tallies) > 1 else (),
            validation=()
            if sample_counts is None or len(sample_counts) < MIN_SAMPLES
            else tuple(self._iter_validations(sample_counts)),
            ties=TIES[ties].format(seed=spec.seed),
            seed=spec.seed,
            n_trials=swap_tallies[0].n_trials if swap_tallies else 0,
            n_samples=0 if sample_counts is None else len(sample_counts),
            sample_size=spec.sample_size or 0,
            alpha=spec.alpha,
            confidence=spec.confidence,
            notes=candidates.notes,
        )

    def _iter_measures(self) -> Iterator[Measure]:
        smaller, is_mean = self.candidates.smaller, self.spec.ties == "expected"
        for measure, ranked in zip(self.candidates.measures, self.ranked_lists, strict=True):
            score = average_precision(ranked) if is_mean else _compute_average_precision(ranked)
            average = math.nan if self.candidates.is_sampled else score
            yield Measure(measure, measure not in smaller, ranked.n_distinct, average)

    def _iter_precisions(self) -> Iterator[Precision]:
        n, confidence = self.cutoffs, self.spec.confidence
        n_true = np.full(len(n), (self.gold == 1).sum())
        for measure, ranked in zip(self.candidates.measures, self.ranked_lists, strict=True):
            best = count_n_best(ranked, n)
            count = best.mean if self.spec.ties == "expected" else best.found.astype(np.float64)
            precision_limits, recall_limits = (
                compute_outward_interval(count, total, confidence) for total in (n, n_true)
            )
            tie_range = best.lowest / n, best.highest / n, best.n_tied
            columns = (n, count, count / n, *precision_limits, count / n_true, *recall_limits, *tie_range)
            yield from (Precision(measure, *row) for row in _iter_rows(*columns))

    def _iter_sampled_precisions(self, sample_counts: Integers | None) -> Iterator[SampledPrecision]:
        """Yield the precision of each n best estimated from one sample: the judged candidates, or the first draw."""
        if sample_counts is None and not self.candidates.is_sampled:
            return
        m, k = (self._judged_counts if sample_counts is None else sample_counts[0]).T
        n, confidence = np.tile(self.cutoffs, len(self.ranked_lists)), self.spec.confidence
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
        above = np.concatenate([np.zeros((len(orders), 1), np.int64), np.cumsum(gold[orders], axis=1)], axis=1)
        return np.stack([sizes, np.take_along_axis(above, sizes, axis=1)], axis=2).reshape(-1, 2)

    def _iter_differences(self, tally: Tally) -> Iterator[Difference]:
        """Yield the difference in n-best precision of each pair of measures at each n, with its tests."""
        sizes, true = self._judged_counts.reshape(len(self.ranked_lists), -1, 2).transpose(2, 0, 1)
        with np.errstate(invalid="ignore"):  # a list without a judged candidate has no precision
            precision = true / sizes
        panel = self.swap_panels[0]
        orders, judged_sizes, gold = self.judged_lists
        swap_columns = [*_compute_p_values(panel, tally), tally.counts[:, 0, TWO_SIDED]]
        if isinstance(panel, TiedRanks):
            precision = count_true_in_n_best(self.ranked_lists, self.cutoffs)[0] / self.cutoffs
            exclusive = count_difference_sets(panel.orders, panel.cutoffs, gold, panel.pairs).reshape(-1, 4)[panel.used]
            p_fisher, *swap_columns = _take_largest_p(
                self.tied_orders[0], fisher_exact(*exclusive.T), swap_columns, panel, tally.n_trials
            )
        else:
            exclusive = count_difference_sets(orders, judged_sizes, gold, self.pairs).reshape(-1, 4)
            p_fisher = fisher_exact(*exclusive.T)
        a, b = (precision[side].ravel() for side in self.pairs.T)
        columns = (np.tile(self.cutoffs, len(self.pairs)), a, b, a - b, *exclusive.T, p_fisher, *swap_columns)
        names = np.repeat(np.array(self.candidates.measures, object)[self.pairs], len(self.cutoffs), axis=0).tolist()
        yield from (
            Difference(*(*pair, *row, tally.n_trials)) for pair, row in zip(names, _iter_rows(*columns), strict=True)
        )

    def _iter_average_differences(self, tally: Tally) -> Iterator[AverageDifference]:
        """Yield the difference in average precision of each pair of measures, with its test."""
        panel = self.swap_panels[1]
        swap_columns = [*_compute_p_values(panel, tally), tally.counts[:, 0, TWO_SIDED]]
        if isinstance(panel, TiedRanks):
            scores = np.array([average_precision(ranked) for ranked in self.ranked_lists])
            _, *swap_columns = _take_largest_p(
                self.tied_orders[1], np.empty(len(panel.scales))[panel.used], swap_columns, panel, tally.n_trials
            )
        else:
            scores = np.array([_compute_average_precision(ranked) for ranked in self.ranked_lists])
        a, b = scores[self.pairs.T]
        columns = a, b, a - b, *swap_columns
        names = np.array(self.candidates.measures, object)[self.pairs].tolist()
        yield from (
            AverageDifference(*(*pair, *row, tally.n_trials))
            for pair, row in zip(names, _iter_rows(*columns), strict=True)
        )

    def _iter_validations(self, sample_counts: Integers) -> Iterator[Validation]:
        """Yield, for each n best, how its precision varies over random samples, compared with the model."""
        lists, confidence = zip(self.candidates.measures, self.ranked_lists, strict=True), self.spec.confidence
        compared = (
            (measure, n, float(ranked.above[n] / n)) for measure, ranked in lists for n in self.cutoffs.tolist()
        )
        for column, (measure, n, precision) in enumerate(compared):
            m, k = sample_counts[sample_counts[:, column, 0] > 0, column].T
            if len(m):
                spread = estimate_dispersion(k, m, known=precision, n_population=n)
                low, high = compute_list_limits(k, m, np.full(len(k), n), confidence)
                intervals = compute_coverage(low / n, high / n, precision, confidence)
                limits = compute_widened_interval(k, m, confidence, spread.factor)
                widened = compute_coverage(*limits, precision, confidence)
                yield Validation(measure, n, spread, intervals, widened)


def _take_largest_p(
    tied: TiedOrders, p_fisher: Floats, swap_columns: Sequence[NDArray[Any]], panel: TiedRanks, n_trials: int
) -> Iterator[NDArray[Any]]:
    """Yield columns of p-values and exceedances, set to their maximum where ties let either list be ahead."""
    is_open = tied.is_open.ravel()
    for column, maximum in zip(
        (p_fisher, *(values[panel.used] for values in swap_columns)), (1.0, 1.0, 1.0, n_trials), strict=True
    ):
        yield np.where(is_open, maximum, column)


def _iter_rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of several arrays as tuples of plain numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _compute_average_precision(ranked: RankedList) -> float:
    """Return the average precision of a list in its given order of tied candidates."""
    true_ranks = np.flatnonzero(np.diff(ranked.above)) + 1
    return float((ranked.above[true_ranks] / true_ranks).sum() / ranked.above[-1])


def _compute_p_values(panel: SwappedRanks, tally: Tally) -> tuple[Floats, Floats]:
    """Return the p-value of each hypothesis, and its p-value adjusted over all hypotheses by step-down max-T."""
    counts = tally.counts[:, 0]
    p = compute_bound(counts[:, TWO_SIDED], tally.n_trials)
    raw = compute_bound(counts[:, FAMILY_TAILS.index("step-down")], tally.n_trials)
    return p, np.where(panel.scales > 0, np.maximum(enforce_step_down(raw, panel.order), p), 1.0)


MIN_REPEATED_SAMPLES = 3

MODEL = (
    "binomial: in every sample the true ones of N accepted candidates are Bin(N, p), with one p for all "
    "samples, estimated from all of them; the Clopper-Pearson interval of each sample should contain it"
)


@dataclass(frozen=True, slots=True, eq=False)
class AcceptanceSet:
    """Candidates that one measure accepts in each sample.

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
    """

    measure: str
    cutoff: float | None
    n: int | None
    sample: tuple[str, ...]
    accepted: Integers
    true: Integers


@dataclass(frozen=True, slots=True, eq=False)
class ValidatedAcceptance:
    """An acceptance set, with its dispersion and interval coverage under the model.

    Attributes
    ----------
    sets : AcceptanceSet
    dispersion : Dispersion
        How precisions vary, and how they vary under the model.
    intervals : IntervalCoverage
        Coverage of the samples' intervals, and the coverage that the model predicts.
    widened : IntervalCoverage
        Coverage of intervals widened by the overdispersion that was found in the same samples.
    bars : PrecisionHistogram
        Precisions, and their distribution under the model.
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
        Number of samples.
    confidence : float
        Confidence level of the intervals.
    found : tuple of ValidatedAcceptance
        Results of each acceptance set.
    notes : tuple of str
        Notes on all results.
    """

    n_samples: int
    confidence: float
    found: tuple[ValidatedAcceptance, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the validation as a dictionary of plain Python values, as JSON has them."""
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
        names = ["measure", "cutoff", "n", "sample", "accepted", "true", "precision", "low", "high"]
        rows = [
            [validation.sets.measure, validation.sets.cutoff, validation.sets.n, *row.values()]
            for validation in self.found
            for row in _iter_sample_rows(validation.sets, self.confidence)
        ]
        yield format_csv_rows([names, *rows])


def _as_json_dict(validation: ValidatedAcceptance, confidence: float) -> dict[str, Any]:
    bars = validation.bars
    return {
        "measure": validation.sets.measure,
        "cutoff": validation.sets.cutoff,
        "n": validation.sets.n,
        "dispersion": to_plain(validation.dispersion),
        "intervals": to_plain(validation.intervals),
        "widened": to_plain(validation.widened),
        "histogram": to_plain(replace(bars, edges=bars.edges.round(9).tolist(), observed=bars.observed.tolist(),
                                      expected=bars.expected.tolist())),
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
    >>> found.sets.accepted.tolist(), found.sets.true.tolist(), found.dispersion.precision
    ([3, 3, 3, 3], [1, 2, 1, 2], 0.5)
    """
    spec = RankingSpec.from_options(n=n, confidence=confidence)
    if bool(cutoffs) == bool(spec.cutoffs):
        raise InputError(
            "validation: give cutoffs (--cutoff MEASURE=SCORE) or numbers of best candidates (--n), not both"
        )
    if len(samples) < MIN_REPEATED_SAMPLES:
        raise InputError(f"validation needs {MIN_REPEATED_SAMPLES} repeated samples or more, found {len(samples)}")
    for name, sample in samples.items():
        if (sample.gold == UNKNOWN).any():
            raise InputError(f"sample {name!r}: some candidates are not judged; validation needs a judgement of each")
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
                    raise InputError(
                        f"sample {name!r}: n = {n:,} is more than its {len(rankings.candidates):,} candidates"
                    )
                index = _get_measure_index(rankings.candidates, measure, name)
                counts.append((n, int(rankings.ranked_lists[index].above[n])))
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
    if some_are.sum() < MIN_REPEATED_SAMPLES:
        raise InputError(
            f"{measure}: only {int(some_are.sum())} of {len(names)} samples have candidates at the cutoff or above, "
            "too few for a validation",
            remedy="lower the cutoff",
        )
    accepting = tuple(name for name, any_is in zip(names, some_are, strict=True) if any_is)
    return AcceptanceSet(measure, cutoff, n, accepting, accepted[some_are], true[some_are])


def _validate_set(sets: AcceptanceSet, confidence: float) -> ValidatedAcceptance:
    spread = estimate_dispersion(sets.true, sets.accepted)
    if not 0 < spread.precision < 1:
        raise InputError(
            f"{sets.measure}: all candidates at the cutoff or above are {'true' if spread.precision else 'false'}, "
            "so there is nothing to validate",
            remedy="choose another cutoff",
        )
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
