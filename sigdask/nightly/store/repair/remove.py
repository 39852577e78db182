"""Removal of damaged rows from a store, with the rows that depend on them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, text

from sigdask.nightly.store.checksums import SEALED, seal_rows
from sigdask.nightly.store.repair.faults import Fault

KEYS = {
    **{table: sealed.key for table, sealed in SEALED.items()},
    "tallies": ("comparison", "run", "first"),
    "extracted": ("digest",),
    "leases": ("name",),
}

DAMAGE_MESSAGE = "its record was damaged, and is told as far as it could be read"


def remove_rows(connection: Connection, faults: Iterable[Fault]) -> None:
    """Delete damaged rows; later runs count or write them again."""
    for fault in faults:
        if not fault.key:
            continue
        if fault.table == "runs":
            _repair_run(connection, int(fault.key[0]))
        elif fault.table in {"found", "ended"}:  # without what ended them, rows would hold again
            for table, column in (("ended", "block"), ("found", "id")):
                _delete_row(connection, table, (column,), fault.key[:1])
        else:
            _delete_row(connection, fault.table, KEYS[fault.table], fault.key)


def _delete_row(connection: Connection, table: str, names: tuple[str, ...], key: tuple[Any, ...]) -> None:
    where = " AND ".join(f"{name} = :{name}" for name in names)
    connection.execute(text(f"DELETE FROM {table} WHERE {where}"), dict(zip(names, key, strict=True)))  # noqa: S608


def _repair_run(connection: Connection, number: int) -> None:
    """Replace what cannot be read of a run's row, and mark the run as damaged; other rows refer to it."""
    row = connection.execute(text("SELECT * FROM runs WHERE id = :id"), {"id": number}).mappings().one()
    plain = {name: row[name] if isinstance(row[name], str) else "" for name in ("plan", "path", "host")}
    times = {name: row[name] if isinstance(row[name], float) else 0.0 for name in ("started", "updated", "ended")}
    pid = row["pid"] if type(row["pid"]) is int else 0
    details = row["details"] if _is_json_object(row["details"]) else "{}"
    change = text(
        "UPDATE runs SET plan = :plan, path = :path, host = :host, started = :started, updated = :updated, "
        "ended = :ended, pid = :pid, details = :details, state = 'damaged', message = :message WHERE id = :id"
    )
    values = {**plain, **times, "pid": pid, "details": details, "message": DAMAGE_MESSAGE, "id": number}
    connection.execute(change, values)
    seal_rows(connection, "runs", "WHERE id = :id", {"id": number})


def _is_json_object(details: Any) -> bool:
    try:
        return isinstance(json.loads(details), dict)
    except (ValueError, TypeError):
        return False
