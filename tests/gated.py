"""Gates of results that tests have one by one."""

from sigdask.comparison.results import Results
from sigdask.comparison.table import Table
from sigdask.gate import evidence
from sigdask.gate import judge as of_table
from sigdask.overnight import gate


def columns(results):
    """Return the table of results, however they are had."""
    return results.table if isinstance(results, Results) else Table.of(results, 0.05)


def judge(rules, results, *args, **options):
    return of_table(rules, columns(results), *args, **options)


def gather(counts, results, *args, **options):
    return evidence.gather(counts, columns(results), *args, **options)


def judge_plan(plan, results, **options):
    return gate.judge_plan(plan, columns(results), **options)
