"""A resolved plan: paths are absolute, defaults are filled in, and patterns are expanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

from sigdask import formats
from sigdask.analysis.candidate_rankings.spec import RankingSpec
from sigdask.counts import Counts
from sigdask.counts.candidates import Candidates
from sigdask.execution.clusters.description import ClusterSpec
from sigdask.formats import Options, Source, candidates
from sigdask.formats.candidates import CandidateColumns
from sigdask.nightly.gate import Fdr, Rule
from sigdask.options import (
    Adjust,
    Alternative,
    IndependenceOptions,
    IntervalKind,
    Layout,
    Method,
    TableLayoutOptions,
    rename_error_options,
)
from sigdask.statistics.stopping import Stopping

Family = Literal["metric", "test-set", "plan"]


@dataclass(frozen=True, slots=True)
class TestSet:
    """Files of one test set, and the comparisons to make on it.

    Attributes
    ----------
    name : str
        Unique in the plan; part of the address of its shuffles.
    sources : tuple of Source
        Files of its systems, absolute, patterns resolved.
    gold : Path or None
        File of what is right.
    format : str
        As `--format` takes it, own options after the name.
    options : Options
        How to read; complete, with the name and the columns of `unit` and `by`.
    metrics : tuple of str
        Empty: those that the data suggest.
    unit : str
        What is exchanged as a whole.
    by : str or None
        Column to compare within.
    baseline : str or None
        Compare every other system with this one.
    pairs : tuple of (str, str), or None
        Systems to compare; None with no baseline is all pairs.
    alternative, method, trials, exact_limit
        As in `compare_all`.
    tests : tuple of str
        Classical tests beside p.
    interval, confidence, resamples
        As in `compare_all`; plans have no intervals by default.
    """

    __test__: ClassVar[bool] = False  # no test, whatever pytest makes of its name

    name: str
    sources: tuple[Source, ...]
    gold: Path | None
    format: str
    options: Options
    metrics: tuple[str, ...]
    unit: str
    by: str | None
    baseline: str | None
    pairs: tuple[tuple[str, str], ...] | None
    alternative: Alternative
    method: Method
    trials: int | None
    exact_limit: float | None = None
    tests: tuple[str, ...] = ()
    interval: IntervalKind = "none"
    confidence: float = 0.95
    resamples: int | None = None

    def read(self) -> Counts:
        """Read the files into aligned counts, with the test set's unit."""
        with rename_error_options("plan"):
            counts = formats.read(*self.sources, gold=self.gold, format=self.format, options=self.options)
            return counts.with_unit(self.unit)

    def list_files(self, read_paths: Sequence[Path] = ()) -> tuple[Path, ...]:
        """Return every file that reading may open. If `read_paths` are given, they stand for the systems' files."""
        options = self.options
        other_paths = (self.gold, options.documents, options.group_file, *options.references)
        systems = read_paths or [path for source in self.sources for path in source.parts or (source.path,)]
        return (*systems, *(path for path in other_paths if path is not None))


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """One list of candidates that association measures rank.

    Attributes
    ----------
    name : str
        Unique in the plan; part of the address of what is drawn.
    path : Path
        The file.
    columns : CandidateColumns
        Which columns hold what.
    spec : RankingSpec
        What is asked of the rankings.
    """

    name: str
    path: Path
    columns: CandidateColumns
    spec: RankingSpec

    def read(self) -> Candidates:
        """Read the file."""
        with rename_error_options("plan"):
            return candidates.read(self.path, self.columns, name=self.name)


@dataclass(frozen=True, slots=True)
class TestedLabels:
    """Labellings to be tested for independence of a reference labelling.

    Attributes
    ----------
    name : str
        Unique in the plan; part of the address of its permutations.
    sources : tuple of Source
        Files of the labellings.
    gold : Path or None
        File of what they are held against.
    format : str
        As `--format` takes it.
    options : Options
        How to read.
    metrics : tuple of str
        Scores of labels.
    within : str or None
        Column within whose values labels are permuted.
    settings : IndependenceOptions
        What else is asked.
    """

    __test__: ClassVar[bool] = False  # no test, whatever pytest makes of its name

    name: str
    sources: tuple[Source, ...]
    gold: Path | None
    format: str
    options: Options
    metrics: tuple[str, ...]
    within: str | None
    settings: IndependenceOptions

    @property
    def reference(self) -> str:
        """Name of the labelling that the others are compared with."""
        return self.options.gold_column or "gold" if self.gold is None else Source(self.gold).system

    def read(self) -> Counts:
        """Read the files."""
        with rename_error_options("plan"):
            return formats.read(*self.sources, gold=self.gold, format=self.format, options=self.options)

    def list_files(self) -> tuple[Path, ...]:
        """Return every file that may be read."""
        systems = [path for source in self.sources for path in source.parts or (source.path,)]
        return (*systems, *(path for path in (self.gold, self.options.group_file) if path is not None))


OUTPUTS = ("json", "csv", "parquet", "markdown", "latex", "text", "html")
"""What a report's files hold, by the keys of a plan."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Files to write when the plan is done; None is not written.

    Attributes
    ----------
    json, text, html, csv, parquet, markdown, latex : Path or None
        `{date}` and `{time}` in them stand for the start of the run.
    layout : {"systems", "pairs"} or None
        Of the tables for papers.
    digits : int or None
        Decimals of their scores.
    percent : bool
        Whether shares of 1 are in per cent there.
    figures : Path or None
        A folder for figures, `{date}` and `{time}` in it as in files.
    figure_format : tuple of str
        What they are written as.
    """

    json: Path | None = None
    text: Path | None = None
    html: Path | None = None
    csv: Path | None = None
    parquet: Path | None = None
    markdown: Path | None = None
    latex: Path | None = None
    layout: Layout | None = None
    digits: int | None = None
    percent: bool = False
    figures: Path | None = None
    figure_format: tuple[str, ...] = ("svg", "pdf")

    @property
    def files(self) -> dict[str, Path]:
        """Paths of the files to write, by their kind."""
        named_paths = ((name, getattr(self, name)) for name in OUTPUTS)
        return {name: path for name, path in named_paths if path is not None}

    @property
    def print_options(self) -> TableLayoutOptions:
        """Layout options of tables for papers."""
        return {"layout": self.layout, "digits": self.digits, "percent": self.percent}

    def fill_dates(self, start: datetime) -> ReportFiles:
        """Return the files with the date and time of a run's start in their names."""
        files: dict[str, Any] = {name: fill_date(path, start) for name, path in self.files.items()}
        return replace(self, **files, figures=fill_date(self.figures, start))


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """The recipients of a gate's outcome.

    Attributes
    ----------
    command : tuple of str
        Program and arguments, run without a shell; empty for none.
    webhook : str or None
        URL that the gate's JSON is sent to.
    body : str or None
        Template of what is sent there instead (`sigdask.nightly.gate.web_hook`).
    when : {"always", "failed", "new"}
        Which ends are told; new: failures for other outputs than those that failed before.
    timeout : float
        Seconds to wait for either.
    """

    command: tuple[str, ...] = ()
    webhook: str | None = None
    body: str | None = None
    when: Literal["always", "failed", "new"] = "failed"
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules of a plan, and their settings.

    Attributes
    ----------
    rules : tuple of Rule
        All must hold.
    runs_per_year : float
        For the expected number of false alarms.
    fdr : {"none", "lord++", "lond"}
        Online false-discovery rule over the history of runs.
    junit, json : Path or None
        Files to write; dated as in `ReportFiles`.
    notify : NotifySettings
        Whom to tell.
    """

    rules: tuple[Rule, ...]
    runs_per_year: float = 365.0
    fdr: Fdr = "none"
    junit: Path | None = None
    json: Path | None = None
    notify: NotifySettings = NotifySettings()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a night evaluates.

    Attributes
    ----------
    path : Path
        The plan file, absolute.
    name : str
        By default the file's name without its ending.
    test_sets : tuple of TestSet
        In the order of the file.
    seed, alpha, second_run
        As in `compare_all`.
    adjust : str or None
        As in `compare_sets`: None is max-t for three systems and more, Holm for metrics of whole outputs.
    family : {"metric", "test-set", "plan"}
        What is adjusted together: the comparisons of a test set under one metric, of a test set, of the
        whole plan.
    stopping : BesagClifford, ConfidenceSequence or None
        Rule to stop counting early.
    cluster : str or Description
        As `--cluster` takes it, or what a table describes.
    workers : int or None
        Threads or processes to start.
    store : str
        URL of the database.
    report : ReportFiles
        Files to write at the end.
    gate : Gate or None
        What must hold.
    rankings : tuple of RankedCandidates
        Lists of candidates, in the order of the file.
    independence : tuple of TestedLabels
        Labellings that are tested for independence of another, likewise.
    """

    path: Path
    name: str
    test_sets: tuple[TestSet, ...]
    seed: int = 0
    alpha: float = 0.05
    second_run: bool = True
    adjust: Adjust | None = None
    family: Family = "test-set"
    stopping: Stopping | None = None
    cluster: ClusterSpec = "auto"
    workers: int | None = None
    store: str = ""
    report: ReportFiles = ReportFiles()
    gate: Gate | None = None
    rankings: tuple[RankedCandidates, ...] = ()
    independence: tuple[TestedLabels, ...] = ()


def fill_date(path: Path | None, start: datetime) -> Path | None:
    """Return a path with the date and time inserted.

    Examples
    --------
    >>> fill_date(Path("night-{date}.json"), datetime(2026, 1, 31)).name
    'night-2026-01-31.json'
    """
    if path is None:
        return None
    return Path(str(path).replace("{date}", f"{start:%Y-%m-%d}").replace("{time}", f"{start:%H%M%S}"))


CANDIDATE = "candidate"
"""Unit of a list of candidates in its cost."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Size and estimated cost of one test set.

    Attributes
    ----------
    test_set, format, unit : str
        As they were read.
    n_systems, n_items, n_units, n_comparisons : int
        Sizes.
    n_enumerated : int
        Comparisons of which all arrangements are counted.
    n_trials : int
        Of each other comparison; 0 where there is none.
    total : int
        Trials summed over comparisons, as `run` and `status` state them.
    seconds : float
        On one core of this machine, the second run and the family included.
    warnings : tuple of str
        What the reader noticed.
    n_gated : tuple of int
        Comparisons that each rule of the gate speaks of.
    """

    test_set: str
    format: str
    unit: str
    n_systems: int
    n_items: int
    n_units: int
    n_comparisons: int
    n_enumerated: int
    n_trials: int
    total: int
    seconds: float
    warnings: tuple[str, ...]
    n_gated: tuple[int, ...] = ()
