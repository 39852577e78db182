"""Texts of items for display, which no metric uses; they are looked up on demand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol


class ScopeNote(str):
    """A note on how files were read, shown in the first lines of an output, not below the results."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """Texts of an item: its input, the gold standard and a system's output; None if unknown."""

    asked: str | None = None
    gold: str | None = None
    given: str | None = None


NO_TEXTS = ItemTexts()


class TextLookup(Protocol):
    """Source of the texts of items."""

    def find_texts(self, ids: Collection[str], systems: Collection[str]) -> Mapping[tuple[str, str], ItemTexts]:
        """Return the texts of items by system and id, only for those that have any."""
        ...
