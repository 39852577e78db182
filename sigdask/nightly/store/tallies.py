"""Tallies in the database.

Tallies have one row for each comparison and run, with the counts of its first trials. A row holds the counts of each
round (`sigdask.randomization.tallies`) from trial 0 without a gap, as integers of the size that `n_trials` needs, and a
checksum. The counts of the same trials are the same whoever counts them, so of two rows the one with more trials stays.
No trial can be counted twice, and drivers that share comparisons share counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from sqlalchemy import Connection

from sigdask.counts.fields import Integers
from sigdask.errors import DamagedError
from sigdask.nightly.store.database import TALLIES
from sigdask.nightly.store.runs import CHECKSUM_BYTES, compute_checksum
from sigdask.randomization.tallies import list_round_ends
from sigdask.statistics.bounds import MAX_TRIALS

AT_ONCE = 500  # digests in one query

INSERT = """INSERT INTO tallies (digest, run, n_trials, counts) {}
ON CONFLICT (digest, run) DO UPDATE SET n_trials = excluded.n_trials, counts = excluded.counts
WHERE excluded.n_trials > tallies.n_trials"""
# of arrays: psycopg would send rows in a pipeline, after which PostgreSQL never ends a session that falls silent
UNNEST = "SELECT * FROM unnest(%s::bytea[], %s::smallint[], %s::bigint[], %s::bytea[])"


@dataclass(frozen=True, slots=True, eq=False)
class NewTallies:
    """Counts of some comparisons to be stored.

    Attributes
    ----------
    digests : sequence of bytes, length n
        Comparisons.
    run, n_trials : int
        The first `n_trials` trials of a run.
    counts : int64 array, shape (n_rounds, n, size)
        Exceedances in each round.
    """

    digests: Sequence[bytes]
    run: int
    n_trials: int
    counts: Integers


def write_tallies(connection: Connection, new: Iterable[NewTallies]) -> None:
    """Write tallies, each of which replaces a row with fewer trials."""
    # the last of a comparison and run has most trials
    rows = [*{row[:2]: row for row in sorted(row for tallies in new for row in _encode(tallies))}.values()]
    if rows and connection.dialect.name == "sqlite":  # SQLAlchemy takes five times as long to bind so many values
        connection.exec_driver_sql(INSERT.format("VALUES (?, ?, ?, ?)"), rows)
    elif rows:
        connection.exec_driver_sql(INSERT.format(UNNEST), tuple(map(list, zip(*rows, strict=True))))


def _encode(tallies: NewTallies) -> Iterable[tuple[bytes, int, int, bytes]]:
    """Yield the database rows of tallies."""
    counts = tallies.counts.swapaxes(0, 1).astype(_get_type(tallies.n_trials))
    size = counts[:1].nbytes
    data = counts.tobytes()
    for k, digest in enumerate(tallies.digests):
        content = data[k * size : (k + 1) * size]
        checksum = compute_checksum(content, digest, tallies.run, tallies.n_trials)
        yield digest, tallies.run, tallies.n_trials, content + checksum


def _get_type(n_trials: int) -> np.dtype[np.unsignedinteger]:
    return np.min_scalar_type(n_trials).newbyteorder("<")


def read_tallies(
    connection: Connection, digests: Sequence[bytes], sizes: Integers, wanted: Mapping[int, Integers]
) -> tuple[dict[int, Integers], dict[int, Integers]]:
    """Return the stored trials and counts of comparisons, by run.

    Counts have shape (n_rounds, total size), those of one comparison after the other. If the store has more trials than
    wanted, they are of the whole rounds up to the wanted number.

    Parameters
    ----------
    connection : Connection
        Connection to the store.
    digests : sequence of bytes
        Comparisons, each once.
    sizes : int64 array, shape (n,)
        Number of counts of each.
    wanted : mapping of int to int64 array, shape (n,)
        Maximum number of trials of each, by run.

    Raises
    ------
    DamagedError
        A row differs from what was stored.
    """
    numbers = {digest: k for k, digest in enumerate(digests)}
    groups: dict[tuple[int, int, int], dict[int, bytes]] = defaultdict(dict)
    for first in range(0, len(digests), AT_ONCE):
        is_wanted = TALLIES.c.digest.in_(digests[first : first + AT_ONCE]), TALLIES.c.run.in_([*wanted])
        query = sa.select(TALLIES).where(*is_wanted)
        for digest, run, n_trials, counts in connection.execute(query):
            if type(n_trials) is not int or not 0 < n_trials <= MAX_TRIALS or not isinstance(counts, bytes):
                raise DamagedError(f"tallies: comparison {digest.hex()}, run {run}: not what sigdask writes")
            number = numbers[digest]
            groups[run, n_trials, int(sizes[number])][number] = counts
    starts = np.cumsum(sizes) - sizes
    trials = {run: np.zeros_like(n) for run, n in wanted.items()}
    tallies = {
        run: np.zeros((len(list_round_ends(n.max(initial=0))), sizes.sum()), np.int64) for run, n in wanted.items()
    }
    for (run, n_trials, size), contents in groups.items():
        found = np.fromiter(contents, np.int64)
        counts = _decode([digests[k] for k in contents], run, n_trials, size, [*contents.values()])
        ends = list_round_ends(n_trials)[: len(tallies[run])]
        is_used = ends[:, None] <= wanted[run][found]  # (n_rounds, n_found)
        trials[run][found] = (ends[:, None] * is_used).max(axis=0, initial=0)
        places = starts[found, None] + np.arange(size)
        tallies[run][: len(ends), places] = counts[: len(ends)] * is_used[..., None]
    return trials, tallies


def _decode(digests: Sequence[bytes], run: int, n_trials: int, size: int, contents: Sequence[bytes]) -> Integers:
    """Return the counts of rows of equal shape, shape (n_rounds, n_rows, size)."""
    for digest, content in zip(digests, contents, strict=True):
        checksum = compute_checksum(content[:-CHECKSUM_BYTES], digest, run, n_trials)
        if content[-CHECKSUM_BYTES:] != checksum:
            raise DamagedError(f"tallies: comparison {digest.hex()}, run {run}: its checksum differs")
    lengths = np.diff(list_round_ends(n_trials), prepend=0)
    row = np.dtype([("counts", _get_type(n_trials), (len(lengths), size)), ("checksum", "<u4")])
    if {len(content) for content in contents} != {row.itemsize}:
        raise DamagedError(f"tallies: run {run}: rows that are not of {row.itemsize} bytes")
    counts = np.frombuffer(b"".join(contents), row)["counts"].swapaxes(0, 1).astype(np.int64)
    if (counts > lengths[:, None, None]).any():
        raise DamagedError(f"tallies: run {run}: more exceedances than trials")
    return counts
