"""Comparisons to jobs, and where each comparison finds its counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sigdask.comparison.comparisons import Comparison
from sigdask.counts import Counts
from sigdask.randomization.jobs import Cell, Job


@dataclass(frozen=True, slots=True)
class Slots:
    """Where the counts of a comparison stand: of its first and second run, and of all arrangements."""

    first: Cell | None = None
    second: Cell | None = None
    exact: Cell | None = None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Those there are, the one that p is of first."""
        return tuple(cell for cell in (self.first, self.second, self.exact) if cell is not None)


def list_jobs(counts: Counts, comparisons: Sequence[Comparison], *, second_run: bool) -> tuple[list[Job], list[Slots]]:
    """List what must be counted, and where each comparison finds its counts."""
    jobs: list[Job] = []
    by_panel: dict[int, list[Comparison]] = {}
    for c in comparisons:
        if c.sampled:
            by_panel.setdefault(id(c.panel), []).append(c)
    sampled: dict[int, tuple[list[Job], dict[int, int]]] = {}
    for key, own in by_panel.items():
        first_of, rows = own[0], sorted({c.row for c in own})
        label = first_of.label(counts) + (f" and {len(own) - 1} more" if len(own) > 1 else "")
        panel = first_of.panel.part(rows)
        runs = [Job(panel, first_of.n_trials, run, label=label) for run in range(1 + second_run)]
        sampled[key] = runs, {row: k for k, row in enumerate(rows)}
        jobs += runs
    slots = []
    for c in comparisons:
        first = second = exact = None
        if c.sampled:
            runs, rows_at = sampled[id(c.panel)]
            first, *again = (Cell(job, rows_at[c.row], c.column) for job in runs)
            second = again[0] if again else None
        if c.enumerated:
            job = Job(c.panel.enumeration(c.row, c.column), 2**c.n_discordant, label=c.label(counts))
            jobs.append(job)
            exact = Cell(job, 0, 0)
        slots.append(Slots(first, second, exact))
    return jobs, slots
