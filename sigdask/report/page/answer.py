"""The card at the top: what was found, in one sentence a test set, whether it was checked, and how it is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sigdask.comparison.presented.words import standing
from sigdask.comparison.results import Results
from sigdask.comparison.table import Table

MOST_HEADLINES = 3
"""Test sets whose sentence stands in the card."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer of a test set."""

    name: str
    headline: str


def of(sets: Mapping[str, Results], table: Table) -> dict[str, Any]:
    """Return what the card's template takes."""
    first = [*sets.items()][:MOST_HEADLINES]
    return {
        "verdicts": [Headline(name, standing(results[0], results.alpha)) for name, results in first],
        "n_sets": len(sets),
        "counts": _counts(table),
        "checks": "",
        "is_checked": not table.disagrees.any(),
    }


def _counts(table: Table) -> str:
    """Count comparisons and verdicts."""
    decision = table.decision
    n = len(table)
    if n == 0:
        return "0 comparisons"
    kinds = {"significant": 1, "not significant": 0, "undecided": -1}
    said = [f"{(decision == code).sum():,} {name}" for name, code in kinds.items() if (decision == code).any()]
    return f"{n:,} comparison{'' if n == 1 else 's'}: {', '.join(said)} at {table.alpha:g}"
