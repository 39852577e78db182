"""Rules that results must hold for a run to pass: nothing worse than the baseline, or shown not to be.

Nothing is read or counted here: results, spreads and tests of non-inferiority come from elsewhere, the
p-values of earlier runs from the store.
"""

from sigdask.gate.coverage import covers
from sigdask.gate.judge import judge
from sigdask.gate.losses import check_direction, detectable
from sigdask.gate.values import (
    Evidence,
    Fdr,
    Finding,
    GateVerdict,
    Key,
    NonInferior,
    NotWorse,
    Rule,
    RuleVerdict,
    Shown,
    key_of,
    name_of,
)

__all__ = [
    "Evidence", "Fdr", "Finding", "GateVerdict", "Key", "NonInferior", "NotWorse", "Rule", "RuleVerdict", "Shown",
    "check_direction", "covers", "detectable", "judge", "key_of", "name_of",
]  # fmt: skip
