"""When to stop counting early and keep what is said valid: rules on the ordered prefix of blocks.

Besag & Clifford 1991, "Sequential Monte Carlo p-values"; Ding, Gandy & Hahn 2020, "A simple method
for implementing Monte Carlo tests".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BesagClifford:
    """Stop at the h-th exceedance, at trial l: p = h / l is a valid p-value.

    Attributes
    ----------
    h : int
        Exceedances to wait for.
    """

    h: int = 10


@dataclass(frozen=True, slots=True)
class ConfidenceSequence:
    """Stop when the confidence sequence of p leaves alpha: a decision, no p-value.

    Attributes
    ----------
    alpha : float
        Level decided at.
    epsilon : float
        Resampling risk: the largest probability of deciding against what endless trials would say.
    """

    alpha: float = 0.05
    epsilon: float = 1e-3


Stopping = BesagClifford | ConfidenceSequence
