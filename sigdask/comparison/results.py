"""What a comparison found: frozen values, with the JSON that stays."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, overload

from sigdask.comparison.notes import Note, dicts, texts
from sigdask.errors import InputError, missing_extra
from sigdask.randomization.shuffles import SCHEME
from sigdask.statistics.crosscheck import Check
from sigdask.statistics.dependence import Dependence
from sigdask.statistics.letters import Ranked, achieved_significance, discriminative_power, ranking
from sigdask.writing import as_json, plain


@dataclass(frozen=True, slots=True)
class SecondRun:
    """An independent run of as many trials, and Fisher's exact p that both are of one rate."""

    n_trials: int
    n_extreme: int
    p_value: float
    agreement_p: float


@dataclass(frozen=True, slots=True)
class Exact:
    """The exact p-value, or bounds of it, with how it was had and what is guaranteed."""

    p_lo: float
    p_hi: float
    method: str
    guarantee: str


@dataclass(frozen=True, slots=True)
class Beside:
    """The same comparison with another unit exchanged, for contrast."""

    unit: str
    n_units: int
    method: str
    n_trials: int
    n_extreme: int
    p_value: float


@dataclass(frozen=True, slots=True)
class FamilyNote:
    """How p-values were adjusted.

    Attributes
    ----------
    adjust : str
        The method.
    n_comparisons : int
        Comparisons judged together.
    n_trials : int or None
        Trials (or arrangements) counted for the whole family; None where p-values were enough.
    exact : bool
        All arrangements were counted.
    """

    adjust: str
    n_comparisons: int
    n_trials: int | None
    exact: bool


@dataclass(frozen=True, slots=True)
class ResultAcrossSets:
    """One verdict over several test sets or subsets: the mean of the differences.

    Attributes
    ----------
    a, b, metric : str
        What was compared.
    n_sets : int
        Sets.
    difference : float
        Mean over sets of score_a - score_b.
    n_trials, n_extreme : int
        Trials with swaps inside each set, and those whose mean is at least as extreme.
    p_value : float
        Of the mean difference.
    p_adjusted : float or None
        By step-down max-T over all pairs and metrics.
    p_adjusted_interval : tuple of float, or None
        As in `Result`.
    method : {"approximate", "exact"}
        Random trials, or all arrangements.
    greater_in, less_in : int
        In how many sets at least A scores above B, and below (Benjamini & Heller 2008), each
        direction at half of alpha when two-sided.
    p_greater, p_less : float
        p of that many sets (of one where it is 0).
    """

    a: str
    b: str
    metric: str
    n_sets: int
    difference: float
    n_trials: int
    n_extreme: int
    p_value: float
    p_adjusted: float | None
    method: str
    greater_in: int
    p_greater: float
    less_in: int
    p_less: float
    p_adjusted_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """How a rule to stop early ended the counting.

    Attributes
    ----------
    rule : {"besag-clifford", "confidence-sequence"}
        Which.
    n_asked : int
        Trials that it could have taken.
    is_early : bool
        Whether it stopped before them.
    is_significant : bool or None
        The decision of the confidence sequence, which gives no p; None where it is undecided.
    epsilon : float or None
        Its resampling risk.
    h : int or None
        Exceedances that Besag and Clifford's rule waits for.
    """

    rule: str
    n_asked: int
    is_early: bool
    is_significant: bool | None = None
    epsilon: float | None = None
    h: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One comparison: two systems, one metric, one test set (or subset).

    Attributes
    ----------
    test_set : str
        Its name, empty unless given.
    subset : dict or None
        {"column", "value"} of `--by`.
    unit : str
        What was exchanged as a whole.
    a, b : str
        The systems.
    metric : str
        As it was asked for.
    higher_is_better : bool
        Whether more is better.
    score_a, score_b, difference : float
        difference = score_a - score_b.
    alternative : {"two-sided", "greater", "less"}
        Of the difference.
    n_items, n_units, n_discordant : int
        Items, units, and units that differ in the metric's own fields.
    method : {"approximate", "exact"}
        Random trials, or all arrangements.
    n_trials, n_extreme : int
        Trials (or arrangements), and those at least as extreme as observed.
    p_value : float
        (n_extreme + 1) / (n_trials + 1), or the exact n_extreme / n_trials.
    p_interval : tuple of float
        99 % Clopper-Pearson interval of the exact p; both ends equal it when exact.
    p_adjusted : float or None
        Adjusted for the family.
    p_adjusted_interval : tuple of float, or None
        99 % Monte Carlo interval of what the adjusted p would be with endless trials; both ends equal
        it where all arrangements were counted.
    r12 : float or None
        Correlation of the two systems' item scores.
    second_run : SecondRun or None
        The cross-check by a second run.
    exact : Exact or None
        The exact value, where one is at hand.
    checks : tuple of Check
        Cross-checks and their verdicts.
    dependence : tuple of Dependence
        How much differences hang together within coarser groups than the unit.
    beside : tuple of Beside
        The same with other units exchanged.
    notes : tuple of Note
        On this comparison; `warnings` are their texts.
    signature : str or None
        How the scorer library counted, in its own words.
    stopped : Stopped or None
        How a rule to stop early ended the counting; p is NaN where the rule gives a decision alone.
    """

    test_set: str
    subset: dict[str, str] | None
    unit: str
    a: str
    b: str
    metric: str
    higher_is_better: bool
    score_a: float
    score_b: float
    difference: float
    alternative: str
    n_items: int
    n_units: int
    n_discordant: int
    method: str
    n_trials: int
    n_extreme: int
    p_value: float
    p_interval: tuple[float, float]
    p_adjusted: float | None = None
    r12: float | None = None
    second_run: SecondRun | None = None
    exact: Exact | None = None
    checks: tuple[Check, ...] = ()
    dependence: tuple[Dependence, ...] = ()
    beside: tuple[Beside, ...] = ()
    notes: tuple[Note, ...] = ()
    signature: str | None = None
    stopped: Stopped | None = None
    p_adjusted_interval: tuple[float, float] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the notes say, as it is printed."""
        return texts(self.notes)

    def disagreements(self) -> tuple[Check, ...]:
        """Return the cross-checks that disagree."""
        return tuple(check for check in self.checks if check.verdict == "disagrees")

    def better(self) -> str | None:
        """Return the system with the better score, None at a tie."""
        if self.difference == 0:
            return None
        return self.a if (self.difference > 0) == self.higher_is_better else self.b

    def is_undecided(self, alpha: float) -> bool:
        """Say whether the interval straddles alpha, so that more trials could turn the verdict."""
        return self.p_interval[0] <= alpha < self.p_interval[1]

    @property
    def n_asked(self) -> int:
        """Trials asked for: more than were counted where a rule stopped."""
        return self.n_trials if self.stopped is None else self.stopped.n_asked

    @property
    def is_settled(self) -> bool:
        """Whether a rule to stop early has had its say: more trials are not asked for."""
        return self.stopped is not None and (self.stopped.is_early or self.n_trials >= self.stopped.n_asked)

    def verdict(self, alpha: float) -> str:
        """Say in words what p means at alpha; where it was adjusted, what the adjusted p means."""
        return {True: "significant", False: "not significant", None: f"undecided at {alpha:g}"}[self.decision(alpha)]

    def decision(self, alpha: float) -> bool | None:
        """Return whether the difference is significant at alpha, of p as for `verdict`; None where it is undecided."""
        if self.stopped is not None and self.stopped.rule == "confidence-sequence":
            return self.stopped.is_significant
        if self.p_adjusted is not None:
            return bool(self.p_adjusted <= alpha)
        if self.is_undecided(alpha) and not self.is_settled:
            return None
        return bool(self.p_value <= alpha)


@dataclass(frozen=True, slots=True)
class Results(Sequence[Result]):
    """All comparisons of one call, with what makes them repeatable.

    Attributes
    ----------
    results : tuple of Result
        In the order of subsets, pairs and metrics.
    seed : int
        Of the stream.
    alpha : float
        Level of the verdicts.
    notes : tuple of Note
        On the whole; `warnings` are their texts.
    family : FamilyNote or None
        How p-values were adjusted.
    together : tuple of ResultAcrossSets
        Verdicts over several sets, where asked for.
    """

    results: tuple[Result, ...]
    seed: int
    alpha: float
    notes: tuple[Note, ...] = ()
    family: FamilyNote | None = None
    together: tuple[ResultAcrossSets, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | Sequence[Result]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the notes say, as it is printed."""
        return texts(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes."""
        return {
            "sigdask": version("sigdask"),
            "scheme": SCHEME,
            "seed": self.seed,
            "alpha": self.alpha,
            "warnings": list(self.warnings),
            "notes": plain(dicts(self.notes)),
            "family": plain(self.family),
            "results": [plain(_result_dict(result)) for result in self.results],
            "rankings": plain(self.rankings()),
            "together": plain(self.together),
        }

    def rankings(self) -> list[Ranking]:
        """Rank the systems of each test set, subset and metric of which all pairs were compared, two-sided."""
        grouped: dict[tuple[str, str | None, str], list[Result]] = {}
        for r in self.results:
            grouped.setdefault((r.test_set, r.subset["value"] if r.subset else None, r.metric), []).append(r)
        return [_ranking(own, self.alpha) for own in grouped.values() if _all_pairs(own)]

    def to_json(self) -> str:
        """Return the JSON text that `--json` writes."""
        return as_json(self.to_dict())

    def achieved_significance(self) -> list[float]:
        """Return the achieved-significance curve: all p-values, the largest first (Sakai 2006)."""
        return achieved_significance([r.p_value for r in self.results])

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame, one row a comparison.

        Parameters
        ----------
        library : str
            "pandas" (`sigdask[frame]`), "polars" or "pyarrow" (`sigdask[parquet]`); any module with
            `DataFrame(columns)` or `table(columns)`.
        """
        flat = [_flat(result) for result in self.results]
        columns = {key: [row[key] for row in flat] for key in (flat[0] if flat else ())}
        try:
            module = importlib.import_module(library)
        except ImportError:
            raise _missing_frame(library) from None
        make = getattr(module, "DataFrame", None) or module.table
        return make(columns)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Systems by score, with letters: those that share one are not told apart.

    Attributes
    ----------
    test_set : str
        Its name.
    subset : dict or None
        {"column", "value"} of `--by`.
    metric : str
        As it was asked for.
    discriminative_power : float
        Share of pairs with unadjusted p at most alpha (Sakai 2006).
    systems : tuple of Ranked
        Best first.
    """

    test_set: str
    subset: dict[str, str] | None
    metric: str
    discriminative_power: float
    systems: tuple[Ranked, ...]


MOST_RANKED = 500
"""Systems up to which letters are worked out."""


def _all_pairs(results: Sequence[Result]) -> bool:
    systems = {name for r in results for name in (r.a, r.b)}
    pairs = {frozenset((r.a, r.b)) for r in results}
    if any(r.alternative != "two-sided" for r in results):  # the other direction is not tested
        return False
    return 3 <= len(systems) <= MOST_RANKED and len(pairs) == len(systems) * (len(systems) - 1) // 2


def _ranking(results: Sequence[Result], alpha: float) -> Ranking:
    scores: dict[str, float] = {}
    for r in sorted(results, key=lambda r: -r.n_items):  # where items are missing, the pair that has most of them
        scores.setdefault(r.a, r.score_a)
        scores.setdefault(r.b, r.score_b)
    apart = [(r.a, r.b) for r in results if r.decision(alpha)]
    first = results[0]
    ranked = ranking(list(scores.items()), apart, higher_is_better=first.higher_is_better)
    power = discriminative_power([_p_or_decision(r, alpha) for r in results], alpha)
    return Ranking(first.test_set, first.subset, first.metric, power, tuple(ranked))


def _p_or_decision(result: Result, alpha: float) -> float:
    """Return p; where a rule decides without one, 0 for significant and 1 for not."""
    return result.p_value if not math.isnan(result.p_value) else float(not result.decision(alpha))


FRAMES = {"pandas": "frame", "pyarrow": "parquet"}
"""Libraries of data frames that come with an extra."""


def _missing_frame(library: str) -> InputError:
    if library in FRAMES:
        return missing_extra(library, FRAMES[library], f"to_frame({library!r})")
    return InputError(
        f"to_frame({library!r}) needs {library}, which is not installed; without a name it takes pandas: "
        f"pip install 'sigdask[{FRAMES['pandas']}]'"
    )


def _flat(result: Result) -> dict[str, Any]:
    row = {k: v for k, v in asdict(result).items() if not isinstance(v, dict | tuple | list)}
    row["subset"] = result.subset["value"] if result.subset else None
    for name in ("second_run", "exact", "p_adjusted_interval"):
        row.pop(name, None)
    row["p_low"], row["p_high"] = result.p_interval
    row["p_adjusted_low"], row["p_adjusted_high"] = result.p_adjusted_interval or (None, None)
    row["second_run_p_value"] = result.second_run.p_value if result.second_run else None
    row["agreement_p"] = result.second_run.agreement_p if result.second_run else None
    row["disagreements"] = ", ".join(check.name for check in result.disagreements())
    return row


def _result_dict(result: Result) -> dict[str, Any]:
    return {**asdict(result), "warnings": result.warnings, "notes": dicts(result.notes)}
