"""Pictures of what was found, of arrays and names alone: matplotlib's figures, drawn alike each time."""

from sigdask.figures.achieved import achieved_significance
from sigdask.figures.critical import critical_difference
from sigdask.figures.curves import n_best_curves
from sigdask.figures.files import FORMATS, rendered, save
from sigdask.figures.forest import forest
from sigdask.figures.histogram import histograms
from sigdask.figures.matrix import matrix
from sigdask.figures.nights import nights
from sigdask.figures.null import null_distribution

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
