"""Several labels an item: sets of labels of gold and systems, and the counts that scores of them sum.

Membership is kept sparse, an entry an item and label, sorted by label; a field is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.fields import Array, objects
from sigdask.identity import known_as

BETWEEN = "\x1f"
"""Parts the labels of a cell: ASCII's unit separator, which no label holds."""

OF_ITEMS = ("items", "correct", "tp", "predicted", "known", "gold")
OF_LABELS = ("tp", "predicted", "gold")
OF_SAMPLES = ("jaccard", "precision", "recall", "f1")
"""Scores of a single item's sets, of which a mean is taken."""


def joined(labels: Iterable[Any]) -> str:
    r"""Return a set of labels as a cell.

    Examples
    --------
    >>> joined(["b", "a", "b"])
    'a\x1fb'
    """
    return BETWEEN.join(sorted({str(label) for label in labels} - {""}))


def labels_in(cell: str) -> list[str]:
    """Return the labels of a cell."""
    return cell.split(BETWEEN) if cell else []


def sets_of(columns: Sequence[Factor], system: int) -> NDArray[Any]:
    """Return the sets of one column, as tuples."""
    column = columns[system]
    found: NDArray[Any] = objects([tuple(labels_in(cell)) for cell in column.levels.tolist()])[column.codes]
    return found


def known_labels(column: Factor) -> set[str]:
    """Return all labels of a column of cells."""
    return {label for cell in column.levels.tolist() for label in labels_in(cell)}


@known_as("LabelSetFields", "gold predicted n_items labels")
@dataclass(frozen=True, eq=False)
class LabelSetFields(Mapping[str, Array]):
    """Fields of items with sets of labels, made when asked for.

    `correct` (the sets are the same), `items`; `tp`, `predicted`, `gold`: labels of an item in both sets, and in each;
    `known`: those of the predicted that gold has anywhere; `tp[L]`, `predicted[L]`, `gold[L]` for each label L;
    `samples[KIND]` and `samples[KIND]:1`: the item's own score, where 0/0 is 0, and 1.

    Attributes
    ----------
    gold : int64 array, shape (n_entries,)
        Code of a label times n_items plus the place of an item that has it, sorted.
    predicted : tuple of int64 array
        Likewise of each system.
    n_items : int
        Items.
    labels : tuple of str
        All labels, which codes point into, those of gold first.
    """

    gold: NDArray[np.int64]
    predicted: tuple[NDArray[np.int64], ...]
    n_items: int
    labels: tuple[str, ...]

    @staticmethod
    def of(gold: Factor, predictions: Sequence[Factor], labels: Sequence[str]) -> LabelSetFields:
        """Encode columns of cells whose labels are parted by `BETWEEN`."""
        code = {label: k for k, label in enumerate(labels)}
        entries = [_entries(column, code) for column in (gold, *predictions)]
        return LabelSetFields(entries[0], tuple(entries[1:]), len(gold), tuple(labels))

    @cached_property
    def right(self) -> tuple[NDArray[np.int64], ...]:
        """The entries that gold and each system share."""
        return tuple(np.intersect1d(own, self.gold, assume_unique=True) for own in self.predicted)

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {label: k for k, label in enumerate(self.labels)}

    @cached_property
    def _known(self) -> tuple[NDArray[np.int64], ...]:
        """The entries of each system whose labels gold has."""
        end = (self.gold[-1] // self.n_items + 1) * self.n_items if len(self.gold) else 0
        return tuple(own[: np.searchsorted(own, end)] for own in self.predicted)

    def __getitem__(self, name: str) -> Array:
        if name not in self:
            raise KeyError(name)
        if name == "items":
            return np.ones((self.n_items, 1), np.int8)
        if name == "correct":
            tp, predicted, gold = self["tp"], self["predicted"], self["gold"]
            return np.asarray((tp == predicted) & (tp == gold), np.int8)
        kind, bracket, label = name.partition("[")
        if kind == "samples":
            return self._of_samples(*label.split("]", 1))
        columns = {"gold": (self.gold,), "predicted": self.predicted, "tp": self.right, "known": self._known}[kind]
        k = self._codes[label[:-1]] if bracket else None
        return np.column_stack([self._column(entries, k) for entries in columns])

    def __contains__(self, name: object) -> bool:
        kind, bracket, label = str(name).partition("[")
        if kind == "samples":
            return label.partition("]")[0] in OF_SAMPLES
        return (label[:-1] in self._codes and kind in OF_LABELS) if bracket else kind in OF_ITEMS

    def _column(self, entries: NDArray[np.int64], label: int | None) -> NDArray[Any]:
        if label is None:
            return np.bincount(entries % self.n_items, minlength=self.n_items).astype(np.int32)
        found = np.zeros(self.n_items, np.int8)
        first, end = np.searchsorted(entries, [label * self.n_items, (label + 1) * self.n_items])
        found[entries[first:end] - label * self.n_items] = 1
        return found

    def _of_samples(self, kind: str, of_nothing: str) -> NDArray[np.float64]:
        tp, predicted, gold = (self[name].astype(np.float64) for name in ("tp", "predicted", "gold"))
        above, below = {
            "jaccard": (tp, predicted + gold - tp),
            "precision": (tp, predicted + 0 * tp),
            "recall": (tp, gold + 0 * tp),
            "f1": (2 * tp, predicted + gold),
        }[kind]
        empty = below == 0
        return np.asarray(np.where(empty, float(bool(of_nothing)), above / np.where(empty, 1.0, below)))

    def __iter__(self) -> Iterator[str]:
        yield from OF_ITEMS
        yield from (f"{kind}[{label}]" for label in self.labels for kind in OF_LABELS)
        yield from (f"samples[{kind}]{end}" for kind in OF_SAMPLES for end in ("", ":1"))

    def __len__(self) -> int:
        return len(OF_ITEMS) + len(OF_LABELS) * len(self.labels) + 2 * len(OF_SAMPLES)


def _entries(column: Factor, code: Mapping[str, int]) -> NDArray[np.int64]:
    """Return label * n_items + item of each label of each cell, sorted; each different cell is taken apart once."""
    sets = [[code[label] for label in labels_in(cell)] for cell in column.levels.tolist()]
    sizes = np.array([len(own) for own in sets], np.int64)
    starts = np.cumsum(sizes) - sizes
    flat = np.array([k for own in sets for k in own], np.int64)
    codes = column.codes.astype(np.int64)
    of_items = sizes[codes]  # (n_items,)
    ends = np.cumsum(of_items)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - of_items, of_items)
    labels = flat[np.repeat(starts[codes], of_items) + within] if len(flat) else flat
    return np.sort(labels * len(column) + np.repeat(np.arange(len(column)), of_items))
