"""A plan's gate at the end of a run: gather evidence, judge rules, write files, send notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import SigdaskError
from sigdask.execution.run import count_jobs
from sigdask.nightly.gate.evidence import Count, gather_evidence
from sigdask.nightly.gate.judge import judge_rules
from sigdask.nightly.gate.rules import ComparisonKey, Evidence, GateVerdict, format_rule_name, select_rows
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.plan.model import fill_date
from sigdask.nightly.report.gate import build_record, list_findings, render_junit
from sigdask.nightly.report.page import list_keys
from sigdask.nightly.run.notify import send_notifications
from sigdask.nightly.run.work import iter_missing
from sigdask.nightly.store import PlanRun, Store
from sigdask.report.files import write_whole_text
from sigdask.results.table import Table

NO_EVIDENCE = Evidence()

DAYS_PER_YEAR = 365
"""Number of days within which runs are compared with the plan's number of runs per year."""


def judge_plan(
    plan: Plan,
    table: Table,
    *,
    past: Evidence = NO_EVIDENCE,
    read_counts: Callable[[TestSet], Counts] = TestSet.read,
    count: Count = count_jobs,
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> GateVerdict | None:
    """Return the verdict of a plan's gate on results, or None if the plan has no gate.

    Parameters
    ----------
    plan : Plan
        The plan with the rules.
    table : Table
        Results of all its test sets, adjusted as in the plan.
    past : Evidence
        Evidence of earlier runs, from `collect_history`.
    read_counts : callable
        Returns a test set's counts if they are available; otherwise they are read again.
    count : callable
        Counts the jobs of margin tests.
    interruptible : callable
        Context manager for work that may be interrupted.
    """
    if plan.gate is None:
        return None
    evidence = past
    for test_set in plan.test_sets:
        counts = read_counts(test_set)
        evidence += Evidence(absent=tuple(iter_missing(test_set, counts)))
        evidence += gather_evidence(
            counts,
            table,
            plan.gate.rules,
            baseline=test_set.comparison["baseline"],
            by=test_set.comparison["by"],
            seed=plan.comparison["seed"],
            trials=test_set.comparison["trials"],
            count=count,
            interruptible=interruptible,
        )
    return judge_rules(
        plan.gate.rules,
        table,
        evidence,
        runs_per_year=plan.gate.runs_per_year,
        adjust=plan.comparison["adjust"],
    )


def judge_night(
    plan: Plan,
    store: Store,
    number: int,
    table: Table,
    counts: Mapping[str, Counts],
    *,
    count: Count,
    interruptible: Callable[[], AbstractContextManager[None]],
) -> tuple[GateVerdict | None, list[str]]:
    """Judge a run by its plan's gate, record the rules' p-values in the store, and send notifications.

    Parameters
    ----------
    plan : Plan
        The plan. Nothing is judged if it has no gate.
    store : Store
        Open for the plan's driver.
    number : int
        Number of the run.
    table : Table
        By it.
    counts : mapping of str to Counts
        The test sets, by name, as the run read them.
    count, interruptible
        As in `judge_plan`.

    Returns
    -------
    (GateVerdict or None, list of str)
        The verdict, and failures of files and notifications.
    """
    runs = store.list_runs()
    this = next(run for run in runs if run.number == number)
    past = collect_history(plan, store, runs, this, table)
    verdict = judge_plan(
        plan,
        table,
        past=past,
        read_counts=lambda test_set: counts[test_set.name],
        count=count,
        interruptible=interruptible,
    )
    if verdict is None:
        return None, []
    store.amend_run(
        number, {"gate": {rule.name: rule.p_value for rule in verdict.rules}, "verdict": build_record(verdict)}
    )
    return verdict, list(publish_verdict(plan, verdict, datetime.fromtimestamp(this.started).astimezone()))


def collect_history(plan: Plan, store: Store, runs: Sequence[PlanRun], this: PlanRun, table: Table) -> Evidence:
    """Return the evidence of earlier runs: failures, comparisons that are gone, and rules that see unchanged outputs.

    Parameters
    ----------
    plan : Plan
        With a gate.
    store : Store
        Open for the plan's driver.
    runs : sequence of PlanRun
        Runs of the plan, oldest first.
    this : PlanRun
        The run that is judged.
    table : Table
        By it.
    """
    assert plan.gate is not None
    last_judged = next((run for run in reversed(runs) if run.number < this.number and "gate" in run.details), None)
    if last_judged is None:
        return Evidence(n_runs=1)
    unchanged = {*list_keys(store.fetch_unchanged(last_judged.number))}
    baselines = {t.name: t.comparison["baseline"] for t in plan.test_sets}
    rules = {format_rule_name(rule): rule for rule in plan.gate.rules}
    last_table = store.fetch_results_after(last_judged.number)
    repeats, dropped, n_runs = {}, {}, 1
    first_failures: dict[tuple[str, ComparisonKey], int] = {}
    for name, rule in rules.items():
        recorded = _get_rule_record(last_judged, name)
        covered = list_keys(table.take(select_rows(rule, table, baselines)))
        current = {*covered}
        if lost := [
            key for key in list_keys(last_table.take(select_rows(rule, last_table, baselines))) if key not in current
        ]:
            dropped[name] = lost
        is_repeated = bool(covered) and unchanged.issuperset(covered) and name in last_judged.details["gate"]
        if is_repeated:
            repeats[name] = recorded.get("repeats") or last_judged.number
        failed = [f for f in list_findings(recorded) if not f["passed"] and tuple(f["key"]) in unchanged]
        first_failures |= {(name, tuple(f["key"])): f.get("since") or last_judged.number for f in failed}
        judged_runs = _list_observations(runs, this, name, is_repeated=is_repeated)
        oldest_start = this.started - DAYS_PER_YEAR * 86_400
        n_runs = max(n_runs, 1 + sum(run.started >= oldest_start for run in judged_runs))
    return Evidence(repeats=repeats, first_failures=first_failures, dropped=dropped, n_runs=n_runs)


def _list_observations(
    runs: Sequence[PlanRun], this: PlanRun, name: str, *, is_repeated: bool = False
) -> list[PlanRun]:
    """Return the earlier runs that judged a rule on outputs of their own.

    A run with the same outputs as the next one gives no new information and is omitted. So is the latest run if this
    one repeats it.
    """
    judged_runs: list[PlanRun] = []
    for run in runs:
        if run.number < this.number and name in run.details.get("gate", ()):
            if judged_runs and (_has_same_inputs(judged_runs[-1], run) or _get_rule_record(run, name).get("repeats")):
                judged_runs.pop()
            judged_runs.append(run)
    if judged_runs and (is_repeated or _has_same_inputs(judged_runs[-1], this)):
        return judged_runs[:-1]
    return judged_runs


def _has_same_inputs(run: PlanRun, other: PlanRun) -> bool:
    return bool(run.details.get("inputs") == other.details.get("inputs"))


def _get_rule_record(run: PlanRun, name: str) -> Mapping[str, Any]:
    """Return the record of a rule in a run, or an empty mapping."""
    rules = (run.details.get("verdict") or {}).get("rules", ())
    return next((rule for rule in rules if rule["name"] == name), {})


def publish_verdict(plan: Plan, verdict: GateVerdict, start: datetime) -> Iterator[str]:
    """Write the gate's files and send its notifications; yield a message for each failure.

    Parameters
    ----------
    plan : Plan
        With the gate.
    verdict : GateVerdict
        How it ended.
    start : datetime
        Start of the run, for `{date}` and `{time}`.
    """
    gate = plan.gate
    assert gate is not None
    for path, text in ((gate.junit, render_junit(verdict, plan.name)), (gate.json, verdict.to_json() + "\n")):
        if path is not None:
            try:
                write_whole_text(fill_date(path, start), text)
            except SigdaskError as error:
                yield f"gate: {error}"
    yield from send_notifications(gate.notify, verdict, plan.name, plan.path.parent)
