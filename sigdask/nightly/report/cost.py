"""Estimated costs of a plan as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sigdask.nightly.gate.not_worse import compute_run_level
from sigdask.nightly.gate.rules import FALSE_ALARMS_PER_YEAR, NotWorse, format_rule_name, shorten_rule_name
from sigdask.nightly.plan.model import CANDIDATE, Cost, Gate
from sigdask.report.layout import format_table
from sigdask.statistics.multiplicity import compute_levels
from sigdask.statistics.rounding import format_lower_limit
from sigdask.text import format_count, format_duration, format_estimate, format_list, make_printable

MAX_LISTED = 20
"""Number of test sets, and of different notes and warnings, shown by default."""

NAMES = ("test set", "format", "systems", "items", "unit", "units", "comparisons", "trials", "time")


def render(
    name: str,
    costs: Sequence[Cost],
    n_threads: int | None,
    *,
    gate: Gate | None = None,
    stops: bool = False,
    everything: bool = False,
    width: int | None = None,
) -> str:
    """Return the costs as text, by default those of the test sets that take longest.

    Parameters
    ----------
    name : str
        Name of the plan.
    costs : sequence of Cost
        Cost of each test set.
    n_threads : int or None
        Threads that share the work; None if the cluster is elsewhere.
    gate : Gate, optional
        Gate of the plan. The level of each of its rules is printed.
    stops : bool
        Whether a rule may end counting early, so that trials and time are upper limits.
    everything : bool
        Whether to list all test sets, notes and warnings.
    width : int, optional
        Columns of the terminal. None, for a pipe, sets no limit.
    """
    longest = sorted(range(len(costs)), key=lambda k: (-int(costs[k].seconds), -costs[k].total))
    shown = [costs[k] for k in sorted(longest if everything else longest[:MAX_LISTED])]
    rows = [
        [
            c.test_set, c.format, f"{c.n_systems:,}", f"{c.n_items:,}", c.unit, f"{c.n_units:,}",
            f"{c.n_comparisons:,}", _format_trials(c), format_duration(c.seconds / (n_threads or 1)),
        ]
        for c in shown
    ]  # fmt: skip
    left_out = f"{len(shown)} of {len(costs):,} test sets, the slowest ones (--all lists all)"
    max_texts = len(costs) if everything else MAX_LISTED
    texts = (
        *([left_out] if len(shown) < len(costs) else []),
        *_list_by_text("note:", [(warning, c.test_set) for c in costs for warning in c.warnings], max_texts),
        *_summarize(name, costs, n_threads, stops=stops),
        *_describe_levels(gate, costs, max_texts),
    )
    return "\n".join([format_table(NAMES, rows, width), *map(make_printable, texts)])


def _list_by_text(start: str, texts_and_sets: Iterable[tuple[str, str]], max_texts: int) -> Iterator[str]:
    """Yield a line for each different text, with the test sets that it holds for, and how many texts are left out."""
    sets_by_text: dict[str, list[str]] = {}
    for text, test_set in texts_and_sets:
        sets_by_text.setdefault(text, []).append(test_set)
    yield from (f"{start} {format_list(sets)}: {text}" for text, sets in islice(sets_by_text.items(), max_texts))
    if len(sets_by_text) > max_texts:
        yield f"{start.partition(':')[0]}: and {len(sets_by_text) - max_texts:,} more (--all lists all)"


def _describe_levels(gate: Gate | None, costs: Sequence[Cost], max_texts: int) -> Iterator[str]:
    """Yield a line on the significance level of each `not-worse` rule of a gate, and warnings."""
    if gate is None:
        return
    n_gated = [sum(c.n_gated[k] for c in costs if c.n_gated) for k in range(len(gate.rules))]
    rules = [*zip(gate.rules, n_gated, strict=True)]
    n_shared = sum(n for rule, n in rules if isinstance(rule, NotWorse) and rule.false_alarms_per_year is not None)
    for k, (rule, n) in enumerate(rules):
        if not isinstance(rule, NotWorse):
            continue
        level = compute_run_level(rule, n, n_shared, gate.fdr, gate.runs_per_year)
        name = shorten_rule_name(format_rule_name(rule))
        n_text = format_count(n, "comparison")
        smallest_level = level / n if n and rule.adjust != "plan" else level
        limit = format_lower_limit(smallest_level)
        smallest_text = f" (the smallest p must be at most {limit} before adjustment)" if smallest_level < level else ""
        if gate.fdr == "none":
            yield (f"gate: {name}: level {format_lower_limit(level)} each night over {n_text}{smallest_text}")
        else:
            later_levels = [compute_levels([1.0] * nights, rule.alpha, gate.fdr)[-1] for nights in (30, 365)]
            steady = FALSE_ALARMS_PER_YEAR / gate.runs_per_year
            yield (
                f"gate: {name}: {gate.fdr}: level {format_lower_limit(level)} in the first night "
                f"over {n_text}{smallest_text}, {format_lower_limit(later_levels[0])} after 30 quiet nights, "
                f"{format_lower_limit(later_levels[1])} after 365"
            )
            yield (
                f"warning: {gate.fdr} loses its power in quiet nights; false_alarms_per_year = "
                f"{FALSE_ALARMS_PER_YEAR:g} instead of fdr judges every night at level {format_lower_limit(steady)}"
            )
        limits = []
        for c in costs:
            smallest = max(2.0 ** (1 - min(c.n_units, 1000)), 1 / (c.n_trials + 1) if c.n_trials else 0.0)
            if c.n_gated and c.n_gated[k] and smallest > (level if rule.adjust == "plan" else smallest_level):
                n_text = format_count(c.n_units, "unit")
                n_text += f" and {format_count(c.n_trials, 'trial')}" if c.n_trials else ""
                limits.append((f"with {n_text} no p is below {smallest:.2g}, or half of it one-sided", c.test_set))
        yield from _list_by_text(f"warning: {name} can hardly fail on", limits, max_texts)


def _format_trials(cost: Cost) -> str:
    if not cost.n_trials:
        return "exact"
    return f"{cost.n_trials:,}" + (f" ({cost.n_enumerated:,} exact)" if cost.n_enumerated else "")


def _summarize(name: str, costs: Sequence[Cost], n_threads: int | None, *, stops: bool) -> Iterator[str]:
    n = sum(c.n_comparisons for c in costs)
    seconds = sum(c.seconds for c in costs)
    machine = f"{n_threads} thread{'s' if n_threads != 1 else ''} of this machine"
    if n_threads is None:
        machine = "one core of this machine; the plan's cluster was not measured"
    total = sum(c.total for c in costs)
    seconds /= n_threads or 1
    time = f"at most {format_duration(seconds).removeprefix('< ')}" if stops else format_estimate(seconds)
    counted = f"{format_count(n, 'comparison')}, {format_count(total, 'trial')}"
    n_lists = sum(c.unit == CANDIDATE for c in costs)
    n_sets = len(costs) - n_lists
    sets = [format_count(n_sets, "test set")] if n_sets or not n_lists else []
    sets += [f"{n_lists:,} list{'s' if n_lists != 1 else ''} of candidates"] if n_lists else []
    yield f"{name}: {' and '.join(sets)}, {counted}, {time} on {machine}"
    yield "(trials are summed over comparisons; trials that the store already has are not counted again)"
