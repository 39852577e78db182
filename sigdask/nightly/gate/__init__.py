"""Rules that results must hold for a run to pass: nothing worse than the baseline, or shown not to be.

Nothing is read or counted here: results, spreads and tests of margins come from elsewhere, the
p-values of earlier runs from the store.
"""

from sigdask.nightly.gate.coverage import asks_for, rows_covered
from sigdask.nightly.gate.judge import judge
from sigdask.nightly.gate.not_worse import check_direction, detectable
from sigdask.nightly.gate.rules import (
    FALSE_ALARMS_PER_YEAR,
    Equivalent,
    Evidence,
    Fdr,
    GateVerdict,
    Key,
    MarginResult,
    NonInferior,
    NotWorse,
    Rule,
    RuleFinding,
    RuleVerdict,
    WithinMargin,
    key_of,
    name_of,
)

__all__ = [
    "FALSE_ALARMS_PER_YEAR",
    "Equivalent",
    "Evidence",
    "Fdr",
    "GateVerdict",
    "Key",
    "MarginResult",
    "NonInferior",
    "NotWorse",
    "Rule",
    "RuleFinding",
    "RuleVerdict",
    "WithinMargin",
    "asks_for",
    "check_direction",
    "detectable",
    "judge",
    "key_of",
    "name_of",
    "rows_covered",
]  # fmt: skip
