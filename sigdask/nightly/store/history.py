"""Runs of plans: when, by whom, how far each test set came, and what stands around what they found."""

from __future__ import annotations

import base64
import json
import os
import socket
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import Connection, text

from sigdask.errors import DamagedError, InputError
from sigdask.nightly.store.checksums import is_whole, seal
from sigdask.report.presentable import Evaluation, Independences, Results
from sigdask.results.messages.notes import earlier
from sigdask.results.table import Table
from sigdask.text import plain, value_from_json


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one test set is; sums are over its comparisons and runs.

    Attributes
    ----------
    test_set : str
        Its name.
    comparisons, reached, finished : int
        Comparisons in all, those with a first bound, those with all their trials.
    kept, counted, wanted : int
        Trials that the store had when the run began, counted since, and to be had in all.
    """

    test_set: str
    comparisons: int
    reached: int
    finished: int
    kept: int
    counted: int
    wanted: int


@dataclass(frozen=True, slots=True)
class PlanRun:
    """One run of a plan, as recorded.

    Attributes
    ----------
    number : int
        Of the run, in this store.
    plan, path : str
        The plan's name and file.
    started, updated, ended : float
        Seconds since 1970; `ended` is None while it runs, or when it was killed.
    state : str
        running, finished, stopped (deadline, signal), failed.
    host, pid
        Of the driver.
    details : dict
        Versions, settings, digests of the inputs, second looks.
    message : str
        Why it stopped.
    progress : tuple of Progress
        Of each test set.
    seconds_left : float or None
        Estimated seconds from `updated` until all is counted; None where a rule stops early.
    """

    number: int
    plan: str
    path: str
    started: float
    updated: float
    ended: float | None
    state: str
    host: str
    pid: int
    details: dict[str, Any]
    message: str
    progress: tuple[Progress, ...] = ()
    seconds_left: float | None = None


def begin(connection: Connection, plan: str, path: str, details: dict[str, Any], sets: Sequence[Progress]) -> int:
    """Record that a run began; return its number."""
    now = time.time()
    insert = text(
        "INSERT INTO runs (plan, path, started, updated, state, host, pid, details, message) "
        "VALUES (:plan, :path, :now, :now, 'running', :host, :pid, :details, '') RETURNING id"
    )
    row = {"plan": plan, "path": path, "now": now, "host": socket.gethostname(), "pid": os.getpid()}
    number = int(connection.execute(insert, {**row, "details": json.dumps(details)}).scalar_one())
    values = [
        {"run": number, "position": k, **{f.name: getattr(p, f.name) for f in fields(p)}} for k, p in enumerate(sets)
    ]
    if values:
        connection.execute(
            text(
                "INSERT INTO progress (run, position, test_set, comparisons, reached, finished, kept, counted, wanted) "
                "VALUES (:run, :position, :test_set, :comparisons, :reached, :finished, :kept, :counted, :wanted)"
            ),
            values,
        )
    seal(connection, "progress", "WHERE run = :run", {"run": number})
    _seal(connection, number)
    return number


def _seal(connection: Connection, number: int) -> None:
    seal(connection, "runs", "WHERE id = :run", {"run": number})


def update(
    connection: Connection, number: int, sets: Iterable[tuple[int, Progress]], seconds_left: float | None = None
) -> None:
    """Keep a run's progress: (position, progress) of the test sets that went on, and the estimated seconds left."""
    own = {"now": time.time(), "run": number, "left": seconds_left}
    connection.execute(text("UPDATE runs SET updated = :now, seconds_left = :left WHERE id = :run"), own)
    change = text(
        "UPDATE progress SET reached = :reached, finished = :finished, kept = :kept, counted = :counted, "
        "wanted = :wanted WHERE run = :run AND position = :position"
    )
    for position, p in sets:
        names = ("reached", "finished", "kept", "counted", "wanted")
        own = {"run": number, "position": position}
        connection.execute(change, {**own, **{name: getattr(p, name) for name in names}})
        seal(connection, "progress", "WHERE run = :run AND position = :position", own)


def end(connection: Connection, number: int, state: str, message: str, details: dict[str, Any]) -> None:
    """Record how a run ended."""
    change = text(
        "UPDATE runs SET ended = :now, updated = :now, state = :state, message = :message, details = :details "
        "WHERE id = :run"
    )
    row = {"now": time.time(), "state": state, "message": message, "details": json.dumps(details), "run": number}
    connection.execute(change, row)
    _seal(connection, number)


def amend(connection: Connection, number: int, more: dict[str, Any]) -> None:
    """Add details to a run that has ended."""
    found = connection.execute(text("SELECT details FROM runs WHERE id = :run"), {"run": number}).scalar_one()
    details = {**json.loads(found), **more}
    change = text("UPDATE runs SET details = :details WHERE id = :run")
    connection.execute(change, {"details": json.dumps(details), "run": number})
    _seal(connection, number)


def runs_of(connection: Connection, plan: str, most: int | None = None) -> list[PlanRun]:
    """Return the runs of a plan, the latest first."""
    query = text("SELECT * FROM runs WHERE plan = :plan ORDER BY id DESC LIMIT :most")
    found = connection.execute(query, {"plan": plan, "most": most or 2**31 - 1})
    return [_run(connection, row) for row in found.mappings().all()]


def run_before(connection: Connection, run: PlanRun) -> int | None:
    """Return the number of the plan's run before this one."""
    query = text("SELECT max(id) FROM runs WHERE plan = :plan AND id < :run")
    return connection.execute(query, {"plan": run.plan, "run": run.number}).scalar_one_or_none()


def _run(connection: Connection, row: Any) -> PlanRun:
    if not is_whole("runs", row):
        raise DamagedError([f"runs: run {row['id']}"])
    found = connection.execute(text("SELECT * FROM progress WHERE run = :run ORDER BY position"), {"run": row["id"]})
    listed = found.mappings().all()
    if not all(is_whole("progress", own) for own in listed):
        raise DamagedError([f"progress: how far run {row['id']} came"])
    progress = tuple(Progress(*(own[f.name] for f in fields(Progress))) for own in listed)
    rest = {key: row[key] for key in ("plan", "path", "started", "updated", "ended", "state", "host", "pid", "message")}
    left = row.get("seconds_left")  # which stores of earlier versions have not
    return PlanRun(number=row["id"], details=json.loads(row["details"]), progress=progress, seconds_left=left, **rest)


def frame(results: Results) -> dict[str, Any]:
    """Return what stands around the results of a test set, as JSON keeps it."""
    return {f.name: plain(getattr(results, f.name), exact=True) for f in fields(Results) if f.name != "table"}


def framed(around: dict[str, Any], found: Table) -> Results:
    """Return results with what stood around them."""
    results: Results = value_from_json(Results, earlier(around) | {"table": None})
    return replace(results, table=found)


def plan_of(connection: Connection, plan: str | None) -> str:
    """Return the plan that is meant; without a name, the only one in the store."""
    query = text("SELECT DISTINCT plan FROM runs ORDER BY plan")
    names = [row[0] for row in connection.execute(query)]
    if plan is None and len(names) == 1:
        return str(names[0])
    if plan is not None and plan in names:
        return plan
    listed = ", ".join(names) or "none"
    raise InputError(
        f"several plans are in this store: {listed}; name one" if plan is None and names
        else f"no run of a plan {plan or ''!r} is recorded in this store; recorded: {listed}"
    )  # fmt: skip


BESIDE: dict[str, type[Evaluation | Independences]] = {"rankings": Evaluation, "independence": Independences}
"""Where what was found beside comparisons stands in the details of a run: evaluations of rankings, tests of labels."""


def recorded(connection: Connection, plan: str, found: Mapping[str, Evaluation | Independences]) -> dict[str, Any]:
    """Return what a run keeps beside comparisons: each packed, or the number of the run that found the same."""
    runs = runs_of(connection, plan)
    return {
        where: kept
        for where, kind in BESIDE.items()
        if (kept := _recorded(runs, where, {name: own for name, own in found.items() if isinstance(own, kind)}))
    }


def _recorded(runs: list[PlanRun], where: str, found: Mapping[str, Any]) -> dict[str, Any]:
    latest = next((run for run in runs if run.details.get(where)), None)
    by_number = _by_number(runs, where)
    kept: dict[str, Any] = {}
    for name, evaluation in found.items():
        own = _packed(evaluation)
        before = latest.details[where].get(name, {}) if latest is not None else {}
        number = before.get("as_in", latest.number if latest is not None else 0)
        same = by_number.get(number, {}).get(name, {}).get("packed") == own
        kept[name] = {"as_in": number} if same else {"packed": own}
    return kept


def evaluations(runs: list[PlanRun], number: int) -> dict[str, Evaluation | Independences]:
    """Return what a run found beside comparisons, of all runs of its plan."""
    return {
        name: own for where, kind in BESIDE.items() for name, own in _evaluations(runs, number, where, kind).items()
    }


def _evaluations(runs: list[PlanRun], number: int, where: str, kind: type[Any]) -> dict[str, Any]:
    by_number = _by_number(runs, where)
    found = {}
    for name, kept in by_number.get(number, {}).items():
        whole = by_number.get(kept.get("as_in", number), {}).get(name, {})
        if "packed" in whole:
            found[name] = value_from_json(kind, json.loads(zlib.decompress(base64.b64decode(whole["packed"]))))
    return found


def _by_number(runs: Sequence[PlanRun], where: str) -> dict[int, dict[str, Any]]:
    return {run.number: run.details.get(where, {}) for run in runs}


def _packed(evaluation: Any) -> str:
    return base64.b64encode(zlib.compress(json.dumps(plain(evaluation, exact=True)).encode())).decode()
