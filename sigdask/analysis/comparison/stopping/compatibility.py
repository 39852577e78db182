"""Checks of which adjustments and analyses can be combined with a stopping rule."""

from __future__ import annotations

from sigdask.errors import InputError
from sigdask.options import Adjust
from sigdask.statistics.stopping import BesagClifford, ConfidenceSequence, Stopping

SHARED_TRIALS: tuple[Adjust, ...] = ("max-t", "max-t:raw", "single-step-max-t", "bootstrap-t", "tukey")
"""Adjustments that take the largest difference of each trial, so that all need the same trials."""


def default_adjustment(rule: Stopping) -> Adjust:
    """Return the default adjustment of p-values with a stopping rule."""
    return "holm" if isinstance(rule, BesagClifford) else "none"


def find_conflict(rule: Stopping, adjust: Adjust | None) -> str | None:
    """Return why a rule and an adjustment cannot be combined, or None if they can."""
    if adjust in SHARED_TRIALS:
        return f"{adjust} needs the same number of trials of every comparison: choose holm, hochberg, bh or by"
    if isinstance(rule, ConfidenceSequence) and adjust not in {None, "none"}:
        return f"a confidence sequence gives decisions and no p-values for {adjust}: choose besag-clifford"
    return None


def check_compatibility(rule: Stopping, adjust: Adjust | None, *, together: bool) -> None:
    """Raise if the adjustment, or verdicts over several sets, cannot be combined with the stopping rule.

    Raises
    ------
    InputError
        It says what needs the same trials of all comparisons, or p-values.
    """
    if (problem := find_conflict(rule, adjust)) is not None:
        raise InputError(f"stop: {problem}, or leave the rule out")
    if together:
        raise InputError(
            "stop: verdicts over several sets need the same number of trials of all; leave one of them out"
        )
