"""From data and metrics to data with statistics: looked up by digest, made where missing, kept as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array
from sigdask.metrics.extraction.cache import NOWHERE, ExtractionCache
from sigdask.metrics.extraction.content import digest_of, key_of
from sigdask.metrics.extraction.packed import pack, unpack
from sigdask.metrics.extraction.parts import Executor, ItemBlock, LocalExtraction, MissingStatistics, made
from sigdask.metrics.extraction.progress import ExtractionLog, Tell
from sigdask.metrics.extraction.request import Extraction
from sigdask.text import listed

KEEP_SECONDS = 1.0
"""What is made is kept this often."""


@dataclass(frozen=True, slots=True)
class StatisticsSource:
    """Where statistics come from.

    Attributes
    ----------
    keeper : ExtractionCache
        What was made before.
    run : Executor
        Makes what is missing.
    tell : callable
        Told how far that is.
    """

    keeper: ExtractionCache = NOWHERE
    run: Executor = field(default_factory=LocalExtraction)
    tell: Tell = field(default_factory=ExtractionLog)


ALONE = StatisticsSource()
"""Made in this process and not kept."""


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedData:
    """Data with what their metrics take from whole outputs.

    Attributes
    ----------
    counts : Counts
        The data.
    made : dict of str to tuple of str
        By metric, the systems whose statistics were made now.
    n_kept : int
        How many systems' statistics, over all metrics, were at hand.
    """

    counts: Counts
    made: Mapping[str, tuple[str, ...]]
    n_kept: int


@dataclass(frozen=True, slots=True, eq=False)
class _WantedStatistics:
    """Statistics of all systems of some data by one extraction; keys by block and system."""

    test_set: int
    replicate: int
    metric: str
    extraction: Extraction
    outputs: Outputs
    blocks: list[slice]
    keys: list[list[str]]

    @property
    def all_keys(self) -> list[str]:
        return [key for keys in self.keys for key in keys]


def extracted(asked: Sequence[tuple[Counts, Sequence[Any]]], source: StatisticsSource = ALONE) -> list[ExtractedData]:
    """Return data with the statistics that metrics take from whole outputs.

    The same arrays bit by bit, whether they were kept or made, wherever and in whatever parts.

    Parameters
    ----------
    asked : sequence of (Counts, sequence of metrics)
        Test sets, and what is asked of each; metrics that take nothing from outputs are passed over.
    source : StatisticsSource
        Where statistics come from.
    """
    wishes = [wish for number, (counts, metrics) in enumerate(asked) for wish in _wishes(number, counts, metrics)]
    found = _at_hand(wishes, source.keeper)
    missing, names = _missing(wishes, found)
    new = {key for each in missing for block in each.blocks for key in block.systems}
    if missing:
        _make(missing, listed(names), source, found)
    return [
        _with(counts, [wish for wish in wishes if wish.test_set == number], found, new)
        for number, (counts, _) in enumerate(asked)
    ]


def _wishes(number: int, counts: Counts, metrics: Sequence[Any]) -> Iterator[_WantedStatistics]:
    wanted: dict[str, tuple[str, Extraction]] = {}
    for metric in metrics:
        extraction = getattr(metric, "extraction", None)
        if extraction is not None:
            wanted.setdefault(extraction.key, (metric.name, extraction))
    for r, own in enumerate(counts.replicates or (counts,)):
        asked = [each for key, each in wanted.items() if each[1].suits(own) and key not in own.extracted]
        if not asked or own.outputs is None or own.outputs.gold is None:
            continue
        of_blocks: dict[int, list[list[str]] | None] = {}
        for name, extraction in asked:
            blocks = extraction.blocks(own.n_items)
            if extraction.block not in of_blocks:
                of_blocks[extraction.block] = _digests(own.outputs.gold, own.outputs.systems, blocks)
            known = of_blocks[extraction.block]
            if known is None:
                continue  # of what cannot be known by its content, `bind` makes the statistics itself
            keys = [[key_of(extraction.key, digest) for digest in of_block] for of_block in known]
            yield _WantedStatistics(number, r, name, extraction, own.outputs, blocks, keys)


def _digests(gold: Array, systems: Sequence[Array], blocks: Sequence[slice]) -> list[list[str]] | None:
    """Return the digests of each system's outputs beside the gold items, by block; None where some have none."""
    found = []
    for items in blocks:
        right, *given = (digest_of(column[items]) for column in (gold, *systems))
        known = [key_of(right, digest) for digest in given if right is not None and digest is not None]
        if len(known) < len(systems):
            return None
        found.append(known)
    return found


def _at_hand(wishes: Sequence[_WantedStatistics], keeper: ExtractionCache) -> dict[str, Array]:
    keys = dict.fromkeys(key for wish in wishes for key in wish.all_keys)
    kept = keeper.get(list(keys)) if keys else {}
    found = {key: unpack(key, content) for key, content in kept.items()}
    return {key: array for key, array in found.items() if array is not None}


def _missing(
    wishes: Sequence[_WantedStatistics], found: Mapping[str, Array]
) -> tuple[list[MissingStatistics], list[str]]:
    """Return what nobody has, each once, and the metrics that take it."""
    listed_already = set(found)
    missing, names = [], []
    for wish in wishes:
        blocks = []
        for items, keys in zip(wish.blocks, wish.keys, strict=True):
            lacking = {key: s for s, key in enumerate(keys) if key not in listed_already}
            listed_already |= lacking.keys()
            blocks += [ItemBlock(items, lacking)] if lacking else []
        if blocks:
            assert wish.outputs.gold is not None
            missing.append(
                MissingStatistics(wish.extraction, tuple(wish.outputs.systems), wish.outputs.gold, tuple(blocks))
            )
            names.append(wish.metric)
    return missing, list(dict.fromkeys(names))


def _make(missing: Sequence[MissingStatistics], what: str, source: StatisticsSource, found: dict[str, Array]) -> None:
    """Make what is missing; what is finished is kept, whatever happens to the rest."""
    waiting: dict[str, bytes] = {}
    last = time.monotonic()
    try:
        for key, array in made(missing, source.run, source.tell, what):
            found[key], waiting[key] = array, pack(key, array)
            if time.monotonic() - last > KEEP_SECONDS:
                source.keeper.put(waiting)
                waiting, last = {}, time.monotonic()
    finally:
        if waiting:
            source.keeper.put(waiting)


def _with(
    counts: Counts, wishes: Sequence[_WantedStatistics], found: Mapping[str, Array], new: set[str]
) -> ExtractedData:
    of_replicates: list[dict[str, Array]] = [dict(own.extracted) for own in counts.replicates or (counts,)]
    systems: dict[str, dict[str, None]] = {}
    n_kept = 0
    for wish in wishes:
        of_systems = list(zip(*wish.keys, strict=True))
        statistics = [np.concatenate([found[key] for key in keys]) for keys in of_systems]
        of_replicates[wish.replicate][wish.extraction.key] = np.stack(statistics, axis=1)
        changed = [system for system, keys in zip(counts.systems, of_systems, strict=True) if not new.isdisjoint(keys)]
        n_kept += len(of_systems) - len(changed)
        if changed:
            systems.setdefault(wish.metric, {}).update(dict.fromkeys(changed))
    if counts.replicates:
        parts = zip(counts.replicates, of_replicates, strict=True)
        counts = replace(counts, replicates=tuple(replace(own, extracted=made) for own, made in parts))
    else:
        counts = replace(counts, extracted=of_replicates[0])
    return ExtractedData(counts, {metric: tuple(names) for metric, names in systems.items()}, n_kept)
