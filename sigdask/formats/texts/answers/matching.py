"""Exact match and F1 of an answer, as SQuAD's official scripts have them.

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


def words_of(answer: str) -> list[str]:
    """Return the words of an answer, without case, punctuation and articles.

    Examples
    --------
    >>> words_of("The  Denver Broncos' (AFC)!")
    ['denver', 'broncos', 'afc']
    """
    return ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split()


def scores(given: str, gold: Sequence[Sequence[str]], *, nothing_is_an_answer: bool) -> tuple[float, float]:
    """Return exact match and F1, each the best over the gold answers.

    Parameters
    ----------
    given : str
        The answer.
    gold : sequence of sequence of str
        The words of each gold answer.
    nothing_is_an_answer : bool
        Whether no word at all is as right as a gold answer of no word.

    Examples
    --------
    >>> scores("the Denver team", [["denver", "broncos"], ["broncos"]], nothing_is_an_answer=False)
    (0.0, 0.5)
    """
    words = words_of(given)
    exact = any(words == right for right in gold)
    return float(exact), max(_f1(words, right, nothing_is_an_answer=nothing_is_an_answer) for right in gold)


def _f1(words: Sequence[str], right: Sequence[str], *, nothing_is_an_answer: bool) -> float:
    if not words or not right:
        return float(nothing_is_an_answer and list(words) == list(right))
    n_same = sum((Counter(words) & Counter(right)).values())
    return 2 * n_same / (len(words) + len(right))
