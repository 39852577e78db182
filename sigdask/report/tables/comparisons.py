"""Paper tables of comparisons for all writers: systems by metrics, or one row per comparison."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.metrics import ONE_DECIMAL
from sigdask.options import PRINT_OPTIONS, Layout
from sigdask.report.methods.text import describe_test, list_sources, list_used
from sigdask.report.summary.sentences import MAX_PLAIN, find_metrics_in_points
from sigdask.report.summary.standings import join_phrases
from sigdask.report.tables.cells import (
    GROUPING_MEANINGS,
    explain_group_marks,
    format_groups,
    format_marked_p,
    mark_bounds,
)
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection, build_name_columns, collect_numbers
from sigdask.results.columns import EMPTY, CodedColumn, ScoredMetric, Subset
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.ranking import (
    SystemRanking,
    SystemScores,
    build_ranking,
    collect_scores,
    group_rows,
    is_agreement,
    is_ranked,
)
from sigdask.results.table import Table, select_intervals
from sigdask.statistics.ranking_letters import find_best
from sigdask.statistics.rounding import format_score, format_signed
from sigdask.text import capitalize_first, format_count, format_list

MIN_PLAIN = 1e-9
"""Smaller numbers other than 0 are written in scientific notation, whatever number of decimals is requested."""

NO_SCORE = "–"
"""Text in place of a missing score."""

BETTER, WORSE, SIGNIFICANT, UNDECIDED, ALARM, CONTESTED_MARK = "†", "‡", "*", "?", "!", "§"
"""Marks of verdicts: of systems against a baseline, and of comparisons."""

CONTESTED_MEANING = "only one of two tests rejects, that of swapped outputs or that of equal scores"
"""What a contested verdict means."""

MAX_IN_TITLE = 4
"""Maximum number of metrics that a table's title names."""

PERCENT_MARK = " (%)"
"""Mark of metrics whose shares are printed in per cent."""

LOWER_MARK = " ↓"
"""Mark of metrics for which lower is better."""


def build_tables(
    results: ComparisonResults, layout: str | None = None, digits: int | None = None, *, percent: bool = True
) -> list[PaperTable]:
    """Return a table of the comparisons, and one of verdicts over several sets if there are any.

    Parameters
    ----------
    results : ComparisonResults
        The results.
    layout : {"systems", "pairs"}, optional
        Systems by metrics, or one row per comparison. The default is systems if all pairs of three or more were
        compared, or two or more with one baseline.
    digits : int, optional
        Decimals of scores; by default those of `count_decimals`.
    percent : bool
        Whether accuracy, F1 and other shares are in per cent.

    Raises
    ------
    InputError
        The layout or the number of decimals is invalid.
    """
    PRINT_OPTIONS["layout"].check("layout", layout)
    PRINT_OPTIONS["digits"].check("digits", digits)
    if percent:
        results = convert_to_percent(results)
    table = results.table
    grouped = _ComparisonGroups.from_table(table)
    layout = layout or grouped.layout
    by_system = layout == "systems" and len(table)
    points = np.fmax(np.abs(table.score_a), np.abs(table.score_b)) > 1
    large = {table.metric.values[code].name for code in np.unique(table.metric.codes[points]).tolist()}
    names = [score.name for score in table.metric.values]
    decimals = {name: count_decimals(name, is_large=name in large) if digits is None else digits for name in names}
    main_table = _build_system_table(results, grouped, decimals) if by_system else _build_pair_table(results, decimals)
    return [main_table, *([_build_joint_table(results, decimals)] if results.together else [])]


def convert_to_percent(results: ComparisonResults) -> ComparisonResults:
    """Return results whose shares of 1 are percentages, with "(%)" in the metrics' names."""
    table = results.table
    shares = find_metrics_in_points(table)
    if not shares:
        return results
    scale = np.where([score.name in shares for score in table.metric.values], 100.0, 1.0)[table.metric.codes]
    new_names = {name: f"{name}{PERCENT_MARK}" for name in shares}
    metrics = tuple(replace(score, name=new_names.get(score.name, score.name)) for score in table.metric.values)
    intervals, adjusted = table.intervals, table.adjusted
    scaled = table.replace(
        metric=CodedColumn(table.metric.codes, metrics),
        score_a=scale * table.score_a,
        score_b=scale * table.score_b,
        difference=scale * table.difference,
        intervals=intervals and intervals.with_columns(low=scale * intervals.low, high=scale * intervals.high),
        adjusted=adjusted and adjusted.with_columns(low=scale * adjusted.low, high=scale * adjusted.high),
    )
    together = (
        replace(
            v,
            metric=new_names[v.metric],
            difference=100 * v.difference,
            interval=v.interval and (100 * v.interval[0], 100 * v.interval[1]),
        )
        if v.metric in shares
        else v
        for v in results.together
    )
    return replace(results, table=scaled, together=tuple(together))


def count_decimals(metric: str, *, is_large: bool) -> int | None:
    """Return the decimals that papers print of a metric; None for four, or six digits of large numbers.

    Examples
    --------
    >>> count_decimals("BLEU", is_large=True), count_decimals("f1 (%)", is_large=True)
    (1, 2)
    """
    if metric.endswith(PERCENT_MARK):
        return 2
    return 1 if is_large and re.split(r"[\[:]", metric, maxsplit=1)[0].casefold() in ONE_DECIMAL else None


def get_default_layout(table: Table) -> Layout:
    """Return the default layout for these comparisons."""
    return _ComparisonGroups.from_table(table).layout


@dataclass(frozen=True, slots=True, eq=False)
class _ComparisonGroups:
    """Comparisons by test set, subset and metric, and the design of comparisons that all these share.

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
    def from_table(table: Table) -> _ComparisonGroups:
        group_tables = [table if len(rows) == len(table) else table.take(rows) for rows in group_rows(table)]
        scores = [collect_scores(group_table) for group_table in group_tables]
        designs = {"letters": map(is_ranked, group_tables), "baseline": map(_has_baseline, scores)}
        design = next((name for name, fits in designs.items() if group_tables and all(fits)), "")
        return _ComparisonGroups(group_tables, scores, design)

    def list_groupings(self) -> list[str]:
        """Return how the rankings mark systems that are not significantly different, each way once."""
        groupings = {build_ranking(table).grouping for table in self.tables}
        return [name for name in GROUPING_MEANINGS if name in groupings]

    @property
    def layout(self) -> Layout:
        """The layout that fits the comparisons best."""
        return "systems" if self.design and max(len(scores.systems) for scores in self.scores) > 2 else "pairs"


def _has_baseline(system_scores: SystemScores) -> bool:
    """Return whether all other systems were compared with the same system B."""
    b = system_scores.b
    return bool((b == b[0]).all()) and len(b) == len(system_scores.systems) - 1


def _build_system_table(
    results: ComparisonResults, grouped: _ComparisonGroups, decimals: dict[str, int | None]
) -> PaperTable:
    """Return a table of systems by metrics, a section for each test set and subset."""
    headers = {_format_header(table.metric[0]): None for table in grouped.tables}
    systems = _order_systems(grouped)
    noun = "metric" if is_agreement(results.table) else "system"
    sections: dict[tuple[str, Subset | None], dict[str, TableColumn]] = {}
    for table, scores in zip(grouped.tables, grouped.scores, strict=True):
        column = _build_score_column(table, scores, grouped.design, systems, decimals)
        sections.setdefault((table.test_set[0], table.subset[0]), {})[column.header] = column
    has_several_sets = len({name for name, _ in sections}) > 1
    table_sections = []
    for (test_set, subset), columns in sections.items():
        parts = [test_set] if has_several_sets else []
        parts += [f"{subset.column}: {subset.value or EMPTY}"] if subset else []
        filled = [columns.get(header, TableColumn(header, [""] * len(systems))) for header in headers]
        rows = [k for k, texts in enumerate(zip(*(column.texts for column in filled), strict=True)) if any(texts)]
        names = TableColumn(noun, systems, is_name=True)
        table_sections.append(TableSection(", ".join(parts), tuple(c.select_rows(rows) for c in (names, *filled))))
    baseline = f" with the baseline {systems[0]}" if grouped.design == "baseline" else ""
    title = f"Scores of {len(systems):,} {noun}s{baseline}{_describe_test_set(results.table)}."
    legend = (
        "Best scores in bold.",
        *_describe_system_marks(results, grouped),
        *_describe_lower_mark(results.table),
    )
    cited = ("piepho2004",) if grouped.design == "letters" and "letters" in grouped.list_groupings() else ()
    return _add_description(PaperTable(title, tuple(table_sections), legend), results, cited)


def _order_systems(grouped: _ComparisonGroups) -> list[str]:
    """Return all systems: the baseline first, then the best by the first metric."""
    scores, table = grouped.scores[0], grouped.tables[0]
    sign = -1 if table.metric[0].higher_is_better else 1
    order = np.argsort(sign * scores.scores, kind="stable")  # NaN come last
    names = [scores.systems[k] for k in order.tolist()]
    baseline = [scores.systems[int(scores.b[0])]] if grouped.design == "baseline" else []
    all_names = (name for system_scores in grouped.scores for name in system_scores.systems)
    return [*dict.fromkeys((*baseline, *names, *all_names))]


def _build_score_column(
    table: Table, system_scores: SystemScores, design: str, systems: list[str], decimals: dict[str, int | None]
) -> TableColumn:
    """Return the column of systems' scores by one metric, in the order of `systems`."""
    metric = table.metric[0]
    is_best = find_best(system_scores.scores, higher_is_better=metric.higher_is_better)
    marks = dict(zip(system_scores.systems, _list_system_marks(table, system_scores, design), strict=True))
    texts = dict(zip(system_scores.systems, format_numbers(system_scores.scores, decimals[metric.name]), strict=True))
    bold = dict(zip(system_scores.systems, is_best.tolist(), strict=True))
    return TableColumn(
        _format_header(metric),
        [texts.get(name, "") for name in systems],
        bold=np.array([bold.get(name, False) for name in systems]),
        marks=[marks.get(name, "") for name in systems] if design else None,
    )


def _list_system_marks(table: Table, system_scores: SystemScores, design: str) -> list[str]:
    if design == "letters":
        ranking = build_ranking(table)
        groups = dict(zip([ranked.system for ranked in ranking.systems], format_groups(ranking), strict=True))
        return [groups[name] for name in system_scores.systems]
    marks = [""] * len(system_scores.systems)
    if design == "baseline":
        better = (table.difference > 0) == table.metric[0].higher_is_better
        verdicts = zip(system_scores.a.tolist(), table.outcome.tolist(), better.tolist(), strict=True)
        for index, outcome, is_better in verdicts:
            marks[index] = ("", BETTER if is_better else WORSE, CONTESTED_MARK, UNDECIDED)[outcome]
    return marks


def _format_header(metric: ScoredMetric) -> str:
    return metric.name if metric.higher_is_better else metric.name + LOWER_MARK


def _describe_lower_mark(table: Table) -> list[str]:
    is_plain = all(metric.higher_is_better for metric in list_used(table.metric))
    return [] if is_plain else [f"Of metrics with{LOWER_MARK}, less is better."]


def _describe_system_marks(results: ComparisonResults, grouped: _ComparisonGroups) -> list[str]:
    alpha = f"{results.alpha:g}"
    if grouped.design == "letters":
        meanings = [*dict.fromkeys(explain_group_marks(build_ranking(table)) for table in grouped.tables)]
        return [
            *(f"{capitalize_first(meaning)} at {alpha}." for meaning in meanings),
            *_describe_contested(results.table),
        ]
    if grouped.design == "":
        return ["No letters: they need all pairs, or all systems with one baseline, compared two-sided."]
    scores, table = grouped.scores[0], results.table
    undecided = [f"{UNDECIDED}: undecided."] if bool((table.decision == -1).any()) else []
    contested = _describe_contested(table, f"{CONTESTED_MARK}: contested. ")
    baseline = scores.systems[int(scores.b[0])]
    return [f"{BETTER}, {WORSE}: significantly better, worse than {baseline} at {alpha}.", *undecided, *contested]


def _describe_contested(table: Table, mark: str = "") -> list[str]:
    """Return a sentence on how many comparisons are contested, or none."""
    n = int(np.count_nonzero(table.is_contested))
    return [f"{mark}In {n:,} of {format_count(len(table), 'comparison')} {CONTESTED_MEANING}."] if n else []


def _build_pair_table(results: ComparisonResults, decimals: dict[str, int | None]) -> PaperTable:
    """Return a table with a row per comparison."""
    table = results.table
    higher = np.array([score.higher_is_better for score in table.metric.values], np.bool_)[table.metric.codes]
    lead_signs = np.sign(table.difference) * np.where(higher, 1, -1)
    metrics = table.metric.map(_format_header)
    digits = [decimals[score.name] for score in table.metric.to_list()]
    headers = [*dict.fromkeys(list_used(metrics))]
    is_one_pair = len(list_used(table.a)) == len(list_used(table.b)) == 1
    subsets = table.subset.map(lambda subset: subset.value if subset else "")
    shared = [
        TableColumn("test set", table.test_set.to_list(), is_name=True),
        TableColumn("subset", subsets.to_list(), is_name=True),
    ]
    columns = [
        *(column for column in shared if len(set(column.texts)) > 1),
        *([] if is_one_pair else [TableColumn("A", table.a.to_list(), is_name=True)]),
        *([] if is_one_pair else [TableColumn("B", table.b.to_list(), is_name=True)]),
        *([TableColumn("metric", metrics.to_list(), is_name=True)] if is_one_pair or len(headers) > 1 else []),
        TableColumn("score A", format_numbers(table.score_a, digits), bold=lead_signs > 0),
        TableColumn("score B", format_numbers(table.score_b, digits), bold=lead_signs < 0),
        TableColumn("A - B", format_numbers(table.difference, digits, sign=True)),
        *_build_interval_columns(table, digits),
        *_build_pair_p_columns(table),
    ]
    names = [f"A is {table.a[0]}, B is {table.b[0]}."] if is_one_pair else []
    legend = (*names, "Better scores in bold.", *_describe_pair_marks(results), *_describe_lower_mark(table))
    noun = "metrics" if is_agreement(table) else "systems"
    what = f"Two {noun}" if is_one_pair else f"{len(table):,} comparisons of {noun}"
    by = join_phrases(headers) if len(headers) <= MAX_IN_TITLE else f"{len(headers):,} metrics"
    title = f"{what} by {by}{_describe_test_set(table)}."
    return _add_description(PaperTable(title, (TableSection("", tuple(columns)),), legend), results, intervals=True)


def _describe_test_set(table: Table) -> str:
    """Return " on" and the test set's name, or "" if there are several or it has no name."""
    names = list_used(table.test_set)
    return f" on {names[0]}" if len(names) == 1 and names[0] else ""


def _build_interval_columns(table: Table, digits: Sequence[int | None]) -> list[TableColumn]:
    intervals, kind = select_intervals(table)
    if intervals is None or bool(np.isnan(intervals.low).all()):
        return []
    low, high = format_numbers(intervals.low, digits), format_numbers(intervals.high, digits)
    has_interval = (~np.isnan(intervals.low)).tolist()
    name = " / ".join(f"{100 * share:.4g} %" for share in np.unique(intervals.confidence[has_interval]).tolist())
    texts = [f"[{a}, {b}]" if has else "" for a, b, has in zip(low, high, has_interval, strict=True)]
    return [TableColumn(f"{kind}{name} interval", texts)]


def _build_pair_p_columns(table: Table) -> list[TableColumn]:
    marks = [*np.array(("", SIGNIFICANT, CONTESTED_MARK, UNDECIDED), object)[table.outcome]]
    for row in np.flatnonzero(table.has_disagreement).tolist():
        marks[row] += ALARM
    p = mark_bounds(table.p_value, table.p_low, table.exact)
    adjusted = mark_bounds(table.p_adjusted, table.p_adjusted_low)
    columns = build_p_columns(p, adjusted, table.alpha, marks)
    if table.is_contested.any():
        columns.append(TableColumn("equal-score p", format_p_values(table.equal_score_p, table.alpha), is_p=True))
    return columns


def build_p_columns(
    p: NDArray[np.float64], adjusted: NDArray[np.float64], alpha: float, marks: list[str]
) -> list[TableColumn]:
    """Return columns of p and, if there is any, adjusted p. Marks of verdicts are in the last one."""
    shown = {"p": p} if np.isnan(adjusted).all() else {"p": p, "adjusted p": adjusted}
    columns = [TableColumn(name, format_p_values(values, alpha), is_p=True) for name, values in shown.items()]
    return [*columns[:-1], replace(columns[-1], marks=marks)]


def _describe_pair_marks(results: ComparisonResults) -> Iterator[str]:
    table = results.table
    if bool((table.outcome == 1).any()):
        yield f"{SIGNIFICANT}: significant at {results.alpha:g}."
    if bool((table.decision == -1).any()):
        yield f"{UNDECIDED}: undecided at {results.alpha:g}; more trials would decide."
    if bool(table.has_disagreement.any()):
        yield f"{ALARM}: a cross-check disagrees; do not use this p."
    if bool(table.is_contested.any()):
        yield f"{CONTESTED_MARK}: contested, {CONTESTED_MEANING}."


def _build_joint_table(results: ComparisonResults, decimals: dict[str, int | None]) -> PaperTable:
    """Return a table with a row per verdict over all sets."""
    verdicts = results.together
    p, adjusted = collect_numbers(verdicts, "p_value"), collect_numbers(verdicts, "p_adjusted")
    marks = [SIGNIFICANT if v <= results.alpha else "" for v in np.where(np.isnan(adjusted), p, adjusted).tolist()]
    digits = [decimals[verdict.metric] for verdict in verdicts]
    differences = format_numbers(collect_numbers(verdicts, "difference"), digits, sign=True)
    columns = [
        *build_name_columns(verdicts, A="a", B="b", metric="metric"),
        TableColumn("sets", [f"{verdict.n_sets}" for verdict in verdicts]),
        TableColumn("mean A - B", differences),
        *build_p_columns(p, adjusted, results.alpha, marks),
        TableColumn("A above B in", [f"{verdict.greater_in}" for verdict in verdicts]),
        TableColumn("below in", [f"{verdict.less_in}" for verdict in verdicts]),
    ]
    legend = (
        "A above B in, below in: the least number of sets in which A is significantly above B, or below (one-sided).",
        f"{SIGNIFICANT}: significant at {results.alpha:g}.",
    )
    title = "Verdicts over all sets: the mean difference."
    table = PaperTable(title, (TableSection("", tuple(columns)),), legend)
    return _add_description(table, results, ("benjamini2008",), across_sets=True)


def _add_description(
    table: PaperTable,
    results: ComparisonResults,
    cited: Sequence[str] = (),
    *,
    intervals: bool = False,
    across_sets: bool = False,
) -> PaperTable:
    """Return a table with notes on how p-values, and intervals if shown, were computed, and their sources."""
    method = describe_test(results, intervals=intervals, across_sets=across_sets)
    keys = list_sources(results, intervals=intervals, across_sets=across_sets)
    return replace(table, method=(*method,), sources=(*keys, *cited), warnings=results.warnings)


def format_numbers(
    values: NDArray[np.float64], digits: int | Sequence[int | None] | None = None, *, sign: bool = False
) -> list[str]:
    """Return scores as texts, with a fixed number of decimals (one for all, or of each) or the default rounding."""
    decimals = digits if isinstance(digits, Sequence) else [digits] * len(values)
    return [_format_number(v, n, sign=sign) for v, n in zip(values.tolist(), decimals, strict=True)]


def _format_number(value: float, digits: int | None, *, sign: bool) -> str:
    if math.isnan(value):
        return NO_SCORE
    if digits is None:
        return format_signed(value) if sign else format_score(value)
    return format(value, f"{'+' if sign else ''}.{digits}{_choose_notation(value)}")


def _choose_notation(value: float) -> str:
    """Return the format type: "e" for very large and very small numbers, else "f"."""
    return "f" if value == 0 or MIN_PLAIN <= abs(value) < MAX_PLAIN else "e"


def format_p_values(p: NDArray[np.float64], alpha: float) -> list[str]:
    """Return p-values of `mark_bounds` as texts, each distinct one formatted once; empty where there is none."""
    distinct, inverse = np.unique(p, return_inverse=True)
    texts = [format_marked_p(value, alpha) for value in distinct.tolist()]
    return [texts[index] for index in inverse.reshape(-1).tolist()]


def build_ranking_table(ranking: SystemRanking) -> PaperTable:
    """Return a table of systems by score, with their letters."""
    systems = ranking.systems
    clusters = ranking.clusters or ([r.cluster for r in systems] if ranking.grouping == "ranks" else [])
    columns = (
        *([TableColumn("cluster", [*map(str, clusters)])] if clusters else []),
        TableColumn("rank", [f"{ranked.rank}" for ranked in systems]),
        *build_name_columns(systems, **{"system" if ranking.clusters is None else "metric": "system"}),
        TableColumn(
            ranking.metric, format_numbers(collect_numbers(systems, "score")),
            bold=collect_numbers(systems, "rank") == 1, marks=format_groups(ranking),
        ),
    )  # fmt: skip
    places = [ranking.test_set] if ranking.test_set else []
    places += [f"{ranking.subset['column']}: {ranking.subset['value']}"] if ranking.subset else []
    legend = ("Best scores in bold.", f"{capitalize_first(explain_group_marks(ranking))}.")
    title = f"Ranking by {ranking.metric}{f' on {format_list(places)}' if places else ''}."
    return PaperTable(title, (TableSection("", columns),), legend)
