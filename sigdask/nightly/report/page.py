"""The parts of the page that belong to a plan: gate verdict, recent changes, and scores and p over the nights.

They also choose which comparisons stand first, and make the figures of a plan's runs. They work without scripts, except
for sorting.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.nightly.report.gate import format_levels, iter_reasons, list_findings
from sigdask.nightly.store.status import Change, Changes, Nights, PlanReport, read_nights
from sigdask.report.comparisons import format_p_cell
from sigdask.report.page.frame import PagePart
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_lower_limit, format_score, format_signed
from sigdask.text import format_time


def select_first(report: PlanReport, table: Table, n_rows: int) -> tuple[NDArray[np.int64], list[str]]:
    """Return the first rows to show, with reasons: gate failures, then other gated, then changed comparisons.

    Parameters
    ----------
    report : PlanReport
        Report of a run.
    table : Table
        All comparisons of the run.
    n_rows : int
        Maximum number of rows.
    """
    rank = np.full(len(table), 3)
    row_index = {key: k for k, key in enumerate(list_keys(table))}
    changes = report.changes
    names = list_keys(changes.new)
    for row, kinds in zip(changes.new_rows.tolist(), changes.kinds, strict=True):
        is_changed = row >= 0 and {"reversed", "lost", "gained", "scores"} & {*kinds}
        if is_changed and names[row] in row_index:
            rank[row_index[names[row]]] = 2
    verdict = report.run.details.get("verdict") or {"rules": ()}
    for finding in (finding for rule in verdict["rules"] for finding in list_findings(rule)):
        key = tuple(finding["key"])
        if key in row_index:
            rank[row_index[key]] = min(rank[row_index[key]], 1 if finding["passed"] else 0)
    rows = np.argsort(rank, kind="stable")[:n_rows].astype(np.int64)
    words = ("fails the gate", "judged by the gate", "changed", "")
    return rows, [words[k] for k in rank[rows].tolist()]


def list_keys(table: Table) -> list[tuple[Any, ...]]:
    """Return the key by which the gate identifies each row's comparison: test set, subset, systems and metric."""
    subsets = [subset and subset.value for subset in table.subset.to_list()]
    metrics = [score.name for score in table.metric.to_list()]
    return list(zip(table.test_set.to_list(), subsets, table.a.to_list(), table.b.to_list(), metrics, strict=True))


CHANGE_WORDS = {
    "reversed": "reversed", "lost": "significances lost", "gained": "significances gained",
    "new": "new", "gone": "gone", "scores": "with other scores", "p": "with another p", "details": "with other details",
}  # fmt: skip
"""Words for the changes that are counted, in their order."""


def count_changes(changes: Changes) -> str:
    """Return text on how many results changed in each way, such as those that became significant."""
    numbers = Counter(kind for kinds in changes.kinds for kind in kinds)
    return ", ".join(
        f"{n:,} {text.replace('ces ', 'ce ') if n == 1 else text}"
        for kind, text in CHANGE_WORDS.items()
        if (n := numbers[kind])
    )


MAX_REASONS = 3
"""Maximum number of a gate's failures in the card at the top."""

MAX_CHANGES = 200
"""Maximum number of changes that are listed."""

MAX_SERIES = 100
"""Maximum number of comparisons whose nights are drawn."""


WIDTH, HEIGHT, EDGE = 200, 44, 5
"""Size of a drawing, and its margin."""

LOWEST_P = 1e-4
"""Smallest p that is drawn. Smaller values are drawn at it."""


def join_tables(report: PlanReport) -> Table:
    """Return one table of the comparisons of all test sets, in their order."""
    tables = [results.table for results in report.results.values()]
    return Table.join(tables) if tables else Table.build_empty()


def build_part(report: PlanReport) -> PagePart:
    """Return the page's section on a plan's run."""
    table = join_tables(report)
    rows, row_reasons = select_first(report, table, MAX_SERIES)
    history = read_nights(report.store, report.run, table.take(rows))
    verdict = report.run.details.get("verdict")
    return PagePart(
        {
            "run": report.run,
            "when": format_time(report.run.started),
            "before": report.before,
            "gate": verdict and _build_gate(verdict),
            "is_unjudged": verdict is None and any("verdict" in run.details for run in history.runs),
            "levels": _format_level_spans(history),
            "most_reasons": MAX_REASONS,
            "changed": count_changes(report.changes),
            "changes": [*_iter_changes(report.changes, report.alpha)],
            "n_changes": len(report.changes),
            "alpha": report.alpha,
            "nights": history,
            "since": format_time(history.runs[0].started) if history.runs else "",
            "series": [*_iter_series(table.take(rows), row_reasons, history, report.alpha)],
            "n_series": len(table),
            "level": _scale_p(np.array([report.alpha]))[0],
            "size": (WIDTH, HEIGHT),
        }
    )


def _build_gate(verdict: Mapping[str, Any]) -> dict[str, Any]:
    rules = [{**rule, "level_text": format_lower_limit(rule["level"])} for rule in verdict["rules"]]
    n_failed = sum(rule["n_failed"] or (not rule["passed"]) for rule in rules)
    return {**verdict, "rules": rules, "why": [*iter_reasons(verdict)], "n_failed": n_failed}


def _format_level_spans(history: Nights) -> str:
    """Return the significance levels of the nights as text; consecutive runs with the same level are joined."""
    run_levels = [
        (run.number, format_levels(verdict)) for run in history.runs if (verdict := run.details.get("verdict"))
    ]
    level_runs = [(level, [n for n, _ in group]) for level, group in groupby(run_levels, lambda pair: pair[1]) if level]
    spans = ((level, f"run {n[0]}" if len(n) == 1 else f"runs {n[0]} to {n[-1]}") for level, n in level_runs)
    return ", ".join(f"{level} in {span}" for level, span in spans)


KIND_WORDS = {
    "reversed": "reversed", "lost": "significance lost", "gained": "significance gained", "gone": "gone", "new": "new",
    "scores": "other scores", "p": "another p", "details": "other details",
}  # fmt: skip
"""Words for kinds of changes, in the order in which they are listed."""


def _iter_changes(changes: Changes, alpha: float) -> Iterator[SimpleNamespace]:
    """Yield the comparisons whose results changed, as the page lists them."""
    kinds = changes.kinds
    rank = {kind: k for k, kind in enumerate(KIND_WORDS)}
    order = sorted(range(len(changes)), key=lambda k: (rank[next(select_kinds(kinds[k]))], k))[:MAX_CHANGES]
    for k in order:
        change = changes[k]
        r = change.now or change.before
        assert r is not None
        yield SimpleNamespace(
            kinds=", ".join(describe_kind(kind, change) for kind in select_kinds(kinds[k])),
            subset=r.subset["value"] if r.subset else "",
            **{name: getattr(r, name) for name in ("test_set", "a", "b", "metric")},
            before=_format_side(change.before, alpha),
            now=_format_side(change.now, alpha),
        )


def select_kinds(kinds: Sequence[str]) -> Iterator[str]:
    """Yield the kinds of a change to show: "p" only if it is the sole kind."""
    selected = {*kinds} - ({"p"} if len(kinds) > 1 else set())
    yield from (kind for kind in KIND_WORDS if kind in selected)


def describe_kind(kind: str, change: Change) -> str:
    """Return a kind of change as text; for significances also which system is better."""
    r = change.before if kind == "lost" else change.now
    if kind not in {"reversed", "lost", "gained"} or r is None or r.better() is None:
        return KIND_WORDS[kind]
    return f"{KIND_WORDS[kind]}: {r.better()} {'was' if kind == 'lost' else 'is'} better"


def _format_side(r: Result | None, alpha: float) -> str:
    if r is None:
        return "–"
    return _format_scores(r.score_a, r.score_b, r.p_value if r.p_adjusted is None else r.p_adjusted, alpha)


def _format_scores(score_a: float, score_b: float, p: float, alpha: float) -> str:
    p_text = format_p_cell(p, alpha)
    return f"{format_score(score_a)} / {format_score(score_b)}" + (f", p = {p_text}" if p_text else "")


def _iter_series(table: Table, row_reasons: Sequence[str], history: Nights, alpha: float) -> Iterator[SimpleNamespace]:
    """Yield scores and p of comparisons over the nights as the page draws them, p on a logarithmic scale."""
    numbers = [run.number for run in history.runs]
    n = len(numbers)
    positions = np.linspace(EDGE, WIDTH - EDGE, n) if n > 1 else np.full(n, WIDTH / 2)
    for k, (test_set, subset, a, b, metric) in enumerate(list_keys(table)):
        scores = np.stack([history.score_a[k], history.score_b[k]])
        labels = [
            [f"run {n}: {name} {format_score(x)}" for n, x in zip(numbers, values, strict=True)]
            for name, values in zip((a, b), scores.tolist(), strict=True)
        ]
        score_a, score_b = map(_draw_line, (positions, positions), _scale_scores(scores), labels)
        p = history.p[k].tolist()
        p_labels = [f"run {n}: p = {format_p_cell(x, alpha)}" for n, x in zip(numbers, p, strict=True)]
        all_nights = zip(numbers, *scores.tolist(), p, strict=True)
        nights = [night for night in all_nights if not any(map(math.isnan, night[1:3]))]
        yield SimpleNamespace(
            test_set=test_set, subset=subset or "", a=a, b=b, metric=metric, why=row_reasons[k],
            score_a=score_a, score_b=score_b, p=_draw_line(positions, _scale_p(history.p[k]), p_labels),
            scores=f"{format_score(table.score_a[k])} / {format_score(table.score_b[k])}",
            difference=format_signed(table.difference[k]),
            p_text=format_p_cell(p[-1], alpha) if p else "",
            said="; ".join(f"run {n}: {_format_scores(x, y, p_value, alpha)}" for n, x, y, p_value in nights),
        )  # fmt: skip


def _scale_scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the vertical position of each score, the largest on top."""
    if np.isnan(values).all():
        return values
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    share = (values - low) / (high - low) if high > low else values * 0 + 0.5
    return np.asarray(HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE))


def _scale_p(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the vertical position of each p: 1 on top, `LOWEST_P` and less at the bottom."""
    share = np.log10(np.clip(p, LOWEST_P, 1)) / math.log10(LOWEST_P)
    return np.asarray(EDGE + share * (HEIGHT - 2 * EDGE))


def _draw_line(positions: NDArray[np.float64], heights: NDArray[np.float64], labels: Sequence[str]) -> SimpleNamespace:
    """Return a line of a drawing over the nights: a polyline for each stretch without gaps, and labelled points."""
    is_known = ~np.isnan(heights)
    stretch = np.cumsum(~is_known)
    segments = [np.flatnonzero(is_known & (stretch == k)) for k in np.unique(stretch[is_known]).tolist()]
    stretches = tuple(
        " ".join(f"{positions[k]:.1f},{heights[k]:.1f}" for k in segment.tolist()) for segment in segments
    )
    points = (
        (round(float(positions[k]), 1), round(float(heights[k]), 1), labels[k])
        for k in np.flatnonzero(is_known).tolist()
    )
    return SimpleNamespace(stretches=stretches, points=tuple(points))
