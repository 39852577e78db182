r"""Methods sections of papers, generated from results, with the works they cite.

Sentences are made of facts, which results have in columns and signatures in their keys, and hold citations as
`[[key,key]]`, which become names and years, or LaTeX's `\citep`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sigdask.metrics.agreement import PREFIX as AGREEMENT_PREFIX
from sigdask.report.latex import CHARACTERS, LINE_BREAK, UNKNOWN_CHARACTER, escape_sentence
from sigdask.report.methods.sources import format_bibtex, format_citation
from sigdask.report.sentences import join_phrases
from sigdask.report.wording import (
    ADJUSTMENTS,
    ALTERNATIVES,
    CITATION_PATTERN,
    EQUAL_SCORE_TEST,
    EXACT_METHOD_SOURCES,
    INTERVAL_METHODS,
    find_citations,
)
from sigdask.results.columns import CodedColumn, Columns, Value, pluralize
from sigdask.results.comparisons import ComparisonResults, get_version
from sigdask.results.ranking import build_rankings
from sigdask.results.signature import EXACT, LIMITS, TRIALS, Signature
from sigdask.results.table import get_details, get_equal_scores
from sigdask.statistics.classical import DESCRIPTIONS
from sigdask.text import format_count, format_list

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that a methods section states about any number of comparisons.

    Attributes
    ----------
    metrics : tuple of (str, str)
        Names, and the scorers' descriptions of how they counted (empty if there are none).
    alternatives, units, test_sets, columns, versions : tuple of str
        Alternatives of the tests, swapped units, names of test sets, columns of subsets, versions of the program.
    n_units : str
        Smallest and largest number of units, as text; empty if unknown.
    seeds : tuple of int
    n_comparisons, n_systems : int
        0 if unknown.
    n_exact, n_sampled : int
        Numbers of comparisons with exact p, and with p from random trials.
    n_trials : tuple of int
        Numbers of random trials.
    computed : tuple of str
        Methods of exact p-values.
    adjusted : tuple of (str, int)
        Adjustments of p, each with its number of comparisons.
    intervals : tuple of (str, float, int)
        Intervals of differences: method, confidence and number of resamples (0 without resampling).
    n_checked, n_contested : int
        Comparisons with an equal-score test, and those of which exactly one of the two tests rejects.
    n_resamples : int
        Resamples of the simultaneous intervals; 0 without them.
    has_simultaneous : bool
        Whether there are simultaneous intervals.
    tests : tuple of str
        Classical tests that are shown too.
    has_second_run : bool
        Whether an independent run was compared with the first.
    groupings : tuple of str
        How rankings mark systems that are not significantly different, as in the option `grouping`.
    has_sets : bool
        Whether there are verdicts over several sets.
    across_sets : str
        How the p-values of these verdicts were computed and adjusted, in words. Empty for a single exact p.
    alpha : float or None
        Level of the verdicts.
    margins : tuple of float
        Margins of tests of non-inferiority and equivalence.
    """

    metrics: tuple[tuple[str, str], ...]
    alternatives: tuple[str, ...]
    units: tuple[str, ...]
    n_units: str = ""
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
    adjusted: tuple[tuple[str, int], ...] = ()
    intervals: tuple[tuple[str, float, int], ...] = ()
    n_checked: int = 0
    n_contested: int = 0
    n_resamples: int = 0
    has_simultaneous: bool = False
    tests: tuple[str, ...] = ()
    has_second_run: bool = False
    groupings: tuple[str, ...] = ()
    has_sets: bool = False
    across_sets: str = ""
    alpha: float | None = None
    margins: tuple[float, ...] = ()

    @staticmethod
    def from_signatures(signatures: Sequence[Signature]) -> Facts:
        """Return the facts that signatures of comparisons state."""
        return Facts(
            metrics=_drop_duplicates((s.metric, _describe_scorer(s)) for s in signatures),
            alternatives=_drop_duplicates(s.alternative for s in signatures),
            units=_drop_duplicates(s.unit for s in signatures),
            test_sets=_drop_duplicates(s.test_set for s in signatures if s.test_set),
            columns=_drop_duplicates(s.subset[0] for s in signatures if s.subset),
            versions=_drop_duplicates(s.version for s in signatures),
            seeds=_drop_duplicates(s.seed for s in signatures),
            n_comparisons=len(signatures),
            n_exact=sum(s.p in {EXACT, LIMITS} for s in signatures),
            n_sampled=sum(s.p == TRIALS for s in signatures),
            n_trials=_drop_duplicates(s.n_trials for s in signatures if s.n_trials and s.p == TRIALS),
            adjusted=_drop_duplicates((s.adjust, s.members or 0) for s in signatures if s.adjust),
        )

    @staticmethod
    def from_results(results: ComparisonResults) -> Facts:
        """Collect the facts from the columns of results."""
        table = results.table
        exact = table.exact | (table.n_trials == 0)
        intervals, origins, family = table.intervals, table.origins, results.family
        versions = () if origins is None else tuple(v for v in list_used(origins.version) if v)
        return Facts(
            metrics=tuple((score.name, score.signature or "") for score in list_used(table.metric)),
            alternatives=list_used(table.alternative),
            units=list_used(table.unit),
            n_units=_format_range(table.n_units.tolist()) if len(table) else "",
            test_sets=tuple(name for name in list_used(table.test_set) if name),
            columns=_drop_duplicates(entry.column for entry in list_used(table.subset) if entry),
            versions=versions or (get_version(),),
            seeds=(results.seed,),
            n_comparisons=len(table),
            n_systems=len({*list_used(table.a), *list_used(table.b)}),
            n_exact=int(exact.sum()),
            n_sampled=int((~exact).sum()),
            n_trials=tuple(np.unique(table.n_trials[~exact]).tolist()),
            computed=_drop_duplicates(exact_by[0] for exact_by in list_used(table.exact_by) if exact_by),
            adjusted=_list_adjustments(results),
            intervals=() if intervals is None else _drop_duplicates(_iter_interval_methods(intervals)),
            n_checked=int(np.count_nonzero(get_equal_scores(table).n_resamples)),
            n_contested=int(np.count_nonzero(table.is_contested)),
            n_resamples=(family.n_resamples or 0) if family else 0,
            has_simultaneous=bool((~np.isnan(get_details(table).low)).any()),
            tests=tuple(table.tests),
            has_second_run=bool(((table.second_trials > 0) & ~table.exact).any()),
            groupings=_drop_duplicates(ranking.grouping for ranking in build_rankings(table)),
            has_sets=bool(results.together),
            across_sets=_describe_p_across_sets(results),
            alpha=results.alpha,
            margins=() if table.margins is None else _drop_duplicates(table.margins.margin.tolist()),
        )


def _drop_duplicates(values: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(values))


def list_used(column: CodedColumn[Value]) -> tuple[Value, ...]:
    """Return the values of a coded column that occur in its rows, in the order of their codes."""
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


def _iter_interval_methods(intervals: Columns) -> Iterator[tuple[str, float, int]]:
    """Yield each method of intervals, with its confidence and number of resamples."""
    confidence = float(np.nanmax(intervals.confidence, initial=0.0))
    used = np.unique(np.stack([intervals.method.codes, intervals.n_resamples]), axis=1).T.tolist()
    methods = sorted((intervals.method.values[code], n) for code, n in used)
    yield from ((method, confidence, n) for method, n in methods if method)


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
        """BibTeX keys of the works that the paragraph cites, in order of appearance."""
        return find_citations(self.marked)

    @property
    def text(self) -> str:
        """The paragraph with authors and years in parentheses."""
        return CITATION_PATTERN.sub(
            lambda match: f" ({'; '.join(format_citation(key) for key in match[1].split(','))})", self.marked
        )

    @property
    def latex(self) -> str:
        r"""The paragraph as LaTeX with natbib's `\citep`. With long signatures it is set with looser lines."""
        parts = CITATION_PATTERN.split(self.marked)
        text = "".join(
            f"~\\citep{{{part}}}" if index % 2 else escape_sentence(part) for index, part in enumerate(parts)
        )
        if LINE_BREAK in text:
            text = f"\\begin{{sloppypar}}\n{text}\n\\end{{sloppypar}}"
        return f"{CHARACTERS}{text}" if UNKNOWN_CHARACTER in text else text

    @property
    def bibtex(self) -> str:
        """BibTeX entries of the works that the paragraph cites."""
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
    yield from _describe_null_hypothesis(facts)
    yield from _describe_p_values(facts)
    for adjust, n in facts.adjusted:
        scope = f"were adjusted in families of {n:,} comparisons"
        if n == facts.n_comparisons:
            scope = f"of all {n:,} comparisons were adjusted"
        elif n * len(facts.metrics) == facts.n_comparisons:
            scope = f"of the {n:,} comparisons by each metric were adjusted"
        yield f"The p-values {scope} by {ADJUSTMENTS[adjust].sentence}."
    if facts.alpha is not None:
        adjusted = "adjusted " if facts.adjusted else ""
        yield f"Differences with {adjusted}p at most {facts.alpha:g} are called significant."
    if facts.n_checked:
        yield (
            f"The hypothesis of equal scores was also tested by {EQUAL_SCORE_TEST}. In {facts.n_contested:,} of "
            f"{format_count(facts.n_checked, 'comparison')} only one of the two tests rejects; these are called "
            "contested."
        )
    yield from _describe_margins(facts)
    yield from _describe_groupings(facts)
    if facts.has_sets:
        procedure = f", with p-values {facts.across_sets}" if facts.across_sets else ""
        yield (
            f"Verdicts over several sets are about the mean difference{procedure}. A lower bound of the number of sets "
            "in which one system scores above the other is given [[benjamini2008]]."
        )
    yield from _describe_intervals(facts)
    if facts.tests:
        tests = _join_names(DESCRIPTIONS[name] for name in facts.tests)
        yield f"For comparison, the results of {tests} are given as well."
    if facts.n_sampled or facts.intervals:
        seeds = _join_names(map(str, facts.seeds))
        yield f"Random numbers are those of Philox4x32-10 [[salmon2011]] with seed {seeds}."


CLUSTERS_SENTENCE = (
    "Ranks range from the number of significantly better systems plus one to the number of systems not significantly "
    "worse; the ranges of different clusters do not overlap."
)
GROUPING_SENTENCES = {
    "letters": "Systems that share a letter are not significantly different [[piepho2004]].",
    "clusters": f"Systems are grouped in clusters of ranks. {CLUSTERS_SENTENCE}",
    "tied": "Systems that are not significantly different from the best are called tied with it.",
    "ranks": CLUSTERS_SENTENCE,
}
"""Sentences about rankings, by the option `grouping`."""


def _describe_margins(facts: Facts) -> Iterator[str]:
    for margin in facts.margins:
        adjusted = ", and their p-values were adjusted by Holm's method [[holm1979]]" if facts.adjusted else ""
        yield (
            f"Non-inferiority and equivalence within a margin of {margin:g} were tested by one-sided tests in both "
            f"directions [[schuirmann1987]]: score tests of items scored 0 or 1 [[tango1998]], and swaps of shifted "
            f"scores for other means{adjusted}."
        )


def _describe_groupings(facts: Facts) -> Iterator[str]:
    noun = "Metrics" if _list_agreements(name for name, _ in facts.metrics) else "Systems"
    for name, sentence in GROUPING_SENTENCES.items():
        if name in facts.groupings:
            yield sentence.replace("Systems", noun)


def _describe_null_hypothesis(facts: Facts) -> Iterator[str]:
    """Say which test it is, and what it swaps."""
    program = f"sigdask {' and '.join(facts.versions)} [[sigdask]]"
    if agreements := _list_agreements(name for name, _ in facts.metrics):
        yield from _describe_agreement_test(agreements, facts.units, program)
    else:
        unit = facts.units[0] if len(facts.units) == 1 else "unit"
        size = f" ({facts.n_units} {pluralize(unit)})" if facts.n_units else ""
        yield (
            f"Each difference was tested by approximate randomization, also called stratified shuffling "
            f"[[noreen1989,yeh2000]], with {program}: under the null hypothesis the outputs of two systems for the "
            f"same {' or '.join(facts.units)} are exchangeable, so they were swapped at random and the metric was "
            f"recomputed on the whole test set{size}."
        )


AGREEMENT_SOURCES = {
    "meta-acc-eq": "Thresholds of ties between a metric's scores were calibrated [[deutsch2023]].",
    "meta-spa": "Soft pairwise accuracy compares p-values of pairs of systems [[thompson2024]].",
}
"""Sentences on statistics of agreement with people, by the metric's name before its options."""


def _list_agreements(names: Iterable[str]) -> list[str]:
    """Return the names of metrics of agreement with people, or none if there are others as well."""
    all_names = list(dict.fromkeys(names))
    return all_names if all(name.startswith(AGREEMENT_PREFIX) for name in all_names) else []


def _describe_agreement_test(names: Sequence[str], units: Sequence[str], program: str) -> Iterator[str]:
    """Describe the permutation tests of metrics that are compared by their agreement with people."""
    swapped = [f"their scores, standardised over the test set, were swapped by {' or '.join(units)}"]
    n_pairs = sum("permute=pairs" in name for name in names)
    decisions = "their decisions on pairs of scores were swapped [[deutsch2023]]"
    if n_pairs:
        swapped = [decisions] if n_pairs == len(names) else [*swapped, decisions]
    yield (
        f"Each difference in agreement was tested by a permutation test of both metrics' scores [[deutsch2021]], a "
        f"form of approximate randomization [[noreen1989,yeh2000]], with {program}: under the null hypothesis two "
        f"metrics are exchangeable, so {' or '.join(swapped)} at random and the agreement was recomputed."
    )
    for base in dict.fromkeys(name.partition(":")[0] for name in names):
        if base in AGREEMENT_SOURCES:
            yield AGREEMENT_SOURCES[base]


def _describe_comparisons(facts: Facts) -> str:
    noun = "evaluation metrics" if _list_agreements(name for name, _ in facts.metrics) else "systems"
    systems = f"{facts.n_systems} {noun}" if facts.n_systems else noun.capitalize()
    on_test_sets = f" on {_join_names(facts.test_sets)}" if facts.test_sets else ""
    within_columns = f", within each {_join_names(facts.columns)}" if facts.columns else ""
    scorers = [f"{name}: {scorer}" for name, scorer in facts.metrics if scorer]
    aside = f" ({'; '.join(scorers)})" if scorers else ""
    pairs = f" in {facts.n_comparisons:,} comparisons" if facts.n_comparisons > 1 else ""
    names = _join_names(_drop_duplicates(name for name, _ in facts.metrics))
    names = f"their agreement with human scores ({names})" if noun != "systems" else names
    sentence = f"{systems} were compared{on_test_sets} by {names}{aside}{within_columns}{pairs}."
    return sentence.replace("[[", "[ [")  # no citation


def _describe_p_values(facts: Facts) -> Iterator[str]:
    """Describe how p-values were computed."""
    sided = _join_names(ALTERNATIVES[alternative].sentence for alternative in facts.alternatives)
    keys = _drop_duplicates(EXACT_METHOD_SOURCES[name] for name in facts.computed if name in EXACT_METHOD_SOURCES)
    cited = f" [[{','.join(keys)}]]" if keys else ""
    if facts.n_exact:
        of_some = f" of {format_count(facts.n_exact, 'comparison')}" if facts.n_sampled else ""
        yield f"The p-values{of_some} are exact, over all possible swaps{cited}, and {sided}."
    if facts.n_sampled:
        subject = "The others are" if facts.n_exact else f"The p-values are {sided}, and"
        yield f"{subject} computed from {_describe_trials(facts)}."
    if facts.has_second_run:
        yield "As a check, two independent runs of random swaps were compared by Fisher's exact test [[fisher1935]]."


def _describe_trials(facts: Facts) -> str:
    """State the number of random swaps and how p is computed from them."""
    trials = _join_names(f"{n:,}" for n in facts.n_trials)
    if len(facts.n_trials) > MAX_TRIAL_COUNTS:
        trials = f"{min(facts.n_trials):,} to {max(facts.n_trials):,}"
    return (
        f"n = {trials} random swaps as (k + 1) / (n + 1) [[phipson2010]], where k is the number of swaps with a "
        "difference at least as large as the observed one"
    )


def _describe_intervals(facts: Facts) -> Iterator[str]:
    if not facts.intervals:
        return
    confidence = facts.intervals[0][1]
    methods = [
        f"{method.sentence}{f' with {n:,} {method.draws}' if n else ''}"
        for method, n in ((INTERVAL_METHODS[name], n) for name, _, n in facts.intervals)
    ]
    scope = " (each for one comparison alone)" if facts.adjusted else ""
    subject = f"{100 * confidence:.4g} % confidence intervals of differences{scope}"
    yield f"{subject} were computed by {_join_names(methods)}."
    if facts.has_simultaneous and facts.alpha is not None:
        yield (
            f"Simultaneous {100 * (1 - facts.alpha):.4g} % confidence intervals were computed by the largest statistic "
            f"of the studentised bootstrap [[efron1993]], in one step, with {facts.n_resamples:,} resamples."
        )


MAX_NAMES, MAX_TRIAL_COUNTS = 9, 3
"""Maximum numbers of names, and of different numbers of trials, that are listed."""


def _join_names(names: Iterable[str]) -> str:
    """Join names with commas and a final "and".

    Examples
    --------
    >>> _join_names(["a", "b", "c"])
    'a, b and c'
    """
    all_names = [*names]
    return format_list(all_names, MAX_NAMES) if len(all_names) > MAX_NAMES else join_phrases(all_names)


def _describe_p_across_sets(results: ComparisonResults) -> str:
    """Return how the p-values of verdicts over all sets were computed, unless exactly, and adjusted, with sources."""
    sampled = [v.n_trials for v in results.together if v.method != "exact" and v.n_trials]
    phrases = [f"computed from {_format_range(sampled)} random swaps [[phipson2010]]"] if sampled else []
    if (family := results.family_across_sets) is not None:
        phrases.append(f"adjusted by {ADJUSTMENTS[family.adjust].sentence}")
    return join_phrases(phrases)


def _format_range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
