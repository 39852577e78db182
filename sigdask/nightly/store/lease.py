"""One driver at a time: a lease that is renewed while its holder lives, and runs out when it does not.

A driver that lost its lease (it was stopped for a minute, and another took over) cannot commit:
every transaction renews the lease under its own token first.
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
from sigdask.nightly.store.database import Database, clock

log = logging.getLogger("sigdask.nightly.store")

LIFE = 60.0
"""Seconds without a sign of life after which a lease is free."""

BEAT = 10.0


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """Who holds a lease; `space` and `born` tell a process from another that got its number later."""

    host: str
    pid: int
    space: str
    born: str

    @staticmethod
    def this() -> LeaseHolder:
        """Return this process."""
        return LeaseHolder(socket.gethostname(), os.getpid(), _space(), _born(os.getpid()))

    @staticmethod
    def of(kept: str) -> LeaseHolder:
        """Return who is named by what is kept; no one that is known where that cannot be read."""
        try:
            return LeaseHolder(**json.loads(kept))
        except (ValueError, TypeError):
            return LeaseHolder("a host that cannot be told", 0, "", "")

    def is_dead(self) -> bool:
        """Whether it is known to have ended: only where its processes can be seen."""
        if not self.space or (self.host, self.space) != (socket.gethostname(), _space()):
            return False
        return _born(self.pid) != self.born


class Lease:
    """The right to write under one name, held until it is given back or runs out.

    Attributes
    ----------
    commits : int
        Transactions made under it; tells whether a commit whose answer was lost was made.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.database = database
        self.name = name
        self.token = secrets.token_hex(16)
        self.commits = 0
        self._ended = threading.Event()
        self._take()
        self._beating = threading.Thread(target=self._beat, name="sigdask lease", daemon=True)
        self._beating.start()

    def renew(self, connection: Connection, *, commits: int = 0) -> None:
        """Show a sign of life, as part of a transaction; raise where another driver took over."""
        now = clock(connection)
        renewed = connection.execute(
            text("UPDATE leases SET beat = :now, commits = commits + :more WHERE name = :name AND token = :token"),
            {"now": now, "more": commits, "name": self.name, "token": self.token},
        )
        if renewed.rowcount != 1:
            raise StoreError(
                f"store {self.database.where}: this driver gave no sign of life for {LIFE:.0f} s, another took over; "
                "its counts are the ones that stay"
            )

    def commits_made(self) -> int:
        """Return the number of transactions that the database knows of."""
        with self.database.transaction() as connection:
            found = connection.execute(
                text("SELECT commits FROM leases WHERE name = :name AND token = :token"),
                {"name": self.name, "token": self.token},
            ).scalar_one_or_none()
        return -1 if found is None else int(found)

    def give_back(self) -> None:
        """End it; a database that cannot be reached lets it run out."""
        self._ended.set()
        self._beating.join(BEAT)
        with suppress(SigdaskError), self.database.transaction() as connection:
            connection.execute(
                text("DELETE FROM leases WHERE name = :name AND token = :token"),
                {"name": self.name, "token": self.token},
            )

    def _what(self) -> str:
        return f"plan {self.name!r} in store {self.database.where}" if self.name else f"store {self.database.where}"

    def _take(self) -> None:
        """Take it, or raise; a holder whose clock is far ahead is watched for a while: one that lives beats."""
        ahead = self._taken(None)
        if ahead is not None:
            log.info("%s: its last sign of life is from the future; watching for another", self._what())
            time.sleep(2 * BEAT)
            self._taken(ahead)

    def _taken(self, watched: float | None) -> float | None:
        """Return a beat too far ahead to be judged by, where it is not the one that was `watched`; else it is taken."""
        with self.database.writing() as connection:
            now = clock(connection)
            row = connection.execute(
                text("SELECT holder, since, beat FROM leases WHERE name = :name"), {"name": self.name}
            ).one_or_none()
            if row is not None:
                holder, silent = LeaseHolder.of(row.holder), now - row.beat
                if silent < LIFE and row.beat != watched and not holder.is_dead():
                    if silent > -LIFE or watched is not None:
                        raise _held(self._what(), holder, row.since, max(silent, 0.0))
                    return float(row.beat)
                connection.execute(text("DELETE FROM leases WHERE name = :name"), {"name": self.name})
            mine = {
                "name": self.name,
                "token": self.token,
                "holder": json.dumps(asdict(LeaseHolder.this())),
                "now": now,
            }
            connection.execute(text("INSERT INTO leases VALUES (:name, :token, :holder, :now, :now, 0)"), mine)
        return None

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            with suppress(SigdaskError), self.database.transaction() as connection:
                self.renew(connection)


def sign_of_life(connection: Connection, names: Sequence[str], host: str, pid: int) -> bool:
    """Say whether a driver is at work under one of some names: this process on this host."""
    now = clock(connection)
    for name in names:
        query = text("SELECT holder, beat FROM leases WHERE name = :name")
        row = connection.execute(query, {"name": name}).one_or_none()
        if row is None or abs(now - row.beat) >= LIFE:
            continue
        holder = LeaseHolder.of(row.holder)
        if (holder.host, holder.pid) == (host, pid) and not holder.is_dead():
            return True
    return False


def _held(what: str, holder: LeaseHolder, since: float, silent: float) -> HeldError:
    when = f"{datetime.fromtimestamp(since).astimezone():%Y-%m-%d %H:%M:%S}"
    return HeldError(
        f"{what} is being run by process {holder.pid} on {holder.host} since {when} (last sign of life "
        f"{silent:.0f} s ago); wait for it, or stop it; if it is dead, run again in {max(LIFE - silent, 1):.0f} s"
    )


def _born(pid: int) -> str:
    """Return when a process started, empty where there is none (or it cannot be seen); what only waits is none."""
    try:
        state, *words = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
        return "" if state in "ZX" else words[18]
    except (OSError, ValueError, IndexError):
        return ""


@cache
def _space() -> str:
    """Return what tells this machine's numbers of processes from those of a container or another boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
