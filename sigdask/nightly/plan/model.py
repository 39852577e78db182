"""A resolved plan: paths are absolute, defaults are filled in, and patterns are expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from sigdask.nightly.gate.rules import Rule
from sigdask.nightly.test_sets import HasComparison, TestSet
from sigdask.options import SelectionOptions

OUTPUTS = ("json", "csv", "parquet", "items", "markdown", "latex", "text", "html")
"""Contents of a report's files, by plan key."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Files to write at the end of a run. A file whose path is None is not written.

    Attributes
    ----------
    files : mapping of str to Path
        Paths of the files by their contents (`OUTPUTS`). `{date}` and `{time}` in them stand for the start of the run.
    site : Path or None
        Folder of a static site, which each run updates.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    site: Path | None = None

    @property
    def has_page(self) -> bool:
        """Whether the run writes a page, alone or in a site."""
        return "html" in self.files or self.site is not None

    def fill_dates(self, start: datetime) -> ReportFiles:
        """Return the files with the date and time of a run's start in their names."""
        return replace(self, files={name: fill_date(path, start) for name, path in self.files.items()})


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """The recipients of a gate's outcome.

    Attributes
    ----------
    command : tuple of str
        Program and arguments, run without a shell. Empty for none.
    webhook : str or None
        URL to which the gate's JSON is sent.
    when : {"always", "failed", "new"}
        Runs that are reported. "new" means failures for other outputs than those that failed before.
    timeout : float
        Seconds to wait for the program, and for an answer from the URL.
    """

    command: tuple[str, ...] = ()
    webhook: str | None = None
    when: Literal["always", "failed", "new"] = "failed"
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules of a plan, and their settings.

    Attributes
    ----------
    rules : tuple of Rule
        Rules, all of which must hold.
    runs_per_year : float
        Expected number of runs per year, from which the number of false alarms is estimated.
    junit, json : Path or None
        Files to write, with dates as in `ReportFiles`.
    notify : NotifySettings
        Who is notified of the verdict, and when.
    """

    rules: tuple[Rule, ...]
    runs_per_year: float = 365.0
    junit: Path | None = None
    json: Path | None = None
    notify: NotifySettings = NotifySettings()


@dataclass(frozen=True, slots=True)
class Plan(HasComparison):
    """A plan: the test sets and options of a nightly evaluation, as `load_plan` reads them from a file.

    Attributes
    ----------
    path : Path
        Absolute path of the plan file.
    name : str
        Name of the plan, by default the file's name without its ending.
    test_sets : tuple of TestSet
        Test sets, in the order of the file.
    comparison : SelectionOptions
        Options that all test sets share: seed, alpha, second_run, adjust and workers.
    cluster : str
        Where trials are counted: a value of `--cluster`.
    store : str
        File or URL of the database.
    report : ReportFiles
        Files to write at the end.
    gate : Gate or None
        Rules that a run must pass. None if there are no rules.
    """

    path: Path
    name: str
    test_sets: tuple[TestSet, ...]
    comparison: SelectionOptions
    cluster: str
    store: str
    report: ReportFiles = ReportFiles()
    gate: Gate | None = None


def fill_date(path: Path, start: datetime) -> Path:
    """Return a path with the date and time in place of `{date}` and `{time}`.

    Examples
    --------
    >>> fill_date(Path("night-{date}.json"), datetime(2026, 1, 31)).name
    'night-2026-01-31.json'
    """
    return Path(str(path).replace("{date}", f"{start:%Y-%m-%d}").replace("{time}", f"{start:%H%M%S}"))


@dataclass(frozen=True, slots=True)
class PlanEntrySize:
    """Size of a test set.

    Attributes
    ----------
    name, format, unit : str
        Its name, detected format and swapped unit.
    n_systems, n_items, n_units, n_comparisons : int
        Numbers of systems, items, units and comparisons.
    warnings : tuple of str
        Warnings of the reader.
    """

    name: str
    format: str
    unit: str
    n_systems: int
    n_items: int
    n_units: int
    n_comparisons: int
    warnings: tuple[str, ...]
