"""Results of runs. A row is stored once, for as many consecutive runs as it stays the same.

A run stores the rows that are new or changed, and `places`: where each of its results stands in all rows that were
stored since the run `base`. So a run without changes stores nothing, and one in which 50 of 100,000 results change
stores these 50. A run that keeps nothing, or that comes after much that was replaced, is a new base with all its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import Connection

from sigdask.counts.texts import Texts, join_columns
from sigdask.errors import DamagedError
from sigdask.nightly.store.database import RESULTS
from sigdask.nightly.store.runs import LATEST, UNREADABLE, seal, unseal
from sigdask.results.columns import get_type
from sigdask.results.fields import get_result
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.numbering import number_rows

Integers = NDArray[np.int64]

COMPARISON, COMPLETE = "store.comparison", "store.complete"
"""Columns of stored results: the comparison that gives p (`Ledger.ids`), or -1, and whether all trials are counted."""

IDENTITY = ("test_set", "subset.column", "subset.value", "unit", "a", "b", "metric", "alternative")
"""Columns that identify a result from run to run."""

ORIGINS = {f"origins.{name}" for name in ("adjust", "members", "family", "version")}
"""Columns other than a result's own data and stream. A result is not called changed if only these change."""

MAX_BYTES, MAX_RATIO = 2**28, 128
"""Stored rows may unpack to as many bytes, and this many for each byte stored, in all that is read."""

NO_ROWS = np.zeros(0, np.int64)

TEXTS = pa.dictionary(pa.int32(), pa.string())
"""Type of columns of texts."""

History = tuple[Table, Callable[[int], Integers]]
"""Stored rows; and a function that returns those that held after a run."""


def save_results(connection: Connection, plan: str, number: int, current: Table) -> int:
    """Save a run's results, in place of those that it saved before; return how many are new, changed or gone."""
    connection.execute(sa.delete(RESULTS).where(RESULTS.c.run == number))
    stored, find_held = read_history(connection, plan, number, number)
    before = find_held(number)
    former = stored.take(before)
    predecessors = find_rows(former, current)
    new = np.flatnonzero(predecessors >= 0)
    is_same = are_equal(former, current, _list_columns(former, current), predecessors[new], new)
    places = np.full(len(current), -1)
    places[new[is_same]] = before[predecessors[new[is_same]]]
    if len(places) != len(before) or (places != before).any():
        added = np.flatnonzero(places < 0)
        places[added] = len(stored) + np.arange(len(added))
        base = _find_base(connection, plan, number)
        if len(added) == len(places) or len(stored) + len(added) > 2 * len(current):
            base, places, added = number, np.arange(len(current)), np.arange(len(current))
        steps = seal(np.diff(places, prepend=0).astype("<i4").tobytes(), "places", number, base)
        rows = _seal_table(current.take(added), number)
        connection.execute(sa.insert(RESULTS).values(run=number, plan=plan, base=base, places=steps, rows=rows))
    return len(_compare(former, current, predecessors))


def _find_base(connection: Connection, plan: str, number: int) -> int:
    """Return the base of the results that held after a run, 0 if there are none."""
    query = sa.select(RESULTS.c.run, RESULTS.c.base).where(RESULTS.c.plan == plan, RESULTS.c.run <= number)
    run, base = connection.execute(query.order_by(RESULTS.c.run.desc()).limit(1)).one_or_none() or (0, 0)
    if type(base) is not int or base > run:
        raise DamagedError(f"results {run}: the base {base!r} that it has not")
    return base


def read_history(connection: Connection, plan: str, first: int, last: int) -> History:
    """Return the rows of the results that held after runs from a first to a last one."""
    base, budget, n_rows = _find_base(connection, plan, first), MAX_BYTES, 0
    is_read = RESULTS.c.plan == plan, RESULTS.c.run.between(base, last)
    tables, places, starts = [Table.build_empty()], dict[int, Callable[[], Integers]](), dict[int, int]()
    for row in connection.execute(sa.select(RESULTS).where(*is_read).order_by(RESULTS.c.run)):
        table = _unseal_table(row.rows, row.run, budget)
        budget += MAX_RATIO * len(row.rows) - table.data.nbytes
        starts[row.run], n_rows = n_rows, n_rows + len(table)
        tables.append(table)
        places[row.run] = partial(_unseal_places, row, starts.get(row.base, n_rows), n_rows)

    def find_held(number: int) -> Integers:
        latest = max((run for run in places if run <= number), default=None)
        return NO_ROWS if latest is None else places[latest]()

    return Table.join(tables), find_held


def _unseal_places(row: sa.Row[Any], start: int, n_rows: int) -> Integers:
    """Return the places of a run's results in rows that begin with those of its base, at `start`."""
    steps = np.frombuffer(unseal(row.places, "places", row.run, row.base, spare=2**26, ratio=MAX_RATIO), "<i4")
    places = start + np.cumsum(steps, dtype=np.int64)
    if len(places) and not 0 <= places.min() <= places.max() < n_rows:
        raise DamagedError(f"results {row.run}: places that it has not")
    return places


def _seal_table(table: Table, number: int) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.data.schema) as writer:
        writer.write_table(table.data)
    return seal(sink.getvalue(), "results", number)


def _unseal_table(sealed: bytes, number: int, budget: int) -> Table:
    """Return the rows that a run stored, of at most `budget` bytes, and `MAX_RATIO` for each byte stored."""
    content = unseal(sealed, "results", number, spare=budget, ratio=MAX_RATIO)
    try:
        data = pa.ipc.open_stream(content).read_all()
        data.validate(full=True)
        if not all(
            f.type == TEXTS if (kind := get_type(f.name)) == "string" else kind and pa.types.is_primitive(f.type)
            for f in data.schema
        ):
            raise ValueError("a column of another type")
    except UNREADABLE as error:
        raise DamagedError(f"results {number} ({' '.join(str(error).split())[:200]})") from None
    return Table(data, np.nan)


def find_rows(table: Table, query: Table) -> Integers:
    """Return, for each row of `query`, the first row of a table with the same identity, or -1."""
    numbers = number_rows(*(join_columns([table[name], query[name]]).codes for name in IDENTITY))
    first_rows = np.full(numbers.max(initial=-1) + 1, -1)
    first_rows[numbers[: len(table)][::-1]] = np.arange(len(table))[::-1]
    return np.asarray(first_rows[numbers[len(table) :]])


def _list_columns(*tables: Table) -> set[str]:
    return {name for table in tables for name in table.data.column_names}


def are_equal(
    left: Table, right: Table, names: Iterable[str], left_rows: Integers, right_rows: Integers
) -> NDArray[np.bool_]:
    """Return a mask of row pairs, one row from each table, that are equal in the given columns."""
    is_equal = np.ones(len(left_rows), np.bool_)
    for name in names:
        a, b = left[name], right[name]
        if isinstance(a, Texts):
            a, b = np.split(join_columns([a, b]).codes, [len(left)])
        a, b = a[left_rows], b[right_rows]
        is_equal &= (a == b) | ((a != a) & (b != b))  # noqa: PLR0124  # NaN is not itself
    return is_equal


def fetch_results(connection: Connection, plan: str, number: int, alpha: float = np.nan) -> Table:
    """Return the results that held after a run, in order, with a level."""
    stored, find_held = read_history(connection, plan, number, number)
    return stored.take(find_held(number)).replace(alpha=alpha)


@dataclass(frozen=True, eq=False)
class Changes:
    """Results that differ between two runs: first new or changed ones, in order, then those that are gone.

    Attributes
    ----------
    old, new : Table
        Results before and now.
    old_rows, new_rows : int64 array, shape (n,)
        Rows of each comparison in `old` and `new`; -1 if there is none.
    """

    old: Table
    new: Table
    old_rows: Integers
    new_rows: Integers

    def __len__(self) -> int:
        return len(self.old_rows)

    def __getitem__(self, index: int) -> tuple[Result | None, Result | None]:
        """Return a result before and after its change. The former is None if it is new, the latter if it is gone."""
        before, now = (get_result(table, rows[index]) if rows[index] >= 0 else None for table, rows in self.sides)
        return before, now

    @property
    def sides(self) -> tuple[tuple[Table, Integers], tuple[Table, Integers]]:
        """Two tables, of old and of new results, each with a row for every change (-1 if it has none)."""
        return (self.old, self.old_rows), (self.new, self.new_rows)

    @cached_property
    def kinds(self) -> list[tuple[str, ...]]:
        """Names of the kinds of each change, such as new or gained; "details" if no kind applies."""
        in_both = (self.old_rows >= 0) & (self.new_rows >= 0)
        rows = self.old_rows[in_both], self.new_rows[in_both]
        old, new = self.old.take(rows[0]), self.new.take(rows[1])
        was_significant, is_significant = (_find_significant(table) for table in (old, new))
        marks = {"new": self.old_rows < 0, "gone": self.new_rows < 0}
        for kind, applies in {
            "scores": ~are_equal(self.old, self.new, ("score_a", "score_b"), *rows),
            "gained": is_significant & ~was_significant,
            "lost": was_significant & ~is_significant,
            "reversed": was_significant & is_significant & ((old.score_a > old.score_b) != (new.score_a > new.score_b)),
            "p": ~are_equal(self.old, self.new, ("p_value", "p_adjusted", "n_trials"), *rows),
        }.items():
            marks[kind] = in_both.copy()
            marks[kind][in_both] = applies
        rows_of_marks = zip(*(applies.tolist() for applies in marks.values()), strict=True)
        return [(*compress(marks, row),) or ("details",) for row in rows_of_marks]


def _find_significant(table: Table) -> NDArray[np.bool_]:
    """Return for each row whether its verdict is significant: by (adjusted) p."""
    p = np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)
    return np.asarray(p <= table.alpha)


def find_changes(stored: Table, before: Integers, after: Integers) -> Changes:
    """Return the changes between rows of a history that held before and after a run."""
    old, new = (stored.take(some[~np.isin(some, others)]) for some, others in ((before, after), (after, before)))
    return _compare(old, new, find_rows(old, new))


def _compare(old: Table, new: Table, predecessors: Integers) -> Changes:
    """Return the changes between tables; `predecessors` are the rows of `old` from which those of `new` come, or -1."""
    rows = np.flatnonzero(predecessors >= 0)
    is_same = are_equal(old, new, _list_columns(old, new) - ORIGINS, predecessors[rows], rows)
    gone = np.setdiff1d(np.arange(len(old)), predecessors)
    changed = np.setdiff1d(np.arange(len(new)), rows[is_same])
    old_rows = np.concatenate([predecessors[changed], gone])
    return Changes(old, new, old_rows, np.concatenate([changed, np.full(len(gone), -1)]))


def find_first_looks(connection: Connection, plan: str, comparisons: Integers) -> Integers:
    """Return, for each comparison, the fewest trials at which a complete result was recorded, or 0."""
    distinct, inverse = np.unique(comparisons, return_inverse=True)
    smallest = np.full(len(distinct) + 1, LATEST)  # the last is for all others
    for row in connection.execute(sa.select(RESULTS.c.rows, RESULTS.c.run).where(RESULTS.c.plan == plan)):
        table = _unseal_table(row.rows, row.run, MAX_BYTES)
        is_look = table[COMPLETE] & ~table.is_exact & np.isin(table[COMPARISON], distinct)
        positions = np.searchsorted(distinct, table[COMPARISON])
        np.minimum.at(smallest, np.where(is_look, positions, len(distinct)), table.n_trials)
    return np.where(smallest == LATEST, 0, smallest)[inverse]
