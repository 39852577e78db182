"""What a plan would cost, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigdask.nightly.gate import FALSE_ALARMS_PER_YEAR, NotWorse, name_of
from sigdask.nightly.gate.not_worse import level_of_run
from sigdask.nightly.plan.model import CANDIDATE, Cost, Gate
from sigdask.report.layout import lay_out
from sigdask.statistics.online_fdr import levels
from sigdask.statistics.rounding import low_text
from sigdask.text import count_noun, duration, printable

NAMES = ("test set", "format", "systems", "items", "unit", "units", "comparisons", "trials", "time")


def render(
    name: str,
    costs: Sequence[Cost],
    n_threads: int | None,
    *,
    gate: Gate | None = None,
    stops: bool = False,
    width: int | None = None,
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
    gate : Gate, optional
        The plan's: the level of each rule is told.
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
    return "\n".join([*lines, *_summary(name, costs, n_threads, stops=stops), *map(printable, _levels(gate, costs))])


def _levels(gate: Gate | None, costs: Sequence[Cost]) -> Iterator[str]:
    """Say what each `not-worse` rule of a gate is held against."""
    if gate is None:
        return
    n_gated = [sum(c.n_gated[k] for c in costs if c.n_gated) for k in range(len(gate.rules))]
    n_shared = sum(
        n
        for rule, n in zip(gate.rules, n_gated, strict=True)
        if isinstance(rule, NotWorse) and rule.false_alarms_per_year is not None
    )
    for k, (rule, n) in enumerate(zip(gate.rules, n_gated, strict=True)):
        if not isinstance(rule, NotWorse):
            continue
        level = level_of_run(rule, n, n_shared, gate.fdr, gate.runs_per_year)
        over = count_noun(n, "comparison")
        least = level / n if n and rule.adjust != "plan" else level
        first = f" ({low_text(least)} for the smallest p)" if least < level else ""
        if gate.fdr == "none":
            yield f"gate: {name_of(rule)}: level {low_text(level)} each night over {over}{first}"
        else:
            after = [levels([1.0] * nights, rule.alpha, gate.fdr)[-1] for nights in (30, 365)]
            steady = FALSE_ALARMS_PER_YEAR / gate.runs_per_year
            yield (
                f"gate: {name_of(rule)}: {gate.fdr}: level {low_text(level)} in the first night over {over}{first}, "
                f"{low_text(after[0])} after 30 quiet nights, {low_text(after[1])} after 365"
            )
            yield (
                f"warning: {gate.fdr} loses its power in quiet nights; false_alarms_per_year = "
                f"{FALSE_ALARMS_PER_YEAR:g} instead of fdr holds every night against {low_text(steady)}"
            )
        for c in costs:
            smallest = max(2.0 ** (1 - min(c.n_units, 1000)), 1 / (c.n_trials + 1) if c.n_trials else 0.0)
            if c.n_gated and c.n_gated[k] and smallest > (level if rule.adjust == "plan" else least):
                yield (
                    f"warning: {name_of(rule)} can hardly fail on {c.test_set}: with {count_noun(c.n_units, 'unit')}"
                    f"{' and ' + count_noun(c.n_trials, 'trial') if c.n_trials else ''} no p is below "
                    f"{smallest:.2g}, or half of it one-sided"
                )


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
    taken = duration(seconds / (n_threads or 1))
    time = f"at most {taken.removeprefix('< ')}" if stops else f"about {taken}"
    yield printable(
        f"{name}: {_sets(costs)}, {count_noun(n, 'comparison')}, {count_noun(total, 'trial')}, {time} on {where}"
    )
    yield "(trials are summed over comparisons; what the store has already is not counted again)"


def _sets(costs: Sequence[Cost]) -> str:
    """Count test sets, and lists of candidates where there are such."""
    n_lists = sum(c.unit == CANDIDATE for c in costs)
    n = len(costs) - n_lists
    sets = [count_noun(n, "test set")] if n or not n_lists else []
    lists = [f"{n_lists:,} list{'s' if n_lists != 1 else ''} of candidates"] if n_lists else []
    return " and ".join([*sets, *lists])
