"""Words for procedures, by their names in options and results, with the works that they rest on.

Each procedure is declared once. Sentences hold citations as `[[key,key]]`; a new procedure needs an entry here,
and every table, page, report and methods section finds its words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class AdjustmentWording:
    """Words for an adjustment of p-values.

    Attributes
    ----------
    label : str
        In a line of settings, after "adjusted by".
    sentence : str
        In a methods section, with its citations.
    """

    label: str
    sentence: str


ADJUSTMENTS = {
    "holm": AdjustmentWording("Holm", "Holm's step-down procedure [[holm1979]]"),
    "bh": AdjustmentWording(
        "Benjamini-Hochberg (false discovery rate)",
        "the procedure of Benjamini and Hochberg, which bounds the false discovery rate [[benjamini1995]]",
    ),
    "max-t": AdjustmentWording(
        "step-down max-T on shared swaps",
        "the step-down max-T procedure on the same swaps, studentised [[westfall1993,romano2005]]",
    ),
    "tukey": AdjustmentWording(
        "randomised Tukey HSD", "a randomised version of Tukey's HSD test, blocked by unit [[carterette2012]]"
    ),
}


EQUAL_SCORE_TEST = (
    "the symmetric studentised bootstrap of units, step-down in families [[efron1993,romano2005,westfall1993]]"
)


@dataclass(frozen=True, slots=True)
class IntervalMethod:
    """Words for a method of confidence intervals of differences.

    Attributes
    ----------
    kind : str
        Word before "interval".
    name : str
        Name in a table or its notes.
    sentence : str
        In a methods section, with its citations.
    draws : str
        What is drawn at random.
    """

    kind: str
    name: str
    sentence: str
    draws: str = "resamples"


INTERVAL_METHODS = {
    "bootstrap-bca": IntervalMethod(
        "bootstrap", "BCa bootstrap", "the bias-corrected and accelerated paired bootstrap [[efron1987]]"
    ),
    "bootstrap-percentile": IntervalMethod("bootstrap", "percentile bootstrap", "percentiles of the paired bootstrap"),
    "tango": IntervalMethod("score", "Tango's score interval", "Tango's score method [[tango1998]]"),
    "inversion": IntervalMethod(
        "inverted", "the test inverted", "inversion of the randomization test [[garthwaite1996]]", "random swaps"
    ),
    "recipe-t": IntervalMethod(
        "recipe", "t, items and runs", "Student's t with the variances over items and runs [[satterthwaite1946]]"
    ),
    "normal": IntervalMethod(
        "normal", "normal, by the jackknife", "a normal approximation with the jackknife's standard error"
    ),
}

EXACT_METHOD_SOURCES = {
    "polynomial": "pagano1983", "dp": "pagano1983", "grid-dp": "streitberg1986",
    "meet-in-the-middle": "horowitz1974",
}  # fmt: skip
"""Sources of methods for exact p-values."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Words for a direction of tests.

    Attributes
    ----------
    label : str
        In a line on one comparison.
    note : str
        In the notes of a table.
    sentence : str
        In a methods section.
    against_chance : str
        In a line on a test of independence.
    """

    label: str
    note: str
    sentence: str
    against_chance: str


ALTERNATIVES = {
    "two-sided": Alternative("two-sided", "two-sided", "two-sided", "two-sided: as far from chance"),
    "greater": Alternative(
        "one-sided, A > B",
        "one-sided (A > B)",
        "one-sided (the first system scores higher)",
        "one-sided: more than chance",
    ),
    "less": Alternative(
        "one-sided, A < B",
        "one-sided (A < B)",
        "one-sided (the first system scores lower)",
        "one-sided: less than chance",
    ),
}
