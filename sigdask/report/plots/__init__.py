"""Reproducible matplotlib figures of results."""

from sigdask.report.plots.canvas import FORMATS, rendered, save

__all__ = ["FORMATS", "rendered", "save"]
