"""Comparisons and rankings as plain text.

- the table of comparisons: scores, differences with intervals, p, and marks for the verdicts
- verdicts over several test sets or subsets
- classical tests, and for those that assume independent systems what this assumption costs
- details of each verdict if there are few comparisons: runs, checks, dependence, other units, and all notes
- rankings: systems with the best first, with letters for those that are not significantly different
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from sigdask.interface import get_interface
from sigdask.report.layout import format_table, select_columns
from sigdask.report.summary.margins import describe_margin_tests, describe_shown_margin
from sigdask.report.summary.runs import describe_runs
from sigdask.report.summary.sentences import (
    describe_alternative_unit,
    describe_contradiction,
    describe_size,
    describe_standing,
    format_interval_ends,
)
from sigdask.report.tables.cells import (
    GROUPING_HEADERS,
    describe_method,
    explain_group_marks,
    format_ends,
    format_groups,
    format_p_cell,
)
from sigdask.report.tables.model import list_cells
from sigdask.report.wording import ADJUSTMENTS
from sigdask.results.columns import EMPTY
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets
from sigdask.results.ranking import SystemRanking
from sigdask.results.record import ClassicalTest, Result
from sigdask.statistics.bounds import EQUAL_SCORES, Check
from sigdask.statistics.classical import compute_inflation
from sigdask.statistics.rounding import format_p, format_p_equals, format_score, format_signed
from sigdask.text import format_count, make_printable

SIGNIFICANT, UNDECIDED = "*", "?"
AGREES, DISAGREES, DIFFERS, CONTESTED = "✓", "!", "≠", "§"

SPARE = ("score A", "score B")
"""Columns that narrow terminals leave out; rankings have these numbers too."""


def format_comparisons(
    results: Sequence[Result], alpha: float, width: int | None, *, points: frozenset[str], with_checks: bool = False
) -> list[str]:
    """Return a table of comparisons with a legend of its marks, or nothing without comparisons.

    Parameters
    ----------
    results : sequence of Result
        The comparisons.
    alpha : float
        Level of the verdicts.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    points : frozenset of str
        Metrics whose differences are written in points of 100, as `find_metrics_in_points` returns them.
    with_checks : bool
        Whether checks that agree are marked.
    """
    if not results:
        return []
    title = ""
    columns = {name: column for name, column in _build_columns(results, alpha, points) if any(column)}
    if title := _describe_baseline(results):
        del columns["B"], columns["score B"]
    marks = [*zip(*(_list_marks(r, alpha, with_checks=with_checks) for r in results), strict=True)]
    legend = _format_legend({*()}.union(*marks), {*map(describe_method, results)}, alpha)
    marks = [column for column in marks if any(column)]
    pair = ("A", "B") if "B" in columns and len({(r.a, r.b) for r in results}) == 1 else ()
    spare = (*pair, *("unadjusted p",) * ("adjusted p" in columns), *SPARE, "equal-score p")
    shown = select_columns(columns, marks, spare, width)
    if pair and "A" not in shown:
        title = "\n".join([*filter(None, [title]), make_printable(f"A is {results[0].a}, B is {results[0].b}")])
        shown = [name for name in shown if name not in pair]
    if left_out := [name for name in columns if name not in {*shown, *pair}]:
        legend = f"{legend}; in a wider terminal: {', '.join(left_out)}"
    columns = {name: columns[name] for name in shown}
    rows = [list(row) for row in zip(*columns.values(), *marks, strict=True)]
    table = format_table([*columns, *("" for _ in marks)], rows, width)
    return ["\n".join([*filter(None, [title]), table, legend])]


def _describe_baseline(results: Sequence[Result]) -> str:
    """Return a line with the name and score of the common system B, or "" if there is none or few rows."""
    all_b = {(r.b, r.metric, format_score(r.score_b)) for r in results}
    if len(all_b) > 1 or len(results) < 3:
        return ""
    [(name, metric, score)] = all_b
    return make_printable(f"B is {name}, {metric} {score}")


def _build_columns(results: Sequence[Result], alpha: float, points: frozenset[str]) -> list[tuple[str, list[str]]]:
    adjusted = any(r.p_adjusted is not None for r in results)
    has_sets, has_methods, has_metrics = (
        len({get(r) for r in results}) > 1 for get in (attrgetter("test_set"), describe_method, attrgetter("metric"))
    )
    is_simultaneous = any(r.interval_simultaneous is not None for r in results)
    confidence = next((r.interval.confidence for r in results if r.interval is not None), 0)
    confidence = 1 - alpha if is_simultaneous else confidence
    intervals = [_format_interval(r, points, is_simultaneous=is_simultaneous) for r in results]
    kind = "simultaneous " if is_simultaneous else "unadjusted " if adjusted else ""
    return [
        ("test set", [r.test_set if has_sets else "" for r in results]),
        ("subset", [(r.subset["value"] or EMPTY) if r.subset else "" for r in results]),
        ("A", [r.a for r in results]),
        ("B", [r.b for r in results]),
        ("metric", [r.metric if has_metrics or len(results) == 1 else "" for r in results]),
        ("score A", [format_score(r.score_a) for r in results]),
        ("score B", [format_score(r.score_b) for r in results]),
        ("A - B", [format_signed(r.difference) for r in results]),
        (f"{kind}{100 * confidence:.4g} % interval", intervals),
        (
            "unadjusted p" if adjusted or len(results) > 1 else "p",
            [format_p_cell(r.p_value, alpha, is_bound=r.is_bound) for r in results],
        ),
        ("adjusted p", [format_p_cell(r.p_adjusted, alpha, is_bound=r.is_adjusted_bound) for r in results]),
        ("equal-score p", _list_equal_score_p(results, alpha)),
        ("p over runs", [format_p_cell(r.runs.p_runs if r.runs else None, alpha) for r in results]),
        ("p of recipes", [format_p_cell(r.runs.best_p if r.runs else None, alpha) for r in results]),
        ("within margin", [describe_shown_margin(r) for r in results]),
        ("method", [describe_method(r) if has_methods else "" for r in results]),
    ]


def _format_interval(r: Result, points: frozenset[str], *, is_simultaneous: bool) -> str:
    unadjusted = None if r.interval is None else (r.interval.low, r.interval.high)
    ends = r.interval_simultaneous if is_simultaneous else unadjusted
    return "" if ends is None else format_interval_ends(r.difference, *ends, points=r.metric in points)


def _list_equal_score_p(results: Sequence[Result], alpha: float) -> list[str]:
    """Return the p of the equal-score test of each comparison, adjusted if there is such a p; "" if none is contested.

    It is shown where a verdict depends on it.
    """
    if not any(r.is_contested(alpha) for r in results):
        return [""] * len(results)
    tests = [r.equal_scores for r in results]
    return [
        "" if test is None else format_p_cell(test.p_value if test.p_adjusted is None else test.p_adjusted, alpha)
        for test in tests
    ]


def _list_marks(r: Result, alpha: float, *, with_checks: bool) -> tuple[str, str]:
    """Return the marks of a comparison's verdict and of its checks; "" for none."""
    if r.is_contested(alpha):
        return CONTESTED, DISAGREES if r.disagreements() else ""
    agrees = with_checks and any(check.verdict == "agrees" for check in r.checks)
    check = DIFFERS if describe_contradiction(r, alpha) else AGREES if agrees else ""
    verdict = {True: SIGNIFICANT, False: "", None: UNDECIDED}[r.decision(alpha)]
    return verdict, DISAGREES if r.disagreements() else check


def _format_legend(marks: set[str], methods: set[str], alpha: float) -> str:
    """Return the meaning of the table's marks, and the method of p if it is the same for all."""
    meanings = [
        (SIGNIFICANT, f"significant at {alpha:g}"), (UNDECIDED, f"undecided at {alpha:g}"),
        (AGREES, "independent checks agree"), (DISAGREES, "a check disagrees"),
        (DIFFERS, "interval and p disagree on whether the difference can be 0"),
        (CONTESTED, "contested: the equal-score test disagrees"),
    ]  # fmt: skip
    entries = [f"{mark} {text}" for mark, text in meanings if mark in marks]
    if not marks & {SIGNIFICANT, UNDECIDED, CONTESTED}:
        entries = [f"none significant at {alpha:g}", *entries]
    if len(methods) == 1:
        [method] = methods
        method_texts = {"exact": "p exact", "bounds": "p between bounds"}
        entries.append(method_texts.get(method, f"p of {method}"))
    return "; ".join(entries)


MAX_SHOWN = 40
"""Number of verdicts shown by default."""


def format_families(results: ComparisonResults, width: int | None, *, everything: bool) -> list[str]:
    """Return a table of the verdicts over all test sets or subsets as one part, or nothing if there are none."""
    if not results.together:
        return []
    verdicts: Sequence[ResultAcrossSets] = results.together
    if len(verdicts) > MAX_SHOWN and not everything:
        verdicts = sorted(verdicts, key=lambda v: (v.p_adjusted or 0.0, v.p_value))[:MAX_SHOWN]
    alpha, adjusted = results.alpha, any(v.p_adjusted is not None for v in results.together)
    rows = [
        [
            v.a, v.b, v.metric, format_signed(v.difference), format_ends(*v.interval) if v.interval else "",
            format_p_cell(v.p_value, alpha),
            *([format_p_cell(v.p_adjusted, alpha)] if adjusted else []),
            _format_replicated(v.greater_in, v.n_sets, v.p_greater), _format_replicated(v.less_in, v.n_sets, v.p_less),
            "exact" if v.method == "exact" else format_count(v.n_trials, "trial"),
        ]
        for v in verdicts
    ]  # fmt: skip
    level = alpha / 2 if results[0].alternative == "two-sided" else alpha
    family = results.family_across_sets
    adjustment = f" (p adjusted by {ADJUSTMENTS[family.adjust].label})" if family else ""
    title = (
        f"over all sets: the mean difference{adjustment}, and the least number of sets in which A is significantly "
        f"above B, or below (one-sided at {level:g}{', unadjusted' * (len(results.together) > 1)})"
    )
    p_headers = ["unadjusted p", "adjusted p"] if adjusted else ["p"]
    interval_header = f"{100 * (1 - alpha):.4g} % interval"
    names = ["A", "B", "metric", "mean A - B", interval_header, *p_headers, "A above B in", "below in", "method"]
    parts = [f"{title}\n{format_table(names, rows, width)}"]
    if len(verdicts) < len(results.together):
        parts.append(f"the {MAX_SHOWN} smallest p of {len(results.together):,} ({tell_where_all_are()})")
    return parts


def _format_replicated(n: int, n_sets: int, p: float) -> str:
    return f"{n} of {n_sets}" + (f" ({format_p_equals(p)})" if n else "")


def tell_where_all_are() -> str:
    """Return where to find the results that a short report leaves out."""
    return "to_frame() has all" if get_interface() == "python" else "--all shows all, --json FILE keeps them"


def tell_where_tests_are() -> str:
    """Return where to find the classical tests."""
    if get_interface() == "python":
        return "classical tests: `tests` of each result"
    return "classical tests: --all shows them, -o FILE.json and -o FILE.csv keep them"


CONTRAST = "for contrast"


@dataclass(frozen=True, slots=True)
class ClassicalTestRow:
    """One classical test of one comparison, formatted as cells.

    Attributes
    ----------
    result : Result
        The comparison.
    name, statistic, p, n, remark : str
        Cells; the remark of a test that assumes independence says so, and what that costs.
    """

    result: Result
    name: str
    statistic: str
    p: str
    n: str
    remark: str

    @property
    def is_contrast(self) -> bool:
        """Whether the test assumes that the two systems are independent."""
        return self.remark.startswith(CONTRAST)


def iter_rows(results: Sequence[Result], alpha: float) -> Iterator[ClassicalTestRow]:
    """Yield the classical tests that fit the scores of comparisons."""
    for r in results:
        for test in r.tests:
            if test.p_value is not None:
                cells = (_format_statistic(test.statistic), format_p(test.p_value, alpha), f"{test.n:,}")
                yield ClassicalTestRow(r, test.name, *cells, describe_test(r, test))


def build_test_columns(rows: Sequence[ClassicalTestRow]) -> dict[str, list[str]]:
    """Return the table of classical tests: the cells of each column by its header."""
    results = [row.result for row in rows]
    return {
        "test set": [r.test_set for r in results],
        "subset": [(r.subset["value"] or EMPTY) if r.subset else "" for r in results],
        **list_cells(results, A="a", B="b", metric="metric"),
        **list_cells(rows, test="name", statistic="statistic", p="p", n="n", remark="remark"),
    }


def describe_test(r: Result, test: ClassicalTest) -> str:
    """Return details of a test; if it assumes independence, also how much wider its interval is by that."""
    if not test.assumes_independence:
        return test.detail
    _, reserve, aside = test.detail.partition("; ")
    return f"{CONTRAST}, as if independent{_describe_cost(r)}{reserve}{aside}"


def _format_statistic(statistic: float | None) -> str:
    """Return a statistic as text; rank sums may be large and end in halves."""
    if statistic is None:
        return ""
    return f"{statistic:.4g}" if abs(statistic) < 1000 else f"{statistic:,.1f}".removesuffix(".0")


def _describe_cost(r: Result) -> str:
    """Return text on how many times wider an interval gets by assuming that the two systems are independent."""
    if r.unit == "item":
        if r.r12 is None:
            return ""
        factor = compute_inflation(round(r.r12, 3))
        return f" (r12 = {r.r12:.3f}: {'no bound' if factor == float('inf') else f'{factor:.2f} times as wide'})"
    t = {test.name: test.statistic for test in r.tests}
    paired_t, unpaired_t = t.get("t"), t.get("two-sample-t")
    return f" ({paired_t / unpaired_t:.2f} times as wide by {r.unit})" if paired_t and unpaired_t else ""


def iter_misfits(results: Sequence[Result]) -> Iterator[str]:
    """Yield lines that name tests that do not fit the scores of a metric, one for each reason."""
    names_by_reason: dict[tuple[str, str], dict[str, None]] = {}
    for r in results:
        for test in r.tests:
            if test.p_value is None:
                names_by_reason.setdefault((r.metric, test.detail), {})[test.name] = None
    for (metric, reason), names in names_by_reason.items():
        yield f"{metric}: {', '.join(names)}: {reason}"


def format_tests(results: Sequence[Result], alpha: float, width: int | None) -> list[str]:
    """Return a table of classical tests as one part, or nothing without tests."""
    tested = [r for r in results if r.tests]
    if not tested:
        return []
    columns = build_test_columns([*iter_rows(tested, alpha)])
    if len({r.test_set for r in tested}) == 1:
        del columns["test set"]
    if not any(r.subset for r in tested):
        del columns["subset"]
    columns[""] = columns.pop("remark")
    rows = [*zip(*columns.values(), strict=True)]
    table = [format_table([*columns], rows, width)] if rows else []
    return ["\n".join([*table, *map(make_printable, iter_misfits(tested))])]


def format_details(results: Sequence[Result], alpha: float) -> list[str]:
    """Return the details of comparisons as one part, or nothing without comparisons."""
    return ["\n".join(line for result in results for line in _iter_lines(result, alpha))] if results else []


def _iter_lines(r: Result, alpha: float) -> Iterator[str]:
    subset_text = f" ({r.subset['column']} {r.subset['value']})" if r.subset else ""
    yield make_printable(f"{r.metric}{subset_text}: {describe_standing(r, alpha)}")
    sizes = [] if r.interval is None else [describe_size(r)]
    sizes += [*describe_margin_tests(r), *describe_runs(r.runs, alpha)]
    yield from (make_printable(f"    {text}") for text in sizes)
    for check in r.checks:
        if check.verdict != "not applicable":
            yield make_printable(f"    {check.name} {check.verdict}: {describe_check(check)}")
    if r.r12 is not None:
        cost = compute_inflation(round(r.r12, 3))
        times = "without bound" if math.isinf(cost) else f"{compute_inflation(r.r12):.2f} times"
        yield f"    r12 = {r.r12:.3f}: a test that assumes independent systems has intervals {times} as wide"
    for d in r.dependence:
        yield make_printable(
            f"    within {d.column}: ICC {round(d.icc, 3) + 0.0:.3f}, design effect {d.design_effect:.2f} "
            f"(F test {format_p_equals(d.p_value)})"
        )
    for b in r.beside:
        yield make_printable(
            f"    by {b.unit} ({format_count(b.n_units, 'unit')}) instead of {r.unit}: "
            f"{describe_alternative_unit(b, alpha)}"
        )
    for note in r.warnings:
        yield make_printable(f"    note: {note}")
    if r.test_signature is not None:
        yield f"    signature: {r.test_signature}"


def describe_check(check: Check) -> str:
    """Return the detail of a check; that of the equal-score test is its p with the cause of a contested result."""
    if check.name != EQUAL_SCORES or check.p_value is None:
        return check.detail
    adjusted = "" if check.p_adjusted is None else f"adjusted {format_p_equals(check.p_adjusted)}"
    return ", ".join(filter(None, [format_p_equals(check.p_value), adjusted, check.detail]))


MAX_SYSTEMS = 40
"""Number of systems of each ranking shown by default."""

MAX_RANKINGS = 6
"""Number of rankings shown by default."""


def format_rankings(results: ComparisonResults, width: int | None, *, everything: bool, verbose: bool) -> list[str]:
    """Return the rankings of results, one part for each.

    Parameters
    ----------
    results : ComparisonResults
        The results.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    everything, verbose : bool
        Whether all are shown, and with the details of all pairs.
    """
    rankings = results.rankings()
    shown = rankings if everything else rankings[:MAX_RANKINGS]
    n_systems = None if everything else MAX_SYSTEMS
    parts = []
    for ranking in shown:
        parts.append("\n".join(_format_ranking(ranking, width, n_systems)))
        if verbose or everything:
            power = f"{ranking.discriminative_power:.1%}"
            parts[-1] += f"\ndiscriminative power {power}: pairs with unadjusted p at most {results.alpha:g}"
    n_more = len(rankings) - len(shown)
    return [*parts, f"and {n_more:,} more rankings ({tell_where_all_are()})"] if n_more else parts


def _format_ranking(ranking: SystemRanking, width: int | None, n_systems: int | None) -> list[str]:
    subset_text = f" ({ranking.subset['column']} {ranking.subset['value']})" if ranking.subset else ""
    name = f"{ranking.test_set}: " if ranking.test_set else ""
    header, meaning, cells = GROUPING_HEADERS[ranking.grouping], explain_group_marks(ranking), format_groups(ranking)
    shown = zip(ranking.systems[:n_systems], cells[:n_systems], strict=True)
    rows = [[str(s.rank), s.system, format_score(s.score), cell] for s, cell in shown]
    columns = ["rank", "system" if ranking.clusters is None else "metric", "score", header]
    if ranking.clusters is not None:
        start = "a cluster begins with a metric that is significantly worse than one of the previous cluster"
        meaning = f"{meaning}; {start} (unadjusted p)"
        columns = [*dict.fromkeys(["cluster", *columns[1:]])]
        rows = [[str(cluster), *row[1:]][: len(columns)] for cluster, row in zip(ranking.clusters, rows, strict=False)]
    elif ranking.grouping == "ranks":
        meaning = f"{meaning}; the ranks of different clusters do not overlap"
        columns = ["cluster", *columns]
        rows = [[str(s.cluster), *row] for s, row in zip(ranking.systems, rows, strict=False)]
    title = make_printable(f"{name}ranking by {ranking.metric}{subset_text}; {meaning}")
    lines = [title, format_table(columns, rows, width)]
    n_more = len(ranking.systems) - len(rows)
    where = "rankings() has all" if get_interface() == "python" else "--all shows all"
    return [*lines, f"and {n_more:,} more ({where})"] if n_more else lines
