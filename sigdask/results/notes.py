"""Notes on results: each has a kind, a sentence to print, and its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sigdask.text import shorten_message

NoteKind = Literal[
    # kinds of notes on one comparison
    "identical",  # no unit differs in the counts of the metric
    "upper-bound",  # scores of very unequal size: trials within rounding count as ties
    "zero-division",  # a system's score is 0/0
    "not-reached",  # no trial has been counted yet
    "undecided",  # the interval of p contains alpha
    "unadjusted-undecided",  # as "undecided", for the unadjusted p of a verdict by adjusted p
    "second-look",  # p was computed before with fewer trials
    "few-units-decide",  # without a few units the other system would be ahead, or the verdict would change
    "interval",  # a remark on an interval, or why there is none
    "interval-coverage",  # the measured coverage of such intervals is below their level
    # kinds of notes on all comparisons
    "scope",  # what is scored, left out or averaged; printed before the answer
    "reading",  # messages from the reader of the data
    "unused-option",  # an option has no effect together with another one
    "few-trials",  # too few trials for p to reach alpha
    "few-units",  # a test of so few units says little
    "family-undecided",  # intervals of adjusted p contain alpha
    "caveat",  # a known limitation of the adjustment
    "larger-of-two",  # an adjusted p is the larger of two methods'
    "missing",  # two systems without a common item are not compared
    "dependence",  # differences are correlated within groups that are not swapped as a whole
    # kinds of notes on either
    "permutation",  # a known limitation of swapping scores of metrics
]
"""Subject of a note. The names never change."""

CHANGES_VERDICTS: frozenset[NoteKind] = frozenset(
    {"upper-bound", "zero-division", "not-reached", "undecided", "few-trials", "few-units",
     "family-undecided", "caveat", "dependence", "permutation"}
)  # fmt: skip
LIMITS_CONCLUSIONS: frozenset[NoteKind] = frozenset(
    {"second-look", "interval", "interval-coverage",
     "missing", "few-units-decide"}
)  # fmt: skip
NOTE_WEIGHTS: Mapping[str, tuple[str, frozenset[NoteKind]]] = {
    "Could change a verdict": (
        "p may be too small or too large, or too little was counted to decide",
        CHANGES_VERDICTS,
    ),
    "Limits what you can conclude": (
        "the verdicts stand, but intervals, comparisons or earlier looks need care",
        LIMITS_CONCLUSIONS,
    ),
    "Good to know": ("how the files were read and the method was chosen", frozenset()),
}
"""Weights of notes, the most important first: a label, its meaning, and its kinds. The last one has all other kinds."""

NoteValue = str | int | float | None


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on one result, or on all results.

    Attributes
    ----------
    kind : str
        Subject: one of `NoteKind`.
    text : str
        The sentence that is printed, and that `warnings` lists.
    numbers : mapping of str to str, int, float or None
        Contents of the sentence as JSON: unrounded numbers, and the names to which they belong.

    Examples
    --------
    >>> Note("second-look", "second look: p was first had with 4,096 trials", {"n_trials": 4096}).as_dict()
    {'kind': 'second-look', 'text': 'second look: p was first had with 4,096 trials', 'n_trials': 4096}
    """

    kind: NoteKind
    text: str
    numbers: Mapping[str, NoteValue] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", shorten_message(self.text))

    def as_dict(self) -> dict[str, Any]:
        """Return the note as a JSON object: kind, text and numbers."""
        return {"kind": self.kind, "text": self.text, **self.numbers}


def read_note(values: Mapping[str, Any]) -> Note:
    """Return the note of a JSON object, whose numbers are the keys other than kind and text."""
    return Note(values["kind"], values["text"], {k: v for k, v in values.items() if k not in {"kind", "text"}})


def list_texts(notes: Iterable[Note]) -> tuple[str, ...]:
    """Return the sentences of notes."""
    return tuple(note.text for note in notes)


def list_dicts(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Return notes as JSON objects."""
    return [note.as_dict() for note in notes]


def drop_duplicates(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes without repetitions: of notes with equal texts, only the first is kept."""
    notes_by_text: dict[str, Note] = {}
    for note in notes:
        notes_by_text.setdefault(note.text, note)
    return tuple(notes_by_text.values())


def remove_kind(notes: Iterable[Note], kind: NoteKind) -> tuple[Note, ...]:
    """Return the notes that are not of the given kind."""
    return tuple(note for note in notes if note.kind != kind)


def group_by_weight(notes: Iterable[Note]) -> list[tuple[str, str, list[str]]]:
    """Return the sentences of notes by how much they matter: label, its meaning, and distinct sentences.

    Examples
    --------
    >>> [(label, texts) for label, _, texts in group_by_weight([Note("reading", "x"), Note("few-units", "y")])]
    [('Could change a verdict', ['y']), ('Good to know', ['x'])]
    """
    *_, lightest = NOTE_WEIGHTS
    texts: dict[str, dict[str, None]] = {label: {} for label in NOTE_WEIGHTS}
    for note in notes:
        label = next((label for label, (_, kinds) in NOTE_WEIGHTS.items() if note.kind in kinds), lightest)
        texts[label][note.text] = None
    return [(label, NOTE_WEIGHTS[label][0], [*own]) for label, own in texts.items() if own]
