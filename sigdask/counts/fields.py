"""Fields that are computed on access: from labels, label sets, or fields in another order.

Membership in label sets is kept sparse: one entry for an item and a label, sorted by label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
        Function from the index of a system to its column.
    """

    n: int
    make: Callable[[int], Array]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < self.n:
            raise IndexError(k)
        return self.make(k).astype(object)


class ComputedFields(Mapping[str, Array]):
    """Arrays by name, most of them computed on access."""

    __slots__ = ()

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, eq=False)
class LazyColumns(ComputedFields):
    """Columns by name, built on access, so that not all are held at once.

    Attributes
    ----------
    names : sequence of str
        In their order.
    make : callable
        Function from a name to its column.
    """

    names: Sequence[str]
    make: Callable[[str], Array]

    def __getitem__(self, name: str) -> Array:
        return self.make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


@dataclass(frozen=True, slots=True, eq=False)
class ReorderedFields(ComputedFields):
    """Fields with the items in another order."""

    fields: Mapping[str, Array]
    order: NDArray[np.intp]

    def __getitem__(self, name: str) -> Array:
        return np.asarray(self.fields[name][self.order])

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    @property
    def rounding(self) -> Mapping[str, tuple[float, ...]]:
        """Maximum error of the numbers in each column of a field, independent of the order of the items."""
        return get_rounding(self.fields)


def get_rounding(fields: Mapping[str, Array]) -> Mapping[str, tuple[float, ...]]:
    """Return each column's maximum error by field, for fields that were read from less than float64."""
    rounding: Mapping[str, tuple[float, ...]] = getattr(fields, "rounding", {})
    return rounding


@dataclass(frozen=True, slots=True, eq=False)
class LabelFields(ComputedFields):
    """Fields of items with one label each, computed from label codes on access.

    They are `correct`, `items`, and `tp[L]`, `predicted[L]`, `gold[L]` for each label L. Dense arrays of all would take
    labels x items x systems numbers.

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
            return np.asarray(self.predicted == self.gold, np.int8)
        kind, _, label = name.partition("[")
        if kind not in LABEL_FIELDS or label[-1:] != "]" or label[:-1] not in self.labels:
            raise KeyError(name)
        code = self.labels.index(label[:-1])
        columns = {"gold": (self.gold,), "predicted": (self.predicted,), "tp": (self.predicted, self.gold)}[kind]
        mask: NDArray[np.bool_] = reduce(np.logical_and, (column == code for column in columns))
        return mask.astype(np.int8)

    def __iter__(self) -> Iterator[str]:
        yield from ("items", "correct")
        for label in self.labels:
            yield from (f"tp[{label}]", f"predicted[{label}]", f"gold[{label}]")


@dataclass(frozen=True, slots=True, eq=False)
class MatchFields(ComputedFields):
    """Fields tp, predicted and gold of matched lists or chunks, in total and for each label, computed on access.

    Attributes
    ----------
    entries : mapping of str to int64 array, shape (n_entries, 4)
        Nonzero entries of tp, predicted and gold: item, system, label and number.
    labels : tuple of str
        Labels by their codes; none where there are no labels.
    shape : (int, int)
        Items and systems.
    others : mapping of str to array
        Further fields, by name.
    """

    entries: Mapping[str, NDArray[np.int64]]
    labels: tuple[str, ...]
    shape: tuple[int, int]
    others: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        if name in self.others:
            return self.others[name]
        kind, bracket, rest = name.partition("[")
        rows = self.entries[kind]
        if bracket:
            if not rest.endswith("]") or rest[:-1] not in self.labels:
                raise KeyError(name)
            rows = rows[rows[:, 2] == self.labels.index(rest[:-1])]
        columns = 1 if kind == "gold" else self.shape[1]
        sums = np.bincount(rows[:, 0] * columns + rows[:, 1], rows[:, 3], self.shape[0] * columns)
        return sums.astype(np.int32).reshape(self.shape[0], columns)

    def __iter__(self) -> Iterator[str]:
        yield from (*self.others, *self.entries)
        for label in self.labels:
            yield from (f"{kind}[{label}]" for kind in self.entries)


def _recode_labels(column: Factor, code: Mapping[str, np.int32]) -> NDArray[np.int32]:
    codes: NDArray[np.int32] = np.array([code[level] for level in column.levels], np.int32)[column.codes]
    return codes


SEPARATOR = "\x1f"
"""Separates the labels of a cell: ASCII's unit separator, which no label contains."""

ITEM_FIELDS = ("items", "correct", "tp", "predicted", "known", "gold")
LABEL_FIELDS = ("tp", "predicted", "gold")
SAMPLE_SCORES = ("jaccard", "precision", "recall", "f1")
"""Scores of the samples of a single item, which are averaged."""


def join_labels(labels: Iterable[Any]) -> str:
    r"""Return a set of labels as the text of one cell.

    Examples
    --------
    >>> join_labels(["b", "a", "b"])
    'a\x1fb'
    """
    return SEPARATOR.join(sorted({str(label) for label in labels} - {""}))


def split_labels(cell: str) -> list[str]:
    """Return the labels that the text of a cell lists."""
    return cell.split(SEPARATOR) if cell else []


def get_label_sets(columns: Sequence[Factor], system: int) -> NDArray[Any]:
    """Return the label sets of one column as tuples."""
    column = columns[system]
    sets: NDArray[Any] = to_object_array([tuple(split_labels(cell)) for cell in column.levels.tolist()])[column.codes]
    return sets


def list_labels(column: Factor) -> set[str]:
    """Return the set of all labels that the cells of a column contain."""
    return {label for cell in column.levels.tolist() for label in split_labels(cell)}


@dataclass(frozen=True, eq=False)
class LabelSetFields(ComputedFields):
    """Fields of items with sets of labels, computed from (label, item) entries on access.

    `correct` (the sets are the same), `items`; `tp`, `predicted`, `gold`: labels of an item in both sets, and in each;
    `known`: those of the predicted that gold has anywhere; `tp[L]`, `predicted[L]`, `gold[L]` for each label L;
    `samples[KIND]` and `samples[KIND]:1`: the item's own score, where 0/0 is 0, and 1.

    Attributes
    ----------
    gold : int64 array, shape (n_entries,)
        For each label of each item: the label's code times n_items plus the index of the item, sorted.
    predicted : tuple of int64 array
        The same for each system.
    n_items : int
        Items.
    labels : tuple of str
        All labels, to which codes refer, those of gold first.
    """

    gold: NDArray[np.int64]
    predicted: tuple[NDArray[np.int64], ...]
    n_items: int
    labels: tuple[str, ...]

    @staticmethod
    def from_columns(gold: Factor, predictions: Sequence[Factor], labels: Sequence[str]) -> LabelSetFields:
        """Build the fields from columns of cells whose labels are separated by `SEPARATOR`."""
        code = {label: k for k, label in enumerate(labels)}
        entries = [_encode_entries(column, code) for column in (gold, *predictions)]
        return LabelSetFields(entries[0], tuple(entries[1:]), len(gold), tuple(labels))

    @cached_property
    def true_positives(self) -> tuple[NDArray[np.int64], ...]:
        """The (label, item) entries that each system shares with gold."""
        return tuple(np.intersect1d(entries, self.gold, assume_unique=True) for entries in self.predicted)

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {label: k for k, label in enumerate(self.labels)}

    @cached_property
    def _known_entries(self) -> tuple[NDArray[np.int64], ...]:
        """The (label, item) entries of each system whose label occurs anywhere in gold."""
        end = (self.gold[-1] // self.n_items + 1) * self.n_items if len(self.gold) else 0
        return tuple(entries[: np.searchsorted(entries, end)] for entries in self.predicted)

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
            return self._score_samples(*label.split("]", 1))
        columns = {
            "gold": (self.gold,),
            "predicted": self.predicted,
            "tp": self.true_positives,
            "known": self._known_entries,
        }[kind]
        k = self._codes[label[:-1]] if bracket else None
        return np.column_stack([self._build_column(entries, k) for entries in columns])

    def __contains__(self, name: object) -> bool:
        kind, bracket, label = str(name).partition("[")
        if kind == "samples":
            return label.partition("]")[0] in SAMPLE_SCORES
        return (label[:-1] in self._codes and kind in LABEL_FIELDS) if bracket else kind in ITEM_FIELDS

    def _build_column(self, entries: NDArray[np.int64], label: int | None) -> NDArray[Any]:
        if label is None:
            return np.bincount(entries % self.n_items, minlength=self.n_items).astype(np.int32)
        has_label = np.zeros(self.n_items, np.int8)
        start, end = np.searchsorted(entries, [label * self.n_items, (label + 1) * self.n_items])
        has_label[entries[start:end] - label * self.n_items] = 1
        return has_label

    def _score_samples(self, kind: str, suffix: str) -> NDArray[np.float64]:
        tp, predicted, gold = (self[name].astype(np.float64) for name in ("tp", "predicted", "gold"))
        numerator, denominator = {
            "jaccard": (tp, predicted + gold - tp),
            "precision": (tp, predicted + 0 * tp),
            "recall": (tp, gold + 0 * tp),
            "f1": (2 * tp, predicted + gold),
        }[kind]
        empty = denominator == 0
        return np.asarray(np.where(empty, float(bool(suffix)), numerator / np.where(empty, 1.0, denominator)))

    def __iter__(self) -> Iterator[str]:
        yield from ITEM_FIELDS
        yield from (f"{kind}[{label}]" for label in self.labels for kind in LABEL_FIELDS)
        yield from (f"samples[{kind}]{end}" for kind in SAMPLE_SCORES for end in ("", ":1"))


def _encode_entries(column: Factor, code: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the (label, item) entries of a column as sorted numbers: label code * n_items + item.

    Each distinct cell is split only once.
    """
    sets = [[code[label] for label in split_labels(cell)] for cell in column.levels.tolist()]
    sizes = np.array([len(label_codes) for label_codes in sets], np.int64)
    starts = np.cumsum(sizes) - sizes
    flat = np.array([k for label_codes in sets for k in label_codes], np.int64)
    codes = column.codes.astype(np.int64)
    item_sizes = sizes[codes]  # (n_items,)
    ends = np.cumsum(item_sizes)
    offsets = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - item_sizes, item_sizes)
    labels = flat[np.repeat(starts[codes], item_sizes) + offsets] if len(flat) else flat
    return np.sort(labels * len(column) + np.repeat(np.arange(len(column)), item_sizes))
