"""What is missing, cut into parts that take a second or two, and put together again as systems are finished.

A part is some items of several systems, so that what a counter makes of the gold items is made once for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Array
from sigdask.metrics.extraction.progress import ExtractionProgress, Tell
from sigdask.metrics.extraction.request import Extraction

PART_SECONDS = 2.0
"""How long a part takes at most, about: between two of them progress is told."""

GROUP_SECONDS = 5.0
"""Work on systems that are finished together, about: what a kill costs."""

PROBED, PROBED_MORE = 5, 64
"""Items that are timed, those of middle length first, and more where it is worth it."""

PROBE_SECONDS, PROBE_SHARE, PROBE_MOST = 0.25, 0.01, 2.0
"""How long that takes at most, about: of work that takes long a hundredth of it."""

BESIDE_TEXT = 20
"""What an item costs beside its length, in characters."""


@dataclass(frozen=True, slots=True)
class ExtractionPart:
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

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> Iterator[tuple[int, list[Array]]]:
        """Yield the number of each part and what it counted, as they finish; `seconds` is what all take, about."""
        ...


class LocalExtraction:
    """Counts one part after the other in this process."""

    n = 1

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> Iterator[tuple[int, list[Array]]]:  # noqa: ARG002
        """Yield what each part counted, in their order."""
        return ((number, part.count()) for number, part in enumerate(parts))


@dataclass(frozen=True, slots=True, eq=False)
class ItemBlock:
    """Items that are kept together, and the systems whose statistics of them nobody has.

    Attributes
    ----------
    items : slice
        Which.
    systems : dict of str to int
        The key of what is missing to the system that it is of.
    """

    items: slice
    systems: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class MissingStatistics:
    """What nobody has of some data by one extraction.

    Attributes
    ----------
    extraction : Extraction
        What is counted.
    outputs : tuple of object array, shape (n_items,)
        Of each system.
    gold : object array, shape (n_items,)
        What is right.
    blocks : tuple of ItemBlock
        Where something is missing.
    """

    extraction: Extraction
    outputs: tuple[Array, ...]
    gold: Array
    blocks: tuple[ItemBlock, ...]

    @property
    def weights(self) -> NDArray[np.float64]:
        """What outputs cost beside each other, shape (n_systems, n_items); 0 where nothing is missing."""
        found = np.zeros((len(self.outputs), len(self.gold)))
        for block in self.blocks:
            for s in block.systems.values():
                lengths = np.array([len(output) for output in self.outputs[s][block.items]], np.float64)
                found[s, block.items] = (lengths + BESIDE_TEXT) ** self.extraction.power
        return found

    def part(self, systems: Sequence[int], items: slice | NDArray[np.intp]) -> ExtractionPart:
        """Return some items of some systems."""
        return ExtractionPart(
            self.extraction, tuple(self.outputs[s][items].tolist() for s in systems), self.gold[items].tolist()
        )

    def seconds(self, weights: NDArray[np.float64]) -> float:
        """Time a few items, and say what all take in one process, about."""
        one = int(np.argmax(weights.any(axis=1)))
        lacking = np.flatnonzero(weights[one])
        n_items = len(lacking)
        order = lacking[np.argsort(weights[one, lacking], kind="stable")]
        self.part([one], order[:1]).count()  # imports what it needs
        spent = weighed = 0.0
        probed = _spread(n_items, PROBED)
        for tried, k in enumerate(order[probed[np.argsort(abs(probed - n_items // 2), kind="stable")]], start=1):  # noqa: B007
            spent += _timed(self.part([one], np.array([k])))
            weighed += weights[one, k]
            if spent > PROBE_SECONDS:
                break
        worth = np.clip(spent * weights.sum() / weighed * PROBE_SHARE, PROBE_SECONDS, PROBE_MOST)
        more = int(min(PROBED_MORE, tried * worth / spent))
        if more > PROBED:
            some = order[_spread(n_items, more)]
            like = np.flatnonzero(weights[:, some].all(axis=1))[: PROBED if more == PROBED_MORE else 1].tolist()
            spent, weighed = _timed(self.part(like, some)), weights[like][:, some].sum()
        return float(spent * weights.sum() / weighed)


def _spread(n: int, most: int) -> NDArray[np.intp]:
    """Return the middles of equal shares of a range."""
    k = min(n, most)
    return (np.arange(k) * 2 + 1) * n // (2 * k)


def _timed(part: ExtractionPart) -> float:
    start = time.perf_counter()
    part.count()
    return time.perf_counter() - start


@dataclass(frozen=True, slots=True, eq=False)
class _PlacedPart:
    """A part, and where what it counts belongs."""

    missing: MissingStatistics
    block: ItemBlock
    keys: tuple[str, ...]
    first: int
    stop: int
    seconds: float

    @property
    def n_outputs(self) -> int:
        return len(self.keys) * (self.stop - self.first)

    @property
    def part(self) -> ExtractionPart:
        return self.missing.part([self.block.systems[key] for key in self.keys], slice(self.first, self.stop))


def _cut(missing: MissingStatistics, block: ItemBlock, costs: Array, most: float) -> Iterator[_PlacedPart]:
    """Cut a block into pieces that take `most` seconds, some systems after the other; costs (n_systems, n_items)."""
    keys, start = tuple(block.systems), block.items.start
    own = costs[list(block.systems.values()), block.items]
    n_groups = int(np.clip(round(own.sum() / GROUP_SECONDS), 1, len(keys)))
    for group in np.array_split(np.arange(len(keys)), n_groups):
        until = np.cumsum(own[group].sum(axis=0))  # seconds, shape (n_items,)
        n_pieces = int(np.clip(np.ceil(until[-1] / most), 1, len(until)))
        inner = np.searchsorted(until, until[-1] * np.arange(1, n_pieces) / n_pieces)
        for first, stop in pairwise(np.unique([0, *inner.tolist(), len(until)]).tolist()):
            seconds = until[stop - 1] - (until[first - 1] if first else 0)
            yield _PlacedPart(
                missing, block, tuple(keys[k] for k in group), start + first, start + stop, float(seconds)
            )


def made(missing: Sequence[MissingStatistics], run: Executor, tell: Tell, what: str) -> Iterator[tuple[str, Array]]:
    """Count what is missing and yield the key and statistics of each block and system as they are finished."""
    weights = [each.weights for each in missing]
    expected = [each.seconds(w) for each, w in zip(missing, weights, strict=True)]
    most = float(np.clip(sum(expected) / (8 * run.n), PART_SECONDS / 20, PART_SECONDS))
    pieces = [
        piece
        for each, w, seconds in zip(missing, weights, expected, strict=True)
        for block in each.blocks
        for piece in _cut(each, block, w * (seconds / w.sum()), most)
    ]
    total, all_seconds = sum(piece.n_outputs for piece in pieces), sum(expected)
    tell(ExtractionProgress(what, 0, total, all_seconds / run.n, run.n))
    start, done, behind = time.monotonic(), 0, 0.0
    found: dict[str, dict[int, Array]] = {}
    for number, arrays in run([piece.part for piece in pieces], all_seconds):
        piece = pieces[number]
        for key, array in zip(piece.keys, arrays, strict=True):
            own = found.setdefault(key, {})
            own[piece.first] = array
            if sum(map(len, own.values())) == piece.block.items.stop - piece.block.items.start:
                yield key, np.concatenate([own[first] for first in sorted(own)])
                del found[key]
        done, behind = done + piece.n_outputs, behind + piece.seconds
        left = (time.monotonic() - start) * (all_seconds - behind) / behind
        tell(ExtractionProgress(what, done, total, max(left, 0.0), run.n))
