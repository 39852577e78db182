"""Counts of list elements that match the gold standard: exactly, or one to one as entities do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from sigdask.counts import Counts, Outputs
from sigdask.counts.factors import Codes
from sigdask.counts.fields import Array, MatchFields, to_object_array
from sigdask.formats.reading.listings import AlignedListings

MatchCounter = Callable[[Any, Any], Mapping[str, int]]
"""Function from gold and predicted elements to the number of matches of each label; all of a list match itself."""


def count_exact_matches(gold: frozenset[Any], predicted: frozenset[Any]) -> Mapping[str, int]:
    """Count predicted spans that are gold spans, by label."""
    return Counter(span[0] for span in gold & predicted)


def count_entity_matches(
    gold: Mapping[str, Sequence[frozenset[str]]], predicted: Mapping[str, Sequence[frozenset[str]]]
) -> Mapping[str, int]:
    """Return, by slot, how many predicted entities match gold entities one-to-one.

    A given entity fits a gold one if all its mentions are mentions of it.

    Examples
    --------
    >>> gold = {"Victim": [frozenset({"he", "ann"}), frozenset({"ann"})]}
    >>> count_entity_matches(gold, {"Victim": [frozenset({"ann"}), frozenset({"he"})]})
    {'Victim': 2}
    """
    sizes: dict[str, int] = {}
    for slot, entities in predicted.items():
        fits = np.array([[candidate <= entity for entity in gold.get(slot, ())] for candidate in entities], np.bool_)
        if fits.any():
            partners = scipy.sparse.csgraph.maximum_bipartite_matching(scipy.sparse.csr_matrix(fits))
            sizes[slot] = int(np.count_nonzero(partners >= 0))
    return sizes


def count_labelled(
    gold: Sequence[Any], systems: Sequence[Sequence[Any]], match: MatchCounter
) -> tuple[MatchFields, tuple[str, ...], tuple[str, ...]]:
    """Count the matches of each system's list with gold, for each item and label.

    Returns
    -------
    MatchFields
        The fields.
    tuple of str
        Labels of the gold data; none where there is only "".
    tuple of str
        Labels that only systems use.
    """
    rows: dict[str, list[tuple[int, int, int, int]]] = {"tp": [], "predicted": [], "gold": []}
    codes = Codes()

    def add(kind: str, system: int, firsts: Sequence[Any], seconds: Sequence[Any]) -> None:
        for item, pair in enumerate(zip(firsts, seconds, strict=True)):
            rows[kind] += [(item, system, codes[label], number) for label, number in match(*pair).items()]

    add("gold", 0, gold, gold)
    for system, column in enumerate(systems):
        add("tp", system, gold, column)
        add("predicted", system, column, column)
    names = list(codes)
    labels, used = ({names[row[2]] for row in rows[kind]} for kind in ("gold", "predicted"))
    if names == [""]:
        names, labels, used = [], set(), set()
    entries = {kind: np.array(found, np.int64).reshape(-1, 4) for kind, found in rows.items()}
    fields = MatchFields(entries, tuple(names), (len(gold), len(systems)), {})
    return fields, tuple(sorted(labels)), tuple(sorted(used - labels))


def build_list_counts(aligned: AlignedListings, fields: Mapping[str, Array], **more: Any) -> Counts:
    """Return counts of the fields of aligned lists. `more` has additional arguments of `Counts`."""
    columns = map(to_object_array, aligned.systems.values())
    return Counts(
        systems=tuple(aligned.systems),
        fields=fields,
        n_items=len(aligned.gold),
        ids=aligned.ids,
        groups=aligned.groups,
        present=aligned.present,
        outputs=Outputs(tuple(columns), to_object_array(aligned.gold)),
        **more,
    )
