"""Statistics that metrics extract from each system's whole outputs: read from a cache, or counted if missing.

Examples are the n-gram counts of a translation, the errors of a transcript and the measures of a ranking. They depend
only on a system's outputs, the gold items, the metric's options and the version of the library that counts them. So
they are stored under a digest of these. If one system changes, only its statistics are counted again. A new version or
option has another digest.

`parts` says what is counted and divides what is missing, and executors (there, and in `execution` for clusters) count
it. A cache stores bytes by key; the user's is a folder of files. A file is written completely or not at all, and its
name is its key, so several processes can share the folder. It has a line with its key and the array in NumPy's format,
both compressed by zlib. Reading it runs no code. A file that was cut off, changed or renamed does not have the right
checksum or key, and counts as missing.
"""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array
from sigdask.metrics.extraction import parts
from sigdask.metrics.extraction.parts import Extraction, hash_items, join_digests
from sigdask.text import format_list

CACHE_VARIABLE = "SIGDASK_CACHE"
OFF_VALUES = ("off", "none", "0")

MAX_BYTES = 2**30
"""Maximum bytes of all entries. Beyond it, those unused for the longest time are removed."""

FRESH_SECONDS = 3600.0
"""Seconds for which the time of last use is not updated, and after which unfinished files are removed."""


class ExtractionCache(Protocol):
    """A store of bytes by key, which may drop entries at any time."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored bytes of these keys; keys that are not stored are left out."""
        ...

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries, replacing existing ones."""
        ...


class NoCache:
    """A cache that stores nothing."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:  # noqa: ARG002
        """Return an empty mapping: no key is stored."""
        return {}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Discard the entries."""


NO_CACHE = NoCache()


def get_user_cache() -> ExtractionCache:
    """Return the user's cache: at $SIGDASK_CACHE ("off": none), or sigdask in $XDG_CACHE_HOME or ~/.cache."""
    setting = os.environ.get(CACHE_VARIABLE, "")
    if setting.lower() in OFF_VALUES:
        return NO_CACHE
    if setting:
        return FolderCache(Path(setting))
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        parent = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return NO_CACHE
    return FolderCache(parent / "sigdask")


class FolderCache:
    """A cache with one file per entry.

    Parameters
    ----------
    path : Path
        The folder, which is created at the first write. Its entries are in the subfolder `extracted`.
    most_bytes : int
        Maximum size of the cache in bytes.
    """

    def __init__(self, path: Path, most_bytes: int = MAX_BYTES) -> None:
        self.path = path / "extracted"
        self.most_bytes = most_bytes

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored bytes of these keys, and mark their files as used."""
        entries = {}
        for key in keys:
            file = self._get_path(key)
            with suppress(OSError):
                entries[key] = file.read_bytes()
                if time.time() - file.stat().st_mtime > FRESH_SECONDS:
                    os.utime(file)
        return entries

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries; the least recently used ones are removed to make room."""
        with suppress(OSError):
            for key, content in entries.items():
                self._write_file(self._get_path(key), content)
            self._remove_oldest()

    def _get_path(self, key: str) -> Path:
        return self.path / key[:2] / key

    def _write_file(self, file: Path, content: bytes) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(temporary).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise

    def _remove_oldest(self) -> None:
        """If the folder is too large, remove the least recently used entries until it is 90% full.

        Half-written files that other processes left are removed in any case.
        """
        entries, total = [], 0
        for file in self.path.glob("*/*"):
            with suppress(OSError):  # another process may remove it meanwhile
                status = file.stat()
                if not file.name.startswith("."):
                    entries.append((status.st_mtime, status.st_size, file))
                    total += status.st_size
                elif time.time() - status.st_mtime > FRESH_SECONDS:
                    file.unlink()
        if total <= self.most_bytes:
            return
        for _, size, file in sorted(entries, key=lambda entry: entry[0]):
            if total <= self.most_bytes * 9 // 10:
                return
            with suppress(OSError):
                file.unlink()
                total -= size


MAX_ENTRY_BYTES = 2**28
"""Maximum bytes of an array. Arrays hold some thousand items."""


def pack_statistics(key: str, array: Array) -> bytes:
    """Return int64 or float64 statistics and their key as bytes.

    Examples
    --------
    >>> unpack_statistics("k", pack_statistics("k", np.array([[1, 300]]))).tolist()
    [[1, 300]]
    >>> (unpack_statistics("k", pack_statistics("k", np.array([[1, 300]]))[:-1]),
    ...  unpack_statistics("other", pack_statistics("k", np.array([[1]]))))
    (None, None)
    """
    content = BytesIO()
    content.write(key.encode() + b"\n")
    np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
    return zlib.compress(content.getvalue(), 1)


def unpack_statistics(key: str, packed: bytes) -> Array | None:
    """Return the statistics that bytes hold, or None if the bytes have another key or are damaged."""
    reader = zlib.decompressobj()
    try:
        stored_key, _, content = reader.decompress(packed, MAX_ENTRY_BYTES).partition(b"\n")
        if not reader.eof or stored_key != key.encode():
            return None
        return np.lib.format.read_array(BytesIO(content), allow_pickle=False)
    except (ValueError, zlib.error):
        return None


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
