"""Reproducible matplotlib figures of results."""

from sigdask.report.plots.canvas import FORMATS, rendered, save
from sigdask.report.plots.details import null_distribution

__all__ = ["FORMATS", "null_distribution", "rendered", "save"]
