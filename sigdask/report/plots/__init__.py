"""Reproducible matplotlib figures of results, drawn from arrays and names only."""

from sigdask.report.plots.canvas import DEFAULT_STYLE, FORMATS, CanvasStyle, apply_style, rendered, save
from sigdask.report.plots.curves import (
    achieved_significance,
    histograms,
    n_best_curves,
    nights,
    null_distribution,
    unit_differences,
)
from sigdask.report.plots.pairs import critical_difference, forest, matrix

__all__ = [
    "DEFAULT_STYLE", "FORMATS", "CanvasStyle", "achieved_significance", "apply_style", "critical_difference",
    "forest", "histograms", "matrix",
    "n_best_curves", "nights", "null_distribution", "rendered", "save", "unit_differences",
]  # fmt: skip
