"""Words for procedures, by their names in options and results, with the works that they rest on.

Each procedure is declared once. Sentences hold citations as `[[key,key]]`; a new procedure needs an entry here,
and every table, page, report and methods section finds its words.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CITATION_PATTERN = re.compile(r" ?\[\[([^\[\]]+)\]\]")
"""Pattern of citations in sentences."""


def find_citations(text: str) -> tuple[str, ...]:
    """Return the keys of the works that a sentence cites, in order of appearance, each once.

    Examples
    --------
    >>> find_citations("a test [[yeh2000,noreen1989]] with a bound [[phipson2010,yeh2000]]")
    ('yeh2000', 'noreen1989', 'phipson2010')
    """
    return tuple(dict.fromkeys(key for match in CITATION_PATTERN.finditer(text) for key in match[1].split(",")))


class Words(NamedTuple):
    """Words for a procedure.

    Attributes
    ----------
    label : str
        In a table, or a line of settings.
    sentence : str
        In a methods section, with its citations.
    draws : str
        Of an interval: what is drawn at random.
    """

    label: str
    sentence: str
    draws: str = "resamples"


ADJUSTMENTS = {
    "holm": Words("Holm", "Holm's step-down procedure [[holm1979]]"),
    "bh": Words(
        "Benjamini-Hochberg (false discovery rate)",
        "the procedure of Benjamini and Hochberg, which bounds the false discovery rate [[benjamini1995]]",
    ),
    "max-t": Words(
        "step-down max-T on shared swaps",
        "the step-down max-T procedure on the same swaps, studentised [[westfall1993,romano2005]]",
    ),
    "tukey": Words(
        "randomised Tukey HSD", "a randomised version of Tukey's HSD test, blocked by unit [[carterette2012]]"
    ),
}

INTERVAL_METHODS = {
    "bootstrap-bca": Words("BCa bootstrap", "the bias-corrected and accelerated paired bootstrap [[efron1987]]"),
    "bootstrap-percentile": Words("percentile bootstrap", "percentiles of the paired bootstrap"),
    "tango": Words("Tango's score interval", "Tango's score method [[tango1998]]"),
    "inversion": Words("the test inverted", "inversion of the randomization test [[garthwaite1996]]", "random swaps"),
    "recipe-t": Words("t, items and runs", "Student's t with the variances over items and runs [[satterthwaite1946]]"),
    "normal": Words("normal, by the jackknife", "a normal approximation with the jackknife's standard error"),
}

EXACT_METHOD_SOURCES = {
    "polynomial": "pagano1983", "dp": "pagano1983", "grid-dp": "streitberg1986",
    "meet-in-the-middle": "horowitz1974",
}  # fmt: skip
"""Sources of methods for exact p-values."""

ALTERNATIVES = {
    "two-sided": Words("two-sided", "two-sided"),
    "greater": Words("one-sided, A > B", "one-sided (the first system scores higher)"),
    "less": Words("one-sided, A < B", "one-sided (the first system scores lower)"),
}
