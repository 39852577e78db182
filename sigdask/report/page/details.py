"""The page's details of single comparisons: data for the script's figures, and accompanying text.

Numbers and texts are stored once: a text that several units show, such as a reference, is a position in one list.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sigdask.analysis.details import ComparisonDetails, EqualWidthBars, ItemDetails, UnitDetails
from sigdask.report.comparisons import describe_classical_test
from sigdask.report.page.frame import PagePart
from sigdask.report.screen import describe_check
from sigdask.report.sentences import describe_comparison, describe_numbers, describe_size
from sigdask.results.fields import iter_results
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_p_equals, format_score, format_signed

EXTREME_TEXTS = {"two-sided": "as far from 0", "greater": "as large", "less": "as small"}
"""Meaning of "extreme" under each alternative."""


def build_part(
    table: Table, details: Sequence[ComparisonDetails], *, reason: str = "", origins: Mapping[str, str] | None = None
) -> dict[str, PagePart]:
    """Return the page's section with details of comparisons, by the section's name; empty if there is nothing to say.

    Parameters
    ----------
    table : Table
        All comparisons on the page, in its order.
    details : sequence of ComparisonDetails
        Details by row of the table.
    reason : str
        Which comparisons are opened if not all are, or why none is. If empty, the section is left out.
    origins : mapping of str to str, optional
        Versions, seed and the like.
    """
    content: dict[str, Any] = {"n_opened": len(details), "n_rows": len(table), "why": reason}
    if not details:
        return {"details": PagePart(content)} if reason else {}
    results = [*iter_results(table.take(np.array([comparison.row for comparison in details], np.int64)))]
    texts: dict[str, int] = {}
    pairs = zip(details, results, strict=True)
    opened = [_build_comparison(comparison, r, table.alpha, texts) for comparison, r in pairs]
    content |= {"titles": [*map(format_title, results)], "made_of": [*(origins or {}).items()]}
    return {"details": PagePart(content, {"alpha": table.alpha, "opened": opened, "texts": [*texts]})}


def format_title(r: Result) -> str:
    """Return the name of a comparison."""
    scope = [name for name in (r.test_set, r.subset and f"{r.subset['column']} {r.subset['value']}") if name]
    return f"{r.a} and {r.b} by {r.metric}{' on ' if scope else ''}{', '.join(scope)}"


def _add_text(text: str | None, texts: dict[str, int]) -> int | None:
    """Return the index of a text among distinct texts, to which it is added if it is new; None for None."""
    return None if text is None else texts.setdefault(text, len(texts))


def _build_comparison(comparison: ComparisonDetails, r: Result, alpha: float, texts: dict[str, int]) -> dict[str, Any]:
    sizes = [] if r.interval is None else [describe_size(r)]
    fields: dict[str, Any] = {
        "row": comparison.row,
        "title": format_title(r),
        "a": r.a,
        "b": r.b,
        "alternative": r.alternative,
        "higher": r.higher_is_better,
        "lines": [f"{text}." for text in (describe_comparison(r, alpha), describe_numbers(r, alpha), *sizes)],
        "null": comparison.null and _build_null(comparison.null, r),
        "checks": [*_iter_checks(r, alpha)],
        "again": r.test_signature and f"sigdask reproduce {shlex.quote(r.test_signature)} FILES",
        "notes": list(r.warnings),
    }
    if comparison.shares is not None:
        own, (asked, gold) = comparison.shares, comparison.field_names
        bars = None if own.histogram is None else _build_bars(own.histogram)
        shares = {"counts": own.counts, "add_up": own.add_up, "bars": bars}
        fields |= {"gold": gold, "asked": asked}
        fields |= {"unit": r.unit, "shares": shares, "units": _build_units(comparison, texts)}
    return fields


def _build_null(histogram: EqualWidthBars, r: Result) -> dict[str, Any]:
    n_extreme = int(histogram.marked.sum())
    words = (
        f"The differences of {histogram.counts.sum():,} random swaps: {n_extreme:,} "
        f"{'is' if n_extreme == 1 else 'are'} at least {EXTREME_TEXTS[r.alternative]} as the observed one, "
        f"{format_signed(r.difference)}."
    )
    return {"observed": _shorten(r.difference), "bars": _build_bars(histogram), "words": words}


def _build_bars(histogram: EqualWidthBars) -> dict[str, Any]:
    counts = {"n": histogram.counts.tolist(), "marked": histogram.marked.tolist()}
    return {"low": histogram.low, "width": histogram.width, **counts}


def _build_units(comparison: ComparisonDetails, texts: dict[str, int]) -> list[list[Any]]:
    """Return name, contribution, size, items and both scores of the units that decide."""
    return [
        [
            unit.name,
            _shorten(unit.value),
            unit.n_items,
            [_build_item(item, unit, texts) for item in unit.items],
            ["" if math.isnan(score) else format_score(score) for score in unit.scores],
        ]
        for unit in comparison.deciding_units
    ]


def _build_item(item: ItemDetails, unit: UnitDetails, texts: dict[str, int]) -> list[Any]:
    """Return an item's name, or "" if it is the unit's, and the indices of its input, gold and output texts."""
    prompt, *gold = (_add_text(text, texts) for text in (item.prompt, *item.gold))
    return [
        "" if item.name == unit.name else item.name,
        prompt,
        gold,
        _add_text(item.a, texts),
        _add_text(item.b, texts),
    ]


def _iter_checks(r: Result, alpha: float) -> Iterator[list[str]]:
    """Yield (name, outcome, explanation) of cross-checks and classical tests of a comparison."""
    for check in r.checks:
        yield [check.name, check.verdict, describe_check(check)]
    for test in r.tests:
        if test.p_value is not None:
            yield [test.name, format_p_equals(test.p_value, alpha), describe_classical_test(test)]


def _shorten(x: float) -> float:
    """Return a number with the precision of a figure."""
    return float(f"{x:.5g}")
