"""Checked options of an evaluation of rankings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sigdask.errors import InputError
from sigdask.options import RANKING_OPTIONS, RANKING_TRIALS, Ties

MOST_CUTOFFS = 10_000
"""Of a curve."""

N_DEFAULT_CUTOFFS = 7
"""Cutoffs that are looked at where none are named."""


@dataclass(frozen=True, slots=True)
class RankingSpec:
    """Checked options of an evaluation of rankings; attributes as in `RankingOptions`."""

    cutoffs: tuple[int, ...] = ()
    baseline: str | None = None
    pairs: tuple[tuple[str, str], ...] | None = None
    ties: Ties = "expected"
    trials: int = RANKING_TRIALS
    seed: int = 0
    alpha: float = 0.05
    confidence: float = 0.95
    samples: int | None = None
    sample_size: int | None = None

    @staticmethod
    def from_options(**options: Any) -> RankingSpec:
        """Return the specification from options after checking them; None stands for an option that is not given.

        Raises
        ------
        InputError
            A value is none of the choices, or out of its bounds.
        TypeError
            There is no such option.
        """
        values = {name: value for name, value in options.items() if value is not None}
        for name, value in values.items():
            if name not in RANKING_OPTIONS:
                raise TypeError(f"no option {name!r}; there are: {', '.join(RANKING_OPTIONS)}")
            RANKING_OPTIONS[name].check(name, value)
        if values.get("baseline") is not None and values.get("pairs"):
            raise InputError("baseline and pairs: both say what is compared; give one of them")
        if ("samples" in values) != ("sample_size" in values):
            raise InputError("samples and sample_size belong together: how many samples, and of how many candidates")
        n = values.pop("n", None)
        pairs = values.pop("pairs", None)
        return RankingSpec(
            cutoffs=tuple(convert_cutoffs(n)),
            pairs=None if pairs is None else tuple(map(tuple, pairs)),
            **values,
        )

    def list_cutoffs(self, n_candidates: int) -> tuple[int, ...]:
        """Return the cutoffs n for a list of `n_candidates` candidates."""
        if not self.cutoffs:
            return list_default_cutoffs(n_candidates)
        beyond = next((n for n in self.cutoffs if n > n_candidates), None)
        if beyond is not None:
            raise InputError(f"n = {beyond:,}: the list has {n_candidates:,} candidates")
        return self.cutoffs

    def list_pairs(self, measures: Sequence[str]) -> list[tuple[int, int]]:
        """Return the pairs of measures to compare, as indices."""
        indices = {name: k for k, name in enumerate(measures)}
        if self.baseline is not None:
            b = _get_measure_index(self.baseline, indices)
            return [(a, b) for a in indices.values() if a != b]
        if self.pairs is None:
            return list(combinations(range(len(measures)), 2))
        pairs = [(_get_measure_index(a, indices), _get_measure_index(b, indices)) for a, b in self.pairs]
        for (a, b), names in zip(pairs, self.pairs, strict=True):
            if a == b:
                raise InputError(f"pair {names[0]!r}, {names[1]!r}: a measure is not compared with itself")
        return list(dict.fromkeys(pairs))


def _get_measure_index(name: str, indices: dict[str, int]) -> int:
    if name not in indices:
        close = difflib.get_close_matches(name[:200], indices, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"no measure {name!r}; measures: {', '.join(indices)}{hint}")
    return indices[name]


def list_default_cutoffs(n_candidates: int) -> tuple[int, ...]:
    """Return the largest few of 1, 2, 5, 10, 20, ... that are smaller than the number of candidates.

    Examples
    --------
    >>> list_default_cutoffs(5102), list_default_cutoffs(8), list_default_cutoffs(1)
    ((50, 100, 200, 500, 1000, 2000, 5000), (1, 2, 5), (1,))
    """
    cutoffs = list(_iter_round_numbers(n_candidates))[-N_DEFAULT_CUTOFFS:]
    return tuple(cutoffs) or (1,)


def _iter_round_numbers(below: int) -> Iterator[int]:
    ten = 1
    while ten < below:
        yield from (n for n in (ten, 2 * ten, 5 * ten) if n < below)
        ten *= 10


def convert_cutoffs(n: int | Sequence[int] | str | None) -> list[int]:
    """Return cutoffs, given as a number, numbers or text, in ascending order; an empty list for None."""
    if isinstance(n, str):
        return parse_cutoffs(n)
    return sort_cutoffs([n] if isinstance(n, int) else n or ())


def parse_cutoffs(text: str) -> list[int]:
    """Parse cutoffs: numbers separated by commas, START:STOP:STEP ranges, or both.

    Examples
    --------
    >>> parse_cutoffs("50,100"), parse_cutoffs("10:30:10,100")
    ([50, 100], [10, 20, 30, 100])
    """
    return sort_cutoffs([n for part in text.split(",") for n in _parse_range(part.strip(), text)])


def _parse_range(part: str, text: str) -> Sequence[int]:
    numbers = part.split(":")
    if len(numbers) > 3 or not all(number.strip().isdecimal() for number in numbers):
        raise InputError(f"n = {text!r}: expected numbers as in 50,100,200, or START:STOP:STEP")
    if len(numbers) == 1:
        return [int(part)]
    start, stop, step = (*map(int, numbers), 1)[:3]
    if step < 1 or stop < start or (stop - start) // step >= MOST_CUTOFFS:
        raise InputError(f"n = {part!r}: expected START:STOP:STEP that rises, in at most {MOST_CUTOFFS:,} steps")
    return range(start, stop + 1, step)


def sort_cutoffs(numbers: Sequence[int]) -> list[int]:
    """Return the distinct cutoffs in ascending order."""
    cutoffs = sorted({int(n) for n in numbers})
    if cutoffs and cutoffs[0] < 1:
        raise InputError(f"n = {cutoffs[0]}: expected numbers of at least 1")
    if len(cutoffs) > MOST_CUTOFFS:
        raise InputError(f"n: {len(cutoffs):,} numbers, at most {MOST_CUTOFFS:,}")
    return cutoffs
