"""What stands in the way of a verdict: too few trials or units, and what adjusted p-values leave open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sigdask.comparison.adjustment import Adjustment
from sigdask.comparison.found.result import Result
from sigdask.comparison.notes import Note, Plain
from sigdask.randomization.max_t import Family
from sigdask.randomization.skewed import n_skewed
from sigdask.statistics.bounds import MAX_TRIALS, trials_to_decide
from sigdask.statistics.multiplicity import OF_P_VALUES, cost, trials_needed

FEW_UNITS = 20

TUKEY_CAVEAT = (
    "Tukey's HSD tests that all systems are exchangeable: systems of equal means and unequal variances are told "
    "apart too often (9 to 16 % at 5 % in simulation); --adjust max-t is not so"
)
SKEWED = (
    "systems of one mean that are skewed in opposite directions are not exchangeable, and studentised max-T can find "
    "false differences of such twice as often as its level says, or more; --adjust max-t:raw stays nearer to it, and "
    "more units help (where all systems are skewed alike, nothing is amiss)"
)


def obstacles(made: Adjustment, results: Sequence[Result], alpha: float) -> list[Note]:
    """Return what stands in the way of a verdict, with remedies."""
    return [note for check in (_few_trials, _few_units, _undecided, _caveats) for note in check(made, results, alpha)]


def _few_trials(made: Adjustment, results: Sequence[Result], alpha: float) -> Iterable[Note]:
    sampled = [r.n_asked for r in results if r.method == "approximate" and r.n_trials > 0]
    if made.method in OF_P_VALUES and sampled:
        needed = trials_needed(cost(made.method, len(results)), alpha)
        if (least := min(sampled)) < needed:
            text = (
                f"{least:,} trials cannot bring a single p of {len(results):,} to {alpha:g} after {made.method}: "
                f"it takes {needed:,} (--trials {needed})"
            )
            yield Note("few-trials", text, {"n_trials": least, "needed": needed, "alpha": alpha})
        return
    needed = trials_needed(1, alpha)
    if made.family is not None and not made.family.enumerated and 0 < made.n_trials < needed:
        text = f"{made.n_trials:,} trials cannot reach {alpha:g}: it takes {needed:,} (--trials {needed})"
        yield Note("few-trials", text, {"n_trials": made.n_trials, "needed": needed, "alpha": alpha})
    elif sampled and max(sampled) < needed:
        text = f"the trials asked for cannot reach {alpha:g}: it takes {needed:,} (--trials {needed})"
        yield Note("few-trials", text, {"n_trials": max(sampled), "needed": needed, "alpha": alpha})


def _few_units(made: Adjustment, results: Sequence[Result], alpha: float) -> Iterable[Note]:
    """Say once for each unit how few there are, and where no p can reach alpha."""
    least = [least_p(r) for r in results]
    reached = OF_P_VALUES[made.method](least) if made.method in OF_P_VALUES else least
    beyond = {id(r) for r, p in zip(results, reached, strict=True) if p > alpha}
    for unit in sorted({r.unit for r in results}):
        few = [r for r in results if r.unit == unit and 0 < r.n_units < FEW_UNITS]
        if not few:
            continue
        sizes = [r.n_units for r in few]
        hopeless = [r for r in few if id(r) in beyond]
        reach = ""
        if hopeless:
            finer = "" if unit == "item" else ", or a finer --unit if its units are independent"
            after = "" if made.method == "none" else f" after {made.method}"
            reach = f"; {alpha:g} cannot be reached{after}{_share(hopeless, few)}: more units are needed{finer}"
        number = _plural(sizes[0], "unit") if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)} units"
        text = f"only {number} ({unit}){_share(few, results)}: a test of so few says little{reach}"
        numbers: dict[str, Plain] = {"unit": unit, "fewest": min(sizes), "most": max(sizes), "alpha": alpha}
        numbers |= {"n_comparisons": len(few), "n_unreachable": len(hopeless), "of": len(results)}
        yield Note("few-units", text, numbers)


def least_p(r: Result) -> float:
    """Return the smallest p that so many units can give: each arrangement is as likely, two reach it two-sided."""
    return min(2.0 ** (-r.n_units + (r.alternative == "two-sided")), 1.0)


def _share(some: Sequence[Result], whole: Sequence[Result]) -> str:
    return "" if len(some) == len(whole) else f" in {len(some):,} of {_plural(len(whole), 'comparison')}"


def _plural(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _undecided(made: Adjustment, results: Sequence[Result], alpha: float) -> Iterable[Note]:
    """Say how many verdicts of a sampled family another seed could turn."""
    if made.family is not None and (made.family.enumerated or made.n_trials == 0):
        return
    fixed = [r for r in results if r.n_trials and r.stopped is None]  # a stopping rule's p needs no more trials
    straddling = [r.p_adjusted for r in fixed if r.p_adjusted and _straddles(r, alpha)]
    if straddling:
        one = len(straddling) == 1
        needed = sorted(trials_to_decide(p, alpha) or MAX_TRIALS for p in straddling)[len(straddling) // 2]
        remedy = f"; about {needed:,} trials would decide {'it' if one else 'half of them'}"
        counted = made.family is not None and needed < MAX_TRIALS
        text = (
            f"{len(straddling):,} of {len(results):,} adjusted p {'lies' if one else 'lie'} within Monte Carlo error "
            f"(99 %) of {alpha:g}: another seed can turn the verdict{remedy if counted else ''}"
        )
        some = {"n_comparisons": len(straddling), "of": len(results), "alpha": alpha}
        yield Note("family-undecided", text, {**some, "needed": needed if counted else None})


def _straddles(r: Result, alpha: float) -> bool:
    """Say whether the interval of the adjusted p holds alpha."""
    return r.p_adjusted_interval is not None and r.p_adjusted_interval[0] <= alpha < r.p_adjusted_interval[1]


def _caveats(made: Adjustment, _results: Sequence[Result], _alpha: float) -> Iterable[Note]:
    if made.method == "tukey":
        yield Note("caveat", TUKEY_CAVEAT, {"adjust": made.method})
    family = made.family
    if isinstance(family, Family) and family.studentised and (n := n_skewed(family)):
        text = f"the differences of units are strongly skewed in {n:,} of {len(family.parts):,} comparisons: {SKEWED}"
        yield Note("skewed", text, {"n_comparisons": n, "of": len(family.parts)})
