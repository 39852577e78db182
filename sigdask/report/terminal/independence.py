"""Tests of independence as text."""

from __future__ import annotations

from collections.abc import Iterator

from sigdask.analysis.independence.results import Independence, IndependenceResults
from sigdask.randomization.stream.shuffles import SCHEME
from sigdask.report.layout import lay_out
from sigdask.report.tables.cells import p_cell
from sigdask.results.comparisons import made_by
from sigdask.statistics.rounding import limits_text, p_equals, score_text
from sigdask.text import count_noun, printable

SENTENCES = 12
"""Tests up to which each is told in words."""

SIDES = {
    "greater": "one-sided: more than chance",
    "less": "one-sided: less than chance",
    "two-sided": "two-sided: as far from chance",
}


def render(found: IndependenceResults, *, width: int | None = None) -> str:
    """Return the report as text."""
    lines = [_table(found, width), ""]
    if len(found) <= SENTENCES:
        lines += [line for one in found for line in _sentences(one, found.alpha)] + [""]
    lines += [
        printable(f"!!! CROSS-CHECK DISAGREES: {one.a} and {one.b} by {one.metric}: {check.name}: {check.detail}")
        for one in found
        for check in one.disagreements()
    ]
    return "\n".join([*lines, _citation(found)])


def _table(found: IndependenceResults, width: int | None) -> str:
    is_adjusted = found.adjust != "none"

    def adjusted(one: Independence) -> list[str]:
        return [p_cell(one.p_adjusted, found.alpha)] if is_adjusted else []

    rows = [
        [
            one.a, one.b, one.metric, score_text(one.score), score_text(one.expected + 0.0),
            p_cell(one.p_value, found.alpha), *adjusted(one), _how(one),
            one.verdict(found.alpha) + (" !" if one.disagreements() else ""),
        ]
        for one in found
    ]  # fmt: skip
    names = [f"adjusted ({found.adjust})"] if is_adjusted else []
    return lay_out(["A", "B", "metric", "score", "by chance", "p", *names, "method", ""], rows, width)


def _how(one: Independence) -> str:
    return "exact" if one.method == "exact" else count_noun(one.n_trials or 0, "trial")


def _sentences(one: Independence, alpha: float) -> Iterator[str]:
    known = f"99 % interval {limits_text(*one.p_interval, alpha)}; {_how(one)}"
    if one.method == "exact":
        known = "exact" if one.n_trials is None else f"exact: {one.n_extreme:,} of {one.n_trials:,} arrangements"
    verdict = one.verdict(alpha)
    at = "" if verdict.startswith("undecided") else f" at {alpha:g}"
    where = "" if one.within is None else f", permuted within {one.n_strata:,} values of {one.within}"
    yield printable(
        f"{one.metric}: {one.a} against {one.b}, {score_text(one.score)}, where independent labels score "
        f"{score_text(one.expected + 0.0)}; {p_equals(one.p_value, alpha)} ({known}; {SIDES[one.alternative]}; "
        f"{count_noun(one.n_items, 'item')}{where}){_adjusted(one, alpha)}: {verdict}{at}."
    )
    if one.exact is not None and one.method != "exact":
        yield f"    exact {p_equals(one.exact.p_lo, alpha)} ({one.exact.method})"
    for check in one.checks:
        if check.verdict != "not applicable":
            yield printable(f"    {check.name} {check.verdict}: {check.detail}")
    for warning in one.warnings:
        yield printable(f"    note: {warning}")


def _adjusted(one: Independence, alpha: float) -> str:
    return "" if one.p_adjusted is None else f", adjusted {p_equals(one.p_adjusted, alpha)}"


def _citation(found: IndependenceResults) -> str:
    return (
        f"sigdask {made_by()}, scheme {SCHEME}, seed {found.seed}: label permutation, {found[0].alternative}, "
        f"adjust {found.adjust}, alpha {found.alpha:g}"
    )
