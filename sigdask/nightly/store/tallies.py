"""Tallies in the database, one row for each comparison, run and round of trials.

A row is the tally of trials `first` to `stop - 1` of its round, from the round's start: what was counted of the same
trials is the same whoever counted it, so that of two rows the one that goes further takes the other's place. No trial
can be counted twice, and drivers that share comparisons share their counts. Each row has a checksum, and is looked at
whenever it is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from sigdask.errors import DamagedError
from sigdask.nightly.store.checksums import Keys, are_possible, is_whole, of_row, of_tallies
from sigdask.nightly.store.checksums import rows_of as sealed_rows_of
from sigdask.nightly.store.database import rows_of
from sigdask.randomization.tallies import round_bounds

AT_ONCE = 5000
"""Keys in one query."""

Integers = NDArray[np.int64]

TAILS = ("greater", "less", "two_sided")

COLUMNS = ("comparison", "first", "stop", *TAILS, "checksum")

NEARLY = 2
"""Times as many keys as are meant may be read, where that is simpler."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredTallies:
    """Tallies of some comparisons over one round of trials, from its start.

    Attributes
    ----------
    ids : int64 array, shape (n,)
        Comparisons.
    run, first, stop : int
        Trials `first` to `stop - 1` of a run; the first is that of its round.
    counts : int64 array, shape (n, 3)
        Exceedances; of a family as a whole (n = 1), shape (1, size).
    whole : bool
        A family's.
    """

    ids: Integers
    run: int
    first: int
    stop: int
    counts: Integers
    whole: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StoredPrefixes:
    """What is kept of some comparisons in one run: trials 0 to n - 1.

    Attributes
    ----------
    n_trials : int64 array, shape (n,)
        How many.
    counts : int64 array, shape (n, 3) or (n, size)
        Their exceedances.
    before : int64 array like `counts`
        Those of the rounds before the last.
    gap : int64 array, shape (n,)
        The first trial of those that are kept beyond trials which are not; 0 where there is no such gap.
    """

    n_trials: Integers
    counts: Integers
    before: Integers
    gap: Integers


@dataclass(frozen=True, slots=True, eq=False)
class TallyRows:
    """Rows of some comparisons in one run, in the order of comparisons and trials: arrays of shape (n_rows,).

    Attributes
    ----------
    place : int64
        The comparison, by its place among those asked for.
    first, stop : int64
        Its trials.
    counts : int64, shape (n_rows, ...)
        Their exceedances.
    follows : bool
        Whether the trials before are all kept too.
    """

    place: Integers
    first: Integers
    stop: Integers
    counts: Integers
    follows: NDArray[np.bool_]

    @staticmethod
    def of(place: Integers, first: Integers, stop: Integers, counts: Integers) -> TallyRows:
        """Put rows in order, and see which follow on each other."""
        order = np.lexsort((first, place))
        place, first, stop, counts = place[order], first[order], stop[order], counts[order]
        is_new = np.diff(place, prepend=-1) != 0
        before = np.where(is_new, 0, np.roll(stop, 1))
        n_gaps = np.cumsum(first != before)
        starts = np.flatnonzero(is_new)
        at_start = n_gaps[starts] - (first != before)[starts]
        return TallyRows(place, first, stop, counts, n_gaps == np.repeat(at_start, np.diff(starts, append=len(place))))

    def prefixes(self, n: int) -> StoredPrefixes:
        """Return what they come to for n comparisons."""
        n_trials, gap = np.zeros(n, np.int64), np.zeros(n, np.int64)
        counts = np.zeros((n, *self.counts.shape[1:]), np.int64)
        before = counts.copy()
        starts = np.flatnonzero(np.diff(self.place, prepend=-1))
        if len(starts):
            some, follows = self.place[starts], self.follows.reshape(-1, *[1] * (self.counts.ndim - 1))
            n_trials[some] = np.maximum.reduceat(self.stop * self.follows, starts)
            counts[some] = np.add.reduceat(self.counts * follows, starts)
            is_before = follows & (self.stop < n_trials[self.place]).reshape(follows.shape)
            before[some] = np.add.reduceat(self.counts * is_before, starts)
            after = np.where(self.follows, np.iinfo(np.int64).max, self.first)
            gap[some] = np.minimum.reduceat(after, starts)
            gap[gap == np.iinfo(np.int64).max] = 0
        return StoredPrefixes(n_trials, counts, before, gap)

    def only(self, which: NDArray[np.bool_]) -> TallyRows:
        """Return those that are marked."""
        return TallyRows(
            self.place[which], self.first[which], self.stop[which], self.counts[which], self.follows[which]
        )


def ids_of(connection: Connection, digests: NDArray[np.void], labels: Sequence[str]) -> Integers:
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


def read(connection: Connection, ids: Integers, keys: Keys, run: int) -> StoredPrefixes:
    """Read what is kept of comparisons of pairs, in the order of `ids`; `keys` are those of their checksums.

    Raises
    ------
    DamagedError
        A row is not what was kept.
    """
    some, first, place = np.unique(ids, return_index=True, return_inverse=True)  # one comparison may stand twice
    found = _rows(connection, some, keys[first], run).prefixes(len(some))
    return StoredPrefixes(found.n_trials[place], found.counts[place], found.before[place], found.gap[place])


def read_blocks(connection: Connection, ids: Integers, keys: Keys, run: int) -> tuple[Integers, Integers, Integers]:
    """Read what is kept round by round: first trials (n_rounds,), ends (n_rounds, n), counts (n_rounds, n, 3)."""
    some, first, place = np.unique(ids, return_index=True, return_inverse=True)
    rows = _rows(connection, some, keys[first], run)
    rows = rows.only(rows.follows)
    starts, number = np.unique(rows.first, return_inverse=True)
    stops, counts = np.zeros((len(starts), len(some)), np.int64), np.zeros((len(starts), len(some), 3), np.int64)
    stops[number, rows.place], counts[number, rows.place] = rows.stop, rows.counts
    return starts, stops[:, place], counts[:, place]


def _rows(connection: Connection, ids: Integers, keys: Keys, run: int) -> TallyRows:
    """Return the tallies of comparisons, which are in ascending order."""
    parts = [np.zeros((0, len(COLUMNS)), np.int64)]
    for some in _chunks(ids):
        low, high = int(some[0]), int(some[-1])
        where = f"comparison BETWEEN {low} AND {high}"
        if high - low > NEARLY * len(some):
            where = f"comparison IN ({','.join(map(str, some.tolist()))})"
        query = f"SELECT {', '.join(COLUMNS)} FROM tallies WHERE run = {run} AND {where}"  # noqa: S608  # integers
        parts.append(_integers(rows_of(connection, query)))
    values = np.concatenate(parts)
    values = values[np.isin(values[:, 0], ids)]
    place = np.searchsorted(ids, values[:, 0])
    sound = are_whole(keys[place], np.full(len(values), run), values[:, 1:])
    if not sound.all():
        raise DamagedError([told(number, run, first, stop) for number, first, stop in values[~sound, :3].tolist()])
    return TallyRows.of(place, values[:, 1], values[:, 2], values[:, 3:6])


def _integers(rows: Sequence[tuple[Any, ...]]) -> Integers:
    """Return rows as an array; what is no number in them is -1, which none of them holds."""
    try:
        values = np.fromiter(chain.from_iterable(rows), np.int64)
    except (TypeError, ValueError):
        plain = (value if type(value) is int else -1 for value in chain.from_iterable(rows))
        values = np.fromiter(plain, np.int64)
    return values.reshape(-1, len(COLUMNS))


def are_whole(keys: Keys, run: Integers, values: Integers) -> NDArray[np.bool_]:
    """Say of rows, `COLUMNS` without their comparisons, whether they are what was kept, and can have been counted."""
    first, stop, counts, checksum = values[:, 0], values[:, 1], values[:, 2:5], values[:, 5]
    start, end = round_bounds(first)
    is_round = (first == start) & (first < stop) & (stop <= end)
    return np.asarray(
        is_round & are_possible(first, stop, counts) & (of_tallies(keys, run, first, stop, counts) == checksum)
    )


def told(comparison: int, run: int, first: int, stop: int, table: str = "tallies") -> str:
    """Return what a row of tallies is called."""
    return f"{table}: comparison {comparison}, run {run}, trials {first:,} to {stop - 1:,}"


def read_rounds(connection: Connection, ids: Integers, keys: Keys, run: int, most: Integers) -> StoredPrefixes:
    """Read the whole rounds of comparisons that end at trial `most`, shape (n,), or before."""
    _, stops, counts = read_blocks(connection, ids, keys, run)
    within = (stops > 0) & (stops <= most)
    n_trials, summed = np.where(within, stops, 0).max(axis=0, initial=0), (counts * within[..., None]).sum(axis=0)
    return StoredPrefixes(n_trials, summed, summed, np.zeros(len(ids), np.int64))


def read_whole(connection: Connection, sizes: Mapping[int, int], run: int, most: int) -> dict[int, StoredPrefixes]:
    """Read what is kept of what is counted as a whole, by its number: so many counts, of rounds up to trial `most`."""
    rows: dict[int, list[Mapping[str, Any]]] = {number: [] for number in sizes}
    for some in _chunks(list(sizes)):
        where = f"WHERE run = :run AND comparison IN ({','.join(map(str, some))})"
        for row in sealed_rows_of(connection, "arrays", where, {"run": run}):
            rows[row["comparison"]].append(row)
    faults = [
        told(number, run, row["first"], row["stop"], "arrays")
        for number, own in rows.items()
        for row in own
        if not is_sound(row, sizes[number])
    ]
    if faults:
        raise DamagedError(faults)
    return {number: _prefix_of(own, sizes[number], most) for number, own in rows.items()}


def _prefix_of(rows: Sequence[Mapping[str, Any]], size: int, most: int) -> StoredPrefixes:
    """Return what the rows of one family come to, of rounds that end at trial `most` or before."""
    first, stop = (np.array([row[name] for row in rows], np.int64) for name in ("first", "stop"))
    counts = np.array([unpacked(row["counts"]) for row in rows], np.int64).reshape(-1, size)
    if len(rows) == 1 and first[0] == 0 and stop[0] <= most:
        return StoredPrefixes(stop, counts, np.zeros_like(counts), np.zeros(1, np.int64))
    found = TallyRows.of(np.zeros(len(rows), np.int64), first, stop, counts)
    return found.only(found.stop <= most).prefixes(1)


def is_sound(row: Mapping[str, Any], size: int | None = None) -> bool:
    """Say whether a row of a family is what was kept, of some number of counts, and can have been counted."""
    if not is_whole("arrays", row):
        return False
    try:
        counts = unpacked(row["counts"])
    except (zlib.error, ValueError):
        return False
    return bool((counts >= 0).all() and (counts <= row["stop"] - row["first"]).all() and size in {None, len(counts)})


def write(connection: Connection, kept: Sequence[StoredTallies], keys: Sequence[Keys]) -> None:
    """Keep tallies, each in place of what is kept of the first of its trials; `keys` are those of their checksums."""
    for one, own in zip(kept, keys, strict=True):
        if one.whole:
            _write_whole(connection, one)
        else:
            _write(connection, one, own)


INTO = {
    "sqlite": """
INSERT INTO tallies (comparison, run, first, stop, greater, less, two_sided, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (comparison, run, first) DO UPDATE SET stop = excluded.stop, greater = excluded.greater,
less = excluded.less, two_sided = excluded.two_sided, checksum = excluded.checksum WHERE excluded.stop > tallies.stop
""",
    "postgresql": """
INSERT INTO tallies (comparison, run, first, stop, greater, less, two_sided, checksum)
SELECT k, %s, %s, %s, g, l, t, c FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
AS new (k, g, l, t, c)
ON CONFLICT (comparison, run, first) DO UPDATE SET stop = excluded.stop, greater = excluded.greater,
less = excluded.less, two_sided = excluded.two_sided, checksum = excluded.checksum WHERE excluded.stop > tallies.stop
""",
}
"""Of two rows the one that goes further stays."""

INTO_ARRAYS = """
INSERT INTO arrays (comparison, run, first, stop, counts, checksum) VALUES (:c, :run, :first, :stop, :counts, :made)
ON CONFLICT (comparison, run, first) DO UPDATE SET stop = excluded.stop, counts = excluded.counts,
checksum = excluded.checksum WHERE excluded.stop > arrays.stop
"""


def _write(connection: Connection, one: StoredTallies, keys: Keys) -> None:
    same = one.run, one.first, one.stop
    run, first, stop = (np.full(len(keys), value) for value in same)
    checksums = of_tallies(keys, run, first, stop, one.counts[:, :3])
    ids, counts, query = one.ids.tolist(), one.counts[:, :3].T.tolist(), INTO[connection.dialect.name]
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(query, (*same, ids, *counts, checksums.tolist()))
    else:
        columns = ids, *map(repeat, same), *counts, checksums.tolist()
        connection.exec_driver_sql(query, list(zip(*columns, strict=False)))


def _write_whole(connection: Connection, one: StoredTallies) -> None:
    number, counts = int(one.ids[0]), _packed(one.counts[0])
    query = text("SELECT digest FROM comparisons WHERE id = :c")
    digest = connection.execute(query, {"c": number}).scalar_one()
    row = {"c": number, "run": one.run, "first": one.first, "stop": one.stop, "counts": counts}
    connection.execute(text(INTO_ARRAYS), {**row, "made": of_row((*row.values(), digest))})


def _packed(counts: Integers) -> bytes:
    return zlib.compress(np.ascontiguousarray(counts, "<i8").tobytes(), 1)


def unpacked(packed: bytes) -> Integers:
    """Return the counts of a family."""
    return np.frombuffer(zlib.decompress(packed), "<i8").astype(np.int64)


_Items = TypeVar("_Items", bound=Sequence[Any] | NDArray[np.int64])


def _chunks(items: _Items) -> Iterator[_Items]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]  # type: ignore[misc]
