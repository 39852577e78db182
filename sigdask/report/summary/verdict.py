"""The verdict on results: the best system, its lead, significance, and the outcome of the checks.

Plain sentences and rows of the table, for whoever shows results: a terminal, a page, a paper, a notebook. Names in
them stand as users gave them: who writes them makes them harmless.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.report.summary import checks as check_texts
from sigdask.report.summary.borderline import find_borderline, list_causes
from sigdask.report.summary.groups import build_verdict_groups
from sigdask.report.summary.headline import MAX_LISTED_GROUPS, build_headline, describe_group
from sigdask.report.summary.standings import ALL, BASELINE, PAIR, Standings
from sigdask.results.comparisons import ComparisonResults

DOUBT = "Do not rely on this, a check disagrees: "


@dataclass(frozen=True, slots=True)
class BestSystems:
    """The systems that may be the best on one test set and subset by one metric.

    Attributes
    ----------
    test_set : str
        Its name.
    subset : dict or None
        {"column", "value"} of `--by`.
    metric : str
        As it was asked for.
    names : tuple of str
        The best score first, then those that are not significantly different from it; against a baseline, those that
        are significantly better, the best first.
    """

    test_set: str
    subset: dict[str, str] | None
    metric: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on results in brief, which comes before any table.

    Attributes
    ----------
    scope : tuple of str
        Which part of the files is scored, and which is not; a sentence each.
    headline : str
        One sentence, with a full stop.
    sentences : tuple of str
        The same of each metric, test set and subset, with the amounts; empty where these are too many, or one.
    checks : str
        What was checked and how it came out, in a line.
    is_checked : bool
        Whether no check disagrees.
    close : int64 array
        Rows of the table whose verdict a different seed, or a few more or fewer units, could change; the closest first.
    causes : tuple of str
        Which of these, of each of them.
    n_significant, n_undecided, n_comparisons : int
        Comparisons that are significant, undecided, and all.
    is_ranking : bool
        Whether all systems were compared with each other, three or more, two-sided.
    best : tuple of BestSystems
        Of each test set, subset and metric; none where the comparisons give no order.
    """

    scope: tuple[str, ...]
    headline: str
    sentences: tuple[str, ...]
    checks: str
    is_checked: bool
    close: NDArray[np.int64]
    causes: tuple[str, ...]
    n_significant: int
    n_undecided: int
    n_comparisons: int
    is_ranking: bool
    best: tuple[BestSystems, ...]


def build_verdict(results: ComparisonResults) -> Verdict:
    """Return the verdict on some results.

    Parameters
    ----------
    results : ComparisonResults
        What was found.
    """
    table = results.table
    decision = table.decision
    is_checked = not bool(table.has_disagreement.any())
    answer, sentences = _build_answer(results)
    standings = Standings.from_table(table)
    borderline = find_borderline(table)
    return Verdict(
        scope=tuple(_add_full_stop(note.text) for note in results.notes if note.kind == "scope"),
        headline=_add_full_stop(answer if is_checked else DOUBT + answer),
        sentences=tuple(map(_add_full_stop, sentences)),
        checks=check_texts.describe_checks(table),
        is_checked=is_checked,
        close=borderline,
        causes=tuple(list_causes(table, borderline)),
        n_significant=int(np.count_nonzero(decision == 1)),
        n_undecided=int(np.count_nonzero(decision == -1)),
        n_comparisons=len(table),
        is_ranking=len(table) > 0 and standings.design == ALL,
        best=tuple(_list_best_systems(results, standings)),
    )


def _build_answer(results: ComparisonResults) -> tuple[str, list[str]]:
    if not len(results):
        return "Nothing was compared", []
    groups = build_verdict_groups(results)
    n = groups.standings.n_groups
    return build_headline(groups), [describe_group(groups, g) for g in range(n)] if 1 < n <= MAX_LISTED_GROUPS else []


def _add_full_stop(text: str) -> str:
    return f"{text}."


def _list_best_systems(results: ComparisonResults, c: Standings) -> list[BestSystems]:
    table = results.table
    if not len(table) or c.design not in {PAIR, BASELINE, ALL}:
        return []
    names = _list_leaders(c) if c.design != BASELINE else _list_above_baseline(c)
    rows = c.first_rows.tolist()
    sets, subsets, metrics = table.test_set, table.subset, table.metric
    return [
        BestSystems(
            sets[row],
            None if s is None else {"column": s.column, "value": s.value},
            metrics[row].name,
            tuple(best_names),
        )
        for row, s, best_names in zip(rows, (subsets[row] for row in rows), names, strict=True)
    ]


def _list_leaders(c: Standings) -> list[list[str]]:
    """Return, for each group, its best system and those not significantly different from it."""
    top, rows = c.top, c.near_top_rows
    leaders = [[c.names[k]] for k in top.tolist()]
    group = c.group[rows]
    others = np.where(c.a[rows] == top[group], c.b[rows], c.a[rows])
    order = np.argsort(np.abs(c.ahead[rows]), kind="stable")
    for g, k in zip(group[order].tolist(), others[order].tolist(), strict=True):
        leaders[g].append(c.names[k])
    return leaders


def _list_above_baseline(c: Standings) -> list[list[str]]:
    rows = np.flatnonzero((c.decision == 1) & (c.ahead > 0))
    better: list[list[str]] = [[] for _ in range(c.n_groups)]
    for row in rows[np.argsort(-c.ahead[rows], kind="stable")].tolist():
        better[int(c.group[row])].append(c.names[int(c.a[row])])
    return better
