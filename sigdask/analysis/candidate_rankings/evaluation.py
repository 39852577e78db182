"""From candidates to what is found of them: lists, their tests, and samples of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.candidate_rankings.jobs import ExchangedRanks, TiedRanks
from sigdask.analysis.candidate_rankings.results import (
    AverageDifference,
    Difference,
    Measure,
    Precision,
    RankingEvaluation,
    SampledPrecision,
    Validation,
)
from sigdask.analysis.candidate_rankings.samples import RandomSamples
from sigdask.analysis.candidate_rankings.spec import RankingSpec
from sigdask.analysis.candidate_rankings.tied_orders import TiedOrders, n_best_of, with_ties_resolved
from sigdask.counts.candidates import UNKNOWN, Candidates
from sigdask.errors import InputError
from sigdask.randomization.jobs import Job
from sigdask.randomization.stream.shuffles import Key, sample_ranks, stream_key
from sigdask.randomization.tallies import FAMILY_TAILS, Tally
from sigdask.statistics.bounds import bound
from sigdask.statistics.candidates.lists import RankedList, average_precision, difference_sets, n_best, outward_interval
from sigdask.statistics.candidates.repeated import coverage, dispersion, widened_interval
from sigdask.statistics.candidates.tables import fisher, list_limits
from sigdask.statistics.multiplicity import step_down

Integers = NDArray[np.int64]

TWO_SIDED = FAMILY_TAILS.index("two-sided")

FEWEST_SAMPLES = 2
"""That are held against each other."""

TIE_RUN = 1
"""Run of the sampling stream whose first trial orders tied candidates; samples are of run 0."""

TIES = {
    "expected": "precision, recall and average precision are means over all orders of tied candidates; each test takes "
    "the order that is least favourable to its difference, whose p is the largest",
    "random": "tied candidates stand in one random order, the same for all measures (seed {seed})",
    "given": "tied candidates stand in the order in which they were given",
}


@dataclass(frozen=True, eq=False)
class MeasureRankings:
    """Candidates as each measure ranks them, in the canonical order of the stream.

    Attributes
    ----------
    candidates : Candidates
    asked : RankingSpec
    """

    candidates: Candidates
    asked: RankingSpec

    @cached_property
    def key(self) -> Key:
        """The stream's key."""
        return stream_key(self.asked.seed, self.candidates.name, self.candidates.named.units)

    @cached_property
    def gold(self) -> NDArray[np.int8]:
        """Gold in canonical order."""
        return self.candidates.gold[self.candidates.named.place]

    @cached_property
    def ranked(self) -> tuple[RankedList, ...]:
        """The list of each measure."""
        place = self.candidates.named.place
        before = place if self.asked.ties == "given" else self._random
        return tuple(RankedList.of(scores[place], self.gold == 1, before) for scores in self.candidates.oriented)

    @property
    def _random(self) -> Integers:
        """One random order of all candidates."""
        drawn = sample_ranks(self.key, run=TIE_RUN, first=0, n_trials=1, n_units=len(self.gold))[0]
        found = np.empty(len(drawn), np.int64)
        found[np.argsort(drawn, kind="stable")] = np.arange(len(drawn))
        return found

    @cached_property
    def cutoffs(self) -> Integers:
        """Each n."""
        return np.array(self.asked.cutoffs_of(len(self.gold)), np.int64)

    @cached_property
    def pairs(self) -> Integers:
        """Places of the measures that are compared, shape (n_pairs, 2)."""
        found = self.asked.pairs_of(self.candidates.measures)
        return np.array(found, np.int64).reshape(-1, 2)

    @cached_property
    def judged(self) -> tuple[NDArray[np.int32], Integers, NDArray[np.uint8]]:
        """Orders of the judged candidates alone, how many of each n best they are, and which are true."""
        known = self.gold != UNKNOWN
        place = np.cumsum(known) - 1
        orders, sizes = [], []
        for ranked in self.ranked:
            here = known[ranked.order]
            orders.append(place[ranked.order[here]])
            sizes.append(np.cumsum(here)[self.cutoffs - 1])
        return np.array(orders, np.int32), np.array(sizes, np.int64), (self.gold[known] == 1).astype(np.uint8)

    @cached_property
    def exchanges(self) -> list[ExchangedRanks]:
        """What is counted by swaps: n-best precision, and average precision where all candidates are judged."""
        if not len(self.pairs):
            return []
        orders, sizes, gold = self.judged
        if self.candidates.is_sampled:
            key = stream_key(self.asked.seed, self.candidates.name, self._judged_units)
            return [ExchangedRanks.of_precision(key, orders, gold, self.pairs, sizes)]
        if self.asked.ties == "expected" and any(ranked.n_distinct < len(gold) for ranked in self.ranked):
            return self._tied_exchanges(gold)
        return [
            ExchangedRanks.of_precision(self.key, orders, gold, self.pairs, sizes),
            ExchangedRanks.of_average_precision(self.key, orders, gold, self.pairs),
        ]

    def _tied_exchanges(self, gold: NDArray[np.uint8]) -> list[ExchangedRanks]:
        best, average = self.tied_orders
        cutoffs = np.tile(self.cutoffs, (len(best.orders), 1))
        used = best.place * len(self.cutoffs) + np.arange(len(self.cutoffs))
        by_precision = ExchangedRanks.of_precision(self.key, best.orders, gold, best.pairs, cutoffs)
        by_average = ExchangedRanks.of_average_precision(self.key, average.orders, gold, average.pairs)
        return [TiedRanks.among(by_precision, used.ravel()), TiedRanks.among(by_average, average.place.ravel())]

    @cached_property
    def tied_orders(self) -> tuple[TiedOrders, TiedOrders]:
        """The least favourable orders of tied candidates, for n-best precision and for average precision."""
        scores = [
            [average_precision(ranked) for ranked in self.ranked],
            *([_of_list(with_ties_resolved(ranked, self.gold, true_first=first)) for ranked in self.ranked]
              for first in (False, True)),
        ]  # fmt: skip
        by_average = np.array(scores)[:, :, None]
        best = TiedOrders.of(self.ranked, self.gold, self.pairs, *n_best_of(self.ranked, self.cutoffs))
        return best, TiedOrders.of(self.ranked, self.gold, self.pairs, *by_average)

    @property
    def _judged_units(self) -> Sequence[str] | int:
        known, units = self.gold != UNKNOWN, self.candidates.named.units
        return int(known.sum()) if isinstance(units, int) else units[np.flatnonzero(known)]

    @cached_property
    def samples(self) -> RandomSamples | None:
        """The random samples that are asked for."""
        if not self.asked.samples:
            return None
        if self.candidates.is_sampled:
            raise InputError("samples are drawn of candidates that are all judged; here only some are")
        size = self.asked.sample_size or 0
        if size > len(self.gold):
            raise InputError(f"sample_size = {size:,}: there are {len(self.gold):,} candidates")
        orders, _, gold = self.judged
        return RandomSamples(self.key, orders, gold, self.cutoffs, size, self.asked.samples)

    @property
    def jobs(self) -> list[Job]:
        """What must be counted."""
        return [*self.exchange_jobs, *self.sample_jobs]

    @cached_property
    def exchange_jobs(self) -> list[Job]:
        """What is counted by exchange of ranks."""
        return [Job(panel, self.asked.trials, label=self._label) for panel in self.exchanges]

    @cached_property
    def sample_jobs(self) -> list[Job]:
        """What is drawn."""
        return [] if self.samples is None else [Job(self.samples, self.samples.n_samples, label=self._label)]

    @property
    def _label(self) -> str:
        return f"rankings{f' of {self.candidates.name}' if self.candidates.name else ''}"

    def evaluation(self, tallies: Sequence[Tally]) -> RankingEvaluation:
        """Return what is found, with the tallies of `jobs`."""
        given, asked = self.candidates, self.asked
        counted = list(tallies)
        drawn = None if self.samples is None else counted.pop().counts
        ties = "random" if given.is_sampled and asked.ties == "expected" else asked.ties
        return RankingEvaluation(
            name=given.name,
            n_candidates=len(given),
            n_judged=int((given.gold != UNKNOWN).sum()),
            n_true=int((given.gold == 1).sum()),
            measures=tuple(self._measures()),
            precision=() if given.is_sampled else tuple(self._precision()),
            sampled=tuple(self._sampled(drawn)),
            differences=tuple(self._differences(counted[0])) if counted else (),
            average_precision=tuple(self._average(counted[1])) if len(counted) > 1 else (),
            validation=() if drawn is None or len(drawn) < FEWEST_SAMPLES else tuple(self._validation(drawn)),
            ties=TIES[ties].format(seed=asked.seed),
            seed=asked.seed,
            n_trials=counted[0].n_trials if counted else 0,
            n_samples=0 if drawn is None else len(drawn),
            sample_size=asked.sample_size or 0,
            alpha=asked.alpha,
            confidence=asked.confidence,
            notes=given.notes,
        )

    def _measures(self) -> Iterator[Measure]:
        smaller, is_mean = self.candidates.smaller, self.asked.ties == "expected"
        for measure, ranked in zip(self.candidates.measures, self.ranked, strict=True):
            score = average_precision(ranked) if is_mean else _of_list(ranked)
            known = math.nan if self.candidates.is_sampled else score
            yield Measure(measure, measure not in smaller, ranked.n_distinct, known)

    def _precision(self) -> Iterator[Precision]:
        n, confidence = self.cutoffs, self.asked.confidence
        every = np.full(len(n), (self.gold == 1).sum())
        for measure, ranked in zip(self.candidates.measures, self.ranked, strict=True):
            best = n_best(ranked, n)
            count = best.mean if self.asked.ties == "expected" else best.found.astype(np.float64)
            of_n, of_true = (outward_interval(count, whole, confidence) for whole in (n, every))
            of_ties = best.lowest / n, best.highest / n, best.n_tied
            columns = (n, count, count / n, *of_n, count / every, *of_true, *of_ties)
            yield from (Precision(measure, *row) for row in _rows(*columns))

    def _sampled(self, drawn: Integers | None) -> Iterator[SampledPrecision]:
        """Yield what one sample says of each list: the judged candidates, or the first sample that was drawn."""
        if drawn is None and not self.candidates.is_sampled:
            return
        m, k = (self._own_sample if drawn is None else drawn[0]).T
        n, confidence = np.tile(self.cutoffs, len(self.ranked)), self.asked.confidence
        low, high = list_limits(k, m, n, confidence)
        least, most = widened_interval(k, np.maximum(m, 1), confidence)
        columns = (n, m, k, np.where(m > 0, k / np.maximum(m, 1), np.nan), low / n, high / n, least,
                   np.where(m > 0, most, 1.0))  # fmt: skip
        names = np.repeat(self.candidates.measures, len(self.cutoffs)).tolist()
        yield from (SampledPrecision(name, *row) for name, row in zip(names, _rows(*columns), strict=True))

    @property
    def _own_sample(self) -> Integers:
        """Judged candidates of each list, and the true ones, shape (n_measures * n_cutoffs, 2)."""
        orders, sizes, gold = self.judged
        above = np.concatenate([np.zeros((len(orders), 1), np.int64), np.cumsum(gold[orders], axis=1)], axis=1)
        return np.stack([sizes, np.take_along_axis(above, sizes, axis=1)], axis=2).reshape(-1, 2)

    def _differences(self, tally: Tally) -> Iterator[Difference]:
        """Yield each pair at each n."""
        sizes, true = self._own_sample.reshape(len(self.ranked), -1, 2).transpose(2, 0, 1)
        with np.errstate(invalid="ignore"):  # a list without a judged candidate has no precision
            precision = true / sizes
        panel = self.exchanges[0]
        orders, counted, gold = self.judged
        by_exchange = [*_p_values(panel, tally), tally.counts[:, 0, TWO_SIDED]]
        if isinstance(panel, TiedRanks):
            precision = n_best_of(self.ranked, self.cutoffs)[0] / self.cutoffs
            alone = difference_sets(panel.orders, panel.cutoffs, gold, panel.pairs).reshape(-1, 4)[panel.used]
            p_fisher, *by_exchange = _largest(self.tied_orders[0], fisher(*alone.T), by_exchange, panel, tally.n_trials)
        else:
            alone = difference_sets(orders, counted, gold, self.pairs).reshape(-1, 4)
            p_fisher = fisher(*alone.T)
        a, b = (precision[place].ravel() for place in self.pairs.T)
        columns = (np.tile(self.cutoffs, len(self.pairs)), a, b, a - b, *alone.T, p_fisher, *by_exchange)
        names = np.repeat(np.array(self.candidates.measures, object)[self.pairs], len(self.cutoffs), axis=0).tolist()
        yield from (Difference(*(*own, *row, tally.n_trials)) for own, row in zip(names, _rows(*columns), strict=True))

    def _average(self, tally: Tally) -> Iterator[AverageDifference]:
        """Yield each pair by average precision."""
        panel = self.exchanges[1]
        by_exchange = [*_p_values(panel, tally), tally.counts[:, 0, TWO_SIDED]]
        if isinstance(panel, TiedRanks):
            scores = np.array([average_precision(ranked) for ranked in self.ranked])
            _, *by_exchange = _largest(self.tied_orders[1], np.empty(len(panel.scales))[panel.used], by_exchange,
                                       panel, tally.n_trials)  # fmt: skip
        else:
            scores = np.array([_of_list(ranked) for ranked in self.ranked])
        a, b = scores[self.pairs.T]
        columns = a, b, a - b, *by_exchange
        names = np.array(self.candidates.measures, object)[self.pairs].tolist()
        yield from (
            AverageDifference(*(*own, *row, tally.n_trials)) for own, row in zip(names, _rows(*columns), strict=True)
        )

    def _validation(self, drawn: Integers) -> Iterator[Validation]:
        """Yield each list's precision against those of its samples; drawn of shape (n_samples, n_lists, 2)."""
        known = np.concatenate([ranked.above[self.cutoffs] / self.cutoffs for ranked in self.ranked]).tolist()
        names = np.repeat(self.candidates.measures, len(self.cutoffs)).tolist()
        for column, (measure, precision) in enumerate(zip(names, known, strict=True)):
            n = int(self.cutoffs[column % len(self.cutoffs)])
            m, k = drawn[drawn[:, column, 0] > 0, column].T
            if len(m):
                yield self._validated(measure, n, precision, k, m)

    def _validated(self, measure: str, n: int, known: float, true: Integers, judged: Integers) -> Validation:
        confidence = self.asked.confidence
        found = dispersion(true, judged, known=known, of=n)
        low, high = list_limits(true, judged, np.full(len(true), n), confidence)
        wide = widened_interval(true, judged, confidence, found.factor)
        intervals = coverage(low / n, high / n, known, confidence)
        return Validation(measure, n, found, intervals, coverage(*wide, known, confidence))


def _largest(
    tied: TiedOrders,
    p_fisher: NDArray[np.float64],
    by_exchange: Sequence[NDArray[Any]],
    panel: TiedRanks,
    n_trials: int,
) -> Iterator[NDArray[Any]]:
    """Yield p-values and exceedances of the hypotheses tested, the largest where some order has no difference."""
    is_open = tied.is_open.ravel()
    for column, most in zip(
        (p_fisher, *(own[panel.used] for own in by_exchange)), (1.0, 1.0, 1.0, n_trials), strict=True
    ):
        yield np.where(is_open, most, column)


def _rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of columns as plain numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _of_list(ranked: RankedList) -> float:
    """Return the average precision of the list as its ties are broken."""
    at = np.flatnonzero(np.diff(ranked.above)) + 1
    return float((ranked.above[at] / at).sum() / ranked.above[-1])


def _p_values(panel: ExchangedRanks, tally: Tally) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p of each hypothesis, and adjusted over all by step-down max-T."""
    counts = tally.counts[:, 0]
    own = bound(counts[:, TWO_SIDED], tally.n_trials)
    raw = bound(counts[:, FAMILY_TAILS.index("step-down")], tally.n_trials)
    return own, np.where(panel.scales > 0, np.maximum(step_down(raw, panel.order), own), 1.0)
