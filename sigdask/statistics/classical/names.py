"""Names of the classical tests, their descriptions in papers, and which assume independent systems."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from sigdask.errors import InputError
from sigdask.options import INDEPENDENT_TESTS, MATCHED_TESTS

DESCRIPTIONS = MATCHED_TESTS | INDEPENDENT_TESTS

NAMES = tuple(DESCRIPTIONS)

ALIASES = {"wilcoxon:wilcox": "wilcoxon"}
"""Wilcoxon's own rule drops zeros before the rest is ranked, Pratt's after."""


OTHER_TESTS = (
    (r"(approximate[-_ ])?randomi[sz]ation|permutation|shuffling", "p is of this test, without --tests"),
    (r"(paired[-_ ])?bootstrap.*|bca", "--interval bootstrap gives intervals by it"),
    (r"tukey.*|holm.*|hochberg|bonferroni|bh|fdr|by|max-t.*|dunn.*", "--adjust names such adjustments"),
    (r"anova|friedman|nemenyi|kruskal.*|cochran.*|omnibus", "--adjust max-t or tukey judges all systems together"),
    (r"(paired[-_ ]?)?(t[-_ ]?test|student.*)", "t is that of matched pairs, two-sample-t of two samples"),
    (r"welch.*|mann[-_ ]?whitney.*|u[-_ ]?test|rank[-_ ]?sum", "scores are of the same items; wilcoxon is for them"),
    (r"delong|auc|williams|steiger|z[-_ ]?test|fisher.*", "it needs other data than scores of items of two systems"),
)  # fmt: skip
"""Patterns of names of tests that are asked for elsewhere, or that need other data."""


def parse_tests(tests: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the requested tests in the order of `NAMES`.

    Parameters
    ----------
    tests : str or sequence of str, optional
        Names, several in a text with commas between them; "all" stands for all.

    Raises
    ------
    InputError
        There is no such test.

    Examples
    --------
    >>> parse_tests("wilcoxon,t"), parse_tests(["sign"]), parse_tests(None)
    (('t', 'wilcoxon'), ('sign',), ())
    """
    texts = (tests,) if isinstance(tests, str) else tests or ()
    words = [word.strip() for text in texts for word in text.split(",")]
    names = {name for word in words for name in (NAMES if word == "all" else (ALIASES.get(word, word),))}
    for word in names.difference(NAMES):
        if instead := next((text for pattern, text in OTHER_TESTS if re.fullmatch(pattern, word.casefold())), None):
            raise InputError(f"no classical test {word!r}: {instead}; expected {', '.join(NAMES)} or all")
        close = difflib.get_close_matches(word, NAMES, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected {', '.join(NAMES)} or all"
        raise InputError(f"no classical test {word!r}; {hint}")
    return sort_tests(names)


def sort_tests(names: Iterable[str]) -> tuple[str, ...]:
    """Return distinct test names in the order of `NAMES`.

    Examples
    --------
    >>> sort_tests(["sign", "t", "sign"])
    ('t', 'sign')
    """
    distinct = {*names}
    return tuple(name for name in NAMES if name in distinct)
