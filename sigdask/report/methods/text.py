r"""Methods sections of papers, generated from results, with the works they cite.

Sentences are made of facts, which results have in columns and signatures in their keys, and hold citations as
`[[key,key]]`, which become names and years, or LaTeX's `\citep`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sigdask.report.methods.sources import format_bibtex, format_citation
from sigdask.report.tables.latex import CHARACTERS, UNKNOWN_CHARACTER, escape
from sigdask.report.wording import (
    ADJUSTMENTS,
    ALTERNATIVES,
    CITATION_PATTERN,
    EXACT_METHOD_SOURCES,
    INTERVAL_METHODS,
    find_citations,
)
from sigdask.results.comparisons import ComparisonResults, get_version
from sigdask.results.ranking import iter_ranked
from sigdask.results.signature import DECISION, EXACT, LIMITS, TRIALS, Signature
from sigdask.results.table import get_details
from sigdask.statistics.classical import DESCRIPTIONS
from sigdask.text import format_count, format_list

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that a methods section states about any number of comparisons.

    Attributes
    ----------
    metrics : tuple of (str, str)
        Names, and what scorers say of how they counted; empty where they say nothing.
    alternatives, units, test_sets, columns, versions : tuple of str
        Of the tests, what is exchanged, the test sets' names, columns of subsets, versions of the program.
    seeds : tuple of int
    n_comparisons, n_systems : int
        0 where that is not known.
    n_exact, n_sampled : int
        Comparisons whose p is exact, and those whose p is of random trials.
    n_trials : tuple of int
        Of the latter.
    computed : tuple of str
        Methods of exact p-values.
    stops : tuple of (str, float or None)
        Rules to stop early, with h or epsilon.
    adjusted : tuple of (str, int)
        How p was adjusted, over how many comparisons.
    intervals : tuple of (str, float, int)
        Of differences: method, confidence and resamples, 0 where there are none.
    n_larger : int
        Comparisons whose adjusted p is the larger of max-T's and the studentised bootstrap's.
    n_resamples : int
        Resamples of the studentised bootstrap; 0 without it.
    has_simultaneous : bool
        Whether there are simultaneous intervals.
    tests : tuple of str
        Classical tests beside p.
    has_second_run : bool
        Whether an independent run was held against the first.
    has_letters : bool
        Whether letters group systems that are not significantly different.
    has_sets : bool
        Whether there are verdicts over several sets.
    alpha : float or None
        Level of the verdicts.
    n_skewed : int
        Comparisons that few units decide, or whose units' differences are skewed.
    """

    metrics: tuple[tuple[str, str], ...]
    alternatives: tuple[str, ...]
    units: tuple[str, ...]
    test_sets: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    n_comparisons: int = 0
    n_systems: int = 0
    n_exact: int = 0
    n_sampled: int = 0
    n_trials: tuple[int, ...] = ()
    computed: tuple[str, ...] = ()
    stops: tuple[tuple[str, float | None], ...] = ()
    adjusted: tuple[tuple[str, int], ...] = ()
    intervals: tuple[tuple[str, float, int], ...] = ()
    n_larger: int = 0
    n_resamples: int = 0
    has_simultaneous: bool = False
    tests: tuple[str, ...] = ()
    has_second_run: bool = False
    has_letters: bool = False
    has_sets: bool = False
    alpha: float | None = None
    n_skewed: int = 0

    @staticmethod
    def from_signatures(signatures: Sequence[Signature]) -> Facts:
        """Return the facts that signatures of comparisons state."""
        all_signatures = signatures
        return Facts(
            metrics=_drop_duplicates((s.metric, _describe_scorer(s)) for s in all_signatures),
            alternatives=_drop_duplicates(s.alternative for s in all_signatures),
            units=_drop_duplicates(s.unit for s in all_signatures),
            test_sets=_drop_duplicates(s.test_set for s in all_signatures if s.test_set),
            columns=_drop_duplicates(s.subset[0] for s in all_signatures if s.subset),
            versions=_drop_duplicates(s.version for s in all_signatures),
            seeds=_drop_duplicates(s.seed for s in all_signatures),
            n_comparisons=len(all_signatures),
            n_exact=sum(s.p in {EXACT, LIMITS} for s in all_signatures),
            n_sampled=sum(s.p in {TRIALS, DECISION} for s in all_signatures),
            n_trials=_drop_duplicates(s.n_trials for s in all_signatures if s.n_trials and s.p in {TRIALS, DECISION}),
            stops=_drop_duplicates((s.stop, s.epsilon if s.h is None else s.h) for s in all_signatures if s.stop),
            adjusted=_drop_duplicates((s.adjust, s.members or 0) for s in all_signatures if s.adjust),
            alpha=next((s.alpha for s in all_signatures if s.alpha is not None), None),
        )

    @staticmethod
    def from_results(results: ComparisonResults) -> Facts:
        """Collect the facts from the columns of results."""
        table = results.table
        exact = table.exact | (table.n_trials == 0)
        intervals, origins, details, family = table.intervals, table.origins, get_details(table), results.family
        names = [np.unique(side.codes) for side in (table.a, table.b)]
        systems = {
            side.values[c] for side, entry in zip((table.a, table.b), names, strict=True) for c in entry.tolist()
        }
        method_resamples = (
            ()
            if intervals is None
            else np.unique(np.stack([intervals.method.codes, intervals.n_resamples]), axis=1).T.tolist()
        )
        return Facts(
            metrics=tuple((score.name, score.signature or "") for score in _list_used(table.metric)),
            alternatives=_list_used(table.alternative),
            units=_list_used(table.unit),
            test_sets=tuple(name for name in _list_used(table.test_set) if name),
            columns=_drop_duplicates(entry.column for entry in _list_used(table.subset) if entry),
            versions=(get_version(),)
            if origins is None
            else tuple(v for v in _list_used(origins.version) if v) or (get_version(),),
            seeds=(results.seed,),
            n_comparisons=len(table),
            n_systems=len(systems),
            n_exact=int(exact.sum()),
            n_sampled=int((~exact).sum()),
            n_trials=tuple(np.unique(table.n_trials[~exact]).tolist()),
            computed=_drop_duplicates(exact_by[0] for exact_by in _list_used(table.exact_by) if exact_by),
            stops=tuple((entry.rule, entry.epsilon if entry.h is None else entry.h) for entry in table.stops),
            adjusted=_list_adjustments(results),
            intervals=()
            if intervals is None
            else _drop_duplicates(
                (intervals.method.values[code], float(np.nanmax(intervals.confidence)), n)
                for code, n in method_resamples
                if intervals.method.values[code]
            ),
            n_larger=int(np.count_nonzero(details.has_two_methods)) if family and family.adjust != "tukey" else 0,
            n_resamples=(family.n_resamples or 0) if family else 0,
            has_simultaneous=bool(details.has_interval.any()),
            tests=tuple(entry.name for entry in table.tests),
            has_second_run=bool((table.second_trials > 0).any()),
            has_letters=next(iter_ranked(table), None) is not None,
            has_sets=bool(results.together),
            alpha=results.alpha,
            n_skewed=int(np.count_nonzero(table.is_skewed)),
        )


def _drop_duplicates(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


def _list_used(column: Any) -> tuple[Any, ...]:
    return tuple(column.values[code] for code in np.unique(column.codes).tolist())


def _list_adjustments(results: ComparisonResults) -> tuple[tuple[str, int], ...]:
    """Return each distinct adjustment of p-values with the number of comparisons that it covers."""
    origins, family = results.table.origins, results.family
    if origins is None:
        return () if family is None else ((family.adjust, family.n_comparisons),)
    codes = np.unique(np.stack([origins.adjust.codes, origins.members.codes]), axis=1).T.tolist()
    return _drop_duplicates(
        (origins.adjust.values[k], int(origins.members.values[n])) for k, n in codes if origins.adjust.values[k]
    )


def _describe_scorer(signature: Signature) -> str:
    """Return text on how the scorer counted: its own signature, or else its options joined."""
    options = dict(signature.options)
    return options.get("signature") or "|".join(f"{key}:{value}" for key, value in signature.options if key != "code")


@dataclass(frozen=True, slots=True)
class Methods:
    """A methods paragraph.

    Attributes
    ----------
    marked : str
        Its sentences, with `[[key,key]]` where works are cited.
    """

    marked: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the works it cites, in order of appearance."""
        return find_citations(self.marked)

    @property
    def text(self) -> str:
        """The paragraph with authors and years in parentheses."""
        return CITATION_PATTERN.sub(
            lambda match: f" ({'; '.join(format_citation(key) for key in match[1].split(','))})", self.marked
        )

    @property
    def latex(self) -> str:
        r"""The paragraph as LaTeX with natbib's `\citep`."""
        parts = CITATION_PATTERN.split(self.marked)
        text = "".join(f"~\\citep{{{part}}}" if index % 2 else escape(part) for index, part in enumerate(parts))
        return f"{CHARACTERS}{text}" if UNKNOWN_CHARACTER in text else text

    @property
    def bibtex(self) -> str:
        """The BibTeX entries of the works it cites."""
        return format_bibtex(self.keys)

    def __str__(self) -> str:
        return self.text


def build_methods(facts: Facts) -> Methods:
    """Return the methods paragraph that states the given facts."""
    return Methods(" ".join(_iter_sentences(facts)))


def build_program_citation() -> Methods:
    """Return the sentence that cites the program and its test."""
    return Methods(
        f"Differences were tested for significance by approximate randomization [[noreen1989,yeh2000]] with sigdask "
        f"{get_version()} [[sigdask]]."
    )


def _iter_sentences(facts: Facts) -> Iterator[str]:
    yield _describe_comparisons(facts)
    yield (
        f"Each difference was tested by approximate randomization, also called stratified shuffling "
        f"[[noreen1989,yeh2000]], with sigdask {' and '.join(facts.versions)} [[sigdask]]: under the null hypothesis "
        f"the outputs of two systems for the same {' or '.join(facts.units)} are exchangeable, so they were exchanged "
        f"at random and the metric was computed anew on the whole test set."
    )
    yield from _describe_p_values(facts)
    yield from _describe_stopping(facts)
    for adjust, n in facts.adjusted:
        subject = (
            f"The p-values of all {n:,} comparisons were adjusted"
            if n == facts.n_comparisons
            else (f"The p-values were adjusted in families of {n:,} comparisons")
        )
        yield f"{subject} by {ADJUSTMENTS[adjust].sentence}."
    if facts.n_larger:
        yield (
            f"Where the differences of units are skewed, in {format_count(facts.n_larger, 'comparison')}, "
            "the adjusted p is the "
            f"larger of this and that of {ADJUSTMENTS['bootstrap-t'].sentence}, of {facts.n_resamples:,} resamples."
        )
    if facts.alpha is not None:
        adjusted = "adjusted " if facts.adjusted else ""
        yield f"Differences with {adjusted}p at most {facts.alpha:g} are called significant."
    if facts.n_skewed:
        subject = f"{facts.n_skewed:,} of {facts.n_comparisons:,} comparisons" if facts.n_comparisons > 1 else "it"
        yield f"In {subject}, few units decide the result or the differences of units are skewed."
    if facts.has_letters:
        yield "Systems that share a letter are not significantly different [[piepho2004]]."
    if facts.has_sets:
        yield (
            "Verdicts over several sets are of the mean difference, with in how many sets at least the one system "
            "scores above the other [[benjamini2008]]."
        )
    yield from _describe_intervals(facts)
    if facts.tests:
        yield f"Beside it stand {_join_names(DESCRIPTIONS[name] for name in facts.tests)}."
    if facts.n_sampled or facts.intervals:
        seeds = _join_names(map(str, facts.seeds))
        yield f"Random numbers are those of Philox4x32-10 [[salmon2011]] with seed {seeds}."


def _describe_comparisons(facts: Facts) -> str:
    systems = f"{facts.n_systems} systems" if facts.n_systems else "Systems"
    on_test_sets = f" on {_join_names(facts.test_sets)}" if facts.test_sets else ""
    within_columns = f", within each {_join_names(facts.columns)}" if facts.columns else ""
    scorers = [f"{name}: {scorer}" for name, scorer in facts.metrics if scorer]
    aside = f" ({'; '.join(scorers)})" if scorers else ""
    pairs = f" in {facts.n_comparisons:,} comparisons" if facts.n_comparisons > 1 else ""
    names = _join_names(_drop_duplicates(name for name, _ in facts.metrics))
    return f"{systems} were compared{on_test_sets} by {names}{aside}{within_columns}{pairs}.".replace(
        "[[", "[ ["
    )  # no citation


def _describe_p_values(facts: Facts) -> Iterator[str]:
    """Describe how p-values were computed."""
    sided = _join_names(ALTERNATIVES[alternative].sentence for alternative in facts.alternatives)
    keys = ",".join(
        _drop_duplicates(EXACT_METHOD_SOURCES[name] for name in facts.computed if name in EXACT_METHOD_SOURCES)
    )
    cited = f" [[{keys}]]" if keys else ""
    if facts.n_exact:
        subject = (
            "The p-values" if not facts.n_sampled else f"The p-values of {format_count(facts.n_exact, 'comparison')}"
        )
        yield f"{subject} are exact, over all possible exchanges{cited}, and {sided}."
    if facts.n_sampled and any(rule != "confidence-sequence" for rule, _ in facts.stops or (("", None),)):
        subject = "The others are" if facts.n_exact else f"The p-values are {sided}, and"
        yield f"{subject} had from {_describe_trials(facts)}."
    if facts.has_second_run:
        yield (
            "Two independent runs of random exchanges were held against each other by Fisher's exact test "
            "[[fisher1935]]."
        )


def _describe_trials(facts: Facts) -> str:
    """State the number of random swaps and how p is computed from them."""
    is_short = len(facts.n_trials) <= MAX_TRIAL_COUNTS
    trials = (
        _join_names(f"{n:,}" for n in facts.n_trials)
        if is_short
        else f"{min(facts.n_trials):,} to {max(facts.n_trials):,}"
    )
    if any(rule == "besag-clifford" for rule, _ in facts.stops):
        return f"up to {trials} random exchanges"
    return (
        f"n = {trials} random exchanges as (k + 1) / (n + 1) [[phipson2010]], k of them with a difference at least as "
        "large as the observed one"
    )


def _describe_stopping(facts: Facts) -> Iterator[str]:
    for rule, value in facts.stops:
        if rule == "besag-clifford":
            yield (
                f"Counting ended at the exceedance number {value:g}, or with the last trial, by the sequential rule of "
                "Besag and Clifford, whose p-values are valid [[besag1991]]."
            )
        else:
            yield (
                f"Counting ended where a confidence sequence for p left the level [[gandy2009,ding2020]], with a "
                f"resampling risk of {value:g}; this gives decisions and no p-values."
            )


def _describe_intervals(facts: Facts) -> Iterator[str]:
    if not facts.intervals:
        return
    confidence = facts.intervals[0][1]
    methods = [
        f"{method.sentence}{f' with {n:,} {method.draws}' if n else ''}"
        for method, n in ((INTERVAL_METHODS[name], n) for name, _, n in facts.intervals)
    ]
    scope = " of each comparison alone" if facts.adjusted else ""
    yield f"{100 * confidence:.4g} % confidence intervals of differences{scope} are by {_join_names(methods)}."
    if facts.has_simultaneous and facts.alpha is not None:
        yield (
            f"Simultaneous {100 * (1 - facts.alpha):.4g} % confidence intervals are by the largest statistic of the "
            f"studentised bootstrap [[efron1993]], in one step, with {facts.n_resamples:,} resamples."
        )


MAX_NAMES, MAX_TRIAL_COUNTS = 9, 3
"""Names, and numbers of trials, that are listed."""


def _join_names(names: Iterable[str]) -> str:
    """Join names with commas and a final "and".

    Examples
    --------
    >>> _join_names(["a", "b", "c"])
    'a, b and c'
    """
    all_names = [*names]
    if len(all_names) > MAX_NAMES:
        return format_list(all_names, MAX_NAMES)
    return " and ".join([", ".join(all_names[:-1]), all_names[-1]]) if len(all_names) > 1 else "".join(all_names)
