"""Panels that permute one labelling over the items, to test if its agreement with others is beyond chance.

Van Asch, "Approximate randomization" (after Noreen 1989): under the null hypothesis that one labelling is independent
of another, every order of its labels over the items is equally likely. No permutation changes how often a labelling
uses a label, so a score depends only on the number of items of each label on which both labellings agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Integers
from sigdask.metrics.forms import Form
from sigdask.randomization.kernels.labels import count_agreements
from sigdask.randomization.panels.digests import Digests, digest, digest_values
from sigdask.randomization.stream import PERMUTE, Key, get_run_word
from sigdask.randomization.tallies import TAILS, CountingMethod, Tally

TILE = 2**18
"""Number of agreements held at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class AgreementScore:
    """A score of the agreements of two labellings, and the thresholds from which it counts as extreme.

    Attributes
    ----------
    columns : int64 or float64 array, shape (n_sums, n_parts)
        Contribution of an agreement in each part of the labels to each sum.
    limits : tuple of four int or float
        Thresholds of extreme values: at least the first (greater), at most the second (less), and two-sided, at least
        the third or at most the fourth.
    form : Form or None
        Formula of the score from the sums. None if there is one sum, which is compared itself.
    fixed : int64 array, shape (n_sums,)
        The part of each sum that no permutation changes.
    """

    columns: NDArray[Any]
    limits: tuple[Any, Any, Any, Any]
    form: Form | None
    fixed: NDArray[Any]

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "agreement score", self.columns, self.limits, self.form, self.fixed

    @property
    def name(self) -> str:
        """Name of the form, for errors."""
        return getattr(self.form, "name", "")

    def compute_values(self, agreed: Integers) -> NDArray[Any]:
        """Return the score, or the sum that is compared in its place, given agreements of shape (..., n_parts)."""
        sums = agreed @ self.columns.T + self.fixed
        return np.asarray(sums[..., 0] if self.form is None else self.form.score(sums))

    def is_extreme(self, values: NDArray[Any]) -> Bools:
        """Return which scores are at least as extreme as the observed one in each tail, shape (n_tails, ...)."""
        greater, less, above, below = self.limits
        return np.stack([values >= greater, values <= less, (values >= above) | (values <= below)])

    def select_labels(self, labels: Sequence[Any]) -> AgreementScore:
        """Return the score for agreements that are counted for some labels only, one part for each."""
        return replace(self, columns=self.columns[:, labels])

    @property
    def parts(self) -> list[NDArray[np.intp]]:
        """The labels that affect the score, in groups of labels whose agreements have the same weight."""
        return group_columns(self.columns)


def group_columns(columns: NDArray[Any]) -> list[NDArray[np.intp]]:
    """Return the indices of equal columns in groups, leaving out columns of zeros."""
    kinds, kind = np.unique(columns, axis=1, return_inverse=True)
    kind = kind.reshape(-1)
    return [np.flatnonzero(kind == k) for k in range(kinds.shape[1]) if kinds[:, k].any()]


@dataclass(frozen=True, eq=False)
class PermutedPanel:
    """Labellings of one test set, a labelling that is permuted against them, and metrics of their agreement.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    starts : int64 array, shape (n_strata + 1,)
        First item of each stratum, and the number of items.
    meant : int32 array, shape (n_items,)
        Labels that are permuted within each stratum, in canonical order.
    given : int32 array, shape (n_systems, n_items)
        Labels of each labelling.
    scores : tuple of tuple of AgreementScore
        Score of each labelling under each metric. Their parts are the labels.
    """

    key: Key
    starts: Integers
    meant: NDArray[np.int32]
    given: NDArray[np.int32]
    scores: tuple[tuple[AgreementScore, ...], ...]

    manner: ClassVar[CountingMethod] = CountingMethod(grain=256, timed=256)
    is_whole: ClassVar[bool] = False
    enumerated: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of labellings and metrics."""
        return len(self.scores), len(self.scores[0])

    @property
    def metrics(self) -> tuple[AgreementScore, ...]:
        """Scores of the first labelling under each metric, where code that sends panels looks for users' functions."""
        return self.scores[0]

    @cached_property
    def parts(self) -> list[NDArray[np.intp]]:
        """The labels that affect any score, in groups of labels that have the same weight in every score."""
        return group_columns(np.concatenate([score.columns for row in self.scores for score in row]))

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count exceedances of each labelling and metric in a range of trials, the same in any partition."""
        parts, counts = self.parts, np.zeros((*self.shape, len(TAILS)), np.int64)
        part_of = np.full(self.scores[0][0].columns.shape[1], -1, np.int32)
        for k, labels in enumerate(parts):
            part_of[labels] = k
        scores = [[score.select_labels([labels[0] for labels in parts]) for score in row] for row in self.scores]
        size = max(1, TILE // max(len(self.given) * len(parts), 1))
        agreed = np.empty((min(size, n_trials), len(self.given), len(parts)), np.int64)
        key, word = np.array(self.key, np.uint32), get_run_word(run, PERMUTE)
        for start in range(0, n_trials, len(agreed)):
            block = agreed[: n_trials - start]
            count_agreements(key, word, first + start, self.starts, self.meant, self.given, part_of, block)
            for s, row in enumerate(scores):
                for m, score in enumerate(row):
                    counts[s, m] += np.count_nonzero(score.is_extreme(score.compute_values(block[:, s])), axis=1)
        return Tally(n_trials, counts)

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None) -> PermutedPanel:
        """Return the panel of some labellings and metrics."""
        selected_rows = [self.scores[int(row)] for row in rows]
        selected_scores = tuple(row if columns is None else tuple(row[m] for m in columns) for row in selected_rows)
        return replace(self, given=self.given[np.asarray(rows)], scores=selected_scores)

    def compute_digests(self) -> Digests:
        """Return the digest of each labelling under each metric, shape (n_systems, n_metrics)."""
        shared = digest((self.key, self.starts, self.meant))
        contents = ((shared, self.given[s], score) for s, row in enumerate(self.scores) for score in row)
        return digest_values(contents, self.shape)
