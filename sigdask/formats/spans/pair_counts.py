"""Count correct morphs and edit distances of predicted words or sentences, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.formats.spans.sequences import compute_edit_distances, compute_subsequence_lengths


def compute_morph_fields(
    gold: Sequence[str], columns: Sequence[Sequence[str]], *, bag: bool, sentences: bool
) -> dict[str, NDArray[Any]]:
    """Return fields of each row, such as correct morphs and edit distance; `|` joins morphs, blanks join words.

    Parameters
    ----------
    gold, columns : sequence of str
        The gold target of each row, and the targets of each system.
    bag : bool
        Whether the order of morphs does not matter.
    sentences : bool
        Whether rows are sentences, whose words are compared one by one.
    """
    code: dict[str, int] = {}
    shape = (len(columns), len(gold))
    tp, edits, predicted, correct = (np.zeros(shape, np.int64) for _ in range(4))
    for s, column in enumerate(columns):
        words, outputs, starts = _align_words(gold, column) if sentences else (gold, column, None)
        tp[s] = _sum_sentences(_count_shared_morphs(words, outputs, code, bag=bag), starts)
        distances = np.zeros(len(words), np.int64)
        compute_edit_distances(*_encode_characters(words), *_encode_characters(outputs), distances)
        edits[s] = _sum_sentences(distances, starts)
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


def _sum_sentences(values: NDArray[np.int64], starts: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return values if starts is None else np.add.reduceat(values, starts)


def _count_shared_morphs(
    words: Sequence[str], outputs: Sequence[str], code: dict[str, int], *, bag: bool
) -> NDArray[np.int64]:
    """Count the correct morphs of each word; a missing word has none."""
    shared = np.zeros(len(words), np.int64)
    if bag:
        shared[:] = [
            (Counter(a.split("|")) & Counter(b.split("|"))).total() for a, b in zip(words, outputs, strict=True)
        ]
    else:
        compute_subsequence_lengths(*_encode_morphs(words, code), *_encode_morphs(outputs, code), shared)
    return shared


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
