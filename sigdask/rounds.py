"""Rounds of trials: 0 to 4,095, then up to 16,383, each round bringing the trials to four times as many.

Every comparison is counted in one round before any is counted in the next, tallies are kept by
round, and stopping rules look at the ends of rounds. The borders are the same for every plan, so
that two plans that share a comparison keep its tallies alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from sigdask.shuffles import BLOCK

FACTOR = 4


def round_of(trial: int) -> tuple[int, int]:
    """Return the round that a trial belongs to: its first trial, and the first of the next round.

    Examples
    --------
    >>> round_of(0), round_of(4096), round_of(10_000)
    ((0, 4096), (4096, 16384), (4096, 16384))
    """
    start, stop = 0, BLOCK
    while trial >= stop:
        start, stop = stop, stop * FACTOR
    return start, stop


def rounds(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Split trials `first` to `stop - 1` at the borders of rounds.

    Examples
    --------
    >>> list(rounds(1000, 20_000))
    [(1000, 4096), (4096, 16384), (16384, 20000)]
    """
    while first < stop:
        end = min(round_of(first)[1], stop)
        yield first, end
        first = end
