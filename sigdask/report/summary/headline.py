"""The verdict in one sentence: which system is best, whether it is significant, and by how much.

Terminal, page, paper tables and notebooks use these sentences and rows. Names in them are those of the users, and are
made harmless by the code that writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.summary import checks as check_texts
from sigdask.report.summary.checks import find_doubtful
from sigdask.report.summary.margins import describe_margins
from sigdask.report.summary.runs import describe_all_runs
from sigdask.report.summary.standings import (
    ALL,
    BASELINE,
    PAIR,
    Standings,
    VerdictGroups,
    build_verdict_groups,
    join_phrases,
)
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import CONTESTED, Table
from sigdask.text import format_count, format_list, to_plain

MAX_LISTED_GROUPS = 6
"""Maximum number of groups (metrics, subsets, test sets) described one by one. Further groups are counted."""

MIN_TESTS = 5
"""Number of tests that are not adjusted together, from which on the verdict says how many chance would reject."""

MAX_NAMED_SYSTEMS = 3
"""Maximum number of systems that are named."""


def build_headline(groups: VerdictGroups) -> str:
    """Return the verdict on one or more comparisons as a sentence, without a full stop."""
    c = groups.standings
    if c.n_groups == 1:
        return describe_group(groups, 0)
    shapes = {PAIR: _describe_pairs, BASELINE: _describe_baselines, ALL: _describe_rankings}
    return shapes.get(c.design, _describe_any)(groups)


def describe_group(groups: VerdictGroups, g: int) -> str:
    """Return the verdict on one group (a test set, subset and metric) as a sentence."""
    c = groups.standings
    if c.design == PAIR:
        return groups.describe(int(c.first_rows[g]))
    shapes = {BASELINE: _describe_baseline, ALL: _describe_ranking}
    return shapes.get(c.design, _describe_several)(groups, g)


def _describe_pairs(groups: VerdictGroups) -> str:
    """Return the verdict on two systems that were compared on several metrics, subsets or test sets."""
    c = groups.standings
    a, b = c.names[int(c.a[0])], c.names[int(c.b[0])]
    won, lost = (c.outcome == 1) & (c.ahead > 0), (c.outcome == 1) & (c.ahead < 0)
    won, lost = (np.where(c.a == c.a[0], x, y) for x, y in ((won, lost), (lost, won)))
    if lost.sum() > won.sum():
        a, b, won, lost = b, a, lost, won
    words = "are not significantly different" if c.is_two_sided else "show no difference in the direction tested"
    cases = [
        (won, f"{a} is better than {b}"), (lost, f"{b} is better than {a}"), (c.outcome == 0, f"{a} and {b} {words}"),
        (c.outcome == -1, f"whether {a} is better than {b} is undecided"),
        (c.outcome == CONTESTED, f"whether {a} is better than {b} is contested"),
    ]  # fmt: skip
    outcomes = [(np.flatnonzero(rows), text) for rows, text in cases if rows.any()]
    if c.n_groups <= MAX_LISTED_GROUPS:
        clauses = [f"{text} {_describe_rows(groups, rows)}" for rows, text in outcomes]
        return _capitalize_whether("; ".join(clauses))
    total = f"{c.n_groups:,} {groups.noun}"
    first, *rest = outcomes
    clauses = [f"{first[1]} in {_format_share(len(first[0]), total, c.n_groups)}"]
    return _capitalize_whether("; ".join([*clauses, *(f"{text} in {len(rows):,}" for rows, text in rest)]))


def _describe_rows(groups: VerdictGroups, rows: np.ndarray) -> str:
    """Return text that names the groups of rows, each with its p in parentheses."""
    asides = [f" ({groups.format_p(row).replace(' (', ', ').replace(')', '')})" for row in rows.tolist()]
    return groups.explain_group_marks(groups.standings.group[rows].tolist(), asides)


def _capitalize_whether(text: str) -> str:
    return text.replace("whether", "Whether", 1) if text.startswith("whether ") else text


def _format_share(n: int, noun: str, total: int) -> str:
    return f"all {noun}" if n == total else f"{n:,} of {noun}"


def _describe_baseline(groups: VerdictGroups, g: int) -> str:
    """Return the verdict on systems that were each compared with one baseline, in one group."""
    c = groups.standings
    rows = np.flatnonzero(c.group == g)
    base = c.names[int(c.b[rows[0]])]
    rows = rows[np.argsort(-np.nan_to_num(c.ahead[rows], nan=-np.inf), kind="stable")]
    better, worse, not_different, undecided, contested = _split_outcomes(groups, rows)
    text = f"{_count_systems(len(better), len(rows))} significantly better than {base} {groups.group_labels[g]}"
    names = [c.names[int(c.a[row])] for row in better]
    if names:
        others_text = f"; also {format_list(names[1:], MAX_NAMED_SYSTEMS)}" if len(names) > 1 else ""
        text += f": {names[0]} by {groups.format_lead(better[0])}, {groups.format_p(better[0])}{others_text}"
    rest_text = _describe_rest(
        ("significantly worse", worse),
        ("not significantly different", not_different),
        ("undecided", undecided),
        ("contested", contested),
    )
    closest = ""
    if not names and not np.isnan(c.ahead[rows[0]]) and c.ahead[rows[0]] != 0:
        side = "ahead" if c.ahead[rows[0]] > 0 else "behind"
        size = f"{groups.format_lead(rows[0])}, {groups.format_p(rows[0])}"
        closest = f": the best, {c.names[int(c.a[rows[0]])]}, is {side} by {size}"
    return text + closest + rest_text


def _split_outcomes(groups: VerdictGroups, rows: np.ndarray) -> list[list[int]]:
    """Return the rows in which A is better, worse, not significantly different, undecided, and contested."""
    c = groups.standings
    outcome, ahead = c.outcome[rows], c.ahead[rows]
    is_significant = outcome == 1
    kinds = (
        is_significant & (ahead > 0), is_significant & (ahead < 0), outcome == 0, outcome == -1, outcome == CONTESTED
    )  # fmt: skip
    return [rows[kind].tolist() for kind in kinds]


def _describe_rest(*named_rows: tuple[str, list[int]]) -> str:
    parts = [f"{len(rows):,} {'is' if len(rows) == 1 else 'are'} {name}" for name, rows in named_rows if rows]
    return f"; {join_phrases(parts)}" if parts else ""


def _count_systems(n: int, total: int) -> str:
    if n == total:
        return f"All {total:,} systems are" if total > 1 else "The system is"
    return f"None of {total:,} systems is" if n == 0 else f"{n:,} of {total:,} systems {'is' if n == 1 else 'are'}"


def _describe_baselines(groups: VerdictGroups) -> str:
    """Return the verdict on systems compared with one baseline on several metrics, subsets or test sets."""
    c = groups.standings
    base = c.names[int(c.b[0])]
    better = (c.outcome == 1) & (c.ahead > 0)
    if c.n_groups <= MAX_LISTED_GROUPS:
        n = np.bincount(c.group[better], minlength=c.n_groups).tolist()
        counts = [f" ({k or 'none'} of {m:,})" for k, m in zip(n, np.bincount(c.group).tolist(), strict=True)]
        text = f"Systems significantly better than {base}: {groups.explain_group_marks(range(c.n_groups), counts)}"
        return text + groups.count_contested()
    outcomes = _split_outcomes(groups, np.arange(len(c.group)))
    names = ("significantly better", "significantly worse", "not significantly different", "undecided", "contested")
    parts = [f"{len(rows):,} {name}" for name, rows in zip(names, outcomes, strict=True) if rows]
    across = f"over {c.n_groups:,} {groups.noun}"
    return f"Of {len(c.group):,} comparisons with {base} {across}, {join_phrases(parts)}"


def _describe_ranking(groups: VerdictGroups, g: int) -> str:
    """Return the verdict on which of several systems is best, if all were compared with each other."""
    c = groups.standings
    best = c.names[int(c.top[g])]
    n_others = int(c.n_members[g]) - 1
    near_names = [c.get_opponent(row, int(c.top[g])) for row in c.near_top_rows[c.group[c.near_top_rows] == g].tolist()]
    row = c.find_rival(g)
    rival = c.get_opponent(row, int(c.top[g]))
    is_ahead = c.ahead[row] != 0
    lead = f"by {groups.format_lead(row)}; {groups.format_p(row)}"
    contested = groups.count_contested(np.flatnonzero(c.group == g), [row] if is_ahead else [])
    if near_names == [rival] and is_ahead:
        return (
            f"{best} scores best {groups.group_labels[g]}, but not significantly better than the runner-up, {rival}: "
            f"ahead {lead}{contested}"
        )
    if not is_ahead:
        return _describe_tie(groups, g, best, rival, near_names) + contested
    lead = f"ahead of the runner-up, {rival}, {lead}"
    if not near_names:
        all_others = "both others" if n_others == 2 else f"all {n_others:,} others"
        if n := int(np.count_nonzero((c.outcome == CONTESTED) & c.has_top & (c.group == g))):
            all_others += f" (contested: {n:,})"
        return f"{best} is best {groups.group_labels[g]}, significantly better than {all_others}: {lead}{contested}"
    near = _name_others(near_names, n_others)
    return (
        f"{best} scores best {groups.group_labels[g]}, but is not significantly different from {near}: "
        f"{lead}{contested}"
    )


def _describe_tie(groups: VerdictGroups, g: int, best: str, rival: str, near_names: list[str]) -> str:
    """Return the verdict on the best of several systems if another has the same score."""
    n_others = int(groups.standings.n_members[g]) - 2
    near_names = [name for name in near_names if name != rival]
    outcome = (
        f"not significantly different from {_name_others(near_names, n_others)}"
        if near_names
        else "significantly better than the others"
    )
    return f"{best} and {rival} share the best score {groups.group_labels[g]}; {best} is {outcome}"


def _name_others(names: list[str], n_others: int) -> str:
    """Return systems as text, by name if they are few."""
    if len(names) == n_others > 1:
        return "either of the others" if n_others == 2 else f"any of the {n_others:,} others"
    return join_phrases(names) if len(names) <= MAX_NAMED_SYSTEMS else f"{len(names):,} of {n_others:,} others"


def _describe_rankings(groups: VerdictGroups) -> str:
    """Return the verdict on which systems are best on each of several metrics, subsets or test sets."""
    c = groups.standings
    has_clear_best = c.n_near_top == 0
    contested = groups.count_contested()
    if c.n_groups <= MAX_LISTED_GROUPS:
        members: dict[tuple[int, bool], list[int]] = {}
        for g, key in enumerate(zip(c.top.tolist(), has_clear_best.tolist(), strict=True)):
            members.setdefault(key, []).append(g)
        clauses = (
            f"{c.names[top]} {'is' if is_clear else 'scores'} best "
            f"{groups.explain_group_marks(indices, [''] * len(indices))}, "
            f"{'' if is_clear else 'but not '}significantly better than all others"
            for (top, is_clear), indices in members.items()
        )
        return "; ".join(clauses) + contested
    tops, counts = np.unique(c.top, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    total = f"{c.n_groups:,} {groups.noun}"
    first, *rest = [(c.names[int(tops[k])], int(counts[k])) for k in order]
    parts = [f"{first[0]} scores best in {_format_share(first[1], total, c.n_groups)}"]
    parts += [f"{name} in {n:,}" for name, n in rest[:MAX_NAMED_SYSTEMS]]
    parts += [f"{len(rest) - MAX_NAMED_SYSTEMS:,} more systems in others"] if len(rest) > MAX_NAMED_SYSTEMS else []
    n_sure = int(has_clear_best.sum())
    tail = "in none of them" if not n_sure else f"in {'all' if n_sure == c.n_groups else f'{n_sure:,}'} of them"
    return f"{join_phrases(parts)}; {tail} the best is significantly better than all others{contested}"


def _describe_several(groups: VerdictGroups, g: int) -> str:
    """Return the number of significant differences and the largest one, for comparisons of no regular design."""
    c = groups.standings
    rows = np.flatnonzero(c.group == g)
    better, worse, *_ = _split_outcomes(groups, rows)
    text = _describe_counts(groups, rows, f" {groups.group_labels[g]}")
    row = max([*better, *worse], key=lambda row: abs(c.ahead[row]), default=None)
    if row is None or len(rows) == 1:
        return text
    loser = c.get_opponent(row, int((c.a if c.ahead[row] > 0 else c.b)[row]))
    return (
        f"{text}: most of all {c.get_winner(row)} is ahead of {loser}, by {groups.format_lead(row)}; "
        f"{groups.format_p(row)}"
    )


def _describe_any(groups: VerdictGroups) -> str:
    return _describe_counts(groups, np.arange(len(groups.standings.group)), "")


def _describe_counts(groups: VerdictGroups, rows: np.ndarray, where: str) -> str:
    if len(rows) == 1:
        return groups.describe(int(rows[0]))
    better, worse, _, undecided, contested = _split_outcomes(groups, rows)
    n = len(better) + len(worse)
    text = f"{n:,} of {format_count(len(rows), 'comparison')}{where} {'is' if n == 1 else 'are'} significant"
    if n == 0:
        text = f"None of {format_count(len(rows), 'comparison')}{where} is significant"
    return text + _describe_rest(("undecided", undecided), ("contested", contested))


DOUBT = "Do not rely on this, a check disagrees: "


@dataclass(frozen=True, slots=True)
class BestSystems:
    """The systems that may be the best on one test set and subset by one metric.

    Attributes
    ----------
    test_set : str
        Its name.
    subset : dict or None
        {"column", "value"} of `--by`.
    metric : str
        Metric as requested.
    names : tuple of str
        The system with the best score, then those not significantly different from it, or contested. Against a
        baseline, the significantly better systems, best first.
    """

    test_set: str
    subset: dict[str, str] | None
    metric: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on results in brief, which comes before any table.

    Attributes
    ----------
    scope : tuple of str
        Sentences on which part of the files is scored and which is not.
    headline : str
        One sentence, with a full stop.
    sentences : tuple of str
        Sentence for each metric, test set and subset, with the sizes of differences. Empty if there are too many or
        only one.
    checks : str
        Checks and their outcomes, in a line.
    is_checked : bool
        Whether no check disagrees.
    doubtful : int64 array
        Rows of the table that are contested or whose verdict a different seed could change, the smallest p first.
    n_significant, n_undecided, n_contested, n_comparisons : int
        Comparisons that are significant, undecided, contested, and all.
    is_ranking : bool
        Whether all systems were compared with each other, three or more, two-sided.
    best : tuple of BestSystems
        Best systems of each test set, subset and metric. Empty if the comparisons give no order.
    """

    scope: tuple[str, ...]
    headline: str
    sentences: tuple[str, ...]
    checks: str
    is_checked: bool
    doubtful: NDArray[np.int64]
    n_significant: int
    n_undecided: int
    n_contested: int
    n_comparisons: int
    is_ranking: bool
    best: tuple[BestSystems, ...]


def build_verdict(results: ComparisonResults) -> Verdict:
    """Return the verdict on some results.

    Parameters
    ----------
    results : ComparisonResults
        The results.
    """
    table = results.table
    outcome = table.outcome
    is_checked = not bool(table.has_disagreement.any())
    answer, sentences = _build_answer(results)
    caveats = [*describe_margins(results), *_describe_chance(results)]
    caveats += [*_describe_disagreement(results), *_describe_correlation(results), *describe_all_runs(table)]
    standings = Standings.from_table(table)
    return Verdict(
        scope=tuple(_add_full_stop(note.text) for note in results.notes if note.kind == "scope"),
        headline=" ".join([_add_full_stop(answer if is_checked else DOUBT + answer), *caveats]),
        sentences=(*map(_add_full_stop, sentences), *(caveats if sentences else ())),
        checks=check_texts.describe_checks(table),
        is_checked=is_checked,
        doubtful=find_doubtful(table),
        n_significant=int(np.count_nonzero(outcome == 1)),
        n_undecided=int(np.count_nonzero(outcome == -1)),
        n_contested=int(np.count_nonzero(outcome == CONTESTED)),
        n_comparisons=len(table),
        is_ranking=len(table) > 0 and standings.design == ALL,
        best=tuple(_list_best_systems(results, standings)),
    )


def _build_answer(results: ComparisonResults) -> tuple[str, list[str]]:
    if not len(results):
        return "Nothing was compared", []
    groups = build_verdict_groups(results)
    n = groups.standings.n_groups
    return build_headline(groups), [describe_group(groups, g) for g in range(n)] if 1 < n <= MAX_LISTED_GROUPS else []


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


def _describe_disagreement(results: ComparisonResults) -> Iterator[str]:
    """Yield a sentence if no system is best on all metrics, even counting systems tied with the best."""
    groups = build_verdict_groups(results)
    if not len(results) or groups.noun != "metrics" or groups.standings.design not in {PAIR, ALL}:
        return
    if not set.intersection(*map(set, _list_leaders(groups.standings))):
        n, is_pair = groups.standings.n_groups, groups.standings.design == PAIR
        best = "better" if is_pair else "best, or tied with the best,"
        yield f"The metrics disagree: no system is {best} on {'both' if n == 2 else f'all {n:,}'} metrics."


def _describe_correlation(results: ComparisonResults) -> Iterator[str]:
    """Yield a sentence if differences are significant, but p is too small as units are correlated within columns."""
    notes = [note for note in results.notes if note.kind == "dependence"]
    if notes and (results.table.outcome == 1).any():
        n, of = (max(int(note.numbers.get(key) or 0) for note in notes) for key in ("n_comparisons", "of"))
        some, there = ("", "") if n == of else (f" in {n:,} of {of:,} comparisons", " there")
        columns = join_phrases([*dict.fromkeys(str(note.numbers["column"]) for note in notes)])
        warning = "warning says" if len(notes) == 1 else "warnings say"
        yield (
            f"But differences are correlated within {columns}{some}, so p is too small{there} if the result should "
            f"hold for other groups too: the {warning} what to do."
        )


def _add_full_stop(text: str) -> str:
    return f"{text}."


def _list_best_systems(results: ComparisonResults, c: Standings) -> list[BestSystems]:
    table = results.table
    if not len(table) or c.design not in {PAIR, BASELINE, ALL}:
        return []
    names = _list_leaders(c) if c.design != BASELINE else _list_above_baseline(c)
    return [
        BestSystems(table.test_set[row], to_plain(table.subset[row]), table.metric[row].name, tuple(best_names))
        for row, best_names in zip(c.first_rows.tolist(), names, strict=True)
    ]


def _list_leaders(c: Standings) -> list[list[str]]:
    """Return, for each group, its best system and those not significantly different from it."""
    top, rows = c.top, np.flatnonzero(c.has_top & (c.outcome != 1))
    leaders = [[c.names[k]] for k in top.tolist()]
    group = c.group[rows]
    others = np.where(c.a[rows] == top[group], c.b[rows], c.a[rows])
    order = np.argsort(np.abs(c.ahead[rows]), kind="stable")
    for g, k in zip(group[order].tolist(), others[order].tolist(), strict=True):
        leaders[g].append(c.names[k])
    return leaders


def _list_above_baseline(c: Standings) -> list[list[str]]:
    rows = np.flatnonzero((c.outcome == 1) & (c.ahead > 0))
    better: list[list[str]] = [[] for _ in range(c.n_groups)]
    for row in rows[np.argsort(-c.ahead[rows], kind="stable")].tolist():
        better[int(c.group[row])].append(c.names[int(c.a[row])])
    return better
