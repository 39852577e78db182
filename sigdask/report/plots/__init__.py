"""Reproducible matplotlib figures of results, drawn from arrays and names only."""

from sigdask.report.plots.achieved import achieved_significance
from sigdask.report.plots.critical_difference import critical_difference
from sigdask.report.plots.files import FORMATS, rendered, save
from sigdask.report.plots.forest import forest
from sigdask.report.plots.histogram import histograms
from sigdask.report.plots.matrix import matrix
from sigdask.report.plots.n_best import n_best_curves
from sigdask.report.plots.nights import nights
from sigdask.report.plots.null_distribution import null_distribution

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
