"""Counts of list elements that match the gold standard: exact matches, or one-to-one entity matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Array

LabelCounts = Mapping[str, int]
MatchCounter = Callable[[Any, Any], tuple[LabelCounts, LabelCounts]]
"""What is right and what was given -> matches by label, given by label."""


def count_exact_matches(gold: frozenset[Any], predicted: frozenset[Any]) -> tuple[LabelCounts, LabelCounts]:
    """Count predicted spans that are gold spans, and all predicted spans, by label."""
    return Counter(span[0] for span in gold & predicted), Counter(span[0] for span in predicted)


def count_entity_matches(
    gold: Mapping[str, Sequence[frozenset[str]]], predicted: Mapping[str, Sequence[frozenset[str]]]
) -> tuple[LabelCounts, LabelCounts]:
    """Return, by slot, how many predicted entities match gold entities one-to-one, and how many are predicted.

    A given entity fits a gold one if all its mentions are mentions of it.

    Examples
    --------
    >>> gold = {"Victim": [frozenset({"he", "ann"}), frozenset({"ann"})]}
    >>> count_entity_matches(gold, {"Victim": [frozenset({"ann"}), frozenset({"he"})]})
    ({'Victim': 2}, {'Victim': 2})
    """
    matched = {slot: compute_matching_size(gold.get(slot, ()), entities) for slot, entities in predicted.items()}
    return matched, {slot: len(entities) for slot, entities in predicted.items()}


def compute_matching_size(gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]]) -> int:
    """Return the size of a largest one-to-one matching between predicted and gold entities (Kuhn's algorithm)."""
    fits = [[k for k, entity in enumerate(gold) if candidate <= entity] for candidate in predicted]
    holder: dict[int, int] = {}

    def place(candidate: int, seen: set[int]) -> bool:
        for k in fits[candidate]:
            if k not in seen:
                seen.add(k)
                if k not in holder or place(holder[k], seen):
                    holder[k] = candidate
                    return True
        return False

    return sum(place(candidate, set()) for candidate in range(len(predicted)))


@dataclass(frozen=True, slots=True, eq=False)
class ListFields(Mapping[str, Array]):
    """Fields tp, predicted and gold, in total and for each label, computed on access.

    Attributes
    ----------
    entries : mapping of str to int64 array, shape (n_entries, 4)
        Of tp, predicted and gold: item, system, label and number; only what is not zero.
    labels, others : tuple of str
        Labels of the gold data, and those that only systems use; none where there is only "".
    shape : (int, int)
        Items and systems.
    """

    entries: Mapping[str, NDArray[np.int64]]
    labels: tuple[str, ...]
    others: tuple[str, ...]
    shape: tuple[int, int]

    @staticmethod
    def from_outputs(gold: Sequence[Any], systems: Sequence[Sequence[Any]], matches: MatchCounter) -> ListFields:
        """Return the fields that count, for each item and system, the matches of the system's list with gold."""
        codes: dict[str, int] = {}
        rows_by_field: dict[str, list[tuple[int, int, int, int]]] = {"tp": [], "predicted": [], "gold": []}

        def keep(field: str, item: int, system: int, sizes: LabelCounts) -> None:
            for label, number in sizes.items():
                if number:
                    rows_by_field[field].append((item, system, codes.setdefault(label, len(codes)), number))

        for item, gold_list in enumerate(gold):
            keep("gold", item, 0, matches(gold_list, gold_list)[1])
        n_gold = len(codes)
        for system, column in enumerate(systems):
            for item, (gold_list, predicted) in enumerate(zip(gold, column, strict=True)):
                matched, counted = matches(gold_list, predicted)
                keep("tp", item, system, matched)
                keep("predicted", item, system, counted)
        ordered = [sorted(part) for part in (list(codes)[:n_gold], list(codes)[n_gold:])]
        positions = {label: k for k, label in enumerate(ordered[0] + ordered[1])}
        renumbered = np.array([positions[label] for label in codes], np.int64)
        entries = {field: np.array(rows, np.int64).reshape(-1, 4) for field, rows in rows_by_field.items()}
        for rows in entries.values():
            rows[:, 2] = renumbered[rows[:, 2]] if len(rows) else rows[:, 2]
        labelled = set(codes) != {""}
        label_groups = (tuple(ordered[0]), tuple(ordered[1])) if labelled else ((), ())
        return ListFields(entries, *label_groups, (len(gold), len(systems)))

    def __getitem__(self, name: str) -> Array:
        kind, bracket, rest = name.partition("[")
        if kind not in self.entries:
            raise KeyError(name)
        rows = self.entries[kind]
        if bracket:
            every = self.labels + self.others
            if not rest.endswith("]") or rest[:-1] not in every:
                raise KeyError(name)
            rows = rows[rows[:, 2] == every.index(rest[:-1])]
        columns = 1 if kind == "gold" else self.shape[1]
        sums = np.bincount(rows[:, 0] * columns + rows[:, 1], rows[:, 3], self.shape[0] * columns)
        return sums.astype(np.int32).reshape(self.shape[0], columns)

    def __iter__(self) -> Iterator[str]:
        yield from self.entries
        for label in self.labels + self.others:
            yield from (f"{kind}[{label}]" for kind in self.entries)

    def __len__(self) -> int:
        return 3 * (1 + len(self.labels) + len(self.others))
