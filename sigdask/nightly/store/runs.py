"""Records of runs in the store: when and by whom, the progress of each test set, and what goes with its results."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from sqlalchemy import Connection, Row

from sigdask.errors import DamagedError, InputError
from sigdask.nightly.store.blobs import seal_json, unseal_json
from sigdask.nightly.store.schema import RUNS

Count = Annotated[int, Field(ge=0)]
Time = Annotated[float, Field(ge=0, le=253_402_300_799)]
"""Seconds since 1970, at most the last second of the year 9999."""


def _check_details(details: dict[str, Any]) -> dict[str, Any]:
    settings = details.get("settings")
    if not all(isinstance(details.get(name) or {}, dict) for name in OBJECTS):
        raise ValueError("details that no run has")
    if settings and not (0 < settings["alpha"] < 1 and type(settings["seed"]) is int):
        raise ValueError("settings that no run has")
    return details


OBJECTS = ("versions", "settings", "inputs", "second_looks", "frames", "verdict")
"""Details of a run that are objects."""


@dataclass(frozen=True, slots=True)
class PlanRun:
    """One run of a plan, as recorded.

    Attributes
    ----------
    number : int
        Number of the run in this store.
    plan, path : str
        The plan's name and file.
    started, updated, ended : float
        Seconds since 1970; `ended` is None while it runs, or when it was killed.
    state : str
        running, finished, stopped (deadline, signal), failed; killed where a status says so.
    host, pid
        Host and process id of the driver.
    details : dict
        Versions, settings, digests of the inputs, second looks.
    message : str
        Why it stopped.
    comparisons : int
        Number of comparisons of all test sets.
    kept, counted, wanted : int
        Number of trials that the store had when the run began, of those counted since, and of all requested, of the
        test sets that were read.
    """

    number: int
    plan: str
    path: str
    started: Time
    updated: Time
    ended: Time | None
    state: str
    host: str
    pid: int
    details: Annotated[dict[str, Any], AfterValidator(_check_details)]
    message: str = ""
    comparisons: Count = 0
    kept: Count = 0
    counted: Count = 0
    wanted: Count = 0

    @property
    def rate(self) -> float:
        """Trials per second of this run."""
        seconds = self.updated - self.started
        return self.counted / seconds if seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all trials are counted, by this run's rate; None if unknown."""
        n_left = self.wanted - self.kept - self.counted
        if self.state == "finished":
            return 0.0
        return n_left / self.rate if self.rate > 0 and n_left > 0 else None  # exact values have no trials


_RUN = TypeAdapter(PlanRun)

CHANGING = ("updated", "counted")
"""Fields that change while a run goes on."""


def begin_run(
    connection: Connection,
    plan: str,
    path: str,
    details: dict[str, Any],
    comparisons: int = 0,
    kept: int = 0,
    wanted: int = 0,
) -> PlanRun:
    """Record that a run began."""
    insert = sa.insert(RUNS).values(plan=plan, record=b"", progress=b"").returning(RUNS.c.id)
    number, now = int(connection.execute(insert).scalar_one()), time.time()
    run = PlanRun(
        number, plan, path, now, now, None, "running", socket.gethostname(), os.getpid(), details,
        comparisons=comparisons, kept=kept, wanted=wanted,
    )  # fmt: skip
    save_run(connection, run)
    return run


def save_run(connection: Connection, run: PlanRun) -> None:
    """Save a run."""
    record = {f.name: getattr(run, f.name) for f in fields(run) if f.name not in CHANGING}
    statement = sa.update(RUNS).where(RUNS.c.id == run.number)
    connection.execute(statement.values(record=seal_json(record, "runs", run.number)))
    save_progress(connection, run)


def save_progress(connection: Connection, run: PlanRun) -> None:
    """Save what changes while a run goes on."""
    sealed = seal_json([time.time(), run.counted], "progress", run.number)
    connection.execute(sa.update(RUNS).where(RUNS.c.id == run.number).values(progress=sealed))


def list_runs(connection: Connection, plan: str, limit: int | None = None) -> list[PlanRun]:
    """Return the runs of a plan, latest first."""
    query = sa.select(RUNS).where(RUNS.c.plan == plan).order_by(RUNS.c.id.desc()).limit(limit)
    return [_read_run(row) for row in connection.execute(query)]


def find_run(connection: Connection, plan: str, number: int | None) -> PlanRun | None:
    """Return a run of a plan by its number (None: the latest), None if there is no such run."""
    query = sa.select(RUNS).where(RUNS.c.plan == plan).order_by(RUNS.c.id.desc()).limit(1)
    row = connection.execute(query if number is None else query.where(RUNS.c.id == number)).one_or_none()
    return None if row is None else _read_run(row)


def find_previous_run(connection: Connection, run: PlanRun) -> int | None:
    """Return the number of the plan's run before this one, None for the first."""
    query = sa.select(sa.func.max(RUNS.c.id)).where(RUNS.c.plan == run.plan, RUNS.c.id < run.number)
    return connection.execute(query).scalar_one_or_none()


def _read_run(row: Row[Any]) -> PlanRun:
    record = unseal_json(row.record, "runs", row.id)
    values = unseal_json(row.progress, "progress", row.id)
    try:
        run = _RUN.validate_python({**record, **dict(zip(CHANGING, values, strict=True))})
    except (ValidationError, ValueError, TypeError, KeyError) as error:
        raise DamagedError([f"runs {row.id}: {' '.join(str(error).split())[:200]}"]) from None
    return replace(run, number=row.id, plan=row.plan)


def find_plan(connection: Connection, plan: str | None) -> str:
    """Return the plan's name; if none is given, that of the only plan in the store."""
    names = [str(name) for name in connection.execute(sa.select(RUNS.c.plan).distinct().order_by("plan")).scalars()]
    if plan is None and len(names) == 1:
        return names[0]
    if plan is not None and plan in names:
        return plan
    known_plans = ", ".join(names) or "none"
    raise InputError(
        f"several plans are in this store: {known_plans}; name one (--plan), or its plan file" if plan is None and names
        else f"no run of a plan {plan or ''!r} is recorded in this store; recorded: {known_plans}. A run that has just "
        "started is recorded when its test sets are read"
    )  # fmt: skip
