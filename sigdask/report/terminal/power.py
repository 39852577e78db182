"""The power of comparisons as plain text: the answer first as a sentence, then each pair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from sigdask.analysis.power import EXACT, FEW_EFFECTIVE, SIMULATED, Power, PowerAt, PowerResults
from sigdask.counts.texts import ScopeNote
from sigdask.report.layout import format_table
from sigdask.statistics.power import Estimate
from sigdask.text import format_count, format_list, make_printable

MAX_SHOWN = 40
"""Number of pairs shown by default."""

MAX_NOTED = 3
"""Maximum number of pairs with the same note that are named."""


def render(powers: PowerResults, *, everything: bool = False, width: int | None = None) -> str:
    """Return the report as text.

    Parameters
    ----------
    powers : PowerResults
        The results.
    everything : bool
        Show every pair.
    width : int, optional
        Columns of the terminal.
    """
    warnings = [f"warning: {note}" for note in powers.notes if isinstance(note, ScopeNote)]
    parts = ["\n".join(map(make_printable, warnings)), *_iter_answers(powers)]
    if len(powers) > 1:
        parts.append(_format_table(powers if everything else powers[:MAX_SHOWN], width))
        if len(powers) > MAX_SHOWN and not everything:
            parts.append(f"{len(powers) - MAX_SHOWN:,} further pairs: --all, or --json FILE")
    parts.append("\n".join(_describe_method(powers)))
    return "\n\n".join(filter(None, parts))


def _iter_answers(powers: PowerResults) -> Iterator[str]:
    """Yield the answer for each metric."""
    for metric in dict.fromkeys(power.metric for power in powers):
        metric_powers = [power for power in powers if power.metric == metric]
        is_single = len(metric_powers) == 1
        yield make_printable(" ".join(_describe_pair(*metric_powers) if is_single else _describe_pairs(metric_powers)))


def _describe_pair(power: Power) -> Iterator[str]:
    condition = _describe_condition(power)
    if power.wanted_difference is not None and power.needed is not None:
        yield f"To detect a difference of {power.wanted_difference:g} in {power.metric} {condition}, you need"
        yield f"{format_units(power.needed, power.unit, power.method)}."
        yield f"Your {_count_units(power.n_asked, power.unit)} {_describe_detectable(power)} with this power."
        if power.at_wanted is not None:
            yield f"For a difference of {power.wanted_difference:g}, their power is {format_power(power.at_wanted)}."
    elif power.wanted_difference is not None:
        yield f"A difference of {power.wanted_difference:g} in {power.metric}: {power.note}."
    else:
        yield f"{_count_units(power.n_asked, power.unit)} {_describe_detectable(power)} in {power.metric} {condition}."


def _describe_condition(power: Power) -> str:
    return f"with power {power.power:g} (test at {power.level:.3g}, {power.alternative})"


def _describe_detectable(power: Power) -> str:
    if power.detectable is None:
        return "can detect no difference"
    if math.isinf(power.detectable.value):
        limit = (power.reachable or (0, 0))[1]
        return f"can detect no difference up to {limit:.3g} (the simulation can reweight these data only so far)"
    return f"can detect a difference of {format_size(power.detectable)}"


def _describe_pairs(powers: Sequence[Power]) -> Iterator[str]:
    first = powers[0]
    condition = _describe_condition(first)
    units = _list_sizes((power.needed, power.is_needed_uncertain) for power in powers)
    if first.wanted_difference is not None and units:
        yield f"To detect a difference of {first.wanted_difference:g} in {first.metric} {condition}, you need"
        yield f"{_format_range(units, ',.0f', first.unit)} ({len(units):,} of {format_count(len(powers), 'pair')})."
    differences = _list_sizes((power.detectable, power.is_detectable_uncertain) for power in powers)
    if differences:
        share_text = f"({len(differences):,} of {len(powers):,} pairs)"
        detected = f"can detect a difference of {_format_range(differences, '.3g')} {share_text}"
        yield f"{'Your ' if units else ''}{_count_units(first.n_asked, first.unit)} {detected}"
        yield "with this power." if units else f"in {first.metric} {condition}."


def _list_sizes(estimates: Iterable[tuple[Estimate | None, bool]]) -> list[float]:
    """Return the finite estimates that do not rest on few units."""
    return [size.value for size, is_few in estimates if size is not None and math.isfinite(size.value) and not is_few]


def _format_range(values: Sequence[float], spec: str, unit: str | None = None) -> str:
    """Return the smallest, largest and median value as text."""
    unit_text = "" if unit is None else f" {_pluralize(unit)}"
    low, high, middle = (f"{value:{spec}}" for value in (min(values), max(values), median(values)))
    return f"{low}{unit_text}" if low == high else f"{low} to {high}{unit_text}, median {middle}"


def _format_table(powers: Sequence[Power], width: int | None) -> str:
    first = powers[0]
    wanted_difference = first.wanted_difference
    names = ["A", "B", "metric", "A - B"]
    if wanted_difference is not None:
        names += [f"units for {wanted_difference:g}", f"power of {first.n_units:,}"]
    names += [f"detectable by {first.n_asked:,}", "how"]
    return format_table(names, [_build_row(power) for power in powers], width)


def _build_row(power: Power) -> list[str]:
    cells = [power.a, power.b, power.metric, f"{power.difference:+.4g}"]
    if power.wanted_difference is not None:
        cells += [
            _format_interval(power.needed, ",.0f", is_few=power.is_needed_uncertain),
            format_power(power.at_wanted),
        ]
    cells.append(_format_interval(power.detectable, ".3g", is_few=power.is_detectable_uncertain))
    return [*cells, power.method if power.reachable is not None else "alike"]


def _format_interval(estimate: Estimate | None, spec: str, *, is_few: bool) -> str:
    if estimate is None:
        return "-"
    if math.isinf(estimate.value):
        return "none"
    text = f"{estimate.value:{spec}}{'*' if is_few else ''}"
    low, high = f"{estimate.low:{spec}}", f"{estimate.high:{spec}}"
    return text if low == high or is_few else f"{text} ({low} to {high})"


def format_units(estimate: Estimate, unit: str, method: str) -> str:
    """Return the number of units needed, with its simulation interval."""
    if math.isinf(estimate.value):
        return f"more than a million million {_pluralize(unit)}"
    text = _count_units(round(estimate.value), unit)
    if method == EXACT:
        return f"{text} (exact)"
    has_interval = estimate.low != estimate.high
    return f"about {text}{f' (95 % interval {estimate.low:,.0f} to {estimate.high:,.0f})' if has_interval else ''}"


def format_size(estimate: Estimate) -> str:
    """Return a difference as text, with its simulation interval."""
    text, low, high = (f"{value:.3g}" for value in (estimate.value, estimate.low, estimate.high))
    return text if low == high else f"{text} ({low} to {high})"


def format_power(point: PowerAt | None) -> str:
    """Return a power as text, with its simulation error if it was simulated."""
    if point is None:
        return "-"
    return f"{point.power:.3f}" if not point.error else f"{point.power:.2f} ± {1.96 * point.error:.2f}"


def _count_units(n: int, unit: str) -> str:
    return f"{n:,} {_pluralize(unit)}"


def _pluralize(unit: str) -> str:
    return f"{unit}s" if unit.isalpha() and unit[-1] not in "sxzyh" else f"units ({unit})"


def _describe_method(powers: PowerResults) -> Iterator[str]:
    """Yield the methods used, and their limitations."""
    methods = dict.fromkeys(power.method for power in powers if power.reachable is not None)
    if SIMULATED in methods:
        n = max(power.n_samples for power in powers)
        yield (
            f"simulated: each power from {n:,} samples (seed {powers.seed}) of the observed units. Units are "
            "reweighted so that the systems differ as much as stated (exponential tilting), and each sample is tested "
            "by randomization. ± and intervals are 95 %, and cover only the error of the simulation"
        )
    if EXACT in methods:
        yield "exact: for scores of 0 or 1 (or two values) the test is a sign test, and its power is summed exactly"
    if any(power.is_needed_uncertain or power.is_detectable_uncertain for power in powers):
        few_text = f"after reweighting, the sample counts like fewer than {FEW_EFFECTIVE:g} units. Use a larger sample"
        yield (
            f"* rests on few units (not included in the summary above): {few_text}"
            if len(powers) > 1
            else f"note: rests on few units: {few_text}"
        )
    yield from map(make_printable, _iter_notes(powers))
    for note in powers.notes:
        if not isinstance(note, ScopeNote):
            yield f"note: {note}"


def _iter_notes(powers: PowerResults) -> Iterator[str]:
    """Yield the notes on pairs; pairs whose notes differ only in numbers share a line."""
    if len(powers) == 1 and powers[0].needed is None:  # said already
        return
    by_text: dict[str, list[Power]] = {}
    for power in powers:
        if power.note is not None:
            by_text.setdefault(power.note.partition(":")[0], []).append(power)
    for text, noted in by_text.items():
        pairs = format_list([f"{power.a} and {power.b}" for power in noted], MAX_NOTED, "; ")
        yield f"note: {pairs}: {noted[0].note if len(noted) == 1 else text}"
