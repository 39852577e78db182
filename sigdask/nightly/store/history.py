"""Records of runs in the store: when and by whom, the progress of each test set, and what goes with its results."""

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

import numpy as np
from sqlalchemy import Connection, text

from sigdask.counts.factors import group_rows, number_rows
from sigdask.errors import DamagedError, InputError
from sigdask.nightly.store.checksums import (
    build_insert,
    build_update,
    change_row,
    compute_row_checksum,
    insert_row,
    is_intact,
    seal_rows,
)
from sigdask.nightly.store.limits import UNREADABLE, expect_readable, is_time, parse_json, unpack_json
from sigdask.report.presentable import Results
from sigdask.results.columns import CodedColumn
from sigdask.results.table import Table
from sigdask.text import to_plain, value_from_json


@dataclass(frozen=True, slots=True)
class Progress:
    """Numbers of comparisons and trials of one test set, in all and counted so far.

    Attributes
    ----------
    test_set : str
        Its name.
    comparisons, reached, finished : int
        Number of comparisons, of those with a first bound on p, and of those with all their trials.
    kept, counted, wanted : int
        Number of trials that the store had when the run began, of those counted since, and of all requested.
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
        Number of the run in this store.
    plan, path : str
        The plan's name and file.
    started, updated, ended : float
        Seconds since 1970; `ended` is None while it runs, or when it was killed.
    state : str
        running, finished, stopped (deadline, signal), failed.
    host, pid
        Host and process id of the driver.
    details : dict
        Versions, settings, digests of the inputs, second looks.
    message : str
        Why it stopped.
    progress : tuple of Progress
        Progress of each test set.
    seconds_left : float or None
        Estimated seconds from `updated` until all is counted; None with a rule to stop early.
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


def begin_run(connection: Connection, plan: str, path: str, details: dict[str, Any], sets: Sequence[Progress]) -> int:
    """Record that a run began; return its number."""
    now = time.time()
    times = {"started": now, "updated": now}
    driver = {"host": socket.gethostname(), "pid": os.getpid()}
    number = insert_row(
        connection, "runs", plan=plan, path=path, **times, state="running", **driver,
        details=pack_details(details), message="",
    )  # fmt: skip
    if rows := _build_progress_rows(number, enumerate(sets)):
        connection.execute(build_insert("progress", rows[0]), rows)
    seal_rows(connection, "runs", "WHERE id = :run", {"run": number})
    return number


def update_run(
    connection: Connection, number: int, sets: Iterable[tuple[int, Progress]], seconds_left: float | None = None
) -> None:
    """Save progress: (position, progress) of the test sets that advanced, and the seconds left."""
    values = {"updated": time.time(), "seconds_left": seconds_left}
    connection.execute(build_update("runs", values, ("id",)), {**values, "id": number})
    changed = ("reached", "finished", "kept", "counted", "wanted", "checksum")
    if rows := _build_progress_rows(number, sets):
        connection.execute(build_update("progress", changed, ("run", "position")), rows)


def _build_progress_rows(number: int, sets: Iterable[tuple[int, Progress]]) -> list[dict[str, Any]]:
    """Return the rows of test sets with their positions, each with its checksum."""
    names = [f.name for f in fields(Progress)]
    rows = [
        {"run": number, "position": position, **{name: getattr(progress, name) for name in names}}
        for position, progress in sets
    ]
    return [row | {"checksum": compute_row_checksum("progress", row)} for row in rows]


def end_run(connection: Connection, number: int, state: str, message: str, details: dict[str, Any]) -> None:
    """Record how a run ended."""
    now = time.time()
    values = {"ended": now, "updated": now, "state": state, "message": message, "details": pack_details(details)}
    change_row(connection, "runs", number, **values)


def amend_run(connection: Connection, number: int, added: dict[str, Any]) -> None:
    """Add details to a run that has ended."""
    stored = connection.execute(text("SELECT details FROM runs WHERE id = :run"), {"run": number}).scalar_one()
    change_row(connection, "runs", number, details=pack_details({**unpack_details(stored), **added}))


def list_runs(connection: Connection, plan: str, limit: int | None = None) -> list[PlanRun]:
    """Return the runs of a plan, latest first."""
    query = text("SELECT * FROM runs WHERE plan = :plan ORDER BY id DESC LIMIT :most")
    result = connection.execute(query, {"plan": plan, "most": limit or 2**31 - 1})
    return [_build_run(connection, row) for row in result.mappings().all()]


def find_run(connection: Connection, plan: str, number: int | None) -> PlanRun | None:
    """Return a run of a plan by its number (None: the latest), None if there is no such run."""
    query = text("SELECT * FROM runs WHERE plan = :plan AND (id = :run OR :run IS NULL) ORDER BY id DESC LIMIT 1")
    row = connection.execute(query, {"plan": plan, "run": number}).mappings().one_or_none()
    return None if row is None else _build_run(connection, row)


def find_previous_run(connection: Connection, run: PlanRun) -> int | None:
    """Return the number of the plan's run before this one, None for the first."""
    query = text("SELECT max(id) FROM runs WHERE plan = :plan AND id < :run")
    return connection.execute(query, {"plan": run.plan, "run": run.number}).scalar_one_or_none()


def _build_run(connection: Connection, row: Any) -> PlanRun:
    if not is_intact("runs", row):
        raise DamagedError([f"runs: run {row['id']}"])
    details = read_details(row)
    result = connection.execute(text("SELECT * FROM progress WHERE run = :run ORDER BY position"), {"run": row["id"]})
    progress_rows = result.mappings().all()
    if not all(is_intact("progress", progress_row) and is_progress(progress_row) for progress_row in progress_rows):
        raise DamagedError([f"progress: how far run {row['id']} came"])
    progress = tuple(Progress(*(progress_row[f.name] for f in fields(Progress))) for progress_row in progress_rows)
    rest = {key: row[key] for key in ("plan", "path", "started", "updated", "ended", "state", "host", "pid", "message")}
    return PlanRun(number=row["id"], details=details, progress=progress, seconds_left=row["seconds_left"], **rest)


def is_progress(row: Any) -> bool:
    """Return whether a row has a test set's name and numbers that can be counted."""
    numbers = [row[f.name] for f in fields(Progress)[1:]]
    return isinstance(row["test_set"], str) and all(type(number) is int and number >= 0 for number in numbers)


DETAILS = ("versions", "settings", "inputs", "second_looks", "frames", "file_states", "verdict", "families")
"""Details of a run that are objects."""


MAX_PLAIN_LENGTH = 2**14
"""Maximum length of the details of a run that are stored as plain JSON. Those of many test sets are compressed."""


def pack_details(details: dict[str, Any]) -> str:
    """Return the details of a run as JSON; long ones are compressed."""
    plain = json.dumps(details)
    if len(plain) <= MAX_PLAIN_LENGTH:
        return plain
    return json.dumps({"packed": base64.b64encode(zlib.compress(plain.encode())).decode()})


def unpack_details(packed: str) -> dict[str, Any]:
    """Return the details of a run from their text in the store."""
    details: dict[str, Any] = parse_json(packed)
    return unpack_json(base64.b64decode(details["packed"])) if "packed" in details else details


def read_details(row: Any) -> dict[str, Any]:
    """Return the details of a run's row; raise DamagedError if they or other values are none that a run has."""
    try:
        details = unpack_details(row["details"])
        settings = details.get("settings")
        is_sound = (
            all(is_time(row[name]) for name in ("started", "updated"))
            and (row["ended"] is None or is_time(row["ended"]))
            and (row["seconds_left"] is None or is_time(abs(row["seconds_left"])))
            and type(row["pid"]) is int
            and all(isinstance(row[name], str) for name in ("plan", "path", "state", "host", "message"))
            and all(isinstance(details.get(name) or {}, dict) for name in DETAILS)
            and (not settings or (0 < settings["alpha"] < 1 and type(settings["seed"]) is int))
        )
    except UNREADABLE as error:
        raise DamagedError([f"runs: run {row['id']} ({error})"]) from None
    if not is_sound:
        raise DamagedError([f"runs: run {row['id']} (values that no run has)"])
    return details


def build_frame(results: Results) -> dict[str, Any]:
    """Return the contents of a test set's results other than the table, such as notes, as JSON values."""
    return {f.name: to_plain(getattr(results, f.name), exact=True) for f in fields(Results) if f.name != "table"}


def apply_frame(values: dict[str, Any], table: Table) -> Results:
    """Return results made of a table and of the stored values that `build_frame` returned."""
    with expect_readable("runs: results of a test set"):
        results: Results = value_from_json(Results, {**values, "table": None})
    return replace(results, table=table)


FAMILY = ("adjust", "members", "family")
"""Inputs of an adjusted p that change with other comparisons of its family."""


def list_families(table: Table) -> dict[str, list[str]]:
    """Return how the p of each metric in the results of a test set were adjusted: values of `FAMILY`."""
    if table.origins is None:
        return {}
    columns = [getattr(table.origins, name) for name in FAMILY]
    numbers = number_rows(table.metric.codes, *(column.codes for column in columns))
    firsts = [rows[0] for rows in group_rows(numbers)]
    return {table.metric[row].name: [column[row] for column in columns] for row in firsts if columns[2][row]}


def apply_families(families: Mapping[str, Mapping[str, Sequence[str]]], table: Table) -> Table:
    """Return results with the families of a run, by test set and metric; unchanged results name those of earlier runs.

    Parameters
    ----------
    families : mapping of str to mapping
        What `list_families` returns for each test set.
    table : Table
        Results of the run.
    """
    if table.origins is None or not families or not len(table):
        return table
    columns = [getattr(table.origins, name) for name in FAMILY]
    numbers = number_rows(table.test_set.codes, table.metric.codes, *(column.codes for column in columns))
    current = []
    for row in (rows[0] for rows in group_rows(numbers)):
        by_metric = families.get(table.test_set[row], {})
        known = tuple(column[row] for column in columns)
        current.append(tuple(by_metric.get(table.metric[row].name, known)) if known[2] else known)
    adjust, members, family = (
        CodedColumn.join([CodedColumn(numbers.astype(np.int32), values)]) for values in zip(*current, strict=True)
    )
    return table.replace(origins=table.origins.with_columns(adjust=adjust, members=members, family=family))


def find_plan(connection: Connection, plan: str | None) -> str:
    """Return the plan's name; if none is given, that of the only plan in the store."""
    query = text("SELECT DISTINCT plan FROM runs ORDER BY plan")
    names = [row[0] for row in connection.execute(query)]
    if plan is None and len(names) == 1:
        return str(names[0])
    if plan is not None and plan in names:
        return plan
    known_plans = ", ".join(names) or "none"
    raise InputError(
        f"several plans are in this store: {known_plans}; name one (--plan), or its plan file" if plan is None and names
        else f"no run of a plan {plan or ''!r} is recorded in this store; recorded: {known_plans}. A run that has just "
        "started is recorded when its test sets are read"
    )  # fmt: skip
