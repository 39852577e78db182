"""Statistics that metrics extract from each system's whole outputs: read from a cache, or counted if missing.

Examples are the n-gram counts of a translation, the errors of a transcript and the measures of a ranking. They depend
only on a system's outputs, the gold items, the metric's options and the version of the library that counts them. So
they are stored under a digest of these: of the content, not of files. If one system changes, only its statistics are
counted again. A new version or option has another digest.

A cache stores bytes by key; the user's is a folder of files. A file is written completely or not at all, and its name
is its key, so several processes can share the folder. It has a line with its key and the array in NumPy's format, both
compressed by zlib. Reading it runs no code. A file that was cut off, changed or renamed does not have the right
checksum or key, and counts as missing.

Missing statistics are counted in parts. A part has one block of items of several systems, so that the gold items are
prepared once for all of these systems. Executors (here, and in `execution` for clusters) count parts. Threads would
wait for each other, because the counters hold Python's lock. So processes are used: new interpreters that import the
counters but nothing of the program that started them. A script therefore needs no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import platform
import shutil
import subprocess
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array
from sigdask.errors import UnfinishedError
from sigdask.interface import spell
from sigdask.text import format_duration, format_list

EXTRACTION_VERSION = 2
"""Increased when a correction changes counts, so that no older result is used again."""

DIGEST_BYTES = 20

Counter = Callable[..., list[Array]]
"""Function (outputs of each system, gold items, **options) that returns an array of shape (n_items, n_fields) for each
system.
"""


@dataclass(frozen=True, slots=True)
class Extraction:
    """A function that counts statistics of outputs, for each item and system separately, with its options.

    Attributes
    ----------
    name : str
        Name of the function in digests.
    counter : callable
        `(systems, gold, **options)`, lists of outputs and a list of gold items, to int64 or float64 arrays, one per
        system, shape (n_items, n_fields). It is a function of a module, so it is sent by name.
    options : mapping of str to str, float or bool
        Its keyword arguments.
    packages : tuple of str
        Packages whose versions change the statistics.
    of : str
        A field of the data that shows whether statistics can be counted.
    power : int
        Power of an output's length with which the cost increases.
    block : int
        Number of items that are counted and stored together.
    """

    name: str
    counter: Counter
    options: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    of: str = "segments"
    power: int = 1
    block: int = 2048

    @property
    def key(self) -> str:
        """A digest of the counting function, its options and the versions of the packages that it uses."""
        versions = [(package, get_version(package)) for package in ("python", *self.packages)]
        return _digest(json.dumps([EXTRACTION_VERSION, self.name, sorted(self.options.items()), versions]).encode())

    def count(self, systems: Sequence[list[Any]], gold: list[Any]) -> list[Array]:
        """Count and return the statistics of some systems' outputs, one array per system."""
        return self.counter(systems, gold, **self.options)


@cache
def get_version(package: str) -> str:
    """Return the installed version of a package, "" if missing; for Python, the first two numbers.

    Examples
    --------
    >>> get_version("no-such-package")
    ''
    """
    if package == "python":
        return ".".join(platform.python_version_tuple()[:2])
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def get_statistics(extraction: Extraction, counts: Counts) -> Array:
    """Return the statistics of all systems, shape (n_items, n_systems, n_fields), counted now if the data lack them."""
    statistics = counts.extracted.get(extraction.key)
    if statistics is None:
        assert counts.outputs is not None
        assert counts.outputs.gold is not None
        systems = [outputs.tolist() for outputs in counts.outputs.systems]
        statistics = np.stack(extraction.count(systems, counts.outputs.gold.tolist()), axis=1)
    return statistics


def hash_items(items: Array) -> str | None:
    """Return the digest of outputs or gold items that are texts, or lists and mappings of them; None for others.

    Examples
    --------
    >>> from sigdask.counts.fields import to_object_array
    >>> hash_items(to_object_array(["ab", "c"])) == hash_items(to_object_array(["a", "bc"]))
    False
    """
    try:
        return _digest(orjson.dumps(items.tolist()))
    except TypeError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def _join_digests(*digests: str) -> str:
    """Return one digest of several digests in this order."""
    return _digest(" ".join(digests).encode())


MAX_BYTES = 2**30
"""Maximum bytes of all entries."""


class ExtractionCache:
    """A store of bytes by key, which may drop entries at any time; this one stores nothing."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:  # noqa: ARG002
        """Return the stored bytes of these keys; keys that are not stored are left out."""
        return {}

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries, replacing existing ones."""


NO_CACHE = ExtractionCache()


def get_user_cache() -> ExtractionCache:
    """Return the user's cache: at $SIGDASK_CACHE ("off": none), or sigdask in $XDG_CACHE_HOME or ~/.cache."""
    setting = os.environ.get("SIGDASK_CACHE", "")
    if setting.lower() in {"off", "none", "0"}:
        return NO_CACHE
    parent = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        return FolderCache(Path(setting) if setting else parent.expanduser() / "sigdask")
    except RuntimeError:  # a user without a home
        return NO_CACHE


class FolderCache(ExtractionCache):
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
        """Return the stored bytes of these keys."""
        entries = {}
        for key in keys:
            with suppress(OSError):
                entries[key] = self._get_path(key).read_bytes()
        return entries

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries; a cache that they fill is emptied first."""
        with suppress(OSError):
            stored = sum(file.stat().st_size for file in self.path.glob("*/*"))
            if stored + sum(map(len, entries.values())) > self.most_bytes:
                shutil.rmtree(self.path)
            for key, content in entries.items():
                file = self._get_path(key)
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                unfinished = file.with_name(f".{key}-{os.getpid()}-{time.monotonic_ns()}")
                unfinished.write_bytes(content)
                unfinished.replace(file)

    def _get_path(self, key: str) -> Path:
        return self.path / key[:2] / key


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
    np.save(content, array, allow_pickle=False)
    return zlib.compress(key.encode() + b"\n" + content.getvalue(), 1)


def unpack_statistics(key: str, packed: bytes) -> Array | None:
    """Return the statistics that bytes hold, or None if the bytes have another key or are damaged."""
    reader = zlib.decompressobj()
    try:
        stored_key, _, content = reader.decompress(packed, MAX_ENTRY_BYTES).partition(b"\n")
        is_whole = reader.eof and stored_key == key.encode()
        return np.lib.format.read_array(BytesIO(content), allow_pickle=False) if is_whole else None
    except (ValueError, zlib.error):
        return None


LOG = logging.getLogger("sigdask.extraction")

MIN_SECONDS = 1.0
"""Work of fewer seconds shows no progress."""

EVERY = 30.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True)
class ExtractionProgress:
    """Progress of an extraction: outputs done, all outputs, and time left.

    Attributes
    ----------
    what : str
        Metrics that extract statistics.
    done, total : int
        Number of outputs, one per item, system and metric.
    left : float
        Estimated seconds until its end.
    n_processes : int
        Number of working processes.
    """

    what: str
    done: int
    total: int
    left: float
    n_processes: int

    def __str__(self) -> str:
        """Return the progress as one line."""
        processes = f" on {self.n_processes} processes" if self.n_processes > 1 else ""
        how_many = f"{self.done:,} of {self.total:,} outputs" if self.done else f"{self.total:,} outputs"
        left = f", about {format_duration(self.left)}{' left' if self.done else processes}" if self.left >= 1 else ""
        return f"extracting {self.what}: {how_many}{left}"


ProgressCallback = Callable[[ExtractionProgress], None]
"""Called at the start, and whenever a part is done."""


class ExtractionLog:
    """A progress callback that writes a log line at the start, and then one every half minute.

    Parameters
    ----------
    say : callable
        Called with each line.
    """

    def __init__(self, say: Callable[[str], None] = LOG.info) -> None:
        self._say = say
        self._last = 0.0

    def __call__(self, how_far: ExtractionProgress) -> None:
        """Log the progress if a line is due."""
        now = time.monotonic()
        if not how_far.done:
            self._last = now if how_far.left >= MIN_SECONDS else 0.0
            if self._last:
                self._say(str(how_far))
        elif self._last and now - self._last >= EVERY and how_far.done < how_far.total:
            self._last = now
            self._say(str(how_far))


@dataclass(frozen=True, slots=True)
class ExtractionPart:
    """A block of items of some systems whose statistics are counted in one call, by a process or worker.

    Attributes
    ----------
    extraction : Extraction
        The statistics.
    systems : tuple of list
        Outputs of each system.
    gold : list
        The gold items.
    keys : tuple of str
        The key of each system's statistics.
    seconds : float
        Estimated time of counting.
    """

    extraction: Extraction
    systems: tuple[list[Any], ...]
    gold: list[Any]
    keys: tuple[str, ...] = ()
    seconds: float = 0.0

    def count(self) -> list[Array]:
        """Count and return the statistics of each system, shape (n_items, n_fields)."""
        return self.extraction.count(self.systems, self.gold)


class LocalExtraction:
    """An executor that counts parts, one after the other in this process. Others count them elsewhere.

    Attributes
    ----------
    n : int
        Number of parts counted at the same time.
    """

    n: int = 1

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> Iterator[tuple[int, list[Array]]]:  # noqa: ARG002
        """Yield each part's number and statistics as parts finish; `seconds` estimates the total time."""
        return ((number, part.count()) for number, part in enumerate(parts))


class ProcessExtraction(LocalExtraction):
    """An executor that counts each part in a new process.

    Parameters
    ----------
    n : int
        Number of processes at the same time.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> Iterator[tuple[int, Any]]:  # noqa: ARG002
        """Yield each part's number and result as parts finish; raise the error of a part."""
        with ThreadPoolExecutor(self.n) as pool:
            futures = {pool.submit(_count_in_process, part): number for number, part in enumerate(parts)}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                pool.shutdown(cancel_futures=True)


def _count_in_process(part: ExtractionPart) -> list[Array]:
    """Count a part in a new interpreter, which imports nothing of the program that starts it."""
    path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
    command = [sys.executable, "-P", "-c", "from sigdask.metrics.extraction import serve; serve()"]
    environment = {**os.environ, "PYTHONPATH": path}
    answer = subprocess.run(command, input=pickle.dumps(part), capture_output=True, env=environment, check=False)  # noqa: S603  # this interpreter
    if answer.returncode:
        raise UnfinishedError(
            f"a worker process was ended while it scored segments; if memory is short, use fewer {spell('workers')}"
        )
    result = pickle.loads(answer.stdout)  # noqa: S301  # of the process that was started
    if isinstance(result, Exception):
        raise result
    return result  # type: ignore[no-any-return]


def serve() -> None:
    """Count the part that the standard input holds, and write its statistics or its error to the standard output."""
    part = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the process that started this one
    with redirect_stdout(sys.stderr):
        try:
            result: Any = part.count()
        except Exception as error:  # noqa: BLE001  # raised where the part came from
            result = error
    pickle.dump(result, sys.stdout.buffer)


@dataclass(frozen=True, slots=True)
class StatisticsSource:
    """The cache from which statistics are read, and the executor that counts missing ones.

    Attributes
    ----------
    keeper : ExtractionCache
        Cache of earlier extractions.
    run : LocalExtraction
        Extracts missing statistics.
    tell : callable
        Called with the progress.
    """

    keeper: ExtractionCache = NO_CACHE
    run: LocalExtraction = field(default_factory=LocalExtraction)
    tell: ProgressCallback = field(default_factory=ExtractionLog)


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
class _Block:
    """Items of the outputs of a replicate, whose statistics are stored under one key for each system."""

    replicate: int
    metric: str
    extraction: Extraction
    outputs: Outputs
    items: slice
    keys: list[str]

    def get_items(self, system: int) -> Array:
        return self.outputs.systems[system][self.items]

    def get_gold(self) -> Array:
        assert self.outputs.gold is not None
        return self.outputs.gold[self.items]

    def weigh_items(self, system: int) -> Array:
        """Return the relative cost of each output of a system."""
        lengths = np.array([len(output) for output in self.get_items(system)], np.float64)
        return (lengths + ITEM_OVERHEAD) ** self.extraction.power

    def measure_rate(self, system: int) -> float:
        """Return the seconds for a cost of 1, from timing a few items of a system."""
        weights, outputs, gold = self.weigh_items(system), self.get_items(system), self.get_gold()
        order = np.argsort(weights, kind="stable")
        self.extraction.count([outputs[order[:1]].tolist()], gold[order[:1]].tolist())  # imports what it needs
        for n in PROBED:
            items = order[
                np.linspace(0, len(order) - 1, min(n, len(order)) + 2).astype(np.intp)[1:-1]
            ]  # of all lengths
            start = time.thread_time()  # which other programs hardly affect
            self.extraction.count([outputs[items].tolist()], gold[items].tolist())
            if (spent := time.thread_time() - start) > PROBE_SECONDS:
                break
        return float(spent / weights[items].sum())


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
    blocks_by_set = [[*_iter_blocks(counts, metrics)] for counts, metrics in requests]
    blocks = [block for of_set in blocks_by_set for block in of_set]
    keys = dict.fromkeys(key for block in blocks for key in block.keys)
    entries = source.keeper.get(list(keys)) if keys else {}
    unpacked = ((key, unpack_statistics(key, content)) for key, content in entries.items())
    statistics = {key: array for key, array in unpacked if array is not None}
    missing = set(keys) - statistics.keys()
    if missing:
        _extract_missing(blocks, missing, source, statistics)
    return [
        _build_extracted(counts, of_set, statistics, missing)
        for (counts, _), of_set in zip(requests, blocks_by_set, strict=True)
    ]


def needs_extraction(counts: Counts, metrics: Sequence[Any]) -> bool:
    """Return whether metrics need statistics of whole outputs that the data do not have."""
    return any(True for _ in _iter_blocks(counts, metrics))


def _iter_blocks(counts: Counts, metrics: Sequence[Any]) -> Iterator[_Block]:
    extractions: dict[str, tuple[str, Extraction]] = {}
    for metric in metrics:
        if (extraction := getattr(metric, "extraction", None)) is not None:
            extractions.setdefault(extraction.key, (metric.name, extraction))
    for r, replicate in enumerate(counts.replicates or (counts,)):
        outputs = replicate.outputs
        if outputs is None or outputs.gold is None:
            continue
        hash_block = cache(partial(_hash_block, outputs))
        for extraction_key, (name, extraction) in extractions.items():
            if extraction_key in replicate.extracted or extraction.of not in replicate.fields:
                continue
            starts = range(0, replicate.n_items, extraction.block)
            digests = [hash_block(start, start + extraction.block) for start in starts]
            for start, of_block in zip(starts, digests, strict=True):
                if None not in digests:  # without a digest of its content, `bind` computes the statistics
                    keys = [_join_digests(extraction_key, digest) for digest in of_block or ()]
                    yield _Block(r, name, extraction, outputs, slice(start, start + extraction.block), keys)


def _hash_block(outputs: Outputs, start: int, stop: int) -> list[str] | None:
    """Return a digest of the outputs and gold items for each system, or None if some cannot be hashed."""
    assert outputs.gold is not None
    digests = [hash_items(column[start:stop]) for column in (outputs.gold, *outputs.systems)]
    gold, *others = [digest or "" for digest in digests]
    return None if None in digests else [_join_digests(gold, digest) for digest in others]


PART_SECONDS = 5.0
"""Approximate maximum seconds of a part of several systems. At most so much work is lost if the process is killed."""

PUT_SECONDS = 1.0
"""Seconds between two writes of finished work to the cache."""

PROBED = (1, 8, 64)
"""Numbers of items that are timed, until it takes long enough."""

PROBE_SECONDS = 0.1
"""Seconds of timing that are long enough."""

ITEM_OVERHEAD = 20
"""Fixed cost of an item, in characters."""


def _extract_missing(
    blocks: Sequence[_Block], missing: set[str], source: StatisticsSource, statistics: dict[str, Array]
) -> None:
    """Count missing statistics, each once, and store finished ones from time to time, also if an error follows."""
    names, parts = _plan_parts(blocks, missing, source.run.n)
    all_seconds, total = (sum(part.seconds for part in parts), sum(len(part.keys) * len(part.gold) for part in parts))
    source.tell(ExtractionProgress(names, 0, total, all_seconds / source.run.n, source.run.n))
    start = last_put = time.monotonic()
    n_done, seconds_done, waiting = 0, 0.0, {}
    try:
        for number, arrays in source.run(parts, all_seconds):
            part = parts[number]
            for key, array in zip(part.keys, arrays, strict=True):
                statistics[key], waiting[key] = array, pack_statistics(key, array)
            if time.monotonic() - last_put > PUT_SECONDS:
                source.keeper.put(waiting)
                waiting, last_put = {}, time.monotonic()
            n_done, seconds_done = n_done + len(part.keys) * len(part.gold), seconds_done + part.seconds
            left = (time.monotonic() - start) * (all_seconds - seconds_done) / seconds_done
            source.tell(ExtractionProgress(names, n_done, total, max(left, 0.0), source.run.n))
    finally:
        if waiting:
            source.keeper.put(waiting)


def _plan_parts(blocks: Sequence[_Block], missing: set[str], n_workers: int) -> tuple[str, list[ExtractionPart]]:
    """Return the names of the metrics that lack statistics, and the parts in which these are counted."""
    rates: dict[str, float] = {}
    planned: list[tuple[_Block, list[int], Array]] = []
    unplanned = set(missing)
    for block in blocks:
        systems = [*{key: s for s, key in enumerate(block.keys) if key in unplanned}.values()]
        unplanned -= {*block.keys}
        if systems:
            key = block.extraction.key
            rates[key] = rates.get(key) or block.measure_rate(systems[0])
            planned.append((block, systems, np.array([block.weigh_items(s).sum() * rates[key] for s in systems])))
    most = sum(seconds.sum() for *_, seconds in planned) / (8 * n_workers)
    most = float(np.clip(most, PART_SECONDS / 20, PART_SECONDS))
    parts = []
    for block, systems, seconds in planned:
        gold, n_groups = block.get_gold().tolist(), int(np.clip(np.ceil(seconds.sum() / most), 1, len(systems)))
        for group in np.array_split(np.arange(len(systems)), n_groups):
            chosen = [systems[k] for k in group]
            outputs, keys = zip(*((block.get_items(s).tolist(), block.keys[s]) for s in chosen), strict=True)
            parts.append(ExtractionPart(block.extraction, outputs, gold, keys, float(seconds[group].sum())))
    return format_list([*dict.fromkeys(block.metric for block, *_ in planned)]), parts


def _build_extracted(
    counts: Counts, blocks: Sequence[_Block], arrays: Mapping[str, Array], new: set[str]
) -> ExtractedData:
    replicates = counts.replicates or (counts,)
    extracted: list[dict[str, Array]] = [dict(replicate.extracted) for replicate in replicates]
    made: dict[str, dict[str, None]] = defaultdict(dict)
    n_kept = 0
    for (r, metric, extraction_key), group in groupby(blocks, lambda b: (b.replicate, b.metric, b.extraction.key)):
        keys_by_system = list(zip(*(block.keys for block in group), strict=True))
        statistics = [np.concatenate([arrays[key] for key in keys]) for keys in keys_by_system]
        extracted[r][extraction_key] = np.stack(statistics, axis=1)
        pairs = zip(counts.systems, keys_by_system, strict=True)
        changed = [system for system, keys in pairs if not new.isdisjoint(keys)]
        n_kept += len(keys_by_system) - len(changed)
        made[metric] |= dict.fromkeys(changed)
    filled = tuple(replace(r, extracted=arrays) for r, arrays in zip(replicates, extracted, strict=True))
    counts = replace(counts, replicates=filled) if counts.replicates else filled[0]
    return ExtractedData(counts, {metric: tuple(names) for metric, names in made.items() if names}, n_kept)
