"""The result of one comparison as an object, and notes on results: each has a kind, a sentence and its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sigdask.statistics.bounds import Check
from sigdask.statistics.dependence import Dependence
from sigdask.statistics.rounding import format_p_equals, format_score, format_signed
from sigdask.text import make_printable, shorten_message

CHANGES_VERDICTS: frozenset[str] = frozenset(
    {"upper-bound", "zero-division", "not-reached", "undecided", "few-trials", "few-units",
     "family-undecided", "caveat", "dependence", "permutation"}
)  # fmt: skip
LIMITS_CONCLUSIONS: frozenset[str] = frozenset(
    {"second-look", "interval", "interval-coverage",
     "missing", "few-units-decide"}
)  # fmt: skip
NOTE_WEIGHTS: Mapping[str, tuple[str, frozenset[str]]] = {
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


def remove_kind(notes: Iterable[Note], kind: str) -> tuple[Note, ...]:
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


@dataclass(frozen=True, slots=True)
class EqualScoreResult:
    """The equal-score test of one comparison: the symmetric studentised bootstrap of units.

    Attributes
    ----------
    p_value : float or None
        p of the comparison alone. None if the test was not made.
    p_adjusted : float or None
        p adjusted over the same comparisons as `Result.p_adjusted`. None without adjustment.
    n_resamples : int
        Number of resamples.
    why : str
        Why the test was not made; empty if it was.
    cause : str
        If the result is contested, why the two tests differ, as far as it is known. Otherwise empty.
    """

    p_value: float | None
    p_adjusted: float | None
    n_resamples: int
    why: str
    cause: str


@dataclass(frozen=True, slots=True)
class OtherUnitResult:
    """The same comparison with another swapped unit, for contrast.

    Attributes
    ----------
    unit : str
        The swapped unit.
    n_units : int
        Number of these units.
    method : {"approximate", "exact"}
        As in `Result`.
    n_trials, n_extreme : int
        As in `Result`.
    p_value : float
        p with this unit, not adjusted.
    """

    unit: str
    n_units: int
    method: str
    n_trials: int
    n_extreme: int
    p_value: float


@dataclass(frozen=True, slots=True)
class ClassicalTest:
    """Result of a classical test of the same two systems.

    Attributes
    ----------
    name : str
        Name of the test, as in the option `tests`.
    statistic, p_value : float or None
        Test statistic and p. None if the test does not fit the score.
    n : int or None
        Number of observations, of both samples if there are two. None if the test does not fit.
    assumes_independence : bool
        Whether the test treats the two systems as independent. Such tests are for contrast only.
    detail : str
        How it was computed, or why it does not fit.
    """

    name: str
    statistic: float | None
    p_value: float | None
    n: int | None
    assumes_independence: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Interval:
    """Confidence interval of a difference.

    Attributes
    ----------
    method : {"bootstrap-bca", "bootstrap-percentile", "tango", "inversion", "normal", "recipe-t"}
        Method of the interval.
    confidence : float
        Nominal share of such intervals that contain the true difference.
    low, high : float
        Ends of the interval, on the scale of the score. Infinite if so few units cannot reject any difference.
    n_resamples : int or None
        Number of resamples, or of trials of the inverted test. None if none were drawn.
    percentile : tuple of float, or None
        Ends of the plain percentile interval from the same resamples. None if the difference was not resampled.
    """

    method: str
    confidence: float
    low: float
    high: float
    n_resamples: int | None = None
    percentile: tuple[float, float] | None = None

    def __iter__(self) -> Iterator[float]:
        """Yield both ends, for `low, high = interval`."""
        return iter((self.low, self.high))


@dataclass(frozen=True, slots=True)
class Margin:
    """Tests that A and B differ by less than a margin (non-inferiority and equivalence).

    Attributes
    ----------
    margin : float
        The margin, on the metric's own scale.
    p_not_worse, p_not_better : float
        One-sided p of the hypothesis that A is worse, and better, than B by the margin or more.
    p_equivalent : float
        The larger of both: p of two one-sided tests (Schuirmann 1987).
    p_adjusted : tuple of float, or None
        These three p adjusted by Holm over the family. None if p was not adjusted.
    verdicts : tuple of str
        What is shown at alpha, by the adjusted p if there is one: "not worse", "not better", "equivalent".
    method : str
        The test, and its limitations.
    """

    margin: float
    p_not_worse: float
    p_not_better: float
    p_equivalent: float
    p_adjusted: tuple[float, float, float] | None
    verdicts: tuple[str, ...]
    method: str


@dataclass(frozen=True, slots=True)
class RecipeResult:
    """Results of a comparison over several runs of each system, which are a sample of its recipe.

    Attributes
    ----------
    column : str
        What the runs are: a column such as "seed", or "run" for several files of a system.
    n_runs : int
        Number of runs of each system.
    is_paired : bool
        Whether the runs of both systems share seeds.
    method : {"permutation", "paired t", "Welch's t"}
        Test of `p_runs`. Permutations are exact.
    p_runs : float or None
        p over runs, for the items of the test set. `p_value` of the result is over items, for these runs.
    p_value : float or None
        p of the recipes: for further runs and items. None with fewer than three runs.
    p_adjusted : float or None
        p of the recipes, adjusted over the family (Holm). None if p was not adjusted.
    df : float or None
        Degrees of freedom of the test of recipes.
    se_items, se_runs : float
        Standard errors of the difference over items and over runs.
    interval : tuple of float, or None
        Interval of the difference between recipes, with confidence 1 - alpha.
    verdict : {"significant", "not significant", "too few runs"}
        Verdict on the recipes.
    """

    column: str
    n_runs: int
    is_paired: bool
    method: str
    p_runs: float | None
    p_value: float | None
    p_adjusted: float | None
    df: float | None
    se_items: float
    se_runs: float
    interval: tuple[float, float] | None
    verdict: str

    @property
    def best_p(self) -> float | None:
        """The adjusted p of the recipes, or the p if it was not adjusted."""
        return self.p_value if self.p_adjusted is None else self.p_adjusted


@dataclass(frozen=True, slots=True)
class Result:
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
    second_run : SecondRun or None
        The cross-check by a second run. None if there was none.
    exact : Exact or None
        The exact p, or bounds of it. None if it was not computed.
    checks : tuple of Check
        Cross-checks and their verdicts.
    dependence : tuple of Dependence
        How much differences are correlated within coarser groups than the unit.
    beside : tuple of OtherUnitResult
        The same comparison with other swapped units.
    notes : tuple of Note
        Notes on this comparison. `warnings` are their texts.
    signature : str or None
        Signature that the scorer library gives, such as that of sacrebleu.
    tests : tuple of ClassicalTest
        The classical tests that you chose with `tests`.
    interval : Interval or None
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
    equal_scores : EqualScoreResult or None
        The equal-score test. None for results of other sources.
    margin : Margin or None
        Tests of the margin that you chose with `margin`. None without it.
    runs : RecipeResult or None
        Results over several runs of each system, and of their recipes. None if the systems have one run.

    Examples
    --------
    >>> from sigdask.api import compare
    >>> result = compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0])
    >>> round(result.difference, 2), result.p_value, result.interval.low < 0
    (0.6, 0.25, True)
    """

    test_set: str
    subset: dict[str, str] | None
    unit: str
    a: str
    b: str
    metric: str
    higher_is_better: bool
    score_a: float
    score_b: float
    difference: float
    alternative: str
    n_items: int
    n_units: int
    n_discordant: int
    method: str
    n_trials: int
    n_extreme: int
    p_value: float
    p_interval: tuple[float, float]
    p_adjusted: float | None = None
    r12: float | None = None
    second_run: SecondRun | None = None
    exact: Exact | None = None
    checks: tuple[Check, ...] = ()
    dependence: tuple[Dependence, ...] = ()
    beside: tuple[OtherUnitResult, ...] = ()
    notes: tuple[Note, ...] = ()
    signature: str | None = None
    p_adjusted_interval: tuple[float, float] | None = None
    tests: tuple[ClassicalTest, ...] = ()
    interval: Interval | None = None
    score_a_interval: tuple[float, float] | None = None
    score_b_interval: tuple[float, float] | None = None
    paired_d: float | None = None
    test_signature: str | None = None
    p_adjusted_by: dict[str, float] | None = None
    interval_simultaneous: tuple[float, float] | None = None
    equal_scores: EqualScoreResult | None = None
    margin: Margin | None = None
    runs: RecipeResult | None = None

    def __repr__(self) -> str:
        return _format_line(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts of the notes, as they are printed."""
        return list_texts(self.notes)

    def disagreements(self) -> tuple[Check, ...]:
        """Return the cross-checks that disagree."""
        return tuple(check for check in self.checks if check.verdict == "disagrees")

    def better(self) -> str | None:
        """Return the name of the system with the better score, or None at a tie.

        Examples
        --------
        >>> from sigdask import compare
        >>> compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0], names=["new", "old"]).better()
        'new'
        """
        if self.difference == 0:
            return None
        return self.a if (self.difference > 0) == self.higher_is_better else self.b

    @property
    def is_bound(self) -> bool:
        """Whether p is the smallest value that the trials allow: none of them was extreme."""
        return self.method != "exact" and 0 == self.p_interval[0] < self.p_value

    @property
    def is_adjusted_bound(self) -> bool:
        """Whether the adjusted p is the smallest value that the trials allow."""
        return 0 == (self.p_adjusted_interval or (1.0,))[0] < (self.p_adjusted or 0)

    def is_undecided(self, alpha: float) -> bool:
        """Return whether the interval of p contains alpha, so that more trials could change the verdict."""
        return self.method != "exact" and self.p_interval[0] <= alpha < self.p_interval[1]

    def verdict(self, alpha: float) -> str:
        """Return the verdict at the significance level alpha in words, by the adjusted p if there is one, else by p.

        Returns
        -------
        str
            "significant", "not significant", "contested" if only one of the test and the equal-score test rejects,
            or "undecided at ALPHA" if more trials could change the verdict.

        Examples
        --------
        >>> from sigdask import compare
        >>> compare([1] * 8, [0] * 8).verdict(0.05)
        'significant'
        """
        if self.is_contested(alpha):
            return "contested"
        return {True: "significant", False: "not significant", None: f"undecided at {alpha:g}"}[self.decision(alpha)]

    def is_contested(self, alpha: float) -> bool:
        """Return whether exactly one of the test and the equal-score test rejects, by adjusted p if there are any."""
        return is_contested(self.equal_scores, alpha, self.decision(alpha), is_adjusted=self.p_adjusted is not None)

    def decision(self, alpha: float) -> bool | None:
        """Return whether the test rejects at the level alpha, by the adjusted p if there is one. None if undecided.

        Examples
        --------
        >>> from sigdask import compare
        >>> compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0]).decision(0.05)
        False
        """
        if self.p_adjusted is not None:
            return bool(self.p_adjusted <= alpha)
        if self.is_undecided(alpha):
            return None
        return bool(self.p_value <= alpha)


def is_contested(test: EqualScoreResult | None, alpha: float, rejects: bool | None, *, is_adjusted: bool) -> bool:
    """Return whether the equal-score test decides otherwise, by its adjusted p if there is one and p is adjusted."""
    if rejects is None or test is None or test.p_value is None:
        return False
    p = test.p_adjusted if is_adjusted and test.p_adjusted is not None else test.p_value
    return (p <= alpha) != rejects


def _format_line(r: Result) -> str:
    """Return a one-line summary of a comparison."""
    parts = [part for part in (r.test_set, r.subset["value"] if r.subset else "") if part]
    scores = f"{r.metric} {format_score(r.score_a)} - {format_score(r.score_b)} = {format_signed(r.difference)}"
    parts += [f"{r.a} - {r.b}", scores, format_p_equals(r.p_value, is_bound=r.is_bound)]
    if r.p_adjusted is not None and not math.isnan(r.p_adjusted):
        parts.append(f"adjusted {format_p_equals(r.p_adjusted, is_bound=r.is_adjusted_bound)}")
    return make_printable(f"Result({', '.join(parts)})")
