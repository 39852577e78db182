"""What a table in a paper holds, whoever writes it: systems by metrics, or a row a comparison; made by column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.options import PRINTED, Layout
from sigdask.report.methods.description import sentences, sources, used
from sigdask.report.summary.amounts import LARGEST_PLAIN, in_points
from sigdask.report.tables.cells import letters_text
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection
from sigdask.results.adjusted import intervals_to_show
from sigdask.results.columns.coded import Coded, Subset, Value
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.ranking import SystemScores, groups, is_ranked, ranking_of, scored
from sigdask.results.table import Table
from sigdask.statistics.letters import best
from sigdask.statistics.rounding import limits_text, p_text, score_text, signed

LEAST_PLAIN = 1e-9
"""Below which numbers other than 0 are written in scientific notation, whatever decimals were asked for."""

NONE = "–"
"""Stands where there is no score."""

BETTER, WORSE, SIGNIFICANT, UNDECIDED, ALARM, SKEWED = "†", "‡", "*", "?", "!", "§"
"""Marks of verdicts: of systems against a baseline, and of comparisons."""

LOWER = " ↓"
"""After metrics of which less is better."""


def tables(
    results: ComparisonResults, layout: str | None = None, digits: int | None = None, *, percent: bool = False
) -> list[PaperTable]:
    """Lay out results: one table, and another of verdicts over several sets where there are any.

    Parameters
    ----------
    results : ComparisonResults
        What was found.
    layout : {"systems", "pairs"}, optional
        Systems by metrics, or a row a comparison; by default systems where all pairs of three or more were compared,
        or two or more with one baseline.
    digits : int, optional
        Decimals of scores; by default four, two of per cent, and six digits of large ones.
    percent : bool
        Write accuracy, F1 and other shares of 1 in per cent.

    Raises
    ------
    InputError
        There is no such layout, or so many decimals.
    """
    PRINTED["layout"].check("layout", layout)
    PRINTED["digits"].check("digits", digits)
    if percent:
        results, digits = in_percent(results), 2 if digits is None else digits
    table = results.table
    own = _ComparisonGroups.of(table)
    layout = layout or own.layout
    by_system = layout == "systems" and len(table)
    made = _by_system(results, own, digits) if by_system else _by_pair(results, digits)
    return [made, *([_together(results, digits)] if results.together else [])]


def in_percent(results: ComparisonResults) -> ComparisonResults:
    """Return results whose shares of 1 are per cent, under names that say so."""
    table = results.table
    shares = in_points(table)
    if not shares:
        return results
    scale = np.where([score.name in shares for score in table.metric.values], 100.0, 1.0)[table.metric.codes]
    named = {name: f"{name} (%)" for name in shares}
    metrics = tuple(replace(score, name=named.get(score.name, score.name)) for score in table.metric.values)
    own, beside = table.intervals, table.adjusted
    made = replace(
        table, metric=Coded(table.metric.codes, metrics), score_a=scale * table.score_a, score_b=scale * table.score_b,
        difference=scale * table.difference,
        intervals=own and replace(own, low=scale * own.low, high=scale * own.high),
        assumptions=table.assumptions
        and replace(table.assumptions, cancelling_size=scale * table.assumptions.cancelling_size),
        adjusted=beside and replace(beside, low=scale * beside.low, high=scale * beside.high),
    )  # fmt: skip
    together = tuple(
        replace(one, metric=named[one.metric], difference=100 * one.difference) if one.metric in named else one
        for one in results.together
    )
    return replace(results, table=made, together=together)


def natural(table: Table) -> Layout:
    """Return the layout that comparisons have by themselves."""
    return _ComparisonGroups.of(table).layout


@dataclass(frozen=True, slots=True, eq=False)
class _ComparisonGroups:
    """The comparisons of each test set, subset and metric, and what can be marked of all of them.

    Attributes
    ----------
    tables : list of Table
        One of each.
    scores : list of SystemScores
        Their systems.
    design : {"letters", "baseline", ""}
        All pairs were compared, two-sided, or all systems with one; or neither.
    """

    tables: list[Table]
    scores: list[SystemScores]
    design: str

    @staticmethod
    def of(table: Table) -> _ComparisonGroups:
        own = [table if len(rows) == len(table) else table.take(rows) for rows in groups(table)]
        scores = [scored(each) for each in own]
        if own and all(map(is_ranked, own)):
            return _ComparisonGroups(own, scores, "letters")
        return _ComparisonGroups(own, scores, "baseline" if own and all(map(_has_baseline, scores)) else "")

    @property
    def layout(self) -> Layout:
        return "systems" if self.design and max(len(each.systems) for each in self.scores) > 2 else "pairs"


def _has_baseline(own: SystemScores) -> bool:
    """Say whether every other system was compared with one that is B."""
    return bool((own.b == own.b[0]).all()) and len(own.a) == len(own.systems) - 1


def _by_system(results: ComparisonResults, own: _ComparisonGroups, digits: int | None) -> PaperTable:
    """Return a row a system, a column a metric, a section for each test set and subset."""
    metrics = {table.metric[0].name: table.metric[0].higher_is_better for table in own.tables}
    systems = _order(own)
    sections: dict[tuple[str, Subset | None], dict[str, TableColumn]] = {}
    for table, scores in zip(own.tables, own.scores, strict=True):
        column = _scores_column(table, scores, own.design, systems, digits)
        sections.setdefault((table.test_set[0], table.subset[0]), {})[table.metric[0].name] = column
    made = [
        TableSection(
            heading, _present((TableColumn("system", systems, is_name=True), *_all_metrics(columns, metrics, systems)))
        )
        for heading, columns in zip(_headings([*sections]), sections.values(), strict=True)
    ]
    title = f"Scores of {len(systems):,} systems{_on(results.table)}."
    legend = ["Best scores in bold.", *_marks_of_systems(results, own), *_lower(metrics), *_skewed(results.table)]
    cited = ("piepho2004",) if own.design == "letters" else ()
    return _described(PaperTable(title, tuple(made), tuple(legend)), results, cited)


def _order(own: _ComparisonGroups) -> list[str]:
    """Return all systems, the best by the first metric first, and a baseline before all."""
    scores, table = own.scores[0], own.tables[0]
    sign = -1 if table.metric[0].higher_is_better else 1
    first = np.argsort(sign * scores.scores, kind="stable")  # NaN stand last
    names = [scores.systems[k] for k in first.tolist()]
    baseline = [scores.systems[int(scores.b[0])]] if own.design == "baseline" else []
    return [*dict.fromkeys((*baseline, *names, *(name for each in own.scores for name in each.systems)))]


def _scores_column(table: Table, own: SystemScores, design: str, systems: list[str], digits: int | None) -> TableColumn:
    """Return the scores by one metric, in the order of all systems."""
    metric = table.metric[0]
    is_best = best(own.scores, higher_is_better=metric.higher_is_better)
    marks = dict(zip(own.systems, _system_marks(table, own, design), strict=True))
    texts = dict(zip(own.systems, numbers(own.scores, digits), strict=True))
    bold = dict(zip(own.systems, is_best.tolist(), strict=True))
    return TableColumn(
        _header(metric.name, metric.higher_is_better),
        [texts.get(name, "") for name in systems],
        bold=np.array([bold.get(name, False) for name in systems]),
        marks=[marks.get(name, "") for name in systems] if design else None,
    )


def _system_marks(table: Table, own: SystemScores, design: str) -> list[str]:
    if design == "letters":
        letters = {one.system: letters_text(one.letters) for one in ranking_of(table).systems}
        return [letters[name] for name in own.systems]
    marks = [""] * len(own.systems)
    if design == "baseline":
        better = (table.difference > 0) == table.metric[0].higher_is_better
        verdicts = np.where(better, BETTER, WORSE)
        for place, decision, verdict in zip(own.a.tolist(), table.decision.tolist(), verdicts.tolist(), strict=True):
            marks[place] = ("", verdict, UNDECIDED)[decision]
    return marks


def _all_metrics(columns: dict[str, TableColumn], metrics: dict[str, bool], systems: list[str]) -> list[TableColumn]:
    """Return a column of every metric, empty ones where a section is without."""
    nothing = [""] * len(systems)
    return [columns.get(name, TableColumn(_header(name, higher), nothing)) for name, higher in metrics.items()]


def _present(columns: tuple[TableColumn, ...]) -> tuple[TableColumn, ...]:
    """Leave out systems without any score in a section."""
    rows = [k for k, texts in enumerate(zip(*(column.texts for column in columns[1:]), strict=True)) if any(texts)]
    return columns if len(rows) == len(columns[0].texts) else tuple(column.chosen(rows) for column in columns)


def _headings(sections: Sequence[tuple[str, Subset | None]]) -> list[str]:
    """Say of which test set and subset each section is, as far as they differ."""
    several = len({name for name, _ in sections}) > 1
    return [
        ", ".join(([name] if several else []) + ([f"{subset.column}: {subset.value}"] if subset else []))
        for name, subset in sections
    ]


def _header(metric: str, higher_is_better: bool) -> str:
    return metric if higher_is_better else metric + LOWER


def _lower(metrics: dict[str, bool]) -> list[str]:
    return [] if all(metrics.values()) else [f"Of metrics with{LOWER}, less is better."]


def _marks_of_systems(results: ComparisonResults, own: _ComparisonGroups) -> list[str]:
    alpha = f"{results.alpha:g}"
    if own.design == "letters":
        return [f"Systems that share a letter are not significantly different at {alpha}."]
    if own.design == "":
        return ["Neither all pairs nor all systems with one baseline were compared both ways: no letters."]
    scores, table = own.scores[0], results.table
    undecided = [f"{UNDECIDED}: undecided."] if bool((table.decision == -1).any()) else []
    baseline = scores.systems[int(scores.b[0])]
    return [f"{BETTER}, {WORSE}: significantly better, worse than {baseline} at {alpha}.", *undecided]


def _skewed(table: Table) -> list[str]:
    """Say in how many comparisons few units decide, where there are any."""
    n = int(np.count_nonzero(table.is_skewed))
    of = f"{n:,} of {len(table):,} comparisons"
    return [f"In {of} few units decide or the differences of units are skewed."] if n else []


def _by_pair(results: ComparisonResults, digits: int | None) -> PaperTable:
    """Return a row a comparison."""
    table = results.table
    higher = np.array([score.higher_is_better for score in table.metric.values], np.bool_)[table.metric.codes]
    ahead = np.sign(table.difference) * np.where(higher, 1, -1)
    metrics = {score.name: score.higher_is_better for score in used(table.metric)}
    shared = [
        TableColumn("test set", table.test_set.listed(), is_name=True),
        TableColumn("subset", _listed(table.subset, lambda one: one.value if one else ""), is_name=True),
    ]
    columns = [
        *(column for column in shared if len(set(column.texts)) > 1),
        TableColumn("A", table.a.listed(), is_name=True),
        TableColumn("B", table.b.listed(), is_name=True),
        *([] if len(metrics) == 1 else [_metric_column(table)]),
        TableColumn("score A", numbers(table.score_a, digits), bold=ahead > 0),
        TableColumn("score B", numbers(table.score_b, digits), bold=ahead < 0),
        TableColumn("A - B", numbers(table.difference, digits, sign=True)),
        *_interval_columns(table, digits),
        *_p_columns(table),
    ]
    legend = ["Better scores in bold.", *_marks_of_pairs(results), *_lower(metrics)]
    n = "One comparison" if len(table) == 1 else f"{len(table):,} comparisons"
    title = f"{n} of systems{_on(table)}{_by(table)}."
    return _described(PaperTable(title, (TableSection("", tuple(columns)),), tuple(legend)), results, intervals=True)


def _on(table: Table) -> str:
    """Name the test set, where there is one that has a name."""
    names = used(table.test_set)
    return f" on {names[0]}" if len(names) == 1 and names[0] else ""


def _metric_column(table: Table) -> TableColumn:
    texts = _listed(table.metric, lambda one: _header(one.name, one.higher_is_better))
    return TableColumn("metric", texts, is_name=True)


def _by(table: Table) -> str:
    """Name the metric, where there is one alone."""
    names = {score.name: score.higher_is_better for score in used(table.metric)}
    return "".join(f" by {_header(name, higher)}" for name, higher in names.items()) if len(names) == 1 else ""


def _interval_columns(table: Table, digits: int | None) -> list[TableColumn]:
    own, kind = intervals_to_show(table)
    if own is None or bool(np.isnan(own.low).all()):
        return []
    low, high = numbers(own.low, digits), numbers(own.high, digits)
    there = (~np.isnan(own.low)).tolist()
    name = " / ".join(f"{100 * share:.4g} %" for share in np.unique(own.confidence[there]).tolist())
    texts = [f"[{a}, {b}]" if has else "" for a, b, has in zip(low, high, there, strict=True)]
    return [TableColumn(f"{kind}{name} interval", texts)]


def _p_columns(table: Table) -> list[TableColumn]:
    """Return p and adjusted p, where there is any; the last has the marks of verdicts."""
    adjusted = not bool(np.isnan(table.p_adjusted).all())
    marks = [*np.array(("", SIGNIFICANT, UNDECIDED), object)[table.decision]]
    for row in np.flatnonzero(table.disagrees).tolist():
        marks[row] += ALARM
    for row in np.flatnonzero(table.is_skewed).tolist():
        marks[row] += SKEWED
    single = p_texts(table.p_value, table.alpha)
    for row in np.flatnonzero(np.isnan(table.p_value)).tolist():  # a rule, or bounds, may give no more
        single[row] = limits_text(float(table.p_low[row]), float(table.p_high[row]), table.alpha)
    if not adjusted:
        return [TableColumn("p", single, marks=marks, is_p=True)]
    judged = p_texts(table.p_adjusted, table.alpha)
    return [TableColumn("p", single, is_p=True), TableColumn("adjusted p", judged, marks=marks, is_p=True)]


def _marks_of_pairs(results: ComparisonResults) -> Iterator[str]:
    table = results.table
    if bool((table.decision == 1).any()):
        yield f"{SIGNIFICANT}: significant at {results.alpha:g}."
    if bool((table.decision == -1).any()):
        yield f"{UNDECIDED}: undecided at {results.alpha:g}; more trials would tell."
    if bool(table.disagrees.any()):
        yield f"{ALARM}: a cross-check disagrees; do not use this p."
    if bool(table.is_skewed.any()):
        yield f"{SKEWED}: few units decide, or the differences of units are skewed."


def _together(results: ComparisonResults, digits: int | None) -> PaperTable:
    """Return a row a verdict over all sets."""
    found = results.together
    p = [np.array([np.nan if v is None else v for v in values], np.float64)
         for values in ((one.p_value for one in found), (one.p_adjusted for one in found))]  # fmt: skip
    difference = np.array([one.difference for one in found], np.float64)
    judged = np.where(np.isnan(p[1]), p[0], p[1])
    marks = [SIGNIFICANT if value <= results.alpha else "" for value in judged.tolist()]
    adjusted = not bool(np.isnan(p[1]).all())
    columns = [
        TableColumn("A", [one.a for one in found], is_name=True),
        TableColumn("B", [one.b for one in found], is_name=True),
        TableColumn("metric", [one.metric for one in found], is_name=True),
        TableColumn("sets", [f"{one.n_sets}" for one in found]),
        TableColumn("mean A - B", numbers(difference, digits, sign=True)),
        TableColumn("p", p_texts(p[0], results.alpha), marks=None if adjusted else marks, is_p=True),
        *([TableColumn("adjusted p", p_texts(p[1], results.alpha), marks=marks, is_p=True)] if adjusted else []),
        TableColumn("A above B in", [f"{one.greater_in}" for one in found]),
        TableColumn("below in", [f"{one.less_in}" for one in found]),
    ]
    legend = (
        "A above B in, below in: in at least how many sets, each direction shown for the pair alone.",
        f"{SIGNIFICANT}: significant at {results.alpha:g}.",
    )
    title = "Verdicts over all sets: the mean difference."
    return _described(PaperTable(title, (TableSection("", tuple(columns)),), legend), results, ("benjamini2008",))


def _described(
    made: PaperTable, results: ComparisonResults, cited: Sequence[str] = (), *, intervals: bool = False
) -> PaperTable:
    """Say of a table how its p-values were had, and its intervals where it shows them."""
    method, keys = sentences(results, intervals=intervals), sources(results, intervals=intervals)
    return replace(made, method=(*method,), sources=(*keys, *cited), warnings=results.warnings)


def numbers(values: NDArray[np.float64], digits: int | None, *, sign: bool = False) -> list[str]:
    """Write scores, with so many decimals or as everywhere."""
    if digits is None:
        write = signed if sign else score_text
        return [write(value) if value == value else NONE for value in values.tolist()]  # noqa: PLR0124
    plus = "+" if sign else ""
    return [NONE if math.isnan(v) else format(v, f"{plus}.{digits}{_notation(v)}") for v in values.tolist()]


def _notation(value: float) -> str:
    """Return how a number is written with so many decimals: very large and very small ones in scientific notation."""
    return "f" if value == 0 or LEAST_PLAIN <= abs(value) < LARGEST_PLAIN else "e"


def p_texts(p: NDArray[np.float64], alpha: float) -> list[str]:
    """Write p-values, each distinct one once; nothing where there is none."""
    distinct, places = np.unique(p, return_inverse=True)
    texts = ["" if value != value else p_text(value, alpha) for value in distinct.tolist()]  # noqa: PLR0124
    return [texts[place] for place in places.reshape(-1).tolist()]


def _listed(column: Coded[Value], of: Callable[[Value], str]) -> list[str]:
    """Return what is taken `of` each row's value, made once for each."""
    texts = [of(value) for value in column.values]
    return [texts[code] for code in column.codes.tolist()]
