"""A plan's gate at the end of a run: evidence gathered, rules judged, files written, others told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

from sigdask.comparison.table import Table
from sigdask.counts import Counts
from sigdask.engine import count_jobs
from sigdask.errors import SigdaskError
from sigdask.gate import Evidence, GateVerdict, judge
from sigdask.gate.evidence import gather
from sigdask.gate.margin_tests import Count
from sigdask.overnight.notify import tell
from sigdask.overnight.work import left_out
from sigdask.plan import Plan, TestSet
from sigdask.plan.model import dated
from sigdask.report.files import write_whole
from sigdask.report.gate import junit, record
from sigdask.store import Run, Store

NO_HISTORY: Mapping[str, Sequence[float]] = {}


def judge_plan(
    plan: Plan,
    found: Table,
    *,
    history: Mapping[str, Sequence[float]] = NO_HISTORY,
    read: Callable[[TestSet], Counts] = TestSet.read,
    count: Count = count_jobs,
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> GateVerdict | None:
    """Hold a plan's results against its gate; None where it has none.

    Parameters
    ----------
    plan : Plan
        With the rules.
    found : Table
        Of all its test sets, adjusted as it says.
    history : mapping of str to sequence of float
        `RuleVerdict.name` to its `p_value` in earlier runs, oldest first; runs whose inputs did not
        change left out.
    read : callable
        Returns a test set's counts, where they are at hand; otherwise they are read again.
    count : callable
        Counts what tests of margins take.
    waiting : callable
        Surrounds what may be interrupted.
    """
    if plan.gate is None:
        return None
    evidence = Evidence(history=history)
    for test_set in plan.test_sets:
        counts = read(test_set)
        evidence += Evidence(absent=tuple(left_out(plan, test_set, counts)))
        evidence += gather(
            counts,
            found,
            plan.gate.rules,
            baseline=test_set.baseline,
            by=test_set.by,
            seed=plan.seed,
            trials=test_set.trials,
            count=count,
            waiting=waiting,
        )
    return judge(
        plan.gate.rules,
        found,
        evidence,
        family=plan.family,
        fdr=plan.gate.fdr,
        runs_per_year=plan.gate.runs_per_year,
    )


def judge_night(
    plan: Plan,
    store: Store,
    number: int,
    found: Table,
    counts: Mapping[str, Counts],
    *,
    count: Count,
    waiting: Callable[[], AbstractContextManager[None]],
) -> tuple[GateVerdict | None, list[str]]:
    """Hold a run against its plan's gate, keep the rules' p-values, and tell whom the gate names.

    Parameters
    ----------
    plan : Plan
        With the gate; without one there is nothing to judge.
    store : Store
        Open for the plan's driver.
    number : int
        Of the run.
    found : Table
        By it.
    counts : mapping of str to Counts
        The test sets, by name, as the run read them.
    count, waiting
        As in `judge_plan`.

    Returns
    -------
    (GateVerdict or None, list of str)
        The verdict, and what could not be written or told.
    """
    if plan.gate is None:
        return None, []
    runs = store.runs()
    this = next(run for run in runs if run.number == number)
    verdict = judge_plan(
        plan, found, history=earlier(runs, this), read=lambda each: counts[each.name], count=count, waiting=waiting
    )
    if verdict is None:
        return None, []
    store.amend(number, {"gate": {rule.name: rule.p_value for rule in verdict.rules}, "verdict": record(verdict)})
    return verdict, list(publish(plan, verdict, datetime.fromtimestamp(this.started).astimezone()))


def earlier(runs: Sequence[Run], this: Run) -> dict[str, list[float]]:
    """Return the p-values of each rule in the runs before this one, oldest first.

    A run on the same inputs as the one before it tells nothing new; where this run's inputs are
    those of the latest, that one is left out in its favour.
    """
    told: list[Run] = []
    for run in runs:
        if run.number >= this.number or "gate" not in run.details:
            continue
        if told and told[-1].details.get("inputs") == run.details.get("inputs"):
            told.pop()
        told.append(run)
    if told and told[-1].details.get("inputs") == this.details.get("inputs"):
        told.pop()
    names = dict.fromkeys(name for run in told for name in run.details["gate"])
    return {name: [run.details["gate"][name] for run in told if name in run.details["gate"]] for name in names}


def publish(plan: Plan, verdict: GateVerdict, start: datetime) -> Iterator[str]:
    """Write the gate's files and tell whom it names; yield what could not be done.

    Parameters
    ----------
    plan : Plan
        With the gate.
    verdict : GateVerdict
        How it ended.
    start : datetime
        Of the run, for `{date}` and `{time}`.
    """
    gate = plan.gate
    if gate is None:
        return
    for path, text in ((gate.junit, junit(verdict, plan.name)), (gate.json, verdict.to_json() + "\n")):
        if (file := dated(path, start)) is not None:
            try:
                write_whole(file, text)
            except SigdaskError as error:
                yield f"gate: {error}"
    yield from tell(gate.tell, verdict, plan.name, plan.path.parent)
