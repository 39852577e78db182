"""Single comparisons opened: what the page's script draws of each, and the words that stand beside.

Numbers and texts travel once: a text that several units show, such as a reference, is a place in one list.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sigdask.analysis.details.details import ComparisonDetails
from sigdask.analysis.details.histogram import EqualBars
from sigdask.analysis.details.null_distribution import NullDistribution
from sigdask.analysis.details.runs import Convergence
from sigdask.analysis.details.shares import UnitShares
from sigdask.analysis.details.units import ItemDetails, UnitDetails
from sigdask.report.page.frame import PagePart
from sigdask.report.summary.sentences import size_text, standing
from sigdask.report.tables.cells import p_cell
from sigdask.report.terminal import classical
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.results.views import result_views
from sigdask.statistics.rounding import p_equals, signed
from sigdask.text import count_noun

SIDES = {"two-sided": "as far from 0", "greater": "as large", "less": "as small"}
"""What is extreme under each alternative."""


@dataclass(frozen=True, slots=True)
class Details:
    """What the template takes.

    Attributes
    ----------
    n_opened, n_rows : int
        Comparisons that are opened, and all.
    why : str
        Which are opened.
    titles : tuple of str
        Of those that are.
    made_of : tuple of (str, str)
        What the numbers were made with: name, and value.
    """

    n_opened: int
    n_rows: int
    why: str
    titles: tuple[str, ...]
    made_of: tuple[tuple[str, str], ...] = ()


def part(
    table: Table, opened: Sequence[ComparisonDetails], *, why: str = "", made_of: Mapping[str, str] | None = None
) -> dict[str, PagePart]:
    """Return the page's part of the comparisons that are opened, by its name.

    Parameters
    ----------
    table : Table
        Of all comparisons on the page, in its order.
    opened : sequence of ComparisonDetails
        By their rows of it.
    why : str
        Which are opened where not all are, or why none is; nothing is said, and there is no part, where that is empty.
    made_of : mapping of str to str, optional
        Versions, seed and the like.
    """
    if not opened:
        return {"details": PagePart(Details(0, len(table), why, ()))} if why else {}
    results = [*result_views(table.take(np.array([one.row for one in opened], np.int64)))]
    texts = _DistinctTexts()
    data = {
        "alpha": table.alpha,
        "opened": [_one(one, r, table.alpha, texts) for one, r in zip(opened, results, strict=True)],
        "texts": texts.listed,
    }
    shown = Details(len(opened), len(table), why, tuple(map(title_of, results)), tuple((made_of or {}).items()))
    return {"details": PagePart(shown, data)}


def title_of(r: Result) -> str:
    """Name a comparison."""
    where = [name for name in (r.test_set, r.subset and f"{r.subset['column']} {r.subset['value']}") if name]
    return f"{r.a} and {r.b} by {r.metric}{' on ' if where else ''}{', '.join(where)}"


@dataclass(slots=True)
class _DistinctTexts:
    """Distinct texts, in the order in which they come."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int | None:
        """Return the place of a text; None of none."""
        return None if text is None else self.places.setdefault(text, len(self.places))

    @property
    def listed(self) -> list[str]:
        """All of them."""
        return [*self.places]


def _one(one: ComparisonDetails, r: Result, alpha: float, texts: _DistinctTexts) -> dict[str, Any]:
    found: dict[str, Any] = {
        "row": one.row,
        "title": title_of(r),
        "a": r.a,
        "b": r.b,
        "alternative": one.alternative,
        "higher": r.higher_is_better,
        "adjusted": r.p_adjusted is not None,
        "lines": [standing(r, alpha), *([size_text(r) + "."] if r.interval is not None else [])],
        "null": _null(one.null, one.alternative),
        "runs": [_run(run) for run in one.runs],
        "about_runs": _about_runs(one.runs, alpha, is_bound=r.stopped is None),
        "exact": r.p_value if r.method == "exact" else None,
        "exact_text": p_cell(r.p_value, alpha),
        "checks": [*_checks(r, alpha)],
        "again": r.test_signature and f"sigdask reproduce {shlex.quote(r.test_signature)} FILES",
        "notes": list(r.warnings),
    }
    if one.shares is not None:
        found |= {"gold": one.called.gold, "asked": one.called.asked}
        found |= {"unit": r.unit, "shares": _shares(one.shares), "units": _units(one, texts)}
    return found


def _null(null: NullDistribution, alternative: str) -> dict[str, Any]:
    drawn = (
        f"all {count_noun(null.n_trials, 'arrangement')}"
        if null.is_whole
        else f"the first {count_noun(null.n_trials, 'shuffle')}"
    )
    words = (
        f"The differences of {drawn}: {null.n_extreme:,} {'is' if null.n_extreme == 1 else 'are'} at least "
        f"{SIDES[alternative]} as the observed one, {signed(null.observed)}."
    )
    return {"observed": _short(null.observed), "bars": _bars(null.histogram), "words": words}


def _bars(own: EqualBars) -> dict[str, Any]:
    return {"low": own.low, "width": own.width, "n": own.counts.tolist(), "marked": own.marked.tolist()}


def _run(run: Convergence) -> dict[str, Any]:
    low, high = run.intervals
    return {
        "trials": run.n_trials.tolist(),
        "extreme": run.n_extreme.tolist(),
        "p": _numbers(run.p_values),
        "low": _numbers(low),
        "high": _numbers(high),
    }


def _about_runs(runs: Sequence[Convergence], alpha: float, *, is_bound: bool) -> str:
    """Say where the runs end; a rule to stop early makes another p of it than the bound."""
    ends = [
        f"{name}: {run.n_extreme[-1]:,} of {run.n_trials[-1]:,}"
        + (f", {p_equals(float(run.p_values[-1]), alpha)}" if is_bound else "")
        for name, run in zip(("first run (solid)", "second run (dashed)"), runs, strict=False)
    ]
    return f"How p comes about as trials are added, with its 99 % interval. {'; '.join(ends).capitalize()}."


def _shares(own: UnitShares) -> dict[str, Any]:
    bars = None if own.histogram is None else _bars(own.histogram)
    return {"counts": [own.n_for_a, own.n_alike, own.n_for_b], "add_up": own.add_up, "bars": bars}


def _units(one: ComparisonDetails, texts: _DistinctTexts) -> list[list[Any]]:
    assert one.shares is not None
    return [
        [unit.name, _short(value), unit.n_items, [_item(item, unit, texts) for item in unit.items]]
        for unit, value in zip(one.named, one.shares.values.tolist(), strict=True)
    ]


def _item(item: ItemDetails, unit: UnitDetails, texts: _DistinctTexts) -> list[Any]:
    """Return the name of an item, unless the unit has it, what was asked, right and given, as places of texts."""
    name = "" if item.name == unit.name else item.name
    return [
        name,
        texts.place(item.asked),
        [texts.place(text) for text in item.gold],
        texts.place(item.a),
        texts.place(item.b),
    ]


def _checks(r: Result, alpha: float) -> Iterator[list[str]]:
    """Yield (what, how it came out, in words) of the cross-checks and the classical tests of a comparison."""
    for check in r.checks:
        yield [check.name, check.verdict, check.detail]
    for line in classical.lines([r], alpha):
        yield [line.name, f"p = {line.p}", line.remark]


def _numbers(values: ArrayLike) -> list[float]:
    return [_short(x) for x in np.asarray(values, np.float64).tolist()]


def _short(x: float) -> float:
    """Return a number as far as a picture shows it."""
    return float(f"{x:.5g}")
