"""Figures of the comparisons of one test set, subset and metric.

- forest plot: differences with their intervals, one below the other (Lewis & Clarke 2001)
- matrix of all pairs: which of the two systems is better, and the p-value
- critical-difference diagram: bars join systems that are not significantly different (Demšar 2006)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError, UnfinishedError
from sigdask.report import plots
from sigdask.report.comparisons import Setting, format_deciding_p, format_groups, format_p_cell
from sigdask.report.files import write_parts
from sigdask.report.sentences import get_ends
from sigdask.report.standings import get_group_key
from sigdask.results.fields import iter_results
from sigdask.results.ranking import SystemRanking, build_ranking, group_rows, is_ranked
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.ranking_letters import format_letter
from sigdask.statistics.rounding import format_score
from sigdask.text import format_list

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_IN_FOREST = 120
"""Maximum comparisons of a forest plot, those with the smallest p."""

VERDICT_MARKS = {
    "significant": ("significantly different", "o", plots.BLUE),
    "not significant": ("not significantly different", "o", "white"),
    "undecided": ("undecided: more trials would decide", "D", "white"),
    "contested": ("contested: only one of two tests rejects", "s", "white"),
}
"""Words of verdicts, with the form and the filling of their marks."""


def get_subject(table: Table) -> tuple[str, ...]:
    """Return the test set, subset and metric that a figure of these rows is about, without empty names."""
    return tuple(name for name in get_group_key(table, 0) if name)


def _describe_score(table: Table) -> str:
    """Return the metric's name, and whether lower is better."""
    return str(table.metric[0]) if table.higher_is_better[0] else f"{table.metric[0]} (lower is better)"


def _select_results(table: Table) -> tuple[list[Result], str]:
    """Return the comparisons to draw, the largest difference first, and which of many these are."""
    rows, note = np.arange(len(table)), ""
    if len(table) > MAX_IN_FOREST:
        p = np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)
        rows = np.lexsort((table.p_value, p))[:MAX_IN_FOREST]
        note = f"\n{len(rows):,} of {len(table):,} comparisons: those with the smallest p"
    results = iter_results(table.take(rows))
    return sorted(results, key=lambda r: (math.isnan(r.difference), -r.difference)), note


def forest(table: Table) -> Figure:
    """Draw the differences with their intervals, the largest on top, zero as a line.

    References
    ----------
    Lewis & Clarke 2001, "Forest plots: trying to see the wood and the trees", BMJ 322.
    """
    results, note = _select_results(table)
    setting = Setting(results, table.alpha)
    a, b = (plots.shorten_names(names, 30) for names in ([r.a for r in results], [r.b for r in results]))
    names = [f"{name_a} − {name_b}" for name_a, name_b in zip(a, b, strict=True)]
    score = f"difference of {_describe_score(table)}"
    if any(get_ends(r) for r in results):
        score += f", {setting.interval_header.replace('interval', 'intervals')}"
    of_recipes = setting.of_recipes
    beside = [
        format_p_cell(r.runs.best_p, table.alpha) if of_recipes and r.runs else format_deciding_p(r, table.alpha)
        for r in results
    ]
    width = 4.2 + plots.estimate_width(names) + plots.estimate_width(beside)
    with plots.build_figure(width, 1.4 + 0.19 * len(results)) as figure:
        axes = figure.add_subplot()
        marks = _plot_differences(axes, results)
        axes.set_yticks(range(len(names)), labels=names, parse_math=False)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", color="#e3e7eb", linewidth=0.5)
        axes.set_axisbelow(True)
        right = "adjusted p" if setting.is_adjusted else "p"
        right += " of recipes, as the intervals; marks: of these runs" * of_recipes
        axes.set_xlabel(f"{score}\n(right: {right})", parse_math=False)
        plots.set_title(axes, f"{', '.join(get_subject(table))}{note}")
        right_axes = axes.twinx()
        right_axes.set_ylim(axes.get_ylim())
        right_axes.set_yticks(range(len(beside)), labels=beside, parse_math=False, color=plots.INK)
        right_axes.tick_params(axis="y", length=0)
        right_axes.spines["left"].set_visible(False)
        plots.add_legend(figure, marks, n_columns=2)
    return figure


def _plot_differences(axes: Axes, results: Sequence[Result]) -> list[Any]:
    """Draw the intervals, to the edge where they have no bound, and the marks; return a mark of each verdict."""
    difference = np.array([r.difference for r in results])
    low, high = np.array([get_ends(r) or (math.nan, math.nan) for r in results]).T
    rows, verdicts = np.arange(len(results)), np.array([r.verdict for r in results])
    values = np.concatenate([np.zeros(1), difference, low, high])
    finite = values[np.isfinite(values)]
    margin = 0.06 * float(np.ptp(finite)) or 0.01
    axes.axvline(0, color=plots.INK, linewidth=0.8)
    axes.set_xlim(float(finite.min()) - margin, float(finite.max()) + margin)
    known = ~np.isnan(low) & ~np.isnan(high)
    ends = (np.clip(end[known], *axes.get_xlim()) for end in (low, high))
    axes.hlines(rows[known], *ends, color=plots.BLUE, linewidth=1.1, gid="intervals")
    marks = []
    for verdict, (label, form, filling) in VERDICT_MARKS.items():
        if (has_verdict := verdicts == verdict).any():
            marks += axes.plot(
                difference[has_verdict], rows[has_verdict], form, markersize=4.5, markerfacecolor=filling,
                markeredgecolor=plots.BLUE, label=label if results[0].alternative == "two-sided" else verdict,
            )  # fmt: skip
    return marks


SHADES = {0: "#ffffff", 1: "#f1f3f4", 2: "#5aa3d0", -2: "#ea8f4a"}
"""Shades of squares: nothing, not significant, significantly better and worse."""

SIDE = 0.18
"""Side of a square of a matrix, in inches."""


def matrix(table: Table) -> Figure:
    """Draw a matrix of all pairs of systems that shows whether the row's or the column's is better.

    A triangle upwards (blue) is significantly better, downwards (orange) significantly worse.
    """
    names = [ranked.system for ranked in _get_ranking(table).systems]
    levels = _compute_shades(table, names)
    n, short_names = len(names), plots.shorten_names(names)
    side, room = SIDE * n, plots.estimate_width(short_names)
    with plots.build_figure(max(side + room + 0.4, 5.6), side + room + 1.2) as figure:
        from matplotlib.colors import BoundaryNorm, ListedColormap

        axes, keys = figure.add_subplot(), sorted(SHADES)
        norm = BoundaryNorm([keys[0] - 0.5, *(np.add(keys[1:], keys[:-1]) / 2), keys[-1] + 0.5], len(keys))
        axes.imshow(levels, cmap=ListedColormap([SHADES[key] for key in keys]), norm=norm, interpolation="nearest")
        axes.set_xticks(range(n), labels=short_names, parse_math=False, rotation=90)
        axes.set_yticks(range(n), labels=short_names, parse_math=False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for mark, shade in (("^", 2), ("v", -2)):
            rows, columns = np.nonzero(levels == shade)
            axes.scatter(columns, rows, s=(36 * SIDE) ** 2, c=plots.INK, marker=mark, linewidths=0)
        plots.set_title(axes, ", ".join(get_subject(table)))
        marks = [_build_handle(k, text, mark) for k, text, mark in ((2, "row better", "^"), (-2, "row worse", "v"))]
        other = f"not significantly different{', or contested' * bool(table.is_contested.any())}"
        plots.add_legend(figure, [*marks, _build_handle(1, other, "s")], n_columns=3)
    return figure


def _compute_shades(table: Table, names: Sequence[str]) -> NDArray[np.int8]:
    """Return the shade of each pair of systems as a key of `SHADES`."""
    indices = {name: k for k, name in enumerate(names)}
    a, b = ([indices[name] for name in column.tolist()] for column in (table.a, table.b))
    gain = np.nan_to_num(np.sign(table.difference)) * (1 if table.higher_is_better[0] else -1)
    levels = np.zeros((len(names),) * 2, np.int8)
    for rows, columns, side in ((a, b, gain), (b, a, -gain)):
        levels[rows, columns] = np.where(table.outcome == 1, np.where(side < 0, -2, 2), 1)
    return levels


def _build_handle(level: int, text: str, mark: str) -> object:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker=mark, color=SHADES[level], markeredgecolor=plots.INK,
                  markeredgewidth=0.4, markersize=6, label=text)  # fmt: skip


def critical_difference(table: Table) -> Figure:
    """Draw all systems on an axis of scores, with a bar for each group that is not significantly different.

    A dot on a bar is a system of the group: with tests of pairs, a bar may pass over a system that is significantly
    different from another of its group. A system without a bar differs from all.

    References
    ----------
    Demšar 2006, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, figure 1.
    Piepho 2004, "An algorithm for a letter-based representation of all-pairwise comparisons".
    """
    ranking = _get_ranking(table)
    marks = [""] * len(ranking.systems) if ranking.grouping == "letters" else format_groups(ranking)
    marked = [f"{s.system} {mark}".rstrip() for s, mark in zip(ranking.systems, marks, strict=True)]
    names = plots.shorten_names(marked)
    scores = np.array([system.score for system in ranking.systems])
    labels = [f"{name}  {format_score(score)}" for name, score in zip(names, scores.tolist(), strict=True)]
    bars = sorted(_list_bars(ranking), key=lambda bar: tuple(bar[1]))
    margin = 0.04 * float(np.ptp(scores)) or 0.5
    distances = np.abs(scores - scores[0])
    rows = _assign_rows([(distances[group[0]], distances[group[-1]] + 1.2 * margin) for _, group in bars])
    names_top = 1.0 + 0.75 * (max(rows, default=-1) + 1)  # the first name's line, below all bars
    height = names_top + -(-len(names) // 2)
    with plots.build_figure(4.4 + 2 * plots.estimate_width(labels), 1.0 + 0.17 * height) as figure:
        axes = figure.add_subplot()
        ends = float(scores.min()) - margin, float(scores.max()) + margin
        axes.set_xlim(*(ends if table.higher_is_better[0] else ends[::-1]))
        axes.set_ylim(height, 0)
        axes.xaxis.set_ticks_position("top")
        axes.xaxis.set_label_position("top")
        axes.set_xlabel(_describe_score(table), parse_math=False)
        axes.spines["top"].set_visible(True)
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.set_yticks([])
        _write_names(axes, labels, scores, names_top)
        _plot_bars(axes, bars, rows, scores)
        figure.suptitle(", ".join(get_subject(table)[:-1]), parse_math=False, fontsize=9)
    return figure


def _get_ranking(table: Table) -> SystemRanking:
    if not is_ranked(table):
        raise InputError(
            "this figure needs all pairs of three or more systems, compared two-sided: leave out pairs and baseline"
        )
    return build_ranking(table)


def _list_bars(ranking: SystemRanking) -> list[tuple[str, Integers]]:
    """Return the groups of two or more systems that are not significantly different, with their letters."""
    members: dict[str, list[int]] = {}
    for index, system in enumerate(ranking.systems):
        for group in system.letters:
            members.setdefault(group, []).append(index)
    groups = (np.array(group, np.int64) for group in members.values())
    return [(format_letter(k), group) for k, group in enumerate(groups) if len(group) > 1]


def _write_names(axes: Axes, labels: Sequence[str], scores: Floats, top: float) -> None:
    """Draw a line from each score on the axis to the name of its system, of the better half at the right."""
    n, n_right = len(labels), -(-len(labels) // 2)
    for k, (label, score) in enumerate(zip(labels, scores.tolist(), strict=True)):
        is_right = k < n_right
        y = top + 0.5 + (k if is_right else n - 1 - k)
        side = axes.get_xlim()[1 if is_right else 0]
        axes.plot([score, score, side], [0, y, y], color=plots.GREY, linewidth=0.5)
        axes.plot([score], [0], "o", color=plots.INK, markersize=3, clip_on=False)
        axes.annotate(
            label, (side, y), (4 if is_right else -4, 0), textcoords="offset points", annotation_clip=False,
            ha="left" if is_right else "right", va="center", parse_math=False,
        )  # fmt: skip


def _plot_bars(axes: Axes, bars: Sequence[tuple[str, Integers]], rows: Sequence[int], scores: Floats) -> None:
    for row, (letter, group) in zip(rows, bars, strict=True):
        positions, heights = scores[group], np.full(len(group), 0.9 + 0.75 * row)
        axes.plot(positions[[0, -1]], heights[[0, -1]], color=plots.SKY, linewidth=2.2, gid=f"group-{letter}")
        axes.plot(positions, heights, "o", color=plots.BLUE, markersize=3.2)
        axes.annotate(
            letter, (positions[-1], heights[0]), (-4, 0), textcoords="offset points", ha="right", va="center",
            fontsize=6.5,
        )  # fmt: skip


def _assign_rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return a row for each span, so that spans in one row do not touch; spans are sorted by start."""
    ends: list[float] = []
    rows = []
    for start, stop in spans:
        row = next((k for k, end in enumerate(ends) if end < start), len(ends))
        ends[row : row + 1] = [stop]
        rows.append(row)
    return rows


DRAWN: dict[str, Callable[[Table], Figure]] = {
    "forest": forest, "critical-difference": critical_difference, "matrix": matrix
}  # fmt: skip
"""Functions that draw each kind of figure."""


MAX_CHARACTERS = 40
"""Maximum characters of each part of a file's name."""


def parse_names(text: str, option: str, known: Collection[str] = plots.FORMATS) -> tuple[str, ...]:
    """Return the names in a list such as "pdf,svg".

    Raises
    ------
    InputError
        One of them is not known.
    """
    names = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    if unknown := {*names}.difference(known):
        raise InputError(f"{option} {text}: {min(unknown)!r} is not one of {', '.join(known)}")
    return names


def parse_kinds(text: str | None) -> frozenset[str]:
    """Return the kinds of figures that a text such as "forest,cd" names; all without one."""
    names = parse_names(text, "figure kinds", (*DRAWN, "cd")) if text else DRAWN
    return frozenset("critical-difference" if name == "cd" else name for name in names)


def iter_pictures(table: Table, chosen: Collection[str]) -> Iterator[tuple[str, Table]]:
    """Yield the chosen kinds of figures that fit each test set, subset and metric, with the comparisons to draw."""
    for own in (table.take(rows) for rows in group_rows(table)):
        fitting = DRAWN if is_ranked(own) else ["forest"]
        yield from ((kind, own) for kind in fitting if kind in chosen)


def select_group(table: Table, test_set: str | None, subset: str | None, metric: str | None) -> Table:
    """Return the rows of one test set, subset and metric.

    Raises
    ------
    InputError
        There is none, or several: it names them.
    """
    requested = (test_set, subset, metric)
    groups = {get_group_key(table, int(rows[0])): rows for rows in group_rows(table)}
    fitting = {
        key: rows
        for key, rows in groups.items()
        if all(value in {None, part} for value, part in zip(requested, key, strict=True))
    }
    if len(fitting) == 1:
        return table.take(next(iter(fitting.values())))
    choices = format_list([repr(" ".join(filter(None, key))) for key in fitting or groups])
    problem = "a figure shows one test set, subset and metric" if fitting else f"no comparison fits {requested}"
    raise InputError(problem, remedy=f"choose which, with test_set, subset and metric: {choices}")


def write_figures(folder: Path, pictures: Iterable[tuple[str, Table]], formats: Sequence[str]) -> list[Path]:
    """Write pictures into a folder and return their files.

    Raises
    ------
    InputError
        matplotlib is not installed.
    UnfinishedError
        A file cannot be written.
    """
    selected = [*pictures]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnfinishedError(f"the folder cannot be created ({error.strerror})", file=folder) from None
    written = []
    names = build_file_names([(kind, *get_subject(table)) for kind, table in selected])
    for name, (kind, table) in zip(names, selected, strict=True):
        figure = DRAWN[kind](table)
        for format_ in formats:
            written.append(folder / f"{name}.{format_}")
            write_parts(written[-1], [plots.rendered(figure, format_)])
    return written


def build_file_names(figures: Sequence[Sequence[str]]) -> list[str]:
    """Return a file name without ending for each kind and subject of a figure: portable, unique and reproducible.

    Characters that file names cannot have become a line. Such a name, and one that differs from another only in case,
    ends in its number.
    """
    names: list[str] = []
    for number, parts in enumerate(figures, 1):
        name = "-".join(re.sub(r"[^A-Za-z0-9_.+=@-]+", "_", part)[:MAX_CHARACTERS] for part in parts)
        is_taken = name.lower() in {other.lower() for other in names}
        names.append(name if name == "-".join(parts) and not is_taken else f"{name}-{number}")
    return names
