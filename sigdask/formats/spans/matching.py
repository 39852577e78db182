"""Counts of list elements that match the gold standard, and edit distances.

Elements match exactly, or one to one as entities do. Distances (longest common subsequence and edit distance) are
computed for many pairs of short sequences at a time. The sequences lie end to end in one array of codes; sequence k is
`codes[starts[k] : starts[k + 1]]`. Correct morphs and edit distances of predicted words or sentences are counted row by
row.
"""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array, MatchFields, to_object_array
from sigdask.formats.reading.listings import AlignedListings
from sigdask.io.caches import cached_njit

LabelCounts = Mapping[str, int]
MatchCounter = Callable[[Any, Any], tuple[LabelCounts, LabelCounts]]
"""Function from gold and predicted spans to numbers of matches and of predictions, by label."""


def count_exact_matches(gold: frozenset[Any], predicted: frozenset[Any]) -> tuple[LabelCounts, LabelCounts]:
    """Count predicted spans that are gold spans, and all predicted spans, by label."""
    return Counter(span[0] for span in gold & predicted), Counter(span[0] for span in predicted)


def count_entity_matches(
    gold: Mapping[str, Sequence[frozenset[str]]], predicted: Mapping[str, Sequence[frozenset[str]]]
) -> tuple[LabelCounts, LabelCounts]:
    """Return, by slot, how many predicted entities match gold entities one-to-one, and how many are predicted.

    A given entity fits a gold one if all its mentions are mentions of it.

    Examples
    --------
    >>> gold = {"Victim": [frozenset({"he", "ann"}), frozenset({"ann"})]}
    >>> count_entity_matches(gold, {"Victim": [frozenset({"ann"}), frozenset({"he"})]})
    ({'Victim': 2}, {'Victim': 2})
    """
    matched = {slot: compute_matching_size(gold.get(slot, ()), entities) for slot, entities in predicted.items()}
    return matched, {slot: len(entities) for slot, entities in predicted.items()}


def compute_matching_size(gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]]) -> int:
    """Return the size of a largest one-to-one matching between predicted and gold entities."""
    fits = np.array([[candidate <= entity for entity in gold] for candidate in predicted], np.bool_)
    if not fits.any():
        return 0
    partners = scipy.sparse.csgraph.maximum_bipartite_matching(scipy.sparse.csr_matrix(fits))
    return int(np.count_nonzero(partners >= 0))


def count_terms(gold: Sequence[frozenset[str]], systems: Sequence[Sequence[frozenset[str]]]) -> dict[str, Array]:
    """Count predicted terms that are gold terms, predicted terms and gold terms, item by item."""
    shared = [[len(a & b) for a, b in zip(column, gold, strict=True)] for column in systems]
    predicted = [[len(terms) for terms in column] for column in systems]
    columns = {"tp": shared, "predicted": predicted, "gold": [[len(terms) for terms in gold]]}
    return {name: np.array(numbers, np.int32).T for name, numbers in columns.items()}


def count_labelled(
    gold: Sequence[Any], systems: Sequence[Sequence[Any]], matches: MatchCounter
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
    gold_sizes = [[matches(elements, elements)[1] for elements in gold]]
    results = [[matches(*pair) for pair in zip(gold, column, strict=True)] for column in systems]
    predicted_sizes = [[sizes for _, sizes in column] for column in results]
    labels, used = (
        sorted({label for column in table for sizes in column for label, number in sizes.items() if number})
        for table in (gold_sizes, predicted_sizes)
    )
    others = sorted({*used}.difference(labels))
    codes = {label: code for code, label in enumerate([*labels, *others])}

    def list_entries(table: Sequence[Sequence[LabelCounts]]) -> NDArray[np.int64]:
        rows = [
            (item, system, codes[label], number)
            for system, column in enumerate(table)
            for item, sizes in enumerate(column)
            for label, number in sizes.items()
            if number
        ]
        return np.array(rows, np.int64).reshape(-1, 4)

    matched = [[sizes for sizes, _ in column] for column in results]
    tables = {"tp": matched, "predicted": predicted_sizes, "gold": gold_sizes}
    if [*codes] == [""]:
        labels, others = [], []
    entries = {name: list_entries(table) for name, table in tables.items()}
    fields = MatchFields(entries, (*labels, *others), (len(gold), len(systems)), {})
    return fields, tuple(labels), tuple(others)


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


def compute_subsequence_lengths(
    a: NDArray[Any], a_starts: NDArray[Any], b: NDArray[Any], b_starts: NDArray[Any], out: NDArray[np.int64]
) -> None:
    """Write the length of the longest common subsequence of each pair into `out`, shape (n_pairs,)."""
    compute_edit_distances(a, a_starts, b, b_starts, out, 2)  # all except common parts are deleted or inserted
    out[:] = (np.diff(a_starts) + np.diff(b_starts) - out) // 2


@cached_njit()
def compute_edit_distances(a, a_starts, b, b_starts, out, substitution=1):
    """Write the edit distance (Levenshtein) of each pair into `out`, shape (n_pairs,)."""
    for k in range(out.shape[0]):
        left, right = a[a_starts[k] : a_starts[k + 1]], b[b_starts[k] : b_starts[k + 1]]
        row = np.arange(right.shape[0] + 1)
        for i in range(left.shape[0]):
            diagonal = row[0]
            row[0] = i + 1
            for j in range(right.shape[0]):
                above = row[j + 1]
                substituted = diagonal + substitution * (left[i] != right[j])
                row[j + 1] = min(above + 1, row[j] + 1, substituted)
                diagonal = above
        out[k] = row[right.shape[0]]


def compute_morph_fields(
    gold: Sequence[str], columns: Sequence[Sequence[str]], *, sentences: bool
) -> dict[str, NDArray[Any]]:
    """Return fields of each row, such as correct morphs and edit distance; `|` joins morphs, blanks join words.

    Parameters
    ----------
    gold, columns : sequence of str
        The gold target of each row, and the targets of each system.
    sentences : bool
        Whether rows are sentences, whose words are compared one by one.
    """
    code: dict[str, int] = {}
    shape = (len(columns), len(gold))
    tp, edits, predicted, correct = (np.zeros(shape, np.int64) for _ in range(4))
    for s, column in enumerate(columns):
        words, outputs, starts = _align_words(gold, column) if sentences else (gold, column, None)
        shared, distances = np.zeros((2, len(words)), np.int64)
        compute_subsequence_lengths(*_encode_morphs(words, code), *_encode_morphs(outputs, code), shared)
        compute_edit_distances(*_encode_characters(words), *_encode_characters(outputs), distances)
        tp[s], edits[s] = (v if starts is None else np.add.reduceat(v, starts) for v in (shared, distances))
        predicted[s] = _count_morphs(column, sentences=sentences)
        correct[s] = [a == b for a, b in zip(gold, column, strict=True)]
    arrays = {"tp": tp, "predicted": predicted, "correct": correct, "score[edit-distance]": edits}
    fields = {name: np.ascontiguousarray(array.T.astype(np.int32)) for name, array in arrays.items()}
    return {
        **fields,
        "gold": np.array(_count_morphs(gold, sentences=sentences), np.int32)[:, None],
        "items": np.ones((len(gold), 1), np.int8),
    }


def _align_words(gold: Sequence[str], column: Sequence[str]) -> tuple[list[str], list[str], NDArray[np.int64]]:
    """Return the gold and system words of all sentences, padded by "", and the sentence starts."""
    sentences = [list(zip_longest(a.split(" "), b.split(" "), fillvalue="")) for a, b in zip(gold, column, strict=True)]
    pairs = [pair for sentence in sentences for pair in sentence]
    return [a for a, _ in pairs], [b for _, b in pairs], _compute_starts([len(sentence) for sentence in sentences])[:-1]


def _count_morphs(targets: Sequence[str], *, sentences: bool) -> list[int]:
    return [target.count("|") + 1 + (target.count(" ") if sentences else 0) for target in targets]


def _encode_morphs(column: Sequence[str], code: dict[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    codes = np.array([code.setdefault(morph, len(code)) for target in column for morph in target.split("|")], np.int64)
    return codes, _compute_starts([target.count("|") + 1 for target in column])


def _encode_characters(column: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    codes = np.frombuffer("".join(column).encode("utf-32-le"), np.uint32).astype(np.int64)
    return codes, _compute_starts([len(text) for text in column])


def _compute_starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
