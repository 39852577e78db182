"""Sentences about several runs of each system: what holds for these runs, and what for the recipes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigdask.results.record import RecipeResult, Result
from sigdask.results.table import Table, decide_runs
from sigdask.statistics.rounding import format_p_equals


def describe_scope_of_runs(r: Result, alpha: float) -> str:
    """Return a clause on the p of the recipes, and on whether a significant difference holds for these runs only."""
    if (runs := r.runs) is None:
        return ""
    averaged = f"averaged over {runs.n_runs} {runs.column}s each"
    recipe_p = "" if runs.best_p is None else f"; {format_p_equals(runs.best_p, alpha)} for the recipes"
    if not r.decision(alpha):
        return f" ({averaged}){recipe_p}"
    if runs.verdict == "significant":
        p = format_p_equals(runs.best_p or 0.0, alpha)
        return f", also for the recipes: {p} over items and {runs.n_runs} {runs.column}s each"
    return f", {averaged}: holds for these runs{recipe_p}"


def describe_runs(runs: RecipeResult | None, alpha: float) -> Iterator[str]:
    """Yield a line on the tests over runs and of the recipes, if the systems have several runs."""
    if runs is None:
        return
    sharing = "paired by" if runs.is_paired else "unpaired, by"
    p_runs = "" if runs.p_runs is None else f"over runs {format_p_equals(runs.p_runs, alpha)} ({runs.method}); "
    recipe = f"recipes: {runs.verdict}"
    if runs.p_value is not None:
        adjusted = "" if runs.p_adjusted is None else f", adjusted {format_p_equals(runs.p_adjusted, alpha)}"
        recipe += f", {format_p_equals(runs.p_value, alpha)} (t, {runs.df:.1f} degrees of freedom){adjusted}"
    errors = f"standard errors {runs.se_items:.3g} over items, {runs.se_runs:.3g} over runs"
    yield f"{runs.n_runs} runs each, {sharing} {runs.column}: {p_runs}{recipe}; {errors}"


def describe_all_runs(table: Table) -> Iterator[str]:
    """Yield a sentence on how many significant differences of several comparisons hold for the recipes too."""
    if table.runs is None or len(table) < 2:
        return
    significant = table.decision == 1
    n, n_recipes = int(significant.sum()), int((significant & (decide_runs(table.runs, table.alpha) == 1)).sum())
    n_runs = ", ".join(map(str, np.unique(table.runs.n_runs[table.runs.n_runs > 0]).tolist()))
    text = f"Scores are averaged over {n_runs} runs each"
    yield f"{text}: {n_recipes:,} of {n:,} significant differences hold for the recipes, the others for these runs."
