"""The result of one comparison as an object, and notes on results: each has a kind, a sentence and its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

from sigdask.statistics.rounding import format_p_equals, format_score, format_signed
from sigdask.text import make_printable, shorten_message

NoteValue = str | int | float | None


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on one result, or on all results.

    Attributes
    ----------
    kind : str
        Subject: one of those that `schema.json` lists and docs/statistics/notes.md explains. The names never change.
    text : str
        The sentence that is printed, and that `warnings` lists.
    numbers : mapping of str to str, int, float or None
        Contents of the sentence as JSON: unrounded numbers, and the names to which they belong.

    Examples
    --------
    >>> Note("second-look", "second look: p was first had with 4,096 trials", {"n_trials": 4096}).as_dict()
    {'kind': 'second-look', 'text': 'second look: p was first had with 4,096 trials', 'n_trials': 4096}
    """

    kind: str
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


def list_dicts(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Return notes as JSON objects."""
    return [note.as_dict() for note in notes]


def drop_duplicates(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes without repetitions: of notes with equal texts, only the first is kept."""
    notes_by_text: dict[str, Note] = {}
    for note in notes:
        notes_by_text.setdefault(note.text, note)
    return tuple(notes_by_text.values())


@dataclass(frozen=True, slots=True)
class SecondRun:
    """A second, independent run of as many trials, which checks the first.

    Attributes
    ----------
    n_trials, n_extreme : int
        Number of trials, and how many of them are at least as extreme as observed.
    p_value : float
        (n_extreme + 1) / (n_trials + 1).
    agreement_p : float
        p of Fisher's exact test that extreme trials are equally likely in both runs. A very small value shows an error.
    """

    n_trials: int
    n_extreme: int
    p_value: float
    agreement_p: float


@dataclass(frozen=True, slots=True)
class Exact:
    """The exact p-value, or bounds of it.

    Attributes
    ----------
    p_lo, p_hi : float
        Lower and upper limit of the exact p. They are equal if all its digits are known.
    method : str
        How it was computed, such as "enumeration" (all arrangements) or "binomial" (sign test).
    guarantee : {"exact", "certified", "numeric", "bounds"}
        How well p is known: "exact", within close limits that are "certified" or computed numerically ("numeric"), or
        only within "bounds".
    """

    p_lo: float
    p_hi: float
    method: str
    guarantee: str


class NamedValues(SimpleNamespace):
    """An object within a result, such as its interval: its members are attributes, which `schema.json` explains.

    Examples
    --------
    >>> NamedValues(low=0.1, high=0.4).replace(low=0.2)
    NamedValues(low=0.2, high=0.4)
    """

    @property
    def best_p(self) -> Any:
        """The adjusted p, or the p if it was not adjusted."""
        return self.p_value if self.p_adjusted is None else self.p_adjusted

    @property
    def is_adjusted_bound(self) -> bool:
        """Whether the adjusted p is the smallest value that the trials allow."""
        return 0 == (self.p_adjusted_interval or (1.0,))[0] < (self.p_adjusted or 0)

    def replace(self, **changes: Any) -> Self:
        """Return the same with some members changed."""
        return type(self)(**vars(self) | changes)


def build_named(value: Any) -> Any:
    """Return a JSON value with objects as parts, lists as tuples, and None for NaN."""
    if isinstance(value, dict):
        return NamedValues(**{name: build_named(member) for name, member in value.items()})
    if isinstance(value, list):
        return tuple(map(build_named, value))
    return None if value != value else value  # noqa: PLR0124


DERIVED = ("notes", "warnings")
"""Members of the JSON of a result that the object has by another way."""


class Result(NamedValues):
    """One comparison: two systems, one metric, one test set (or subset).

    Attributes
    ----------
    test_set : str
        Name of the test set, empty by default.
    subset : dict or None
        Column and value of the subset, {"column", "value"}, if you chose the option `by`. Otherwise None.
    unit : str
        The unit whose outputs were swapped as a whole, such as "item" or "document".
    a, b : str
        Names of the systems.
    metric : str
        Name of the metric, as you wrote it.
    higher_is_better : bool
        Whether a higher score is better.
    score_a, score_b : float
        Scores of both systems on the metric's own scale: shares are of 1, BLEU, chrF and TER of 100.
    difference : float
        score_a - score_b.
    alternative : {"two-sided", "greater", "less"}
        Alternative hypothesis about the difference. It decides which trials are extreme.
    n_items, n_units, n_discordant : int
        Number of items, of units, and of discordant units, in which the outputs differ for the metric.
    method : {"approximate", "exact"}
        How p was computed: from random trials, or exactly.
    n_trials, n_extreme : int
        Number of trials (or arrangements), and how many of them are at least as extreme as observed.
    p_value : float
        p of the test, not adjusted: (n_extreme + 1) / (n_trials + 1), or the exact p.
    p_interval : tuple of float
        99 % Clopper-Pearson interval of the exact p, from the trials. Both ends equal p if no trial was random.
    p_adjusted : float or None
        p adjusted for all comparisons of its family. None if p was not adjusted.
    p_adjusted_interval : tuple of float, or None
        99 % Monte Carlo interval of the adjusted p with infinitely many trials. Both ends equal p_adjusted if all
        arrangements were counted.
    r12 : float or None
        Correlation of the two systems' item scores (Yeh 2000). None if the score is no mean over items, or scores are
        constant.
    second_run : NamedValues or None
        The cross-check by a second run. None if there was none.
    exact : NamedValues or None
        The exact p, or bounds of it. None if it was not computed.
    checks : tuple of NamedValues
        Cross-checks and their verdicts.
    dependence : tuple of NamedValues
        How much differences are correlated within coarser groups than the unit.
    notes : tuple of Note
        Notes on this comparison. `warnings` are their texts.
    signature : str or None
        Signature that the scorer library gives, such as that of sacrebleu.
    tests : tuple of NamedValues
        The classical tests that you chose with `tests`.
    interval : NamedValues or None
        Interval of the difference. None if you chose none, or there is none.
    score_a_interval, score_b_interval : tuple of float, or None
        Intervals of both scores, from the same resamples, or Wilson's if the difference has Tango's interval.
    paired_d : float or None
        Standardised difference, an effect size: the difference divided by the standard deviation of the units'
        contributions. None without intervals.
    test_signature : str or None
        One line that names everything that p depends on, so that p can be cited and reproduced. None without
        digests.
    p_adjusted_by : dict of str to float, or None
        The p-values of the two methods of which the adjusted p is the larger, by the methods' names. None if one
        method gives it.
    interval_simultaneous : tuple of float, or None
        Simultaneous interval of the difference. With confidence 1 - alpha all such intervals of the family contain
        their differences. Infinite on the open side of a one-sided test.
    equal_scores : NamedValues or None
        The equal-score test. None for results of other sources.
    verdict : {"significant", "not significant", "contested", "undecided"}
        Verdict at the level alpha of the results, by the adjusted p if there is one. "contested": only one of the test
        and the equal-score test rejects. "undecided": more trials could change it.
    margin : NamedValues or None
        Tests of the margin that you chose with `margin`. None without it.
    runs : NamedValues or None
        Results over several runs of each system, and of their recipes. None if the systems have one run.

    Examples
    --------
    >>> from sigdask.api import compare
    >>> result = compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0])
    >>> round(result.difference, 2), result.p_value, result.interval.low < 0
    (0.6, 0.25, True)
    >>> result.verdict
    'not significant'
    """

    p_interval: tuple[float, float]

    @staticmethod
    def from_record(record: Mapping[str, Any], notes: Sequence[Note]) -> Result:
        """Return a result from its JSON and its notes; scores that are missing stay NaN."""
        kept = {name: record[name] for name in ("subset", "p_adjusted_by", "score_a", "score_b", "difference")}
        members = {name: build_named(value) for name, value in record.items() if name not in DERIVED}
        return Result(**members | kept | {"notes": tuple(notes)})

    def __repr__(self) -> str:
        parts = [part for part in (self.test_set, self.subset["value"] if self.subset else "") if part]
        scores = f"{self.metric} {format_score(self.score_a)} - {format_score(self.score_b)}"
        parts += [f"{self.a} - {self.b}", f"{scores} = {format_signed(self.difference)}"]
        parts.append(format_p_equals(self.p_value, is_bound=self.is_bound))
        if self.p_adjusted is not None and not math.isnan(self.p_adjusted):
            parts.append(f"adjusted {format_p_equals(self.p_adjusted, is_bound=self.is_adjusted_bound)}")
        return make_printable(f"Result({', '.join(parts)})")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts of the notes, as they are printed."""
        return tuple(note.text for note in self.notes)

    def disagreements(self) -> tuple[NamedValues, ...]:
        """Return the cross-checks that disagree."""
        return tuple(check for check in self.checks if check.verdict == "disagrees")

    def better(self) -> str | None:
        """Return the name of the system with the better score, or None at a tie or if a score is missing.

        Examples
        --------
        >>> from sigdask import compare
        >>> compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0], names=["new", "old"]).better()
        'new'
        """
        if not abs(self.difference) > 0:  # which NaN is not
            return None
        return str(self.a if (self.difference > 0) == self.higher_is_better else self.b)

    @property
    def is_bound(self) -> bool:
        """Whether p is the smallest value that the trials allow: none of them was extreme."""
        return bool(self.method != "exact" and 0 == self.p_interval[0] < self.p_value)
