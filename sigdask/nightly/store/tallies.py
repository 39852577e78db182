"""Tallies in the database, one row for each comparison, run and round of trials.

A row is the tally of trials `first` to `stop - 1` of its round, counted from the round's start. The counts of the same
trials are the same whoever counts them, so of two rows the longer one replaces the other. No trial can be counted
twice, and drivers that share comparisons share their counts. The checksum of a row is checked whenever it is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, text

from sigdask.errors import DamagedError
from sigdask.nightly.store.checksums import Keys, are_possible, compute_checksum, compute_tally_checksums, is_intact
from sigdask.nightly.store.checksums import iter_sealed_rows as sealed_rows_of
from sigdask.nightly.store.limits import UNREADABLE, decompress
from sigdask.randomization.tallies import find_rounds

AT_ONCE = 5000
"""Keys in one query."""

Integers = NDArray[np.int64]

TAILS = ("greater", "less", "two_sided")

COLUMNS = ("comparison", "first", "stop", *TAILS, "checksum")

OVERREAD_FACTOR = 2
"""The simpler query is used if it reads at most this many times as many keys as needed."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredTallies:
    """Tallies of some comparisons to be stored, over the trials of one round from its start.

    Attributes
    ----------
    ids : int64 array, shape (n,)
        Comparisons.
    run, first, stop : int
        Trials `first` to `stop - 1` of a run; the first is that of its round.
    counts : int64 array, shape (n, 3)
        Exceedances; of a family as a whole (n = 1), shape (1, size).
    whole : bool
        Whether the counts are those of a family.
    """

    ids: Integers
    run: int
    first: int
    stop: int
    counts: Integers
    whole: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StoredPrefixes:
    """Stored counts of some comparisons over trials 0 to n - 1, without a gap.

    Attributes
    ----------
    n_trials : int64 array, shape (n,)
        Number of trials.
    counts : int64 array, shape (n, 3) or (n, size)
        Their exceedances.
    before : int64 array like `counts`
        Counts of the rounds before the last.
    gap : int64 array, shape (n,)
        First stored trial after a gap of trials that are not stored, or 0 if there is no gap.
    """

    n_trials: Integers
    counts: Integers
    before: Integers
    gap: Integers


@dataclass(frozen=True, slots=True, eq=False)
class TallyRows:
    """Stored rows of tallies, sorted by comparison and trial: arrays of shape (n_rows,).

    Attributes
    ----------
    place : int64
        Index of the comparison among those requested.
    first, stop : int64
        Trials `first` to `stop - 1`.
    counts : int64, shape (n_rows, ...)
        Their exceedances.
    follows : bool
        Whether all trials before the row are stored too.
    """

    place: Integers
    first: Integers
    stop: Integers
    counts: Integers
    follows: NDArray[np.bool_]

    @staticmethod
    def from_unsorted(place: Integers, first: Integers, stop: Integers, counts: Integers) -> TallyRows:
        """Return rows sorted by comparison and trial, with a mark on those that no gap precedes."""
        order = np.lexsort((first, place))
        place, first, stop, counts = place[order], first[order], stop[order], counts[order]
        is_new = np.diff(place, prepend=-1) != 0
        expected_first = np.where(is_new, 0, np.roll(stop, 1))
        n_gaps = np.cumsum(first != expected_first)
        starts = np.flatnonzero(is_new)
        at_start = n_gaps[starts] - (first != expected_first)[starts]
        return TallyRows(place, first, stop, counts, n_gaps == np.repeat(at_start, np.diff(starts, append=len(place))))

    def sum_prefixes(self, n: int) -> StoredPrefixes:
        """Return the counts of n comparisons, each summed over its rows before the first gap."""
        n_trials, gap = np.zeros(n, np.int64), np.zeros(n, np.int64)
        counts = np.zeros((n, *self.counts.shape[1:]), np.int64)
        before = counts.copy()
        starts = np.flatnonzero(np.diff(self.place, prepend=-1))
        if len(starts):
            present, follows = self.place[starts], self.follows.reshape(-1, *[1] * (self.counts.ndim - 1))
            n_trials[present] = np.maximum.reduceat(self.stop * self.follows, starts)
            counts[present] = np.add.reduceat(self.counts * follows, starts)
            is_before = follows & (self.stop < n_trials[self.place]).reshape(follows.shape)
            before[present] = np.add.reduceat(self.counts * is_before, starts)
            gap_starts = np.where(self.follows, np.iinfo(np.int64).max, self.first)
            gap[present] = np.minimum.reduceat(gap_starts, starts)
            gap[gap == np.iinfo(np.int64).max] = 0
        return StoredPrefixes(n_trials, counts, before, gap)

    def select(self, mask: NDArray[np.bool_]) -> TallyRows:
        """Return the rows of a mask."""
        return TallyRows(self.place[mask], self.first[mask], self.stop[mask], self.counts[mask], self.follows[mask])


def fetch_ids(connection: Connection, digests: NDArray[np.void], labels: Sequence[str]) -> Integers:
    """Return the numbers of comparisons, inserting new ones."""
    digest_list = digests.tolist()
    ids_by_digest = _read_ids(connection, digest_list)
    new = {d: label for d, label in zip(digest_list, labels, strict=True) if d not in ids_by_digest}
    if new:
        _insert_comparisons(connection, new)
        ids_by_digest |= _read_ids(connection, list(new))
    return np.fromiter((ids_by_digest[d] for d in digest_list), np.int64, len(digest_list))


def _read_ids(connection: Connection, digests: Sequence[bytes]) -> dict[bytes, int]:
    """Return the numbers of stored comparisons by digest; it may hold more comparisons than requested."""
    max_id = connection.exec_driver_sql("SELECT max(id) FROM comparisons").scalar_one()
    if OVERREAD_FACTOR * len(digests) > (max_id or 0):
        return {bytes(digest): number for digest, number in connection.exec_driver_sql(SELECT_IDS)}
    ids_by_digest: dict[bytes, int] = {}
    for chunk in _split(digests):
        if connection.dialect.name == "postgresql":
            rows = connection.exec_driver_sql(f"{SELECT_IDS} WHERE digest = ANY(%s::bytea[])", (chunk,))
        else:
            literals = ",".join([f"x'{digest.hex()}'" for digest in chunk])
            rows = connection.exec_driver_sql(f"{SELECT_IDS} WHERE digest IN ({literals})")
        ids_by_digest.update((bytes(digest), number) for digest, number in rows)
    return ids_by_digest


SELECT_IDS = "SELECT digest, id FROM comparisons"


def _insert_comparisons(connection: Connection, new: Mapping[bytes, str]) -> None:
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
    """Return the stored counts of pair comparisons, from the first trial to the first gap.

    Raises
    ------
    DamagedError
        A row differs from what was stored.
    """
    rows, inverse = _read_rows(connection, ids, keys, run)
    p = rows.sum_prefixes(inverse.max(initial=-1) + 1)
    return StoredPrefixes(p.n_trials[inverse], p.counts[inverse], p.before[inverse], p.gap[inverse])


def _read_rows(connection: Connection, ids: Integers, keys: Keys, run: int) -> tuple[TallyRows, Integers]:
    """Return the tallies of comparisons without repetition, in ascending order, and the place of each id there."""
    ids, first_indices, inverse = np.unique(ids, return_index=True, return_inverse=True)
    keys = keys[first_indices]
    parts = [np.zeros((0, len(COLUMNS)), np.int64)]
    for chunk in _split(ids):
        low, high = int(chunk[0]), int(chunk[-1])
        condition = f"comparison BETWEEN {low} AND {high}"
        if high - low > OVERREAD_FACTOR * len(chunk):
            condition = f"comparison IN ({','.join(map(str, chunk.tolist()))})"
        query = f"SELECT {', '.join(COLUMNS)} FROM tallies WHERE run = {run} AND {condition}"  # noqa: S608  # integers
        parts.append(_to_array(connection.exec_driver_sql(query).all()))
    values = np.concatenate(parts)
    values = values[np.isin(values[:, 0], ids)]
    positions = np.searchsorted(ids, values[:, 0])
    is_intact = are_intact(keys[positions], np.full(len(values), run), values[:, 1:])
    if not is_intact.all():
        raise DamagedError(
            [describe_row(number, run, first, stop) for number, first, stop in values[~is_intact, :3].tolist()]
        )
    return TallyRows.from_unsorted(positions, values[:, 1], values[:, 2], values[:, 3:6]), inverse


def _to_array(rows: Sequence[Row[Any]]) -> Integers:
    """Return rows of tallies as an array; values that are not integers become -1, which is invalid."""
    try:
        values = np.fromiter(chain.from_iterable(rows), np.int64)
    except (TypeError, ValueError):
        plain = (value if type(value) is int else -1 for value in chain.from_iterable(rows))
        values = np.fromiter(plain, np.int64)
    return values.reshape(-1, len(COLUMNS))


def are_intact(keys: Keys, run: Integers, values: Integers) -> NDArray[np.bool_]:
    """Return a mask of rows of tallies that match their checksums, lie in one round and have possible counts."""
    first, stop, counts, checksum = values[:, 0], values[:, 1], values[:, 2:5], values[:, 5]
    start, end = find_rounds(first)
    is_round = (first == start) & (first < stop) & (stop <= end)
    has_checksum = compute_tally_checksums(keys, run, first, stop, counts) == checksum
    return np.asarray(is_round & are_possible(first, stop, counts) & has_checksum)


def describe_row(comparison: int, run: int, first: int, stop: int, table: str = "tallies") -> str:
    """Return the name of a row of tallies in messages."""
    return f"{table}: comparison {comparison}, run {run}, trials {first:,} to {stop - 1:,}"


def read_rounds(connection: Connection, ids: Integers, keys: Keys, run: int, max_stop: Integers) -> StoredPrefixes:
    """Return stored counts of comparisons, summed over the whole rounds that end by each one's `max_stop`."""
    rows, inverse = _read_rows(connection, ids, keys, run)
    rows = rows.select(rows.follows)
    starts, number = np.unique(rows.first, return_inverse=True)
    shape = len(starts), inverse.max(initial=-1) + 1
    stops, counts = np.zeros(shape, np.int64), np.zeros((*shape, 3), np.int64)
    stops[number, rows.place], counts[number, rows.place] = rows.stop, rows.counts
    stops, counts = stops[:, inverse], counts[:, inverse]
    is_within = (stops > 0) & (stops <= max_stop)
    n_trials, summed = np.where(is_within, stops, 0).max(axis=0, initial=0), (counts * is_within[..., None]).sum(axis=0)
    return StoredPrefixes(n_trials, summed, summed, np.zeros(len(ids), np.int64))


def read_families(
    connection: Connection, sizes: Mapping[int, int], run: int, max_stop: int
) -> dict[int, StoredPrefixes]:
    """Return stored counts of families, given their sizes by number, over the rounds that end by `max_stop`."""
    rows: dict[int, list[Mapping[str, Any]]] = {number: [] for number in sizes}
    for chunk in _split(list(sizes)):
        condition = f"WHERE run = :run AND comparison IN ({','.join(map(str, chunk))})"
        for row in sealed_rows_of(connection, "arrays", condition, {"run": run}):
            rows[row["comparison"]].append(row)
    faults = []
    for number, held in rows.items():
        for row in [*held]:
            if not is_intact("arrays", row):
                faults.append(describe_row(number, run, row["first"], row["stop"], "arrays"))
            elif not _has_counts(row, sizes[number]):  # of another size, or forged
                query = text("DELETE FROM arrays WHERE comparison = :c AND run = :run AND first = :first")
                connection.execute(query, {"c": number, "run": run, "first": row["first"]})
                held.remove(row)
    if faults:
        raise DamagedError(faults)
    return {number: _sum_family(family_rows, sizes[number], max_stop) for number, family_rows in rows.items()}


def _sum_family(rows: Sequence[Mapping[str, Any]], size: int, max_stop: int) -> StoredPrefixes:
    """Return the counts of a family's rows, summed over the rounds that end by `max_stop`."""
    first, stop = (np.array([row[name] for row in rows], np.int64) for name in ("first", "stop"))
    counts = np.array([unpack_counts(row["counts"], size) for row in rows], np.int64).reshape(-1, size)
    if len(rows) == 1 and first[0] == 0 and stop[0] <= max_stop:
        return StoredPrefixes(stop, counts, np.zeros_like(counts), np.zeros(1, np.int64))
    tally_rows = TallyRows.from_unsorted(np.zeros(len(rows), np.int64), first, stop, counts)
    return tally_rows.select(tally_rows.stop <= max_stop).sum_prefixes(1)


def _has_counts(row: Mapping[str, Any], size: int) -> bool:
    """Return whether a row of a family with a given size has counts that its trials can give."""
    try:
        counts = unpack_counts(row["counts"], size)
    except UNREADABLE:
        return False
    return len(counts) == size and bool((counts >= 0).all() and (counts <= row["stop"] - row["first"]).all())


def write_tallies(connection: Connection, new_tallies: Sequence[StoredTallies], keys: Sequence[Keys]) -> None:
    """Write tallies, each of which replaces a row of the same round with fewer trials."""
    pairs = [(entry, entry_keys) for entry, entry_keys in zip(new_tallies, keys, strict=True) if not entry.whole]
    for families in _split([entry for entry in new_tallies if entry.whole]):
        _write_families(connection, families)
    if connection.dialect.name == "postgresql":  # because one statement must not name a row twice
        for pair in pairs:
            _write_pairs(connection, [pair])
    elif pairs:
        _write_pairs(connection, pairs)


INSERT_TALLIES = {
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
"""Statement that inserts tallies. Of two rows, the one with more trials remains."""

INSERT_FAMILY = """
INSERT INTO arrays (comparison, run, first, stop, counts, checksum) VALUES (:c, :run, :first, :stop, :counts, :made)
ON CONFLICT (comparison, run, first) DO UPDATE SET stop = excluded.stop, counts = excluded.counts,
checksum = excluded.checksum WHERE excluded.stop > arrays.stop
"""


def _write_families(connection: Connection, families: Sequence[StoredTallies]) -> None:
    numbers = ",".join(str(int(entry.ids[0])) for entry in families)
    query = text(f"SELECT id, digest FROM comparisons WHERE id IN ({numbers})")  # noqa: S608
    digests = {row[0]: row[1] for row in connection.execute(query)}
    rows: list[dict[str, Any]] = []
    for entry in families:
        number, counts = int(entry.ids[0]), zlib.compress(np.ascontiguousarray(entry.counts[0], "<i8").tobytes(), 1)
        row = {"c": number, "run": entry.run, "first": entry.first, "stop": entry.stop, "counts": counts}
        rows.append({**row, "made": compute_checksum((*row.values(), digests[number]))})
    connection.execute(text(INSERT_FAMILY), rows)


def _write_pairs(connection: Connection, pairs: Sequence[tuple[StoredTallies, Keys]]) -> None:
    entries = [entry for entry, _ in pairs]
    ranges = np.array([(entry.run, entry.first, entry.stop) for entry in entries], np.int64)
    run, first, stop = np.repeat(ranges, [len(entry.ids) for entry in entries], axis=0).T
    numbers = np.concatenate([entry.ids for entry in entries])
    counts = np.concatenate([entry.counts[:, :3] for entry in entries])
    checksums = compute_tally_checksums(np.concatenate([keys for _, keys in pairs]), run, first, stop, counts)
    values, query = [*counts.T.tolist(), checksums.tolist()], INSERT_TALLIES[connection.dialect.name]
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(query, (*ranges[0].tolist(), numbers.tolist(), *values))
    else:
        columns = (numbers.tolist(), run.tolist(), first.tolist(), stop.tolist(), *values)
        connection.exec_driver_sql(query, list(zip(*columns, strict=True)))


def unpack_counts(packed: bytes, size: int) -> Integers:
    """Return the counts of a family of a size; raise ValueError if there are more."""
    return np.frombuffer(decompress(packed, 8 * size), "<i8").astype(np.int64)


_Items = TypeVar("_Items", bound=Sequence[Any] | NDArray[np.int64])


def _split(items: _Items) -> Iterator[_Items]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]  # type: ignore[misc]
