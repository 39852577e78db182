"""Rules that decide whether a run passes: not worse than the baseline, non-inferior or equivalent.

Nothing is read or counted here: results, spreads and tests of margins come from elsewhere, the
p-values of earlier runs from the store.
"""

from sigdask.nightly.gate.coverage import covers_metric, select_rows
from sigdask.nightly.gate.judge import judge_rules
from sigdask.nightly.gate.not_worse import check_direction, compute_detectable_loss
from sigdask.nightly.gate.rules import (
    FALSE_ALARMS_PER_YEAR,
    ComparisonKey,
    Equivalent,
    Evidence,
    Fdr,
    GateVerdict,
    MarginResult,
    NonInferior,
    NotWorse,
    Rule,
    RuleFinding,
    RuleVerdict,
    WithinMargin,
    format_rule_name,
    get_key,
)

__all__ = [
    "FALSE_ALARMS_PER_YEAR", "ComparisonKey", "Equivalent", "Evidence", "Fdr", "GateVerdict", "MarginResult",
    "NonInferior", "NotWorse", "Rule", "RuleFinding", "RuleVerdict", "WithinMargin", "check_direction",
    "compute_detectable_loss", "covers_metric", "format_rule_name", "get_key", "judge_rules", "select_rows",
]  # fmt: skip
