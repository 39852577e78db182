"""Cells of tables: scores, differences, p and how it was had, as they are written everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sigdask.results.record import Result
from sigdask.statistics.rounding import p_text, signed
from sigdask.text import count_noun

MOST_LETTERS = 20


NOISE = 1e-12
"""Size of an interval's end, relative to the other one, below which it is 0 but for rounding."""

METHODS = {
    "bootstrap-bca": "BCa bootstrap",
    "bootstrap-percentile": "percentile bootstrap",
    "tango": "Tango's score interval",
    "inversion": "the test inverted",
    "conditional-exact": "conditional exact interval",
    "normal": "normal, by the jackknife",
}
"""Words for how intervals are had."""


def p_cell(p: float | None, alpha: float) -> str:
    """Return p for a table: nothing where there is none."""
    return "" if p is None or math.isnan(p) else p_text(p, alpha)


def how(result: Result) -> str:
    """Say how p was had."""
    early = "stopped after " if result.stopped is not None and result.stopped.is_early else ""
    if result.method == "exact":
        return "exact"
    return "bounds" if is_bounded(result) else f"{early}{count_noun(result.n_trials, 'trial')}"


def is_bounded(result: Result) -> bool:
    """Say whether p is known between limits alone, without trials."""
    return result.exact is not None and not result.n_trials


def confidence(result: Result) -> str:
    """Write the confidence of the interval of p: a confidence sequence's is 1 - epsilon."""
    risk = None if result.stopped is None else result.stopped.epsilon
    return f"{100 * (1 - risk):g} %" if risk is not None and math.isnan(result.p_value) else "99 %"


def interval_text(r: Result) -> str:
    """Write the ends of the difference's interval; nothing where there is none."""
    return "" if r.interval is None else ends_of(r.interval.low, r.interval.high)


def ends_of(low: float, high: float) -> str:
    """Write the ends of an interval."""
    finite = [abs(end) for end in (low, high) if math.isfinite(end)]
    low, high = (0.0 if abs(end) < NOISE * max(finite, default=0.0) else end for end in (low, high))
    return "without bound" if math.isinf(low) and math.isinf(high) else f"[{signed(low)}, {signed(high)}]"


def interval_cell(r: Result) -> str:
    """Write the ends of the difference's interval and how it was had, for a table; nothing where there is none."""
    if r.interval is None:
        return ""
    label = "" if r.p_adjusted is None else "unadjusted, "
    return (
        f"{interval_text(r)} ({label}{100 * r.interval.confidence:.4g} %, "
        f"{METHODS.get(r.interval.method, r.interval.method)})"
    )


def letters_text(letters: Sequence[str]) -> str:
    """Write letters, not more than can be read."""
    shown = letters[:MOST_LETTERS]
    more = f" and {len(letters) - len(shown)} more" if len(letters) > len(shown) else ""
    return ("" if all(len(x) == 1 for x in shown) else " ").join(shown) + more
