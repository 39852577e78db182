"""Measure cases in batches of data sets, locally or on a cluster, with Monte Carlo errors.

What a batch finds depends on its case and its number alone, so the same figures come from any number of workers,
and fewer data sets are a prefix of more.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.travel import send_modules

Should = Literal["at most", "at least", "about", "nothing"]
"""What is promised of a share, beside the expected one."""

DEFAULT_SETS = 18_579
"""Data sets that tell a size of 0.06 from 0.05, at level 1e-4 with power 0.99."""

MAX_STANDARD_ERRORS = 3.3
"""Standard errors beyond which a share is on the wrong side: 5 of 10,000 are by chance."""

ROUNDING_ERROR = 5e-4
"""What an enumerated share may be beyond: it is written to three decimals."""

MIN_BATCHES = 3
"""Batches from which the spread between them tells the error: the data sets of one share their shuffles."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Results of one procedure on some data sets.

    Attributes
    ----------
    happened : array, shape (n_sets,)
        Whether it rejected or covered; or a share of what it found.
    expected : float, or array of shape (n_sets,)
        How likely that was: the nominal level, the attainable one, or the power of a reference.
    should : str
        On which side of the expected share the measured one should be.
    """

    happened: NDArray[Any]
    expected: float | NDArray[Any] = 0.05
    should: Should = "at most"


Outcomes = Mapping[str, Outcome]
"""By procedure."""


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario and the procedures that are measured on it: one row of a table.

    Attributes
    ----------
    table, row : str
        Where it stands.
    measure : callable
        `(rng, n_sets)` to the outcomes of so many data sets.
    n_sets : int
        Data sets of a full measurement.
    at_once : int
        Data sets of a batch.
    """

    table: str
    row: str
    measure: Callable[[np.random.Generator, int], Outcomes]
    n_sets: int = DEFAULT_SETS
    at_once: int = 500

    @property
    def name(self) -> str:
        """Table and row, which `--only` searches."""
        return f"{self.table}: {self.row}"

    def count_batches(self, n_sets: int | None = None) -> int:
        """Return the number of batches for a number of data sets."""
        return -(-(self.n_sets if n_sets is None else min(n_sets, self.n_sets)) // self.at_once)

    def measure_batch(self, number: int) -> Batch:
        """Measure one batch, by its number."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), number])
        return {
            procedure: (
                len(o.happened), float(np.sum(o.happened)),
                float(np.sum(np.broadcast_to(o.expected, len(o.happened)))), o.should,
            )
            for procedure, o in self.measure(rng, self.at_once).items()
        }  # fmt: skip


Batch = dict[str, tuple[int, float, float, Should]]
"""By procedure: data sets, how many times it happened and was expected to, what should be."""


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """The measured rate of one procedure in one scenario.

    Attributes
    ----------
    table, row, procedure : str
    n_sets : int
    share : float
    error : float
        Its standard error.
    expected : float
        What it is held against.
    should : str
        On which side it should be.
    """

    table: str
    row: str
    procedure: str
    n_sets: int
    share: float
    error: float
    expected: float
    should: Should

    @property
    def is_wrong(self) -> bool:
        """Whether the rate is on the wrong side by more than Monte Carlo error."""
        difference = self.share - self.expected
        wrong = {"at most": difference, "at least": -difference, "about": abs(difference), "nothing": 0.0}[self.should]
        expected_error = math.sqrt(self.expected * (1 - self.expected) / self.n_sets) if self.error else 0.0
        return wrong > max(MAX_STANDARD_ERRORS * max(self.error, expected_error), ROUNDING_ERROR)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as they are saved, with rounded numbers."""
        return {key: round(value, 6) if isinstance(value, float) else value for key, value in asdict(self).items()}


def combine_batches(case: Case, batches: Sequence[Batch]) -> Iterator[MeasuredRate]:
    """Yield the measured rate of each procedure from the batches of a case, in order."""
    for procedure in dict.fromkeys(name for batch in batches for name in batch):
        rows = [batch[procedure] for batch in batches if batch.get(procedure, (0,))[0]]
        n = sum(row[0] for row in rows)
        if n == 0:
            continue
        share, expected = (math.fsum(row[k] for row in rows) / n for k in (1, 2))
        yield MeasuredRate(
            case.table, case.row, procedure, n, share, _estimate_error(rows, n, share), expected, rows[0][3]
        )


def _estimate_error(batches: Sequence[tuple[int, float, float, Should]], n: int, share: float) -> float:
    if n == 1:  # enumerated
        return 0.0
    smoothed = (share * n + 0.5) / (n + 1)
    independent = math.sqrt(smoothed * (1 - smoothed) / n)
    if len(batches) < MIN_BATCHES:
        return independent
    return max(independent, float(np.std([batch[1] / batch[0] for batch in batches], ddof=1)) / math.sqrt(len(batches)))


def measure_cases(
    cases: Sequence[Case], n_sets: int | None = None, *, cluster: Any = "none", report: Callable[[str], None] = print
) -> list[MeasuredRate]:
    """Measure cases and return their rates in the same order.

    The same figures on any cluster.

    Parameters
    ----------
    cases : sequence of Case
        Of different names.
    n_sets : int, optional
        Data sets of each at most; by default what the case says.
    cluster : as in `sigdask.compare_all`
        Where to measure.
    report : callable
        Told of each case that is done.
    """
    from sigdask.execution import clusters

    batches_by_case: dict[str, dict[int, Batch]] = {case.name: {} for case in cases}
    rates: dict[str, list[MeasuredRate]] = {}
    cases_by_name = {case.name: case for case in cases}
    with clusters.connect(cluster) as connected:
        for name, number, batch in _iter_batches(cases, n_sets, connected):
            batches = batches_by_case[name]
            batches[number] = batch
            if len(batches) == cases_by_name[name].count_batches(n_sets):
                rates[name] = list(combine_batches(cases_by_name[name], [batches[k] for k in sorted(batches)]))
                report("\n".join(f"{m.table}: {m.row}: {m.procedure} {m.share:.4f}" for m in rates[name]))
    return [m for case in cases for m in rates[case.name]]


def _iter_batches(cases: Sequence[Case], n_sets: int | None, cluster: Any) -> Iterator[tuple[str, int, Batch]]:
    tasks = [(case, number) for case in cases for number in range(case.count_batches(n_sets))]
    if cluster.client is None:
        yield from ((case.name, number, case.measure_batch(number)) for case, number in tasks)
        return
    from distributed import as_completed

    send_modules(cluster)
    futures = cluster.client.map(_measure_remotely, tasks, pure=False, retries=3)
    for future, result in as_completed(futures, with_results=True):
        future.release()
        yield result


def _measure_remotely(task: tuple[Case, int]) -> tuple[str, int, Batch]:
    case, number = task
    return case.name, number, case.measure_batch(number)


def as_measure(share: Callable[[], Mapping[str, Outcome]]) -> Callable[[np.random.Generator, int], Outcomes]:
    """Wrap an enumeration, which needs no data sets, as the measure of a case."""
    return partial(_enumerate, share)


def _enumerate(share: Callable[[], Mapping[str, Outcome]], _rng: np.random.Generator, _n_sets: int) -> Outcomes:
    return share()
