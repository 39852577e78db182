"""Test sets of plans, and the preparation of their studies."""

from __future__ import annotations

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


def prepare_set(settings: SelectionOptions, test_set: TestSet) -> tuple[Counts, Study | None]:
    """Read a test set; return its counts, and the study to count unless it needs statistics of whole outputs."""
    counts = test_set.read()
    metrics = build_spec(test_set, counts, ()).find_metrics(counts)
    return counts, None if needs_extraction(counts, metrics) else build_study(settings, test_set, counts, metrics)
