"""A plan's gate at the end of a run: evidence gathered, rules judged, files written, others told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import SigdaskError
from sigdask.execution.run import count_jobs
from sigdask.nightly.gate import Evidence, Fdr, GateVerdict, Key, judge, name_of, rows_covered
from sigdask.nightly.gate.evidence import gather
from sigdask.nightly.gate.margin_tests import Count
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.plan.model import dated
from sigdask.nightly.report.gate import junit, record
from sigdask.nightly.report.highlights import keys
from sigdask.nightly.run.notify import tell
from sigdask.nightly.run.work import left_out
from sigdask.nightly.store import PlanRun, Store
from sigdask.report.files import write_whole
from sigdask.results.table import Table
from sigdask.statistics.online_fdr import levels_before

NOTHING = Evidence()

DAYS = 365
"""Runs of so many days are held against the runs a year that a plan says."""


def judge_plan(
    plan: Plan,
    found: Table,
    *,
    past: Evidence = NOTHING,
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
    past : Evidence
        Of earlier runs, as `past_runs` returns it.
    read : callable
        Returns a test set's counts, where they are at hand; otherwise they are read again.
    count : callable
        Counts what tests of margins take.
    waiting : callable
        Surrounds what may be interrupted.
    """
    if plan.gate is None:
        return None
    evidence = past
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
    past = past_runs(plan, store, runs, this, found)
    verdict = judge_plan(plan, found, past=past, read=lambda each: counts[each.name], count=count, waiting=waiting)
    if verdict is None:
        return None, []
    store.amend(number, {"gate": {rule.name: rule.p_value for rule in verdict.rules}, "verdict": record(verdict)})
    return verdict, list(publish(plan, verdict, datetime.fromtimestamp(this.started).astimezone()))


def past_runs(plan: Plan, store: Store, runs: Sequence[PlanRun], this: PlanRun, found: Table) -> Evidence:
    """Return what earlier runs tell: of each rule its p-values and levels, and what was observed before.

    A level that a run recorded stays. Versions up to 0.2 recorded none: their levels are those of the weights that
    they had. A run that was not judged by the plan's online rule is no part of its sequence.

    Parameters
    ----------
    plan : Plan
        With a gate.
    store : Store
        Open for the plan's driver.
    runs : sequence of PlanRun
        Of the plan, the oldest first.
    this : PlanRun
        The one that is judged.
    found : Table
        By it.
    """
    assert plan.gate is not None
    before = next((run for run in reversed(runs) if run.number < this.number and "gate" in run.details), None)
    if before is None:
        return Evidence(n_runs=1)
    same = {*keys(store.unchanged(before.number))}
    baselines = {t.name: t.baseline for t in plan.test_sets}
    rules = {name_of(rule): rule for rule in plan.gate.rules}
    was = store.results_after(before.number)
    repeats, gone, history, levels, n_runs = {}, {}, {}, {}, 1
    known: dict[tuple[str, Key], int] = {}
    for name, rule in rules.items():
        recorded = _verdict_of(before, name)
        covered = keys(found.take(rows_covered(rule, found, baselines)))
        now = {*covered}
        if lost := [key for key in keys(was.take(rows_covered(rule, was, baselines))) if key not in now]:
            gone[name] = lost
        is_repeated = bool(covered) and same.issuperset(covered) and name in before.details["gate"]
        if is_repeated:
            repeats[name] = recorded.get("repeats") or before.number
        failed = [f for f in recorded.get("findings", ()) if not f["passed"] and tuple(f["key"]) in same]
        known |= {(name, tuple(f["key"])): f.get("since") or before.number for f in failed}
        nights, repeated = _observed(runs, this, name, is_repeated=is_repeated)
        oldest = this.started - DAYS * 86_400
        n_runs = max(n_runs, 1 + sum(run.started >= oldest for run in nights))
        if plan.gate.fdr != "none":
            nights = [run for run in nights if _fdr_of(run, name, plan.gate.fdr) == plan.gate.fdr]
            history[name] = [float(run.details["gate"][name]) for run in nights]
            unrecorded = levels_before(history[name], rule.alpha, plan.gate.fdr)
            if repeated is not None and _fdr_of(repeated, name, plan.gate.fdr) == plan.gate.fdr:
                nights.append(repeated)
            levels[name] = [
                float(_verdict_of(run, name).get("level", level))
                for run, level in zip(nights, unrecorded, strict=False)
            ]
    return Evidence(history=history, levels=levels, repeats=repeats, known=known, gone=gone, n_runs=n_runs)


def earlier(runs: Sequence[PlanRun], this: PlanRun) -> dict[str, list[float]]:
    """Return the p-values of each rule in the runs before this one, oldest first, each observation once."""
    names = dict.fromkeys(name for run in runs if run.number < this.number for name in run.details.get("gate", ()))
    found = {name: [run.details["gate"][name] for run in _observed(runs, this, name)[0]] for name in names}
    return {name: p_values for name, p_values in found.items() if p_values}


def _observed(
    runs: Sequence[PlanRun], this: PlanRun, name: str, *, is_repeated: bool = False
) -> tuple[list[PlanRun], PlanRun | None]:
    """Return the runs in which a rule was judged before, and the one that this run repeats.

    A run on the same outputs as the one before it tells nothing new; the earlier one is left out in its favour, and so
    is the latest where this run repeats it.
    """
    judged: list[PlanRun] = []
    for run in runs:
        if run.number < this.number and name in run.details.get("gate", ()):
            if judged and (_are_alike(judged[-1], run) or _verdict_of(run, name).get("repeats")):
                judged.pop()
            judged.append(run)
    if judged and (is_repeated or _are_alike(judged[-1], this)):
        return judged[:-1], judged[-1]
    return judged, None


def _are_alike(run: PlanRun, other: PlanRun) -> bool:
    return bool(run.details.get("inputs") == other.details.get("inputs"))


def _verdict_of(run: PlanRun, name: str) -> Mapping[str, Any]:
    """Return what a run's record has of a rule."""
    rules = (run.details.get("verdict") or {}).get("rules", ())
    return next((rule for rule in rules if rule["name"] == name), {})


def _fdr_of(run: PlanRun, name: str, unknown: Fdr) -> str:
    """Return the online rule that gave a level; versions up to 0.2 told it in a note."""
    recorded = _verdict_of(run, name)
    if "fdr" in recorded:
        return str(recorded["fdr"])
    if not recorded:
        return unknown
    said = (note.partition(":")[0] for note in recorded["notes"])
    return next((rule for rule in said if rule in {"lord++", "lond"}), "none")


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
