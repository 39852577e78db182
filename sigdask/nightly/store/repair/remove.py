"""Taking damaged rows out of a store, with what is nothing without them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, text

from sigdask.nightly.store.checksums import SEALED, seal
from sigdask.nightly.store.repair.faults import Fault

KEYS = {
    **{table: sealed.key for table, sealed in SEALED.items()},
    "tallies": ("comparison", "run", "first"),
    "extracted": ("digest",),
    "leases": ("name",),
}

MENDED = "its record was damaged, and is told as far as it could be read"


def take_out(connection: Connection, faults: Iterable[Fault]) -> None:
    """Remove damaged rows: they are counted, found or made again."""
    for fault in faults:
        if not fault.key:
            continue
        if fault.table == "runs":
            _mend_run(connection, int(fault.key[0]))
        elif fault.table in {"found", "ended"}:  # without what ended them, rows would hold again
            for table, column in (("ended", "block"), ("found", "id")):
                _remove(connection, table, (column,), fault.key[:1])
        else:
            _remove(connection, fault.table, KEYS[fault.table], fault.key)


def _remove(connection: Connection, table: str, names: tuple[str, ...], key: tuple[Any, ...]) -> None:
    where = " AND ".join(f"{name} = :{name}" for name in names)
    connection.execute(text(f"DELETE FROM {table} WHERE {where}"), dict(zip(names, key, strict=True)))  # noqa: S608


def _mend_run(connection: Connection, number: int) -> None:
    """Keep what can be read of a run, which others refer to, and say that it was damaged."""
    row = connection.execute(text("SELECT * FROM runs WHERE id = :id"), {"id": number}).mappings().one()
    plain = {name: row[name] if isinstance(row[name], str) else "" for name in ("plan", "path", "host")}
    times = {name: row[name] if isinstance(row[name], float) else 0.0 for name in ("started", "updated", "ended")}
    pid = row["pid"] if type(row["pid"]) is int else 0
    details = row["details"] if _is_object(row["details"]) else "{}"
    change = text(
        "UPDATE runs SET plan = :plan, path = :path, host = :host, started = :started, updated = :updated, "
        "ended = :ended, pid = :pid, details = :details, state = 'damaged', message = :message WHERE id = :id"
    )
    values = {**plain, **times, "pid": pid, "details": details, "message": MENDED, "id": number}
    connection.execute(change, values)
    seal(connection, "runs", "WHERE id = :id", {"id": number})


def _is_object(details: Any) -> bool:
    try:
        return isinstance(json.loads(details), dict)
    except (ValueError, TypeError):
        return False
