"""One driver at a time: a lease that is renewed while its holder lives, and expires otherwise.

If a driver was stopped for a minute and another one took over, the first has lost its lease and cannot commit: every
transaction first renews the lease under its own token.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text

from sigdask.errors import HeldError, SigdaskError, StoreError
from sigdask.nightly.store.database import CONNECT_SECONDS, Database, read_clock
from sigdask.nightly.store.limits import is_time

log = logging.getLogger("sigdask.nightly.store")

LEASE_SECONDS = 60.0
"""Seconds without renewal after which a lease is free."""

BEAT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """The process that holds a lease; `space` and `born` distinguish it from others with the same process number."""

    host: str
    pid: int
    space: str
    born: str

    @staticmethod
    def from_this_process() -> LeaseHolder:
        """Describe the running process."""
        return LeaseHolder(socket.gethostname(), os.getpid(), _get_process_space(), _get_start_time(os.getpid()))

    @staticmethod
    def parse(stored: str) -> LeaseHolder:
        """Read a stored holder; one that cannot be read becomes an unknown process."""
        try:
            return LeaseHolder(**json.loads(stored))
        except (ValueError, TypeError, RecursionError):
            return LeaseHolder("an unknown host", 0, "", "")

    def is_dead(self) -> bool:
        """Return whether the holder's process is known to have ended; false if this machine cannot tell."""
        if not self.space or (self.host, self.space) != (socket.gethostname(), _get_process_space()):
            return False
        return _get_start_time(self.pid) != self.born


class Lease:
    """The right to write under one name, held until it is released or expires.

    Attributes
    ----------
    commits : int
        Number of transactions under this lease. It shows whether a commit succeeded whose answer was lost.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.database = database
        self.name = name
        self.token = secrets.token_hex(16)
        self._key = {"name": name, "token": self.token}
        self.commits = 0
        self._ended = threading.Event()
        last_beat = self._try_to_acquire(None)
        if last_beat is not None:  # clocks cannot tell whether the holder lives
            log.info(
                ("%s: its run gave no sign of life for long, or clocks differ; waiting a moment to see if it runs"),
                self._describe(),
            )
            time.sleep(2 * BEAT_SECONDS)
            self._try_to_acquire(last_beat)
        self._beating = threading.Thread(target=self._keep_alive, name="sigdask lease", daemon=True)
        self._beating.start()

    def renew(self, connection: Connection, *, commits: int = 0) -> None:
        """Renew the lease within a transaction; raise if another driver took over."""
        now = read_clock(connection)
        renewed = connection.execute(
            text("UPDATE leases SET beat = :now, commits = commits + :more WHERE name = :name AND token = :token"),
            {"now": now, "more": commits, **self._key},
        )
        if renewed.rowcount != 1:
            raise StoreError(
                f"store {self.database.where}: this run gave no sign of life for {LEASE_SECONDS:.0f} s, "
                "so another run took over the store; the counts of the other run are stored"
            )

    def count_commits(self) -> int:
        """Return the number of commits that the database has recorded."""
        with self.database.transaction() as connection:
            query = text("SELECT commits FROM leases WHERE name = :name AND token = :token")
            n_commits = connection.execute(query, self._key).scalar_one_or_none()
        return -1 if n_commits is None else int(n_commits)

    def release(self) -> None:
        """Give up the lease; if the database cannot be reached, the lease expires later."""
        self._ended.set()
        self._beating.join(CONNECT_SECONDS)  # otherwise a connection in use would outlive `Database.close`
        with suppress(SigdaskError), self.database.transaction() as connection:
            connection.execute(text("DELETE FROM leases WHERE name = :name AND token = :token"), self._key)

    def _describe(self) -> str:
        return f"plan {self.name!r} in store {self.database.where}" if self.name else f"store {self.database.where}"

    def _try_to_acquire(self, watched: float | None) -> float | None:
        """Acquire the lease or raise; return the last renewal if it is old, or in the future after a clock change."""
        with self.database.write_transaction() as connection:
            now = read_clock(connection)
            row = connection.execute(
                text("SELECT holder, since, beat FROM leases WHERE name = :name"), {"name": self.name}
            ).one_or_none()
            if row is not None:
                holder, is_lease = LeaseHolder.parse(row.holder), is_time(row.beat) and is_time(row.since)
                if is_lease and row.beat != watched and not holder.is_dead():
                    silent = now - row.beat if watched is None else 0.0
                    if abs(silent) < LEASE_SECONDS:
                        raise _build_lease_error(self._describe(), holder, row.since, max(silent, 0.0))
                    return float(row.beat)
                connection.execute(text("DELETE FROM leases WHERE name = :name"), {"name": self.name})
            values = {**self._key, "holder": json.dumps(asdict(LeaseHolder.from_this_process())), "now": now}
            connection.execute(text("INSERT INTO leases VALUES (:name, :token, :holder, :now, :now, 0)"), values)
        return None

    def _keep_alive(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            with suppress(SigdaskError), self.database.transaction() as connection:
                self.renew(connection)


def has_sign_of_life(connection: Connection, names: Sequence[str], host: str, pid: int) -> bool:
    """Return whether a process of a host holds a current lease under one of some names."""
    now = read_clock(connection)
    for name in names:
        query = text("SELECT holder, beat FROM leases WHERE name = :name")
        row = connection.execute(query, {"name": name}).one_or_none()
        if row is None or abs(now - row.beat) >= LEASE_SECONDS:
            continue
        holder = LeaseHolder.parse(row.holder)
        if (holder.host, holder.pid) == (host, pid) and not holder.is_dead():
            return True
    return False


def _build_lease_error(description: str, holder: LeaseHolder, since: float, silent: float) -> HeldError:
    start = f"{datetime.fromtimestamp(since).astimezone():%Y-%m-%d %H:%M:%S}"
    return HeldError(
        f"{description} is being run by process {holder.pid} on {holder.host} since {start} (last sign of life "
        f"{silent:.0f} s ago). Wait for it, or stop it. If it is dead, run again in "
        f"{max(LEASE_SECONDS - silent, 1):.0f} s"
    )


def _get_start_time(pid: int) -> str:
    """Return when a process started, as text; empty if it does not run or cannot be seen."""
    try:
        state, *words = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
        return "" if state in "ZX" else words[18]
    except (OSError, ValueError, IndexError):
        return ""


@cache
def _get_process_space() -> str:
    """Return text that identifies this boot and container, within which process numbers are unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
