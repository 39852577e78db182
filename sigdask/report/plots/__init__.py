"""Reproducible matplotlib figures of results, drawn from arrays and names only."""

from sigdask.report.plots.canvas import FORMATS, rendered, save
from sigdask.report.plots.critical_difference import critical_difference
from sigdask.report.plots.curves import n_best_curves, nights
from sigdask.report.plots.distributions import achieved_significance, histograms, null_distribution
from sigdask.report.plots.forest import forest
from sigdask.report.plots.matrix import matrix

__all__ = [
    "FORMATS",
    "achieved_significance",
    "critical_difference",
    "forest",
    "histograms",
    "matrix",
    "n_best_curves",
    "nights",
    "null_distribution",
    "rendered",
    "save",
]
