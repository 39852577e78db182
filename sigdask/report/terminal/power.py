"""The power of comparisons on a terminal or in a pipe: the answer first, in a sentence, then each pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from sigdask.analysis.power.results import EXACT, FEW_EFFECTIVE, SIMULATED, Power, PowerAt, PowerResults
from sigdask.report.layout import lay_out
from sigdask.statistics.power.crossing import Estimate
from sigdask.text import count_noun, listed, printable

SHOWN = 40
"""Pairs that are shown unless all are asked for."""

NOTED = 3
"""Pairs with the same note that are named."""


def render(powers: PowerResults, *, everything: bool = False, width: int | None = None) -> str:
    """Return the report as text.

    Parameters
    ----------
    powers : PowerResults
        What was found.
    everything : bool
        Show every pair.
    width : int, optional
        Columns of the terminal.
    """
    parts = [*_answers(powers)]
    if len(powers) > 1:
        parts.append(_table(powers if everything else powers[:SHOWN], width))
        if len(powers) > SHOWN and not everything:
            parts.append(f"{len(powers) - SHOWN:,} further pairs: --all, or --json FILE")
    parts.append("\n".join(_beside(powers)))
    return "\n\n".join(filter(None, parts))


def _answers(powers: PowerResults) -> Iterator[str]:
    """Yield what was asked, metric by metric."""
    for metric in dict.fromkeys(one.metric for one in powers):
        own = [one for one in powers if one.metric == metric]
        yield printable(" ".join(_one(own[0]) if len(own) == 1 else _many(own)))


def _one(found: Power) -> Iterator[str]:
    held = f"with power {found.power:g} at {found.level:.3g} {found.alternative}"
    if found.wanted_difference is not None and found.needed is not None:
        yield f"To detect a difference of {found.wanted_difference:g} in {found.metric} {held} you need"
        yield f"{units_text(found.needed, found.unit, found.method)};"
        yield f"your {_of_unit(found.n_asked, found.unit, short=True)} {_detect(found)}"
        if found.at_wanted is not None:
            yield f"(and {found.wanted_difference:g} with power {share(found.at_wanted)})."
    elif found.wanted_difference is not None:
        yield f"A difference of {found.wanted_difference:g} in {found.metric}: {found.note}."
    else:
        yield f"{_of_unit(found.n_asked, found.unit)} {_detect(found)} in {found.metric} {held}."
    if found.at_observed is not None:
        yield (
            f"The observed difference of {found.difference:+.4g} would be found by {found.n_asked:,} with power "
            f"{share(found.at_observed)}."
        )


def _detect(found: Power) -> str:
    if found.detectable is None:
        return "tell no difference"
    if math.isinf(found.detectable.value):
        return f"detect none up to {(found.reachable or (0, 0))[1]:.3g}, the largest that tilting reaches"
    return f"detect {size_text(found.detectable)}"


def _many(own: Sequence[Power]) -> Iterator[str]:
    first = own[0]
    held = f"with power {first.power:g} at {first.level:.3g} {first.alternative}"
    units = [
        one.needed.value
        for one in own
        if one.needed is not None and math.isfinite(one.needed.value) and not one.needs_few
    ]
    if first.wanted_difference is not None and units:
        yield f"To detect a difference of {first.wanted_difference:g} in {first.metric} {held} you need"
        yield f"{_range(units, ',.0f', first.unit)} ({len(units):,} of {count_noun(len(own), 'pair')});"
    found = [
        one.detectable.value
        for one in own
        if one.detectable is not None and math.isfinite(one.detectable.value) and not one.detects_by_few
    ]
    if found:
        n = _of_unit(first.n_asked, first.unit, short=bool(units))
        of = f"({len(found):,} of {len(own):,} pairs)."
        yield f"{'your ' if units else ''}{n} detect {_range(found, '.3g')}"
        yield of if units else f"in {first.metric} {held} {of}"


def _range(values: Sequence[float], form: str, unit: str | None = None) -> str:
    """Write from where to where values reach, and their median."""
    of_unit = "" if unit is None else f" {_plural(unit)}"
    low, high, middle = (f"{value:{form}}" for value in (min(values), max(values), median(values)))
    return f"{low}{of_unit}" if low == high else f"{low} to {high}{of_unit}, median {middle}"


def _table(powers: Sequence[Power], width: int | None) -> str:
    first = powers[0]
    wanted = first.wanted_difference
    names = ["A", "B", "metric", "A - B"]
    if wanted is not None:
        names += [f"units for {wanted:g}", f"power of {first.n_units:,}"]
    names += [f"{first.n_asked:,} detect", "power at A - B", "how"]
    return lay_out(names, [_row(one) for one in powers], width)


def _row(found: Power) -> list[str]:
    cells = [found.a, found.b, found.metric, f"{found.difference:+.4g}"]
    if found.wanted_difference is not None:
        cells += [
            "-" if found.needed is None else _interval(found.needed, ",.0f", few=found.needs_few),
            "-" if found.at_wanted is None else share(found.at_wanted),
        ]
    return [
        *cells,
        "-" if found.detectable is None else _interval(found.detectable, ".3g", few=found.detects_by_few),
        "-" if found.at_observed is None else share(found.at_observed),
        found.method if found.reachable is not None else "alike",
    ]


def _interval(found: Estimate, form: str, *, few: bool) -> str:
    if math.isinf(found.value):
        return "none"
    text = f"{found.value:{form}}{'*' if few else ''}"
    low, high = f"{found.low:{form}}", f"{found.high:{form}}"
    return text if low == high or few else f"{text} ({low} to {high})"


def units_text(found: Estimate, unit: str, method: str) -> str:
    """Write how many units are needed, with the interval that the simulation leaves."""
    if math.isinf(found.value):
        return f"more than a million million {_plural(unit)}"
    text = _of_unit(round(found.value), unit)
    if method == EXACT:
        return f"{text} (exact)"
    about = f"about {text}"
    return about if found.low == found.high else f"{about} (95 % interval {found.low:,.0f} to {found.high:,.0f})"


def size_text(found: Estimate) -> str:
    """Write a difference, with the interval that the simulation leaves."""
    text, low, high = (f"{value:.3g}" for value in (found.value, found.low, found.high))
    return text if low == high else f"{text} ({low} to {high})"


def share(found: PowerAt) -> str:
    """Write a power, with its error."""
    return f"{found.power:.3f}" if not found.error else f"{found.power:.2f} ± {1.96 * found.error:.2f}"


def _of_unit(n: int, unit: str, *, short: bool = False) -> str:
    return f"{n:,}" if short else f"{n:,} {_plural(unit)}"


def _plural(unit: str) -> str:
    return f"{unit}s" if unit.isalpha() and unit[-1] not in "sxzyh" else f"units ({unit})"


def _beside(powers: PowerResults) -> Iterator[str]:
    """Yield how it was found, and what is to be said against it."""
    methods = dict.fromkeys(one.method for one in powers if one.reachable is not None)
    if SIMULATED in methods:
        n = max(one.n_samples for one in powers)
        yield (
            f"simulated: {n:,} samples a point (seed {powers.seed}) of the observed pairs of units, exponentially "
            "tilted to the difference, each judged by the randomization test; ± and intervals are 95 %, of the "
            "simulation alone"
        )
    if EXACT in methods:
        yield "exact: the score is 0 or 1 (or alike), and the test a sign test, of which the power is a sum"
    if any(one.needs_few or one.detects_by_few for one in powers):
        few = f"those that differ by so much weigh as fewer than {FEW_EFFECTIVE:g} equally likely ones would"
        yield (
            f"* rests on few units: {few}; not among what is summed up above"
            if len(powers) > 1
            else f"note: rests on few units: {few}"
        )
    yield from map(printable, _said_of_pairs(powers))
    for note in powers.notes:
        yield f"note: {note}"


def _said_of_pairs(powers: PowerResults) -> Iterator[str]:
    """Yield what is to be said of some pairs, those together of which it is the same but for its numbers."""
    if len(powers) == 1 and powers[0].needed is None:  # said already
        return
    alike: dict[str, list[Power]] = {}
    for one in powers:
        if one.note is not None:
            alike.setdefault(one.note.partition(":")[0], []).append(one)
    for text, own in alike.items():
        pairs = listed([f"{one.a} and {one.b}" for one in own], NOTED, "; ")
        yield f"note: {pairs}: {own[0].note if len(own) == 1 else text}"
