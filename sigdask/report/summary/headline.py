"""The answer in one sentence: which system is best, is it real, by how much and how sure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sigdask.report.summary.groups import VerdictGroups, joined
from sigdask.report.summary.standings import ALL, BASELINE, PAIR
from sigdask.text import count_noun, listed

MOST_TOLD = 6
"""Groups (metrics, subsets, test sets) that are told one by one; more are counted."""

NAMED = 3
"""Systems that are named, of more."""


def headline(told: VerdictGroups) -> str:
    """Return the answer of some comparisons, at least one, without a full stop."""
    c = told.contests
    if c.n_groups == 1:
        return group(told, 0)
    shapes = {PAIR: _pairs, BASELINE: _baselines, ALL: _rankings}
    return shapes.get(c.shape, _any)(told)


def group(told: VerdictGroups, g: int) -> str:
    """Return the answer of one test set, subset and metric."""
    shapes = {PAIR: _pair, BASELINE: _baseline, ALL: _ranking}
    return shapes.get(told.contests.shape, _several)(told, g)


def _pair(told: VerdictGroups, g: int) -> str:
    return told.sentence(int(told.contests.first[g]))


def _pairs(told: VerdictGroups) -> str:
    """Tell two systems by several metrics, subsets or test sets."""
    c = told.contests
    a, b = c.names[int(c.a[0])], c.names[int(c.b[0])]
    won, lost = (c.decision == 1) & (c.ahead > 0), (c.decision == 1) & (c.ahead < 0)
    won, lost = (np.where(c.a == c.a[0], x, y) for x, y in ((won, lost), (lost, won)))
    if lost.sum() > won.sum():
        a, b, won, lost = b, a, lost, won
    same, open_ = c.decision == 0, c.decision == -1
    none = f"{a} and {b} are not significantly different" if c.is_two_sided else f"{a} and {b} show no such difference"
    cases = [
        (won, f"{a} is better than {b}"),
        (lost, f"{b} is better than {a}"),
        (same, none),
        (open_, f"whether {a} is better than {b} is undecided"),
    ]
    found = [(np.flatnonzero(rows), text) for rows, text in cases if rows.any()]
    if c.n_groups <= MOST_TOLD:
        asides = {row: f" ({_inside(told.p(row))}{told.doubt(row)})" for rows, _ in found for row in rows.tolist()}
        clauses = [
            f"{text} {told.among(c.group[rows].tolist(), [asides[row] for row in rows.tolist()])}"
            for rows, text in found
        ]
        return _capital("; ".join(clauses), "whether")
    of = f"{c.n_groups:,} {told.noun}"
    first, *rest = found
    clauses = [f"{first[1]} in {_all_of(len(first[0]), of, c.n_groups)}"]
    text = _capital("; ".join([*clauses, *(f"{text} in {len(rows):,}" for rows, text in rest)]), "whether")
    return text + told.doubts(range(len(c.group)))


def _inside(p: str) -> str:
    """Return a p that stands in parentheses, how it was had after a comma."""
    return p.replace(" (", ", ").removesuffix(")")


def _capital(text: str, word: str) -> str:
    """Begin a sentence that begins with this word of ours, not with a name, in a capital."""
    return text.replace(word, word.capitalize(), 1) if text.startswith(f"{word} ") else text


def _all_of(n: int, of: str, total: int) -> str:
    return f"all {of}" if n == total else f"{n:,} of {of}"


def _baseline(told: VerdictGroups, g: int) -> str:
    """Tell several systems against one."""
    c = told.contests
    rows = np.flatnonzero(c.group == g)
    base = c.names[int(c.b[rows[0]])]
    rows = rows[np.argsort(-np.nan_to_num(c.ahead[rows], nan=-np.inf), kind="stable")]
    better, worse, same, undecided = _outcomes(told, rows)
    text = f"{_systems(len(better), len(rows))} significantly better than {base} {told.places[g]}"
    names = [c.names[int(c.a[row])] for row in better]
    if names:
        others = f"; also {listed(names[1:], NAMED)}" if len(names) > 1 else ""
        text += f": {names[0]} by {told.size(better[0])}{told.doubt(better[0])}, {told.p(better[0])}{others}"
    rest = _rest(("significantly worse", worse), ("not significantly different", same), ("undecided", undecided))
    closest = ""
    if not names and not np.isnan(c.ahead[rows[0]]) and c.ahead[rows[0]] != 0:
        side = "ahead" if c.ahead[rows[0]] > 0 else "behind"
        size = f"{told.size(rows[0])}{told.doubt(rows[0])}, {told.p(rows[0])}"
        closest = f": the best, {c.names[int(c.a[rows[0]])]}, is {side} by {size}"
    shown = [better[0]] if names else [rows[0]] if closest else []
    return text + closest + rest + told.doubts(rows.tolist(), shown)


def _outcomes(told: VerdictGroups, rows: np.ndarray) -> tuple[list[int], list[int], list[int], list[int]]:
    """Divide rows by what A is against B: better, worse, not significantly different, undecided."""
    c = told.contests
    decision, ahead = c.decision[rows], c.ahead[rows]
    kinds = ((decision == 1) & (ahead > 0), (decision == 1) & (ahead < 0), decision == 0, decision == -1)
    better, worse, same, undecided = (rows[kind].tolist() for kind in kinds)
    return better, worse, same, undecided


def _rest(*counted: tuple[str, list[int]]) -> str:
    parts = [f"{len(rows):,} {'is' if len(rows) == 1 else 'are'} {name}" for name, rows in counted if rows]
    return f"; {joined(parts)}" if parts else ""


def _systems(n: int, of: int) -> str:
    if n == of:
        return f"All {of:,} systems are" if of > 1 else "The system is"
    return f"None of {of:,} systems is" if n == 0 else f"{n:,} of {of:,} systems {'is' if n == 1 else 'are'}"


def _baselines(told: VerdictGroups) -> str:
    """Tell several systems against one, by several metrics, subsets or test sets."""
    c = told.contests
    base = c.names[int(c.b[0])]
    better = (c.decision == 1) & (c.ahead > 0)
    if c.n_groups <= MOST_TOLD:
        n = np.bincount(c.group[better], minlength=c.n_groups).tolist()
        counts = [f" ({k or 'none'} of {m:,})" for k, m in zip(n, np.bincount(c.group).tolist(), strict=True)]
        text = f"Systems significantly better than {base}: {told.among(range(c.n_groups), counts)}"
        return text + told.doubts(range(len(c.group)))
    outcomes = _outcomes(told, np.arange(len(c.group)))
    names = ("significantly better", "significantly worse", "not significantly different", "undecided")
    parts = [f"{len(rows):,} {name}" for name, rows in zip(names, outcomes, strict=True) if rows]
    across = f"over {c.n_groups:,} {told.noun}"
    text = f"Of {len(c.group):,} comparisons with {base} {across}, {joined(parts)}"
    return text + told.doubts(range(len(c.group)))


def _ranking(told: VerdictGroups, g: int) -> str:
    """Tell the best of systems that were all compared with each other."""
    c = told.contests
    best = c.names[int(c.top[g])]
    n_others = int(c.n_members[g]) - 1
    beside = [c.other(row, int(c.top[g])) for row in c.beside_top[c.group[c.beside_top] == g].tolist()]
    row = c.rival(g)
    rival = c.other(row, int(c.top[g]))
    if c.ahead[row] == 0:
        lead = f"{rival} scores the same"
    else:
        lead = f"ahead of {rival}, the next, by {told.size(row)}{told.doubt(row)}; {told.p(row)}"
    more = told.doubts(np.flatnonzero(c.group == g).tolist(), [] if c.ahead[row] == 0 else [row])
    if beside == [rival] and c.ahead[row] != 0:
        size = f"ahead by {told.size(row)}{told.doubt(row)}; {told.p(row)}"
        lead = f"but not significantly better than {rival}, the next: {size}"
        return f"{best} scores best {told.places[g]}, {lead}{more}"
    if not beside:
        all_others = "both others" if n_others == 2 else f"all {n_others:,} others"
        return f"{best} is best {told.places[g]}, significantly better than {all_others}: {lead}{more}"
    near = f"not significantly different from {_beside(beside, n_others)}"
    return f"{best} scores best {told.places[g]}, but is {near}: {lead}{more}"


def _beside(names: list[str], n_others: int) -> str:
    if len(names) == n_others:
        return f"any of the {n_others:,} others"
    return joined(names) if len(names) <= NAMED else f"{len(names):,} of {n_others:,} others"


def _rankings(told: VerdictGroups) -> str:
    """Tell the best of several metrics, subsets or test sets."""
    c = told.contests
    sure = c.n_beside == 0
    more = told.doubts(range(len(c.group)))
    if c.n_groups <= MOST_TOLD:
        clauses = (
            f"{_best(c.names[top], alone)} {told.among(own, [''] * len(own))}{_unsure(alone)}"
            for (top, alone), own in _grouped(c.top.tolist(), sure.tolist()).items()
        )
        return "; ".join(clauses) + more
    tops, counts = np.unique(c.top, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    of = f"{c.n_groups:,} {told.noun}"
    first, *rest = [(c.names[int(tops[k])], int(counts[k])) for k in order]
    parts = [f"{first[0]} scores best in {_all_of(first[1], of, c.n_groups)}"]
    parts += [f"{name} in {n:,}" for name, n in rest[:NAMED]]
    parts += [f"{len(rest) - NAMED:,} more systems in others"] if len(rest) > NAMED else []
    n_sure = int(sure.sum())
    tail = "in none of them" if not n_sure else f"in {'all' if n_sure == c.n_groups else f'{n_sure:,}'} of them"
    return f"{joined(parts)}; {tail} the best is significantly better than all others{more}"


def _grouped(tops: Sequence[int], sure: Sequence[bool]) -> dict[tuple[int, bool], list[int]]:
    found: dict[tuple[int, bool], list[int]] = {}
    for g, key in enumerate(zip(tops, sure, strict=True)):
        found.setdefault(key, []).append(g)
    return found


def _best(name: str, alone: bool) -> str:
    return f"{name} is best" if alone else f"{name} scores best"


def _unsure(alone: bool) -> str:
    return ", significantly better than all others" if alone else ", but not significantly better than all others"


def _several(told: VerdictGroups, g: int) -> str:
    """Tell comparisons of no order: how many differ, and which most."""
    c = told.contests
    rows = np.flatnonzero(c.group == g)
    better, worse, _, _ = _outcomes(told, rows)
    most = max([*better, *worse], key=lambda row: abs(c.ahead[row]), default=None)
    if most is None or len(rows) == 1:
        return _counted(told, rows, f" {told.places[g]}") + told.doubts(rows.tolist())
    loser = c.other(most, int((c.a if c.ahead[most] > 0 else c.b)[most]))
    largest = (
        f": most of all {c.winner(most)} is ahead of {loser}, by {told.size(most)}{told.doubt(most)}; {told.p(most)}"
    )
    return _counted(told, rows, f" {told.places[g]}") + largest + told.doubts(rows.tolist(), [most])


def _any(told: VerdictGroups) -> str:
    return _counted(told, np.arange(len(told.contests.group)), "") + told.doubts(range(len(told.contests.group)))


def _counted(told: VerdictGroups, rows: np.ndarray, where: str) -> str:
    if len(rows) == 1:
        return told.sentence(int(rows[0]))
    better, worse, _, undecided = _outcomes(told, rows)
    n = len(better) + len(worse)
    said = f"{n:,} of {count_noun(len(rows), 'comparison')}{where} {'is' if n == 1 else 'are'} significant"
    if n == 0:
        said = f"None of {count_noun(len(rows), 'comparison')}{where} is significant"
    return said + (_rest(("undecided", undecided)) if undecided else "")
