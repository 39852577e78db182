"""A plan's gate at the end of a run: evidence gathered, rules judged, files written, others told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from sigdask.clusters import Cluster
from sigdask.counts import Counts
from sigdask.errors import SigdaskError
from sigdask.evidence import gather
from sigdask.gate import Evidence, GateVerdict, judge
from sigdask.plan import Plan, TestSet
from sigdask.plan.model import dated
from sigdask.report.files import write_whole
from sigdask.report.gate import junit
from sigdask.results import Result
from sigdask.tell import tell

NO_HISTORY: Mapping[str, Sequence[float]] = {}


def judge_plan(
    plan: Plan,
    results: Sequence[Result],
    *,
    history: Mapping[str, Sequence[float]] = NO_HISTORY,
    read: Callable[[TestSet], Counts] = TestSet.read,
    cluster: str | Cluster = "auto",
    workers: int | None = None,
) -> GateVerdict | None:
    """Hold a plan's results against its gate; None where it has none.

    Parameters
    ----------
    plan : Plan
        With the rules.
    results : sequence of Result
        Of all its test sets, adjusted as it says.
    history : mapping of str to sequence of float
        `RuleVerdict.name` to its `p_value` in earlier runs, oldest first; runs whose inputs did not
        change left out.
    read : callable
        Returns a test set's counts, where they are at hand; otherwise they are read again.
    cluster, workers
        Where non-inferiority is counted.
    """
    if plan.gate is None:
        return None
    evidence = Evidence(history=history)
    for test_set in plan.test_sets:
        evidence += gather(
            read(test_set),
            results,
            plan.gate.rules,
            baseline=test_set.baseline,
            by=test_set.by,
            seed=plan.seed,
            trials=test_set.trials,
            cluster=cluster,
            workers=workers,
        )
    return judge(
        plan.gate.rules,
        results,
        evidence,
        family=plan.family,
        fdr=plan.gate.fdr,
        runs_per_year=plan.gate.runs_per_year,
    )


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
