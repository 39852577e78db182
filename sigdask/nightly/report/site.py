"""A static site of plans: an index of all plans, a page of all nights of each, and a page for each night.

The site is a folder. Each plan has a folder in it, with `plan.json`, from which the index is made. So a run updates
the site without the other plans' stores.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from sigdask.analysis.details import ComparisonDetails
from sigdask.errors import InputError, UnfinishedError
from sigdask.nightly.report.gate import list_failing_sets, list_first_reasons
from sigdask.nightly.report.text import (
    MAX_REASONS,
    format_gate,
    join_tables,
    list_run_cells,
    select_first,
    write_report,
)
from sigdask.nightly.store import PlanRun
from sigdask.nightly.store.status import Nights, PlanReport, build_report, list_runs, read_nights
from sigdask.report.comparisons import VERDICT_HINTS, format_deciding_p
from sigdask.report.document import Column
from sigdask.report.files import write_parts
from sigdask.report.html import render_html
from sigdask.report.page import MAX_HEADLINES
from sigdask.report.page.frame import PagePart, render_frame
from sigdask.report.page.grids import PageTable
from sigdask.report.sentences import build_verdict, is_adjusted
from sigdask.results.fields import iter_results
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_score, format_signed
from sigdask.text import as_json, format_time, to_plain

MAX_NIGHTS = 2000
"""Maximum number of nights on a plan's page, the latest ones."""

MAX_DRAWN = 400_000
"""Maximum comparisons times nights drawn on a plan's page. Comparisons of the gate and changed ones come first."""

MAX_MARKS = 60
"""Nights of each plan that are marked in the index."""

MAX_SETS, MAX_RANKED = 20, 500
"""Maximum number of test sets whose rankings a plan's page shows, and of rows of each."""

SUMMARY = "plan.json"


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """The latest verdicts of a plan, as the index shows them.

    Attributes
    ----------
    plan : str
        Name of the plan.
    history : str
        Identifier of the plan's runs, from its first run in the store.
    run, when, state : int, str, str
        Number, time and state of the latest run with results.
    gate : str
        "passed", "failed", or "" without a verdict.
    reasons : tuple of str
        Why the gate failed, the first reasons.
    answers : tuple of (str, str)
        Test set and verdict in a sentence, of the first test sets.
    n_sets : int
        Number of all test sets.
    marks : tuple of (int, str)
        Number and gate of the latest nights, the first one first.
    n_nights : int
        Number of all nights.
    """

    plan: str
    history: str
    run: int
    when: str
    state: str
    gate: str
    reasons: tuple[str, ...]
    answers: tuple[tuple[str, str], ...]
    n_sets: int
    marks: tuple[tuple[int, str], ...]
    n_nights: int


_SUMMARY = TypeAdapter(PlanSummary)


def get_folder_name(plan: str) -> str:
    """Return the name of a plan's folder in a site: the plan's own if it is plain, else one with a digest.

    Examples
    --------
    >>> get_folder_name("nightly"), get_folder_name("../Nightly")
    ('nightly', 'nightly-524c0306')
    """
    plain = re.sub(r"[^a-z0-9_-]+", "-", plan.lower()).strip("-")[:60]
    if plain and plain == plan:
        return plan
    digest = hashlib.sha256(plan.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{plain or 'plan'}-{digest}"


def update_site(
    site: Path, report: PlanReport, opened_details: Sequence[ComparisonDetails] = (), *, has_all_nights: bool = False
) -> None:
    """Update a site with the results of a plan's latest run.

    Parameters
    ----------
    site : Path
        Folder of the site. It is created if it does not exist.
    report : PlanReport
        Report of the latest run.
    opened_details : sequence of ComparisonDetails
        Details of the comparisons that the night's page shows.
    has_all_nights : bool
        Whether to write the pages of earlier nights that the site lacks.

    Raises
    ------
    UnfinishedError
        A file cannot be written.
    InputError
        Another plan of the same name is in the site, or a summary in it cannot be read.
    """
    runs = list_runs(report.store, report.run.plan)[::-1]
    history = f"{runs[0].number} {runs[0].started:.6f}"
    folder = site / get_folder_name(report.run.plan)
    if (folder / SUMMARY).exists() and _read_summary(folder / SUMMARY).history != history:
        raise InputError(
            f"has the nights of another store with a plan {report.run.plan!r}",
            file=folder,
            remedy="rename the plan, or remove the folder",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnfinishedError(f"cannot be made ({error.strerror})", file=folder) from None
    latest = folder / _get_night_file(report.run)
    if not (has_all_nights and latest.exists()):  # the page of a run has details, which the store lacks
        write_report(latest, report, opened_details, home="index.html")
    for run in runs if has_all_nights else ():
        file = folder / _get_night_file(run)
        if run.has_results and not file.exists():
            write_report(file, build_report(report.store, run.plan, run.number), home="index.html")
    write_parts(folder / "index.html", [_render_plan(report, runs[-MAX_NIGHTS:], len(runs), folder)])
    summary = _build_summary(report, runs, history)
    write_parts(folder / SUMMARY, [as_json(to_plain(summary)) + "\n"])
    _write_index(site)


def find_latest_report(store: str, plan: str | None) -> PlanReport:
    """Return the report of a plan's latest run that recorded results."""
    report = build_report(store, plan)
    if not report.run.has_results:
        raise InputError(
            f"plan {report.run.plan!r}: no run has recorded results yet", remedy="run the plan to its end first"
        )
    return report


def _get_night_file(run: PlanRun) -> str:
    return f"night-{run.number}.html"


def _build_summary(report: PlanReport, runs: Sequence[PlanRun], history: str) -> PlanSummary:
    run = report.run
    verdict = run.details.get("verdict")
    failing = list_failing_sets(verdict)
    first_sets = sorted(report.results, key=lambda name: name not in failing)[:MAX_HEADLINES]
    return PlanSummary(
        plan=run.plan,
        history=history,
        run=run.number,
        when=format_time(run.started),
        state=run.state + (f" ({run.message})" if run.message else ""),
        gate=format_gate(run).lower(),
        reasons=(*list_first_reasons(verdict, MAX_REASONS),),
        answers=tuple((name, build_verdict(report.results[name]).headline) for name in first_sets),
        n_sets=len(report.results),
        marks=tuple((run.number, format_gate(run).lower()) for run in runs[-MAX_MARKS:]),
        n_nights=len(runs),
    )


def _read_summary(file: Path) -> PlanSummary:
    """Return the summary of a plan in a site; raise InputError if the file holds no summary."""
    try:
        return _SUMMARY.validate_json(file.read_bytes(), strict=True)
    except (OSError, ValueError):
        raise InputError(
            "is no summary of a plan", file=file, remedy="remove it, then write the plan's part of the site again"
        ) from None


def _write_index(site: Path) -> None:
    """Write the index of all plans from their summaries."""
    summaries = [(quote(file.parent.name), _read_summary(file)) for file in sorted(site.glob(f"*/{SUMMARY}"))]
    worst_first = sorted(summaries, key=lambda item: ("failed", "", "passed").index(item[1].gate))
    title = summaries[0][1].plan if len(summaries) == 1 else "Plans"
    context = {"title": title, "created": "", "home": "", "plans": worst_first}
    write_parts(site / "index.html", [render_frame(context, {}, {"site": PagePart(None)}, "site.html")])


def _render_plan(report: PlanReport, runs: Sequence[PlanRun], n_runs: int, folder: Path) -> str:
    """Return the page of a plan: its latest verdicts, scores and p over the nights, and links to the nights."""
    table = join_tables(report)
    shown = table.take(select_first(report, table, MAX_DRAWN // max(len(runs), 1)))
    nights = read_nights(report.store, report.run, shown, MAX_NIGHTS)
    links = {str(run.number): file for run in runs if (folder / (file := _get_night_file(run))).exists()}
    grids = [_build_series_grid(shown, len(table), nights, links), _build_runs_grid(runs, n_runs, links)]
    context = {
        "title": report.run.plan,
        "created": "",
        "home": "../index.html",
        "plans": None,
        "summary": _build_summary(report, runs, ""),
        "rankings": [*_iter_rankings(report)],
        "latest": links.get(str(report.run.number), ""),
        "adjusted": len(table) > 0 and is_adjusted(table),
        "alpha": report.alpha,
        "grids": [grid for grid in grids if grid.n_rows],
    }
    data = {grid.name: grid.build_script_data() for grid in grids if grid.n_rows}
    return render_frame(context, data, {"site": PagePart(None)}, "site.html")


def _iter_rankings(report: PlanReport) -> Iterator[str]:
    """Yield the table of systems of each of the first test sets as HTML, the best system first."""
    for name in [*report.results][:MAX_SETS]:
        for table in report.results[name].paper_tables():
            yield re.sub(' style="[^"]*"', "", render_html(table.shorten(MAX_RANKED)))  # pages allow no inline styles


def _build_series_grid(table: Table, n_all: int, nights: Nights, links: dict[str, str]) -> PageTable:
    """Return the grid of comparisons with their scores and p over the nights."""
    last = [*iter_results(table)]
    blank = [""] * len(last)

    def column(head: str, texts: Sequence[str], **marks: Any) -> Column:
        return Column(head, texts, **{"is_name": True} | marks)

    subsets = [r.subset["value"] if r.subset else "" for r in last]
    columns = [
        column("test set", [r.test_set for r in last], is_filter=True, is_hidden=len({r.test_set for r in last}) < 2),
        column("subset", subsets, is_filter=True, is_hidden=not any(subsets)),
        column("A", [r.a for r in last]),
        column("B", [r.b for r in last]),
        column("metric", [r.metric for r in last], is_filter=True),
        column("scores over the runs", blank, series="scores"),
        column("score A", [format_score(r.score_a) for r in last], is_name=False),
        column("score B", [format_score(r.score_b) for r in last], is_name=False),
        column("A - B", [format_signed(r.difference) for r in last], is_name=False),
        column("p over the runs", blank, series="p"),
        column("p", [format_deciding_p(r, table.alpha) for r in last], is_name=False, is_pinned=True),
        column("verdict", [r.verdict for r in last], is_filter=True, is_pinned=True, hints=VERDICT_HINTS),
    ]
    numbers, values = nights
    scores = {"a": _round_all(values["score_a"]), "b": _round_all(values["score_b"]), "p": _round_all(values["p"], 3)}
    series = {"runs": numbers, "links": links, "alpha": table.alpha, **scores}
    is_part = len(last) < n_all
    left_out = f"{len(last):,} of {n_all:,} comparisons, of the gate and changed ones first." if is_part else ""
    return PageTable("series", "Scores and p over the runs", columns, left_out, {"series": series})


def _round_all(values: NDArray[np.float64], digits: int = 5) -> list[list[float | None]]:
    """Return numbers for drawing, None for NaN."""
    return [[None if np.isnan(x) else float(f"{x:.{digits}g}") for x in row] for row in values.tolist()]


def _build_runs_grid(runs: Sequence[PlanRun], n_runs: int, links: dict[str, str]) -> PageTable:
    """Return the grid of nights, the latest first."""
    cells = {
        **list_run_cells(runs),
        "gate": [format_gate(run).lower() for run in runs],
        "changed": [f"{run.n_changed:,}" for run in runs],
        "message": [run.message for run in runs],
    }
    numbers, filters = {"run", "changed"}, {"state", "gate"}
    columns = [
        Column(
            head, texts[::-1], is_name=head not in numbers, is_filter=head in filters,
            is_hidden=not any(texts), is_pinned=head == "gate", links=links if head == "run" else {},
        )
        for head, texts in cells.items()
    ]  # fmt: skip
    left_out = f"The latest {len(runs):,} of {n_runs:,} runs." if len(runs) < n_runs else ""
    return PageTable("runs", "Runs", columns, left_out)
