"""Adding extracted statistics to data: read from the cache by digest, or counted and stored."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array
from sigdask.metrics.extraction.cache import NO_CACHE, ExtractionCache
from sigdask.metrics.extraction.digests import hash_items, join_digests
from sigdask.metrics.extraction.parts import Executor, ItemBlock, LocalExtraction, MissingStatistics, extract_missing
from sigdask.metrics.extraction.progress import ExtractionLog, ProgressCallback
from sigdask.metrics.extraction.request import Extraction
from sigdask.metrics.extraction.serialization import pack_statistics, unpack_statistics
from sigdask.text import format_list

PUT_SECONDS = 1.0
"""What is made is kept this often."""


@dataclass(frozen=True, slots=True)
class StatisticsSource:
    """The cache from which statistics are read, and the executor that counts missing ones.

    Attributes
    ----------
    keeper : ExtractionCache
        What was made before.
    run : Executor
        Makes what is missing.
    tell : callable
        Told how far that is.
    """

    keeper: ExtractionCache = NO_CACHE
    run: Executor = field(default_factory=LocalExtraction)
    tell: ProgressCallback = field(default_factory=ExtractionLog)


LOCAL_SOURCE = StatisticsSource()
"""Made in this process and not kept."""


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedData:
    """Data together with the statistics that metrics extracted from whole outputs.

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
    """The statistics that one extraction needs of all systems of some data, by keys of block and system."""

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


def extract_statistics(
    requests: Sequence[tuple[Counts, Sequence[Any]]], source: StatisticsSource = LOCAL_SOURCE
) -> list[ExtractedData]:
    """Return the data with the statistics that the metrics need from whole outputs.

    The arrays are the same bit by bit, whether they were read or counted, wherever and in whatever parts.

    Parameters
    ----------
    requests : sequence of (Counts, sequence of metrics)
        Test sets, and what is asked of each; metrics that take nothing from outputs are passed over.
    source : StatisticsSource
        Where statistics come from.
    """
    all_wanted = [
        wanted for number, (counts, metrics) in enumerate(requests) for wanted in _iter_wanted(number, counts, metrics)
    ]
    statistics = _read_cached(all_wanted, source.keeper)
    missing, names = _find_missing(all_wanted, statistics)
    new = {key for part in missing for block in part.blocks for key in block.systems}
    if missing:
        _extract_missing(missing, format_list(names), source, statistics)
    return [
        _build_extracted(counts, [wanted for wanted in all_wanted if wanted.test_set == number], statistics, new)
        for number, (counts, _) in enumerate(requests)
    ]


def _iter_wanted(number: int, counts: Counts, metrics: Sequence[Any]) -> Iterator[_WantedStatistics]:
    extractions: dict[str, tuple[str, Extraction]] = {}
    for metric in metrics:
        extraction = getattr(metric, "extraction", None)
        if extraction is not None:
            extractions.setdefault(extraction.key, (metric.name, extraction))
    for r, replicate in enumerate(counts.replicates or (counts,)):
        needed = [
            named_extraction
            for key, named_extraction in extractions.items()
            if named_extraction[1].can_extract(replicate) and key not in replicate.extracted
        ]
        if not needed or replicate.outputs is None or replicate.outputs.gold is None:
            continue
        digests_by_size: dict[int, list[list[str]] | None] = {}
        for name, extraction in needed:
            blocks = extraction.split_items(replicate.n_items)
            if extraction.block not in digests_by_size:
                digests_by_size[extraction.block] = _hash_blocks(
                    replicate.outputs.gold, replicate.outputs.systems, blocks
                )
            digests = digests_by_size[extraction.block]
            if digests is None:
                continue  # of what cannot be known by its content, `bind` makes the statistics itself
            keys = [[join_digests(extraction.key, digest) for digest in block_digests] for block_digests in digests]
            yield _WantedStatistics(number, r, name, extraction, replicate.outputs, blocks, keys)


def _hash_blocks(gold: Array, systems: Sequence[Array], blocks: Sequence[slice]) -> list[list[str]] | None:
    """Return a digest of outputs and gold items for each block and system, or None if some cannot be hashed."""
    block_digests = []
    for items in blocks:
        gold_digest, *system_digests = (hash_items(column[items]) for column in (gold, *systems))
        digests = [
            join_digests(gold_digest, digest)
            for digest in system_digests
            if gold_digest is not None and digest is not None
        ]
        if len(digests) < len(systems):
            return None
        block_digests.append(digests)
    return block_digests


def _read_cached(all_wanted: Sequence[_WantedStatistics], keeper: ExtractionCache) -> dict[str, Array]:
    keys = dict.fromkeys(key for wanted in all_wanted for key in wanted.all_keys)
    entries = keeper.get(list(keys)) if keys else {}
    arrays = {key: unpack_statistics(key, content) for key, content in entries.items()}
    return {key: array for key, array in arrays.items() if array is not None}


def _find_missing(
    all_wanted: Sequence[_WantedStatistics], statistics: Mapping[str, Array]
) -> tuple[list[MissingStatistics], list[str]]:
    """Return the statistics that the cache lacks, each once, and the names of the metrics that need them."""
    known_keys = set(statistics)
    missing, names = [], []
    for wanted in all_wanted:
        blocks = []
        for items, keys in zip(wanted.blocks, wanted.keys, strict=True):
            lacking = {key: s for s, key in enumerate(keys) if key not in known_keys}
            known_keys |= lacking.keys()
            blocks += [ItemBlock(items, lacking)] if lacking else []
        if blocks:
            assert wanted.outputs.gold is not None
            missing.append(
                MissingStatistics(wanted.extraction, tuple(wanted.outputs.systems), wanted.outputs.gold, tuple(blocks))
            )
            names.append(wanted.metric)
    return missing, list(dict.fromkeys(names))


def _extract_missing(
    missing: Sequence[MissingStatistics], metric_names: str, source: StatisticsSource, statistics: dict[str, Array]
) -> None:
    """Count missing statistics, and store finished ones from time to time, also if an error follows."""
    waiting: dict[str, bytes] = {}
    last_put = time.monotonic()
    try:
        for key, array in extract_missing(missing, source.run, source.tell, metric_names):
            statistics[key], waiting[key] = array, pack_statistics(key, array)
            if time.monotonic() - last_put > PUT_SECONDS:
                source.keeper.put(waiting)
                waiting, last_put = {}, time.monotonic()
    finally:
        if waiting:
            source.keeper.put(waiting)


def _build_extracted(
    counts: Counts, all_wanted: Sequence[_WantedStatistics], arrays: Mapping[str, Array], new: set[str]
) -> ExtractedData:
    replicate_statistics: list[dict[str, Array]] = [
        dict(replicate.extracted) for replicate in counts.replicates or (counts,)
    ]
    systems: dict[str, dict[str, None]] = {}
    n_kept = 0
    for wanted in all_wanted:
        keys_by_system = list(zip(*wanted.keys, strict=True))
        statistics = [np.concatenate([arrays[key] for key in keys]) for keys in keys_by_system]
        replicate_statistics[wanted.replicate][wanted.extraction.key] = np.stack(statistics, axis=1)
        changed = [
            system for system, keys in zip(counts.systems, keys_by_system, strict=True) if not new.isdisjoint(keys)
        ]
        n_kept += len(keys_by_system) - len(changed)
        if changed:
            systems.setdefault(wanted.metric, {}).update(dict.fromkeys(changed))
    if counts.replicates:
        pairs = zip(counts.replicates, replicate_statistics, strict=True)
        counts = replace(
            counts,
            replicates=tuple(replace(replicate, extracted=extracted_arrays) for replicate, extracted_arrays in pairs),
        )
    else:
        counts = replace(counts, extracted=replicate_statistics[0])
    return ExtractedData(counts, {metric: tuple(names) for metric, names in systems.items()}, n_kept)
