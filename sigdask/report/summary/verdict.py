"""The answer that a reader wants first: which system is best, is it real, by how much and how sure, was it checked.

Plain sentences and rows of the table, for whoever shows results: a terminal, a page, a paper, a notebook. Names in
them stand as users gave them: who writes them makes them harmless.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.report.summary import checks as checked
from sigdask.report.summary.borderline import causes, close
from sigdask.report.summary.groups import told
from sigdask.report.summary.headline import MOST_TOLD, group, headline
from sigdask.report.summary.standings import ALL, BASELINE, PAIR, Standings
from sigdask.results.comparisons import ComparisonResults

DOUBT = "Do not rely on this, a check disagrees: "


@dataclass(frozen=True, slots=True)
class BestSystems:
    """Which systems may be the best of a test set and subset by a metric.

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
    """What was found, for a first screen.

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


def of(results: ComparisonResults) -> Verdict:
    """Return the verdict on some results.

    Parameters
    ----------
    results : ComparisonResults
        What was found.
    """
    table = results.table
    decision = table.decision
    is_checked = not bool(table.disagrees.any())
    answer, sentences = _answer(results)
    contests = Standings.of(table)
    borderline = close(table)
    return Verdict(
        scope=tuple(_full(note.text) for note in results.notes if note.kind == "scope"),
        headline=_full(answer if is_checked else DOUBT + answer),
        sentences=tuple(map(_full, sentences)),
        checks=checked.line(table),
        is_checked=is_checked,
        close=borderline,
        causes=tuple(causes(table, borderline)),
        n_significant=int(np.count_nonzero(decision == 1)),
        n_undecided=int(np.count_nonzero(decision == -1)),
        n_comparisons=len(table),
        is_ranking=len(table) > 0 and contests.shape == ALL,
        best=tuple(_best(results, contests)),
    )


def _answer(results: ComparisonResults) -> tuple[str, list[str]]:
    if not len(results):
        return "Nothing was compared", []
    found = told(results)
    n = found.contests.n_groups
    return headline(found), [group(found, g) for g in range(n)] if 1 < n <= MOST_TOLD else []


def _full(text: str) -> str:
    return f"{text}."


def _best(results: ComparisonResults, c: Standings) -> list[BestSystems]:
    table = results.table
    if not len(table) or c.shape not in {PAIR, BASELINE, ALL}:
        return []
    names = _leaders(c) if c.shape != BASELINE else _above_baseline(c)
    rows = c.first.tolist()
    sets, subsets, metrics = table.test_set, table.subset, table.metric
    return [
        BestSystems(
            sets[row], None if s is None else {"column": s.column, "value": s.value}, metrics[row].name, tuple(own)
        )
        for row, s, own in zip(rows, (subsets[row] for row in rows), names, strict=True)
    ]


def _leaders(c: Standings) -> list[list[str]]:
    """Return of each group the best, and those that are not significantly different from it."""
    top, rows = c.top, c.beside_top
    found = [[c.names[k]] for k in top.tolist()]
    group = c.group[rows]
    other = np.where(c.a[rows] == top[group], c.b[rows], c.a[rows])
    order = np.argsort(np.abs(c.ahead[rows]), kind="stable")
    for g, k in zip(group[order].tolist(), other[order].tolist(), strict=True):
        found[g].append(c.names[k])
    return found


def _above_baseline(c: Standings) -> list[list[str]]:
    rows = np.flatnonzero((c.decision == 1) & (c.ahead > 0))
    found: list[list[str]] = [[] for _ in range(c.n_groups)]
    for row in rows[np.argsort(-c.ahead[rows], kind="stable")].tolist():
        found[int(c.group[row])].append(c.names[int(c.a[row])])
    return found
