"""What is counted: sums, sets and whole outputs of the systems of a test set, and families of them.

Approximate randomization, Yeh 2000 ("More accurate tests for the statistical significance of result
differences"), after Noreen 1989: exchange the outputs of each unit with probability 1/2, score again, and
count the trials whose difference is at least as extreme as the observed one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.tallies import CountingMethod, Tally


class AnyPanel(Protocol):
    """What is asked of whatever is counted: a panel of pairs and metrics, or a family of hypotheses.

    Attributes
    ----------
    manner : CountingMethod
        How its work is shared out.
    is_whole : bool
        Counted as a whole, as families are, and not pair by pair.
    """

    manner: ClassVar[CountingMethod]
    is_whole: ClassVar[bool]

    @property
    def enumerated(self) -> bool:
        """Whether trials are all arrangements instead of random ones."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of pairs and metrics; of hypotheses and, always one, of metrics."""
        ...

    @property
    def nbytes(self) -> float:
        """Size of its arrays, about."""
        ...

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count exceedances in trials `first` to `first + n_trials - 1` of a run."""
        ...

    def part(self, rows: Sequence[int] | NDArray[np.int64], columns: Sequence[int] | None = None, /) -> AnyPanel:
        """Return the panel of some of its pairs and metrics; of a family itself."""
        ...

    def digests(self) -> NDArray[np.void]:
        """Return what is counted, by content: of each pair and metric, or of a family as a whole, shape (1, 1)."""
        ...


class ComparedPanel(AnyPanel, Protocol):
    """A panel of pairs, which are compared one by one: what is asked of it for a result.

    Attributes
    ----------
    kind : str
        What its scores are: "sums", which families are made of, or what they are instead.
    """

    kind: ClassVar[str]

    @property
    def extent(self) -> tuple[int, int]:
        """Numbers of items and units, concordant ones included."""
        ...

    @property
    def n_discordant(self) -> NDArray[np.int64]:
        """Units that differ in the metric's own fields, shape (n_pairs, n_metrics)."""
        ...

    def part(self, rows: Sequence[int] | NDArray[np.int64], columns: Sequence[int] | None = None, /) -> ComparedPanel:
        """Return the panel of some of its pairs and metrics."""
        ...

    def contents_of(self, column: int, /) -> NDArray[np.uint64]:
        """Return what both systems of each pair have under a metric, by content, shape (n_pairs, 2)."""
        ...

    def enumerations(self, rows: NDArray[np.int64], column: int, /) -> Iterator[tuple[NDArray[np.int64], AnyPanel]]:
        """Yield the panels of all arrangements of some pairs under one metric, with the pairs of each.

        The pairs of one such panel have as many discordant units: its rows, in this order.
        """
        ...

    def swap_deviations(self) -> NDArray[np.float64]:
        """Return the standard deviation of the shuffled difference, shape (n_pairs, n_metrics)."""
        ...

    @property
    def scores_of_pairs(self) -> NDArray[np.float64]:
        """Observed scores of both systems of each pair, shape (n_pairs, n_metrics, 2)."""
        ...

    @property
    def tie_widths(self) -> NDArray[np.float64]:
        """How far apart the observed scores of a pair may be and still be a tie, shape (n_pairs, n_metrics)."""
        ...

    @property
    def signs(self) -> NDArray[np.int64]:
        """Wins and losses where all nonzero differences of a mean are equally large, shape (n_pairs, n_metrics, 2).

        -1 where they are not, and of scores that are no means.
        """
        ...

    @property
    def undefined(self) -> NDArray[np.float64]:
        """What a 0/0 is scored where either score of a pair holds one, else NaN, shape (n_pairs, n_metrics, 2)."""
        ...

    def is_mean(self, column: int, /) -> bool:
        """Whether a score is a mean over what no swap can change."""
        ...

    def step(self, column: int, /) -> float:
        """Return how finely scores are told apart; 0 where that is exactly."""
        ...
