"""Gate functions for results that a test has as a list or as `Results`."""

from builders import results_to_table

from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.nightly.gate.judge import gather_evidence, judge_rules
from sigdask.report.presentable import Results


def get_table(results):
    """Return the table of `Results`, or the table of a list of results."""
    return results.table if isinstance(results, Results) else results_to_table(results, 0.05)


def judge(rules, results, *args, **options):
    return judge_rules(rules, get_table(results), *args, **options)


def gather(counts, results, rules, **options):
    further = {name: options.pop(name) for name in ("count", "interruptible") if name in options}
    return gather_evidence(counts, get_table(results), rules, CompareSpec(["mean"], **options), **further)
