"""Cutoffs of rankings, the results of their evaluation, and the statistical models behind these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sigdask.errors import InputError
from sigdask.results.export import build_frame_from_rows, format_csv_rows
from sigdask.text import iter_json, to_plain

MAX_CUTOFFS = 10_000
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

    They are given as a number, as numbers, or as text: numbers separated by commas, START:STOP:STEP ranges, or both.

    Examples
    --------
    >>> convert_cutoffs("50,100"), convert_cutoffs("10:30:10,100")
    ([50, 100], [10, 20, 30, 100])
    """
    if isinstance(n, str):
        n = [number for part in n.split(",") for number in _parse_range(part.strip(), n)]
    cutoffs = sorted({int(number) for number in ([n] if isinstance(n, int) else n or ())})
    if cutoffs and cutoffs[0] < 1:
        raise InputError(f"n = {cutoffs[0]}: expected numbers of at least 1")
    if len(cutoffs) > MAX_CUTOFFS:
        raise InputError(f"n: {len(cutoffs):,} numbers, more than {MAX_CUTOFFS:,}", remedy="give fewer")
    return cutoffs


def _parse_range(part: str, text: str) -> Sequence[int]:
    numbers = part.split(":")
    if len(numbers) > 3 or not all(number.strip().isdecimal() for number in numbers):
        raise InputError(f"n = {text!r}: expected numbers as in 50,100,200, or START:STOP:STEP")
    if len(numbers) == 1:
        return [int(part)]
    start, stop, step = (*map(int, numbers), 1)[:3]
    if step < 1 or stop < start or (stop - start) // step >= MAX_CUTOFFS:
        raise InputError(f"n = {part!r}: expected START:STOP:STEP that rises, in at most {MAX_CUTOFFS:,} steps")
    return range(start, stop + 1, step)


MODELS = {
    "precision": "binomial: each of the n best is true with one probability; Clopper-Pearson interval",
    "fisher": "Fisher's exact test, two-sided, on the candidates that only one of the lists has; the sizes of both "
    "lists are fixed; each n is tested separately",
    "exchange": "each candidate's two ranks are swapped with probability 1/2, at all n jointly: the sizes of lists "
    "vary; max-T step-down over all pairs and all n",
    "average precision": "the same swaps of ranks; max-T step-down over all pairs",
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
    average_precision : float
        Average precision, the mean over all orders of tied candidates. NaN if only a sample of the candidates is
        judged.
    """

    measure: str
    higher_is_better: bool
    n_distinct: int
    average_precision: float


@dataclass(frozen=True, slots=True)
class Precision:
    """Precision and recall of the n best candidates of a measure.

    Attributes
    ----------
    measure : str
        Name of the measure.
    n : int
        Number of best candidates.
    true_positives : float
        True candidates among the n best. With ties this is a mean over all orders, which may be no whole number.
    precision, low, high : float
        true_positives / n, and the ends of its interval.
    recall, recall_low, recall_high : float
        true_positives divided by all true candidates, and the ends of its interval.
    precision_lowest, precision_highest : float
        Precision in the worst and in the best order of the candidates tied at n.
    n_tied : int
        Number of candidates with the score of the n-th one.
    """

    measure: str
    n: int
    true_positives: float
    precision: float
    low: float
    high: float
    recall: float
    recall_low: float
    recall_high: float
    precision_lowest: float
    precision_highest: float
    n_tied: int


@dataclass(frozen=True, slots=True)
class SampledPrecision:
    """Precision of the n best candidates of a measure, if only a random sample of the candidates was judged.

    Attributes
    ----------
    measure : str
        Name of the measure.
    n : int
        Number of best candidates.
    n_judged, true_judged : int
        Number of judged candidates among the n best, and of true ones among these.
    precision : float
        true_judged / n_judged, or NaN if none is judged.
    low, high : float
        Ends of the exact interval of this list's precision.
    binomial_low, binomial_high : float
        Ends of the interval of the probability that a candidate of such a list is true.
    """

    measure: str
    n: int
    n_judged: int
    true_judged: int
    precision: float
    low: float
    high: float
    binomial_low: float
    binomial_high: float


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
        Numbers of true and false candidates that are in one of the two lists alone. With ties they are those of the
        order with the largest p.
    p_fisher : float
        p of Fisher's exact test at this n alone, the largest over all orders of tied candidates.
    p_exchange, p_adjusted : float
        p of the test that swaps ranks, and the same adjusted over all pairs and n. With ties both are the largest too.
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


@dataclass(frozen=True, slots=True)
class AverageDifference:
    """Comparison of two measures by average precision; columns as in `Difference`."""

    a: str
    b: str
    average_precision_a: float
    average_precision_b: float
    difference: float
    p_value: float
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
    sampled: tuple[SampledPrecision, ...]
    differences: tuple[Difference, ...]
    average_precision: tuple[AverageDifference, ...]
    ties: str
    seed: int
    n_trials: int
    alpha: float
    confidence: float
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Return a summary: the number of measures and candidates, and each measure's average precision."""
        n = len(self.measures)
        head = (
            f"Evaluation: {n} measure{'s' * (n != 1)} of {self.n_candidates:,} candidates, {self.n_true:,} of them true"
        )
        lines = [f"  {m.measure}: average precision {m.average_precision:.4f}" for m in self.measures]
        return "\n".join([head, *lines])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with a row for each measure and n. Libraries are those of `Results.to_frame`."""
        return build_frame_from_rows([to_plain(row) for row in self.precision or self.sampled], library)

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as a dictionary of plain Python values, as JSON has them."""
        return {"kind": "rankings", **to_plain(self), "models": MODELS}

    def json_parts(self) -> Iterator[str]:
        """Yield the evaluation as JSON text, in parts."""
        return iter_json(self.as_dict())

    def csv_lines(self) -> Iterator[str]:
        """Yield the lines of a CSV table of precision and recall, beginning with the column names."""
        rows = self.precision or self.sampled
        names = [f.name for f in fields(rows[0])]
        yield format_csv_rows([names, *([*to_plain(row).values()] for row in rows)])
