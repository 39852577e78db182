"""Fields that are computed on access: from labels, or from fields with the items in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.identity import known_as

Array = NDArray[Any]


def to_object_array(values: Sequence[Any]) -> Array:
    """Return an array with one object per item, even if the objects are sequences.

    Examples
    --------
    >>> to_object_array([(1, 2), (3, 4)]).shape
    (2,)
    """
    column = np.empty(len(values), object)
    column[:] = values
    return column


@dataclass(frozen=True, eq=False)
class LazyOutputs(Sequence[Array]):
    """Columns of outputs, one per system, built on access because only black-box metrics need them.

    Attributes
    ----------
    n : int
        Number of systems.
    make : callable
        From the place of a system to its column, of the items' own values.
    """

    n: int
    make: Callable[[int], Array]

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, k: int) -> Array: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[Array, ...]: ...
    def __getitem__(self, k: int | slice) -> Array | tuple[Array, ...]:
        if isinstance(k, slice):
            return tuple(self[s] for s in range(*k.indices(self.n)))
        if not -self.n <= k < self.n:
            raise IndexError(k)
        return self.make(k % self.n).astype(object)


@known_as("Reordered", "fields order")
@dataclass(frozen=True, slots=True, eq=False)
class ReorderedFields(Mapping[str, Array]):
    """Fields with the items in another order."""

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
        """How far the numbers in each column of a field may be off; another order of items does not change it."""
        return get_rounding(self.fields)


def get_rounding(fields: Mapping[str, Array]) -> Mapping[str, tuple[float, ...]]:
    """Return, by field, how far each column's numbers may be off; only fields read from less than float64 have any."""
    rounding: Mapping[str, tuple[float, ...]] = getattr(fields, "rounding", {})
    return rounding


@known_as("LabelFields", "gold predicted labels")
@dataclass(frozen=True, slots=True, eq=False)
class LabelFields(Mapping[str, Array]):
    """Fields of items with one label each, computed from label codes on access.

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
    def from_columns(gold: Factor, predictions: Sequence[Factor], labels: Sequence[str]) -> LabelFields:
        """Build the fields from columns of labels, which are encoded as positions in `labels`."""
        code = {label: np.int32(k) for k, label in enumerate(labels)}
        predicted = np.empty((len(gold), len(predictions)), np.int32, order="F")
        for s, column in enumerate(predictions):
            predicted[:, s] = _recode_labels(column, code)
        return LabelFields(_recode_labels(gold, code)[:, None], predicted, tuple(labels))

    def __getitem__(self, name: str) -> Array:
        if name == "items":
            return np.ones((len(self.gold), 1), np.int8)
        if name == "correct":
            return _to_int8(self.predicted == self.gold)
        kind, bracket, label = name.partition("[")
        if not bracket or not label.endswith("]") or label[:-1] not in self.labels:
            raise KeyError(name)
        code = self.labels.index(label[:-1])
        if kind == "gold":
            return _to_int8(self.gold == code)
        if kind == "predicted":
            return _to_int8(self.predicted == code)
        if kind == "tp":
            return _to_int8((self.predicted == code) & (self.gold == code))
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from ("items", "correct")
        for label in self.labels:
            yield from (f"tp[{label}]", f"predicted[{label}]", f"gold[{label}]")

    def __len__(self) -> int:
        return 2 + 3 * len(self.labels)


def _recode_labels(column: Factor, code: Mapping[str, np.int32]) -> NDArray[np.int32]:
    codes: NDArray[np.int32] = np.array([code[level] for level in column.levels], np.int32)[column.codes]
    return codes


def _to_int8(mask: NDArray[np.bool_]) -> NDArray[np.int8]:
    return mask.astype(np.int8)
