"""Rankings of systems, for each test set, subset and metric with all pairs compared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from sigdask.counts.fields import Floats, Integers
from sigdask.metrics.regression import PREFIX
from sigdask.results.record import NamedValues
from sigdask.results.table import Table
from sigdask.statistics import numbering
from sigdask.statistics.lattice import TIE
from sigdask.statistics.ranking_letters import discriminative_power, number_clusters, rank_systems
from sigdask.text import to_plain

MAX_LETTERS = 8
"""Maximum number of letters of a readable ranking."""


class SystemRanking(NamedValues):
    """Systems by score, with marks of those that do not differ significantly.

    Attributes
    ----------
    test_set : str
        Name of the test set.
    subset : dict or None
        {"column", "value"} of `--by`.
    metric : str
        Metric as requested.
    discriminative_power : float
        Share of pairs with unadjusted p at most alpha (Sakai 2006).
    systems : tuple of RankedSystem
        Best first.
    clusters : tuple of int, or None
        Number of each system's cluster, if metrics are compared by their agreement with people (`number_clusters`).
    requested : str
        How systems that do not differ significantly are to be marked, as in `options.RankingMarkOptions`.
    of_runs : bool
        Whether scores are means over several runs, for which alone the marks hold.
    """

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object of the ranking. It has clusters if there are any, but not how systems are marked."""
        values = {name: value for name, value in to_plain(self).items() if name not in {"requested", "of_runs"}}
        return {name: value for name, value in values.items() if name != "clusters" or value is not None}

    @property
    def grouping(self) -> str:
        """How systems are marked: as requested, or by "letters" if these could be computed and are few, or "ranks"."""
        letters = {letter for ranked in self.systems for letter in ranked.letters}
        are_few = len(letters) <= MAX_LETTERS or self.requested == "letters"
        if self.requested in {"auto", "letters"}:
            return "letters" if all(s.letters for s in self.systems) and are_few else "ranks"
        return str(self.requested)


@lru_cache(maxsize=1)
def build_rankings(table: Table) -> tuple[SystemRanking, ...]:
    """Return a ranking of the systems for each test set, subset and metric with all pairs compared.

    Comparisons are two-sided, or of metrics by their agreement with people (the better one first). The last rankings
    are cached, because the report and the JSON of a call need the same ones.
    """
    return tuple(map(build_ranking, iter_ranked(table)))


def iter_ranked(table: Table) -> Iterator[Table]:
    """Yield the part of the table for each test set, subset and metric whose systems can be ranked."""
    parts = (table if len(rows) == len(table) else table.take(rows) for rows in group_rows(table))
    return filter(is_ranked, parts)


def group_rows(table: Table) -> Iterator[Integers]:
    """Yield the row indices of each test set, subset and metric, in order of first appearance."""
    yield from numbering.group_rows(table.number_rows("test_set", "subset.column", "subset.value", "metric"))


def is_ranked(table: Table) -> bool:
    """Return whether a table holds comparisons of all pairs of three or more systems, in either direction."""
    sides = {*table.alternative.levels}
    is_better_first = sides == {"greater"} and is_agreement(table) and bool((table.difference >= 0).all())
    if sides != {"two-sided"} and not is_better_first:
        return False
    names, a, b = table.index_systems()
    n_systems = int(np.count_nonzero(np.bincount(a, minlength=len(names)) + np.bincount(b, minlength=len(names))))
    n_pairs = len(numbering.find_distinct(np.minimum(a, b) * len(names) + np.maximum(a, b))[0])
    return n_systems >= 3 and n_pairs == n_systems * (n_systems - 1) // 2 and has_one_score(table)


def has_one_score(table: Table) -> bool:
    """Return whether each system has one score in a table of one metric; with missing items it has one in each pair."""
    _, scores, a, b = collect_scores(table)
    shown = table.score_a, table.score_b
    return np.allclose([scores[a], scores[b]], shown, rtol=2 * TIE, atol=0.0, equal_nan=True)


def is_agreement(table: Table) -> bool:
    """Return whether all comparisons are of metrics by their agreement with people."""
    return all(metric.startswith(PREFIX) for metric in table.metric.levels)


def collect_scores(table: Table) -> tuple[list[str], Floats, Integers, Integers]:
    """Return the systems in a table of one metric, the score of each, and the places of each row's systems."""
    names, a, b = table.index_systems()
    systems = np.column_stack([a, b]).reshape(-1)
    scores = np.column_stack([table.score_a, table.score_b]).reshape(-1)
    used, first_rows = np.unique(systems, return_index=True)
    order = np.argsort(first_rows)
    new_indices = np.zeros(len(names), np.int64)
    new_indices[used[order]] = np.arange(len(used))
    return [names[k] for k in used[order].tolist()], scores[first_rows[order]], new_indices[a], new_indices[b]


def build_ranking(table: Table) -> SystemRanking:
    """Return the ranking of the systems in a table of one metric with all pairs compared."""
    systems, scores, a, b = collect_scores(table)
    decision, higher_is_better = table.decision, bool(table.higher_is_better[0])
    is_a_better = (table.difference >= 0) == higher_is_better
    pairs = np.where(is_a_better, [a, b], [b, a]).T
    systems_ranked = rank_systems(systems, scores, pairs[decision == 1], higher_is_better=higher_is_better)
    column, value = table["subset.column"][0], table["subset.value"][0]
    return SystemRanking(
        test_set=table.test_set[0],
        subset={"column": column, "value": value} if column else None,
        metric=table.metric[0],
        discriminative_power=discriminative_power(table.p_value, table.alpha),
        systems=tuple(systems_ranked),
        clusters=_find_clusters(table, pairs, [systems.index(ranked.system) for ranked in systems_ranked]),
        requested=table.grouping,
        of_runs=table.has("runs"),
    )


def _find_clusters(table: Table, pairs: Integers, best_first: list[int]) -> tuple[int, ...] | None:
    """Return the clusters of metrics by unadjusted p, as in WMT's metrics tasks; None for other systems."""
    if not is_agreement(table):
        return None
    is_beaten = np.zeros((len(best_first), len(best_first)), np.bool_)
    better, worse = np.argsort(best_first)[pairs[table.p_value <= table.alpha]].T
    is_beaten[better, worse] = True
    return tuple(number_clusters(is_beaten))
