"""Units in readable form: their names, with prompt, gold standard and outputs of their items where available."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts import Counts
from sigdask.counts.item_texts import NO_TEXTS, ItemTexts
from sigdask.randomization.panels.sums import SwapUnits

MOST_ITEMS = 3
"""Items of a unit whose texts are shown."""

MOST_CHARACTERS, MOST_LISTED = 400, 60
"""Of one text, and parts of one list."""

CUT = " […]"

CACHED_COLUMNS = 2
"""Systems whose outputs are held at a time."""


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """Texts of one item of a unit, shortened where they are long; None where the data lack them.

    Attributes
    ----------
    name : str
        Its id, or its position.
    prompt : str or None
        What was asked: a source text, a prompt.
    gold : tuple of str
        What was right: references, labels.
    a, b : str
        What the two systems gave.
    """

    name: str
    prompt: str | None
    gold: tuple[str, ...]
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class FieldNames:
    """What the data call an item's input and its gold standard."""

    prompt: str
    gold: str


@dataclass(frozen=True, slots=True)
class UnitDetails:
    """One unit with some of its items.

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
    """The units of one test set, from whose addresses their readable details are made.

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
        """Items ordered by unit, and the index at which the items of each unit begin."""
        order = np.argsort(self.units.index, kind="stable")
        return order, np.searchsorted(self.units.index[order], np.arange(self.units.n_units + 1))

    @property
    def counts(self) -> Counts:
        """The test set."""
        return self.comparisons.counts

    def list_details(self, k: int, addresses: Iterable[int], scores: NDArray[np.float64]) -> tuple[UnitDetails, ...]:
        """Return the details of units in comparison `k`; `scores` of the two systems have shape (n_units, 2)."""
        comparisons = self.comparisons
        pair = int(comparisons.a[k]), int(comparisons.b[k])
        subset, has_item = (
            comparisons.masks[int(comparisons.subset.codes[k])],
            comparisons.metrics[int(comparisons.metric[k])].held,
        )
        mask = self.counts.in_common(pair, subset, has_item)
        order, starts = self._by_address
        details = []
        for address, unit_scores in zip(addresses, scores, strict=True):
            items = order[starts[address] : starts[address + 1]]
            items = items[mask[items]].tolist()
            if self._are_rankings:  # too long to be read
                a, b = map(format_value, unit_scores)
                item_details: tuple[ItemDetails, ...] = (ItemDetails(self._get_unit_name(items[0]), None, (), a, b),)
            else:
                item_details = tuple(
                    self._build_item(item, pair) for item in self._sort_by_difference(items, pair)[:MOST_ITEMS]
                )
            details.append(UnitDetails(self._get_unit_name(items[0]), len(items), item_details))
        return tuple(details)

    def _sort_by_difference(self, items: list[int], pair: tuple[int, int]) -> list[int]:
        """Return the items of a unit, beginning with items on which the two outputs differ."""
        if len(items) <= MOST_ITEMS or self.counts.outputs is None:
            return items
        a, b = (self._get_outputs(system) for system in pair)
        return sorted(items, key=lambda item: bool(a[item] == b[item]))

    def _get_unit_name(self, item: int) -> str:
        unit = self.counts.unit
        return _get_id(self.counts, item) if unit == "item" else self.counts.group(unit)[item]

    def _build_item(self, item: int, pair: tuple[int, int]) -> ItemDetails:
        a, b = (self._get_output(system, item) for system in pair)
        outputs = self.counts.outputs
        prompt = None if outputs is None or outputs.asked is None else outputs.asked[item]
        return ItemDetails(
            _get_id(self.counts, item), None if prompt is None else format_value(prompt), self._get_gold(item), a, b
        )

    def _get_output(self, system: int, item: int) -> str | None:
        column = self._get_outputs(system)
        return None if column is None else format_value(column[item])

    def _get_gold(self, item: int) -> tuple[str, ...]:
        outputs = self.counts.outputs
        if outputs is None or outputs.gold is None:
            return ()
        answer = outputs.gold[item]
        is_several = isinstance(answer, tuple) and self._is_text
        return tuple(map(format_value, answer)) if is_several else (format_value(answer),)

    @property
    def _are_rankings(self) -> bool:
        """Whether outputs are ranked lists of documents."""
        return "topics" in self.counts.fields

    @property
    def _is_text(self) -> bool:
        """Whether the gold standard consists of references of a text."""
        return "segments" in self.counts.fields

    @property
    def field_names(self) -> FieldNames:
        """The names of an item's input and gold standard in these data."""
        return FieldNames("source", "reference") if self._is_text else FieldNames("asked", "right")

    def _get_outputs(self, system: int) -> Any:
        """Return the outputs of a system, None if there are none; those of the last two systems are cached."""
        outputs, cache = self.counts.outputs, self._outputs_cache
        if outputs is None:
            return None
        cache[system] = cache.pop(system) if system in cache else outputs.systems[system]
        if len(cache) > CACHED_COLUMNS:
            cache.pop(next(iter(cache)))
        return cache[system]

    @cached_property
    def _outputs_cache(self) -> dict[int, Any]:
        return {}


def add_texts(unit: UnitDetails, pair: tuple[str, str], texts: Mapping[tuple[str, str], ItemTexts]) -> UnitDetails:
    """Return the unit with item texts that were looked up for two systems in place of those in the data."""
    items = []
    for item in unit.items:
        a, b = (texts.get((system, item.name), NO_TEXTS) for system in pair)
        prompt, gold = (next(filter(None, candidates), None) for candidates in ((a.asked, b.asked), (a.gold, b.gold)))
        items.append(
            replace(
                item,
                prompt=item.prompt if prompt is None else _shorten_prompt(prompt),
                gold=item.gold if gold is None else (format_value(gold),),
                a=item.a if a.given is None else format_value(a.given),
                b=item.b if b.given is None else format_value(b.given),
            )
        )
    return replace(unit, items=tuple(items))


def _shorten_prompt(text: str) -> str:
    """Return a prompt, shortened to its end if it is long, as the question is usually at the end."""
    return text if len(text) <= MOST_CHARACTERS else CUT.strip() + " " + text[-(MOST_CHARACTERS - len(CUT)) :]


def _get_id(counts: Counts, item: int) -> str:
    return str(item + 1) if counts.ids is None else counts.ids[item]


def format_value(value: Any) -> str:
    """Return an output or a gold standard as text, visibly shortened where it is long.

    Examples
    --------
    >>> format_value("a cat"), format_value(True), format_value(("B", "O")), format_value(0.25)
    ('a cat', 'yes', 'B O', '0.25')
    >>> format_value(frozenset({"b", "a"})), format_value({"d1": 1, "d0": 0})
    ('a, b', 'd0: 0, d1: 1')
    >>> format_value("x" * 500) == "x" * 396 + " […]"
    True
    """
    text = _format_plain(value)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - len(CUT)] + CUT


def _format_plain(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return _join_some(
            ", ", (f"{_format_plain(key)}: {_format_plain(item)}" for key, item in sorted(value.items())), len(value)
        )
    if isinstance(value, (set, frozenset)):
        return _join_some(", ", sorted(map(_format_plain, value)), len(value))
    if isinstance(value, (list, tuple, np.ndarray)):
        return _join_some(" ", map(_format_plain, value), len(value))
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)[: MOST_CHARACTERS + 1]


def _join_some(separator: str, parts: Iterable[str], n: int) -> str:
    from itertools import islice

    joined = separator.join(islice(parts, MOST_LISTED))
    return joined + CUT if n > MOST_LISTED else joined
