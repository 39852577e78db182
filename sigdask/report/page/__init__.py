"""Results as one self-contained HTML file that treats names from users as plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np

from sigdask.report.comparisons import VERDICT_HINTS
from sigdask.report.page import grids
from sigdask.report.page.frame import PagePart, render_frame
from sigdask.report.page.grids import (
    MAX_FORESTS,
    MAX_IN_MATRIX,
    MAX_IN_RANKINGS,
    WIDTH,
    build_forests,
    build_sections,
)
from sigdask.report.screen import MAX_ALARMS
from sigdask.report.sentences import (
    MAX_NAMED,
    build_verdict,
    describe_settings,
    describe_test,
    explain_checks,
    is_adjusted,
)
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import iter_results
from sigdask.results.record import Note, group_by_weight, remove_kind
from sigdask.results.signature import format_shared
from sigdask.results.table import CONTESTED, Table
from sigdask.text import format_count, format_list

Inputs = Mapping[str, Mapping[str, str]]
"""Files and their digests, by test set."""

NO_INPUTS: Inputs = {}
NO_PARTS: Mapping[str, PagePart] = {}

MAX_OPEN = 30
"""Up to this number of systems, a matrix is open at first."""

MAX_HEADLINES, MAX_SETS = 3, 200
"""Number of test sets whose sentence is in the card at first, and when it is opened."""


def format_now() -> str:
    """Return the present time as a page shows it."""
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"


def render_page(
    sets: Mapping[str, ComparisonResults],
    *,
    title: str,
    created: str = "",
    inputs: Inputs = NO_INPUTS,
    command: str = "",
    parts: Mapping[str, PagePart] = NO_PARTS,
    home: str = "",
    leading: Collection[str] = (),
) -> str:
    """Return results as the text of an HTML page.

    Parameters
    ----------
    sets : mapping of str to ComparisonResults
        By test set.
    title : str
        Names of the compared systems, or the plan's name.
    created : str
        Time of creation, as printed.
    inputs : mapping of str to mapping of str to str
        Files that a plan's run read, by test set, with their digests.
    command : str
        Command that writes the same page again.
    parts : mapping of str to PagePart
        Sections that others add: "details" of single comparisons, "plan" of a run.
    home : str
        Link to the page of all nights, if the page is part of a site.
    leading : collection of str
        Test sets that come first in the card at the top.
    """
    nonempty = {name: results for name, results in sets.items() if len(results)}
    tables = [results.table for results in nonempty.values()]
    table = Table.join(tables) if tables else Table.build_empty()
    leading_first = {name: nonempty[name] for name in sorted(nonempty, key=lambda name: name not in leading)}
    comparisons, rows = grids.build_comparison_grid(table)
    sections = [*_iter_sections(nonempty, all_listed=len(rows) == len(table))]
    tests, misfits = grids.build_tests_grid(table.take(rows))
    disagreeing = np.flatnonzero(table.has_disagreement)
    alarming = iter_results(table.take(disagreeing[:MAX_ALARMS]))
    context = {
        "title": title,
        "home": home,
        "created": created,
        "answer": _build_card(leading_first, table),
        "forests": build_forests([results.table for results in leading_first.values()][:MAX_FORESTS]),
        "command": command,
        "signatures": [text for text in map(format_shared, tables[:MAX_HEADLINES]) if text],
        "warnings": group_by_weight(_iter_notes(nonempty)),
        "alarms": [(r, check) for r in alarming for check in r.disagreements()],
        "n_alarming": len(disagreeing),
        "inputs": inputs,
        "sets": sections,
        "n_rankings": sum(len(entry["rankings"]) + entry["n_left_out"] for entry in sections),
        "comparisons": comparisons,
        "tests": tests,
        "misfits": misfits,
        "n_rows": len(table),
        "alpha": table.alpha,
        "adjusted": is_adjusted(table),
        "most_in_matrix": MAX_IN_MATRIX,
        "most_open": MAX_OPEN,
        "drawing": WIDTH,
        "citations": list(dict.fromkeys(f"{describe_settings(r)}; {describe_test(r)}" for r in nonempty.values())),
    }
    all_grids = [comparisons, *(entry["together"] for entry in sections), tests]
    data: dict[str, Any] = {grid.name: grid.build_script_data() for grid in all_grids if grid is not None}
    return render_frame(context, data, parts)


def _iter_notes(sets: Mapping[str, ComparisonResults]) -> Iterator[Note]:
    """Yield each distinct note once. If it does not apply to all test sets, it names those to which it applies."""
    names_by_note: dict[tuple[str, str], list[str]] = {}
    for name, results in sets.items():
        for note in remove_kind(results.notes, "scope"):
            names_by_note.setdefault((note.kind, note.text), []).append(name)
    for (kind, text), names in names_by_note.items():
        is_named = len(names) == len(sets) or text.startswith(f"{names[0]}: ")
        yield Note(kind, text if is_named else f"{format_list(names, MAX_NAMED)}: {text}")


def _iter_sections(sets: Mapping[str, ComparisonResults], *, all_listed: bool) -> Iterator[dict[str, Any]]:
    """Yield the page's section on each test set: its rankings, and verdicts over several sets."""
    n_left = MAX_IN_RANKINGS
    for k, (name, results) in enumerate(sets.items()):
        is_first = n_left == MAX_IN_RANKINGS
        rankings, n_left_out = build_sections(results.table, n_left, is_first=is_first, all_listed=all_listed)
        n_left -= sum(len(ranking["rows"]) for ranking in rankings)
        together = grids.build_joint_grid(f"together-{k}", results) if results.together else None
        yield {"name": name, "rankings": rankings, "n_left_out": n_left_out, "together": together}


def _build_card(sets: Mapping[str, ComparisonResults], table: Table) -> dict[str, Any]:
    """Return the content of the card at the top: verdicts, their numbers, and checks, disagreements first."""
    verdicts = [(name, build_verdict(results)) for name, results in islice(sets.items(), MAX_SETS)]
    by_line = {verdict.checks: (name, verdict) for name, verdict in reversed(verdicts)}
    checks = sorted(by_line.values(), key=lambda item: item[1].is_checked)[:MAX_HEADLINES]
    return {
        "first": verdicts[:MAX_HEADLINES],
        "more": verdicts[MAX_HEADLINES:],
        "n_sets": len(sets),
        "n_told": len(verdicts),
        "counts": [*_describe_counts(table)],
        "checks": [("", verdict) for _, verdict in checks] if len(by_line) == 1 else checks,
        "check_meanings": explain_checks(table),
    }


def _describe_counts(table: Table) -> Iterator[tuple[str, str]]:
    """Yield numbers of comparisons by verdict, each with what it means."""
    n = len(table)
    if not n:
        yield "0 comparisons", "nothing was compared"
    for (name, hint), code in zip(VERDICT_HINTS.items(), (1, CONTESTED, 0, -1), strict=True):
        if n_verdict := int((table.outcome == code).sum()):
            total = f"{n_verdict:,} of {format_count(n, 'comparison')}" if n > 1 else "1 comparison"
            yield f"{total} {name.replace('significant', 'significantly different')} at {table.alpha:g}", hint
