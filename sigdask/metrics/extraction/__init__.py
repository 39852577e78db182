"""Statistics that metrics extract from each system's whole outputs: read from a cache, or counted if missing.

Examples are the n-gram counts of a translation, the errors of a transcript and the measures of a ranking. They depend
only on a system's outputs, the gold items, the metric's options and the version of the library that counts them. So
they are stored under a digest of these. If one system changes, only its statistics are counted again. A new version or
option has another digest.

`request` says what is counted, `cache` stores it, `parts` divides what is missing, and executors (in `parts`, and in
`execution` for clusters) count it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array
from sigdask.metrics.extraction import parts
from sigdask.metrics.extraction.cache import NO_CACHE, ExtractionCache, pack_statistics, unpack_statistics
from sigdask.metrics.extraction.request import Extraction, hash_items, join_digests
from sigdask.text import format_list

PUT_SECONDS = 1.0
"""Seconds between two writes of finished work to the cache."""


@dataclass(frozen=True, slots=True)
class StatisticsSource:
    """The cache from which statistics are read, and the executor that counts missing ones.

    Attributes
    ----------
    keeper : ExtractionCache
        Cache of earlier extractions.
    run : Executor
        Extracts missing statistics.
    tell : callable
        Called with the progress.
    """

    keeper: ExtractionCache = NO_CACHE
    run: parts.Executor = field(default_factory=parts.LocalExtraction)
    tell: parts.ProgressCallback = field(default_factory=parts.ExtractionLog)


LOCAL_SOURCE = StatisticsSource()
"""Source of statistics that this process extracts without storing them."""


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedData:
    """Data together with the statistics that metrics extracted from whole outputs.

    Attributes
    ----------
    counts : Counts
        The data.
    made : dict of str to tuple of str
        The systems whose statistics were extracted now, by metric.
    n_kept : int
        Number of systems, over all metrics, whose statistics were cached.
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


def extract_statistics(
    requests: Sequence[tuple[Counts, Sequence[Any]]], source: StatisticsSource = LOCAL_SOURCE
) -> list[ExtractedData]:
    """Return the data with the statistics that the metrics need from whole outputs.

    The arrays are identical bit by bit, whether they are cached or computed, on any machine and in any parts.

    Parameters
    ----------
    requests : sequence of (Counts, sequence of metrics)
        Test sets, each with its metrics. Metrics that extract nothing from outputs are skipped.
    source : StatisticsSource
        Source of statistics.
    """
    all_wanted = [wanted for number, request in enumerate(requests) for wanted in _iter_wanted(number, *request)]
    all_keys = dict.fromkeys(key for wanted in all_wanted for keys in wanted.keys for key in keys)
    entries = source.keeper.get(list(all_keys)) if all_keys else {}
    unpacked = ((key, unpack_statistics(key, content)) for key, content in entries.items())
    statistics = {key: array for key, array in unpacked if array is not None}
    missing, names = _find_missing(all_wanted, statistics)
    new = {key for part in missing for block in part.blocks for key in block.systems}
    if missing:
        _extract_missing(missing, format_list(names), source, statistics)
    wanted_by_set = {number: [*group] for number, group in groupby(all_wanted, lambda wanted: wanted.test_set)}
    return [
        _build_extracted(counts, wanted_by_set[number], statistics, new)
        if number in wanted_by_set
        else ExtractedData(counts, {}, 0)
        for number, (counts, _) in enumerate(requests)
    ]


def needs_extraction(counts: Counts, metrics: Sequence[Any]) -> bool:
    """Return whether metrics need statistics of whole outputs that the data do not have."""
    return any(True for _ in _iter_wanted(0, counts, metrics))


def _iter_wanted(number: int, counts: Counts, metrics: Sequence[Any]) -> Iterator[_WantedStatistics]:
    extractions: dict[str, tuple[str, Extraction]] = {}
    for metric in metrics:
        extraction = getattr(metric, "extraction", None)
        if extraction is not None:
            extractions.setdefault(extraction.key, (metric.name, extraction))
    for r, replicate in enumerate(counts.replicates or (counts,)):
        digests_by_size: dict[int, list[list[str]] | None] = {}
        for extraction_key, (name, extraction) in extractions.items():
            if extraction_key in replicate.extracted or extraction.of not in replicate.fields:
                continue
            if replicate.outputs is None or replicate.outputs.gold is None:
                continue
            blocks = extraction.split_items(replicate.n_items)
            if extraction.block not in digests_by_size:
                digests_by_size[extraction.block] = _hash_blocks(replicate.outputs, blocks)
            digests = digests_by_size[extraction.block]
            if digests is not None:  # without a digest of its content, `bind` computes the statistics
                keys = [[join_digests(extraction_key, digest) for digest in block_digests] for block_digests in digests]
                yield _WantedStatistics(number, r, name, extraction, replicate.outputs, blocks, keys)


def _hash_blocks(outputs: Outputs, blocks: Sequence[slice]) -> list[list[str]] | None:
    """Return a digest of outputs and gold items for each block and system, or None if some cannot be hashed."""
    assert outputs.gold is not None
    block_digests = []
    for items in blocks:
        column_digests = [hash_items(column[items]) for column in (outputs.gold, *outputs.systems)]
        gold_digest, *digests = [digest or "" for digest in column_digests]
        if None in column_digests:
            return None
        block_digests.append([join_digests(gold_digest, digest) for digest in digests])
    return block_digests


def _find_missing(
    all_wanted: Sequence[_WantedStatistics], statistics: Mapping[str, Array]
) -> tuple[list[parts.MissingStatistics], list[str]]:
    """Return the statistics that the cache lacks, each once, and the names of the metrics that need them."""
    known_keys = set(statistics)
    missing, names = [], []
    for wanted in all_wanted:
        blocks = []
        for items, keys in zip(wanted.blocks, wanted.keys, strict=True):
            lacking = {key: s for s, key in enumerate(keys) if key not in known_keys}
            known_keys |= lacking.keys()
            blocks += [parts.ItemBlock(items, lacking)] if lacking else []
        if blocks:
            assert wanted.outputs.gold is not None
            systems = tuple(wanted.outputs.systems)
            missing.append(parts.MissingStatistics(wanted.extraction, systems, wanted.outputs.gold, tuple(blocks)))
            names.append(wanted.metric)
    return missing, list(dict.fromkeys(names))


def _extract_missing(
    missing: Sequence[parts.MissingStatistics],
    metric_names: str,
    source: StatisticsSource,
    statistics: dict[str, Array],
) -> None:
    """Count missing statistics, and store finished ones from time to time, also if an error follows."""
    waiting: dict[str, bytes] = {}
    last_put = time.monotonic()
    try:
        for key, array in parts.extract_missing(missing, source.run, source.tell, metric_names):
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
    replicates = counts.replicates or (counts,)
    extracted: list[dict[str, Array]] = [dict(replicate.extracted) for replicate in replicates]
    systems: dict[str, dict[str, None]] = {}
    n_kept = 0
    for wanted in all_wanted:
        keys_by_system = list(zip(*wanted.keys, strict=True))
        statistics = [np.concatenate([arrays[key] for key in keys]) for keys in keys_by_system]
        extracted[wanted.replicate][wanted.extraction.key] = np.stack(statistics, axis=1)
        pairs = zip(counts.systems, keys_by_system, strict=True)
        changed = [system for system, keys in pairs if not new.isdisjoint(keys)]
        n_kept += len(keys_by_system) - len(changed)
        if changed:
            systems.setdefault(wanted.metric, {}).update(dict.fromkeys(changed))
    filled = tuple(replace(r, extracted=arrays) for r, arrays in zip(replicates, extracted, strict=True))
    counts = replace(counts, replicates=filled) if counts.replicates else filled[0]
    return ExtractedData(counts, {metric: tuple(names) for metric, names in systems.items()}, n_kept)
