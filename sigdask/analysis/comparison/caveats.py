"""What stands in the way of a verdict: too few trials or units, and what adjusted p-values leave open."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.adjust import Adjustment
from sigdask.randomization.families.skewed import SHARE
from sigdask.results.messages.notes import Note, Plain
from sigdask.results.table import Floats, Table, details_of
from sigdask.statistics.bounds import MAX_TRIALS, trials_to_decide
from sigdask.statistics.multiplicity import OF_P_VALUES, cost, trials_needed
from sigdask.statistics.rounding import p_text
from sigdask.text import count_noun

FEW_UNITS = 20

TUKEY_CAVEAT = (
    "Tukey's HSD tests that all systems are exchangeable: systems of equal means and unequal variances are declared "
    "different too often (9 to 16 % at 5 % in simulation); --adjust max-t is not so"
)
EXACT_BY_HOLM = (
    "p is exact, and adjusted by Holm; --adjust max-t takes trials, and finds more where comparisons are correlated"
)
SKEWED = (
    "{n:,} of {of:,} comparisons are of systems whose units are strongly skewed in opposite directions: {adjust} alone "
    "can find false differences of such systems several times as often as its level says; "
)
LARGER = (
    "there the adjusted p is the larger of {adjust}'s and that of bootstrap-t, which resamples units, and {turned:,} "
    "that {adjust} alone finds significant are not (docs/statistics.md has the error rates)"
)
RESAMPLE = "--adjust bootstrap-t resamples units instead (docs/statistics.md has the error rates); more units help"
TUKEY_P = (
    "the verdict takes the larger of Tukey's p, which is the published one, and the unadjusted p: in {n:,} of {of:,} "
    "comparisons the unadjusted p, as of {a} and {b}, where Tukey's p = {tukey} and the unadjusted p = {alone}"
)


def obstacles(made: Adjustment, found: Table) -> list[Note]:
    """Return what stands in the way of a verdict, with remedies, of the comparisons judged together."""
    return [note for check in (_few_trials, _few_units, _undecided, _caveats) for note in check(made, found)]


def _few_trials(made: Adjustment, found: Table) -> Iterable[Note]:
    alpha = found.alpha
    sampled = n_asked(found)[~found.exact & (found.n_trials > 0)]
    if made.method in OF_P_VALUES and len(sampled):
        needed = trials_needed(cost(made.method, len(found)), alpha)
        if (least := int(sampled.min())) < needed:
            text = (
                f"{count_noun(least, 'trial')} cannot bring a single p of {len(found):,} to {alpha:g} "
                f"after {made.method}: "
                f"it takes {needed:,} (--trials {needed})"
            )
            yield Note("few-trials", text, {"n_trials": least, "needed": needed, "alpha": alpha})
        return
    needed = trials_needed(1, alpha)
    if made.family is not None and not made.family.enumerated and 0 < made.n_trials < needed:
        text = f"{count_noun(made.n_trials, 'trial')} cannot reach {alpha:g}: it takes {needed:,} (--trials {needed})"
        yield Note("few-trials", text, {"n_trials": made.n_trials, "needed": needed, "alpha": alpha})
    elif len(sampled) and (most := int(sampled.max())) < needed:
        text = f"the trials asked for cannot reach {alpha:g}: it takes {needed:,} (--trials {needed})"
        yield Note("few-trials", text, {"n_trials": most, "needed": needed, "alpha": alpha})


def _few_units(made: Adjustment, found: Table) -> Iterable[Note]:
    """Say once for each unit how few there are, and where no p can reach alpha."""
    alpha = found.alpha
    if not ((found.n_units > 0) & (found.n_units < FEW_UNITS)).any():
        return
    least = least_p(found)
    reached = OF_P_VALUES[made.method](least) if made.method in OF_P_VALUES else least
    for code in np.argsort(np.array(found.unit.values, object), kind="stable").tolist():
        unit = found.unit.values[code]
        few = (found.unit.codes == code) & (found.n_units > 0) & (found.n_units < FEW_UNITS)
        n_few = int(np.count_nonzero(few))
        if not n_few:
            continue
        low, high = int(found.n_units[few].min()), int(found.n_units[few].max())
        n_hopeless = int(np.count_nonzero(few & (reached > alpha)))
        reach = ""
        if n_hopeless:
            finer = "" if unit == "item" else ", or a finer --unit if its units are independent"
            after = "" if made.method == "none" else f" after {made.method}"
            reach = f"; {alpha:g} cannot be reached{after}{_share(n_hopeless, n_few)}: more units are needed{finer}"
        number = count_noun(low, "unit") if low == high else f"{low} to {high} units"
        text = f"only {number} ({unit}){_share(n_few, len(found))}: a test of so few says little{reach}"
        numbers: dict[str, Plain] = {"unit": unit, "fewest": low, "most": high, "alpha": alpha}
        numbers |= {"n_comparisons": n_few, "n_unreachable": n_hopeless, "of": len(found)}
        yield Note("few-units", text, numbers)


def least_p(found: Table) -> Floats:
    """Return the smallest p that so many units can give: each arrangement is as likely, two reach it two-sided."""
    two_sided = np.array([side == "two-sided" for side in found.alternative.values])[found.alternative.codes]
    return np.minimum(2.0 ** (two_sided - found.n_units.astype(np.float64)), 1.0)


def _share(some: int, whole: int) -> str:
    return "" if some == whole else f" in {some:,} of {count_noun(whole, 'comparison')}"


def _undecided(made: Adjustment, found: Table) -> Iterable[Note]:
    """Say how many verdicts of a sampled family another seed could turn."""
    if made.family is not None and (made.family.enumerated or made.n_trials == 0):
        return
    alpha = found.alpha
    fixed = (found.n_trials > 0) & ~is_stopped(found)  # a stopping rule's p needs no more trials
    straddling = fixed & (found.p_adjusted_low <= alpha) & (alpha < found.p_adjusted_high)
    if n := int(np.count_nonzero(straddling)):
        middle = found.p_adjusted[straddling].tolist()
        needed = sorted(trials_to_decide(p, alpha) or MAX_TRIALS for p in middle)[n // 2]
        remedy = f"; about {count_noun(needed, 'trial')} would decide {'it' if n == 1 else 'half of them'}"
        counted = made.family is not None and needed < MAX_TRIALS
        text = (
            f"{n:,} of {len(found):,} adjusted p {'lies' if n == 1 else 'lie'} within Monte Carlo error "
            f"(99 %) of {alpha:g}: another seed can turn the verdict{remedy if counted else ''}"
        )
        some = {"n_comparisons": n, "of": len(found), "alpha": alpha}
        yield Note("family-undecided", text, {**some, "needed": needed if counted else None})


def n_asked(found: Table) -> NDArray[np.int64]:
    """Return the trials asked for, shape (n,): more than were counted where a rule stopped."""
    return np.where(is_stopped(found), n_asked_by_rules(found), found.n_trials)


def is_stopped(found: Table) -> NDArray[np.bool_]:
    """Say which comparisons a rule to stop early looked at, shape (n,)."""
    return np.asarray(n_asked_by_rules(found) > 0)


def n_asked_by_rules(found: Table) -> NDArray[np.int64]:
    """Return the trials that rules to stop early could have taken, shape (n,); 0 where none looked."""
    return sum((stops.n_asked for stops in found.stops), np.zeros(len(found), np.int64))


def _caveats(made: Adjustment, found: Table) -> Iterable[Note]:
    if made.for_exact and made.method == "holm":
        yield Note("exact-by-holm", EXACT_BY_HOLM, {"adjust": made.method})
    if made.method == "tukey":
        yield Note("caveat", TUKEY_CAVEAT, {"adjust": made.method})
        yield from _tukey_p(found)
    if made.takes_larger:
        own = details_of(found)
        turned = own.has_two & (own.p_first <= found.alpha) & (found.p_adjusted > found.alpha)
        yield _skewed_note(made, LARGER, int(np.count_nonzero(turned)))
    elif made.n_skewed >= max(SHARE * len(found), 1):
        yield _skewed_note(made, RESAMPLE)


def _skewed_note(made: Adjustment, remedy: str, turned: int = 0) -> Note:
    """Say how many comparisons are of skewed systems, and what is done about it or may be."""
    assert made.skewed is not None
    n, of = made.n_skewed, len(made.skewed)
    text = f"{SKEWED}{remedy}".format(n=n, of=of, adjust=made.method, turned=turned)
    return Note("skewed", text, {"n_comparisons": n, "of": of, "adjust": made.method})


def _tukey_p(found: Table) -> Iterable[Note]:
    """Say where the published p of Tukey's HSD is smaller than the unadjusted p that the verdict takes."""
    own = details_of(found)
    smaller = np.flatnonzero(own.p_first < own.p_second)
    if not len(smaller):
        return
    row = int(smaller[np.argmax(own.p_second[smaller] - own.p_first[smaller])])
    tukey, alone = p_text(float(own.p_first[row]), found.alpha), p_text(float(own.p_second[row]), found.alpha)
    named = {"a": found.a[row], "b": found.b[row], "tukey": tukey, "alone": alone}
    text = TUKEY_P.format(n=len(smaller), of=len(found), **named)
    yield Note("larger-of-two", text, {"n_comparisons": len(smaller), "of": len(found), "adjust": "tukey"})
