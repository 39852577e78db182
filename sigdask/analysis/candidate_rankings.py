"""Rankings of candidates: precision of the n best, comparisons of measures, and their uncertainty.

Repeated samples show whether the precision of accepted candidates varies as the binomial model says. Evert 2004,
section 4: a corpus in 80 parts, each ranked and cut off alike; under the model T of N accepted candidates is Bin(N, p)
in every part. Where parts differ (subject, author), precisions vary more, and intervals miss more often.

References
----------
Evert 2004, "Significance tests for the evaluation of ranking methods", COLING. Evert & Krenn 2005, "Using small random
samples for the manual evaluation of statistical association measures".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import list_named_pairs
from sigdask.counts import UNKNOWN, Candidates, Counts
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.execution.run import count_with_options
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.options import RankingOptions, check_options, fill_options
from sigdask.randomization.families import MaxTFamily
from sigdask.randomization.panels.build import FamilyMember, build_joint_panel
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.slabs import Job
from sigdask.randomization.stream import draw_sample_ranks
from sigdask.randomization.tallies import FAMILY_TAILS, Tally
from sigdask.results.export import build_frame_from_rows, format_csv_rows
from sigdask.statistics.bounds import compute_bound, enforce_step_down
from sigdask.statistics.candidates import (
    Dispersion,
    IntervalCoverage,
    RankedList,
    average_precision,
    compute_coverage,
    compute_expected_misses,
    compute_list_limits,
    compute_outward_interval,
    compute_widened_interval,
    count_n_best,
    estimate_dispersion,
    fisher_exact,
)
from sigdask.text import describe_items, to_plain

MAX_CUTOFFS = 1_000
"""Maximum number of cutoffs of a curve."""

N_DEFAULT_CUTOFFS = 7
"""Number of cutoffs if none are given."""


def list_default_cutoffs(n_candidates: int) -> tuple[int, ...]:
    """Return the largest few of 1, 2, 5, 10, 20, ... that are smaller than the number of candidates.

    Examples
    --------
    >>> list_default_cutoffs(5102), list_default_cutoffs(8), list_default_cutoffs(1)
    ((50, 100, 200, 500, 1000, 2000, 5000), (1, 2, 5), (1,))
    """
    numbers = (factor * 10**power for power in range(len(str(n_candidates))) for factor in (1, 2, 5))
    return tuple(n for n in numbers if n < n_candidates)[-N_DEFAULT_CUTOFFS:] or (1,)


def convert_cutoffs(n: int | Sequence[int] | str | None) -> list[int]:
    """Return distinct cutoffs in ascending order, an empty list for None.

    They are given as a number, as numbers, or as text: numbers separated by commas.

    Examples
    --------
    >>> convert_cutoffs("50,100"), convert_cutoffs(range(10, 31, 10))
    ([50, 100], [10, 20, 30])
    """
    if isinstance(n, str):
        if not all(part.strip().isdecimal() for part in n.split(",")):
            raise InputError(f"n = {n!r}: expected numbers as in 50,100,200")
        n = [*map(int, n.split(","))]
    cutoffs = sorted({int(number) for number in ([n] if isinstance(n, int) else n or ())})
    if cutoffs and cutoffs[0] < 1:
        raise InputError(f"n = {cutoffs[0]}: expected numbers of at least 1")
    if len(cutoffs) > MAX_CUTOFFS:
        raise InputError(f"n: {len(cutoffs):,} numbers, more than {MAX_CUTOFFS:,}", remedy="give fewer")
    return cutoffs


MODELS = {
    "precision": "binomial: each of the n best is true with one probability; Clopper-Pearson interval",
    "fisher": "Fisher's exact test, two-sided, on the candidates that only one of the lists has; the sizes of both "
    "lists are fixed; each n is tested separately",
    "exchange": "each candidate's two ranks are swapped with probability 1/2, at all n jointly: the sizes of lists "
    "vary; max-T step-down over all pairs and all n",
    "sampled": "hypergeometric: the judged candidates are a random sample of each list; exact interval of the list's "
    "own precision",
}
"""Description of the statistical model behind each kind of result."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure, with its average precision.

    Attributes
    ----------
    measure : str
        Its name.
    higher_is_better : bool
        Whether larger scores come first.
    n_distinct : int
        Number of different scores.
    average_precision : float or None
        Average precision, the mean over all orders of tied candidates. None if only a sample of the candidates is
        judged.
    """

    measure: str
    higher_is_better: bool
    n_distinct: int
    average_precision: float | None


@dataclass(frozen=True, slots=True)
class Precision:
    """Precision and recall of the n best candidates of a measure.

    Attributes
    ----------
    measure : str
        Name of the measure.
    n, n_judged : int
        Number of best candidates, and of judged ones among these.
    true_positives : float
        True candidates among the n best. With ties this is a mean over all orders, which may be no whole number.
    precision : float or None
        true_positives / n_judged. None if none is judged.
    low, high : float
        Ends of its interval. If only a random sample of the candidates is judged, it is the exact interval of the
        precision of all n, and recall and what follows are None.
    recall, recall_low, recall_high : float or None
        true_positives divided by all true candidates, and the ends of its interval.
    precision_lowest, precision_highest : float or None
        Precision in the worst and in the best order of the candidates tied at n.
    n_tied : int or None
        Number of candidates with the score of the n-th one.
    """

    measure: str
    n: int
    n_judged: int
    true_positives: float
    precision: float | None
    low: float
    high: float
    recall: float | None
    recall_low: float | None
    recall_high: float | None
    precision_lowest: float | None
    precision_highest: float | None
    n_tied: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Comparison of two measures by precision at one n.

    Attributes
    ----------
    a, b : str
        Names of the two measures.
    n : int
        Number of best candidates.
    precision_a, precision_b, difference : float
        Precision of both measures, as in `Precision`, and the first minus the second.
    only_a_true, only_a_false, only_b_true, only_b_false : int
        Numbers of true and false candidates that are in one of the two lists alone. With ties they are rounded means
        over all orders.
    p_fisher : float
        p of Fisher's exact test at this n alone, with these numbers.
    p_exchange, p_adjusted : float
        p of the test that swaps ranks, and the same adjusted over all pairs and n.
    n_extreme, n_trials : int
        Number of exceedances of `p_exchange`, and of trials.
    """

    a: str
    b: str
    n: int
    precision_a: float
    precision_b: float
    difference: float
    only_a_true: int
    only_a_false: int
    only_b_true: int
    only_b_false: int
    p_fisher: float
    p_exchange: float
    p_adjusted: float
    n_extreme: int
    n_trials: int


@dataclass(frozen=True, slots=True, repr=False)
class RankingEvaluation:
    """Results of an evaluation of rankings; see `sigdask.api.Evaluation` for the attributes."""

    name: str
    n_candidates: int
    n_judged: int
    n_true: int
    measures: tuple[Measure, ...]
    precision: tuple[Precision, ...]
    differences: tuple[Difference, ...]
    ties: str
    seed: int
    n_trials: int
    alpha: float
    confidence: float
    notes: tuple[str, ...]

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each measure and n. Libraries are those of `Results.to_frame`."""
        return build_frame_from_rows([to_plain(row) for row in self.precision], library)

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as a dictionary of plain Python values, as JSON has them."""
        return {"kind": "rankings", **to_plain(self), "models": MODELS}

    def csv_lines(self) -> Iterator[str]:
        """Yield the lines of a CSV table of precision and recall, beginning with the column names."""
        names = [f.name for f in fields(Precision)]
        yield format_csv_rows([names, *([*to_plain(row).values()] for row in self.precision)])


TWO_SIDED = FAMILY_TAILS.index("two-sided")

TIE_RUN = 1
"""Run of the sampling stream whose first trial orders tied candidates."""

PRECISION = Ratios(((1, 0),), ((0, 1),))
"""True candidates in the list divided by all in it."""

MEAN_OF_ORDERS = (
    "precision, recall and average precision are means over all orders of tied candidates; tests count a candidate by "
    "the share of orders in which it is among the n best"
)
RANDOM_ORDER = "tied candidates stand in one random order, the same for all measures (seed {seed})"


@dataclass(frozen=True, eq=False)
class MeasureRankings:
    """The rankings of candidates by each measure, and their evaluation.

    Each candidate's two ranks are swapped at random, for all n together. So the precision of the n best is a quotient
    of sums over candidates, as of any metric: of true ones, and of all, that are among the n best. Exchangeable ranks
    are another null than Fisher's on the two difference sets, which fixes the sizes of lists.

    Attributes
    ----------
    candidates : Candidates
    options : RankingOptions
        All options, with defaults for those that are not given.
    """

    candidates: Candidates
    options: RankingOptions

    @cached_property
    def ranked_lists(self) -> tuple[RankedList, ...]:
        """The ranked list of each measure; tied candidates stand in a random order, the same for all measures."""
        candidates, is_true = self.candidates, self.candidates.gold == 1
        counts = Counts(candidates.measures, {}, len(candidates), ids=candidates.ids, name=candidates.name)
        units = SwapUnits.from_counts(counts, self.options["seed"])
        ranks = draw_sample_ranks(units.key, run=TIE_RUN, first=0, n_trials=1, n_units=units.n_units)[0]
        order = ranks[units.index]
        return tuple(RankedList.from_scores(scores, is_true, order) for scores in candidates.oriented.values())

    @cached_property
    def cutoffs(self) -> Integers:
        """The numbers n of best candidates that are evaluated."""
        n_candidates = len(self.candidates)
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
    def is_judged(self) -> Bools:
        """Which candidates are judged."""
        return np.asarray(self.candidates.gold != UNKNOWN)

    def compute_shares(self, n: int) -> Floats:
        """Return the share of orders in which each judged candidate is among the n best, (n_judged, n_measures).

        If only a sample is judged, these are 0 or 1, in one random order of ties.
        """
        shares = np.empty((len(self.candidates), len(self.ranked_lists)))
        for m, ranked in enumerate(self.ranked_lists):
            ranks = np.arange(len(shares))
            start, stop = (ranks, ranks + 1) if not self.is_judged.all() else (ranked.start, ranked.stop)
            shares[ranked.order, m] = np.clip((n - start) / (stop - start), 0.0, 1.0)
        return shares[self.is_judged]

    @cached_property
    def family(self) -> MaxTFamily:
        """The hypotheses that two measures have equal precision, for each pair and n, tested by shared swaps."""
        candidates, is_judged = self.candidates, self.is_judged
        is_true = candidates.gold[is_judged] == 1
        ids = None if candidates.ids is None else [candidates.ids[k] for k in np.flatnonzero(is_judged).tolist()]
        members = []
        for n in self.cutoffs.tolist():
            listed = self.compute_shares(n)
            fields = {"true": listed * is_true[:, None], "listed": listed}
            counts = Counts(candidates.measures, fields, len(is_true), ids=ids, name=candidates.name)
            units = SwapUnits.from_counts(counts, self.options["seed"])
            metric = BoundMetric(f"precision of the {n} best", ("true", "listed"), PRECISION)
            members.append(FamilyMember(build_joint_panel(counts, units, metric, self.pairs), 0))
        n_cutoffs, n_pairs = len(self.cutoffs), len(self.pairs)
        parts = [np.tile(np.arange(n_cutoffs), n_pairs), np.repeat(np.arange(n_pairs), n_cutoffs)]
        return MaxTFamily(tuple(members), np.column_stack(parts)[:, None, :])

    @cached_property
    def jobs(self) -> list[Job]:
        """The job that swaps the ranks of candidates; none for one measure."""
        label = f"rankings{f' of {self.candidates.name}' if self.candidates.name else ''}"
        return [Job(self.family, self.options["trials"], label=label)] if len(self.pairs) else []

    def build_evaluation(self, tallies: Sequence[Tally]) -> RankingEvaluation:
        """Return the results of the evaluation from the tallies of `jobs`."""
        candidates, options = self.candidates, self.options
        return RankingEvaluation(
            name=candidates.name,
            n_candidates=len(candidates),
            n_judged=int(self.is_judged.sum()),
            n_true=int((candidates.gold == 1).sum()),
            measures=tuple(self._iter_measures()),
            precision=tuple(self._iter_precisions()),
            differences=tuple(self._iter_differences(tallies[0])) if tallies else (),
            ties=RANDOM_ORDER.format(seed=options["seed"]) if not self.is_judged.all() else MEAN_OF_ORDERS,
            seed=options["seed"],
            n_trials=tallies[0].n_trials if tallies else 0,
            alpha=options["alpha"],
            confidence=options["confidence"],
            notes=candidates.notes,
        )

    def _iter_measures(self) -> Iterator[Measure]:
        candidates = self.candidates
        for measure, ranked in zip(candidates.measures, self.ranked_lists, strict=True):
            average = None if not self.is_judged.all() else average_precision(ranked)
            yield Measure(measure, measure not in candidates.smaller, ranked.n_distinct, average)

    def _iter_precisions(self) -> Iterator[Precision]:
        """Yield the precision of each n best, estimated from the judged candidates if these are a sample."""
        n, confidence = self.cutoffs, self.options["confidence"]
        n_true = np.full(len(n), (self.candidates.gold == 1).sum())
        for measure, ranked in zip(self.candidates.measures, self.ranked_lists, strict=True):
            if not self.is_judged.all():
                m, k = np.cumsum(self.is_judged[ranked.order], dtype=np.int64)[n - 1], ranked.above[n]
                low, high = compute_list_limits(k, m, n, confidence)
                precision, *unknown = np.full((7, len(n)), None)
                precision[m > 0] = k[m > 0] / m[m > 0]
                columns = (n, m, k, precision, low / n, high / n, *unknown)
            else:
                best = count_n_best(ranked, n)
                limits, recall_limits = (compute_outward_interval(best.mean, of, confidence) for of in (n, n_true))
                tie_range = best.lowest / n, best.highest / n, best.n_tied
                columns = (n, n, best.mean, best.mean / n, *limits, best.mean / n_true, *recall_limits, *tie_range)
            yield from (Precision(measure, *row) for row in _iter_rows(*columns))

    def _iter_differences(self, tally: Tally) -> Iterator[Difference]:
        """Yield the difference in n-best precision of each pair of measures at each n, with its tests."""
        is_true, (a, b), family = self.candidates.gold[self.is_judged] == 1, self.pairs.T, self.family
        shape = len(self.pairs), len(self.cutoffs)
        precision, exclusive = np.empty((2, *shape)), np.empty((4, *shape), np.int64)
        for c, n in enumerate(self.cutoffs.tolist()):
            shares = self.compute_shares(n)
            with np.errstate(invalid="ignore"):  # a list without a judged candidate has no precision
                precisions = shares[is_true].sum(axis=0) / shares.sum(axis=0)
            precision[:, :, c] = precisions[a], precisions[b]
            for side, (own, other) in enumerate(((a, b), (b, a))):
                alone = np.maximum(shares[:, own] - shares[:, other], 0.0)
                true, listed = (np.rint(part.sum(axis=0)) for part in (alone[is_true], alone))
                exclusive[2 * side : 2 * side + 2, :, c] = true, listed - true
        cells = exclusive.reshape(4, -1)
        n_extreme, n_trials = tally.counts[:, 0, TWO_SIDED], tally.n_trials
        p, raw = (compute_bound(tally.counts[:, 0, tail], n_trials) for tail in (TWO_SIDED, family.joint_tail))
        adjusted = np.where(family.scales > 0, np.maximum(enforce_step_down(raw, family.order), p), 1.0)
        scores = precision.reshape(2, -1)
        columns = *scores, scores[0] - scores[1], *cells, fisher_exact(*cells), p, adjusted, n_extreme
        rows = _iter_rows(np.tile(self.cutoffs, len(self.pairs)), *columns)
        names = np.repeat(np.array(self.candidates.measures, object)[self.pairs], len(self.cutoffs), axis=0).tolist()
        yield from (Difference(*(*pair, *row, n_trials)) for pair, row in zip(names, rows, strict=True))


def evaluate(candidates: Candidates, options: RankingOptions) -> RankingEvaluation:
    """Evaluate the rankings of candidates by some measures; `sigdask.rankings` describes the options."""
    settings = fill_options(RankingOptions, options)
    candidates.check_gold()
    lists = MeasureRankings(candidates, settings)
    return lists.build_evaluation(count_with_options(lists.jobs, settings) if lists.jobs else [])


def _iter_rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of several arrays as tuples of plain numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


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
    cutoff : float
        Lowest accepted score, or the highest one if smaller scores are better.
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
    """

    measure: str
    cutoff: float
    sample: tuple[str, ...]
    accepted: Integers
    true: Integers
    dispersion: Dispersion
    intervals: IntervalCoverage
    widened: IntervalCoverage

    def __str__(self) -> str:
        return f"{self.measure} = {self.cutoff:g}"

    def as_dict(self, confidence: float) -> dict[str, Any]:
        """Return plain values, as JSON has them, with the counts, the precision and its interval of each sample."""
        limits = compute_widened_interval(self.true, self.accepted, confidence)
        names = ("sample", "accepted", "true", "precision", "low", "high")
        rows = _iter_rows(np.array(self.sample), self.accepted, self.true, self.true / self.accepted, *limits)
        parts = {"dispersion": self.dispersion, "intervals": self.intervals, "widened": self.widened}
        samples = [dict(zip(names, row, strict=True)) for row in rows]
        return {"measure": self.measure, "cutoff": self.cutoff, **to_plain(parts), "samples": samples}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the validation as a dictionary of plain Python values, as JSON has them."""
        return {
            "kind": "rankings-validation",
            "n_samples": self.n_samples,
            "confidence": self.confidence,
            "validations": [acceptance.as_dict(self.confidence) for acceptance in self.found],
            "notes": list(self.notes),
            "models": {"precision": MODEL},
        }


def validate(
    samples: Mapping[str, Candidates],
    *,
    cutoffs: Mapping[str, float],
    confidence: float = 0.95,
) -> RepeatedSamples:
    """Test whether precision varies over repeated samples as the binomial model says.

    Parameters
    ----------
    samples : mapping of str to Candidates
        Candidates by the name of the sample. All samples have the same measures.
    cutoffs : mapping of str to float
        Lowest accepted score of each measure.
    confidence : float
        Confidence level of the intervals, by default 0.95.

    Returns
    -------
    RepeatedSamples
        Its attribute `found` has a result for each measure and cutoff.

    Raises
    ------
    InputError
        There are too few samples, one lacks a measure, or a candidate is not judged.

    References
    ----------
    Evert 2004, "Significance tests for the evaluation of ranking methods", COLING.

    Examples
    --------
    >>> parts = {f"part {k}": Candidates([1, 0, k % 2, 0], {"G2": [9, 8, 7, 1]}) for k in range(4)}
    >>> [found] = validate(parts, cutoffs={"G2": 5.0}).found
    >>> found.accepted.tolist(), found.true.tolist(), found.dispersion.precision
    ([3, 3, 3, 3], [1, 2, 1, 2], 0.5)
    """
    check_options(RankingOptions, {"confidence": confidence})
    if not cutoffs:
        raise InputError("validation: give cutoffs (--cutoff MEASURE SCORE)")
    if len(samples) < MIN_REPEATED_SAMPLES:
        raise InputError(f"validation needs {MIN_REPEATED_SAMPLES} repeated samples or more, found {len(samples)}")
    for name, sample in samples.items():
        if (sample.gold == UNKNOWN).any():
            raise InputError(f"sample {name!r}: some candidates are not judged; validation needs a judgement of each")
    options = fill_options(RankingOptions, {})
    lists = {name: MeasureRankings(sample, options) for name, sample in samples.items()}
    found = tuple(_validate(measure, cutoff, lists, confidence) for measure, cutoff in cutoffs.items())
    notes = tuple(
        f"{acceptance}: {describe_items(empty, 'sample')} accept{'s' * (len(empty) == 1)} no candidate, left out"
        for acceptance in found
        if (empty := [name for name in samples if name not in {*acceptance.sample}])
    )
    return RepeatedSamples(len(samples), confidence, found, notes)


def _count_accepted(name: str, lists: MeasureRankings, measure: str, cutoff: float) -> tuple[int, int]:
    """Return how many candidates of a sample are accepted, and how many of them are true; ties are in random order."""
    candidates = lists.candidates
    if measure not in candidates.measures:
        raise InputError(f"sample {name!r}: no measure {measure!r}; measures: {', '.join(candidates.measures)}")
    index = candidates.measures.index(measure)
    lowest = -cutoff if measure in candidates.smaller else cutoff
    n = int((candidates.oriented[measure] >= lowest).sum())
    return n, int(lists.ranked_lists[index].above[n])


def _validate(measure: str, cutoff: float, lists: Mapping[str, MeasureRankings], confidence: float) -> AcceptanceSet:
    """Return how precision varies over samples."""
    names = [*lists]
    counts = np.array([_count_accepted(name, own, measure, cutoff) for name, own in lists.items()], np.int64)
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
        tuple(name for name, any_is in zip(names, some_are, strict=True) if any_is),
        accepted,
        true,
        spread,
        compute_coverage(*limits, spread.precision, confidence, expected=expected),
        compute_coverage(*widened_limits, spread.precision, confidence),
    )
