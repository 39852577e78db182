"""How far extraction is, as people are told: at once, and then now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from sigdask.text import duration

LOG = logging.getLogger("sigdask.extraction")

WORTH_TELLING = 1.0
"""Seconds of work below which nothing is said."""

EVERY = 30.0
"""Seconds between two lines."""


@dataclass(frozen=True, slots=True)
class ExtractionProgress:
    """How far extraction is.

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
        """Say it in a line."""
        beside = f" on {self.n_processes} processes" if self.n_processes > 1 else ""
        how_many = f"{self.done:,} of {self.total:,} outputs" if self.done else f"{self.total:,} outputs"
        left = f", about {duration(self.left)}{beside if not self.done else ' left'}" if self.left >= 1 else ""
        return f"extracting {self.what}: {how_many}{left}"


Tell = Callable[[ExtractionProgress], None]
"""Told at the start, and whenever something is done."""


class ExtractionLog:
    """Writes a line of the log at the start, and one every half minute.

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
        """Tell it, where it is time."""
        now = time.monotonic()
        if not how_far.done:
            self._last = now if how_far.left >= WORTH_TELLING else 0.0
            if self._last:
                self._say(str(how_far))
        elif self._last and now - self._last >= self._every and how_far.done < how_far.total:
            self._last = now
            self._say(str(how_far))
