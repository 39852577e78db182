"""Results of power analyses, with their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from sigdask.results.comparisons import get_version
from sigdask.results.export import build_frame_from_rows
from sigdask.statistics.power.crossing import Estimate
from sigdask.text import format_count, iter_json, to_plain

EXACT, SIMULATED, NORMAL = "exact", "simulated", "normal approximation"


@dataclass(frozen=True, slots=True)
class PowerAt:
    """The power at one number of units and one difference.

    Attributes
    ----------
    n_units : int
        Units of each sample.
    difference : float
        Size of the difference of scores.
    power : float
        Share of samples that the test rejects.
    error : float
        Its standard error by Monte Carlo; 0 where the power is exact.
    """

    n_units: int
    difference: float
    power: float
    error: float


FEW_EFFECTIVE = 10.0
"""Equally likely units below which a tilted population rests on too few to be trusted."""


@dataclass(frozen=True, slots=True)
class Power:
    """The power of one comparison.

    Attributes
    ----------
    test_set, a, b, metric, unit : str
        What is compared, and what is exchanged.
    alternative : str
        Of the test.
    level : float
        What each p is held against.
    power : float
        That is wanted.
    n_units : int
        Observed units.
    difference : float
        The observed score_a - score_b.
    ahead : str
        The system that is better, or worse where less is better, by the difference that is asked about: the one with
        the higher score.
    reachable : tuple of float, or None
        Smallest and largest difference that tilting the observed units reaches; None where these are all alike.
    wanted_difference : float or None
        That was asked for.
    needed : Estimate or None
        Units that find it with the power wanted.
    at_wanted : PowerAt or None
        How often the present units find it.
    n_asked : int
        Units that `detectable` and `at_observed` are of.
    detectable : Estimate or None
        The smallest difference that they find with the power wanted; infinite where they find none that is reachable.
    at_observed : PowerAt or None
        How often they find the observed difference.
    curve : tuple of PowerAt
        What was measured on the way, by units and difference.
    method : str
        "exact" (sign tests), "simulated", or "normal approximation" (beyond the units that are simulated).
    n_samples : int
        Samples of each point of the curve; 0 where nothing was simulated.
    n_effective : float or None
        How many equally likely units would vary as much as those weighed for the wanted difference.
    n_effective_detectable : float or None
        Likewise for the detectable one.
    note : str or None
        What is to be said of it; why there is nothing, where there is nothing.
    """

    test_set: str
    a: str
    b: str
    metric: str
    unit: str
    alternative: str
    level: float
    power: float
    n_units: int
    difference: float
    ahead: str
    reachable: tuple[float, float] | None
    wanted_difference: float | None
    needed: Estimate | None
    at_wanted: PowerAt | None
    n_asked: int
    detectable: Estimate | None
    at_observed: PowerAt | None
    curve: tuple[PowerAt, ...]
    method: str
    n_samples: int
    n_effective: float | None
    n_effective_detectable: float | None
    note: str | None

    @property
    def needs_few(self) -> bool:
        """Whether the estimated number of units needed rests on too few effective units to be trusted."""
        return self.n_effective is not None and self.n_effective < FEW_EFFECTIVE

    @property
    def detects_by_few(self) -> bool:
        """Whether the detectable difference rests on too few effective units to be trusted."""
        return self.n_effective_detectable is not None and self.n_effective_detectable < FEW_EFFECTIVE

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with null for infinite values."""
        values: dict[str, Any] = to_plain(self)
        return values


@dataclass(frozen=True, slots=True)
class PowerResults(Sequence[Power]):
    """The power of all comparisons of one call.

    Attributes
    ----------
    found : tuple of Power
        In the order of metrics and pairs.
    alpha : float
        Level of the test.
    adjust : str
        "none", or "holm": the first step of Holm, whose level all comparisons share.
    seed : int
        Of the stream.
    notes : tuple of str
        On the whole.
    """

    found: tuple[Power, ...]
    alpha: float
    adjust: str
    seed: int
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Power: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Power]: ...
    def __getitem__(self, index: int | slice) -> Power | Sequence[Power]:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Power]:
        return iter(self.found)

    def __repr__(self) -> str:
        """Return a summary with a line for each comparison."""
        lines = (
            f"{power.a} and {power.b} by {power.metric}: "
            + (f"{power.needed.value:g} units find {power.wanted_difference:g}; " if power.needed else "")
            + (f"{power.n_asked} find {power.detectable.value:.3g}" if power.detectable else str(power.note))
            for power in self.found
        )
        return "\n".join([f"Powers: {format_count(len(self), 'comparison')}, alpha {self.alpha:g}", *lines])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame, one row a comparison; libraries as of `Results.to_frame`."""
        return build_frame_from_rows([power.to_dict() for power in self.found], library)

    def to_json(self) -> str:
        """Return JSON text."""
        return "".join(self.json_parts())

    def json_parts(self) -> Iterator[str]:
        """Yield the JSON text that `--json` writes, in parts."""
        header = {"sigdask": get_version(), "alpha": self.alpha, "adjust": self.adjust, "seed": self.seed}
        return iter_json(header | {"notes": list(self.notes), "power": [power.to_dict() for power in self.found]})
