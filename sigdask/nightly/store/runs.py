"""Records of runs in the store: when and by whom, the trials counted, and what goes with the results.

Values of a store are compressed, with a checksum at the end, and limited in what they may become. A store may come from
anyone, so no limit depends on what a value says about itself.
"""

from __future__ import annotations

import json
import os
import socket
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

import pyarrow as pa
import sqlalchemy as sa
from pydantic import Field, StrictInt, TypeAdapter, ValidationError
from sqlalchemy import Connection, Row

from sigdask.errors import DamagedError, InputError
from sigdask.nightly.gate.rules import ComparisonKey, RuleVerdict
from sigdask.nightly.store.database import RUNS, is_locked

CHECKSUM_BYTES = 4

LATEST = 2**31 - 1
"""A number above those of all runs."""

SECONDS_PER_RESULT = 5e-5
"""Seconds to judge and store one comparison on a slow machine."""

UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, OSError,
              pa.ArrowException)  # fmt: skip
"""Errors raised by values that sigdask did not write."""


def compute_checksum(content: bytes, *key: Any) -> bytes:
    """Return the CRC of a value and of the key under which it is stored, so that a moved value is noticed too."""
    return zlib.crc32(content, zlib.crc32(repr(key).encode())).to_bytes(CHECKSUM_BYTES, "little")


def seal(content: bytes, *key: Any) -> bytes:
    """Return compressed bytes, with their checksum at the end."""
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed + compute_checksum(packed, *key)


def unseal(sealed: bytes, *key: Any, spare: int, ratio: int) -> bytes:
    """Return the bytes that `seal` packed.

    Parameters
    ----------
    sealed : bytes
        The value as stored.
    *key
        What it is, such as ("runs", 7).
    spare, ratio : int
        It may unpack to `spare` bytes and `ratio` times its length, and is never unpacked further.

    Raises
    ------
    DamagedError
        It differs from what was stored, or unpacks to more.
    """
    name = " ".join(map(str, key))
    packed = sealed[:-CHECKSUM_BYTES] if isinstance(sealed, bytes) else b""
    if packed + compute_checksum(packed, *key) != sealed:
        raise DamagedError(f"{name}: its checksum differs")
    limit = spare + ratio * len(packed)
    try:
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            content = bytes(stream.read(limit + 1))
    except UNREADABLE as error:
        raise DamagedError(f"{name} ({error})") from None
    if len(content) > limit:
        raise DamagedError(f"{name}: it unpacks to more than {limit:,} bytes")
    return content


Count = Annotated[int, Field(ge=0)]
Time = Annotated[float, Field(ge=0, le=253_402_300_799)]
"""Seconds since 1970, at most the last second of the year 9999."""


@dataclass(frozen=True, slots=True)
class RuleRecord(RuleVerdict):
    """The verdict of a rule with its first comparisons, and the keys of further ones that failed."""

    alarms: str = ""
    n_failed: Count = 0
    n_passed: Count = 0
    further_failures: tuple[ComparisonKey, ...] = ()


@dataclass(frozen=True, slots=True)
class GateRecord:
    """The verdict of a gate."""

    passed: bool
    rules: tuple[RuleRecord, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a run."""

    alpha: Annotated[float, Field(gt=0, lt=1)]
    seed: StrictInt


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Details of a run, as far as commands use them."""

    settings: Settings
    versions: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    second_looks: dict[str, Count] = field(default_factory=dict)
    frames: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    changed: Count = 0
    verdict: GateRecord | None = None
    status: Annotated[int, Field(ge=0, le=3)] = 3


_DETAILS = TypeAdapter(Details)


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
    left : float or None
        Seconds of counting that are left, by the run's own estimate; None before it counts.
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
    details: dict[str, Any]
    message: str = ""
    comparisons: Count = 0
    kept: Count = 0
    counted: Count = 0
    wanted: Count = 0
    left: float | None = None

    @property
    def n_changed(self) -> int:
        """Number of results that are new, changed or gone."""
        return int(self.details.get("changed", 0))

    @property
    def has_results(self) -> bool:
        """Whether the run recorded its results."""
        return "frames" in self.details

    @property
    def is_over(self) -> bool:
        """Whether its driver has also judged it and written its output, or gave up."""
        return "status" in self.details or self.state not in {"running", "finished"}

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all trials are counted and results judged; None if unknown."""
        if self.state == "finished":
            return 0.0
        return None if self.left is None else self.left + SECONDS_PER_RESULT * self.comparisons


_RUN = TypeAdapter(PlanRun)


def begin_run(connection: Connection, plan: str, path: str, details: dict[str, Any]) -> PlanRun:
    """Record that a run begins."""
    insert = sa.insert(RUNS).values(plan=plan, record=b"").returning(RUNS.c.id)
    number, now = int(connection.execute(insert).scalar_one()), time.time()
    run = PlanRun(number, plan, path, now, now, None, "running", socket.gethostname(), os.getpid(), details)
    save_run(connection, run)
    return run


def save_run(connection: Connection, run: PlanRun) -> None:
    """Save a run, with the time."""
    record = {f.name: getattr(run, f.name) for f in fields(run)} | {"updated": time.time()}
    sealed = seal(json.dumps(record).encode(), "runs", run.number)
    connection.execute(sa.update(RUNS).where(RUNS.c.id == run.number).values(record=sealed))


def iter_runs(connection: Connection, plan: str, last: int | None = None) -> Iterator[PlanRun]:
    """Yield the runs of a plan up to a last one, latest first; each is read when it is asked for."""
    query = sa.select(RUNS).where(RUNS.c.plan == plan, RUNS.c.id <= (LATEST if last is None else last))
    yield from map(_read_run, connection.execute(query.order_by(RUNS.c.id.desc())))


def find_previous_run(connection: Connection, run: PlanRun) -> PlanRun | None:
    """Return the plan's latest run with results before this one that no deadline or signal stopped, or None.

    Of a run that was stopped, p of most results would differ for want of trials alone.
    """
    earlier_runs = iter_runs(connection, run.plan, run.number - 1)
    return next((earlier for earlier in earlier_runs if earlier.has_results and earlier.state != "stopped"), None)


def read_run(connection: Connection, number: int) -> PlanRun:
    """Return the run with a number."""
    return _read_run(connection.execute(sa.select(RUNS).where(RUNS.c.id == number)).one())


def find_latest(connection: Connection, plan: str) -> int:
    """Return the number of the latest run of those that share a lock: of a plan, or all of a file; 0 for none."""
    is_sharing = sa.true() if connection.dialect.name == "sqlite" else RUNS.c.plan == plan
    return connection.execute(sa.select(sa.func.max(RUNS.c.id)).where(is_sharing)).scalar_one() or 0


def is_running(connection: Connection, run: PlanRun) -> bool:
    """Return whether the driver of a run is at work."""
    return run.number == find_latest(connection, run.plan) and is_locked(connection, run.plan)


def _read_run(row: Row[Any]) -> PlanRun:
    try:
        run = _RUN.validate_json(unseal(row.record, "runs", row.id, spare=2**24, ratio=64))
        _DETAILS.validate_python(run.details)
    except ValidationError as error:
        raise DamagedError(f"runs {row.id}: {' '.join(str(error).split())[:200]}") from None
    return replace(run, number=row.id, plan=row.plan)


def find_plan(connection: Connection, plan: str | None) -> str:
    """Return the plan's name; if none is given, that of the only plan in the store."""
    names = [str(name) for name in connection.execute(sa.select(RUNS.c.plan).distinct().order_by("plan")).scalars()]
    if plan is None and len(names) == 1:
        return names[0]
    if plan in names:
        return str(plan)
    problem = "several plans are in this store" if plan is None else f"no run of a plan {plan!r} is in this store"
    raise InputError(f"{problem}, which has: {', '.join(names)}; name one (--plan), or its plan file")
