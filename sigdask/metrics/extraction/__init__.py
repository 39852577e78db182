"""What metrics take from whole outputs, system by system: asked for, looked up, made where nobody has it.

The n-gram counts of a translation, the errors of a transcript and the measures of a ranking are a pure function of a
system's outputs, the gold items, the metric's options and the version of the library that counts them. So they are
known by a digest of these, kept under it, and made once: a changed system costs its own, and another version or option
finds nothing of the old. `sources` ask, `keeping` keeps, `parts` cut what is missing, executors (`processes` here, the
engine's on clusters) make it.
"""

from __future__ import annotations

from sigdask.metrics.extraction.cache import NOWHERE, ExtractionCache, Folder, LayeredCache, at_home
from sigdask.metrics.extraction.parts import Executor, ExtractionPart, LocalExtraction
from sigdask.metrics.extraction.progress import ExtractionLog, ExtractionProgress, Tell
from sigdask.metrics.extraction.request import Extraction, taken
from sigdask.metrics.extraction.sources import ALONE, ExtractedData, StatisticsSource, extracted

__all__ = [
    "ALONE",
    "NOWHERE",
    "Executor",
    "ExtractedData",
    "Extraction",
    "ExtractionCache",
    "ExtractionLog",
    "ExtractionPart",
    "ExtractionProgress",
    "Folder",
    "LayeredCache",
    "LocalExtraction",
    "StatisticsSource",
    "Tell",
    "at_home",
    "extracted",
    "taken",
]  # fmt: skip
