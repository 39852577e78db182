"""Texts of items for display, which are looked up on demand; no metric uses them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol


class ScopeNote(str):
    """A note on how files were read that is printed in the first lines of an output, not below the results."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """The texts of an item: its input, the gold standard and a system's output, each None if unknown."""

    asked: str | None = None
    gold: str | None = None
    given: str | None = None


NO_TEXTS = ItemTexts()


class TextLookup(Protocol):
    """Source of the texts of items."""

    def find_texts(self, ids: Collection[str], systems: Collection[str]) -> Mapping[tuple[str, str], ItemTexts]:
        """Return the texts of items by system and id; items without texts are left out."""
        ...
