"""Results as one HTML page that needs nothing else: no script, no address, every name escaped."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.found.ranking import Ranking, ranked, ranking_of
from sigdask.comparison.found.result import Result
from sigdask.comparison.presented.cells import (
    MOST_LETTERS,
    confidence,
    how,
    interval_cell,
    is_bounded,
    p_cell,
    score_text,
)
from sigdask.comparison.presented.words import citation, is_adjusted
from sigdask.comparison.results import Results
from sigdask.comparison.table import Table
from sigdask.report import classical
from sigdask.report.files import write_whole
from sigdask.report.terminal import MOST_ALARMS
from sigdask.report.trials import trials_text
from sigdask.statistics.letters import achieved_significance
from sigdask.statistics.rounding import limits_text, p_equals

MOST_ROWS = 5000
"""Comparisons listed; of more, those with the smallest p."""

MOST_TESTED = 500
"""Comparisons whose classical tests are listed."""

MOST_IN_MATRIX = 60
"""Systems up to which every pair is drawn."""

MOST_SQUARES = 50_000
"""Pairs drawn of all rankings together."""

MOST_IN_RANKINGS = 5000
"""Systems listed in all rankings together, but for the first."""

FEWEST_IN_CURVE, MOST_IN_CURVE = 10, 1000
"""Comparisons from which the curve is drawn, and points that it is drawn of."""


@dataclass(frozen=True, slots=True)
class Square:
    """One cell of a matrix of pairs: how the row's system stands to the column's."""

    kind: str
    text: str
    title: str


Inputs = Mapping[str, Mapping[str, str]]
"""Test set, to the files that were read and their digests."""

NOTHING: Inputs = {}
NO_TEXTS: Mapping[str, str] = {}


def write_page(
    path: Path,
    sets: Mapping[str, Results],
    title: str,
    *,
    gate: str | None = None,
    inputs: Inputs = NOTHING,
    candidates: Mapping[str, str] = NO_TEXTS,
) -> None:
    """Write results as a page, whole or not at all; `sets`, `gate`, `inputs` and `candidates` as in `page`."""
    created = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    write_whole(
        path, page(sets, title=f"sigdask: {title}", created=created, gate=gate, inputs=inputs, candidates=candidates)
    )


def page(
    sets: Mapping[str, Results],
    *,
    title: str,
    notes: Sequence[str] = (),
    gate: str | None = None,
    created: str = "",
    inputs: Inputs = NOTHING,
    candidates: Mapping[str, str] = NO_TEXTS,
) -> str:
    """Return a page.

    Parameters
    ----------
    sets : mapping of str to Results
        By test set.
    title : str
        What was compared, or the plan's name.
    notes : sequence of str
        What should be known besides the results' own warnings.
    gate : str, optional
        The verdict of a plan's gate, as text.
    created : str
        When, as it is to be printed.
    inputs : mapping of str to mapping of str to str
        Files that a plan's run read, by test set, with their digests.
    candidates : mapping of str to str
        What is said of rankings of candidates, by name.
    """
    shown = [(name, results) for name, results in sets.items() if len(results)]
    table = Table.joined([results.table for _, results in shown]) if shown else Table.of((), 0.05)
    alarming = np.flatnonzero(table.disagrees)
    room = _Room(MOST_IN_RANKINGS, MOST_SQUARES)
    listed = [*table.take(_listed(table)).results()]
    tested = [r for r in listed if r.tests]
    text: str = _template().render(
        title=title,
        created=created,
        warnings=list(dict.fromkeys([*notes, *(w for _, results in shown for w in results.warnings)])),
        alarms=[(r, check) for r in table.take(alarming[:MOST_ALARMS]).results() for check in r.disagreements()],
        n_alarming=len(alarming),
        gate=gate,
        inputs=inputs,
        candidates=candidates,
        sets=[_section(name, results, room) for name, results in shown],
        rows=listed,
        tests=[*classical.lines(tested[:MOST_TESTED], table.alpha)],
        misfits=[*classical.misfits(tested)],
        n_tested=min(len(tested), MOST_TESTED),
        n_rows=len(table),
        alpha=table.alpha,
        several=len(np.unique(table.test_set.codes)) > 1,
        subsets=any(table.subset.values),
        adjusted=is_adjusted(table),
        sure=table.intervals is not None,
        citations=list(dict.fromkeys(citation(results) for _, results in shown)),
        curve=_curve(table) if len(table) >= FEWEST_IN_CURVE else None,
    )
    return text


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "p": p_cell,
        "limits": _limits,
        "sure": interval_cell,
        "score": score_text,
        "how": how,
        "letters": _letters,
    }
    return environment.from_string(files("sigdask.report.page").joinpath("page.html").read_text(encoding="utf-8"))


def _limits(r: Result, alpha: float) -> str:
    """Say between which limits the trials leave p; nothing where it is exact."""
    if r.method == "exact":
        return ""
    return limits_text(*r.p_interval, alpha) + ("" if is_bounded(r) else f" ({confidence(r)})")


@dataclass(slots=True)
class _Room:
    """What the page has left for systems in rankings, and for squares."""

    systems: int
    squares: int
    is_first: bool = True

    def takes(self, ranking: Ranking) -> bool:
        """Whether a ranking is listed; the first one always is."""
        fits = self.is_first or len(ranking.systems) <= self.systems
        self.systems -= len(ranking.systems) * fits
        self.is_first = False
        return fits

    def draws(self, n_systems: int) -> bool:
        """Whether every pair is drawn."""
        fits = n_systems <= MOST_IN_MATRIX and n_systems**2 <= self.squares
        self.squares -= n_systems**2 * fits
        return fits


def _section(name: str, results: Results, room: _Room) -> dict[str, Any]:
    of_each = ((own, ranking_of(own)) for own in ranked(results.table))
    rankings = [(own, ranking, room.takes(ranking)) for own, ranking in of_each]
    kept = [(own, ranking) for own, ranking, fits in rankings if fits]
    return {
        "name": name,
        "rankings": [{"ranking": ranking, "matrix": _matrix(ranking, own, room)} for own, ranking in kept],
        "n_left_out": len(rankings) - len(kept),
        "together": results.together[:MOST_ROWS],
        "n_together": len(results.together),
        "trials": list(trials_text(results)),
    }


def _letters(letters: Sequence[str]) -> str:
    more = f" +{len(letters) - MOST_LETTERS}" if len(letters) > MOST_LETTERS else ""
    return " ".join(letters[:MOST_LETTERS]) + more


def _matrix(ranking: Ranking, own: Table, room: _Room) -> list[list[Square]] | None:
    """Return rows of squares, the best system first; None for too many systems."""
    names = [system.system for system in ranking.systems]
    if not room.draws(len(names)):
        return None
    pairs = {frozenset((r.a, r.b)): r for r in own.results()}
    return [[_square(a, b, pairs.get(frozenset((a, b))), own.alpha) for b in names] for a in names]


def _square(a: str, b: str, r: Result | None, alpha: float) -> Square:
    if r is None:
        return Square("self", "", a)
    p = r.p_value if r.p_adjusted is None else r.p_adjusted
    better = r.better()
    side = "same" if better is None else "better" if better == a else "worse"
    found = bool(r.decision(alpha))
    title = f"{a} {_words(side, r, found=found)} {b}{_with_p(r, p, alpha)}"
    return Square(f"{side}{' apart' if found else ''}", p_cell(p, alpha), title)


def _words(side: str, r: Result, *, found: bool) -> str:
    if side == "same":
        return "same as"
    if found:
        return f"{side} than"
    return f"scores {'higher' if (side == 'better') == r.higher_is_better else 'lower'} than"


def _with_p(r: Result, p: float, alpha: float) -> str:
    if math.isnan(p):
        return f": p in {limits_text(*r.p_interval, alpha)}"
    return f": {'' if r.p_adjusted is None else 'adjusted '}{p_equals(p, alpha)}"


def _curve(table: Table) -> str | None:
    """Return the achieved-significance curve as a picture in text; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    ordered = achieved_significance(table.p_value)
    places = np.unique(np.linspace(1, len(ordered), min(len(ordered), MOST_IN_CURVE)).round().astype(np.int64)).tolist()
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(places, [ordered[place - 1] for place in places], color="#1f4e79")
    axes.axhline(table.alpha, color="#b03a2e", linewidth=0.8, linestyle="--")
    axes.set_xlabel("comparisons, by p")
    axes.set_ylabel("p")
    axes.set_ylim(0, 1)
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return base64.b64encode(out.getvalue()).decode()


def _listed(table: Table) -> NDArray[np.int64]:
    """Return the rows that are listed: all, or those with the smallest p."""
    if len(table) <= MOST_ROWS:
        return np.arange(len(table))
    single = np.where(np.isnan(table.p_value), table.p_high, table.p_value)
    order: NDArray[np.int64] = np.lexsort((single, np.where(np.isnan(table.p_adjusted), single, table.p_adjusted)))
    return order[:MOST_ROWS]
