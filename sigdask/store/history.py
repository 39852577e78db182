"""Runs and what they found: progress while they run, results as long as they hold, what changed.

A result is a row from the run that found it (`since`) to the run that found otherwise (`until`), so
a night in which nothing changes adds one row of a run and nothing else.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, text

from sigdask.comparison.found.result import Result
from sigdask.comparison.notes import earlier, texts_alone
from sigdask.comparison.results import Results
from sigdask.comparison.table import Table
from sigdask.errors import InputError
from sigdask.writing import plain

COLUMNS = ("test_set", "unit", "a", "b", "metric", "alternative", "higher_is_better", "score_a", "score_b",
           "difference", "n_items", "n_units", "n_discordant", "method", "n_trials", "n_extreme", "p_value",
           "p_adjusted")  # fmt: skip
"""Fields of a result that are columns; the others are in `detail`, as JSON."""

RESULTS = sa.table("results", *map(sa.column, ("plan", "since", "until", "position", "digest", "complete", "subset",
                                               *COLUMNS, "detail", "id")))  # fmt: skip
REALS = ("score_a", "score_b", "difference", "p_value", "p_adjusted")

IDENTITY = ("test_set", "subset", "unit", "a", "b", "metric", "alternative")
"""What makes a result the successor of another."""


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
class Run:
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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A result with what the store knows of it.

    Attributes
    ----------
    result : Result
        The result.
    digest : str
        Of the comparison's content.
    complete : bool
        Whether all trials asked for were counted.
    """

    result: Result
    digest: str = ""
    complete: bool = True


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
                "INSERT INTO progress VALUES "
                "(:run, :position, :test_set, :comparisons, :reached, :finished, :kept, :counted, :wanted)"
            ),
            values,
        )
    return number


def update(connection: Connection, number: int, sets: Iterable[tuple[int, Progress]]) -> None:
    """Keep a run's progress: (position, progress) of the test sets that went on."""
    connection.execute(text("UPDATE runs SET updated = :now WHERE id = :run"), {"now": time.time(), "run": number})
    change = text(
        "UPDATE progress SET reached = :reached, finished = :finished, kept = :kept, counted = :counted, "
        "wanted = :wanted WHERE run = :run AND position = :position"
    )
    for position, p in sets:
        names = ("reached", "finished", "kept", "counted", "wanted")
        connection.execute(change, {"run": number, "position": position, **{name: getattr(p, name) for name in names}})


def end(connection: Connection, number: int, state: str, message: str, details: dict[str, Any]) -> None:
    """Record how a run ended."""
    change = text(
        "UPDATE runs SET ended = :now, updated = :now, state = :state, message = :message, details = :details "
        "WHERE id = :run"
    )
    row = {"now": time.time(), "state": state, "message": message, "details": json.dumps(details), "run": number}
    connection.execute(change, row)


def amend(connection: Connection, number: int, more: dict[str, Any]) -> None:
    """Add details to a run that has ended."""
    found = connection.execute(text("SELECT details FROM runs WHERE id = :run"), {"run": number}).scalar_one()
    details = {**json.loads(found), **more}
    change = text("UPDATE runs SET details = :details WHERE id = :run")
    connection.execute(change, {"details": json.dumps(details), "run": number})


def runs_of(connection: Connection, plan: str, most: int | None = None) -> list[Run]:
    """Return the runs of a plan, the latest first."""
    query = text("SELECT * FROM runs WHERE plan = :plan ORDER BY id DESC LIMIT :most")
    found = connection.execute(query, {"plan": plan, "most": most or 2**31 - 1})
    return [_run(connection, row) for row in found.mappings().all()]


def run_before(connection: Connection, run: Run) -> int | None:
    """Return the number of the plan's run before this one."""
    query = text("SELECT max(id) FROM runs WHERE plan = :plan AND id < :run")
    return connection.execute(query, {"plan": run.plan, "run": run.number}).scalar_one_or_none()


def _run(connection: Connection, row: Any) -> Run:
    query = text(
        "SELECT test_set, comparisons, reached, finished, kept, counted, wanted FROM progress "
        "WHERE run = :run ORDER BY position"
    )
    progress = tuple(Progress(*p) for p in connection.execute(query, {"run": row["id"]}))
    rest = {key: row[key] for key in ("plan", "path", "started", "updated", "ended", "state", "host", "pid", "message")}
    return Run(number=row["id"], details=json.loads(row["details"]), progress=progress, **rest)


def record(connection: Connection, plan: str, number: int, found: Sequence[Recorded]) -> int:
    """Keep what a run found: rows that hold stay, others end. Return how many are new or otherwise.

    A row of a version whose notes were texts alone holds where these are the same; it is given their kinds.
    """
    before = {_identity(row): row for row in _rows(connection, plan, None)}
    new, ended, retold = [], [], []
    for position, one in enumerate(found):
        row = _row(plan, number, position, one)
        held = before.pop(_identity(row), None)
        if held is not None and all(held[key] == row[key] for key in ("digest", "complete", *COLUMNS)):
            if held["detail"] == row["detail"]:
                continue
            if _is_earlier(held["detail"], row["detail"]):
                retold.append({"id": held["id"], "detail": row["detail"]})
                continue
        if held is not None:
            ended.append(held["id"])
        new.append(row)
    ended += [row["id"] for row in before.values()]
    if ended:
        change = text("UPDATE results SET until = :run WHERE id = :id")
        connection.execute(change, [{"run": number, "id": k} for k in ended])
    if retold:
        connection.execute(text("UPDATE results SET detail = :detail WHERE id = :id"), retold)
    if new:
        names = ", ".join(new[0])
        marks = ", ".join(f":{name}" for name in new[0])
        connection.execute(text(f"INSERT INTO results ({names}) VALUES ({marks})"), new)  # noqa: S608
    return len(new) + len(before)


def _is_earlier(held: str, detail: str) -> bool:
    """Whether one detail is another as versions wrote it whose notes were texts alone."""
    return bool(json.loads(held) == texts_alone(json.loads(detail)))


def results_at(connection: Connection, plan: str, number: int | None) -> list[Recorded]:
    """Return the results that held after a run (None: that hold now), in order."""
    return [_recorded(row) for row in _rows(connection, plan, number)]


def changes(connection: Connection, plan: str, after: int, upto: int) -> list[tuple[Recorded | None, Recorded | None]]:
    """Return (before, now) of each result that is otherwise after run `upto` than after run `after`."""
    lately = sa.or_(RESULTS.c.since > after, RESULTS.c.until > after)
    old = {_identity(row): _recorded(row) for row in _rows(connection, plan, after, lately)}
    new = {_identity(row): _recorded(row) for row in _rows(connection, plan, upto, lately)}
    pairs = [(old.get(key), new.get(key)) for key in dict.fromkeys((*new, *old))]
    return [(before, now) for before, now in pairs if before != now]


def n_changed(connection: Connection, plan: str) -> dict[int, int]:
    """Return how many results each run changed."""
    query = text("SELECT since, count(*) FROM results WHERE plan = :plan GROUP BY since")
    return {int(row[0]): int(row[1]) for row in connection.execute(query, {"plan": plan})}


def frame(results: Results) -> dict[str, Any]:
    """Return what stands around the results of a test set, as JSON keeps it."""
    return {f.name: plain(getattr(results, f.name), exact=True) for f in fields(Results) if f.name != "table"}


def framed(around: dict[str, Any], found: Sequence[Result]) -> Results:
    """Return results with what stood around them."""
    known = _types(Results)
    made = {name: _made(known[name], value) for name, value in earlier(around).items() if name in known}
    return Results(table=Table.of(found, made["alpha"]), **made)


def first_looks(connection: Connection, plan: str) -> dict[str, int]:
    """Return, by digest, the smallest number of trials that a complete result was had with."""
    query = text(
        "SELECT digest, min(n_trials) FROM results WHERE plan = :plan AND complete = 1 AND method <> 'exact' "
        "GROUP BY digest"
    )
    return {digest: int(n) for digest, n in connection.execute(query, {"plan": plan}) if digest}


def _rows(connection: Connection, plan: str, number: int | None, *more: Any) -> list[Any]:
    where = [RESULTS.c.plan == plan, *more]
    if number is None:
        where.append(RESULTS.c.until.is_(None))
    else:
        where += [RESULTS.c.since <= number, sa.or_(RESULTS.c.until.is_(None), RESULTS.c.until > number)]
    query = sa.select(RESULTS).where(*where).order_by(RESULTS.c.position, RESULTS.c.id)
    return list(connection.execute(query).mappings().all())


def _identity(row: Any) -> tuple[Any, ...]:
    return tuple(row[name] for name in IDENTITY)


def _subset(result: Result) -> str | None:
    return None if result.subset is None else json.dumps(result.subset, ensure_ascii=False)


def _row(plan: str, number: int, position: int, one: Recorded) -> dict[str, Any]:
    result = one.result
    row = {name: getattr(result, name) for name in COLUMNS}
    for name in REALS:
        row[name] = plain(row[name])
    row["higher_is_better"] = int(result.higher_is_better)
    detail = {name: plain(getattr(result, name), exact=True) for name in _in_detail()}
    return {
        "plan": plan,
        "since": number,
        "position": position,
        "digest": one.digest,
        "complete": int(one.complete),
        "subset": _subset(result),
        **row,
        "detail": json.dumps(detail, ensure_ascii=False),
    }


@cache
def _in_detail() -> tuple[str, ...]:
    return tuple(f.name for f in fields(Result) if f.name not in {*COLUMNS, "subset"})


def _recorded(row: Any) -> Recorded:
    values = {**json.loads(row["detail"]), **{name: row[name] for name in COLUMNS}}
    for name in ("score_a", "score_b", "difference", "p_value"):
        values[name] = math.nan if values[name] is None else values[name]
    values["higher_is_better"] = bool(row["higher_is_better"])
    values["subset"] = None if row["subset"] is None else json.loads(row["subset"])
    return Recorded(_made(Result, earlier(values)), row["digest"] or "", bool(row["complete"]))


@cache
def _types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _made(kind: Any, value: Any) -> Any:
    """Make a value of an annotated type out of what JSON gave."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if value is None or kind is Any:
        return value
    if origin in {typing.Union, types.UnionType}:
        return _made(next(a for a in arguments if a is not type(None)), value)
    if isinstance(kind, type) and is_dataclass(kind):
        known: dict[str, Any] = _types(kind)
        return kind(**{key: _made(known[key], item) for key, item in value.items() if key in known})
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(_made(k, item) for k, item in zip(kinds, value, strict=True))
    return value


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
