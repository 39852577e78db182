"""What the page of a plan adds: how its gate ended, what changed since the run before, scores and p over the nights.

All of it is drawn here and stands in the page; it needs no script but for sorting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.nightly.report.gate import levels_text, reasons
from sigdask.nightly.report.highlights import counted, first, keys
from sigdask.nightly.store.status import Change, Changes, Nights, PlanReport, nights
from sigdask.report.page.frame import PagePart
from sigdask.report.tables.cells import p_cell
from sigdask.results.rows import table_from_results
from sigdask.results.table import Table
from sigdask.statistics.rounding import low_text, score_text, signed
from sigdask.text import clock

MOST_REASONS = 3
"""Why a gate failed, in the card at the top."""

MOST_CHANGES = 200
"""Changes that are listed."""

MOST_SERIES = 100
"""Comparisons whose nights are drawn."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change: what became of a comparison."""

    kinds: str
    test_set: str
    subset: str
    a: str
    b: str
    metric: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class NightLine:
    """A line of nights: points of a polyline for each stretch without a gap, and what each point says."""

    stretches: tuple[str, ...]
    points: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True, slots=True)
class ComparisonNights:
    """The nights of one comparison.

    Attributes
    ----------
    test_set, subset, a, b, metric : str
        Which.
    why : str
        Why it is among those that are drawn.
    score_a, score_b : NightLine
        On one scale.
    p : NightLine
        On a logarithmic scale that ends at 0.0001.
    scores, difference, p_text : str
        Of the latest run.
    said : str
        All numbers, for who does not see the drawing.
    """

    test_set: str
    subset: str
    a: str
    b: str
    metric: str
    why: str
    score_a: NightLine
    score_b: NightLine
    p: NightLine
    scores: str
    difference: str
    p_text: str
    said: str


WIDTH, HEIGHT, EDGE = 200, 44, 5
"""Of a drawing, and what is left free at its sides."""

LOWEST = 1e-4
"""p below which no more is drawn."""


def part(report: PlanReport) -> PagePart:
    """Return what the page of a plan adds."""
    table = Table.joined([r.table for r in report.results.values()]) if report.results else table_from_results((), 0.05)
    rows, why = first(report, table, MOST_SERIES)
    seen = nights(report.store, report.run, table.take(rows))
    verdict = report.run.details.get("verdict")
    return PagePart(
        {
            "run": report.run,
            "when": clock(report.run.started),
            "before": report.before,
            "gate": verdict and _gate(verdict),
            "is_unjudged": verdict is None and any("gate" in run.details for run in seen.runs),
            "levels": _levels(seen),
            "most_reasons": MOST_REASONS,
            "changed": counted(report.changes),
            "changes": [*_changes(report.changes, report.alpha)],
            "n_changes": len(report.changes),
            "alpha": report.alpha,
            "nights": seen,
            "since": clock(seen.runs[0].started) if seen.runs else "",
            "series": [*_series(table.take(rows), why, seen, report.alpha)],
            "n_series": len(table),
            "level": _down(np.array([report.alpha]))[0],
            "size": (WIDTH, HEIGHT),
        }
    )


def _gate(verdict: Mapping[str, Any]) -> dict[str, Any]:
    levels = [low_text(rule["level"]) if "level" in rule else "" for rule in verdict["rules"]]
    rules = [{**rule, "level_text": level} for rule, level in zip(verdict["rules"], levels, strict=True)]
    return {**verdict, "rules": rules, "why": [*reasons(verdict)], "n_failed": _n_failed(verdict)}


def _levels(seen: Nights) -> str:
    """Write the levels of the nights; nights of the same level together."""
    known = [(run.number, levels_text(verdict)) for run in seen.runs if (verdict := run.details.get("verdict"))]
    of_nights = [(level, [n for n, _ in own]) for level, own in groupby(known, lambda one: one[1]) if level]
    spans = ((level, f"run {n[0]}" if len(n) == 1 else f"runs {n[0]} to {n[-1]}") for level, n in of_nights)
    return ", ".join(f"{level} in {span}" for level, span in spans)


def _n_failed(verdict: Mapping[str, Any]) -> int:
    return sum(rule["n_failed"] or (not rule["passed"]) for rule in verdict["rules"])


WORDS = {
    "lost": "significance lost", "gained": "significance gained", "gone": "gone", "new": "new",
    "scores": "other scores", "p": "another p", "details": "other details",
}  # fmt: skip
"""What a change is called, the first one listed first."""


def _changes(changes: Changes, alpha: float) -> Iterator[ChangeRow]:
    kinds = changes.kinds
    place = {kind: k for k, kind in enumerate(WORDS)}
    order = sorted(range(len(changes)), key=lambda k: (place[next(_told(kinds[k]))], k))[:MOST_CHANGES]
    for k in order:
        change = changes[k]
        r = change.now or change.before
        assert r is not None
        said = ", ".join(_worded(kind, change) for kind in _told(kinds[k]))
        subset = r.subset["value"] if r.subset else ""
        sides = [_side(one, alpha) for one in (change.before, change.now)]
        yield ChangeRow(said, r.test_set, subset, r.a, r.b, r.metric, *sides)


def _told(kinds: Sequence[str]) -> Iterator[str]:
    """Yield what is said of a change: p is not, beside other scores, nor a verdict of what is new."""
    own = {*kinds} - ({"p"} if len(kinds) > 1 else set()) - ({"gained"} if "new" in kinds else set())
    yield from (kind for kind in WORDS if kind in own)


def _worded(kind: str, change: Change) -> str:
    """Say a change in words; of significances which system it speaks for."""
    r = change.before if kind == "lost" else change.now
    if kind not in {"lost", "gained"} or r is None or r.better() is None:
        return WORDS[kind]
    return f"{WORDS[kind]}: {r.better()} {'was' if kind == 'lost' else 'is'} better"


def _side(r: Any, alpha: float) -> str:
    if r is None:
        return "–"
    p = r.p_value if r.p_adjusted is None else r.p_adjusted
    said = p_cell(p, alpha)
    return f"{score_text(r.score_a)} / {score_text(r.score_b)}" + (f", p = {said}" if said else "")


def _series(table: Table, why: Sequence[str], seen: Nights, alpha: float) -> Iterator[ComparisonNights]:
    across = _across(len(seen.runs))
    numbers = [run.number for run in seen.runs]
    for k, (test_set, subset, a, b, metric) in enumerate(keys(table)):
        scores = np.stack([seen.score_a[k], seen.score_b[k]])
        down, p = _scaled(scores), seen.p[k]
        drawn = [
            _drawn(across, down[side], [f"run {n}: {name} {score_text(x)}" for n, x in zip(numbers, own, strict=True)])
            for side, (name, own) in enumerate(zip((a, b), scores.tolist(), strict=True))
        ]
        p_said = [f"run {n}: p = {p_cell(x, alpha)}" for n, x in zip(numbers, p.tolist(), strict=True)]
        yield ComparisonNights(
            test_set, subset or "", a, b, metric, why[k], drawn[0], drawn[1], _drawn(across, _down(p), p_said),
            f"{score_text(table.score_a[k])} / {score_text(table.score_b[k])}", signed(table.difference[k]),
            p_cell(float(p[-1]), alpha) if len(p) else "",
            "; ".join(_said(numbers, scores, p, alpha)),
        )  # fmt: skip


def _said(numbers: Sequence[int], scores: NDArray[np.float64], p: NDArray[np.float64], alpha: float) -> Iterator[str]:
    for n, own_a, own_b, own_p in zip(numbers, *scores.tolist(), p.tolist(), strict=True):
        if not (math.isnan(own_a) or math.isnan(own_b)):
            known = p_cell(own_p, alpha)
            yield f"run {n}: {score_text(own_a)} / {score_text(own_b)}" + (f", p = {known}" if known else "")


def _across(n: int) -> NDArray[np.float64]:
    return np.linspace(EDGE, WIDTH - EDGE, n) if n > 1 else np.full(n, WIDTH / 2)


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far down each value stands, the largest on top."""
    if np.isnan(values).all():
        return values
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    share = (values - low) / (high - low) if high > low else values * 0 + 0.5
    return np.asarray(HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE))


def _down(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far down p stands: 1 on top, `LOWEST` and less at the bottom."""
    share = np.log10(np.clip(p, LOWEST, 1)) / math.log10(LOWEST)
    return np.asarray(EDGE + share * (HEIGHT - 2 * EDGE))


def _drawn(across: NDArray[np.float64], down: NDArray[np.float64], said: Sequence[str]) -> NightLine:
    known = ~np.isnan(down)
    stretch = np.cumsum(~known)
    parts = [np.flatnonzero(known & (stretch == k)) for k in np.unique(stretch[known]).tolist()]
    stretches = tuple(" ".join(f"{across[k]:.1f},{down[k]:.1f}" for k in part.tolist()) for part in parts)
    points = ((round(float(across[k]), 1), round(float(down[k]), 1), said[k]) for k in np.flatnonzero(known).tolist())
    return NightLine(stretches, tuple(points))
