"""Extractions of statistics and their digests, and counting of what is missing.

The digest is made of the content of outputs and gold items, not of their files. Missing statistics are counted in parts
of some seconds, also in several processes, and assembled for each system.

A part has some items of several systems, so that the gold items are prepared once for all of these systems. Progress is
reported at the start and then at intervals.

Threads would wait for each other, because the counters hold Python's lock. So processes are used: new interpreters that
import the counters but nothing of the program that started them. A script therefore needs no `if __name__ ==
"__main__"`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.errors import UnfinishedError
from sigdask.interface import spell
from sigdask.text import format_duration

EXTRACTION_VERSION = 1
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
        Number of items stored together. A change costs at least one block, a killed process loses at most one.
    """

    name: str
    counter: Counter
    options: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    of: str = "segments"
    power: int = 1
    block: int = 4096

    @property
    def key(self) -> str:
        """A digest of the counting function, its options and the versions of the packages that it uses."""
        versions = [(package, get_version(package)) for package in ("python", *self.packages)]
        payload = json.dumps([EXTRACTION_VERSION, self.name, sorted(self.options.items()), versions])
        return hashlib.blake2b(payload.encode(), digest_size=DIGEST_BYTES).hexdigest()

    def split_items(self, n_items: int) -> list[slice]:
        """Return the blocks of items whose statistics are stored under one key."""
        return [slice(first, min(first + self.block, n_items)) for first in range(0, n_items, self.block)]

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
    """Return the digest of outputs or gold items that are texts, lists of texts, or numbers by name; None for others.

    Examples
    --------
    >>> from sigdask.counts.fields import to_object_array
    >>> hash_items(to_object_array(["ab", "c"])) == hash_items(to_object_array(["a", "bc"]))
    False
    """
    hasher = hashlib.blake2b(digest_size=DIGEST_BYTES)
    return hasher.hexdigest() if _add_items(hasher, items.tolist()) else None


def join_digests(*digests: str) -> str:
    """Return one digest of several digests in this order."""
    return hashlib.blake2b(" ".join(digests).encode(), digest_size=DIGEST_BYTES).hexdigest()


def _add_items(hasher: Any, items: Sequence[Any]) -> bool:
    """Add items and their lengths to a hash, and return whether they are of a kind that can be hashed.

    With the lengths, different lists never give the same bytes.
    """
    kinds = tuple({type(item) for item in items})
    if all(issubclass(kind, (str, type(None))) for kind in kinds):
        lengths = [-1 if text is None else len(text) for text in items]
        _add_block(hasher, "text", lengths, "".join(filter(None, items)).encode("utf-8", "surrogatepass"))
        return True
    if all(issubclass(kind, (tuple, list)) for kind in kinds):
        _add_block(hasher, "texts", list(map(len, items)), b"")
        return _add_items(hasher, list(chain.from_iterable(items)))
    if all(issubclass(kind, dict) for kind in kinds):
        numbers = list(chain.from_iterable(item.values() for item in items))
        _add_block(hasher, "numbers", list(map(len, items)), repr(numbers).encode())
        return all(isinstance(n, int) for n in numbers) and _add_items(hasher, list(chain.from_iterable(items)))
    return False


def _add_block(hasher: Any, kind: str, lengths: Sequence[int], content: bytes) -> None:
    hasher.update(f"{kind} {len(lengths)} {len(content)} ".encode())
    hasher.update(np.array(lengths, "<i8").tobytes())
    hasher.update(content)


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
    every : float
        Seconds between two lines.
    """

    def __init__(self, say: Callable[[str], None] = LOG.info, every: float = EVERY) -> None:
        self._say = say
        self._every = every
        self._last = 0.0

    def __call__(self, how_far: ExtractionProgress) -> None:
        """Log the progress if a line is due."""
        now = time.monotonic()
        if not how_far.done:
            self._last = now if how_far.left >= MIN_SECONDS else 0.0
            if self._last:
                self._say(str(how_far))
        elif self._last and now - self._last >= self._every and how_far.done < how_far.total:
            self._last = now
            self._say(str(how_far))


PART_SECONDS = 5.0
"""Approximate maximum seconds of a part. Progress is reported after each part."""

GROUP_SECONDS = 5.0
"""Approximate seconds of work on systems that are stored together. At most so much work is lost if the process is
killed.
"""

PROBED = (1, 8, 64)
"""Numbers of items that are timed, until it takes long enough."""

PROBE_SECONDS = 0.1
"""Seconds of timing that are long enough."""

ITEM_OVERHEAD = 20
"""Fixed cost of an item, in characters."""


@dataclass(frozen=True, slots=True)
class ExtractionPart:
    """Some items of some systems whose statistics are counted in one call, by a process or worker."""

    extraction: Extraction
    systems: tuple[list[Any], ...]
    gold: list[Any]

    def count(self) -> list[Array]:
        """Count and return the statistics of each system, shape (n_items, n_fields)."""
        return self.extraction.count(self.systems, self.gold)


class Executor(Protocol):
    """Something that counts the parts of an extraction, in this process or on workers."""

    @property
    def n(self) -> int:
        """Number of parts counted at the same time."""
        ...

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> Iterator[tuple[int, list[Array]]]:
        """Yield each part's number and statistics as parts finish; `seconds` estimates the total time."""
        ...


class LocalExtraction:
    """An executor that counts parts one after the other in this process."""

    n = 1

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> Iterator[tuple[int, list[Array]]]:  # noqa: ARG002
        """Yield each part's number and statistics, in order."""
        return ((number, part.count()) for number, part in enumerate(parts))


@dataclass(frozen=True, slots=True, eq=False)
class ItemBlock:
    """Items whose statistics are stored under one key per system, and the systems that still lack them.

    Attributes
    ----------
    items : slice
        Range of the items.
    systems : dict of str to int
        System of each key whose statistics are missing.
    """

    items: slice
    systems: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class MissingStatistics:
    """The statistics that one extraction still has to count for one set of data.

    Attributes
    ----------
    extraction : Extraction
        The statistics.
    outputs : tuple of object array, shape (n_items,)
        Outputs of each system.
    gold : object array, shape (n_items,)
        The gold standard.
    blocks : tuple of ItemBlock
        Blocks with missing statistics.
    """

    extraction: Extraction
    outputs: tuple[Array, ...]
    gold: Array
    blocks: tuple[ItemBlock, ...]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Relative costs of counting each output, shape (n_systems, n_items); 0 if it needs no counting."""
        found = np.zeros((len(self.outputs), len(self.gold)))
        for block in self.blocks:
            for s in block.systems.values():
                lengths = np.array([len(output) for output in self.outputs[s][block.items]], np.float64)
                found[s, block.items] = (lengths + ITEM_OVERHEAD) ** self.extraction.power
        return found

    def build_part(self, systems: Sequence[int], items: slice | NDArray[np.intp]) -> ExtractionPart:
        """Return the part that counts some items of some systems."""
        outputs = tuple(self.outputs[s][items].tolist() for s in systems)
        return ExtractionPart(self.extraction, outputs, self.gold[items].tolist())

    def estimate_seconds(self, weights: NDArray[np.float64]) -> float:
        """Return how many seconds one process needs for all missing statistics, from timing a few items."""
        system = int(np.argmax(weights.any(axis=1)))
        lacking = np.flatnonzero(weights[system])
        n_items = len(lacking)
        order = lacking[np.argsort(weights[system, lacking], kind="stable")]
        self.build_part([system], order[:1]).count()  # imports what it needs
        for n in PROBED:
            items = order[np.linspace(0, n_items - 1, min(n, n_items) + 2).astype(np.intp)[1:-1]]  # of all lengths
            spent = _time_part(self.build_part([system], items))
            if spent > PROBE_SECONDS:
                break
        return float(spent * weights.sum() / weights[system, items].sum())


def _time_part(part: ExtractionPart) -> float:
    """Return the CPU seconds that a part takes, which other programs hardly affect."""
    start = time.thread_time()
    part.count()
    return time.thread_time() - start


@dataclass(frozen=True, slots=True, eq=False)
class _PlacedPart:
    """A part with its place in a block: the keys of its systems and the range of its items."""

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
        return self.missing.build_part([self.block.systems[key] for key in self.keys], slice(self.first, self.stop))


def _cut_block(missing: MissingStatistics, block: ItemBlock, costs: Array, most: float) -> Iterator[_PlacedPart]:
    """Yield parts of a block that each take at most about `most` seconds; costs have shape (n_systems, n_items)."""
    keys, start = tuple(block.systems), block.items.start
    block_costs = costs[list(block.systems.values()), block.items]
    n_groups = int(np.clip(round(block_costs.sum() / GROUP_SECONDS), 1, len(keys)))
    for group in np.array_split(np.arange(len(keys)), n_groups):
        until = np.cumsum(block_costs[group].sum(axis=0))  # seconds, shape (n_items,)
        n_pieces = int(np.clip(np.ceil(until[-1] / most), 1, len(until)))
        inner = np.searchsorted(until, until[-1] * np.arange(1, n_pieces) / n_pieces)
        for first, stop in pairwise(np.unique([0, *inner.tolist(), len(until)]).tolist()):
            seconds = until[stop - 1] - (until[first - 1] if first else 0)
            group_keys = tuple(keys[k] for k in group)
            yield _PlacedPart(missing, block, group_keys, start + first, start + stop, float(seconds))


def extract_missing(
    missing: Sequence[MissingStatistics], run: Executor, tell: ProgressCallback, metric_names: str
) -> Iterator[tuple[str, Array]]:
    """Count missing statistics; yield each block and system's key with its statistics as soon as it is finished."""
    weights = [statistics.weights for statistics in missing]
    expected = [statistics.estimate_seconds(w) for statistics, w in zip(missing, weights, strict=True)]
    max_seconds = float(np.clip(sum(expected) / (8 * run.n), PART_SECONDS / 20, PART_SECONDS))
    pieces = [
        piece
        for statistics, w, seconds in zip(missing, weights, expected, strict=True)
        for block in statistics.blocks
        for piece in _cut_block(statistics, block, w * (seconds / w.sum()), max_seconds)
    ]
    total, all_seconds = sum(piece.n_outputs for piece in pieces), sum(expected)
    tell(ExtractionProgress(metric_names, 0, total, all_seconds / run.n, run.n))
    start, n_done, finished_seconds = time.monotonic(), 0, 0.0
    unfinished: dict[str, dict[int, Array]] = {}
    for number, arrays in run([piece.part for piece in pieces], all_seconds):
        piece = pieces[number]
        for key, array in zip(piece.keys, arrays, strict=True):
            pieces_done = unfinished.setdefault(key, {})
            pieces_done[piece.first] = array
            if sum(map(len, pieces_done.values())) == piece.block.items.stop - piece.block.items.start:
                yield key, np.concatenate([pieces_done[first] for first in sorted(pieces_done)])
                del unfinished[key]
        n_done, finished_seconds = n_done + piece.n_outputs, finished_seconds + piece.seconds
        remaining = (time.monotonic() - start) * (all_seconds - finished_seconds) / finished_seconds
        tell(ExtractionProgress(metric_names, n_done, total, max(remaining, 0.0), run.n))


class ProcessExtraction:
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
    command = [sys.executable, "-P", "-c", "from sigdask.metrics.extraction.parts import serve; serve()"]
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
