"""Fields that are computed on access: from labels, matches, label sets, or fields in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Texts

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
    rounding : mapping of str to tuple of float
        For fields that were read from less than float64: maximum error of each column's numbers.
    """

    names: Sequence[str]
    make: Callable[[str], Array]
    rounding: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


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
    def from_columns(gold: Texts, predictions: Sequence[Texts], labels: Sequence[str]) -> LabelFields:
        """Build the fields from columns of labels, which are encoded as positions in `labels`."""
        code = {label: k for k, label in enumerate(labels)}
        columns = [np.array([code[level] for level in c.levels], np.int32)[c.codes] for c in (gold, *predictions)]
        return LabelFields(columns[0][:, None], np.array(columns[1:]).T, tuple(labels))

    def __getitem__(self, name: str) -> Array:
        if name == "items":
            return np.ones((len(self.gold), 1), np.int8)
        if name == "correct":
            return np.asarray(self.predicted == self.gold, np.int8)
        kind, _, label = name.partition("[")
        if kind not in LABEL_FIELDS or label[:-1] not in self.labels or label[-1:] != "]":
            raise KeyError(name)
        code = self.labels.index(label[:-1])
        if kind == "gold":
            return np.asarray(self.gold == code, np.int8)
        is_predicted = self.predicted == code
        return np.asarray(is_predicted & (self.gold == code) if kind == "tp" else is_predicted, np.int8)

    def __iter__(self) -> Iterator[str]:
        yield from ("items", "correct")
        for label in self.labels:
            yield from (f"tp[{label}]", f"predicted[{label}]", f"gold[{label}]")


@dataclass(frozen=True, slots=True, eq=False)
class MatchFields(ComputedFields):
    """Fields tp, predicted and gold of matched lists, chunks or label sets, in total and for each label.

    They are computed on access.

    Attributes
    ----------
    entries : mapping of str to int array, shape (n_entries, 4)
        Nonzero entries of tp, predicted and gold: item, system, label and number.
    labels : tuple of str
        Labels by their codes; none where there are no labels.
    shape : (int, int)
        Items and systems.
    others : mapping of str to array, or to a function that makes it
        Further fields, by name.
    """

    entries: Mapping[str, NDArray[Any]]
    labels: tuple[str, ...]
    shape: tuple[int, int]
    others: Mapping[str, Any]

    def __post_init__(self) -> None:
        by_label = {kind: rows[np.argsort(rows[:, 2], kind="stable")] for kind, rows in self.entries.items()}
        object.__setattr__(self, "entries", by_label)

    def __getitem__(self, name: str) -> Array:
        if name in self.others:
            value = self.others[name]
            return np.asarray(value() if callable(value) else value)
        kind, bracket, rest = name.partition("[")
        rows = self.entries[kind]
        if bracket:
            if not rest.endswith("]") or rest[:-1] not in self.labels:
                raise KeyError(name)
            code = self.labels.index(rest[:-1])
            rows = rows[slice(*np.searchsorted(rows[:, 2], [code, code + 1]))]
        columns = 1 if kind == "gold" else self.shape[1]
        cells = rows[:, 0].astype(np.int64) * columns + rows[:, 1]
        sums = np.bincount(cells, rows[:, 3], self.shape[0] * columns)
        return sums.astype(np.min_scalar_type(-1 - int(sums.max()))).reshape(self.shape[0], columns)

    def __iter__(self) -> Iterator[str]:
        yield from (*self.others, *self.entries)
        for label in self.labels:
            yield from (f"{kind}[{label}]" for kind in self.entries)


SEPARATOR = "\x1f"
"""Separates the labels of a cell: ASCII's unit separator, which no label contains."""

LABEL_FIELDS = ("tp", "predicted", "gold")


def join_labels(labels: Iterable[Any]) -> str:
    r"""Return a set of labels as the text of one cell.

    Examples
    --------
    >>> join_labels(["b", "a", "b"])
    'a\x1fb'
    """
    return SEPARATOR.join(sorted({str(label) for label in labels} - {""}))


def split_labels(cell: str) -> tuple[str, ...]:
    """Return the labels that the text of a cell lists."""
    return tuple(cell.split(SEPARATOR)) if cell else ()


def list_labels(column: Texts) -> set[str]:
    """Return the set of all labels that the cells of a column contain."""
    return {label for cell in column.levels.tolist() for label in split_labels(cell)}


def build_set_fields(gold: Texts, predictions: Sequence[Texts], labels: Sequence[str]) -> MatchFields:
    """Return the fields of items with sets of labels, from columns of cells whose labels `SEPARATOR` separates.

    `correct` (the sets are the same), `items`; `tp`, `predicted`, `gold`: labels of an item in both sets, and in each;
    `known`: those of the predicted that gold has anywhere; `tp[L]`, `predicted[L]`, `gold[L]` for each label L;
    `samples[KIND]` and `samples[KIND]:1`: the item's own score, where 0/0 is 0, and 1.

    Parameters
    ----------
    gold : Texts
        Gold labels of each item.
    predictions : sequence of Texts
        Predicted labels.
    labels : sequence of str
        All labels, those of gold first.
    """
    code = {label: k for k, label in enumerate(labels)}
    gold_rows, *parts = (_list_entries(column, code, max(s - 1, 0)) for s, column in enumerate((gold, *predictions)))
    predicted = np.concatenate(parts)
    n_labels, n_known = len(labels), int(gold_rows[:, 2].max(initial=-1)) + 1
    keys, gold_keys = (rows[:, 0].astype(np.int64) * n_labels + rows[:, 2] for rows in (predicted, gold_rows))
    in_gold = np.isin(keys, gold_keys)
    entries = {"tp": predicted[in_gold], "predicted": predicted, "gold": gold_rows}
    shape = (len(gold), len(predictions))
    known = MatchFields({"known": predicted[predicted[:, 2] < n_known]}, (), shape, {})["known"]
    totals = MatchFields(entries, (), shape, {})
    tp, given, expected = (totals[kind].astype(np.int64) for kind in LABEL_FIELDS)
    others: dict[str, Any] = {
        "items": np.ones((len(gold), 1), np.int8),
        "correct": ((tp == given) & (tp == expected)).astype(np.int8),
        "known": known,
    }
    ratios: dict[str, Callable[[], tuple[Integers, Integers]]] = {
        "jaccard": lambda: (tp, given + expected - tp),
        "precision": lambda: (tp, given),
        "recall": lambda: (tp, expected),
        "f1": lambda: (2 * tp, given + expected),
    }
    for kind, compute_parts in ratios.items():
        others[f"samples[{kind}]"] = partial(_divide, compute_parts, 0.0)
        others[f"samples[{kind}]:1"] = partial(_divide, compute_parts, 1.0)
    return MatchFields(entries, tuple(labels), shape, others)


def _list_entries(column: Texts, code: Mapping[str, int], system: int) -> NDArray[np.int32]:
    """Return an entry of `MatchFields` for each label of each item; each distinct cell is split only once."""
    import pyarrow as pa
    from pyarrow import compute

    sets = [[code[label] for label in split_labels(cell)] for cell in column.levels.tolist()]
    lists = pa.array(sets, pa.list_(pa.int32())).take(pa.array(column.codes))
    items, labels = (np.from_dlpack(part) for part in (compute.list_parent_indices(lists), lists.flatten()))
    return np.column_stack([items, np.full(len(items), system), labels, np.ones(len(items))]).astype(np.int32)


def _divide(compute_parts: Callable[[], tuple[Integers, Integers]], empty: float) -> Floats:
    """Return the items' quotients of two numbers, with the value of 0/0."""
    above, below = compute_parts()
    return np.asarray(np.divide(above, below, out=np.full(above.shape, empty), where=below != 0))
