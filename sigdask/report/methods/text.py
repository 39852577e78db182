r"""The methods of results in words, as papers have them, with the works that they rest on.

Sentences are made of facts, which results have in columns and signatures in their keys, and hold citations as
`[[key,key]]`, which become names and years, or LaTeX's `\citep`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sigdask.report.methods.sources import bibtex, named
from sigdask.report.tables.latex import DEFINED, UNKNOWN, escaped
from sigdask.results.comparisons import ComparisonResults, made_by
from sigdask.results.ranking import ranked
from sigdask.results.signature import DECISION, EXACT, LIMITS, TRIALS, Signature
from sigdask.results.table import details_of
from sigdask.statistics.classical.names import DESCRIPTIONS
from sigdask.text import count_noun, listed

SIDED = {
    "two-sided": "two-sided",
    "greater": "one-sided (the first system scores higher)",
    "less": "one-sided (the first system scores lower)",
}
ADJUSTING = {
    "holm": "Holm's step-down procedure [[holm1979]]",
    "hochberg": "Hochberg's step-up procedure [[hochberg1988]]",
    "bh": "the procedure of Benjamini and Hochberg, which bounds the false discovery rate [[benjamini1995]]",
    "by": "the procedure of Benjamini and Yekutieli, which bounds the false discovery rate [[benjamini2001]]",
    "max-t": "the step-down max-T procedure on the same exchanges, studentised [[westfall1993,romano2005]]",
    "max-t:raw": "the step-down max-T procedure on the same exchanges [[westfall1993,romano2005]]",
    "single-step-max-t": "the single-step max-T procedure on the same exchanges [[westfall1993]]",
    "bootstrap-t": "the step-down studentised bootstrap of units [[romano2005,westfall1993,efron1993]]",
    "tukey": "a randomised version of Tukey's HSD test, blocked by unit [[carterette2012]]",
}
INTERVALS = {
    "bootstrap-bca": "the bias-corrected and accelerated paired bootstrap [[efron1987]]",
    "bootstrap-percentile": "percentiles of the paired bootstrap",
    "tango": "Tango's score method [[tango1998]]",
    "inversion": "inversion of the randomization test [[garthwaite1996]]",
    "conditional-exact": "the limits of Clopper and Pearson for the share of wins among the items that differ "
    "[[clopper1934]], conditional on their number",
    "normal": "a normal approximation with the jackknife's standard error",
}
COMPUTED = {
    "polynomial": "pagano1983", "dp": "pagano1983", "grid-dp": "streitberg1986", "box-dp": "streitberg1986",
    "meet-in-the-middle": "horowitz1974",
}  # fmt: skip
"""Methods of exact p-values to the works that they are from."""

Value = TypeVar("Value")

CITED = re.compile(r" ?\[\[([^\[\]]+)\]\]")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a methods section tells, of any number of comparisons; values that are used, in their order.

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
    def of_signatures(signatures: Sequence[Signature]) -> Facts:
        """Take what signatures say."""
        every = signatures
        return Facts(
            metrics=_distinct((s.metric, _scorer(s)) for s in every),
            alternatives=_distinct(s.alternative for s in every),
            units=_distinct(s.unit for s in every),
            test_sets=_distinct(s.test_set for s in every if s.test_set),
            columns=_distinct(s.subset[0] for s in every if s.subset),
            versions=_distinct(s.version for s in every),
            seeds=_distinct(s.seed for s in every),
            n_comparisons=len(every),
            n_exact=sum(s.p in {EXACT, LIMITS} for s in every),
            n_sampled=sum(s.p in {TRIALS, DECISION} for s in every),
            n_trials=_distinct(s.n_trials for s in every if s.n_trials and s.p in {TRIALS, DECISION}),
            stops=_distinct((s.stop, s.epsilon if s.h is None else s.h) for s in every if s.stop),
            adjusted=_distinct((s.adjust, s.members or 0) for s in every if s.adjust),
            alpha=next((s.alpha for s in every if s.alpha is not None), None),
        )

    @staticmethod
    def of(results: ComparisonResults) -> Facts:
        """Take what results say."""
        table = results.table
        exact = table.exact | (table.n_trials == 0)
        sure, origins, beside, family = table.intervals, table.origins, details_of(table), results.family
        names = [np.unique(side.codes) for side in (table.a, table.b)]
        systems = {side.values[c] for side, own in zip((table.a, table.b), names, strict=True) for c in own.tolist()}
        drawn = () if sure is None else np.unique(np.stack([sure.method.codes, sure.n_resamples]), axis=1).T.tolist()
        return Facts(
            metrics=tuple((score.name, score.signature or "") for score in _used(table.metric)),
            alternatives=_used(table.alternative),
            units=_used(table.unit),
            test_sets=tuple(name for name in _used(table.test_set) if name),
            columns=_distinct(own.column for own in _used(table.subset) if own),
            versions=(made_by(),) if origins is None else tuple(v for v in _used(origins.version) if v) or (made_by(),),
            seeds=(results.seed,),
            n_comparisons=len(table),
            n_systems=len(systems),
            n_exact=int(exact.sum()),
            n_sampled=int((~exact).sum()),
            n_trials=tuple(np.unique(table.n_trials[~exact]).tolist()),
            computed=_distinct(by[0] for by in _used(table.exact_by) if by),
            stops=tuple((own.rule, own.epsilon if own.h is None else own.h) for own in table.stops),
            adjusted=_families(results),
            intervals=() if sure is None else _distinct(
                (sure.method.values[code], float(np.nanmax(sure.confidence)), n) for code, n in drawn
                if sure.method.values[code]
            ),
            n_larger=int(np.count_nonzero(beside.has_two)) if family and family.adjust != "tukey" else 0,
            n_resamples=(family.n_resamples or 0) if family else 0,
            has_simultaneous=bool(beside.has_interval.any()),
            tests=tuple(own.name for own in table.tests),
            has_second_run=bool((table.second_trials > 0).any()),
            has_letters=next(ranked(table), None) is not None,
            has_sets=bool(results.together),
            alpha=results.alpha,
            n_skewed=int(np.count_nonzero(table.is_skewed)),
        )  # fmt: skip


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


def _used(column: Any) -> tuple[Any, ...]:
    return tuple(column.values[code] for code in np.unique(column.codes).tolist())


def _families(results: ComparisonResults) -> tuple[tuple[str, int], ...]:
    """Return how p was adjusted, of each family, as signatures have it."""
    own, family = results.table.origins, results.family
    if own is None:
        return () if family is None else ((family.adjust, family.n_comparisons),)
    codes = np.unique(np.stack([own.adjust.codes, own.members.codes]), axis=1).T.tolist()
    return _distinct((own.adjust.values[k], int(own.members.values[n])) for k, n in codes if own.adjust.values[k])


def _scorer(own: Signature) -> str:
    """Return what the scorer says of how it counted."""
    said = dict(own.options)
    return said.get("signature") or "|".join(f"{key}:{value}" for key, value in own.options if key != "code")


@dataclass(frozen=True, slots=True)
class Methods:
    """A paragraph on methods.

    Attributes
    ----------
    marked : str
        Its sentences, with `[[key,key]]` where works are cited.
    """

    marked: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The works that it rests on, as they come."""
        return _distinct(key for found in CITED.finditer(self.marked) for key in found[1].split(","))

    @property
    def text(self) -> str:
        """The paragraph with names and years."""
        return CITED.sub(lambda found: f" ({'; '.join(named(key) for key in found[1].split(','))})", self.marked)

    @property
    def latex(self) -> str:
        r"""The paragraph as LaTeX with `\citep`, of natbib."""
        parts = CITED.split(self.marked)
        text = "".join(f"~\\citep{{{part}}}" if place % 2 else escaped(part) for place, part in enumerate(parts))
        return f"{DEFINED}{text}" if UNKNOWN in text else text

    @property
    def bibtex(self) -> str:
        """The entries of its works."""
        return bibtex(self.keys)

    def __str__(self) -> str:
        return self.text


def of(facts: Facts) -> Methods:
    """Return the paragraph that tells some facts."""
    return Methods(" ".join(_sentences(facts)))


def in_general() -> Methods:
    """Return how the program and its test are cited."""
    return Methods(
        f"Differences were tested for significance by approximate randomization [[noreen1989,yeh2000]] with sigdask "
        f"{made_by()} [[sigdask]]."
    )


def _sentences(facts: Facts) -> Iterator[str]:
    yield _compared(facts)
    yield (
        f"Each difference was tested by approximate randomization, also called stratified shuffling "
        f"[[noreen1989,yeh2000]], with sigdask {' and '.join(facts.versions)} [[sigdask]]: under the null hypothesis "
        f"the outputs of two systems for the same {' or '.join(facts.units)} are exchangeable, so they were exchanged "
        f"at random and the metric was computed anew on the whole test set."
    )
    yield from _how_p(facts)
    yield from _stopped(facts)
    for how, n in facts.adjusted:
        which = (
            f"The p-values of all {n:,} comparisons were adjusted"
            if n == facts.n_comparisons
            else (f"The p-values were adjusted in families of {n:,} comparisons")
        )
        yield f"{which} by {ADJUSTING[how]}."
    if facts.n_larger:
        yield (
            f"Where the differences of units are skewed, in {count_noun(facts.n_larger, 'comparison')}, "
            "the adjusted p is the "
            f"larger of this and that of {ADJUSTING['bootstrap-t']}, of {facts.n_resamples:,} resamples."
        )
    if facts.alpha is not None:
        adjusted = "adjusted " if facts.adjusted else ""
        yield f"Differences with {adjusted}p at most {facts.alpha:g} are called significant."
    if facts.n_skewed:
        which = f"{facts.n_skewed:,} of {facts.n_comparisons:,} comparisons" if facts.n_comparisons > 1 else "it"
        yield f"In {which}, few units decide the result or the differences of units are skewed."
    if facts.has_letters:
        yield "Systems that share a letter are not significantly different [[piepho2004]]."
    if facts.has_sets:
        yield (
            "Verdicts over several sets are of the mean difference, with in how many sets at least the one system "
            "scores above the other [[benjamini2008]]."
        )
    yield from _intervals(facts)
    if facts.tests:
        yield f"Beside it stand {_and(DESCRIPTIONS[name] for name in facts.tests)}."
    if facts.n_sampled or facts.intervals:
        seeds = _and(map(str, facts.seeds))
        yield f"Random numbers are those of Philox4x32-10 [[salmon2011]] with seed {seeds}."


def _compared(facts: Facts) -> str:
    systems = f"{facts.n_systems} systems" if facts.n_systems else "Systems"
    where = f" on {_and(facts.test_sets)}" if facts.test_sets else ""
    within = f", within each {_and(facts.columns)}" if facts.columns else ""
    said = [f"{name}: {own}" for name, own in facts.metrics if own]
    aside = f" ({'; '.join(said)})" if said else ""
    pairs = f" in {facts.n_comparisons:,} comparisons" if facts.n_comparisons > 1 else ""
    names = _and(_distinct(name for name, _ in facts.metrics))
    return f"{systems} were compared{where} by {names}{aside}{within}{pairs}.".replace("[[", "[ [")  # no citation


def _how_p(facts: Facts) -> Iterator[str]:
    """Say how p was had."""
    sided = _and(SIDED[own] for own in facts.alternatives)
    keys = ",".join(_distinct(COMPUTED[name] for name in facts.computed if name in COMPUTED))
    cited = f" [[{keys}]]" if keys else ""
    if facts.n_exact:
        which = "The p-values" if not facts.n_sampled else f"The p-values of {count_noun(facts.n_exact, 'comparison')}"
        yield f"{which} are exact, over all possible exchanges{cited}, and {sided}."
    if facts.n_sampled and any(rule != "confidence-sequence" for rule, _ in facts.stops or (("", None),)):
        which = "The others are" if facts.n_exact else f"The p-values are {sided}, and"
        yield f"{which} had from {_trials(facts)}."
    if facts.has_second_run:
        yield (
            "Two independent runs of random exchanges were held against each other by Fisher's exact test "
            "[[fisher1935]]."
        )


def _trials(facts: Facts) -> str:
    """Say of how many random exchanges p is, and how it is made of them."""
    few = len(facts.n_trials) <= MOST_TRIALS
    trials = _and(f"{n:,}" for n in facts.n_trials) if few else f"{min(facts.n_trials):,} to {max(facts.n_trials):,}"
    if any(rule == "besag-clifford" for rule, _ in facts.stops):
        return f"up to {trials} random exchanges"
    return (
        f"n = {trials} random exchanges as (k + 1) / (n + 1) [[phipson2010]], k of them with a difference at least as "
        "large as the observed one"
    )


def _stopped(facts: Facts) -> Iterator[str]:
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


def _intervals(facts: Facts) -> Iterator[str]:
    if not facts.intervals:
        return
    confidence = facts.intervals[0][1]
    told = [f"{INTERVALS[name]}{f' with {n:,} {_drawn(name)}' if n else ''}" for name, _, n in facts.intervals]
    alone = " of each comparison alone" if facts.adjusted else ""
    yield f"{100 * confidence:.4g} % confidence intervals of differences{alone} are by {_and(told)}."
    if facts.has_simultaneous and facts.alpha is not None:
        yield (
            f"Simultaneous {100 * (1 - facts.alpha):.4g} % confidence intervals are by the largest statistic of the "
            f"studentised bootstrap [[efron1993]], in one step, with {facts.n_resamples:,} resamples."
        )


def _drawn(method: str) -> str:
    return "random exchanges" if method == "inversion" else "resamples"


MOST, MOST_TRIALS = 9, 3
"""Names, and numbers of trials, that are listed."""


def _and(names: Iterable[str]) -> str:
    """List names as a sentence does.

    Examples
    --------
    >>> _and(["a", "b", "c"])
    'a, b and c'
    """
    every = [*names]
    if len(every) > MOST:
        return listed(every, MOST)
    return " and ".join([", ".join(every[:-1]), every[-1]]) if len(every) > 1 else "".join(every)
