"""Units as a reader knows them: their ids, and what was right and given in their items, where the data have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts import Counts
from sigdask.counts.shown import NOTHING, ItemTexts
from sigdask.randomization.panels.sums import SwapUnits

MOST_ITEMS = 3
"""Items of a unit whose texts are shown."""

MOST_CHARACTERS, MOST_LISTED = 400, 60
"""Of one text, and parts of one list."""

CUT = " […]"

KEPT = 2
"""Systems whose outputs are held at a time."""


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """One item of a unit: texts, cut where they are long; None where the data do not have them.

    Attributes
    ----------
    name : str
        Its id, or its position.
    asked : str or None
        What was asked: a source text, a prompt.
    gold : tuple of str
        What was right: references, labels.
    a, b : str
        What the two systems gave.
    """

    name: str
    asked: str | None
    gold: tuple[str, ...]
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class FieldNames:
    """What is asked, and what is right, in the words of the data."""

    asked: str
    gold: str


@dataclass(frozen=True, slots=True)
class UnitDetails:
    """One unit.

    Attributes
    ----------
    name : str
        What its items have in the column that is exchanged; of single items their id or position.
    n_items : int
        Of both systems.
    items : tuple of ItemDetails
        Some of them.
    """

    name: str
    n_items: int
    items: tuple[ItemDetails, ...]


@dataclass(frozen=True, eq=False)
class UnitIndex:
    """The units of one exchange, found by their addresses.

    Attributes
    ----------
    comparisons : Comparisons
        What is compared.
    units : SwapUnits
        What is exchanged.
    """

    comparisons: Comparisons
    units: SwapUnits

    @cached_property
    def _by_address(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Items in the order of their units, and where those of each unit begin."""
        order = np.argsort(self.units.index, kind="stable")
        return order, np.searchsorted(self.units.index[order], np.arange(self.units.n_units + 1))

    @property
    def counts(self) -> Counts:
        """The test set."""
        return self.comparisons.counts

    def named(self, k: int, addresses: Iterable[int], scores: NDArray[np.float64]) -> tuple[UnitDetails, ...]:
        """Return units of comparison `k`, in which its systems score so much, shape (n_units, 2)."""
        own = self.comparisons
        pair = int(own.a[k]), int(own.b[k])
        subset, held = own.masks[int(own.subset.codes[k])], own.metrics[int(own.metric[k])].held
        mask = self.counts.in_common(pair, subset, held)
        order, starts = self._by_address
        found = []
        for address, own_scores in zip(addresses, scores, strict=True):
            items = order[starts[address] : starts[address + 1]]
            items = items[mask[items]].tolist()
            if self._are_rankings:  # too long to be read
                a, b = map(text_of, own_scores)
                some: tuple[ItemDetails, ...] = (ItemDetails(self._name(items[0]), None, (), a, b),)
            else:
                some = tuple(self._item(item, pair) for item in self._unlike(items, pair)[:MOST_ITEMS])
            found.append(UnitDetails(self._name(items[0]), len(items), some))
        return tuple(found)

    def _unlike(self, items: list[int], pair: tuple[int, int]) -> list[int]:
        """Return the items of a unit, those in which the outputs differ first."""
        if len(items) <= MOST_ITEMS or self.counts.outputs is None:
            return items
        a, b = (self._column(system) for system in pair)
        return sorted(items, key=lambda item: bool(a[item] == b[item]))

    def _name(self, item: int) -> str:
        unit = self.counts.unit
        return _id(self.counts, item) if unit == "item" else self.counts.group(unit)[item]

    def _item(self, item: int, pair: tuple[int, int]) -> ItemDetails:
        a, b = (self._given(system, item) for system in pair)
        outputs = self.counts.outputs
        asked = None if outputs is None or outputs.asked is None else outputs.asked[item]
        return ItemDetails(_id(self.counts, item), None if asked is None else text_of(asked), self._gold(item), a, b)

    def _given(self, system: int, item: int) -> str | None:
        column = self._column(system)
        return None if column is None else text_of(column[item])

    def _gold(self, item: int) -> tuple[str, ...]:
        outputs = self.counts.outputs
        if outputs is None or outputs.gold is None:
            return ()
        right = outputs.gold[item]
        several = isinstance(right, tuple) and self._is_text
        return tuple(map(text_of, right)) if several else (text_of(right),)

    @property
    def _are_rankings(self) -> bool:
        """Whether outputs are ranked lists of documents."""
        return "topics" in self.counts.fields

    @property
    def _is_text(self) -> bool:
        """Whether what is right are references of a text."""
        return "segments" in self.counts.fields

    @property
    def called(self) -> FieldNames:
        """What the data call what is asked and right."""
        return FieldNames("source", "reference") if self._is_text else FieldNames("asked", "right")

    def _column(self, system: int) -> Any:
        """Return a system's outputs, which some formats make when they are asked for: the last two are kept."""
        outputs, kept = self.counts.outputs, self._columns
        if outputs is None:
            return None
        kept[system] = kept.pop(system) if system in kept else outputs.systems[system]
        if len(kept) > KEPT:
            kept.pop(next(iter(kept)))
        return kept[system]

    @cached_property
    def _columns(self) -> dict[int, Any]:
        return {}


def with_texts(unit: UnitDetails, pair: tuple[str, str], texts: Mapping[tuple[str, str], ItemTexts]) -> UnitDetails:
    """Return a unit with the texts that were looked up of two systems in place of what the data had."""
    items = []
    for item in unit.items:
        a, b = (texts.get((system, item.name), NOTHING) for system in pair)
        asked, gold = (next(filter(None, own), None) for own in ((a.asked, b.asked), (a.gold, b.gold)))
        items.append(
            replace(
                item,
                asked=item.asked if asked is None else _end_of(asked),
                gold=item.gold if gold is None else (text_of(gold),),
                a=item.a if a.given is None else text_of(a.given),
                b=item.b if b.given is None else text_of(b.given),
            )
        )
    return replace(unit, items=tuple(items))


def _end_of(text: str) -> str:
    """Return a prompt; of a long one its end, where the question stands."""
    return text if len(text) <= MOST_CHARACTERS else CUT.strip() + " " + text[-(MOST_CHARACTERS - len(CUT)) :]


def _id(counts: Counts, item: int) -> str:
    return str(item + 1) if counts.ids is None else counts.ids[item]


def text_of(value: Any) -> str:
    """Return what a system gave, or what was right, as text, visibly cut where it is long.

    Examples
    --------
    >>> text_of("a cat"), text_of(True), text_of(("B", "O")), text_of(0.25)
    ('a cat', 'yes', 'B O', '0.25')
    >>> text_of(frozenset({"b", "a"})), text_of({"d1": 1, "d0": 0})
    ('a, b', 'd0: 0, d1: 1')
    >>> text_of("x" * 500) == "x" * 396 + " […]"
    True
    """
    text = _written(value)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - len(CUT)] + CUT


def _written(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return _listed(", ", (f"{_written(key)}: {_written(own)}" for key, own in sorted(value.items())), len(value))
    if isinstance(value, (set, frozenset)):
        return _listed(", ", sorted(map(_written, value)), len(value))
    if isinstance(value, (list, tuple, np.ndarray)):
        return _listed(" ", map(_written, value), len(value))
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)[: MOST_CHARACTERS + 1]


def _listed(between: str, parts: Iterable[str], n: int) -> str:
    from itertools import islice

    shown = between.join(islice(parts, MOST_LISTED))
    return shown + CUT if n > MOST_LISTED else shown
