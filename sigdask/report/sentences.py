"""Sentences about results: the verdict, sizes and intervals, margins, runs, checks, and the test.

Terminal, page, tables for papers and notebooks use these sentences. Names in them are those of the users, and are made
harmless by the code that writes them. Differences are told in the metric's own units, as in all tables. Each procedure
has its words here, with the works that it rests on as `[[key,key]]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.stream import SCHEME
from sigdask.report.standings import ALL, BASELINE, PAIR, SOME, Standings
from sigdask.results.columns import EMPTY
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets, get_version
from sigdask.results.fields import get_result, iter_results
from sigdask.results.record import OtherUnitResult, Result
from sigdask.results.table import AGREES, CONTESTED, DISAGREES, Table
from sigdask.statistics.rounding import format_limits, format_p, format_p_equals, format_score, format_signed
from sigdask.text import format_count, format_list

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

MAX_LISTED_GROUPS = 6
"""Maximum number of groups (metrics, subsets, test sets) described one by one. Further groups are counted."""

MIN_TESTS = 5
"""Number of tests that are not adjusted together, from which on the verdict says how many chance would reject."""

MAX_NAMED = 3
"""Maximum number of systems or test sets that are named."""

MAX_DECIMALS = 10

MAX_PLAIN = 1e16
"""Larger numbers are written in scientific notation."""


def join_phrases(parts: Sequence[str]) -> str:
    """Join phrases with commas and a final "and".

    Examples
    --------
    >>> join_phrases(["a"]), join_phrases(["a", "b"]), join_phrases(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# Sizes


def format_amount(difference: float, ends: tuple[float, float] | None = None) -> str:
    """Return the size of a difference as text, with its interval.

    Examples
    --------
    >>> format_amount(0.1226, (0.019, 0.2338)), format_amount(1.62)
    ('0.123 [0.019, 0.234]', '1.6')
    >>> format_amount(1e300), format_amount(1e-300, (-1e-300, 3e-300))
    ('1e+300', '1e-300 [-1e-300, 3e-300]')
    """
    low, high = ends or (math.nan, math.nan)
    size = _format_decimals(difference, _count_decimals(difference, high - low))
    return size if ends is None else f"{size} {format_ends(difference, low, high)}"


def format_ends(difference: float, low: float, high: float) -> str:
    """Return the ends of an interval, with as many digits as `format_amount`.

    Examples
    --------
    >>> format_ends(0.1226, 0.019, 0.2338), format_ends(-1.5, -math.inf, math.inf)
    ('[0.019, 0.234]', '[no bounds]')
    """
    if math.isinf(low) and math.isinf(high):
        return "[no bounds]"
    n_decimals = _count_decimals(difference, high - low)
    return f"[{_format_end(low, n_decimals)}, {_format_end(high, n_decimals)}]"


def _format_end(value: float, n_decimals: int) -> str:
    """Return an end of an interval as text, with more decimals if it would otherwise be written as 0."""
    if math.isinf(value) or value == 0 or round(value, n_decimals) != 0:
        return _format_decimals(value, n_decimals)
    return _format_decimals(value, min(-math.floor(math.log10(abs(value))), MAX_DECIMALS))


def _format_decimals(value: float, n_decimals: int) -> str:
    is_hidden = value != 0 and n_decimals >= MAX_DECIMALS and round(value, n_decimals) == 0
    if not math.isfinite(value) or abs(value) >= MAX_PLAIN or is_hidden:
        return f"{value:.3g}"
    return f"{round(value, n_decimals) + 0.0:.{n_decimals}f}"


def _count_decimals(difference: float, width: float) -> int:
    """Return the number of decimals that shows two digits of a difference, or fewer if its interval is wide.

    Differences below 1, such as those of shares, have at least three decimals unless their interval is wider than 1.
    """
    size = abs(difference)
    tenth = width / 10 if math.isfinite(width) else 0.0
    large = max(size, tenth)
    needed = 1 - math.floor(math.log10(large)) if large > 0 else 1
    if 0 < size < tenth:
        needed = max(needed, -math.floor(math.log10(size)))  # it is not written as 0
    is_small = 0 < large < 1 and not 1 < width < math.inf
    return min(max(needed, 3 if is_small else 1), MAX_DECIMALS)


def get_ends(r: Result) -> tuple[float, float] | None:
    """Return the ends of the interval to show with the p that decides: the simultaneous one, else the own one."""
    if r.interval_simultaneous is not None or r.interval is None:
        return r.interval_simultaneous
    return r.interval.low, r.interval.high


def format_lead(r: Result) -> str:
    """Return by how much the better system is ahead as text, with an interval of this lead.

    Next to an adjusted p, the interval is simultaneous. If there is none, the comparison's own interval is called
    unadjusted.
    """
    ends = get_ends(r)
    is_unadjusted = ends is not None and r.interval_simultaneous is None and r.p_adjusted is not None
    aside = " (interval unadjusted)" if is_unadjusted else ""
    if ends is not None and r.difference < 0:
        ends = -ends[1], -ends[0]
    return format_amount(abs(r.difference), ends) + aside


def describe_size(r: Result) -> str:
    """Return the difference with its intervals and effect size."""
    interval = r.interval
    assert interval is not None
    noun = "trials" if interval.method == "inversion" else "resamples"
    draws = "" if interval.n_resamples is None else f", {interval.n_resamples:,} {noun}"
    d = "" if r.paired_d is None else f"; paired d {r.paired_d:+.2f}"
    label = "" if r.p_adjusted is None else "unadjusted "
    limits = r.interval_simultaneous
    simultaneous = "" if limits is None else f"; simultaneous interval {format_ends(r.difference, *limits)}"
    return (
        f"{r.a} - {r.b} = {format_signed(r.difference)}, {label}{100 * interval.confidence:.4g} % interval "
        f"{format_ends(r.difference, interval.low, interval.high)} "
        f"({INTERVAL_METHODS[interval.method].label} by {r.unit}{draws}){simultaneous}{d}"
    )


# p-values


def describe_method(result: Result) -> str:
    """Return text on how p was computed: exactly, by bounds, or from a number of trials."""
    if result.method == "exact":
        return "exact"
    return "bounds" if is_bounded(result) else format_count(result.n_trials, "trial")


def is_bounded(result: Result) -> bool:
    """Return whether a p-value was computed only as bounds, without trials."""
    return result.method != "exact" and result.exact is not None and not result.n_trials


def is_adjusted(table: Table) -> bool:
    """Return whether any p was adjusted."""
    return not bool(np.isnan(table.p_adjusted).all())


def describe_p(result: Result, alpha: float) -> str:
    """Return text on p with its interval."""
    label = "" if result.p_adjusted is None else "unadjusted "
    p = format_p_equals(result.p_value, alpha, is_bound=result.is_bound)
    if result.method == "exact":
        return f"{label}{p} (exact)"
    limits = format_limits(*result.p_interval, alpha)
    how = "exact p between" if is_bounded(result) else "99 % interval"
    trials = "" if is_bounded(result) else f"; {describe_method(result)}"
    return f"{label}{p} ({how} {limits}{trials})"


def describe_alternative_unit(b: OtherUnitResult, alpha: float) -> str:
    """Return text on the p-value of the test that swaps another unit."""
    how = "exact" if b.method == "exact" else format_count(b.n_trials, "trial")
    return f"{format_p_equals(b.p_value, alpha)} ({how})"


def format_verdict_p(r: Result, alpha: float) -> str:
    """Return the p that the verdict uses as text: the adjusted one, else p and how it was computed.

    If the verdict is contested, the p of the equal-score test and the cause follow.
    """
    contested = ""
    if r.is_contested(alpha) and (test := r.equal_scores) is not None:
        p = test.p_value if r.p_adjusted is None or test.p_adjusted is None else test.p_adjusted
        cause = f" ({test.cause})" if test.cause else ""
        contested = f", but {format_p_equals(p or 0.0, alpha)} in the equal-score test{cause}"
    if r.p_adjusted is not None:
        return f"adjusted {format_p_equals(r.p_adjusted, alpha, is_bound=r.is_adjusted_bound)}{contested}"
    if is_bounded(r):
        return f"p in {format_limits(*r.p_interval, alpha)} (bounds of the exact p){contested}"
    sided = "" if r.alternative == "two-sided" else ", one-sided"
    p_text = format_p_equals(r.p_value, alpha, is_bound=r.is_bound)
    return f"{p_text}{sided} ({describe_method(r)}){contested}"


# One comparison


def describe_numbers(r: Result, alpha: float) -> str:
    """Return both scores, the p of the comparison alone with its interval, and the units that decide it."""
    return (
        f"{r.a} {format_score(r.score_a)}, {r.b} {format_score(r.score_b)}; {describe_p(r, alpha)}; "
        f"{ALTERNATIVES[r.alternative].label}; {r.n_discordant:,} of {format_count(r.n_units, 'unit')} discordant"
    )


def describe_comparison(r: Result, alpha: float, where: str = "") -> str:
    """Return the outcome of a comparison as a sentence, without a full stop.

    Parameters
    ----------
    r : Result
        The comparison.
    alpha : float
        Level of the verdict.
    where : str
        Test set and subset, if there are several.

    Examples
    --------
    "I is better than II on f1 by 0.123 [0.019, 0.234]; p = 0.0296 (exact)"
    """
    metric = r.metric + where
    if math.isnan(r.difference):
        return f"{r.a} and {r.b} cannot be compared on {metric}: a score is missing"
    if r.n_trials == 0 and r.exact is None and r.method != "exact":
        return f"{r.a} and {r.b} are not compared yet on {metric}: no trial is counted"
    if r.n_discordant == 0:
        return f"{r.a} and {r.b} do not differ on {metric}: the metric counts both alike on every {r.unit}"
    is_not_shown = r.alternative != "two-sided" and r.decision(alpha) is False and not r.is_contested(alpha)
    standing = _describe_not_shown(r, metric) if is_not_shown else _describe_lead(r, alpha, where)
    these_runs = "for these runs " if r.runs else ""
    return (
        f"{standing}{_describe_scope_of_runs(r, alpha)}; {these_runs}{format_verdict_p(r, alpha)}"
        f"{describe_contradiction(r, alpha)}"
    )


def _describe_lead(r: Result, alpha: float, where: str) -> str:
    better, decision = r.better(), r.decision(alpha)
    if better is None:
        return f"{r.a} and {r.b} score the same on {r.metric}{where}, {format_score(r.score_a)}"
    other = r.b if better == r.a else r.a
    metric = r.metric + ("" if r.higher_is_better else " (lower is better)") + where
    if decision and not r.is_contested(alpha):
        return f"{better} is better than {other} on {metric} by {format_lead(r)}"
    lead = f"{better} is ahead by {format_lead(r)}"
    if r.is_contested(alpha):
        return f"Whether {better} is better than {other} on {metric} is contested: {lead}"
    if decision is None:
        return f"Whether {better} is better than {other} on {metric} is undecided at {alpha:g}: {lead}"
    return f"{r.a} and {r.b} are not significantly different on {metric}: {lead}"


def _describe_not_shown(r: Result, metric: str) -> str:
    """Return a sentence that the system is not significantly better in the direction that was tested."""
    tested, other = ("higher", "lower") if r.alternative == "greater" else ("lower", "higher")
    side = tested if (r.difference > 0) == (r.alternative == "greater") else other
    scores = f"it scores {format_lead(r)} {side}" if r.difference else f"both score {format_score(r.score_a)}"
    return f"{r.a} does not score significantly {tested} than {r.b} on {metric}: {scores}"


def describe_contradiction(r: Result, alpha: float) -> str:
    """Return a clause if the interval and the test, at one level, disagree on whether the difference can be 0, else "".

    A one-sided test is compared with the end of the interval on its side. A contested verdict says that there is doubt.
    """
    decision, ends = r.decision(alpha), get_ends(r)
    if ends is None or decision is None or r.runs is not None or r.is_contested(alpha):
        return ""
    is_simultaneous = r.interval_simultaneous is not None
    if not is_simultaneous and r.interval is not None and abs(r.interval.confidence - (1 - alpha)) > 1e-9:
        return ""
    low, high = ends
    excludes = {"two-sided": low > 0 or high < 0, "greater": low > 0, "less": high < 0}[r.alternative]
    if excludes == decision:
        return ""
    is_adjusted, is_one_sided = r.p_adjusted is not None, r.alternative != "two-sided"
    kind = "simultaneous " if is_simultaneous else "unadjusted " * is_adjusted + "two-sided " * is_one_sided
    contains, rejects = "excludes" if excludes else "contains", "rejects" if decision else "does not reject"
    return f"; the {kind}interval {contains} 0, the {'one-sided ' * is_one_sided}test {rejects}"


# Runs of a system


def _describe_scope_of_runs(r: Result, alpha: float) -> str:
    """Return a clause on the p of the recipes, and on whether a significant difference holds for these runs only."""
    if (runs := r.runs) is None:
        return ""
    averaged = f"averaged over {runs.n_runs} {runs.column}s each"
    recipe_p = "" if runs.best_p is None else f"; {format_p_equals(runs.best_p, alpha)} for the recipes"
    if not r.decision(alpha):
        return f" ({averaged}){recipe_p}"
    if runs.verdict == "significant":
        p = format_p_equals(runs.best_p or 0.0, alpha)
        return f", also for the recipes: {p} over items and {runs.n_runs} {runs.column}s each"
    return f", {averaged}: holds for these runs{recipe_p}"


def describe_runs(r: Result, alpha: float) -> Iterator[str]:
    """Yield a line on the tests over runs and of the recipes, if the systems have several runs."""
    if (runs := r.runs) is None:
        return
    parts = [f"{runs.n_runs} runs each, {'paired by' if runs.is_paired else 'unpaired, by'} {runs.column}"]
    if runs.p_runs is not None:
        parts.append(f"over runs {format_p_equals(runs.p_runs, alpha)} ({runs.method})")
    adjusted = "" if runs.p_adjusted is None else f", adjusted {format_p_equals(runs.p_adjusted, alpha)}"
    p = (
        ""
        if runs.p_value is None
        else f", {format_p_equals(runs.p_value, alpha)} (t, {runs.df:.1f} degrees of freedom)"
    )
    parts.append(f"recipes: {runs.verdict}{p}{adjusted}")
    yield "; ".join([*parts, f"standard errors {runs.se_items:.3g} over items, {runs.se_runs:.3g} over runs"])


def _describe_all_runs(table: Table) -> Iterator[str]:
    """Yield a sentence on how many significant differences of several comparisons hold for the recipes too."""
    if not table.has("runs") or len(table) < 2:
        return
    significant = [r.runs for r in iter_results(table.take(np.flatnonzero(table.decision == 1)))]
    n_recipes = sum(runs is not None and runs.verdict == "significant" for runs in significant)
    n_runs = ", ".join(map(str, np.unique(table["runs.n_runs"][table["runs.n_runs"] > 0]).tolist()))
    of_recipes = f"{n_recipes:,} of {format_count(len(significant), 'significant difference')} hold for the recipes"
    others = ", the others for these runs" if n_recipes < len(significant) else ""
    outcome = of_recipes + others if significant else "no difference is significant"
    yield f"Scores are averaged over {n_runs} runs each: {outcome}."


# Margins


def _describe_margins(results: ComparisonResults) -> Iterator[str]:
    """Yield sentences on what the tests of a margin show; none if no margin was chosen.

    Examples
    --------
    "A is not worse than B by more than 0.01 on f1: p = 0.003."
    """
    has_margin = results.table.has("margin")
    tested = [r for r in iter_results(results.table) if r.margin is not None] if has_margin else []
    if len(tested) <= MAX_NAMED:
        yield from (_describe_margin(r, results.alpha) for r in tested)
    elif tested[0].margin is not None:
        n_equivalent = sum(describe_shown_margin(r) == "equivalent" for r in tested)
        pairs = f"{n_equivalent:,} of {len(tested):,} pairs are shown to be equivalent"
        yield f'Within {tested[0].margin.margin:g}, {pairs}; the column "within margin" has the others.'


def _describe_margin(r: Result, alpha: float) -> str:
    margin = r.margin
    assert margin is not None
    subset = f" in {r.subset['column']} {r.subset['value']}" if r.subset else ""
    where = f" on {r.metric}{subset}{f' of {r.test_set}' if r.test_set else ''}"
    adjusted = "adjusted " if margin.p_adjusted else ""
    doubt = f" ({margin.method.rpartition(', ')[2]})" if margin.method.endswith("p may be too small") else ""
    p_values = margin.p_adjusted or (margin.p_not_worse, margin.p_not_better, margin.p_equivalent)
    worse, better, equivalent = (f"{adjusted}{format_p_equals(p, alpha)}{doubt}" for p in p_values)
    if "equivalent" in margin.verdicts:
        return f"{r.a} and {r.b} are equivalent within {margin.margin:g}{where}: {equivalent}."
    for a, b, p, claim in ((r.a, r.b, worse, "not worse"), (r.b, r.a, better, "not better")):
        if claim in margin.verdicts:
            return f"{a} is not worse than {b} by more than {margin.margin:g}{where}: {p}."
    return f"Not shown: {r.a} and {r.b} differ by less than {margin.margin:g}{where} ({worse}; {better})."


def describe_shown_margin(r: Result) -> str:
    """Return what the tests of a margin show of a comparison, in a word or two for a table; "" without a margin."""
    if r.margin is None:
        return ""
    return "equivalent" if "equivalent" in r.margin.verdicts else ", ".join(r.margin.verdicts) or "not shown"


def describe_margin_tests(r: Result) -> Iterator[str]:
    """Yield the p-values of the tests of a margin, with the method; nothing without a margin."""
    if (margin := r.margin) is None:
        return
    adjusted = "" if margin.p_adjusted is None else f"; adjusted {', '.join(map(format_p, margin.p_adjusted))}"
    yield (
        f"margin {margin.margin:g}: {r.a} not worse {format_p_equals(margin.p_not_worse)}, not better "
        f"{format_p_equals(margin.p_not_better)}, equivalent {format_p_equals(margin.p_equivalent)}{adjusted} "
        f"({margin.method})"
    )


# Checks and doubt

CHECK_MEANINGS = {
    "second run": "second run: the same test with other random numbers, whose p must agree up to chance",
    "sign test": "sign test: an exact test that equals this one if units are scored 0 or 1",
    "exact value": "exact p: p over all arrangements, without random numbers",
}
"""Checks: their names within a sentence, and what each compares the p-values with."""


def explain_checks(table: Table) -> list[str]:
    """Return a phrase for each check, on what it compares the p-values with."""
    checks = table.list_keys("checks")
    made = (name for name in checks if {AGREES, DISAGREES} & {*table[f"checks.{name}.verdict"].values})
    return [CHECK_MEANINGS[name] for name in made if name in CHECK_MEANINGS]


def describe_checks(table: Table) -> str:
    """Return a line on the checks of these comparisons: which were made, and how they came out."""
    good, bad = [], []
    for name in table.list_keys("checks"):
        check = CHECK_MEANINGS.get(name, name).partition(":")[0]
        n_good, n_bad = (table[f"checks.{name}.verdict"].to_list().count(word) for word in (AGREES, DISAGREES))
        bad += [f"{check} in {n_bad:,} of {n_good + n_bad:,}"] if n_bad else []
        aside = "" if n_good == len(table) else f" ({n_good:,} of {len(table):,} comparisons)"
        good += [f"{check}{aside}"] if n_good else []
    if bad:
        return f"a check DISAGREES ({', '.join(bad)}): do not use these p-values; run `sigdask verify` and report this"
    if good:
        return f"{join_phrases(good)} {'agree' if len(good) > 1 else 'agrees'}"
    if len(table) and table.is_exact.all():
        return "every p is exact (over all swaps), so there are no random trials to check"
    return "nothing was checked: there was no second run, and no exact p is known"


def find_doubtful(table: Table) -> NDArray[np.int64]:
    """Return the rows that are contested, or whose verdict another seed could change, the smallest p first."""
    low, high = table["p_adjusted_interval.0"], table["p_adjusted_interval.1"]
    adjusted = (low <= table.alpha) & (table.alpha < high)
    is_open = np.where(np.isnan(table.p_adjusted), table.is_open, adjusted) | (table.decision == -1)
    rows = np.flatnonzero(table.is_contested | (is_open & (table.n_discordant > 0)))
    p = np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)[rows]
    return rows[np.lexsort((-np.abs(table.difference[rows]), p))]


# The test


def describe_settings(results: ComparisonResults) -> str:
    """Return a line with the settings that reproduce the results: version, seed and level."""
    return f"sigdask {get_version()}, scheme {SCHEME}, seed {results.seed}, alpha {results.alpha:g}"


def describe_test(results: ComparisonResults) -> str:
    """Return a line with the test, its unit and alternative, and the adjustment of p."""
    table, note = results.table, results.family
    n = format_count(max(len(table), note.n_comparisons if note else 0), "comparison")
    adjustment = f"; p not adjusted for {n}" if len(table) > 1 else ""
    if note is not None:
        part = f", {note.n_comparisons:,} by each metric" if note.n_comparisons < len(table) else ""
        adjustment = f"; p adjusted by {ADJUSTMENTS[note.adjust].label} over {n}{part}"
    return f"test: stratified shuffling by {table.unit[0]}, {ALTERNATIVES[table.alternative[0]].label}{adjustment}"


# Verdicts on groups of comparisons


@dataclass(frozen=True)
class _Groups:
    """Comparisons by test set, subset and metric, with words that describe them."""

    table: Table

    @cached_property
    def standings(self) -> Standings:
        return Standings(self.table)

    @cached_property
    def noun(self) -> str:
        """Word for what the groups differ by: metrics, subsets or test sets; "comparisons" if by several of these."""
        table = self.table
        columns = {"test sets": ["test_set"], "subsets": ["subset.column", "subset.value"], "metrics": ["metric"]}
        varying = [name for name, paths in columns.items() if table.number_rows(*paths).any()]
        return varying[0] if len(varying) == 1 else "comparisons"

    def label(self, g: int) -> str:
        """Return "on" a metric, with test set and subset where there are several."""
        row = int(self.standings.first_rows[g])
        metric = self.table.metric[row] + ("" if self.table.higher_is_better[row] else " (lower is better)")
        return f"on {metric}{self.describe_place(row)}"

    def describe_place(self, row: int) -> str:
        """Return the test set and subset of a row, where there are several."""
        table, codes = self.table, self.table.test_set.codes
        column, value = table["subset.column"][row], table["subset.value"][row]
        parts = [self.table.test_set[row]] if (codes != codes[0]).any() else []
        parts += [f"{column} {value or EMPTY}"] if column else []
        return f" in {', '.join(parts)}" if parts else ""

    def get(self, row: int) -> Result:
        """Return the result of a row."""
        return get_result(self.table, row)

    def describe(self, row: int) -> str:
        """Return the verdict of a row as a sentence."""
        return describe_comparison(self.get(row), self.table.alpha, self.describe_place(row))

    def describe_lead(self, row: int, joint: str = "; ") -> str:
        """Return how far the better system of a row is ahead, and its p."""
        return f"{format_lead(self.get(row))}{joint}{format_verdict_p(self.get(row), self.table.alpha)}"

    def split(self, rows: NDArray[np.int64]) -> dict[str, list[int]]:
        """Return the rows by their verdicts: A is better, worse, not significantly different, and so on."""
        outcome, ahead = self.standings.outcome[rows], self.standings.ahead[rows]
        kinds = {
            "significantly better": (outcome == 1) & (ahead > 0), "significantly worse": (outcome == 1) & (ahead < 0),
            "not significantly different": outcome == 0, "undecided": outcome == -1, "contested": outcome == CONTESTED,
        }  # fmt: skip
        return {name: rows[kind].tolist() for name, kind in kinds.items()}


def _describe_group(groups: _Groups, g: int) -> str:
    """Return the verdict on one group (a test set, subset and metric) as a sentence."""
    c = groups.standings
    rows = np.flatnonzero(c.group == g)
    if len(rows) == 1:
        return groups.describe(int(rows[0]))
    if c.design == ALL:
        return _describe_ranking(groups, g)
    return (_describe_baseline if c.design == BASELINE else _describe_several)(groups, g, rows)


def _describe_baseline(groups: _Groups, g: int, rows: NDArray[np.int64]) -> str:
    """Return the verdict on systems that were each compared with one baseline, in one group."""
    c = groups.standings
    rows = rows[np.argsort(-np.nan_to_num(c.ahead[rows], nan=-np.inf), kind="stable")]
    first, n = int(rows[0]), len(rows)
    kinds = groups.split(rows)
    better = kinds.pop("significantly better")
    n_better = f"{len(better):,} of {n:,} systems {'is' if len(better) == 1 else 'are'}"
    subject = f"All {n:,} systems are" if len(better) == n else n_better if better else f"None of {n:,} systems is"
    text = f"{subject} significantly better than {c.names[int(c.b[first])]} {groups.label(g)}"
    names = [c.names[int(c.a[row])] for row in better]
    if names:
        text += f": {names[0]} by {groups.describe_lead(better[0], ', ')}"
        text += f"; also {format_list(names[1:], MAX_NAMED)}" if len(names) > 1 else ""
    elif abs(c.ahead[first]) > 0:  # which NaN is not
        side, best = "ahead" if c.ahead[first] > 0 else "behind", c.names[int(c.a[first])]
        text += f": the best, {best}, is {side} by {groups.describe_lead(first, ', ')}"
    return text + _describe_rest(kinds)


def _describe_rest(kinds: dict[str, list[int]]) -> str:
    parts = [f"{len(rows):,} {'is' if len(rows) == 1 else 'are'} {name}" for name, rows in kinds.items() if rows]
    return f"; {join_phrases(parts)}" if parts else ""


def _describe_ranking(groups: _Groups, g: int) -> str:
    """Return the verdict on which of several systems is best, if all were compared with each other."""
    c, where = groups.standings, groups.label(g)
    top, n_others, row = int(c.top[g]), int(c.n_members[g]) - 1, c.find_rival(g)
    best, rival = c.names[top], c.get_opponent(row, top)
    near = [c.get_opponent(k, top) for k in c.near_top_rows[c.group[c.near_top_rows] == g].tolist()]
    others = f"{len(near):,} of {n_others:,} others" if len(near) > MAX_NAMED else join_phrases(near)
    if c.ahead[row] == 0:
        return f"{best} and {rival} share the best score {where}"
    outcome = f"scores best {where}, but is not significantly different from {others}"
    if not near:
        all_others = "both" if n_others == 2 else f"all {n_others:,}"
        outcome = f"is best {where}, significantly better than {all_others} others"
    return f"{best} {outcome}: ahead of the runner-up, {rival}, by {groups.describe_lead(row)}"


def _describe_several(groups: _Groups, g: int, rows: NDArray[np.int64]) -> str:
    """Return the number of significant differences and the largest one, for comparisons of no regular design."""
    c = groups.standings
    text = _count_significant(groups, rows, f" {groups.label(g)}")
    significant = rows[c.outcome[rows] == 1]
    if not len(significant):
        return text
    row = int(significant[np.argmax(np.abs(c.ahead[significant]))])
    winner = int((c.a if c.ahead[row] > 0 else c.b)[row])
    opponent = c.get_opponent(row, winner)
    return f"{text}: most of all {c.names[winner]} is ahead of {opponent}, by {groups.describe_lead(row)}"


def _count_significant(groups: _Groups, rows: NDArray[np.int64], where: str) -> str:
    kinds = groups.split(rows)
    n = len(kinds["significantly better"]) + len(kinds["significantly worse"])
    count = format_count(len(rows), "comparison")
    text = f"{n:,} of {count}{where} {'is' if n == 1 else 'are'} significant"
    text = text if n else f"None of {count}{where} is significant"
    return text + _describe_rest({name: kinds[name] for name in ("undecided", "contested")})


def _summarize(groups: _Groups) -> str:
    """Return the verdict on many groups: counts of verdicts, or how often each system is best."""
    c, rows = groups.standings, np.arange(len(groups.table))
    across = f"{c.n_groups:,} {groups.noun}"
    if c.design == ALL:
        tops, counts = np.unique(c.top, return_counts=True)
        best = [f"{c.names[int(tops[k])]} in {int(counts[k]):,}" for k in np.argsort(-counts, kind="stable")]
        n_sure = int(np.count_nonzero(c.n_near_top == 0))
        count = f"in {n_sure:,} of them significantly better than all others"
        return f"The best system of {across}: {format_list(best, MAX_NAMED)}; {count}"
    if c.design == SOME or (c.design == PAIR and not (c.a == c.a[0]).all()):
        return _count_significant(groups, rows, f" over {across}")
    parts = [f"{len(kind):,} {name}" for name, kind in groups.split(rows).items() if kind]
    a, b = c.names[int(c.a[0])] if c.design == PAIR else f"{len(rows):,} comparisons", c.names[int(c.b[0])]
    return f"{a} against {b} over {across}: {join_phrases(parts)}"


def _describe_joint(results: ComparisonResults) -> list[str]:
    """Return a sentence on the comparisons over all test sets or subsets, for each metric."""
    lower = set(results.table.metric.take(~results.table.higher_is_better).to_list())
    metrics = dict.fromkeys(v.metric for v in results.together)
    return [
        _describe_joint_metric(
            [v for v in results.together if v.metric == metric], results.alpha, is_lower_better=metric in lower
        )
        for metric in metrics
    ]


def _describe_joint_metric(verdicts: Sequence[ResultAcrossSets], alpha: float, *, is_lower_better: bool) -> str:
    p_values = [v.p_value if v.p_adjusted is None else v.p_adjusted for v in verdicts]
    p, _, v = min(zip(p_values, (-abs(v.difference) for v in verdicts), verdicts, strict=True), key=lambda row: row[:2])
    n, count = sum(p <= alpha for p in p_values), format_count(len(verdicts), "comparison")
    metric = f"{v.metric}{' (lower is better)' * is_lower_better} (mean of {v.n_sets} sets)"
    better, other = (v.a, v.b) if (v.difference > 0) != is_lower_better else (v.b, v.a)
    ends = v.interval if v.interval is None or v.difference > 0 else (-v.interval[1], -v.interval[0])
    how = "exact" if v.method == "exact" else format_count(v.n_trials, "trial")
    p_text = f"{format_p_equals(p, alpha)} ({how})" if v.p_adjusted is None else f"adjusted {format_p_equals(p, alpha)}"
    lead = f"{format_amount(abs(v.difference), ends)}; {p_text}"
    if len(verdicts) > 1:
        return f"{n:,} of {count} significant on {metric}; the smallest p: {better} is ahead of {other} by {lead}"
    if n:
        return f"{better} is better than {other} on {metric} by {lead}"
    return f"{v.a} and {v.b} are not significantly different on {metric}: {better} is ahead by {lead}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on results in brief, which comes before any table.

    Attributes
    ----------
    scope : tuple of str
        Sentences on which part of the files is scored and which is not.
    headline : str
        The verdict as one text.
    sentences : tuple of str
        Sentence for each metric, test set and subset, with the sizes of differences. Empty if there are too many or
        only one.
    checks : str
        Checks and their outcomes, in a line.
    is_checked : bool
        Whether no check disagrees.
    doubtful : int64 array
        Rows of the table that are contested or whose verdict a different seed could change, the smallest p first.
    is_ranking : bool
        Whether all systems were compared with each other, three or more, two-sided.
    """

    scope: tuple[str, ...]
    headline: str
    sentences: tuple[str, ...]
    checks: str
    is_checked: bool
    doubtful: NDArray[np.int64]
    is_ranking: bool


def build_verdict(results: ComparisonResults) -> Verdict:
    """Return the verdict on some results."""
    table, groups = results.table, _Groups(results.table)
    if not len(table):
        sentences = ["Nothing was compared"]
    elif results.together:
        sentences = _describe_joint(results)
    elif (n := groups.standings.n_groups) <= MAX_LISTED_GROUPS:
        sentences = [_describe_group(groups, g) for g in range(n)]
    else:
        sentences = [_summarize(groups)]
    is_checked = not bool(table.has_disagreement.any())
    caveats = [*_describe_margins(results), *_describe_chance(results), *_describe_disagreement(results, groups)]
    caveats += [*_describe_correlation(results), *_describe_all_runs(table)]
    complete = [f"{text}." for text in sentences]
    doubt = "" if is_checked else "Do not rely on this, a check disagrees: "
    return Verdict(
        scope=tuple(f"{note.text}." for note in results.notes if note.kind == "scope"),
        headline=doubt + " ".join([*complete, *caveats]),
        sentences=(*complete, *caveats) if len(complete) > 1 else (),
        checks=describe_checks(table),
        is_checked=is_checked,
        doubtful=find_doubtful(table),
        is_ranking=len(table) > 0 and groups.standings.design == ALL,
    )


def _describe_chance(results: ComparisonResults) -> Iterator[str]:
    table = results.table
    n_metrics = len(np.unique(table.metric.codes))
    n = n_metrics if results.together else count_tests(table, table.metric.codes)
    yield from describe_chance(n, table.alpha, "metrics" if n == n_metrics else "comparisons")


def count_tests(table: Table, family: NDArray[Any]) -> int:
    """Return the number of tests that are not adjusted together: families, and comparisons whose p is not adjusted."""
    is_single = np.isnan(table.p_adjusted)
    return int(np.count_nonzero(is_single)) + len(np.unique(family[~is_single]))


def describe_chance(n: int, alpha: float, noun: str) -> Iterator[str]:
    """Yield a sentence on how many of `n` tests chance would reject, if these are many."""
    if n >= MIN_TESTS:
        yield f"If the systems were equal, chance would make about {n * alpha:.2g} of {n:,} {noun} significant."


def _describe_disagreement(results: ComparisonResults, groups: _Groups) -> Iterator[str]:
    """Yield a sentence if no system is best on all metrics, even counting systems tied with the best."""
    if results.together or not len(results) or groups.noun != "metrics":
        return
    c = groups.standings
    if c.design in {PAIR, ALL} and not set.intersection(*map(set, c.list_leaders())):
        best = "better" if c.design == PAIR else "best, or tied with the best,"
        which = "both" if c.n_groups == 2 else f"all {c.n_groups:,}"
        yield f"The metrics disagree: no system is {best} on {which} metrics."


def _describe_correlation(results: ComparisonResults) -> Iterator[str]:
    """Yield a sentence if differences are significant, but p is too small as units are correlated within columns."""
    columns = dict.fromkeys(str(note.numbers["column"]) for note in results.notes if note.kind == "dependence")
    if columns and (results.table.outcome == 1).any():
        yield (
            f"But differences are correlated within {join_phrases([*columns])}, so p is too small if the result should "
            "hold for other groups too: the warnings say what to do."
        )
