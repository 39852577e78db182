"""Counting what is right in lists, by label: exact matches, or one-to-one matches of entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Array

Sizes = Mapping[str, int]
Matches = Callable[[Any, Any], tuple[Sizes, Sizes]]
"""What is right and what was given -> matches by label, given by label."""


def exact_matches(right: frozenset[Any], given: frozenset[Any]) -> tuple[Sizes, Sizes]:
    """Count spans that are gold spans, and all spans given, by label."""
    return Counter(span[0] for span in right & given), Counter(span[0] for span in given)


def one_to_one(
    right: Mapping[str, Sequence[frozenset[str]]], given: Mapping[str, Sequence[frozenset[str]]]
) -> tuple[Sizes, Sizes]:
    """Count entities in a largest one-to-one matching, and all entities given, by slot.

    A given entity fits a gold one if all its mentions are mentions of it.

    Examples
    --------
    >>> gold = {"Victim": [frozenset({"he", "ann"}), frozenset({"ann"})]}
    >>> one_to_one(gold, {"Victim": [frozenset({"ann"}), frozenset({"he"})]})
    ({'Victim': 2}, {'Victim': 2})
    """
    matched = {slot: largest_matching(right.get(slot, ()), entities) for slot, entities in given.items()}
    return matched, {slot: len(entities) for slot, entities in given.items()}


def largest_matching(right: Sequence[frozenset[str]], given: Sequence[frozenset[str]]) -> int:
    """Return the size of a largest matching, by augmenting paths (Kuhn)."""
    fits = [[k for k, entity in enumerate(right) if own <= entity] for own in given]
    holder: dict[int, int] = {}

    def place(own: int, seen: set[int]) -> bool:
        for k in fits[own]:
            if k not in seen:
                seen.add(k)
                if k not in holder or place(holder[k], seen):
                    holder[k] = own
                    return True
        return False

    return sum(place(own, set()) for own in range(len(given)))


@dataclass(frozen=True, slots=True, eq=False)
class ListFields(Mapping[str, Array]):
    """Fields tp, predicted and gold, in all and of each label, made when asked for.

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
    def of(gold: Sequence[Any], systems: Sequence[Sequence[Any]], matches: Matches) -> ListFields:
        """Count the matches of all items and systems."""
        codes: dict[str, int] = {}
        found: dict[str, list[tuple[int, int, int, int]]] = {"tp": [], "predicted": [], "gold": []}

        def keep(field: str, item: int, system: int, sizes: Sizes) -> None:
            for label, number in sizes.items():
                if number:
                    found[field].append((item, system, codes.setdefault(label, len(codes)), number))

        for item, right in enumerate(gold):
            keep("gold", item, 0, matches(right, right)[1])
        n_gold = len(codes)
        for system, column in enumerate(systems):
            for item, (right, given) in enumerate(zip(gold, column, strict=True)):
                both, own = matches(right, given)
                keep("tp", item, system, both)
                keep("predicted", item, system, own)
        ordered = [sorted(part) for part in (list(codes)[:n_gold], list(codes)[n_gold:])]
        place = {label: k for k, label in enumerate(ordered[0] + ordered[1])}
        renumbered = np.array([place[label] for label in codes], np.int64)
        entries = {field: np.array(rows, np.int64).reshape(-1, 4) for field, rows in found.items()}
        for rows in entries.values():
            rows[:, 2] = renumbered[rows[:, 2]] if len(rows) else rows[:, 2]
        labelled = set(codes) != {""}
        named = (tuple(ordered[0]), tuple(ordered[1])) if labelled else ((), ())
        return ListFields(entries, *named, (len(gold), len(systems)))

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
