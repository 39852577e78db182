"""Results of independence tests, with their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

from sigdask.options import AdjustTests
from sigdask.randomization.stream.swaps import SCHEME
from sigdask.results.comparisons import get_version
from sigdask.results.export import build_frame_from_rows
from sigdask.results.record import Exact, SecondRun
from sigdask.statistics.crosscheck import Check
from sigdask.statistics.rounding import format_p_equals
from sigdask.text import iter_json, to_plain


@dataclass(frozen=True, slots=True)
class Independence:
    """Result of one test of independence: whether a score of two labellings is above or below chance.

    Attributes
    ----------
    test_set : str
        Its name, empty unless given.
    a, b : str
        The labelling, and the one that it is held against.
    metric : str
        As it was asked for.
    higher_is_better : bool
        Whether more is better.
    score, expected : float
        The score, and what it would be if agreements were as frequent as independence leads to expect.
    alternative : {"greater", "less", "two-sided"}
        Of the score; two-sided counts arrangements that are at least as far from the expected score.
    within : str or None
        The column within whose values labels were permuted.
    n_items, n_strata : int
        Items, and groups of them within which labels were permuted.
    method : {"approximate", "exact"}
        Random permutations, or all.
    n_trials, n_extreme : int or None
        Permutations, and those at least as extreme as observed; None where p is exact and they are beyond 2**53.
    p_value : float
        (n_extreme + 1) / (n_trials + 1), or the exact p.
    p_interval : tuple of float
        99 % Clopper-Pearson interval of the exact p; both ends equal it when exact.
    second_run : SecondRun or None
        The cross-check by a second run.
    exact : Exact or None
        The exact value, where it is at hand.
    checks : tuple of Check
        Cross-checks and their verdicts.
    warnings : tuple of str
        Remarks on this test.
    p_adjusted : float or None
        Over all tests of the call; None where p was not adjusted.
    p_adjusted_interval : tuple of float or None
        The ends of `p_interval`, adjusted in the same way.
    """

    test_set: str
    a: str
    b: str
    metric: str
    higher_is_better: bool
    score: float
    expected: float
    alternative: str
    within: str | None
    n_items: int
    n_strata: int
    method: str
    n_trials: int | None
    n_extreme: int | None
    p_value: float
    p_interval: tuple[float, float]
    second_run: SecondRun | None = None
    exact: Exact | None = None
    checks: tuple[Check, ...] = ()
    warnings: tuple[str, ...] = ()
    p_adjusted: float | None = None
    p_adjusted_interval: tuple[float, float] | None = None

    def __repr__(self) -> str:
        return (
            f"Independence({self.a} - {self.b}, {self.metric} {self.score:.4f}, {self.expected:.4f} by chance, "
            f"{format_p_equals(self.p_value)})"
        )

    def disagreements(self) -> tuple[Check, ...]:
        """Return the cross-checks that disagree."""
        return tuple(check for check in self.checks if check.verdict == "disagrees")

    def verdict(self, alpha: float) -> str:
        """Return the verdict at alpha in words, by the adjusted p if p was adjusted."""
        low, high = self.p_adjusted_interval or self.p_interval
        if low <= alpha < high:
            return f"undecided at {alpha:g}"
        p = self.p_value if self.p_adjusted is None else self.p_adjusted
        return "significant" if p <= alpha else "not significant"


@dataclass(frozen=True, slots=True)
class IndependenceResults(Sequence[Independence]):
    """Results of all tests of one call, in the order of labellings and metrics.

    Attributes
    ----------
    found : tuple of Independence
        The tests.
    seed : int
        Of the stream.
    alpha : float
        Level of the verdicts.
    warnings : tuple of str
        Remarks on the whole.
    adjust : {"none", "holm", "hochberg", "bh", "by"}
        How p was adjusted over all tests.
    """

    found: tuple[Independence, ...]
    seed: int
    alpha: float
    warnings: tuple[str, ...] = ()
    adjust: AdjustTests = "none"

    @overload
    def __getitem__(self, index: int) -> Independence: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Independence]: ...
    def __getitem__(self, index: int | slice) -> Independence | Sequence[Independence]:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame, one row a test; libraries as of `Results.to_frame`."""
        return build_frame_from_rows([to_plain(asdict(result)) for result in self.found], library)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes, made of plain Python values."""
        header = {
            "sigdask": get_version(),
            "scheme": SCHEME,
            "seed": self.seed,
            "alpha": self.alpha,
            "adjust": self.adjust,
        }
        return {
            **header,
            "warnings": list(self.warnings),
            "results": [to_plain(asdict(result)) for result in self.found],
        }

    def json_parts(self) -> Iterator[str]:
        """Yield the JSON text that `--json` writes, in parts."""
        return iter_json(self.to_dict())

    def to_json(self) -> str:
        """Return the JSON text that `--json` writes."""
        return "".join(self.json_parts())
