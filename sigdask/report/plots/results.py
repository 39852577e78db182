"""Which pictures results have, and what stands on them: columns of a table become figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.candidate_rankings.results import Measure, RankingEvaluation
from sigdask.analysis.details.null_distribution import NullDistribution
from sigdask.errors import InputError
from sigdask.report import plots
from sigdask.report.plots.curves import NBestCurve
from sigdask.results.adjusted import intervals_to_show
from sigdask.results.ranking import SystemRanking, groups, is_ranked, ranking_of
from sigdask.results.table import Table
from sigdask.statistics.rounding import limits_text, p_equals
from sigdask.text import count_noun, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_IN_FOREST = 120
"""Comparisons of a forest plot; of more, those with the best system, or with the smallest p."""

MOST_IN_MATRIX = 200
"""Systems of a matrix."""

FEWEST_IN_CURVE = 10
"""Comparisons from which achieved significance is drawn."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that can be drawn.

    Attributes
    ----------
    kind : str
        What it shows, in a word.
    of : tuple of str
        Test set, subset and metric, as far as it is of one.
    draw : callable
        Returns the figure.
    """

    kind: str
    of: tuple[str, ...]
    draw: Callable[[], Figure]


def pictures(table: Table) -> Iterator[Picture]:
    """Yield the pictures that fit: of each test set, subset and metric, then of each test set."""
    for rows in groups(table):
        own = table.take(rows)
        yield Picture("forest", of(own), partial(forest, own))
        if is_ranked(own):
            yield Picture("critical-difference", of(own), partial(critical_difference, own))
            if len(ranking_of(own).systems) <= MOST_IN_MATRIX:
                yield Picture("matrix", of(own), partial(matrix, own))
    for code in np.unique(table.test_set.codes).tolist():
        own = table.take(np.flatnonzero(table.test_set.codes == code))
        if np.count_nonzero(~np.isnan(own.p_value)) >= FEWEST_IN_CURVE:
            draw = partial(achieved_significance, own)
            yield Picture("achieved-significance", tuple(filter(None, [table.test_set.values[code]])), draw)


def of_one(table: Table, test_set: str | None, subset: str | None, metric: str | None) -> Table:
    """Return the rows of one test set, subset and metric.

    Raises
    ------
    InputError
        There is none, or several: it names them.
    """
    asked = {"test_set": test_set, "subset": subset, "metric": metric}
    parts = {_key(own): rows for rows in groups(table) if _fits(own := table.take(rows[:1]), asked)}
    if len(parts) == 1:
        return table.take(next(iter(parts.values())))
    names = {name: [*dict.fromkeys(key[k] for key in parts)] for k, name in enumerate(asked)}
    several = {name: values for name, values in names.items() if len(values) > 1}
    if not parts:
        given = ", ".join(f"{name} = {value!r}" for name, value in asked.items() if value is not None)
        raise InputError(f"no comparison with {given} is in these results" if given else "there is nothing to draw")
    wanted = "; ".join(f"{name} is one of {listed([repr(v) for v in values])}" for name, values in several.items())
    raise InputError(f"a figure is of one test set, subset and metric: name which ({wanted})")


def forest(table: Table) -> Figure:
    """Draw the differences of one test set, subset and metric."""
    own, best = _listed(table)
    sure, _ = intervals_to_show(own)
    nothing = np.full(len(own), np.nan)
    low, high = (nothing, nothing) if sure is None else (sure.low, sure.high)
    turned = np.array([b == best for b in own.b.listed()], np.bool_)
    pairs = [
        (b, a) if turn else (a, b)
        for a, b, turn in zip(own.a.listed(), own.b.listed(), turned.tolist(), strict=True)
    ]  # fmt: skip
    what = f"those with {'the smallest p' if best is None else 'the best system'}" if len(own) < len(table) else ""
    return plots.forest(
        pairs,
        np.where(turned, -own.difference, own.difference),
        np.where(turned, -high, low), np.where(turned, -low, high), own.decision,
        beside=_p_texts(own), title=_title(table), note=what and f"{len(own):,} of {len(table):,} comparisons: {what}",
        score=f"difference of {_score(table)}{_how_sure(own)}",
    )  # fmt: skip


def matrix(table: Table) -> Figure:
    """Draw every pair of one ranking."""
    ranking = _ranking(table)
    names = [system.system for system in ranking.systems]
    places = {name: k for k, name in enumerate(names)}
    a, b = (np.array([places[x] for x in column.listed()], np.int64) for column in (table.a, table.b))
    adjusted = _adjusted(table)
    p, better, found = (np.full((len(names),) * 2, fill) for fill in (np.nan, np.int8(0), False))
    gain = np.sign(table.difference) * (1 if table.metric[0].higher_is_better else -1)
    side = np.nan_to_num(gain).astype(np.int8)
    for rows, columns, way in ((a, b, side), (b, a, -side)):
        p[rows, columns] = adjusted
        better[rows, columns] = way
        found[rows, columns] = table.decision == 1
    is_adjusted = not bool(np.isnan(table.p_adjusted).all())
    return plots.matrix(names, p, better, found, table.alpha, title=_title(table), adjusted=is_adjusted)


def critical_difference(table: Table) -> Figure:
    """Draw the systems of one ranking, and the groups that are not significantly different."""
    ranking = _ranking(table)
    members: dict[str, list[int]] = {}
    for place, system in enumerate(ranking.systems):
        for letter in system.letters:
            members.setdefault(letter, []).append(place)
    return plots.critical_difference(
        [system.system for system in ranking.systems],
        np.array([system.score for system in ranking.systems]),
        [*members.values()],
        higher_is_better=table.metric[0].higher_is_better,
        title=", ".join(of(table)[:-1]),
        score=_score(table),
    )


def achieved_significance(table: Table) -> Figure:
    """Draw the p-values of all comparisons, a curve a metric (and test set and subset, where there are several)."""
    several = len({_key(table.take(rows[:1]))[:2] for rows in groups(table)}) > 1
    curves = {}
    for rows in groups(table):
        own = table.take(rows)
        name = ", ".join(of(own)) if several else own.metric[0].name
        curves[name] = own.p_value
    return plots.achieved_significance(curves, table.alpha, title="" if several else ", ".join(of(table)[:-1]))


def null(table: Table, row: int, found: NullDistribution) -> Figure:
    """Draw the null distribution of one comparison."""
    own, bars = table.take(slice(row, row + 1)), found.histogram
    edges = np.asarray(bars.low + bars.width * np.arange(len(bars.counts) + 1), np.float64)
    made_of = "all arrangements" if found.is_whole else count_noun(found.n_trials, "trial")
    return plots.null_distribution(
        edges, bars.counts, found.observed, alternative=own.alternative[0],
        title=f"{own.a[0]} − {own.b[0]}: {_title(own)}",
        score=f"difference of {_score(own)} with outputs exchanged: {made_of}",
        beside=f"observed: {_p_texts(own)[0]}",
    )  # fmt: skip


def _ranking(table: Table) -> SystemRanking:
    if not is_ranked(table):
        raise InputError(
            "this figure is of three systems or more of which every two were compared, two-sided: leave out pairs and "
            "baseline"
        )
    return ranking_of(table)


def _listed(table: Table) -> tuple[Table, str | None]:
    """Return the rows of a forest plot, and the system that all differences are to be of, where they are turned to it.

    Of too many they are those of the best system, which is what is asked first; else those with the smallest p.
    """
    if len(table) <= MOST_IN_FOREST:
        return table, None
    if is_ranked(table):
        best = ranking_of(table).systems[0].system
        of_best = [best in pair for pair in zip(table.a.listed(), table.b.listed(), strict=True)]
        own = table.take(np.flatnonzero(of_best))
        if len(own) <= MOST_IN_FOREST:
            return own, best
    single = np.where(np.isnan(table.p_value), table.p_high, table.p_value)
    return table.take(np.lexsort((single, _adjusted(table)))[:MOST_IN_FOREST]), None


def _adjusted(table: Table) -> NDArray[np.float64]:
    return np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)


def _p_texts(table: Table) -> list[str]:
    """Write p beside each row: adjusted, where it is."""
    columns = (table.p_value, table.p_adjusted, table.p_low, table.p_high)
    return [_p_text(*row, alpha=table.alpha) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _p_text(p: float, adjusted: float, low: float, high: float, *, alpha: float) -> str:
    if not np.isnan(adjusted):
        return f"adjusted {p_equals(adjusted, alpha)}"
    return f"p in {limits_text(low, high, alpha)}" if np.isnan(p) else p_equals(p, alpha)


def _how_sure(table: Table) -> str:
    sure, kind = intervals_to_show(table)
    if sure is None or np.isnan(sure.low).all():
        return ""
    return f", {kind}{100 * float(np.nanmax(sure.confidence)):.4g} % intervals"


def _score(table: Table) -> str:
    score = table.metric[0]
    return score.name if score.higher_is_better else f"{score.name} (lower is better)"


def _key(table: Table) -> tuple[str, str, str]:
    subset = table.subset[0]
    return table.test_set[0], "" if subset is None else subset.value, table.metric[0].name


def of(table: Table) -> tuple[str, ...]:
    """Return test set, value of the subset and metric, as far as they have names."""
    return tuple(part for part in _key(table) if part)


def _title(table: Table) -> str:
    return ", ".join(of(table))


def _fits(table: Table, asked: dict[str, Any]) -> bool:
    return all(value is None or value == own for own, value in zip(_key(table), asked.values(), strict=True))


MOST_CURVES = 12
"""Measures whose curves are drawn."""


def n_best(found: RankingEvaluation, score: str) -> Figure:
    """Draw precision or recall of the n best of each measure, for each n."""
    curves = _curves(found, score)
    if not curves:
        raise InputError(f"no {score} of n best was found: there is nothing to draw")
    best = [m.measure for m in sorted(found.measures, key=_best_first) if m.measure in curves]
    shown = [name for name in curves if name in best[:MOST_CURVES]]
    more = f"{len(shown)} of {len(curves)} measures, of the best average precision"
    title = ": ".join(filter(None, [found.name, more if len(shown) < len(curves) else ""]))
    return plots.n_best_curves({name: curves[name] for name in shown}, title=title, score=score)


def _curves(found: RankingEvaluation, score: str) -> dict[str, NBestCurve]:
    names = ["n", score, "low", "high"] if score == "precision" else ["n", "recall", "recall_low", "recall_high"]
    rows = found.precision or (found.sampled if score == "precision" else ())
    points: dict[str, list[list[float]]] = {}
    for row in rows:
        points.setdefault(row.measure, []).append([getattr(row, name) for name in names])
    columns = {name: np.array(sorted(own)).T for name, own in points.items()}
    return {name: NBestCurve(own[0].astype(np.int64), *own[1:]) for name, own in columns.items()}


def _best_first(measure: Measure) -> float:
    return 0.0 if math.isnan(measure.average_precision) else -measure.average_precision
