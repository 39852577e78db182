"""Tallies in the database, one row for each comparison, run and round of trials.

A row is the tally of trials `first` to `stop - 1` of its round: it is inserted once, under a unique
key, and lengthened only from exactly where it ends. So no trial can be counted twice, whoever
writes, and the counts of a comparison are always those of the trials 0 to n - 1.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, exc, text

from sigdask.errors import StoreError
from sigdask.randomization.tallies import round_of
from sigdask.store.database import rows_of

AT_ONCE = 5000
"""Keys in one query."""

TAILS = ("greater", "less", "two_sided")

NEARLY = 2
"""Times as many keys as are meant may be read, where that is simpler."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Tallies of some comparisons over one range of trials, within one round.

    Attributes
    ----------
    ids : int64 array, shape (n,)
        Comparisons.
    run, first, stop : int
        Trials `first` to `stop - 1` of a run.
    counts : int64 array, shape (n, 3)
        Exceedances; of a family as a whole (n = 1), shape (1, size).
    whole : bool
        A family's.
    """

    ids: NDArray[np.int64]
    run: int
    first: int
    stop: int
    counts: NDArray[np.int64]
    whole: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """What is kept of some comparisons in one run: trials 0 to n - 1.

    Attributes
    ----------
    n_trials : int64 array, shape (n,)
        How many.
    counts : int64 array, shape (n, 3) or (n, size)
        Their exceedances.
    """

    n_trials: NDArray[np.int64]
    counts: NDArray[np.int64]


def ids_of(connection: Connection, digests: NDArray[np.void], labels: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers of comparisons, entering those that are new."""
    listed = digests.tolist()
    known = _known(connection, listed)
    new = {d: label for d, label in zip(listed, labels, strict=True) if d not in known}
    if new:
        _enter(connection, new)
        known |= _known(connection, list(new))
    return np.fromiter((known[d] for d in listed), np.int64, len(listed))


def _known(connection: Connection, digests: Sequence[bytes]) -> dict[bytes, int]:
    """Return the numbers of the comparisons that are entered, others' as well where most are asked for."""
    [(last,)] = rows_of(connection, "SELECT max(id) FROM comparisons")
    if NEARLY * len(digests) > (last or 0):
        return {bytes(digest): number for digest, number in rows_of(connection, KNOWN)}
    found: dict[bytes, int] = {}
    for some in _chunks(digests):
        if connection.dialect.name == "postgresql":
            rows = rows_of(connection, f"{KNOWN} WHERE digest = ANY(%s::bytea[])", (some,))
        else:
            literals = ",".join([f"x'{digest.hex()}'" for digest in some])
            rows = rows_of(connection, f"{KNOWN} WHERE digest IN ({literals})")
        found.update((bytes(digest), number) for digest, number in rows)
    return found


KNOWN = "SELECT digest, id FROM comparisons"


def _enter(connection: Connection, new: Mapping[bytes, str]) -> None:
    if connection.dialect.name == "postgresql":
        query = (
            "INSERT INTO comparisons (digest, label) SELECT * FROM unnest(%s::bytea[], %s::text[]) "
            "ON CONFLICT (digest) DO NOTHING"
        )
        connection.exec_driver_sql(query, (list(new), list(new.values())))
        return
    query = "INSERT INTO comparisons (digest, label) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING"
    connection.exec_driver_sql(query, list(new.items()))


def read(connection: Connection, ids: NDArray[np.int64], run: int) -> Prefixes:
    """Read what is kept of comparisons of pairs, in the order of `ids`."""
    sums = [f"CAST(sum({tail}) AS BIGINT)" for tail in TAILS]
    some, place = np.unique(ids, return_inverse=True)  # one comparison may stand twice
    rows = _rows(connection, some, run, ("comparison", "max(stop)", *sums), "GROUP BY comparison")
    found = np.zeros((len(some), 4), np.int64)
    found[np.searchsorted(some, rows[:, 0])] = rows[:, 1:]
    return Prefixes(found[place, 0], found[place, 1:])


def read_blocks(
    connection: Connection, ids: NDArray[np.int64], run: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Read what is kept round by round: first trials (n_rounds,), ends (n_rounds, n), counts (n_rounds, n, 3)."""
    some, place = np.unique(ids, return_inverse=True)
    rows = _rows(connection, some, run, ("comparison", "first", "stop", *TAILS))
    starts, number = np.unique(rows[:, 1], return_inverse=True)
    at = np.searchsorted(some, rows[:, 0])
    stops, counts = np.zeros((len(starts), len(some)), np.int64), np.zeros((len(starts), len(some), 3), np.int64)
    stops[number, at], counts[number, at] = rows[:, 2], rows[:, 3:]
    return starts, stops[:, place], counts[:, place]


def _rows(
    connection: Connection, ids: NDArray[np.int64], run: int, what: Sequence[str], more: str = ""
) -> NDArray[np.int64]:
    """Return what is asked of the tallies of comparisons, which are in ascending order, shape (n_rows, n_columns)."""
    found = [np.zeros((0, len(what)), np.int64)]
    for some in _chunks(ids):
        low, high = int(some[0]), int(some[-1])
        where = f"comparison BETWEEN {low} AND {high}"
        if high - low > NEARLY * len(some):
            where = f"comparison IN ({','.join(map(str, some.tolist()))})"
        query = f"SELECT {', '.join(what)} FROM tallies WHERE run = {run} AND {where} {more}"  # noqa: S608  # integers
        rows = rows_of(connection, query)
        values = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, len(what))
        found.append(values[np.isin(values[:, 0], some)])
    return np.concatenate(found)


def read_rounds(connection: Connection, ids: NDArray[np.int64], run: int, most: NDArray[np.int64]) -> Prefixes:
    """Read the whole rounds of comparisons that end at trial `most`, shape (n,), or before."""
    _, stops, counts = read_blocks(connection, ids, run)
    within = (stops > 0) & (stops <= most)
    return Prefixes(np.where(within, stops, 0).max(axis=0, initial=0), (counts * within[..., None]).sum(axis=0))


def read_whole(connection: Connection, number: int, run: int, size: int, most: int) -> Prefixes:
    """Read what is kept of one family, of rounds that end at trial `most` or before."""
    query = text("SELECT stop, counts FROM arrays WHERE comparison = :c AND run = :run AND stop <= :most")
    n_trials, counts = 0, np.zeros(size, np.int64)
    for stop, packed in connection.execute(query, {"c": int(number), "run": run, "most": most}):
        n_trials = max(n_trials, stop)
        counts += _unpacked(packed)
    return Prefixes(np.array([n_trials]), counts[None])


def write(connection: Connection, kept: Sequence[Kept]) -> None:
    """Add tallies, each continuing where its comparison's trials end; all or none (by the caller's transaction).

    Raises
    ------
    StoreError
        Some of these trials are kept already; another driver has counted them.
    """
    try:
        for one in kept:
            start, _ = round_of(one.first)
            if one.whole:
                _write_whole(connection, one, start)
            elif one.first == start:
                _insert(connection, one)
            else:
                _lengthen(connection, one, start)
    except exc.IntegrityError:
        raise _conflict() from None


def _insert(connection: Connection, one: Kept) -> None:
    columns = (one.ids.tolist(), *one.counts[:, :3].T.tolist())
    if connection.dialect.name == "postgresql":
        query = (
            "INSERT INTO tallies SELECT k, %s, %s, %s, g, l, t FROM "
            "unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS new (k, g, l, t)"
        )
        connection.exec_driver_sql(query, (one.run, one.first, one.stop, *columns))
        return
    query = f"INSERT INTO tallies VALUES (?, {one.run}, {one.first}, {one.stop}, ?, ?, ?)"  # noqa: S608  # integers
    connection.exec_driver_sql(query, list(zip(*columns, strict=True)))


def _lengthen(connection: Connection, one: Kept, start: int) -> None:
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    query = (
        f"UPDATE tallies SET stop = {one.stop}, greater = greater + {mark}, less = less + {mark}, "  # noqa: S608  # integers
        f"two_sided = two_sided + {mark} WHERE comparison = {mark} AND run = {one.run} AND first = {start} "
        f"AND stop = {one.first}"
    )
    columns = (*one.counts[:, :3].T.tolist(), one.ids.tolist())
    done = connection.exec_driver_sql(query, list(zip(*columns, strict=True)))
    if done.rowcount != len(one.ids):
        raise _conflict()


def _write_whole(connection: Connection, one: Kept, start: int) -> None:
    key = {"c": int(one.ids[0]), "run": one.run, "start": start, "first": one.first, "stop": one.stop}
    if one.first == start:
        insert = text("INSERT INTO arrays VALUES (:c, :run, :first, :stop, :counts)")
        connection.execute(insert, {**key, "counts": _packed(one.counts[0])})
        return
    where = "WHERE comparison = :c AND run = :run AND first = :start AND stop = :first"
    before = connection.execute(text(f"SELECT counts FROM arrays {where}"), key).scalar_one_or_none()  # noqa: S608
    if before is None:
        raise _conflict()
    counts = _packed(_unpacked(before) + one.counts[0])
    update = text(f"UPDATE arrays SET stop = :stop, counts = :counts {where}")  # noqa: S608
    connection.execute(update, {**key, "counts": counts})


def _packed(counts: NDArray[np.int64]) -> bytes:
    return zlib.compress(np.ascontiguousarray(counts, "<i8").tobytes(), 1)


def _unpacked(packed: bytes) -> NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(packed), "<i8").astype(np.int64)


def _conflict() -> StoreError:
    return StoreError("another driver has counted some of these trials meanwhile; run again to go on from them")


_Items = TypeVar("_Items", bound=Sequence[Any] | NDArray[np.int64])


def _chunks(items: _Items) -> Iterator[_Items]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]  # type: ignore[misc]
