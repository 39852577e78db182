"""Gates of results that tests have one by one."""

from sigdask.nightly.gate import evidence
from sigdask.nightly.gate import judge_rules as of_table
from sigdask.nightly.run import gate
from sigdask.report.presentable import Results
from sigdask.results.rows import results_to_table


def columns(results):
    """Return the table of results, however they are had."""
    return results.table if isinstance(results, Results) else results_to_table(results, 0.05)


def judge(rules, results, *args, **options):
    return of_table(rules, columns(results), *args, **options)


def gather(counts, results, *args, **options):
    return evidence.gather_evidence(counts, columns(results), *args, **options)


def judge_plan(plan, results, **options):
    return gate.judge_plan(plan, columns(results), **options)
