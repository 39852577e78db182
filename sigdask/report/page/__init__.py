"""Results as one self-contained HTML file that treats names from users as plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np

from sigdask.report.page import grids
from sigdask.report.page.frame import PagePart, render_frame
from sigdask.report.page.grids import MAX_FORESTS, MAX_IN_MATRIX, MAX_RANKINGS, WIDTH, build_forests, draw_ranking
from sigdask.report.screen import MAX_ALARMS, count_verdicts, iter_shared_notes, list_alarms
from sigdask.report.sentences import (
    CHANGES_VERDICTS,
    build_verdict,
    describe_checks,
    describe_settings,
    describe_test,
    is_adjusted,
)
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import iter_results
from sigdask.results.ranking import iter_ranked
from sigdask.results.record import Note
from sigdask.results.table import Table

Inputs = Mapping[str, Mapping[str, str]]
"""Files and their digests, by test set."""

NO_INPUTS: Inputs = {}
NO_PARTS: Mapping[str, PagePart] = {}

LIMITS_CONCLUSIONS = frozenset({"second-look", "interval", "interval-coverage", "missing", "few-units-decide"})
"""Kinds of notes after which the verdicts stand, but intervals, comparisons or earlier looks need care."""

NOTE_WEIGHTS = (
    ("Could change a verdict", "p may be too small or too large, or too little was counted to decide"),
    (
        "Limits what you can conclude",
        "the verdicts stand, but intervals, comparisons or earlier looks need care",
    ),
    ("Good to know", "how the files were read and the method was chosen"),
)
"""Weights of notes, the most important first: a label and its meaning."""

MAX_OPEN = 30
"""Up to this number of systems, a matrix is open at first."""

MAX_HEADLINES = 6
"""Number of test sets whose sentences are in the card."""


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
    alarming = iter_results(table.take(np.flatnonzero(table.has_disagreement)[:MAX_ALARMS]))
    context = {
        "title": title,
        "home": home,
        "created": created,
        "answer": _build_card(leading_first, table),
        "forests": build_forests([results.table for results in leading_first.values()][:MAX_FORESTS]),
        "command": command,
        "warnings": _group_by_weight(iter_shared_notes(nonempty)),
        "alarms": list_alarms(alarming),
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


def _iter_sections(sets: Mapping[str, ComparisonResults], *, all_listed: bool) -> Iterator[dict[str, Any]]:
    """Yield the page's section on each test set: its rankings, up to a limit, and joint verdicts."""
    ranked = [(name, own) for name, results in sets.items() for own in iter_ranked(results.table)]
    for k, (name, results) in enumerate(sets.items()):
        drawn = [draw_ranking(own, all_listed=all_listed) for of, own in ranked[:MAX_RANKINGS] if of == name]
        together = grids.build_joint_grid(f"together-{k}", results) if results.together else None
        n_left_out = sum(of == name for of, _ in ranked[MAX_RANKINGS:])
        yield {"name": name, "rankings": drawn, "n_left_out": n_left_out, "together": together}


def _group_by_weight(notes: Iterable[Note]) -> list[tuple[str, str, list[str]]]:
    """Return the sentences of notes by how much they matter: label, its meaning, and distinct sentences."""
    texts: tuple[dict[str, None], ...] = ({}, {}, {})
    for note in notes:
        weight = 0 if note.kind in CHANGES_VERDICTS else 1 if note.kind in LIMITS_CONCLUSIONS else 2
        texts[weight][note.text] = None
    return [(*words, [*own]) for words, own in zip(NOTE_WEIGHTS, texts, strict=True) if own]


def _build_card(sets: Mapping[str, ComparisonResults], table: Table) -> dict[str, Any]:
    """Return the content of the card at the top: verdicts, their numbers, and checks."""
    return {
        "first": [(name, build_verdict(results)) for name, results in islice(sets.items(), MAX_HEADLINES)],
        "n_sets": len(sets),
        "counts": count_verdicts(table),
        "checks": describe_checks(table),
        "is_checked": not bool(table.has_disagreement.any()),
    }
