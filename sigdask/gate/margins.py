"""The rule that every system is shown to be worse by less than a margin, if at all."""

from __future__ import annotations

from collections.abc import Sequence

from scipy import special

from sigdask.errors import InputError
from sigdask.gate.coverage import Covered, Run, failures_first, where
from sigdask.gate.values import POWER, Finding, NonInferior, RuleVerdict, Shown, key_of, name_of


def non_inferior(rule: NonInferior, covered: Sequence[Covered], run: Run) -> RuleVerdict:
    """Judge whether every system is shown to be within the margin."""
    findings, power = [], 1.0
    for c in covered:
        shown = run.evidence.shown.get((rule, key_of(c.result)))
        if shown is None:
            raise InputError(f"gate: non-inferiority of {c.system} to {c.baseline} by {where(c)} was not tested")
        findings.append(_within(rule, c, shown, run.spread(c.result)))
        power *= power_to_show(rule, run.spread(c.result))
    return RuleVerdict(
        rule=rule,
        name=name_of(rule),
        passed=all(f.passed for f in findings),
        p_value=max(f.p_value for f in findings),
        level=rule.alpha,
        findings=failures_first(findings),
        alarms_per_year=run.runs_per_year * (1 - power),
        notes=(f"systems equal to the baseline would all be shown with probability of about {power:.3g}",),
    )


def _within(rule: NonInferior, c: Covered, shown: Shown, sd: float | None) -> Finding:
    passed = shown.p_value <= rule.alpha
    smallest = None if not sd else float(special.ndtri(1 - rule.alpha) + special.ndtri(POWER)) * sd
    words = "is shown to be" if passed else "is not shown to be"
    worst = "" if not sd else _worst(float(special.ndtri(1 - rule.alpha)) * sd - c.gain, rule.alpha)
    needs = "" if not smallest else f"; an equal system would be shown within {smallest:.3g} with power {POWER:g}"
    return Finding(
        key=key_of(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=shown.p_value,
        passed=passed,
        detectable=smallest,
        text=f"{c.system} {words} within {rule.margin:g} of {c.baseline} by {where(c)}: {c.gain:+.4g}, "
        f"p = {shown.p_value:.3g} ({shown.method}){worst}{needs}",
    )


def _worst(loss: float, alpha: float) -> str:
    """Write the one-sided upper bound of the loss, by the normal approximation."""
    bound = f"at most {loss:.3g} worse" if loss > 0 else "no worse"
    return f"; {bound} at {1 - alpha:.3g} confidence (normal approximation)"


def power_to_show(rule: NonInferior, sd: float | None) -> float:
    """Return the probability that a system equal to the baseline is shown to be non-inferior."""
    if not sd:
        return 1.0
    return float(special.ndtr(rule.margin / sd - special.ndtri(1 - rule.alpha)))
