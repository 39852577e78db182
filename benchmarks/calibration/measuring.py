"""From cases to shares with their Monte Carlo error: batches of data sets, here or on a cluster.

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

Should = Literal["at most", "at least", "about", "nothing"]
"""What is promised of a share, beside the expected one."""

MANY = 18_579
"""Data sets that tell a size of 0.06 from 0.05, at level 1e-4 with power 0.99."""

CLEAR = 3.3
"""Standard errors beyond which a share is on the wrong side: 5 of 10,000 are by chance."""

ROUNDED = 5e-4
"""What an enumerated share may be beyond: it is written to three decimals."""

ENOUGH = 3
"""Batches from which the spread between them tells the error: the data sets of one share their shuffles."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one procedure did with each of some data sets.

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
    """A scenario and the procedures that are measured in it: a row of a table.

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
    n_sets: int = MANY
    at_once: int = 500

    @property
    def name(self) -> str:
        """What `--only` looks in."""
        return f"{self.table}: {self.row}"

    def batches(self, n_sets: int | None = None) -> int:
        """Return how many batches so many data sets are."""
        return -(-(self.n_sets if n_sets is None else min(n_sets, self.n_sets)) // self.at_once)

    def batch(self, number: int) -> Batch:
        """Measure one batch."""
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
class Measured:
    """How often one procedure did something in one scenario.

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
        """Whether it is on the wrong side by more than Monte Carlo error."""
        off = self.share - self.expected
        wrong = {"at most": off, "at least": -off, "about": abs(off), "nothing": 0.0}[self.should]
        of_expected = math.sqrt(self.expected * (1 - self.expected) / self.n_sets) if self.error else 0.0
        return wrong > max(CLEAR * max(self.error, of_expected), ROUNDED)

    def as_json(self) -> dict[str, Any]:
        """Return it as it is kept."""
        return {key: round(value, 6) if isinstance(value, float) else value for key, value in asdict(self).items()}


def summed(case: Case, batches: Sequence[Batch]) -> Iterator[Measured]:
    """Yield what the batches of a case, in order, found of each procedure."""
    for procedure in dict.fromkeys(name for batch in batches for name in batch):
        own = [batch[procedure] for batch in batches if batch.get(procedure, (0,))[0]]
        n = sum(of[0] for of in own)
        if n == 0:
            continue
        share, expected = (math.fsum(of[k] for of in own) / n for k in (1, 2))
        yield Measured(case.table, case.row, procedure, n, share, _error(own, n, share), expected, own[0][3])


def _error(batches: Sequence[tuple[int, float, float, Should]], n: int, share: float) -> float:
    if n == 1:  # enumerated
        return 0.0
    some = (share * n + 0.5) / (n + 1)
    independent = math.sqrt(some * (1 - some) / n)
    if len(batches) < ENOUGH:
        return independent
    return max(independent, float(np.std([of[1] / of[0] for of in batches], ddof=1)) / math.sqrt(len(batches)))


def measured(
    cases: Sequence[Case], n_sets: int | None = None, *, cluster: Any = "none", told: Callable[[str], None] = print
) -> list[Measured]:
    """Measure cases, in their order.

    The same figures on any cluster.

    Parameters
    ----------
    cases : sequence of Case
        Of different names; on a cluster, those that `catalogue.CASES` holds.
    n_sets : int, optional
        Data sets of each at most; by default what the case says.
    cluster : as in `sigdask.compare_all`
        Where to measure.
    told : callable
        Told of each case that is done.
    """
    from sigdask.execution import clusters

    found: dict[str, dict[int, Batch]] = {case.name: {} for case in cases}
    done: dict[str, list[Measured]] = {}
    of = {case.name: case for case in cases}
    with clusters.connect(cluster) as connected:
        for name, number, batch in _batches(cases, n_sets, connected):
            own = found[name]
            own[number] = batch
            if len(own) == of[name].batches(n_sets):
                done[name] = list(summed(of[name], [own[k] for k in sorted(own)]))
                told("\n".join(f"{m.table}: {m.row}: {m.procedure} {m.share:.4f}" for m in done[name]))
    return [m for case in cases for m in done[case.name]]


def _batches(cases: Sequence[Case], n_sets: int | None, cluster: Any) -> Iterator[tuple[str, int, Batch]]:
    wanted = [(case, number) for case in cases for number in range(case.batches(n_sets))]
    if cluster.client is None:
        yield from ((case.name, number, case.batch(number)) for case, number in wanted)
        return
    from distributed import as_completed

    from benchmarks.calibration.travel import sent

    sent(cluster)
    futures = cluster.client.map(far, [(case.name, number) for case, number in wanted], pure=False, retries=3)
    for future, result in as_completed(futures, with_results=True):
        future.release()
        yield result


def far(task: tuple[str, int]) -> tuple[str, int, Batch]:
    """Measure one batch on a worker, which knows the cases by name."""
    from benchmarks.calibration.catalogue import named

    name, number = task
    return name, number, named(name).batch(number)


def once(share: Callable[[], Mapping[str, Outcome]]) -> Callable[[np.random.Generator, int], Outcomes]:
    """Make a measure of what is enumerated and needs no data sets: a case of one."""
    return partial(_once, share)


def _once(share: Callable[[], Mapping[str, Outcome]], _rng: np.random.Generator, _n_sets: int) -> Outcomes:
    return share()
