"""Progress of extraction, reported at the start and then at intervals."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from sigdask.text import format_duration

LOG = logging.getLogger("sigdask.extraction")

MIN_SECONDS = 1.0
"""Seconds of work below which nothing is said."""

EVERY = 30.0
"""Seconds between two lines."""


@dataclass(frozen=True, slots=True)
class ExtractionProgress:
    """How far an extraction is: outputs done, outputs in all, and time left.

    Attributes
    ----------
    what : str
        The metrics that take something.
    done, total : int
        Outputs, one an item, system and metric.
    left : float
        Seconds until its end, about.
    n_processes : int
        That are at work.
    """

    what: str
    done: int
    total: int
    left: float
    n_processes: int

    def __str__(self) -> str:
        """Return the progress as one line."""
        processes = f" on {self.n_processes} processes" if self.n_processes > 1 else ""
        how_many = f"{self.done:,} of {self.total:,} outputs" if self.done else f"{self.total:,} outputs"
        remaining = (
            f", about {format_duration(self.left)}{processes if not self.done else ' left'}" if self.left >= 1 else ""
        )
        return f"extracting {self.what}: {how_many}{remaining}"


ProgressCallback = Callable[[ExtractionProgress], None]
"""Told at the start, and whenever something is done."""


class ExtractionLog:
    """A progress callback that writes a log line at the start, and then one every half minute.

    Parameters
    ----------
    say : callable
        Takes a line.
    every : float
        Seconds between two lines.
    """

    def __init__(self, say: Callable[[str], None] = LOG.info, every: float = EVERY) -> None:
        self._say = say
        self._every = every
        self._last = 0.0

    def __call__(self, how_far: ExtractionProgress) -> None:
        """Log the progress if a line is due."""
        now = time.monotonic()
        if not how_far.done:
            self._last = now if how_far.left >= MIN_SECONDS else 0.0
            if self._last:
                self._say(str(how_far))
        elif self._last and now - self._last >= self._every and how_far.done < how_far.total:
            self._last = now
            self._say(str(how_far))
