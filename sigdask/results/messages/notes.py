"""What is to be known of a result beside its numbers: values with a kind to ask for, and a sentence to print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    # of one comparison
    "identical",  # no unit differs in what the metric counts
    "upper-bound",  # trials count as ties what scores of very unequal size do not tell apart
    "zero-division",  # a system's score is 0/0
    "not-reached",  # no trial is counted yet
    "undecided",  # the interval of p straddles alpha
    "unadjusted-undecided",  # so does that of p, where the verdict is of an adjusted one
    "stop-unknown",  # the trial that a rule stops at is not found yet
    "second-look",  # p was had before with fewer trials
    "interval",  # why there is none, or what is to be known of it
    "interval-differs",  # it holds 0 beside a small p, or the reverse
    "interval-coverage",  # such intervals were measured to hold the truth less often than they say
    # of all comparisons
    "scope",  # what is scored, what is not, what was averaged or left out; printed before the answer
    "reading",  # what the reader of the data had to say
    "few-trials",  # the trials cannot reach alpha
    "few-units",  # a test of so few units says little
    "family-undecided",  # intervals of adjusted p straddle alpha
    "caveat",  # what the adjustment itself is known not to hold
    "exact-by-holm",  # exact p are adjusted by Holm, as nothing else was asked for
    "skewed",  # differences of units are too skewed for studentised max-T
    "larger-of-two",  # an adjusted p is the larger of two methods'
    "simultaneous-differs",  # a simultaneous interval holds 0 beside a small adjusted p, or the reverse
    "intervals-alone",  # intervals are of each comparison alone, adjusted p-values are not
    "missing",  # two systems without a common item are not compared
    "dependence",  # differences are correlated within groups that are not exchanged whole
    # of either
    "earlier",  # kept by a version whose notes were texts alone
]
"""What a note is about; the names stay."""

Plain = str | int | float | None


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on a result, or on all of them.

    Attributes
    ----------
    kind : str
        What it is about: one of `Kind`.
    text : str
        The sentence that is printed, and stands in `warnings`.
    numbers : mapping of str to str, int, float or None
        What the sentence says, as JSON has it: with its numbers whole, and the names that they are of.

    Examples
    --------
    >>> Note("second-look", "second look: p was first had with 4,096 trials", {"n_trials": 4096}).as_dict()
    {'kind': 'second-look', 'text': 'second look: p was first had with 4,096 trials', 'n_trials': 4096}
    """

    kind: Kind
    text: str
    numbers: Mapping[str, Plain] = field(default_factory=dict, hash=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that JSON has: the numbers beside kind and text."""
        return {"kind": self.kind, "text": self.text, **self.numbers}


def texts(notes: Iterable[Note]) -> tuple[str, ...]:
    """Return the sentences alone."""
    return tuple(note.text for note in notes)


def dicts(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Return the objects that JSON has of them."""
    return [note.as_dict() for note in notes]


def distinct(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes, those that say the same once."""
    found: dict[str, Note] = {}
    for note in notes:
        found.setdefault(note.text, note)
    return tuple(found.values())


def without(notes: Iterable[Note], kind: Kind) -> tuple[Note, ...]:
    """Return the notes that are not of this kind."""
    return tuple(note for note in notes if note.kind != kind)


def earlier(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON kept of a result (or of what stands around results) with notes, where it has texts alone."""
    if "warnings" not in values:
        return dict(values)
    rest = {name: value for name, value in values.items() if name != "warnings"}
    return {"notes": [{"kind": "earlier", "text": text} for text in values["warnings"]], **rest}


def texts_alone(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON keeps of a result as versions wrote it whose notes were texts alone."""
    rest = {name: value for name, value in values.items() if name != "notes"}
    return {"warnings": [note["text"] for note in values["notes"]], **rest}
