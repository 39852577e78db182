"""Fields that are made when they are asked for: of labels, and in another order of the items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import known_as

Array = NDArray[Any]


def objects(values: Sequence[Any]) -> Array:
    """Return an array of one object an item, whatever these are made of.

    Examples
    --------
    >>> objects([(1, 2), (3, 4)]).shape
    (2,)
    """
    column = np.empty(len(values), object)
    column[:] = values
    return column


@known_as("Reordered", "fields order")
@dataclass(frozen=True, slots=True, eq=False)
class Reordered(Mapping[str, Array]):
    """Fields whose items stand in another order."""

    fields: Mapping[str, Array]
    order: NDArray[np.intp]

    def __getitem__(self, name: str) -> Array:
        return np.asarray(self.fields[name][self.order])

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def rounding(self) -> Mapping[str, tuple[float, ...]]:
        """How far numbers may lie from those that were meant, which no order changes."""
        return rounding_of(self.fields)


def rounding_of(fields: Mapping[str, Array]) -> Mapping[str, tuple[float, ...]]:
    """Return of fields that came in less than float64 how far the numbers of each column may be off; see `Numbers`."""
    found: Mapping[str, tuple[float, ...]] = getattr(fields, "rounding", {})
    return found


@known_as("LabelFields", "gold predicted labels")
@dataclass(frozen=True, slots=True, eq=False)
class LabelFields(Mapping[str, Array]):
    """Fields of labelled items, made from label codes when asked for.

    `correct`, `items`, and `tp[L]`, `predicted[L]`, `gold[L]` for each label L: a dense array of
    all of them would cost labels x items x systems.

    Attributes
    ----------
    gold : int32 array, shape (n_items, 1)
        Codes into `labels`.
    predicted : int32 array, shape (n_items, n_systems)
        Codes into `labels`.
    labels : tuple of str
        All labels, of gold and systems.
    """

    gold: NDArray[np.int32]
    predicted: NDArray[np.int32]
    labels: tuple[str, ...]

    @staticmethod
    def of(gold: Array, predictions: Sequence[Array], labels: Sequence[str]) -> LabelFields:
        """Encode object arrays of labels."""
        code = {label: np.int32(k) for k, label in enumerate(labels)}
        columns = [np.array([code[p] for p in column], dtype=np.int32) for column in (gold, *predictions)]
        return LabelFields(columns[0][:, None], np.column_stack(columns[1:]), tuple(labels))

    def __getitem__(self, name: str) -> Array:
        if name == "items":
            return np.ones((len(self.gold), 1), np.int8)
        if name == "correct":
            return _bits(self.predicted == self.gold)
        kind, bracket, label = name.partition("[")
        if not bracket or not label.endswith("]") or label[:-1] not in self.labels:
            raise KeyError(name)
        code = self.labels.index(label[:-1])
        if kind == "gold":
            return _bits(self.gold == code)
        if kind == "predicted":
            return _bits(self.predicted == code)
        if kind == "tp":
            return _bits((self.predicted == code) & (self.gold == code))
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from ("items", "correct")
        for label in self.labels:
            yield from (f"tp[{label}]", f"predicted[{label}]", f"gold[{label}]")

    def __len__(self) -> int:
        return 2 + 3 * len(self.labels)


def _bits(mask: NDArray[np.bool_]) -> NDArray[np.int8]:
    return mask.astype(np.int8)
