"""Texts of items that readers are shown and no metric takes: looked up when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol


class FirstLine(str):
    """A note on how files were read that stands in the first lines of an output, not below the results."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """What was asked in an item, what was right, and what a system gave; None of what is not known."""

    asked: str | None = None
    gold: str | None = None
    given: str | None = None


NOTHING = ItemTexts()


class TextLookup(Protocol):
    """Where texts of items are found."""

    def told(self, ids: Collection[str], systems: Collection[str]) -> Mapping[tuple[str, str], ItemTexts]:
        """Return texts by system and id of some items and systems, of those that have any."""
        ...
