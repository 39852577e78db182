"""Candidates to be ranked: their gold labels, and the scores that each measure gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.checks import canonicalize_column, check_unique
from sigdask.counts.precision import check_lengths
from sigdask.counts.texts import Texts
from sigdask.errors import InputError

UNKNOWN = -1
"""Value in `gold` of a candidate without a judgement."""


class CanonicalOrder(NamedTuple):
    """The order of candidates that the random stream uses: by canonical id, or by position if there are no ids.

    Attributes
    ----------
    units : Texts or int
        Ids in canonical order, or their number if candidates have no ids.
    place : int64 array, shape (n_candidates,)
        Index of the candidate at each position of the canonical order.
    """

    units: Texts | int
    place: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """A list of candidates, such as word pairs, with a judgement and the scores of measures that rank them.

    Attributes
    ----------
    measures : tuple of str
        Names of the measures.
    gold : int8 array, shape (n_candidates,)
        1 if a candidate is true, 0 if false, `UNKNOWN` if it is not judged.
    scores : float64 array, shape (n_measures, n_candidates)
        Scores of each measure. All must be finite.
    smaller : frozenset of str
        Measures for which a smaller score is better.
    ids : Texts or None
        Unique ids.
    name : str
        Name of the test set. It also determines the random stream.
    notes : tuple of str
        Notes on how the candidates were read.
    """

    measures: tuple[str, ...]
    gold: NDArray[np.int8]
    scores: NDArray[np.float64]
    smaller: frozenset[str] = frozenset()
    ids: Sequence[str] | None = None
    name: str = ""
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(
        gold: Sequence[bool | int | None],
        scores: Mapping[str, Sequence[float]],
        *,
        smaller: Collection[str] = (),
        ids: Sequence[str] | None = None,
        name: str = "",
        notes: Sequence[str] = (),
    ) -> Candidates:
        """Make candidates from columns, and check them.

        Parameters
        ----------
        gold : sequence of bool, length n_candidates
            Whether each candidate is true. None or NaN if it is not judged.
        scores : mapping of str to sequence of float
            Scores of each measure, one for each candidate.
        smaller : collection of str
            Measures for which a smaller score is better.
        ids : sequence of str, optional
            Unique ids, by default positions.
        name : str
            Name of the test set, by default empty. It also determines the random stream.
        notes : sequence of str
            Notes for reports.

        Returns
        -------
        Candidates
            Give them to `sigdask.rankings`.

        Raises
        ------
        InputError
            The candidates cannot be ranked. The message names the problem and the candidate.
        """
        codes = np.array([UNKNOWN if value is None or value != value else int(value) for value in gold], np.int8)  # noqa: PLR0124
        check_lengths({"gold": len(codes), **{measure: len(column) for measure, column in scores.items()}})
        matrix = np.array([*scores.values()], np.float64).reshape(len(scores), len(codes))
        return Candidates(tuple(scores), codes, matrix, frozenset(smaller), ids, name, tuple(notes))

    def __post_init__(self) -> None:
        if not self.measures:
            raise InputError("no measure: give a column of scores to rank candidates by")
        check_unique(self.measures, "measure")
        for measure in sorted(self.smaller - {*self.measures}):
            raise InputError(f"smaller: no measure {measure!r}; measures: {', '.join(self.measures)}")
        if self.ids is not None:
            object.__setattr__(self, "ids", Texts.from_values(self.ids))
            check_lengths({"candidates": len(self), "ids": len(self.ids)})
            check_unique(self.ids, "id")
        if (odd := ~np.isin(self.gold, (0, 1, UNKNOWN))).any():
            k = int(np.argmax(odd))
            raise InputError(f"gold of {self._called(k)} is {self.gold[k]}: must be 0 or 1")
        if not np.isfinite(self.scores).all():
            m, k = np.argwhere(~np.isfinite(self.scores))[0].tolist()
            raise InputError(
                f"{self.measures[m]!r} of {self._called(k)} is {self.scores[m, k]}: must be a finite number"
            )

    def __len__(self) -> int:
        return len(self.gold)

    def check_gold(self) -> None:
        """Raise InputError if no candidate is judged, or if all are true or all false."""
        labels = self.gold[self.gold != UNKNOWN]
        if not len(labels) or labels.all() or not labels.any():
            state = "is judged" if not len(labels) else f"is {'true' if labels.all() else 'false'}"
            subject = "no candidate" if not len(labels) else f"every one of {len(labels):,} candidates"
            raise InputError(
                f"{subject} {state}: precision needs both true and false candidates", remedy="check the gold column"
            )

    def _called(self, k: int) -> str:
        """Return the name of a candidate in errors: its id, or its position."""
        return f"candidate {k + 1}" if self.ids is None else f"candidate {self.ids[k]!r}"

    @property
    def is_sampled(self) -> bool:
        """Whether only some candidates are judged."""
        return bool((self.gold == UNKNOWN).any())

    @cached_property
    def oriented(self) -> NDArray[np.float64]:
        """Scores with signs such that larger ones are better, shape (n_measures, n_candidates)."""
        is_smaller = np.array([measure in self.smaller for measure in self.measures])
        return np.where(is_smaller[:, None], -self.scores, self.scores)

    @cached_property
    def named(self) -> CanonicalOrder:
        """Order of the candidates in the random stream; the order in the file matters only without ids."""
        if self.ids is None:
            return CanonicalOrder(len(self), np.arange(len(self)))
        forms = canonicalize_column(self.ids)
        return CanonicalOrder(forms[forms.sorted[0]], forms.sorted[0])
