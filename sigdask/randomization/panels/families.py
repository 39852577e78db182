"""Members of families of hypotheses: weighted metrics of panels.

A hypothesis is a weighted sum of differences of scores: one pair by one metric on one test set or
subset, or the mean of a pair's differences over several sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import known_as
from sigdask.randomization.panels.digests import Digests, digest, mark_widened, pack_digests
from sigdask.randomization.panels.sums import Panel

SIDES = {"two-sided": 0, "greater": 1, "less": -1}
"""What a family's statistic is: |T|, T or -T."""


@known_as("Member", "panel metric weight")
@dataclass(frozen=True, slots=True, eq=False)
class FamilyMember:
    """One metric of one panel, and the weight of its score in the family."""

    panel: Panel
    metric: int
    weight: float = 1.0


def compute_family_digest(family: Any, members: Sequence[FamilyMember]) -> Digests:
    """Return the digest of a family as a whole, shape (1, 1)."""
    marks = [mark for member in members for mark in mark_widened(member.panel, member.metric)]
    return pack_digests([bytes.fromhex(digest((family, *marks) if marks else family))]).reshape(1, 1)


def iter_chunks(order: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """Yield the hypotheses of an order in consecutive parts of at most `size`."""
    for start in range(0, len(order), size):
        yield order[start : start + size]
