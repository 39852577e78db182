"""Rules that results must hold for a run to pass: nothing worse than the baseline, or shown not to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Fdr = Literal["none", "lord++", "lond"]


@dataclass(frozen=True, slots=True)
class NotWorse:
    """No system is significantly worse than the baseline.

    Passes as well where a test set is too small to show anything: the smallest difference that it
    could detect is stated.

    Attributes
    ----------
    alpha : float
        Level of the rule as a whole.
    adjust : {"holm", "plan", "none"}
        How the p-values of its comparisons are adjusted: by Holm over all of them, as the plan did,
        or not at all.
    baseline : str or None
        None takes the baseline of each test set.
    test_sets, metrics : tuple of str
        What it speaks of; empty for all.
    """

    alpha: float
    adjust: Literal["holm", "plan", "none"] = "holm"
    baseline: str | None = None
    test_sets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NonInferior:
    """Every system is shown to be worse than the baseline by less than a margin, if at all.

    Attributes
    ----------
    margin : float
        On the metric's own scale, above 0.
    alpha : float
        Level of each comparison; all must be shown, so that none needs adjusting.
    baseline, test_sets, metrics
        As in `NotWorse`.
    """

    margin: float
    alpha: float
    baseline: str | None = None
    test_sets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


Rule = NotWorse | NonInferior
