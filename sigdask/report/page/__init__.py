"""Results as one HTML file that requests nothing and shows users' words as text alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.report.files import write_whole
from sigdask.report.page import comparisons
from sigdask.report.page import data as behind
from sigdask.report.page.answer import MOST_HEADLINES, MOST_SENTENCES, answer, close
from sigdask.report.page.frame import PagePart, framed
from sigdask.report.page.grids import PageTable
from sigdask.report.page.ranked import MOST_IN_MATRIX, MOST_IN_RANKINGS, WIDTH, RankingSection, sections
from sigdask.report.summary.sentences import citation, is_adjusted
from sigdask.report.terminal import MOST_ALARMS
from sigdask.report.trials import trials_text
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.messages.notes import texts, without
from sigdask.results.rows import table_from_results
from sigdask.results.signature import shared
from sigdask.results.table import Table
from sigdask.results.views import result_views

Inputs = Mapping[str, Mapping[str, str]]
"""Test set, to the files that were read and their digests."""

NOTHING: Inputs = {}
NO_TEXTS: Mapping[str, str] = {}
NO_PARTS: Mapping[str, PagePart] = {}


MOST_OPEN = 30
"""Systems up to which a matrix is open at first."""


@dataclass(frozen=True, slots=True, eq=False)
class TestSetSection:
    """What the page says of one test set, beside its comparisons."""

    name: str
    rankings: Sequence[RankingSection]
    n_left_out: int
    together: PageTable | None
    trials: Sequence[str]


def write_page(
    path: Path,
    sets: Mapping[str, ComparisonResults],
    title: str,
    *,
    inputs: Inputs = NOTHING,
    candidates: Mapping[str, str] = NO_TEXTS,
    command: str = "",
    parts: Mapping[str, PagePart] = NO_PARTS,
) -> None:
    """Write results as a page, whole or not at all; what else it takes is as in `page`."""
    created = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    text = page(
        sets,
        title=title,
        created=created,
        inputs=inputs,
        candidates=candidates,
        command=command,
        parts=parts,
    )
    write_whole(path, text)


def page(
    sets: Mapping[str, ComparisonResults],
    *,
    title: str,
    notes: Sequence[str] = (),
    created: str = "",
    inputs: Inputs = NOTHING,
    candidates: Mapping[str, str] = NO_TEXTS,
    command: str = "",
    parts: Mapping[str, PagePart] = NO_PARTS,
) -> str:
    """Return a page.

    Parameters
    ----------
    sets : mapping of str to ComparisonResults
        By test set.
    title : str
        What was compared, or the plan's name.
    notes : sequence of str
        What should be known besides the results' own warnings.
    created : str
        When, as it is to be printed.
    inputs : mapping of str to mapping of str to str
        Files that a plan's run read, by test set, with their digests.
    candidates : mapping of str to str
        What is said of rankings of candidates, by name.
    command : str
        That makes the same page again.
    parts : mapping of str to PagePart
        Sections that others add: "details" of single comparisons, "plan" of a run.
    """
    shown = {name: results for name, results in sets.items() if len(results)}
    tables = [results.table for results in shown.values()]
    table = Table.joined(tables) if tables else table_from_results((), 0.05)
    said = answer(shown, table)
    of_all, rows = comparisons.grid(table, close(shown, said.verdicts))
    of_sets = [*_of_sets(shown, all_listed=len(rows) == len(table))]
    tests = behind.classical_tests(table.take(rows))
    grids = [of_all, *(own.together for own in of_sets), tests.grid]
    alarming = np.flatnonzero(table.disagrees)
    context = {
        "title": title,
        "created": created,
        "answer": said,
        "most_sentences": MOST_SENTENCES,
        "command": command,
        "signatures": [text for text in map(shared, tables[:MOST_HEADLINES]) if text],
        "warnings": list(
            dict.fromkeys([*notes, *(text for own in shown.values() for text in texts(without(own.notes, "scope")))])
        ),
        "alarms": [(r, check) for r in result_views(table.take(alarming[:MOST_ALARMS])) for check in r.disagreements()],
        "n_alarming": len(alarming),
        "inputs": inputs,
        "candidates": candidates,
        "sets": of_sets,
        "n_rankings": sum(len(own.rankings) + own.n_left_out for own in of_sets),
        "comparisons": of_all,
        "tests": tests,
        "n_rows": len(table),
        "alpha": table.alpha,
        "adjusted": is_adjusted(table),
        "most_in_matrix": MOST_IN_MATRIX,
        "most_open": MOST_OPEN,
        "drawing": WIDTH,
        "citations": list(dict.fromkeys(citation(results) for results in shown.values())),
        "curve": behind.curve(table),
    }
    data: dict[str, Any] = {grid.name: grid.data() for grid in grids if grid is not None}
    return framed(context, data, parts)


def _of_sets(sets: Mapping[str, ComparisonResults], *, all_listed: bool) -> Iterator[TestSetSection]:
    n_left = MOST_IN_RANKINGS
    for k, (name, results) in enumerate(sets.items()):
        found, n_left_out = sections(results.table, n_left, is_first=n_left == MOST_IN_RANKINGS, all_listed=all_listed)
        n_left -= sum(len(own.places) for own in found)
        together = behind.over_sets(f"together-{k}", results) if results.together else None
        yield TestSetSection(name, found, n_left_out, together, [*trials_text(results)])
