"""Sentences about results: the verdict, sizes and intervals, margins, runs, checks, and the test.

Terminal, page, tables for papers and notebooks use these sentences. Names in them are those of the users, and are made
harmless by the code that writes them. Differences are told in the metric's own units, as in all tables. Each procedure
has its words here, with the works that it rests on as `[[key,key]]`.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.stream import SCHEME
from sigdask.report.standings import ALL, BASELINE, Standings
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets, get_version
from sigdask.results.fields import get_result, iter_results
from sigdask.results.record import NamedValues, Result
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

CHANGES_VERDICTS: frozenset[str] = frozenset(
    {"upper-bound", "zero-division", "not-reached", "undecided", "few-trials", "few-units",
     "family-undecided", "caveat", "dependence", "permutation"}
)  # fmt: skip
"""Kinds of notes that could change a verdict."""

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
    own: tuple[float, float] | None = None if r.interval is None else (r.interval.low, r.interval.high)
    return r.interval_simultaneous or own


def format_lead(r: Result) -> str:
    """Return by how much the better system is ahead as text, with an interval of this lead.

    Next to an adjusted p, the interval is simultaneous. If there is none, the comparison's own interval is called
    unadjusted.
    """
    ends = get_ends(r)
    is_unadjusted = ends is not None and r.interval_simultaneous is None and r.p_adjusted is not None
    if ends is not None and r.difference < 0:
        ends = -ends[1], -ends[0]
    return format_amount(abs(r.difference), ends) + " (interval unadjusted)" * is_unadjusted


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
    how = "exact p between" if is_bounded(result) else "99 % interval"
    trials = "" if is_bounded(result) else f"; {describe_method(result)}"
    return f"{label}{p} ({how} {format_limits(*result.p_interval, alpha)}{trials})"


def format_verdict_p(r: Result, alpha: float) -> str:
    """Return the p that the verdict uses as text: the adjusted one, else p and how it was computed.

    If the verdict is contested, the p of the equal-score test and the cause follow.
    """
    contested = ""
    if r.verdict == "contested" and (test := r.equal_scores) is not None:
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
    is_not_shown = r.alternative != "two-sided" and r.verdict == "not significant"
    standing = _describe_not_shown(r, metric) if is_not_shown else _describe_lead(r, alpha, where)
    return (
        f"{standing}{_describe_scope_of_runs(r, alpha)}; {'for these runs ' * (r.runs is not None)}"
        f"{format_verdict_p(r, alpha)}{describe_contradiction(r, alpha)}"
    )


def _describe_lead(r: Result, alpha: float, where: str) -> str:
    better = r.better()
    if better is None:
        return f"{r.a} and {r.b} score the same on {r.metric}{where}, {format_score(r.score_a)}"
    other = r.b if better == r.a else r.a
    metric = r.metric + ("" if r.higher_is_better else " (lower is better)") + where
    if r.verdict == "significant":
        return f"{better} is better than {other} on {metric} by {format_lead(r)}"
    lead = f"{better} is ahead by {format_lead(r)}"
    if r.verdict == "contested":
        return f"Whether {better} is better than {other} on {metric} is contested: {lead}"
    if r.verdict == "undecided":
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

    A one-sided test is compared with the end of the interval on its side, and an interval of one comparison alone with
    the unadjusted p. A contested verdict says that there is doubt.
    """
    ends = get_ends(r)
    if ends is None or r.runs is not None or r.verdict not in {"significant", "not significant"}:
        return ""
    is_simultaneous = r.interval_simultaneous is not None
    if not is_simultaneous and r.interval is not None and abs(r.interval.confidence - (1 - alpha)) > 1e-9:
        return ""
    low, high = ends
    excludes = {"two-sided": low > 0 or high < 0, "greater": low > 0, "less": high < 0}[r.alternative]
    is_significant = r.verdict == "significant" if is_simultaneous else r.p_value <= alpha
    if excludes == is_significant:
        return ""
    sides = ("", "") if r.alternative == "two-sided" else ("two-sided ", "one-sided ")
    alone = "unadjusted " * (r.p_adjusted is not None and not is_simultaneous)
    kind = "simultaneous " if is_simultaneous else alone + sides[0]
    contains, rejects = "excludes" if excludes else "contains", "rejects" if is_significant else "does not reject"
    return f"; the {kind}interval {contains} 0, the {alone}{sides[1]}test {rejects}"


# Runs of a system


def _describe_scope_of_runs(r: Result, alpha: float) -> str:
    """Return a clause on how many runs are averaged, and on whether the difference holds for new runs (the recipes)."""
    if (runs := r.runs) is None:
        return ""
    recipes = "not tested" if runs.best_p is None else format_p_equals(runs.best_p, alpha)
    only = ": shown for these runs" * (r.verdict == "significant" and runs.verdict != "significant")
    paired = "paired " if runs.is_paired else ""
    return f", averaged over {runs.n_runs} {paired}{runs.column}s each{only}, for the recipes {recipes}"


def describe_recipes(results: ComparisonResults) -> Iterator[str]:
    """Yield a sentence on how many of several differences hold for new runs (the recipes), if systems have runs."""
    runs = [r.runs for r in results if r.runs] if results.table.has("runs") else []
    if len(results) > 1 and runs:
        are = [own.verdict == "significant" for own in runs if own.best_p is not None]
        found = f"{sum(are):,} of {len(runs):,} differences are significant" if are else "no difference was tested"
        pairing = join_phrases(sorted({f"{'' if own.is_paired else 'un'}paired {own.column}s" for own in runs}))
        yield f"For new runs of the systems (the recipes; {pairing}), {found}."


def describe_runs(r: Result) -> Iterator[str]:
    """Yield a line on the runs of the systems, if they have several; tables have p."""
    if (runs := r.runs) is None:
        return
    yield (
        f"{runs.n_runs} runs each, {'paired by' if runs.is_paired else 'unpaired, by'} {runs.column}: recipes "
        f"{runs.verdict}; standard errors {runs.se_items:.3g} over items, {runs.se_runs:.3g} over runs"
    )


# The better system first


def turn_to_better(results: Iterable[Result]) -> list[Result]:
    """Return two-sided comparisons with the better system as A, unless B is the baseline of several.

    One-sided comparisons keep their order, which is part of the hypothesis.
    """
    rows = [*results]
    is_fixed = _have_baseline(rows) or any(r.alternative != "two-sided" for r in rows)
    return rows if is_fixed else [turn(r) if r.better() == r.b else r for r in rows]


def _have_baseline(rows: Sequence[Any]) -> bool:
    return len({r.b for r in rows}) == 1 and len({r.a for r in rows}) > 1


def turn(r: Result) -> Result:
    """Return a comparison with its systems exchanged; notes, and p of one-sided tests, are those of the original."""
    interval, ends, margin, d = r.interval, r.interval_simultaneous, r.margin, r.paired_d
    claims = {"not worse": "not better", "not better": "not worse"}
    if margin is not None:
        p = margin.p_adjusted
        margin = margin.replace(
            p_not_worse=margin.p_not_better,
            p_not_better=margin.p_not_worse,
            p_adjusted=p and (p[1], p[0], p[2]),
            verdicts=tuple(claims.get(claim, claim) for claim in margin.verdicts),
        )
    return r.replace(
        a=r.b,
        b=r.a,
        score_a=r.score_b,
        score_b=r.score_a,
        difference=0.0 - r.difference,
        interval=interval and interval.replace(low=-interval.high, high=-interval.low),
        interval_simultaneous=ends and (-ends[1], -ends[0]),
        score_a_interval=r.score_b_interval,
        score_b_interval=r.score_a_interval,
        paired_d=None if d is None else -d,
        tests=tuple(test.replace(statistic=_turn_statistic(test)) for test in r.tests),
        margin=margin,
    )


def _turn_statistic(test: NamedValues) -> float | None:
    """Return the statistic of a classical test with its systems exchanged."""
    if test.statistic is None:
        return None
    totals = {"sign": (n := test.n or 0), "mcnemar": n, "wilcoxon": n * (n + 1) / 2}  # of wins, or of ranks
    return float(totals.get(test.name, 0) - test.statistic)


# Margins


def _describe_margins(results: ComparisonResults) -> Iterator[str]:
    """Yield sentences on what the tests of a margin show of the first pairs, and how many more there are.

    Examples
    --------
    "Margin 0.01 on f1: A against B is equivalent in news, not worse in speech, web."
    """
    table = results.table.take(np.flatnonzero(~np.isnan(results.table["margin.margin"])))
    pairs = table.number_rows("a", "b", "metric")
    tested = [table.take(np.flatnonzero(pairs == k)) for k in np.unique(pairs)[:MAX_NAMED]]
    for first, part in zip(turn_to_better(get_result(part, 0) for part in tested), tested, strict=True):
        own, noun = [*iter_results(part)], _Groups(part).noun
        places: dict[str, list[str]] = {}
        for r in own if own[0].a == first.a else map(turn, own):
            place = " of ".join(filter(None, (r.test_set, r.subset and r.subset["value"])))
            places.setdefault(describe_shown_margin(r), []).append(place)
        claims = ""
        for claim, names in places.items():
            where = f" in all {len(own):,} {noun}" if len(names) == len(own) > 1 else f" in {format_list(names)}"
            claims += f"{'; ' * (claims != '')}{claim}{where * any(names)}"
        on = f"{first.metric}{', for these runs' * (first.runs is not None)}"
        yield f"Margin {first.margin.margin:g} on {on}: {first.a} against {first.b} is {claims}."
    if n_more := len(np.unique(pairs)) - len(tested):
        yield f'The column "within margin" has {n_more:,} more.'


def describe_shown_margin(r: Result) -> str:
    """Return what the tests of a margin show of a comparison, in a word or two for a table; "" without a margin."""
    if r.margin is None:
        return ""
    shown = "equivalent" if "equivalent" in r.margin.verdicts else ", ".join(r.margin.verdicts)
    return f"{shown}{' (p may be too small)' * r.margin.is_doubtful}" if shown else "not shown"


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


def describe_checks(table: Table) -> str:
    """Return a line on the checks of these comparisons: which were made, and how they came out."""
    good, bad = [], []
    for name in table.list_keys("checks"):
        check = "exact p" if name == "exact value" else name
        n_good, n_bad = (table[f"checks.{name}.verdict"].tolist().count(word) for word in (AGREES, DISAGREES))
        bad += [f"{check} in {n_bad:,} of {n_good + n_bad:,}"] if n_bad else []
        good += [check] if n_good else []
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


def list_adjustments(results: ComparisonResults) -> dict[str, tuple[set[int], dict[str, None]]]:
    """Return, for each adjustment of p-values, the numbers of comparisons in its families, and its metrics."""
    table, found = results.table, defaultdict[str, tuple[set[int], dict[str, None]]](lambda: (set(), {}))
    columns = [table[path].tolist() for path in ("origins.adjust", "origins.members", "metric") if table.has("origins")]
    for adjust, n, metric in filter(itemgetter(0), dict.fromkeys(zip(*columns, strict=True))):
        found[adjust][0].add(int(n))
        found[adjust][1][metric] = None
    return found


def describe_test(results: ComparisonResults) -> str:
    """Return a line with the test, its unit and alternative, and the adjustment of p."""
    table, found = results.table, list_adjustments(results)
    largest = max(chain(*(sizes for sizes, _ in found.values())), default=0)
    n = format_count(max(len(table), largest), "comparison")
    adjustment = f"; p not adjusted for {n}" if len(table) > 1 else ""
    if found:
        over = f"the {largest:,} comparisons by each metric" if largest < len(table) else n
        metrics = [f" ({', '.join(names)})" if len(found) > 1 else "" for _, names in found.values()]
        labels = [ADJUSTMENTS[name].label + of for name, of in zip(found, metrics, strict=True)]
        adjustment = f"; p adjusted by {' and '.join(labels)} over {over}"
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
        """Word for what the groups differ by: metrics, subsets or test sets; "combinations" if by several of these."""
        table = self.table
        columns = {"test sets": ["test_set"], "subsets": ["subset.column", "subset.value"], "metrics": ["metric"]}
        varying = [name for name, paths in columns.items() if table.number_rows(*paths).any()]
        return varying[0] if len(varying) == 1 else "combinations"

    def label(self, g: int) -> str:
        """Return "on" a metric, with test set and subset where there are several."""
        row = int(self.standings.first_rows[g])
        metric = self.table.metric[row] + ("" if self.table.higher_is_better[row] else " (lower is better)")
        return f"on {metric}{self.describe_place(row)}"

    def describe_place(self, row: int) -> str:
        """Return the test set and subset of a row, where there are several."""
        table, codes = self.table, self.table.test_set.codes
        column, value = table["subset.column"][row], table["subset.value"][row]
        parts = [*filter(None, [self.table.test_set[row]])] if (codes != codes[0]).any() else []
        parts += [f"{column} {value}"] if column else []
        return f" in {', '.join(parts)}" if parts else ""

    def describe(self, row: int) -> str:
        """Return the verdict of a row as a sentence."""
        return describe_comparison(get_result(self.table, row), self.table.alpha, self.describe_place(row))

    def describe_lead(self, row: int) -> str:
        """Return how far the better system of a row is ahead, and its p."""
        r = get_result(self.table, row)
        return f"{format_lead(r)}; {'for these runs ' * (r.runs is not None)}{format_verdict_p(r, self.table.alpha)}"


def _be(n: int) -> str:
    return "is" if n == 1 else "are"


def _describe_group(groups: _Groups, g: int) -> str:
    """Return the verdict on one group (a test set, subset and metric) as a sentence."""
    c = groups.standings
    rows = np.flatnonzero(c.group == g)
    if len(rows) == 1:
        return groups.describe(int(rows[0]))
    if c.design == BASELINE:
        return _describe_baseline(groups, g, rows)
    text = _describe_ranking(groups, g) if c.design == ALL else _describe_several(groups, rows, groups.label(g))
    return text + _count_contested(c, rows)


def _count_contested(c: Standings, rows: NDArray[np.int64]) -> str:
    n = int(np.count_nonzero(c.outcome[rows] == CONTESTED))
    return f"; {n:,} of {format_count(len(rows), 'comparison')} {_be(n)} contested" * (n > 0)


def _describe_baseline(groups: _Groups, g: int, rows: NDArray[np.int64]) -> str:
    """Return the verdict on systems that were each compared with one baseline, in one group."""
    c, table = groups.standings, groups.table
    outcome, ahead = c.outcome[rows], c.ahead[rows]
    first, n = int(rows[np.argmax(np.nan_to_num(ahead, nan=-np.inf))]), len(rows)
    is_upward = (table.alternative[rows[0]] == "greater") == bool(table.higher_is_better[rows[0]])
    side = "different" if c.is_two_sided else "better" if is_upward else "worse"
    waits = table.is_uncounted[rows]
    kinds = {
        "significantly worse": (outcome == 1) & (ahead < 0), f"not significantly {side}": outcome == 0,
        "undecided": (outcome == -1) & ~waits, "contested": outcome == CONTESTED, "not compared yet": waits,
    }  # fmt: skip
    counts = {name: int(np.count_nonzero(kind)) for name, kind in kinds.items()}
    n_better = int(np.count_nonzero((outcome == 1) & (ahead > 0)))
    parts = [f"{k:,} {_be(k)} {name}" for name, k in counts.items() if k]
    lead = ""
    if abs(c.ahead[first]) > 0:  # which NaN is not
        place = "behind" if c.ahead[first] < 0 else "ahead"
        lead = f": the best, {c.names[int(c.a[first])]}, is {place} by {groups.describe_lead(first)}"
    count = f"{n_better:,} of {n:,} systems {_be(n_better)} significantly better than {c.names[int(c.b[first])]}"
    return "; ".join(filter(None, [f"{count} {groups.label(g)}{lead}", join_phrases(parts)]))


def _describe_ranking(groups: _Groups, g: int) -> str:
    """Return the verdict on which of several systems is best, if all were compared with each other."""
    c, where = groups.standings, groups.label(g)
    top, n_rest, row = int(c.top[g]), int(c.n_members[g]) - 1, c.find_rival(g)
    best, rival = c.names[top], c.get_opponent(row, top)
    rows = np.flatnonzero(c.has_top & (c.group == g))
    lead = np.where(c.a[rows] == top, c.ahead[rows], -c.ahead[rows])
    if (lead < 0).any():  # in pairs with other items: none is best
        return _describe_several(groups, np.flatnonzero(c.group == g), where)
    if c.ahead[row] == 0:
        equal = join_phrases([best, *(c.get_opponent(k, top) for k in rows[lead == 0].tolist())])
        return f"{equal} share the best score {where}"
    contested, better, waits = c.outcome[rows] == CONTESTED, c.outcome[rows] == 1, groups.table.is_uncounted[rows]
    doubts = [
        words.format(f"{len(near):,} of {n_rest:,} others" if len(near) > MAX_NAMED else join_phrases(near))
        for words, mask in (
            ("is not significantly different from {}", ~(better | contested | waits)),
            ("is not compared yet with {}", waits),
            ("its lead over {} is contested", contested),
        )
        if (near := [c.get_opponent(k, top) for k in rows[mask].tolist()])
    ]
    outcome = f"scores best {where}, but " + ", and ".join(doubts)
    if not doubts:
        outcome = f"is best {where}, significantly better than {'both' if n_rest == 2 else f'all {n_rest:,}'} others"
    return f"{best} {outcome}: ahead of the runner-up, {rival}, by {groups.describe_lead(row)}"


def _describe_several(groups: _Groups, rows: NDArray[np.int64], where: str) -> str:
    """Return how many comparisons of no regular design or of many groups are significant, and in favour of whom."""
    c = groups.standings
    significant = rows[c.outcome[rows] == 1]
    better = np.where(c.ahead[significant] > 0, c.a[significant], c.b[significant]).tolist()
    wins = [f"{c.names[k]} is better in {n:,}" for k, n in Counter(better).most_common()]
    count = format_count(len(rows), "comparison")
    who = f": {format_list(wins, MAX_NAMED)}" if wins else ""
    return f"{len(better):,} of {count} {where} {_be(len(better))} significant{who}"


def _describe_joint(results: ComparisonResults) -> Iterator[str]:
    """Yield a sentence on the comparisons over all test sets or subsets, for each metric."""
    lower = set(results.table.metric[~results.table.higher_is_better].tolist())
    for metric in dict.fromkeys(v.metric for v in results.together):
        verdicts = [v for v in results.together if v.metric == metric]
        p = [v.p_value if v.p_adjusted is None else v.p_adjusted for v in verdicts]
        outcomes = [judge_joint(v, results.alpha) for v in verdicts]
        first = min(range(len(p)), key=lambda k: (outcomes[k] != "significant", p[k], -abs(verdicts[k].difference)))
        v, verdict = verdicts[first], outcomes[first]
        better, other = (v.a, v.b) if (v.difference > 0) != (metric in lower) else (v.b, v.a)
        ends = v.interval if v.interval is None or v.difference > 0 else (-v.interval[1], -v.interval[0])
        alone = " (interval unadjusted)" * (ends is not None and v.p_adjusted is not None)
        lead = f"{better} is ahead of {other} by {format_amount(abs(v.difference), ends)}{alone}"
        adjusted = f"{'for these runs ' * results.table.has('runs')}{'' if v.p_adjusted is None else 'adjusted '}"
        is_bound = v.method != "exact" and not v.n_extreme if v.p_adjusted is None else v.is_adjusted_bound
        if len(p) > 1:
            n_contested = f" and {outcomes.count('contested'):,} contested" if "contested" in outcomes else ""
            verdict = f"{outcomes.count('significant'):,} of {len(p):,} comparisons significant{n_contested}"
        yield (
            f"{verdict} on {metric}{' (lower is better)' * (metric in lower)} (mean of {v.n_sets} sets): "
            f"{lead if v.difference else f'{v.a} and {v.b} score the same'}; "
            f"{adjusted}{format_p_equals(p[first], results.alpha, is_bound=is_bound)}"
        )


def judge_joint(v: ResultAcrossSets, alpha: float) -> str:
    """Return the verdict of a result over all sets: contested if only one of two tests rejects."""
    tests = [v] if v.equal_scores is None else [v, v.equal_scores]
    rejects = {(test.p_value if test.p_adjusted is None else test.p_adjusted) <= alpha for test in tests}
    return "contested" if len(rejects) > 1 else "significant" if True in rejects else "not significant"


def list_joint(results: ComparisonResults) -> Sequence[ResultAcrossSets]:
    """Return the results over all sets with the better system as A, as `turn_to_better` does."""
    lower = {*results.table.metric[~results.table.higher_is_better].tolist()}
    if _have_baseline(results.together) or results[0].alternative != "two-sided":
        return results.together
    return [_turn_joint(v) if (v.difference < 0) != (v.metric in lower) else v for v in results.together]


def _turn_joint(v: ResultAcrossSets) -> ResultAcrossSets:
    """Return a two-sided result over all sets with its systems exchanged."""
    return v.replace(a=v.b, b=v.a, difference=-v.difference, interval=v.interval and (-v.interval[1], -v.interval[0]))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on results in brief, which comes before any table.

    Attributes
    ----------
    scope : tuple of str
        Sentences on which part of the files is scored and which is not.
    sentences : tuple of str
        Sentence for each metric, test set and subset, with the sizes of differences, or one on all of many.
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
    sentences: tuple[str, ...]
    checks: str
    is_checked: bool
    doubtful: NDArray[np.int64]
    is_ranking: bool

    @property
    def headline(self) -> str:
        """The sentences as one text."""
        return " ".join(self.sentences)


def build_verdict(results: ComparisonResults) -> Verdict:
    """Return the verdict on some results."""
    table, groups = results.table, _Groups(results.table)
    if not len(table):
        sentences = ["Nothing was compared"]
    elif results.together:
        sentences = [*_describe_joint(results)]
    elif (n := groups.standings.n_groups) <= MAX_LISTED_GROUPS:
        sentences = [_describe_group(groups, g) for g in range(n)]
    else:
        rows, where = np.arange(len(table)), f"over {n:,} {groups.noun}"
        sentences = [_describe_several(groups, rows, where) + _count_contested(groups.standings, rows)]
    is_checked = not bool(table.has_disagreement.any())
    complete = ["Do not rely on this, a check disagrees."] * (not is_checked) + [f"{text}." for text in sentences]
    chance = () if results.together else describe_chance(table, table.metric.codes)
    return Verdict(
        scope=tuple(f"{note.text}." for note in results.notes if note.kind == "scope"),
        sentences=(*complete, *describe_recipes(results), *_describe_margins(results), *chance),
        checks=describe_checks(table),
        is_checked=is_checked,
        doubtful=find_doubtful(table),
        is_ranking=len(table) > 0 and groups.standings.design == ALL,
    )


def describe_chance(table: Table, family: NDArray[Any]) -> Iterator[str]:
    """Yield a sentence on how many tests chance would reject, if many are not adjusted together.

    These are the families, and the comparisons whose p is not adjusted.
    """
    is_single = np.isnan(table.p_adjusted)
    n = int(np.count_nonzero(is_single)) + len(np.unique(family[~is_single]))
    if n >= MIN_TESTS:
        yield f"If the systems were equal, chance would make about {n * table.alpha:.2g} of {n:,} tests significant."
