"""Test sets of plans, and the preparation of their studies."""

from __future__ import annotations

import hashlib
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from sigdask import formats
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.analysis.comparison.study import Study, plan_study
from sigdask.counts import Counts
from sigdask.formats import Options, Source
from sigdask.interface import use_interface
from sigdask.metrics import is_address
from sigdask.metrics.extraction import needs_extraction
from sigdask.options import SelectionOptions


@dataclass(frozen=True, slots=True)
class TestSet:
    """Files of one test set, and the comparisons to make on it.

    Attributes
    ----------
    name : str
        Unique in the plan; part of the address of what is drawn.
    sources : tuple of Source
        Files of its systems or labellings, absolute, patterns resolved.
    gold : Path or None
        Gold-standard file.
    format : str
        Format as for `--format`, with options after the name.
    options : Options
        How to read; complete, with the name and the columns of groups.
    comparison : SelectionOptions
        Options of its comparisons, complete: as in `compare_all`, but that metrics may be empty for those that the data
        suggest, `unit` is one text, and plans have no intervals by default.
    """

    __test__: ClassVar[bool] = False  # no test, whatever pytest makes of the name

    name: str
    sources: tuple[Source, ...]
    gold: Path | None
    format: str
    options: Options
    comparison: SelectionOptions

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of metrics; empty for those that the data suggest."""
        return tuple(self.comparison["metrics"] or ())

    @property
    def unit(self) -> str:
        """The swapped unit."""
        return str(self.comparison["unit"] or "item")

    def read(self) -> Counts:
        """Read the files into aligned counts, with the test set's unit."""
        with use_interface("plan"):
            counts = formats.read(*self.sources, gold=self.gold, format=self.format, options=self.options)
            return counts.with_unit(self.unit)

    def list_files(self, read_paths: Sequence[Path] = ()) -> tuple[Path, ...]:
        """Return every file that reading may open. If `read_paths` are given, they stand for the systems' files."""
        options = self.options
        other_paths = (self.gold, options.documents, options.group_file, *options.references)
        systems = read_paths or [path for source in self.sources for path in source.parts or (source.path,)]
        return (*systems, *(path for path in other_paths if path is not None))


def build_study(settings: SelectionOptions, test_set: TestSet, counts: Counts, metrics: Sequence[Any] = ()) -> Study:
    """Return the study of a test set. Its comparisons by each metric are judged together.

    Parameters
    ----------
    settings : SelectionOptions
        The seed, level and adjustment that all test sets of the plan share.
    test_set : TestSet
        The test set.
    counts : Counts
        What it read.
    metrics : sequence, optional
        Metrics, instead of the test set's own.
    """
    spec = build_spec(test_set, counts, metrics)
    spec = replace(spec, alpha=settings["alpha"], second_run=settings["second_run"])
    return plan_study([(counts, spec)], adjust=settings["adjust"])


def build_spec(test_set: TestSet, counts: Counts, metrics: Sequence[Any]) -> CompareSpec:
    """Return the specification of a test set. Given metrics replace its own."""
    return CompareSpec.from_options(test_set.comparison, metrics or test_set.metrics or counts.suggested)


SETTLED_NS = 2 * 10**9
"""Age of a file in nanoseconds from which its times reveal each change. File systems round them to at most 2 seconds.
"""


def digest_state(test_sets: Sequence[TestSet], shared: str) -> str:
    """Return a digest of all inputs of the results of test sets, or "" if unknown.

    It covers what is shared, their settings, and the size, inode, time of change and time of modification of each file.
    Unknown are folders, URLs, the user's own formats and metrics, and files that changed just now.
    """
    now, texts = time.time_ns(), [shared, repr(test_sets)]
    if any(":" in t.format.partition("=")[0] or any(map(is_address, t.metrics)) for t in test_sets):
        return ""  # code of the user's own, or options of a format, which may name files
    for path in (path for test_set in test_sets for path in test_set.list_files()):
        try:
            state = path.stat()
        except OSError:
            return ""
        if not stat.S_ISREG(state.st_mode) or max(state.st_mtime_ns, state.st_ctime_ns) > now - SETTLED_NS:
            return ""
        texts.append(f"{path!r} {state.st_size} {state.st_ino} {state.st_mtime_ns} {state.st_ctime_ns}")
    return hashlib.sha256("\n".join(texts).encode(errors="surrogateescape")).hexdigest()[:32]


def prepare_set(settings: SelectionOptions, test_set: TestSet) -> tuple[Counts, Study | None]:
    """Read a test set; return its counts, and the study to count unless it needs statistics of whole outputs."""
    counts = test_set.read()
    metrics = build_spec(test_set, counts, ()).find_metrics(counts)
    return counts, None if needs_extraction(counts, metrics) else build_study(settings, test_set, counts, metrics)
