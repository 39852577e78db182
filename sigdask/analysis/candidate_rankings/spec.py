"""What is asked of an evaluation of rankings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sigdask.errors import InputError
from sigdask.options import RANKED, RANKED_TRIALS, Ties

MOST_CUTOFFS = 10_000
"""Of a curve."""

FEWEST = 7
"""Cutoffs that are looked at where none are named."""


@dataclass(frozen=True, slots=True)
class RankingSpec:
    """What is asked, checked; attributes as in `HowRanked`."""

    cutoffs: tuple[int, ...] = ()
    baseline: str | None = None
    pairs: tuple[tuple[str, str], ...] | None = None
    ties: Ties = "expected"
    trials: int = RANKED_TRIALS
    seed: int = 0
    alpha: float = 0.05
    confidence: float = 0.95
    samples: int | None = None
    sample_size: int | None = None

    @staticmethod
    def of(**given: Any) -> RankingSpec:
        """Take options by their names; what is None is not given.

        Raises
        ------
        InputError
            A value is none of the choices, or out of its bounds.
        TypeError
            There is no such option.
        """
        found = {name: value for name, value in given.items() if value is not None}
        for name, value in found.items():
            if name not in RANKED:
                raise TypeError(f"no option {name!r}; there are: {', '.join(RANKED)}")
            RANKED[name].check(name, value)
        if found.get("baseline") is not None and found.get("pairs"):
            raise InputError("baseline and pairs: both say what is compared; give one of them")
        if ("samples" in found) != ("sample_size" in found):
            raise InputError("samples and sample_size belong together: how many samples, and of how many candidates")
        n = found.pop("n", None)
        pairs = found.pop("pairs", None)
        return RankingSpec(
            cutoffs=tuple(read_cutoffs(n)),
            pairs=None if pairs is None else tuple(map(tuple, pairs)),
            **found,
        )

    def cutoffs_of(self, n_candidates: int) -> tuple[int, ...]:
        """Return each n for a list of so many candidates."""
        if not self.cutoffs:
            return usual(n_candidates)
        beyond = next((n for n in self.cutoffs if n > n_candidates), None)
        if beyond is not None:
            raise InputError(f"n = {beyond:,}: the list has {n_candidates:,} candidates")
        return self.cutoffs

    def pairs_of(self, measures: Sequence[str]) -> list[tuple[int, int]]:
        """Return the places of the measures that are compared."""
        place = {name: k for k, name in enumerate(measures)}
        if self.baseline is not None:
            b = _known(self.baseline, place)
            return [(a, b) for a in place.values() if a != b]
        if self.pairs is None:
            return list(combinations(range(len(measures)), 2))
        found = [(_known(a, place), _known(b, place)) for a, b in self.pairs]
        for (a, b), named in zip(found, self.pairs, strict=True):
            if a == b:
                raise InputError(f"pair {named[0]!r}, {named[1]!r}: a measure is not compared with itself")
        return list(dict.fromkeys(found))


def _known(name: str, place: dict[str, int]) -> int:
    if name not in place:
        close = difflib.get_close_matches(name[:200], place, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"no measure {name!r}; measures: {', '.join(place)}{hint}")
    return place[name]


def usual(n_candidates: int) -> tuple[int, ...]:
    """Return the largest few of 1, 2, 5, 10, 20, ... that are shorter than the list.

    Examples
    --------
    >>> usual(5102), usual(8), usual(1)
    ((50, 100, 200, 500, 1000, 2000, 5000), (1, 2, 5), (1,))
    """
    found = list(_steps(n_candidates))[-FEWEST:]
    return tuple(found) or (1,)


def _steps(below: int) -> Iterator[int]:
    ten = 1
    while ten < below:
        yield from (n for n in (ten, 2 * ten, 5 * ten) if n < below)
        ten *= 10


def read_cutoffs(n: int | Sequence[int] | str | None) -> list[int]:
    """Return numbers of best candidates as they may be given, in order; none where they are not."""
    if isinstance(n, str):
        return parse_cutoffs(n)
    return ascending([n] if isinstance(n, int) else n or ())


def parse_cutoffs(text: str) -> list[int]:
    """Read numbers of best candidates: parted by commas, or START:STOP:STEP, or both.

    Examples
    --------
    >>> parse_cutoffs("50,100"), parse_cutoffs("10:30:10,100")
    ([50, 100], [10, 20, 30, 100])
    """
    return ascending([n for part in text.split(",") for n in _some(part.strip(), text)])


def _some(part: str, text: str) -> Sequence[int]:
    numbers = part.split(":")
    if len(numbers) > 3 or not all(number.strip().isdecimal() for number in numbers):
        raise InputError(f"n = {text!r}: expected numbers as in 50,100,200, or START:STOP:STEP")
    if len(numbers) == 1:
        return [int(part)]
    start, stop, step = (*map(int, numbers), 1)[:3]
    if step < 1 or stop < start or (stop - start) // step >= MOST_CUTOFFS:
        raise InputError(f"n = {part!r}: expected START:STOP:STEP that rises, in at most {MOST_CUTOFFS:,} steps")
    return range(start, stop + 1, step)


def ascending(numbers: Sequence[int]) -> list[int]:
    """Return numbers of best candidates in order, each once."""
    found = sorted({int(n) for n in numbers})
    if found and found[0] < 1:
        raise InputError(f"n = {found[0]}: expected numbers of at least 1")
    if len(found) > MOST_CUTOFFS:
        raise InputError(f"n: {len(found):,} numbers, at most {MOST_CUTOFFS:,}")
    return found
