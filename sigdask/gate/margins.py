"""The rule that every system is shown to be worse by less than a margin, if at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from scipy import special

from sigdask.errors import InputError
from sigdask.gate.coverage import Covered, Run, failures_first, where
from sigdask.gate.values import POWER, Finding, NonInferior, RuleVerdict, Shown, key_of, name_of
from sigdask.printable import high_text, p_equals


def non_inferior(rule: NonInferior, covered: Sequence[Covered], run: Run) -> RuleVerdict:
    """Judge whether every system is shown to be within the margin."""
    findings, powers = [], []
    for c in covered:
        shown = run.evidence.shown.get((rule, key_of(c.result)))
        if shown is None:
            raise InputError(f"gate: non-inferiority of {c.system} to {c.baseline} by {where(c)} was not tested")
        findings.append(_within(rule, c, shown, run.spread(c.result)))
        powers.append(power_to_show(rule, shown, c.result.n_units, run.spread(c.result)))
    known = [power for power in powers if power is not None]
    power = math.prod(known)
    return RuleVerdict(
        rule=rule,
        name=name_of(rule),
        passed=all(f.passed for f in findings),
        p_value=max(f.p_value for f in findings),
        level=rule.alpha,
        findings=failures_first(findings),
        alarms_per_year=run.runs_per_year * (1 - power),
        notes=tuple(_notes(power, len(known), len(powers))),
    )


def _within(rule: NonInferior, c: Covered, shown: Shown, sd: float | None) -> Finding:
    passed = shown.p_value <= rule.alpha
    smallest = None if not sd else float(special.ndtri(1 - rule.alpha) + special.ndtri(POWER)) * sd
    if least_p(shown, c.result.n_units) > rule.alpha:
        smallest = math.inf
    words = "is shown to be" if passed else "is not shown to be"
    worst = "" if not sd else _worst(float(special.ndtri(1 - rule.alpha)) * sd - c.gain, rule.alpha)
    needs = (
        "" if not smallest else f"; an equal system would be shown within {high_text(smallest)} with power {POWER:g}"
    )
    if smallest == math.inf:
        needs = "; with so few units or trials nothing can be shown"
    return Finding(
        key=key_of(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=shown.p_value,
        passed=passed,
        detectable=smallest,
        text=f"{c.system} {words} within {rule.margin:g} of {c.baseline} by {where(c)}: {c.gain:+.4g}, "
        f"{p_equals(shown.p_value, rule.alpha)} ({shown.method}){worst}{needs}",
    )


def _worst(loss: float, alpha: float) -> str:
    """Write the one-sided upper bound of the loss, by the normal approximation."""
    bound = f"at most {high_text(loss)} worse" if loss > 0 else "no worse"
    return f"; {bound} at {1 - alpha:.3g} confidence (normal approximation)"


def _notes(power: float, n_known: int, n: int) -> Iterator[str]:
    if n_known:
        yield f"systems equal to the baseline would all be shown with probability of about {power:.3g}"
    if n_known < n:
        yield f"of {n - n_known} comparisons nothing tells how likely that is: no swap changes their scores"


def power_to_show(rule: NonInferior, shown: Shown, n_units: int, sd: float | None) -> float | None:
    """Return the probability that a system equal to the baseline is shown to be non-inferior.

    0 where no p-value can reach the level; None where nothing tells how far differences spread.
    """
    if least_p(shown, n_units) > rule.alpha:
        return 0.0
    return float(special.ndtr(rule.margin / sd - special.ndtri(1 - rule.alpha))) if sd else None


def least_p(shown: Shown, n_units: int) -> float:
    """Return the smallest p-value that a test of non-inferiority can have."""
    return max(2.0**-n_units, 0.0 if shown.n_trials is None else 1 / (shown.n_trials + 1))
