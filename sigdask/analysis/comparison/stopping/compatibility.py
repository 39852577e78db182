"""What can be had beside a rule to stop early: how p-values are adjusted, and what needs all trials."""

from __future__ import annotations

from sigdask.errors import InputError
from sigdask.options import Adjust
from sigdask.statistics.stopping import BesagClifford, ConfidenceSequence, Stopping

SHARED: tuple[Adjust, ...] = ("max-t", "max-t:raw", "single-step-max-t", "bootstrap-t", "tukey")
"""Adjustments that take the largest difference of each trial, so that all need the same trials."""


def adjustment_beside(rule: Stopping) -> Adjust:
    """Return how p-values are adjusted by default where a rule stops."""
    return "holm" if isinstance(rule, BesagClifford) else "none"


def clash(rule: Stopping, adjust: Adjust | None) -> str | None:
    """Say why a rule and an adjustment cannot be had together, None where they can."""
    if adjust in SHARED:
        return f"{adjust} needs the same number of trials of every comparison: choose holm, hochberg, bh or by"
    if isinstance(rule, ConfidenceSequence) and adjust not in {None, "none"}:
        return f"a confidence sequence gives decisions and no p-values for {adjust}: choose besag-clifford"
    return None


def check_beside(rule: Stopping, adjust: Adjust | None, *, together: bool) -> None:
    """Refuse what cannot be had beside a rule.

    Raises
    ------
    InputError
        It says what needs the same trials of all comparisons, or p-values.
    """
    if (problem := clash(rule, adjust)) is not None:
        raise InputError(f"stop: {problem}, or leave the rule out")
    if together:
        raise InputError(
            "stop: verdicts over several sets need the same number of trials of all; leave one of them out"
        )
