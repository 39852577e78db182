"""Statistics that metrics extract from each system's whole outputs: read from a cache, or counted if missing.

The n-gram counts of a translation, the errors of a transcript and the measures of a ranking are a pure function of a
system's outputs, the gold items, the metric's options and the version of the library that counts them. So they are
known by a digest of these, kept under it, and made once: a changed system costs its own, and another version or option
finds nothing of the old. `sources` ask, `keeping` keeps, `parts` cut what is missing, executors (`processes` here, the
engine's on clusters) make it.
"""

from __future__ import annotations

from sigdask.metrics.extraction.cache import NO_CACHE, ExtractionCache, FolderCache, LayeredCache, get_user_cache
from sigdask.metrics.extraction.parts import Executor, ExtractionPart, LocalExtraction
from sigdask.metrics.extraction.progress import ExtractionLog, ExtractionProgress, ProgressCallback
from sigdask.metrics.extraction.request import Extraction, get_statistics
from sigdask.metrics.extraction.sources import LOCAL_SOURCE, ExtractedData, StatisticsSource, extract_statistics

__all__ = [
    "LOCAL_SOURCE",
    "NO_CACHE",
    "Executor",
    "ExtractedData",
    "Extraction",
    "ExtractionCache",
    "ExtractionLog",
    "ExtractionPart",
    "ExtractionProgress",
    "FolderCache",
    "LayeredCache",
    "LocalExtraction",
    "ProgressCallback",
    "StatisticsSource",
    "extract_statistics",
    "get_statistics",
    "get_user_cache",
]  # fmt: skip
