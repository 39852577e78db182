"""The names of the classical tests, and which of them take the two systems for independent."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from sigdask.errors import InputError

MATCHED = ("t", "sign", "wilcoxon", "wilcoxon:pratt", "mcnemar")
"""Tests of matched pairs: each unit is answered by both systems."""

INDEPENDENT = ("two-sample-t", "binomial", "chi2")
"""Tests that take the two systems for independent, as if each had answered a test set of its own: for contrast."""

NAMES = (*MATCHED, *INDEPENDENT)

ALIASES = {"wilcoxon:wilcox": "wilcoxon"}
"""Wilcoxon's own rule drops zeros before the rest is ranked, Pratt's after."""


def asked(tests: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the tests that are asked for, in the order of `NAMES`.

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
    >>> asked("wilcoxon,t"), asked(["sign"]), asked(None)
    (('t', 'wilcoxon'), ('sign',), ())
    """
    given = (tests,) if isinstance(tests, str) else tests or ()
    words = [word.strip() for text in given for word in text.split(",")]
    found = {name for word in words for name in (NAMES if word == "all" else (ALIASES.get(word, word),))}
    for word in found.difference(NAMES):
        close = difflib.get_close_matches(word, NAMES, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected {', '.join(NAMES)} or all"
        raise InputError(f"no classical test {word!r}; {hint}")
    return in_order(found)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return distinct names in the order of `NAMES`.

    Examples
    --------
    >>> in_order(["sign", "t", "sign"])
    ('t', 'sign')
    """
    given = {*names}
    return tuple(name for name in NAMES if name in given)
