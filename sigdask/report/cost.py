"""What a plan would cost, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigdask.plan.model import CANDIDATE, Cost
from sigdask.report.layout import lay_out
from sigdask.writing import duration, printable

NAMES = ("test set", "format", "systems", "items", "unit", "units", "comparisons", "trials", "time")


def render(
    name: str, costs: Sequence[Cost], n_threads: int | None, *, stops: bool = False, width: int | None = None
) -> str:
    """Return the costs as text.

    Parameters
    ----------
    name : str
        The plan's.
    costs : sequence of Cost
        Of each test set.
    n_threads : int or None
        Over which the work is spread; None where the cluster is elsewhere.
    stops : bool
        Whether a rule may end counting early, so that trials and time are upper limits.
    width : int, optional
        Columns of the terminal; unlimited when None (a pipe).
    """
    rows = [
        [
            c.test_set, c.format, f"{c.n_systems:,}", f"{c.n_items:,}", c.unit, f"{c.n_units:,}",
            f"{c.n_comparisons:,}", _trials(c), duration(c.seconds / (n_threads or 1)),
        ]
        for c in costs
    ]  # fmt: skip
    lines = [lay_out(NAMES, rows, width), *_notes(costs)]
    return "\n".join([*lines, *_summary(name, costs, n_threads, stops=stops)])


def _notes(costs: Sequence[Cost]) -> Iterator[str]:
    return (printable(f"note: {c.test_set}: {w}") for c in costs for w in c.warnings)


def _trials(cost: Cost) -> str:
    if not cost.n_trials:
        return "exact"
    return f"{cost.n_trials:,}" + (f" ({cost.n_enumerated:,} exact)" if cost.n_enumerated else "")


def _summary(name: str, costs: Sequence[Cost], n_threads: int | None, *, stops: bool) -> Iterator[str]:
    n = sum(c.n_comparisons for c in costs)
    seconds = sum(c.seconds for c in costs)
    where = f"{n_threads} thread{'s' if n_threads != 1 else ''} of this machine"
    if n_threads is None:
        where = "one core of this machine; the plan's cluster is elsewhere"
    total = sum(c.total for c in costs)
    time = f"{'at most' if stops else 'about'} {duration(seconds / (n_threads or 1))}"
    yield printable(f"{name}: {_sets(costs)}, {n:,} comparisons, {total:,} trials, {time} on {where}")
    yield "(trials are summed over comparisons; what the store has already is not counted again)"


def _sets(costs: Sequence[Cost]) -> str:
    """Count test sets, and lists of candidates where there are such."""
    n_lists = sum(c.unit == CANDIDATE for c in costs)
    n = len(costs) - n_lists
    sets = [f"{n:,} test set{'s' if n != 1 else ''}"] if n or not n_lists else []
    lists = [f"{n_lists:,} list{'s' if n_lists != 1 else ''} of candidates"] if n_lists else []
    return " and ".join([*sets, *lists])
