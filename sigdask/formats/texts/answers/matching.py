"""Exact match and F1 of an answer, as in SQuAD's official scripts.

Rajpurkar, Zhang, Lopyrev & Liang 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text"
(evaluate-v1.1.py); Rajpurkar, Jia & Liang 2018, "Know What You Don't Know" (evaluate-v2.0.py). The two differ where
nothing is left of an answer: 2.0 holds nothing equal to nothing (no answer), 1.1 gives it no F1.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_words(answer: str) -> list[str]:
    """Return the words of an answer, without case, punctuation and articles.

    Examples
    --------
    >>> normalize_words("The  Denver Broncos' (AFC)!")
    ['denver', 'broncos', 'afc']
    """
    return ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split()


def compute_scores(answer: str, gold: Sequence[Sequence[str]], *, nothing_is_an_answer: bool) -> tuple[float, float]:
    """Return exact match and F1 of an answer, each as the highest value over the gold answers.

    Parameters
    ----------
    answer : str
        The answer.
    gold : sequence of sequence of str
        The words of each gold answer.
    nothing_is_an_answer : bool
        Whether no word at all is as right as a gold answer of no word.

    Examples
    --------
    >>> compute_scores("the Denver team", [["denver", "broncos"], ["broncos"]], nothing_is_an_answer=False)
    (0.0, 0.5)
    """
    words = normalize_words(answer)
    exact = any(words == gold_words for gold_words in gold)
    return float(exact), max(
        _compute_f1(words, gold_words, nothing_is_an_answer=nothing_is_an_answer) for gold_words in gold
    )


def _compute_f1(words: Sequence[str], gold_words: Sequence[str], *, nothing_is_an_answer: bool) -> float:
    if not words or not gold_words:
        return float(nothing_is_an_answer and list(words) == list(gold_words))
    n_same = sum((Counter(words) & Counter(gold_words)).values())
    return 2 * n_same / (len(words) + len(gold_words))
