"""Comparisons as tables: their columns, each declared once, and rankings, verdicts over sets and classical tests.

The terminal, tables for papers and the page show selections of the same columns. Rows of two-sided comparisons are
turned, so that the first system is the better one and its difference from the other is what the sentence tells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.metrics import ONE_DECIMAL, SHARES
from sigdask.options import PRINT_OPTIONS
from sigdask.report.document import Column, DocumentTable, Section, build_columns
from sigdask.report.sentences import (
    ADJUSTMENTS,
    CHANGES_VERDICTS,
    MAX_PLAIN,
    describe_contradiction,
    describe_method,
    describe_recipes,
    describe_shown_margin,
    describe_test,
    format_ends,
    get_ends,
    join_phrases,
    judge_joint,
    list_adjustments,
    list_joint,
    turn_to_better,
)
from sigdask.report.standings import BASELINE, PAIR, Standings
from sigdask.results.comparisons import ComparisonResults, get_version
from sigdask.results.fields import iter_results
from sigdask.results.ranking import (
    SystemRanking,
    build_ranking,
    collect_scores,
    group_rows,
    has_one_score,
    is_agreement,
    is_ranked,
)
from sigdask.results.record import NamedValues, Result
from sigdask.results.table import Table
from sigdask.statistics.bounds import CHECKS
from sigdask.statistics.ranking_letters import RankedSystem, find_best
from sigdask.statistics.rounding import format_p, format_score, format_signed
from sigdask.text import format_list

BETTER, WORSE, SIGNIFICANT, UNDECIDED, CONTESTED_MARK = "†", "‡", "*", "?", "§"
DISAGREES, DIFFERS, AGREES = "!", "≠", "✓"
"""Marks of verdicts: of systems against a baseline, and of comparisons; and marks of checks."""

NO_SCORE = "–"
"""Text in place of a missing score."""

CONTESTED_MEANING = "only one of two tests rejects, that of swapped outputs or that of equal scores"

MEANINGS = {
    SIGNIFICANT: "significant at {alpha:g}", UNDECIDED: "undecided at {alpha:g}; more trials would decide",
    CONTESTED_MARK: f"contested, {CONTESTED_MEANING}", DISAGREES: "a cross-check disagrees; do not use this p",
    DIFFERS: "interval and p disagree on whether the difference can be 0", AGREES: "independent checks agree",
}  # fmt: skip
"""Meanings of the marks of comparisons."""

VERDICT_MARKS = {"significant": SIGNIFICANT, "undecided": UNDECIDED, "contested": CONTESTED_MARK}
"""Marks of verdicts of comparisons."""

VERDICT_HINTS = {
    "significant": "chance alone would rarely give a difference as large", "contested": CONTESTED_MEANING,
    "not significant": "the test shows no difference; the two need not be equal",
    "undecided": "more trials would decide",
}  # fmt: skip
"""Hover texts that explain verdicts."""


class Grouping(NamedTuple):
    """How a ranking marks systems that are not significantly different: header, meaning, and the mark of a system."""

    header: str
    meaning: str
    mark: Callable[[RankedSystem], str]


GROUPINGS = {
    "letters": Grouping(
        "groups", "systems that share a letter are not significantly different",
        lambda r: ("" if all(len(letter) == 1 for letter in r.letters) else " ").join(r.letters),
    ),
    "clusters": Grouping(
        "cluster", "systems have the number of their cluster; the ranks of different clusters do not overlap",
        lambda r: str(r.cluster),
    ),
    "tied": Grouping(
        "tied with best", "= not significantly different from the best", lambda r: "=" if r.tied_with_best else ""
    ),
    "ranks": Grouping(
        "possible ranks",
        "possible ranks are below all systems that are better by the test of swaps, and above all that are worse; = "
        "not significantly different from the best",
        lambda r: "–".join(dict.fromkeys((str(r.rank_low), str(r.rank_high)))) + "=" * r.tied_with_best,
    ),
}  # fmt: skip
"""Marks of rankings, by the option `grouping`."""


# Numbers of a metric


@dataclass(frozen=True, slots=True)
class MetricStyle:
    """How a metric's numbers are printed.

    Attributes
    ----------
    name : str
        Its name.
    scale : float
        Factor of its scores: 100 for shares in per cent.
    decimals : int or None
        Decimals of scores. None for four, or six digits of large numbers.
    """

    name: str
    scale: float = 1.0
    decimals: int | None = None

    def format(self, value: float, *, sign: bool = False) -> str:
        """Return a score, or with a sign a difference, as text."""
        if math.isnan(value):
            return NO_SCORE
        value *= self.scale
        if self.decimals is None:
            return format_signed(value) if sign else format_score(value)
        kind = "f" if value == 0 or 1e-9 <= abs(value) < MAX_PLAIN else "e"
        return format(value, f"{'+' if sign else ''}.{self.decimals}{kind}")

    def format_ends(self, difference: float, ends: Sequence[float] | None) -> str:
        """Return the ends of an interval as text, or "" without one."""
        if ends is None:
            return ""
        low, high = ends
        if self.decimals is None:
            return format_ends(self.scale * difference, self.scale * low, self.scale * high)
        return f"[{self.format(low)}, {self.format(high)}]"


Styles = Mapping[str, MetricStyle]


def list_paper_styles(table: Table, digits: int | None, *, percent: bool) -> dict[str, MetricStyle]:
    """Return how the numbers of each metric are printed in papers: shares in per cent, BLEU with one decimal.

    A column of scores may be called accuracy and be in per cent: a score above 1 is not a share.
    """
    styles = {}
    for code, name in enumerate(table.metric.levels):
        rows = table.metric.codes == code
        size = float(np.nanmax(np.abs([table.score_a[rows], table.score_b[rows]]), initial=0.0))
        base = re.split(r"[\[:]", name, maxsplit=1)[0].casefold()
        is_share = percent and size <= 1 and (base in SHARES or base.startswith("pass@"))
        decimals = 2 if is_share else 1 if size > 1 and base in ONE_DECIMAL else None
        shown = f"{name} (%)" if is_share else name
        styles[name] = MetricStyle(shown, 100.0 if is_share else 1.0, decimals if digits is None else digits)
    return styles


def format_p_cell(p: float | None, alpha: float, *, is_bound: bool = False) -> str:
    """Return p for a table cell; empty where there is none."""
    return "" if p is None or math.isnan(p) else format_p(p, alpha, is_bound=is_bound)


def format_deciding_p(r: Result, alpha: float) -> str:
    """Return the p that decides a comparison, the adjusted one if there is one."""
    if r.p_adjusted is None:
        return format_p_cell(r.p_value, alpha, is_bound=r.is_bound)
    return format_p_cell(r.p_adjusted, alpha, is_bound=r.is_adjusted_bound)


# Columns of comparisons


class Setting:
    """What the cells of a table of comparisons depend on besides their row.

    Attributes
    ----------
    alpha : float
        Level of the verdicts.
    styles : mapping of str to MetricStyle
        How numbers of metrics are printed.
    is_adjusted, is_simultaneous, of_recipes : bool
        Whether there are adjusted p, simultaneous intervals, and intervals of recipes.
    interval_header, p_header : str
        Headers of the intervals, and of the p of single comparisons.
    """

    def __init__(self, results: Sequence[Result], alpha: float, styles: Styles = MappingProxyType({})) -> None:
        self.alpha, self.styles = alpha, styles
        self.is_adjusted = any(r.p_adjusted is not None for r in results)
        self.is_simultaneous = any(r.interval_simultaneous is not None for r in results)
        levels = {f"{100 * r.interval.confidence:.4g} %" for r in results if r.interval is not None}
        levels = {f"{100 * (1 - alpha):.4g} %"} if self.is_simultaneous else levels
        kind = "simultaneous" if self.is_simultaneous else "unadjusted" if self.is_adjusted else ""
        confidence = levels.pop() if len(levels) == 1 else ""
        self.of_recipes = any(r.runs is not None and r.runs.p_value is not None for r in results)
        self.interval_header = " ".join(filter(None, (kind, confidence, "interval", "of recipes" * self.of_recipes)))
        self.p_header = "unadjusted p" if self.is_adjusted or len(results) > 1 else "p"

    def get_style(self, r: Result) -> MetricStyle:
        """Return how the numbers of a comparison are printed."""
        return self.styles.get(r.metric) or MetricStyle(r.metric)


class ComparisonColumn(NamedTuple):
    """The declaration of a column of comparisons. It is left out where all its cells are empty.

    Attributes
    ----------
    column : Column
        The column without texts. "interval" and "p" have the headers of the setting.
    cell : callable
        Returns the text of a comparison.
    on_page : bool
        Whether it is only on pages.
    is_varying : bool
        Whether texts and papers show it only if its cells differ.
    """

    column: Column
    cell: Callable[[Result, Setting], str]
    on_page: bool = False
    is_varying: bool = False


def format_interval(r: Result, s: Setting) -> str:
    """Return the interval of a comparison as text, called unadjusted among simultaneous ones."""
    is_alone = s.is_simultaneous and r.interval_simultaneous is None and r.interval is not None
    if is_alone and abs(r.interval.confidence - (1 - s.alpha)) > 1e-9:
        return ""  # of another confidence than the header's
    return s.get_style(r).format_ends(r.difference, get_ends(r)) + " unadjusted" * is_alone


def _name_checks(r: Result, alpha: float) -> str:
    if r.disagreements():
        return "disagree"
    if describe_contradiction(r, alpha):
        return "interval differs"
    return "agree" if any(check.name in CHECKS and check.verdict == "agrees" for check in r.checks) else ""


COLUMNS = (
    ComparisonColumn(Column("test set", is_name=True, is_filter=True), lambda r, _: r.test_set, is_varying=True),
    ComparisonColumn(
        Column("subset", is_name=True, is_filter=True), lambda r, _: r.subset["value"] if r.subset else ""
    ),
    ComparisonColumn(Column("A", is_name=True), lambda r, _: r.a),
    ComparisonColumn(Column("B", is_name=True), lambda r, _: r.b),
    ComparisonColumn(Column("metric", is_name=True, is_filter=True), lambda r, s: s.get_style(r).name, is_varying=True),
    ComparisonColumn(Column("score A"), lambda r, s: s.get_style(r).format(r.score_a)),
    ComparisonColumn(Column("score B"), lambda r, s: s.get_style(r).format(r.score_b)),
    ComparisonColumn(Column("A - B"), lambda r, s: s.get_style(r).format(r.difference, sign=True)),
    ComparisonColumn(Column("interval"), format_interval),
    ComparisonColumn(Column("p", is_p=True), lambda r, s: format_p_cell(r.p_value, s.alpha, is_bound=r.is_bound)),
    ComparisonColumn(
        Column("adjusted p", is_p=True, is_pinned=True),
        lambda r, s: format_p_cell(r.p_adjusted, s.alpha, is_bound=r.is_adjusted_bound),
    ),
    ComparisonColumn(
        Column("verdict", is_name=True, is_filter=True, is_pinned=True, hints=VERDICT_HINTS),
        lambda r, _: r.verdict, on_page=True,
    ),
    ComparisonColumn(
        Column("p over runs", is_p=True), lambda r, s: format_p_cell(r.runs.p_runs if r.runs else None, s.alpha)
    ),
    ComparisonColumn(
        Column("p of recipes", is_p=True), lambda r, s: format_p_cell(r.runs.best_p if r.runs else None, s.alpha)
    ),
    ComparisonColumn(Column("within margin", is_name=True, is_filter=True), lambda r, _: describe_shown_margin(r)),
    ComparisonColumn(
        Column("checks", is_name=True, is_filter=True, is_aside=True),
        lambda r, s: _name_checks(r, s.alpha), on_page=True,
    ),
    ComparisonColumn(Column("method", is_name=True, is_aside=True), lambda r, _: describe_method(r), is_varying=True),
)  # fmt: skip
"""Columns of comparisons, in their order."""


def list_columns(results: Sequence[Result], setting: Setting, *, is_page: bool = False) -> Iterator[Column]:
    """Yield the columns that are not empty. On pages, test sets and subsets are hidden where there are not several."""
    is_adjusted = any(r.runs and r.runs.p_adjusted is not None for r in results)
    of_recipes = "adjusted p of recipes" if is_adjusted else "p of recipes"
    headers = {"interval": setting.interval_header, "p": setting.p_header, "p of recipes": of_recipes}
    for column, cell, on_page, is_varying in COLUMNS:
        texts = [cell(r, setting) for r in results] if is_page or not on_page else [""]
        is_hidden = not any(texts) or (is_varying and len({*texts}) < 2)
        if is_page and column.header in {"test set", "subset"}:  # which its script needs
            yield replace(column, texts=texts, is_hidden=is_hidden)
        elif any(texts) and (is_page or not is_hidden):
            yield replace(column, header=headers.get(column.header, column.header), texts=texts)


def build_comparison_table(
    rows: Sequence[Result], setting: Setting, *, title: str = "", with_checks: bool = False
) -> DocumentTable:
    """Return a table with a row for each comparison, and the meaning of its marks.

    Parameters
    ----------
    rows : sequence of Result
        The comparisons.
    setting : Setting
        What is shown of them.
    title : str
        Its title.
    with_checks : bool
        Whether checks that agree are marked.
    """
    results = turn_to_better(rows)
    check_marks = {"disagree": DISAGREES, "interval differs": DIFFERS, "agree": AGREES * with_checks, "": ""}
    marks = [VERDICT_MARKS.get(r.verdict, "") + check_marks[_name_checks(r, setting.alpha)] for r in results]
    lead = np.array([r.difference if r.higher_is_better else -r.difference for r in results])
    columns = [*list_columns(results, setting)]
    last_p = [column for column in columns if column.header in {"adjusted p", setting.p_header}][-1]
    changes: dict[str, dict[str, Any]] = {
        "score A": {"bold": lead > 0},
        "score B": {"bold": lead < 0},
        last_p.header: {"marks": marks if any(marks) else None},
    }
    columns = [replace(column, **changes.get(column.header, {})) for column in columns]
    used = dict.fromkeys(mark for text in marks for mark in text)
    legend = [f"{mark} {MEANINGS[mark].format(alpha=setting.alpha)}" for mark in MEANINGS if mark in used]
    if not used.keys() & {SIGNIFICANT, UNDECIDED, CONTESTED_MARK}:
        legend.append(f"none of these significant at {setting.alpha:g}")
    methods = {*map(describe_method, results)}
    if len(methods) == 1:
        [method] = methods
        legend.append({"exact": "p exact", "bounds": "p between bounds"}.get(method, f"p of {method}"))
    legend += ["of metrics with ↓, less is better"] if any("↓" in s.name for s in setting.styles.values()) else []
    return DocumentTable.of(title, columns, legend)


# Tables for papers


def build_paper_tables(
    results: ComparisonResults, layout: str | None = None, digits: int | None = None, *, percent: bool = True
) -> list[DocumentTable]:
    """Return a table of the comparisons, and one of verdicts over several sets if there are any.

    Parameters
    ----------
    results : ComparisonResults
        The results.
    layout : {"systems", "pairs"}, optional
        Systems by metrics, or one row per comparison. The default is systems if all pairs of three or more were
        compared, or two or more with one baseline, and each has one score.
    digits : int, optional
        Decimals of scores; by default those that papers print.
    percent : bool
        Whether accuracy, F1 and other shares are in per cent.

    Raises
    ------
    InputError
        The layout or the number of decimals is invalid.
    """
    PRINT_OPTIONS["layout"].check("layout", layout)
    PRINT_OPTIONS["digits"].check("digits", digits)
    table, styles = results.table, list_paper_styles(results.table, digits, percent=percent)
    lower = set(table.metric[~table.higher_is_better].tolist())
    styles = {k: replace(style, name=f"{style.name} ↓") if k in lower else style for k, style in styles.items()}
    on_set = f" on {table.test_set[0]}" if len(np.unique(table.test_set.codes)) == 1 and table.test_set[0] else ""
    standings = Standings(table)
    fits = has_one_score if len(table) and standings.design in {BASELINE, PAIR} else is_ranked
    can_list = all(fits(table.take(rows)) for rows in group_rows(table))
    if layout == "systems" and not can_list:
        sides = "" if is_agreement(table) else " two-sided"
        problem = f"systems are listed if all pairs are compared{sides}, or all with one baseline, on the same items"
        raise InputError(problem, remedy=f"choose {spell('layout', 'pairs')}")
    is_listed = layout == "systems" or (layout is None and can_list and standings.n_members.max(initial=0) > 2)
    if len(table) and is_listed:
        main = _build_system_table(table, styles, on_set)
    else:
        main = _build_pair_table(table, styles, on_set)
    warnings = tuple(note.text for note in results.notes if note.kind in {"scope", *CHANGES_VERDICTS})
    has_letters = is_listed and standings.design not in {BASELINE, PAIR}  # which say themselves that they are of runs
    of_runs = ["marks are of these runs"] * (table.has("runs") and not has_letters)
    legend = (*main.legend, *of_runs, *(text[:-1] for text in describe_recipes(results)))
    described = replace(main, legend=legend, note=(describe_paper_test(results),), warnings=warnings)
    return [described, *([build_joint_table(results, styles)] if results.together else [])]


def describe_paper_test(results: ComparisonResults) -> str:
    """Return a note of at most 40 words: test, adjustment, level, version and seed."""
    if not len(results):
        return ""
    test, p = describe_test(results).removeprefix("test: "), "adjusted p" if list_adjustments(results) else "p"
    contested = " and not contested" * bool(results.table.is_contested.any())
    return (
        f"{test[:1].upper()}{test[1:]}; significant means {p} at most {results.alpha:g}{contested}. "
        f"sigdask {get_version()}, seed {results.seed}."
    )


def _build_pair_table(table: Table, styles: Styles, on_set: str) -> DocumentTable:
    """Return a table with a row per comparison."""
    results = [*iter_results(table)]
    noun = "metrics" if is_agreement(table) else "systems"
    names = [*dict.fromkeys(styles[r.metric].name for r in results)]
    by = join_phrases(names) if len(names) <= 4 else f"{len(names):,} metrics"
    is_one_pair = len({frozenset((r.a, r.b)) for r in results}) == 1
    title = f"{f'Two {noun}' if is_one_pair else f'{len(table):,} comparisons of {noun}'} by {by}{on_set}"
    if not results:
        return DocumentTable.of("0 comparisons", [Column("A", (), is_name=True)])
    return build_comparison_table(results, Setting(results, table.alpha, styles), title=title)


def _build_system_table(table: Table, styles: Styles, on_set: str) -> DocumentTable:
    """Return a table of systems by metrics, a section for each test set and subset."""
    groups, standings = [table.take(rows) for rows in group_rows(table)], Standings(table)
    noun = "metric" if is_agreement(table) else "system"
    baseline = table.b[0] if standings.design in {BASELINE, PAIR} else None
    order = [*dict.fromkeys(name for group in groups for name in _rank_systems(group, baseline))]
    columns: dict[tuple[str, str], dict[str, Column]] = {}
    for group in groups:
        subset, value = group["subset.column"][0], group["subset.value"][0]
        in_subset = f"{subset}: {value}" if subset else ""
        place = group.test_set[0] * (len({g.test_set[0] for g in groups}) > 1), in_subset
        column = _build_score_column(group, baseline, order, styles[group.metric[0]])
        columns.setdefault(place, {})[column.header] = column
    headers = [*dict.fromkeys(header for section in columns.values() for header in section)]
    sections = []
    for place, section in columns.items():
        shown = [section.get(header, Column(header, [""] * len(order))) for header in headers]
        rows = [k for k in range(len(order)) if any(column.texts[k] for column in shown)]
        all_columns = (Column(noun, order, is_name=True), *shown)
        heading = ", ".join(filter(None, place))
        sections.append(Section(heading, tuple(column.select_rows(rows) for column in all_columns)))
    title = f"Scores of {len(order):,} {noun}s{f' with the baseline {baseline}' if baseline else ''}{on_set}"
    return DocumentTable(title, tuple(sections), tuple(_explain_system_marks(table, groups, baseline)))


def _rank_systems(table: Table, baseline: str | None) -> list[str]:
    """Return the systems of one group: the baseline first, then the best."""
    systems, scores, *_ = collect_scores(table)
    sign = -1 if table.higher_is_better[0] else 1
    names = [systems[k] for k in np.argsort(sign * scores, kind="stable").tolist()]  # NaN come last
    return names if baseline is None else [baseline, *names]


def _build_score_column(table: Table, baseline: str | None, order: Sequence[str], style: MetricStyle) -> Column:
    """Return the column of systems' scores by one metric, in the order of `order`."""
    (systems, scores, *_), higher_is_better = collect_scores(table), bool(table.higher_is_better[0])
    best = find_best(scores, higher_is_better=higher_is_better)
    cells = {
        name: (style.format(score), is_best)
        for name, score, is_best in zip(systems, scores.tolist(), best.tolist(), strict=True)
    }
    marks: dict[str, str] = {}
    if baseline is None:
        ranking = build_ranking(table)
        form = "({})" if ranking.grouping == "ranks" else "{}"  # 33.6 with the rank 2 is no square
        marks = dict(zip([s.system for s in ranking.systems], map(form.format, format_groups(ranking)), strict=True))
    else:
        better = (table.difference > 0) == higher_is_better
        for name, outcome, is_better in zip(table.a.tolist(), table.outcome.tolist(), better.tolist(), strict=True):
            marks[name] = ("", BETTER if is_better else WORSE, CONTESTED_MARK, UNDECIDED)[outcome]
    texts, bold = zip(*(cells.get(name, ("", False)) for name in order), strict=True)
    return Column(style.name, texts, bold=np.array(bold), marks=[marks.get(name, "") for name in order])


def _explain_system_marks(table: Table, groups: Sequence[Table], baseline: str | None) -> Iterator[str]:
    alpha, rows = table.alpha, np.flatnonzero(table.is_contested).tolist()
    has_contested, several = len(rows) > 0, len(groups) > 1
    places = [", ".join(filter(None, (table.metric[k], table.test_set[k], table["subset.value"][k]))) for k in rows]
    pairs = [f"{table.a[k]} and {table.b[k]}{f' on {place}' * several}" for k, place in zip(rows, places, strict=True)]
    if baseline is None:
        yield from dict.fromkeys(f"{explain_group_marks(build_ranking(group))} at {alpha:g}" for group in groups)
        yield from [f"contested ({format_list(pairs, 3, '; ')}): {CONTESTED_MEANING}"] * has_contested
    else:
        yield f"{BETTER}, {WORSE}: significantly better, worse than {baseline} at {alpha:g}"
        yield from [f"{UNDECIDED}: undecided"] * bool((table.decision == -1).any())
        yield from [f"{CONTESTED_MARK}: contested, {CONTESTED_MEANING}"] * has_contested
    if any(not group.higher_is_better[0] for group in groups):
        yield "of metrics with ↓, less is better"


# Rankings


def format_groups(ranking: SystemRanking) -> list[str]:
    """Return the mark of each system; of metrics, the number of its cluster."""
    if ranking.grouping == "clusters" and ranking.clusters:
        return [*map(str, ranking.clusters)]
    return [*map(GROUPINGS[ranking.grouping].mark, ranking.systems)]


def explain_group_marks(ranking: SystemRanking) -> str:
    """Return a clause that explains the output of `format_groups`."""
    meaning = f"{GROUPINGS[ranking.grouping].meaning}{' for these runs' * ranking.of_runs}"
    if ranking.clusters is None or ranking.grouping != "clusters":
        return meaning.replace("systems", "systems" if ranking.clusters is None else "metrics")
    start = "a cluster begins with a metric that is significantly worse than one of the previous cluster"
    return f"{meaning.replace('systems', 'metrics')}; {start} (unadjusted p)"


def build_ranking_table(ranking: SystemRanking) -> DocumentTable:
    """Return a table of systems by score, with their letters."""
    systems, header = ranking.systems, GROUPINGS[ranking.grouping].header
    columns = [
        *([] if ranking.clusters else [Column("rank", [str(s.rank) for s in systems])]),
        *build_columns(systems, {"system" if ranking.clusters is None else "metric": "system"}),
        Column("score", [format_score(s.score) for s in systems], bold=np.array([s.rank == 1 for s in systems])),
        Column(header, format_groups(ranking), is_name=True),
    ]
    places = [ranking.test_set] if ranking.test_set else []
    places += [f"{ranking.subset['column']} {ranking.subset['value']}"] if ranking.subset else []
    title = f"ranking by {ranking.metric}{f' on {format_list(places)}' if places else ''}"
    return DocumentTable.of(f"{title}; {explain_group_marks(ranking)}", columns)


# Verdicts over several sets


def build_joint_table(
    results: ComparisonResults, styles: Styles = MappingProxyType({}), n_rows: int | None = None
) -> DocumentTable:
    """Return a table with a row per verdict over all sets, those with the smallest p first if not all are shown."""
    verdicts, alpha = list_joint(results), results.alpha
    is_adjusted = any(v.p_adjusted is not None for v in verdicts)
    if n_rows is not None and len(verdicts) > n_rows:
        verdicts = sorted(verdicts, key=lambda v: (v.p_adjusted or 0.0, v.p_value))[:n_rows]

    outcomes = [judge_joint(v, alpha) for v in verdicts]
    shown = [styles.get(v.metric) or MetricStyle(v.metric) for v in verdicts]
    columns = [
        *build_columns(verdicts, {"A": "a", "B": "b"}),
        Column("metric", [style.name for style in shown], is_name=True),
        Column("sets", [f"{v.n_sets}" for v in verdicts]),
        Column("mean A - B", [style.format(v.difference, sign=True) for v, style in zip(verdicts, shown, strict=True)]),
        Column(
            f"{'unadjusted ' * is_adjusted}{100 * (1 - alpha):.4g} % interval",
            [style.format_ends(v.difference, v.interval) for v, style in zip(verdicts, shown, strict=True)],
        ),
        *build_p_columns(
            [format_p_cell(v.p_value, alpha, is_bound=v.method != "exact" and not v.n_extreme) for v in verdicts],
            [format_p_cell(v.p_adjusted, alpha, is_bound=v.is_adjusted_bound) for v in verdicts],
            [VERDICT_MARKS.get(outcome, "") for outcome in outcomes],
        ),
    ]
    adjusted = f", p adjusted by {ADJUSTMENTS['max-t'].label}" * is_adjusted
    legend = [f"{SIGNIFICANT if 'significant' in outcomes else 'none'} significant at {alpha:g}{adjusted}"]
    legend += [f"{CONTESTED_MARK} contested, {CONTESTED_MEANING}"] * ("contested" in outcomes)
    title = f"over all sets: the mean difference{' for these runs' * results.table.has('runs')}"
    return DocumentTable.of(title, [c for c in columns if any(c.texts)], legend)


# Classical tests

CONTRAST = "for contrast"


def build_test_table(results: Sequence[Result], alpha: float) -> DocumentTable:
    """Return a table of the classical tests that fit the scores of comparisons, and lines on those that do not."""
    rows = [(r, test) for r in turn_to_better(results) for test in r.tests if test.p_value is not None]
    own, tests = [r for r, _ in rows], [test for _, test in rows]
    columns = [
        Column("test set", [r.test_set for r in own], is_name=True),
        Column("subset", [r.subset["value"] if r.subset else "" for r in own], is_name=True),
        *build_columns(own, {"A": "a", "B": "b", "metric": "metric"}),
        *build_columns(tests, {"test": "name", "statistic": lambda test: _format_statistic(test.statistic)}),
        Column("p", [format_p_cell(test.p_value, alpha) for test in tests], is_p=True),
        Column("n", [f"{test.n or 0:,}" for test in tests]),
        Column("remark", [*map(describe_classical_test, tests)], is_name=True),
    ]
    misfits: dict[tuple[str, str], dict[str, None]] = {}
    for r in results:
        for test in r.tests:
            if test.p_value is None:
                misfits.setdefault((r.metric, test.detail), {})[test.name] = None
    legend = [f"{metric}: {', '.join(names)}: {reason}" for (metric, reason), names in misfits.items()]
    shown = tuple(column for column in columns if any(column.texts) or column.header == "remark")
    return DocumentTable("", (Section("", shown),) if rows else (), tuple(legend))


def describe_classical_test(test: NamedValues) -> str:
    """Return details of a test, and whether it assumes that the two systems are independent."""
    return f"{CONTRAST}, as if independent; {test.detail}" if test.assumes_independence else str(test.detail)


def _format_statistic(statistic: float | None) -> str:
    """Return a statistic as text; rank sums may be large and end in halves."""
    if statistic is None:
        return ""
    return f"{statistic:.4g}" if abs(statistic) < 1000 else f"{statistic:,.1f}".removesuffix(".0")


def build_p_columns(p: Sequence[str], adjusted: Sequence[str], marks: Sequence[str]) -> list[Column]:
    """Return columns of p and, if there is any, adjusted p. Marks of verdicts are in the last one."""
    shown = {"p": p} if not any(adjusted) else {"unadjusted p": p, "adjusted p": adjusted}
    columns = [Column(name, texts, is_p=True) for name, texts in shown.items()]
    return [*columns[:-1], replace(columns[-1], marks=marks)]
