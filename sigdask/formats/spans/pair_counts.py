"""Right morphs of words and sentences, and edit distances, counted row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.formats.spans.sequences import common_subsequences, edit_distances


def morph_fields(
    gold: Sequence[str], columns: Sequence[Sequence[str]], *, bag: bool, sentences: bool
) -> dict[str, NDArray[Any]]:
    """Return the fields of gold and given targets, morphs joined by `|`; of sentences, words by blanks.

    Parameters
    ----------
    gold, columns : sequence of str
        What is right for each row, and what each system gave.
    bag : bool
        Whether the order of morphs does not matter.
    sentences : bool
        Whether rows are sentences, whose words are compared one by one.
    """
    code: dict[str, int] = {}
    shape = (len(columns), len(gold))
    tp, edits, predicted, correct = (np.zeros(shape, np.int64) for _ in range(4))
    for s, column in enumerate(columns):
        words, given, starts = _side_by_side(gold, column) if sentences else (gold, column, None)
        tp[s] = _summed(_shared(words, given, code, bag=bag), starts)
        distances = np.zeros(len(words), np.int64)
        edit_distances(*_characters(words), *_characters(given), distances)
        edits[s] = _summed(distances, starts)
        predicted[s] = _n_morphs(column, sentences=sentences)
        correct[s] = [a == b for a, b in zip(gold, column, strict=True)]
    small = {"tp": tp, "predicted": predicted, "correct": correct, "score[edit-distance]": edits}
    fields = {name: np.ascontiguousarray(array.T.astype(np.int32)) for name, array in small.items()}
    return {
        **fields,
        "gold": np.array(_n_morphs(gold, sentences=sentences), np.int32)[:, None],
        "items": np.ones((len(gold), 1), np.int8),
    }


def _side_by_side(gold: Sequence[str], column: Sequence[str]) -> tuple[list[str], list[str], NDArray[np.int64]]:
    """Return the words of all sentences, gold and given, "" for one too few, and where each sentence starts."""
    sentences = [list(zip_longest(a.split(" "), b.split(" "), fillvalue="")) for a, b in zip(gold, column, strict=True)]
    pairs = [pair for sentence in sentences for pair in sentence]
    return [a for a, _ in pairs], [b for _, b in pairs], _starts([len(sentence) for sentence in sentences])[:-1]


def _summed(values: NDArray[np.int64], starts: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return values if starts is None else np.add.reduceat(values, starts)


def _shared(words: Sequence[str], given: Sequence[str], code: dict[str, int], *, bag: bool) -> NDArray[np.int64]:
    """Count the right morphs of each word; none where a word is missing."""
    shared = np.zeros(len(words), np.int64)
    if bag:
        shared[:] = [(Counter(a.split("|")) & Counter(b.split("|"))).total() for a, b in zip(words, given, strict=True)]
    else:
        common_subsequences(*_coded(words, code), *_coded(given, code), shared)
    return shared


def _n_morphs(targets: Sequence[str], *, sentences: bool) -> list[int]:
    return [target.count("|") + 1 + (target.count(" ") if sentences else 0) for target in targets]


def _coded(column: Sequence[str], code: dict[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    codes = np.array([code.setdefault(morph, len(code)) for target in column for morph in target.split("|")], np.int64)
    return codes, _starts([target.count("|") + 1 for target in column])


def _characters(column: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    codes = np.frombuffer("".join(column).encode("utf-32-le"), np.uint32).astype(np.int64)
    return codes, _starts([len(text) for text in column])


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
