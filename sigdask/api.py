"""Compare systems: from aligned counts to results. Wires the rooms, decides nothing twice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sigdask import crosscheck, metrics, outputs, panels
from sigdask.classical import correlations, sign_test
from sigdask.clusters import Cluster
from sigdask.counts import Counts
from sigdask.engine import Job, Progress, count_jobs
from sigdask.errors import InputError
from sigdask.metrics.base import BlackBox, BoundMetric, Metric
from sigdask.metrics.forms import Ratios
from sigdask.outputs import OutputsPanel
from sigdask.panels import Pair, Panel, PlacedPanel, Units
from sigdask.randomization import (
    DEFAULT_TRIALS,
    TAILS,
    Alternative,
    Tally,
    bound,
    interval,
    trials_to_decide,
)
from sigdask.results import Exact, Result, Results, SecondRun

Method = Literal["auto", "randomization", "exact", "both"]
AnyMetric = str | Metric | BlackBox


def compare(
    a: Sequence[Any] | NDArray[Any],
    b: Sequence[Any] | NDArray[Any],
    *,
    gold: Sequence[Any] | NDArray[Any] | None = None,
    metric: AnyMetric | None = None,
    names: tuple[str, str] = ("A", "B"),
    ids: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    **options: Any,
) -> Result:
    """Compare two systems given as arrays.

    Parameters
    ----------
    a, b : sequence, length n_items
        Item scores; with `gold`, labels.
    gold : sequence, length n_items, optional
        The right labels.
    metric : str, Metric or BlackBox, optional
        By default the mean of scores, or accuracy of labels.
    names : tuple of str
        What to call the systems.
    ids : sequence of str, optional
        Item ids; without them items are known by position.
    units : sequence of str, optional
        What is exchanged as a whole (documents, topics), for each item.
    **options
        As in `compare_all`.

    Returns
    -------
    Result

    Examples
    --------
    >>> result = compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0])
    >>> result.method, result.n_extreme, result.n_trials, result.p_value
    ('exact', 2, 8, 0.25)
    """
    systems = dict(zip(names, (a, b), strict=True))
    groups = {"unit": units} if units is not None else None
    if gold is None:
        counts = Counts.from_scores(systems, ids=ids, groups=groups)
    else:
        counts = Counts.from_labels(gold, systems, ids=ids, groups=groups)
    chosen = metric or ("mean" if gold is None else "accuracy")
    unit = "item" if units is None else "unit"
    return compare_all(counts, metrics=[chosen], unit=unit, **options)[0]


def compare_all(  # every option of the command line
    counts: Counts,
    *,
    metrics: Sequence[AnyMetric],
    pairs: Sequence[tuple[str, str]] | None = None,
    baseline: str | None = None,
    unit: str | None = None,
    by: str | None = None,
    alternative: Alternative = "two-sided",
    method: Method = "auto",
    trials: int | None = None,
    seed: int = 0,
    alpha: float = 0.05,
    second_run: bool = True,
    cluster: str | Cluster = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    blocks_per_task: int | None = None,
) -> Results:
    """Compare any number of systems under any number of metrics, on shared shuffles.

    The same data, seed and number of trials give the same counts on any machine, cluster and
    partition; another system, metric or pair changes no other count.

    Parameters
    ----------
    counts : Counts
        The aligned systems, from `sigdask.read` or a constructor of `Counts`.
    metrics : sequence of str, Metric or BlackBox
        Names as `sigdask metrics` lists them, `module:attribute`, or metrics themselves.
    pairs : sequence of (str, str), optional
        Systems to compare; by default all pairs.
    baseline : str, optional
        Compare every other system with this one only, which becomes `b`.
    unit : str, optional
        What is exchanged as a whole: "item" or a grouping column.
    by : str, optional
        Compare within each value of this grouping column.
    alternative : {"two-sided", "greater", "less"}
        Of score_a - score_b.
    method : {"auto", "randomization", "exact", "both"}
        auto: all arrangements where 20 or fewer units are discordant (12 for black boxes), random
        trials otherwise.
    trials : int, optional
        Random trials; 1,048,576 by default, 10,000 for black boxes.
    seed : int
        Of the stream; not negative.
    alpha : float
        Level of the verdicts.
    second_run : bool
        Cross-check by a second, independent run of as many trials.
    cluster, workers, progress, blocks_per_task
        As in `sigdask.engine.count_jobs`.

    Returns
    -------
    Results

    Raises
    ------
    InputError
        Something asked for cannot be had from these data; it says what and why.
    UnfinishedError
        The cluster was lost.
    """
    _check_options(alternative, method, trials, alpha)
    if not metrics:
        raise InputError("no metric given; `sigdask metrics` lists them")
    grouped = counts if unit is None else counts.with_unit(unit)
    asked = _Asked(
        counts=grouped,
        units=Units.of(grouped, seed),
        pairs=_pairs(grouped, pairs, baseline),
        method=method,
        trials=trials,
    )
    comparisons = list(_comparisons(asked, [_found(m) for m in metrics], by))
    jobs, slots = _jobs(comparisons, second_run=second_run)
    tallies = count_jobs(
        jobs, cluster=cluster, workers=workers, progress=progress, blocks_per_task=blocks_per_task
    )  # fmt: skip
    judged = _Judge(asked, alternative, alpha, sum(c.sampled for c in comparisons))
    results = tuple(judged.result(c, slots[k], tallies) for k, c in enumerate(comparisons))
    return Results(results, seed, alpha, counts.warnings)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    counts: Counts
    units: Units
    pairs: list[Pair]
    method: Method
    trials: int | None


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """One pair and metric: where it stands in its panel, and which arrangements are counted."""

    pair: Pair
    metric: BoundMetric | BlackBox
    subset: dict[str, str] | None
    mask: NDArray[np.bool_] | None
    panel: Panel | OutputsPanel
    row: int
    column: int
    n_discordant: int
    sampled: bool
    enumerated: bool
    n_trials: int

    def label(self, counts: Counts) -> str:
        """Return what is compared, for errors."""
        a, b = (counts.systems[k] for k in self.pair)
        return f"{a} and {b} by {self.metric.name}"


@dataclass(frozen=True, slots=True)
class _Slots:
    """Places in the list of jobs: (job, row) of each count of a comparison."""

    first: tuple[int, int] | None = None
    second: tuple[int, int] | None = None
    exact: int | None = None


def _check_options(alternative: str, method: str, trials: int | None, alpha: float) -> None:
    if alternative not in get_args(Alternative):
        raise InputError(f"alternative = {alternative!r}: must be one of {', '.join(get_args(Alternative))}")
    if method not in get_args(Method):
        raise InputError(f"method = {method!r}: must be one of {', '.join(get_args(Method))}")
    if trials is not None and trials < 1:
        raise InputError(f"trials = {trials}: must be at least 1")
    if not 0 < alpha < 1:
        raise InputError(f"alpha = {alpha}: must lie between 0 and 1")


def _found(metric: AnyMetric) -> Metric | BlackBox:
    return metrics.find(metric) if isinstance(metric, str) else metric


def _pairs(counts: Counts, pairs: Sequence[tuple[str, str]] | None, baseline: str | None) -> list[Pair]:
    place = {name: k for k, name in enumerate(counts.systems)}
    for name in [n for pair in pairs or [] for n in pair] + ([baseline] if baseline is not None else []):
        if name not in place:
            raise InputError(f"no system {name!r}; systems: {', '.join(counts.systems)}")
    if pairs is not None:
        return [(place[a], place[b]) for a, b in pairs]
    if baseline is not None:
        return [(k, place[baseline]) for k in range(counts.n_systems) if k != place[baseline]]
    return [(i, j) for i in range(counts.n_systems) for j in range(i + 1, counts.n_systems)]


def _subsets(counts: Counts, by: str | None) -> Iterator[tuple[dict[str, str] | None, NDArray[np.bool_] | None]]:
    if by is None:
        yield None, None
        return
    column = np.array(counts.group(by), dtype=object)
    for value in sorted(set(column)):
        yield {"column": by, "value": value}, column == value


def _comparisons(asked: _Asked, chosen: Sequence[Metric | BlackBox], by: str | None) -> Iterator[_Comparison]:
    bound_metrics = [m if isinstance(m, BlackBox) else m.bind(asked.counts) for m in chosen]
    summed = [m for m in bound_metrics if isinstance(m, BoundMetric)]
    for subset, mask in _subsets(asked.counts, by):
        placed = panels.build(asked.counts, asked.units, summed, asked.pairs, subset=mask) if summed else []
        where = {k: (p, row) for p in placed for row, k in enumerate(p.of_pairs)}
        for k, pair in enumerate(asked.pairs):
            for metric in bound_metrics:
                if isinstance(metric, BlackBox):
                    yield _black_box(asked, metric, pair, subset, mask)
                else:
                    yield _of_panel(asked, where[k], summed.index(metric), metric, pair, subset, mask)


def _of_panel(
    asked: _Asked,
    where: tuple[PlacedPanel, int],
    column: int,
    metric: BoundMetric,
    pair: Pair,
    subset: dict[str, str] | None,
    mask: NDArray[np.bool_] | None,
) -> _Comparison:
    placed, row = where
    n_discordant = int(placed.panel.n_discordant[row, column])
    sampled, enumerated = _how(asked, n_discordant, panels.ENUMERATED_UNITS, metric.name)
    return _Comparison(
        pair, metric, subset, mask, placed.panel, row, column, n_discordant, sampled, enumerated,
        asked.trials or DEFAULT_TRIALS,
    )  # fmt: skip


def _black_box(
    asked: _Asked, metric: BlackBox, pair: Pair, subset: dict[str, str] | None, mask: NDArray[np.bool_] | None
) -> _Comparison:
    panel = OutputsPanel.of(asked.counts, asked.units, metric, pair, mask)
    n_discordant = len(panel.discordant)
    sampled, enumerated = _how(asked, n_discordant, outputs.ENUMERATED_UNITS, metric.name)
    return _Comparison(
        pair, metric, subset, mask, panel, 0, 0, n_discordant, sampled, enumerated,
        asked.trials or outputs.DEFAULT_TRIALS,
    )  # fmt: skip


def _how(asked: _Asked, n_discordant: int, most: int, metric: str) -> tuple[bool, bool]:
    """Decide whether to sample and whether to enumerate."""
    feasible = n_discordant <= most
    if asked.method == "exact" and not feasible:
        raise InputError(
            f"method exact: {n_discordant} discordant units under {metric}, at most {most} are enumerated; "
            "use --method auto, which samples the larger ones"
        )
    enumerated = feasible and asked.method != "randomization"
    return not enumerated or asked.method == "both", enumerated


def _jobs(comparisons: Sequence[_Comparison], *, second_run: bool) -> tuple[list[Job], list[_Slots]]:
    """List what must be counted, and where each comparison finds its counts."""
    jobs: list[Job] = []
    shared = {id(panel): (panel, rows) for panel, rows in _sampled_rows(comparisons)}
    places: dict[int, tuple[int, dict[int, int]]] = {}
    for key, (panel, rows) in shared.items():
        n_trials = next(c.n_trials for c in comparisons if c.panel is panel)
        part = panel if isinstance(panel, OutputsPanel) or len(rows) == len(panel.pairs) else panel.only(rows)
        places[key] = (len(jobs), {row: k for k, row in enumerate(rows)})
        jobs += [Job(part, n_trials, run) for run in range(1 + second_run)]
    slots = []
    for c in comparisons:
        first = second = exact = None
        if c.sampled:
            job, rows_at = places[id(c.panel)]
            first = (job, rows_at[c.row])
            second = (job + 1, rows_at[c.row]) if second_run else None
        if c.enumerated:
            exact = len(jobs)
            jobs.append(_enumeration(c))
        slots.append(_Slots(first, second, exact))
    return jobs, slots


def _sampled_rows(comparisons: Sequence[_Comparison]) -> Iterator[tuple[Panel | OutputsPanel, list[int]]]:
    found: dict[int, tuple[Panel | OutputsPanel, set[int]]] = {}
    for c in comparisons:
        if c.sampled:
            found.setdefault(id(c.panel), (c.panel, set()))[1].add(c.row)
    for panel, rows in found.values():
        yield panel, sorted(rows)


def _enumeration(c: _Comparison) -> Job:
    if isinstance(c.panel, OutputsPanel):
        return Job(c.panel.enumeration(), 2**c.n_discordant)
    return Job(c.panel.enumeration(c.row, c.column), 2**c.n_discordant)


class _Judge:
    """Makes results of counts: bound, interval, checks, notes."""

    def __init__(self, asked: _Asked, alternative: Alternative, alpha: float, n_sampled: int) -> None:
        self.asked = asked
        self.alternative = alternative
        self.tail = TAILS.index(alternative)
        self.alpha = alpha
        self.n_sampled = max(n_sampled, 1)
        self._r12: dict[tuple[str, str | None], NDArray[np.float64]] = {}

    def result(self, c: _Comparison, slots: _Slots, tallies: Sequence[Tally]) -> Result:
        """Return one comparison's result."""
        counts = self.asked.counts
        score_a, score_b = self._scores(c)
        exact = self._exact(c, slots, tallies)
        if slots.first is None:
            n_trials, n_extreme = 2**c.n_discordant, self._extreme(tallies, (slots.exact or 0, 0), 0)
            p, limits = n_extreme / n_trials, (n_extreme / n_trials,) * 2
        else:
            n_trials, n_extreme = tallies[slots.first[0]].n_trials, self._extreme(tallies, slots.first, c.column)
            p, limits = bound(n_extreme, n_trials), interval(n_extreme, n_trials)
        again = self._second_run(c, slots, tallies, n_extreme)
        result = Result(
            test_set=counts.name,
            subset=c.subset,
            unit=counts.unit,
            a=counts.systems[c.pair[0]],
            b=counts.systems[c.pair[1]],
            metric=c.metric.name,
            higher_is_better=c.metric.higher_is_better,
            score_a=score_a,
            score_b=score_b,
            difference=score_a - score_b,
            alternative=self.alternative,
            n_items=c.panel.n_items if isinstance(c.panel, Panel) else len(c.panel.a),
            n_units=c.panel.n_units if isinstance(c.panel, Panel) else len(np.unique(c.panel.index)),
            n_discordant=c.n_discordant,
            method="exact" if slots.first is None else "approximate",
            n_trials=n_trials,
            n_extreme=n_extreme,
            p_value=p,
            p_interval=(limits[0], limits[1]),
            r12=self._correlation(c),
            second_run=again,
            exact=exact,
            checks=self._checks(c, n_extreme, n_trials, again, exact, sampled=slots.first is not None),
        )
        return _with_notes(result, c, self.alpha)

    def _extreme(self, tallies: Sequence[Tally], where: tuple[int, int], column: int) -> int:
        job, row = where
        return int(tallies[job].counts[row, column, self.tail])

    def _scores(self, c: _Comparison) -> tuple[float, float]:
        if isinstance(c.panel, OutputsPanel):
            return float(c.panel.scores[0, 0]), float(c.panel.scores[1, 0])
        i, j = c.panel.pairs[c.row]
        return float(c.panel.scores[i, c.column]), float(c.panel.scores[j, c.column])

    def _exact(self, c: _Comparison, slots: _Slots, tallies: Sequence[Tally]) -> Exact | None:
        if slots.exact is None:
            return None
        p = self._extreme(tallies, (slots.exact, 0), 0) / 2**c.n_discordant
        return Exact(p, p, "enumeration", "exact")

    def _second_run(self, c: _Comparison, slots: _Slots, tallies: Sequence[Tally], n_extreme: int) -> SecondRun | None:
        if slots.second is None:
            return None
        n_trials, again = tallies[slots.second[0]].n_trials, self._extreme(tallies, slots.second, c.column)
        agreement = crosscheck.runs_agree(n_extreme, again, n_trials)
        return SecondRun(n_trials, again, bound(again, n_trials), agreement)

    def _checks(
        self,
        c: _Comparison,
        n_extreme: int,
        n_trials: int,
        again: SecondRun | None,
        exact: Exact | None,
        *,
        sampled: bool,
    ) -> tuple[crosscheck.Check, ...]:
        checks = []
        if again is not None:
            checks.append(
                crosscheck.second_run(n_extreme, again.n_extreme, n_trials, again.agreement_p, self.n_sampled)
            )
        else:
            why = "not asked for" if sampled else "all arrangements were counted"
            checks.append(crosscheck.Check("second run", "not applicable", None, why))
        checks.append(self._sign_test(c, n_extreme, n_trials, sampled=sampled))
        if exact is not None and sampled:
            checks.append(
                crosscheck.against_known("exact value", exact.p_lo, n_extreme, n_trials, self.n_sampled, exact=False)
            )
        return tuple(checks)

    def _sign_test(self, c: _Comparison, n_extreme: int, n_trials: int, *, sampled: bool) -> crosscheck.Check:
        signs = _signs(c)
        if signs is None:
            return crosscheck.Check("sign test", "not applicable", None, "the score is not a mean of 0/1 item scores")
        if self.asked.counts.unit != "item":
            detail = f"{self.asked.counts.unit} is exchanged, not the item: another null hypothesis"
            return crosscheck.Check("sign test", "not applicable", None, detail)
        p = sign_test(*signs, self.alternative)
        return crosscheck.against_known("sign test", p, n_extreme, n_trials, self.n_sampled, exact=not sampled)

    def _correlation(self, c: _Comparison) -> float | None:
        """Return r12 where the metric is a mean over a fixed set of items."""
        if isinstance(c.metric, BlackBox) or not isinstance(c.panel, Panel) or not c.panel.linear[c.column]:
            return None
        counts = self.asked.counts
        if counts.present is not None:
            values = _item_scores(counts, c.metric, c.mask, list(c.pair))
            r = float(correlations(values)[0, 1])
        else:
            key = (c.metric.name, c.subset["value"] if c.subset else None)
            if key not in self._r12:
                self._r12[key] = correlations(_item_scores(counts, c.metric, c.mask, list(range(counts.n_systems))))
            r = float(self._r12[key][c.pair])
        return None if math.isnan(r) else r


def _item_scores(
    counts: Counts, metric: BoundMetric, mask: NDArray[np.bool_] | None, systems: list[int]
) -> NDArray[np.float64]:
    """Return numerators of the items that the denominator counts, shape (n_items, n_systems)."""
    form = metric.form
    assert isinstance(form, Ratios)
    shape = (counts.n_items, counts.n_systems)
    above, below = np.zeros(shape), np.zeros(shape)
    for name, up, down in zip(metric.fields, form.numerators[0], form.denominators[0], strict=True):
        field = np.broadcast_to(metric.field(name, counts), shape)
        above += up * field
        below += down * field
    kept = (below > 0).all(axis=1)
    if mask is not None:
        kept &= mask
    if counts.present is not None:
        kept &= counts.present[:, systems].all(axis=1)
    return above[kept][:, systems]


def _signs(c: _Comparison) -> tuple[int, int] | None:
    """Return wins and losses where all nonzero differences of a linear score are equally large."""
    if not isinstance(c.panel, Panel) or not c.panel.linear[c.column]:
        return None
    metric = c.panel.metrics[c.column]
    assert isinstance(metric.form, Ratios)
    i, j = c.panel.pairs[c.row]
    fields = list(metric.fields)
    weights = np.array(metric.form.numerators[0])
    differences = (c.panel.values[:, i][:, fields] - c.panel.values[:, j][:, fields]) @ weights
    nonzero = differences[differences != 0]
    if len(set(np.abs(nonzero).tolist())) > 1:
        return None
    return int(np.count_nonzero(nonzero > 0)), int(np.count_nonzero(nonzero < 0))


def _with_notes(result: Result, c: _Comparison, alpha: float) -> Result:
    notes = []
    if result.n_discordant == 0:
        notes.append("identical: no unit differs in what the metric counts")
    if isinstance(c.panel, Panel) and isinstance(form := c.panel.metrics[c.column].form, Ratios):
        for name, s in zip((result.a, result.b), c.panel.pairs[c.row], strict=True):
            if form.undefined(c.panel.totals[s][list(c.panel.metrics[c.column].fields)]):
                notes.append(f"{name}: 0/0 scored {form.zero_division:g}")
    if result.is_undecided(alpha):
        needed = trials_to_decide(result.n_extreme / result.n_trials, alpha)
        remedy = f"about {needed:,} trials would decide" if needed else "no number of trials is likely to decide"
        low, high = result.p_interval
        notes.append(f"undecided at {alpha:g}: the 99 % interval of p is {low:.4g} to {high:.4g}; {remedy}")
    return replace(result, warnings=tuple(notes))


def as_counts(scores: Any, **options: Any) -> Counts:
    """Return counts of a mapping or data frame of item scores, one column a system.

    Parameters
    ----------
    scores : mapping or data frame (pandas, polars)
        Column name to item scores.
    **options
        As in `Counts.from_scores`.
    """
    columns = scores.to_dict(as_series=False) if hasattr(scores, "get_column") else dict(scores.items())
    return Counts.from_scores({str(name): np.asarray(column) for name, column in columns.items()}, **options)
