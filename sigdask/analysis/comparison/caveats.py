"""What weakens verdicts: too few trials or units, undecided adjusted p, few deciding units."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sigdask.analysis.comparison.families import Adjustment
from sigdask.analysis.comparison.intervals import NO_MEAN, UNBOUNDED
from sigdask.interface import spell, spell_in
from sigdask.metrics.base import BoundAgreement
from sigdask.results.record import Note, NoteValue
from sigdask.results.table import Table
from sigdask.statistics.bounds import (
    MAX_TRIALS,
    P_VALUE_ADJUSTMENTS,
    compute_penalty,
    compute_trials_needed,
    estimate_trials_to_decide,
)
from sigdask.statistics.rounding import format_p
from sigdask.text import format_count

FEW_UNITS = 20

TUKEY_CAVEAT = (
    "Tukey's HSD tests that all systems are exchangeable: systems of equal means and unequal variances are "
    "declared different too often (in simulations 9 to 16 % instead of 5 %); {adjust=max-t} does not have this problem"
)
TUKEY_P = (
    "the verdict uses the larger of Tukey's p (the published method) and the unadjusted p; in {n:,} of {of:,} "
    "comparisons the unadjusted p is larger, such as {a} and {b}: Tukey's p = {tukey}, unadjusted p = {alone}"
)


PERMUTED = {
    "scores": (0.040, 0.130, "scores of single segments are swapped as if a metric's errors on them were independent",
               "To swap whole systems, add {permute=systems} (in compare {unit=system})"),
    "segments": (0.020, 0.130, "segments are swapped as if a metric's errors on them were independent",
                 "To swap whole systems, add {permute=systems} (in compare {unit=system})"),
    "pairs": (0.220, 0.310, "decisions on pairs are swapped as if pairs of one segment and system were independent",
              "{permute=scores} assumes less"),
}  # fmt: skip
"""For each unit of permutation of `meta`: the sizes of acc-eq at level 0.05 in `benchmarks.meta` (independent errors,
system effects), its assumption, and the alternatives.
"""


def note_permutation(metric: object, unit: str) -> Note | None:
    """Return the note on the swapped units of a metric of agreement with people, or None if swapping assumes less."""
    if not isinstance(metric, BoundAgreement):
        return None
    swapped = "pairs" if metric.swaps_pairs else {"item": "scores", "segment": "segments"}.get(unit, "")
    if not swapped:
        return None
    size, with_effects, assumed, remedy = PERMUTED[swapped]
    text = (
        f"{assumed}. In a simulation with 15 systems, 100 segments and acc-eq, the test at 0.05 called "
        f"{100 * size:.0f} % of equally good metrics different, and {100 * with_effects:.0f} % if a metric errs alike "
        "on all segments of a system. "
        f"{spell_in(remedy)}"
    )
    return Note("permutation", text, {"swapped": swapped, "size": size, "size_system_effects": with_effects})


def list_caveats(adjustment: Adjustment, table: Table) -> list[Note]:
    """Return notes on what weakens the verdicts of comparisons judged together, with remedies."""
    return [
        note
        for check in (_check_trials, _check_units, _check_undecided, _check_method, _check_intervals)
        for note in check(adjustment, table)
    ]


def _check_trials(adjustment: Adjustment, table: Table) -> Iterable[Note]:
    alpha = table.alpha
    sampled = table.n_trials[~table.is_exact & (table.n_trials > 0)]
    if adjustment.method in P_VALUE_ADJUSTMENTS and len(sampled):
        needed = compute_trials_needed(compute_penalty(adjustment.method, len(table)), alpha)
        if (min_trials := int(sampled.min())) < needed:
            text = (
                f"with {format_count(min_trials, 'trial')}, none of {len(table):,} p-values can be as small as "
                f"{alpha:g} after {adjustment.method}; at least {needed} are needed ({spell('trials', needed)})"
            )
            yield Note("few-trials", text, {"n_trials": min_trials, "needed": needed, "alpha": alpha})
        return
    needed = compute_trials_needed(1, alpha)
    counted = [int(sampled.max())] if len(sampled) else []
    if adjustment.family is not None and not adjustment.family.enumerated and adjustment.n_trials > 0:
        counted.append(adjustment.n_trials)
    if counted and (n_trials := min(counted)) < needed:
        text = (
            f"with {format_count(n_trials, 'trial')}, p cannot be as small as {alpha:g}; at least {needed} are needed "
            f"({spell('trials', needed)})"
        )
        yield Note("few-trials", text, {"n_trials": n_trials, "needed": needed, "alpha": alpha})


def _check_units(adjustment: Adjustment, table: Table) -> Iterable[Note]:
    """Yield a note for each kind of unit with few units in some comparisons, and the number that cannot reach alpha."""
    alpha = table.alpha
    if not ((table.n_units > 0) & (table.n_units < FEW_UNITS)).any():
        return
    two_sided = np.array([side == "two-sided" for side in table.alternative.values])[table.alternative.codes]
    min_p = np.minimum(2.0 ** (two_sided - table.n_units.astype(np.float64)), 1.0)
    reachable_p = P_VALUE_ADJUSTMENTS[adjustment.method](min_p) if adjustment.method in P_VALUE_ADJUSTMENTS else min_p
    for code in np.argsort(np.array(table.unit.values, object), kind="stable").tolist():
        unit = table.unit.values[code]
        is_few = (table.unit.codes == code) & (table.n_units > 0) & (table.n_units < FEW_UNITS)
        n_few = int(np.count_nonzero(is_few))
        if not n_few:
            continue
        low, high = int(table.n_units[is_few].min()), int(table.n_units[is_few].max())
        n_hopeless = int(np.count_nonzero(is_few & (reachable_p > alpha)))
        reach = ""
        if n_hopeless:
            finer = "" if unit == "item" else f", or choose a finer {spell('unit')} if its units are independent"
            method_text = "" if adjustment.method == "none" else f" after {adjustment.method}"
            reach = (
                f". p cannot be as small as {alpha:g}{method_text}{_format_share(n_hopeless, n_few)}. Use more "
                f"units{finer}"
            )
        number = format_count(low, "unit") if low == high else f"{low} to {high} units"
        text = f"only {number} ({unit}){_format_share(n_few, len(table))}, so the test has little power{reach}"
        numbers: dict[str, NoteValue] = {"unit": unit, "fewest": low, "most": high, "alpha": alpha}
        numbers |= {"n_comparisons": n_few, "n_unreachable": n_hopeless, "of": len(table)}
        yield Note("few-units", text, numbers)


def _format_share(n: int, total: int) -> str:
    return "" if n == total else f" in {n:,} of {format_count(total, 'comparison')}"


def _check_undecided(adjustment: Adjustment, table: Table) -> Iterable[Note]:
    """Yield a note on how many verdicts another seed could change; enumerated families have none."""
    if adjustment.family is not None and (adjustment.family.enumerated or adjustment.n_trials == 0):
        return
    alpha = table.alpha
    low, high = table["p_adjusted_interval.0"], table["p_adjusted_interval.1"]
    straddling = (table.n_trials > 0) & (low <= alpha) & (alpha < high)
    if n := int(np.count_nonzero(straddling)):
        middle = table.p_adjusted[straddling].tolist()
        needed = sorted(estimate_trials_to_decide(p, alpha) or MAX_TRIALS for p in middle)[n // 2]
        remedy = f"; about {format_count(needed, 'trial')} would decide {'it' if n == 1 else 'half of them'}"
        has_remedy = adjustment.family is not None and needed < MAX_TRIALS
        is_more = has_remedy and needed > adjustment.n_trials
        text = (
            f"{n:,} of {len(table):,} adjusted p {'lies' if n == 1 else 'lie'} within Monte Carlo error (99 %) "
            f"of {alpha:g}: another seed could change the verdict{remedy if is_more else ''}"
        )
        numbers = {"n_comparisons": n, "of": len(table), "alpha": alpha}
        yield Note("family-undecided", text, {**numbers, "needed": needed if has_remedy else None})


def _check_method(adjustment: Adjustment, table: Table) -> Iterable[Note]:
    if adjustment.method == "tukey":
        yield Note("caveat", spell_in(TUKEY_CAVEAT), {"adjust": adjustment.method})
        yield from _check_tukey_p(table)


def _check_intervals(_adjustment: Adjustment, table: Table) -> Iterable[Note]:
    """Yield a note if comparisons lack the requested kind of interval, or if their interval has no bounds."""
    for reason, words, remedy in (
        (NO_MEAN, "no interval", f"{spell('interval', 'auto')} chooses one that fits"),
        (UNBOUNDED, "the interval has no bounds", f"use more units, or a lower {spell('confidence')}"),
    ):
        if n := int(np.count_nonzero(table["interval.why"].find(reason.__eq__))):
            text = f"{words}{_format_share(n, len(table))}: {reason}; {remedy}"
            yield Note("interval", text, {"n_comparisons": n, "of": len(table)})


def _check_tukey_p(table: Table) -> Iterable[Note]:
    """Yield a note if some Tukey p-values are smaller than the unadjusted p-values, which verdicts then use."""
    tukey, unadjusted = table["p_adjusted_by.tukey"], table.p_value
    smaller = np.flatnonzero(tukey < unadjusted)
    if len(smaller):
        row = int(smaller[np.argmax(unadjusted[smaller] - tukey[smaller])])
        p_tukey, p_alone = (format_p(float(p[row]), table.alpha) for p in (tukey, unadjusted))
        values = {"a": table.a[row], "b": table.b[row], "tukey": p_tukey, "alone": p_alone}
        text = TUKEY_P.format(n=len(smaller), of=len(table), **values)
        yield Note("larger-of-two", text, {"n_comparisons": len(smaller), "of": len(table), "adjust": "tukey"})
