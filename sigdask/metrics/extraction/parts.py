"""What is missing, cut into parts that take a second or two, and put together again as systems are finished.

A part is some items of several systems, so that what a counter makes of the gold items is made once for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Array
from sigdask.metrics.extraction.asked import Extraction
from sigdask.metrics.extraction.telling import Extracting, Tell

PART_SECONDS = 2.0
"""How long a part takes at most, about: between two of them progress is told."""

GROUP_SECONDS = 20.0
"""Work on systems that are finished together, about: what a kill costs."""

PROBED, PROBED_MORE = 5, 64
PROBE_SECONDS = 0.25
"""Items that are timed, those of middle length first, and more where they are quick; for about this long at most."""

BESIDE_TEXT = 20
"""What an item costs beside its length, in characters."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some items of some systems, as they travel to whoever counts them."""

    extraction: Extraction
    systems: tuple[list[Any], ...]
    gold: list[Any]

    def count(self) -> list[Array]:
        """Return the statistics of each system, shape (n_items, n_fields)."""
        return self.extraction.count(self.systems, self.gold)


class Executor(Protocol):
    """Counts parts, here or elsewhere."""

    @property
    def n(self) -> int:
        """How many it counts at the same time."""
        ...

    def __call__(self, parts: Sequence[Part], seconds: float) -> Iterator[tuple[int, list[Array]]]:
        """Yield the number of each part and what it counted, as they finish; `seconds` is what all take, about."""
        ...


class Here:
    """Counts one part after the other in this process."""

    n = 1

    def __call__(self, parts: Sequence[Part], seconds: float) -> Iterator[tuple[int, list[Array]]]:  # noqa: ARG002
        """Yield what each part counted, in their order."""
        return ((number, part.count()) for number, part in enumerate(parts))


@dataclass(frozen=True, slots=True, eq=False)
class Missing:
    """Systems whose statistics nobody has.

    Attributes
    ----------
    extraction : Extraction
        What is counted.
    keys : tuple of str
        Under which the statistics of each system are kept.
    outputs : tuple of object array, shape (n_items,)
        Of each system.
    gold : object array, shape (n_items,)
        What is right.
    """

    extraction: Extraction
    keys: tuple[str, ...]
    outputs: tuple[Array, ...]
    gold: Array

    @property
    def weights(self) -> NDArray[np.float64]:
        """What outputs cost beside each other, shape (n_systems, n_items)."""
        lengths = [[len(output) for output in outputs] for outputs in self.outputs]
        return (np.array(lengths, np.float64) + BESIDE_TEXT) ** self.extraction.power

    def part(self, systems: Sequence[int], items: slice | NDArray[np.intp]) -> Part:
        """Return some items of some systems."""
        return Part(self.extraction, tuple(self.outputs[s][items].tolist() for s in systems), self.gold[items].tolist())

    def seconds(self, weights: NDArray[np.float64]) -> float:
        """Time a few items, and say what all take in one process, about."""
        n_items = len(self.gold)
        order = np.argsort(weights[0], kind="stable")
        self.part([0], order[:1]).count()  # imports what it needs
        spent = weighed = 0.0
        probed = _spread(n_items, PROBED)
        for k in order[probed[np.argsort(abs(probed - n_items // 2), kind="stable")]]:
            spent += _timed(self.part([0], np.array([k])))
            weighed += weights[0, k]
            if spent > PROBE_SECONDS:
                break
        more = int(min(PROBED_MORE, PROBED * PROBE_SECONDS / spent))
        if more > PROBED:
            some = order[_spread(n_items, more)]
            systems = range(min(len(self.keys), PROBED if more == PROBED_MORE else 1))
            spent, weighed = _timed(self.part(systems, some)), weights[: len(systems), some].sum()
        return float(spent * weights.sum() / weighed)


def _spread(n: int, most: int) -> NDArray[np.intp]:
    """Return the middles of equal shares of a range."""
    k = min(n, most)
    return (np.arange(k) * 2 + 1) * n // (2 * k)


def _timed(part: Part) -> float:
    start = time.perf_counter()
    part.count()
    return time.perf_counter() - start


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A part, and where what it counts belongs."""

    missing: Missing
    systems: tuple[int, ...]
    first: int
    stop: int
    seconds: float

    @property
    def n_outputs(self) -> int:
        return len(self.systems) * (self.stop - self.first)

    @property
    def part(self) -> Part:
        return self.missing.part(self.systems, slice(self.first, self.stop))


def _cut(missing: Missing, weights: NDArray[np.float64], cost: float, most: float) -> Iterator[_Piece]:
    """Cut what is missing into pieces that take `most` seconds, some systems after the other."""
    n_systems, n_items = weights.shape
    n_groups = int(np.clip(round(cost / GROUP_SECONDS), 1, n_systems))
    for group in np.array_split(np.arange(n_systems), n_groups):
        until = np.cumsum(weights[group].sum(axis=0)) * cost / weights.sum()  # seconds, shape (n_items,)
        n_pieces = int(np.clip(np.ceil(until[-1] / most), 1, n_items))
        inner = np.searchsorted(until, until[-1] * np.arange(1, n_pieces) / n_pieces)
        borders = np.unique([0, *inner.tolist(), n_items]).tolist()
        for first, stop in pairwise(borders):
            seconds = until[stop - 1] - (until[first - 1] if first else 0)
            yield _Piece(missing, tuple(group.tolist()), first, stop, float(seconds))


def made(missing: Sequence[Missing], run: Executor, tell: Tell, what: str) -> Iterator[tuple[str, Array]]:
    """Count what is missing and yield the key and statistics of each system as it is finished."""
    weights = [each.weights for each in missing]
    costs = [each.seconds(w) for each, w in zip(missing, weights, strict=True)]
    most = float(np.clip(sum(costs) / (8 * run.n), PART_SECONDS / 20, PART_SECONDS))
    pieces = [p for each, w, c in zip(missing, weights, costs, strict=True) for p in _cut(each, w, c, most)]
    total, expected = sum(piece.n_outputs for piece in pieces), sum(costs)
    tell(Extracting(what, 0, total, expected / run.n, run.n))
    start, done, behind = time.monotonic(), 0, 0.0
    found: dict[str, dict[int, Array]] = {}
    for number, arrays in run([piece.part for piece in pieces], expected):
        piece = pieces[number]
        for s, array in zip(piece.systems, arrays, strict=True):
            key = piece.missing.keys[s]
            own = found.setdefault(key, {})
            own[piece.first] = array
            if sum(map(len, own.values())) == len(piece.missing.gold):
                yield key, np.concatenate([own[first] for first in sorted(own)])
                del found[key]
        done, behind = done + piece.n_outputs, behind + piece.seconds
        left = (time.monotonic() - start) * (expected - behind) / behind
        tell(Extracting(what, done, total, max(left, 0.0), run.n))
