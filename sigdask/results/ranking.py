"""Systems ranked: each test set, subset and metric of which all pairs were compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.results.table import Table
from sigdask.statistics.letters import RankedSystem, discriminative_power, ranking


@dataclass(frozen=True, slots=True)
class SystemRanking:
    """Systems by score, with letters: those that share one are not significantly different.

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
    systems : tuple of RankedSystem
        Best first.
    """

    test_set: str
    subset: dict[str, str] | None
    metric: str
    discriminative_power: float
    systems: tuple[RankedSystem, ...]


def rankings(table: Table) -> list[SystemRanking]:
    """Rank the systems of each test set, subset and metric of which all pairs were compared, two-sided."""
    return [ranking_of(own) for own in ranked(table)]


def ranked(table: Table) -> Iterator[Table]:
    """Yield the rows of each ranking."""
    parts = (table if len(rows) == len(table) else table.take(rows) for rows in groups(table))
    return filter(is_ranked, parts)


def groups(table: Table) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each test set, subset and metric, in the order in which these come first."""
    names = {score: score.name for score in table.metric.values}
    places = {name: k for k, name in enumerate(dict.fromkeys(names.values()))}
    metric = np.array([places[names[score]] for score in table.metric.values], np.int64)
    keys = (table.test_set.codes, table.subset.codes, metric[table.metric.codes])
    _, first, own = np.unique(np.column_stack(keys), axis=0, return_index=True, return_inverse=True)
    rows = np.argsort(own.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(own.reshape(-1)))
    parts = np.split(rows, ends[:-1]) if len(rows) else []
    yield from (parts[k] for k in np.argsort(first))


def systems_of(table: Table) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the names of systems, and the place of each row's A and B among them."""
    names = list(dict.fromkeys((*table.a.values, *table.b.values)))
    places = {name: k for k, name in enumerate(names)}
    a, b = (np.array([places[name] for name in column.values], np.int64)[column.codes] for column in (table.a, table.b))
    return names, a, b


def is_ranked(table: Table) -> bool:
    """Say whether every two systems were compared; one-sided, the other direction is not tested."""
    if any(table.alternative.values[code] != "two-sided" for code in np.unique(table.alternative.codes).tolist()):
        return False
    names, a, b = systems_of(table)
    n_systems = len(np.unique(np.concatenate([a, b])))
    n_pairs = len(np.unique(np.minimum(a, b) * len(names) + np.maximum(a, b)))
    return n_systems >= 3 and n_pairs == n_systems * (n_systems - 1) // 2


@dataclass(frozen=True, slots=True, eq=False)
class SystemScores:
    """The systems of comparisons by one metric, each with one score.

    Attributes
    ----------
    systems : list of str
        Their names.
    scores : float64 array, shape (n_systems,)
        Of each; where items are missing, as in the pair that has most of them.
    a, b : int64 array, shape (n,)
        The place of each row's systems.
    """

    systems: list[str]
    scores: NDArray[np.float64]
    a: NDArray[np.int64]
    b: NDArray[np.int64]


def scored(table: Table) -> SystemScores:
    """Return the systems of these comparisons, which are by one metric, with their scores."""
    names, a, b = systems_of(table)
    most_items = np.argsort(-table.n_items, kind="stable")
    systems = np.column_stack([a, b])[most_items].reshape(-1)
    scores = np.column_stack([table.score_a, table.score_b])[most_items].reshape(-1)
    first = np.sort(np.unique(systems, return_index=True)[1])
    place = np.zeros(len(names), np.int64)
    place[systems[first]] = np.arange(len(first))
    return SystemScores([names[k] for k in systems[first].tolist()], scores[first], place[a], place[b])


def ranking_of(table: Table) -> SystemRanking:
    """Rank the systems of these comparisons, which are all pairs by one metric."""
    found = scored(table)
    decision = table.decision
    apart = np.column_stack([found.a, found.b])[decision == 1]
    score = table.metric[0]
    systems_ranked = ranking(found.systems, found.scores, apart, higher_is_better=score.higher_is_better)
    decided = np.where(np.isnan(table.p_value), decision != 1, table.p_value)  # a rule may decide without p
    subset = table.subset[0]
    return SystemRanking(
        table.test_set[0],
        None if subset is None else {"column": subset.column, "value": subset.value},
        score.name,
        discriminative_power(decided, table.alpha),
        tuple(systems_ranked),
    )
