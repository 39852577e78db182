"""Results of an evaluation of rankings, and the statistical models behind their numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from io import StringIO
from itertools import chain
from typing import Any

from sigdask.results.export import build_frame_from_rows
from sigdask.statistics.candidates.repeated_samples import Dispersion, IntervalCoverage
from sigdask.text import iter_json, to_plain

MODELS = {
    "precision": "binomial: each of the n best is true with one probability; Clopper-Pearson interval",
    "fisher": "Fisher's exact test, two-sided, on the candidates that one list has and the other has not: the sizes of "
    "both lists are fixed; of each n for itself",
    "exchange": "each candidate's two ranks are exchanged with probability 1/2, at all n jointly: the sizes of lists "
    "vary; max-T step-down over all pairs and all n",
    "average precision": "the same exchange of ranks; max-T step-down over all pairs",
    "sampled": "hypergeometric: the judged candidates are a random sample of each list; exact interval of the list's "
    "own precision",
}
"""Which model stands behind which numbers."""


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
        Different scores.
    average_precision : float
        Mean over all orders of tied candidates, or of the list as its ties are broken; NaN where only a sample is
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
    n : int
    true_positives : float
        True candidates; a mean over the orders of those tied at n may be no whole number.
    precision, low, high : float
        Of n, and its interval.
    recall, recall_low, recall_high : float
        Of all true candidates, likewise.
    precision_lowest, precision_highest : float
        In the worst and the best order of the candidates tied at n.
    n_tied : int
        Candidates with the score of the n-th.
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
    n : int
    n_judged, true_judged : int
        Judged candidates of the list, and the true ones of them.
    precision : float
        Of those judged, extrapolated to the list; NaN where none is.
    low, high : float
        Interval of the list's own precision.
    binomial_low, binomial_high : float
        Interval of the probability that a candidate of such a list is true.
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
        The measures.
    n : int
    precision_a, precision_b, difference : float
        Means over all orders of tied candidates, as in `Precision`, or of the lists as their ties are broken.
    only_a_true, only_a_false, only_b_true, only_b_false : int
        Candidates that one list alone has, in the order of tied candidates that is least favourable to the difference.
    p_fisher : float
        Pointwise, the largest over all orders of tied candidates.
    p_exchange, p_adjusted : float
        By exchange of ranks, and over all pairs and n together; likewise.
    n_extreme, n_trials : int
        Exceedances of p_exchange.
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


@dataclass(frozen=True, slots=True)
class Validation:
    """How the precision of a measure's n best varies over repeated samples, compared with the binomial model.

    Attributes
    ----------
    measure : str
    n : int
    dispersion : Dispersion
    intervals : IntervalCoverage
        Of intervals under the model.
    widened : IntervalCoverage
        Of intervals widened by the overdispersion that was found.
    """

    measure: str
    n: int
    dispersion: Dispersion
    intervals: IntervalCoverage
    widened: IntervalCoverage


@dataclass(frozen=True, slots=True, repr=False)
class RankingEvaluation:
    """Results of an evaluation of rankings; attributes as in `sigdask.api.Evaluation`."""

    name: str
    n_candidates: int
    n_judged: int
    n_true: int
    measures: tuple[Measure, ...]
    precision: tuple[Precision, ...]
    sampled: tuple[SampledPrecision, ...]
    differences: tuple[Difference, ...]
    average_precision: tuple[AverageDifference, ...]
    validation: tuple[Validation, ...]
    ties: str
    seed: int
    n_trials: int
    n_samples: int
    sample_size: int
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
        """Return a data frame, one row a measure and n; libraries as of `Results.to_frame`."""
        return build_frame_from_rows([to_plain(row) for row in self.precision or self.sampled], library)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object of the evaluation."""
        return {"kind": "rankings", **to_plain(self), "models": MODELS}

    def json_parts(self) -> Iterator[str]:
        """Yield the JSON text of the evaluation in parts."""
        return iter_json(self.as_dict())

    def csv_lines(self) -> Iterator[str]:
        """Yield the lines of a CSV table of precision and recall, beginning with the column names."""
        rows = self.precision or self.sampled
        yield from iter_csv_lines([f.name for f in fields(rows[0])], ([*to_plain(row).values()] for row in rows))


def iter_csv_lines(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of a CSV table, beginning with the column names."""
    for row in chain([names], rows):
        buffer = StringIO()
        csv.writer(buffer, lineterminator="\n").writerow(row)
        yield buffer.getvalue()
