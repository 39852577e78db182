"""What a test set of a plan takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """What one test set takes.

    Attributes
    ----------
    test_set, format, unit : str
        As they were read.
    n_systems, n_items, n_units, n_comparisons : int
        Sizes.
    n_enumerated : int
        Comparisons of which all arrangements are counted.
    n_trials : int
        Of each other comparison; 0 where there is none.
    seconds : float
        On one core of this machine, the second run and the family included.
    warnings : tuple of str
        What the reader noticed.
    """

    test_set: str
    format: str
    unit: str
    n_systems: int
    n_items: int
    n_units: int
    n_comparisons: int
    n_enumerated: int
    n_trials: int
    seconds: float
    warnings: tuple[str, ...]
