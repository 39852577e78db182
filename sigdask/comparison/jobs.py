"""Comparisons to jobs, and where each comparison finds its counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sigdask.comparison.comparisons import Comparison
from sigdask.counts import Counts
from sigdask.randomization.jobs import Job


@dataclass(frozen=True, slots=True)
class Slots:
    """Places in the list of jobs: (job, row) of each count of a comparison."""

    first: tuple[int, int] | None = None
    second: tuple[int, int] | None = None
    exact: int | None = None

    def cells(self, column: int) -> tuple[tuple[int, int, int], ...]:
        """Return (job, row, column) of each count."""
        sampled = [(*where, column) for where in (self.first, self.second) if where is not None]
        return (*sampled, *([] if self.exact is None else [(self.exact, 0, 0)]))


def list_jobs(counts: Counts, comparisons: Sequence[Comparison], *, second_run: bool) -> tuple[list[Job], list[Slots]]:
    """List what must be counted, and where each comparison finds its counts."""
    jobs: list[Job] = []
    by_panel: dict[int, list[Comparison]] = {}
    for c in comparisons:
        if c.sampled:
            by_panel.setdefault(id(c.panel), []).append(c)
    places: dict[int, tuple[int, dict[int, int]]] = {}
    for key, own in by_panel.items():
        first_of, rows = own[0], sorted({c.row for c in own})
        label = first_of.label(counts) + (f" and {len(own) - 1} more" if len(own) > 1 else "")
        places[key] = (len(jobs), {row: k for k, row in enumerate(rows)})
        jobs += [Job(first_of.panel.part(rows), first_of.n_trials, run, label=label) for run in range(1 + second_run)]
    slots = []
    for c in comparisons:
        first = second = exact = None
        if c.sampled:
            job, rows_at = places[id(c.panel)]
            first = (job, rows_at[c.row])
            second = (job + 1, rows_at[c.row]) if second_run else None
        if c.enumerated:
            exact = len(jobs)
            jobs.append(Job(c.panel.enumeration(c.row, c.column), 2**c.n_discordant, label=c.label(counts)))
        slots.append(Slots(first, second, exact))
    return jobs, slots
