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

from sigdask.comparison.results import Ranking, Result, Results
from sigdask.report.files import write_whole
from sigdask.report.terminal import MOST_LETTERS, citation, confidence, how, p_cell, score_text
from sigdask.statistics.rounding import limits_text, p_equals

MOST_ROWS = 5000
"""Comparisons listed; of more, those with the smallest p."""

MOST_IN_MATRIX = 60
"""Systems up to which every pair is drawn."""

FEWEST_IN_CURVE = 10


@dataclass(frozen=True, slots=True)
class Square:
    """One cell of a matrix of pairs: how the row's system stands to the column's."""

    kind: str
    text: str
    title: str


Inputs = Mapping[str, Mapping[str, str]]
"""Test set, to the files that were read and their digests."""

NOTHING: Inputs = {}


def write_page(
    path: Path, sets: Mapping[str, Results], title: str, *, gate: str | None = None, inputs: Inputs = NOTHING
) -> None:
    """Write results as a page, whole or not at all; `sets`, `gate` and `inputs` as in `page`."""
    created = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    write_whole(path, page(sets, title=f"sigdask: {title}", created=created, gate=gate, inputs=inputs))


def page(
    sets: Mapping[str, Results],
    *,
    title: str,
    notes: Sequence[str] = (),
    gate: str | None = None,
    created: str = "",
    inputs: Inputs = NOTHING,
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
    """
    shown = [(name, results) for name, results in sets.items() if len(results)]
    rows = [r for _, results in shown for r in results]
    listed = rows if len(rows) <= MOST_ROWS else sorted(rows, key=_by_p)[:MOST_ROWS]
    several = len({r.test_set for r in rows}) > 1
    text: str = _template().render(
        title=title,
        created=created,
        warnings=list(dict.fromkeys([*notes, *(w for _, results in shown for w in results.warnings)])),
        alarms=[(r, check) for r in rows for check in r.disagreements()],
        gate=gate,
        inputs=inputs,
        sets=[_section(name, results) for name, results in shown],
        rows=listed,
        n_rows=len(rows),
        alpha=shown[0][1].alpha if shown else 0.05,
        several=several,
        subsets=any(r.subset for r in rows),
        adjusted=any(r.p_adjusted is not None for r in rows),
        citations=list(dict.fromkeys(citation(results) for _, results in shown)),
        curve=_curve([r.p_value for r in rows], shown[0][1].alpha) if len(rows) >= FEWEST_IN_CURVE else None,
    )
    return text


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"p": p_cell, "limits": _limits, "score": score_text, "how": how, "letters": _letters}
    return environment.from_string(files("sigdask.report").joinpath("page.html").read_text(encoding="utf-8"))


def _limits(r: Result, alpha: float) -> str:
    """Say between which limits the trials leave p; nothing where it is exact."""
    return "" if r.method == "exact" else f"{limits_text(*r.p_interval, alpha)} ({confidence(r)})"


def _section(name: str, results: Results) -> dict[str, Any]:
    rankings = results.rankings()
    return {
        "name": name,
        "rankings": [{"ranking": ranking, "matrix": _matrix(ranking, results)} for ranking in rankings],
        "together": results.together,
    }


def _letters(letters: Sequence[str]) -> str:
    more = f" +{len(letters) - MOST_LETTERS}" if len(letters) > MOST_LETTERS else ""
    return " ".join(letters[:MOST_LETTERS]) + more


def _matrix(ranking: Ranking, results: Results) -> list[list[Square]] | None:
    """Return rows of squares, the best system first; None for too many systems."""
    names = [ranked.system for ranked in ranking.systems]
    if len(names) > MOST_IN_MATRIX:
        return None
    own = [r for r in results if (r.test_set, r.metric, r.subset) == (ranking.test_set, ranking.metric, ranking.subset)]
    pairs = {frozenset((r.a, r.b)): r for r in own}
    return [[_square(a, b, pairs.get(frozenset((a, b))), results.alpha) for b in names] for a in names]


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


def _curve(p_values: Sequence[float], alpha: float) -> str | None:
    """Return the achieved-significance curve as a picture in text; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    ordered = sorted(p_values, reverse=True)
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(range(1, len(ordered) + 1), ordered, color="#1f4e79")
    axes.axhline(alpha, color="#b03a2e", linewidth=0.8, linestyle="--")
    axes.set_xlabel("comparisons, by p")
    axes.set_ylabel("p")
    axes.set_ylim(0, 1)
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return base64.b64encode(out.getvalue()).decode()


def _by_p(r: Result) -> tuple[float, float]:
    return (r.p_value if r.p_adjusted is None else r.p_adjusted), r.p_value
