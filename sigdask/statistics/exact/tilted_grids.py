"""Quotients of two sums by the transform of a tilted distribution on a grid, as `tilted` does it for one sum.

The tilt follows the slope of the score where the most likely of the sums that reach the observed difference stand.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from sigdask.statistics.exact.classes import Integers
from sigdask.statistics.exact.grids import BLOCK, NANOSECONDS, StepGrid, log_p
from sigdask.statistics.exact.problems import QuotientProblem
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums.saddlepoint import log_cosh
from sigdask.statistics.exact.sums.tilted import CLAIMED, REACH
from sigdask.statistics.exact.ties import TieRule

Reals = NDArray[np.float64]

FEWEST_UNITS, MOST_UNITS = 63, 200_000
"""Fewer can be counted; of more the rounding of powers would be larger than what is claimed."""

NEGLIGIBLE = 1e-13
"""Share of p that unlikely places may have together."""

TURNS = 8
"""How often slope and place are found of each other."""


def is_smooth(problem: QuotientProblem) -> bool:
    """Whether the score is one that a tilt follows: of many units, and never 0/0."""
    reach = int(np.abs(problem.vectors[:, 1]).sum())
    return FEWEST_UNITS <= len(problem.vectors) <= MOST_UNITS and int(problem.totals[:, 1].sum()) > reach


def lengths(grid: StepGrid) -> tuple[int, int]:
    """Return the lengths of the transform."""
    widths, largest = grid.sizes[-1], np.abs(grid.kinds).max(axis=0)
    needed = np.minimum(REACH * np.sqrt(grid.variances[-1]) + 2 * largest + 64, widths + 1)
    first, second = (fft.next_fast_len(math.ceil(n)) for n in needed)
    return first, second + second % 2


def cost(problem: QuotientProblem) -> tuple[int, int]:
    """Return about how many nanoseconds it takes, and the bytes."""
    grid = StepGrid.of(problem.cells)
    first, second = lengths(grid)
    products = sum(m.bit_length() + 2 for m in grid.counts.tolist())
    return first * second * (5 * products + 2 * NANOSECONDS), 60 * first * second + 200 * BLOCK


def tails(problem: QuotientProblem, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return P(T >= |t|) and P(T > |t|), each between limits as claimed."""
    grid, decision = StepGrid.of(problem.cells), TieRule.of(problem)
    steps, counts = grid.kinds, grid.counts
    theta = _tilt(problem, grid, steps, counts, decision)
    n = lengths(grid)
    slopes = np.tanh(steps @ theta)
    mean = np.rint((grid.sizes[-1] + (counts * slopes) @ steps) / 2).astype(np.int64)
    around = fft.irfft2(_characteristic(grid, steps, counts, slopes, mean, n, check), n)
    log_mass = float(counts @ log_cosh(steps @ theta))
    expected = log_p(problem, decision)
    window = (bound[-1] for bound in grid.bounds(grid.widths(expected)))
    places = [_places(*one) for one in zip(*window, mean, n, strict=True)]
    sums = _sums(grid, decision, around, mean, places, theta, log_mass, expected + math.log(NEGLIGIBLE), check)
    reached, passed = (TailProbability(p * (1 - CLAIMED), min(p * (1 + CLAIMED), 1.0)) for p in sums)
    return reached, passed


def _tilt(problem: QuotientProblem, grid: StepGrid, steps: Integers, counts: Integers, decision: TieRule) -> Reals:
    """Return theta under which the mean of signed sums stands where the observed difference is just reached."""
    size = abs(decision.observed)
    middle = problem.totals.sum(axis=0) / 2
    at, theta = np.zeros(2), np.zeros(2)
    for _ in range(TURNS if size else 0):
        slope = _slope(middle, at, grid.basis)
        if not slope.any():
            break
        low, high = 0.0, 1.0 / float(np.abs(steps @ slope).max())
        while _difference(middle, _mean(steps, counts, high * slope), grid.basis) < size and high < 1e300:
            low, high = high, 2 * high
            if np.abs(high * (steps @ slope)).min(initial=np.inf) > 20:
                break
        for _ in range(60):
            between = 0.5 * (low + high)
            short = _difference(middle, _mean(steps, counts, between * slope), grid.basis) < size
            low, high = (between, high) if short else (low, between)
        theta = high * slope
        at = _mean(steps, counts, theta)
    return -theta if decision.negative else theta


def _mean(steps: Integers, counts: Integers, theta: Reals) -> Reals:
    return np.asarray((counts * np.tanh(steps @ theta)) @ steps, np.float64)


def _difference(middle: Reals, signed: Reals, basis: Integers) -> float:
    """Return the difference of two quotients whose sums are signed @ basis / 2 off their middle."""
    (n, d), (up, down) = middle, signed @ basis / 2
    if d - abs(down) <= 0:
        return math.inf
    return float((n + up) / (d + down) - (n - up) / (d - down))


def _slope(middle: Reals, signed: Reals, basis: Integers) -> Reals:
    """Return how that difference changes with the signed sums."""
    (n, d), (up, down) = middle, signed @ basis / 2
    if d - abs(down) <= 0:
        return np.zeros(2)
    across = 1 / (d + down) + 1 / (d - down)
    along = -(n + up) / (d + down) ** 2 - (n - up) / (d - down) ** 2
    return np.asarray(basis @ np.array([across, along]) / 2, np.float64)


def _characteristic(
    grid: StepGrid, steps: Integers, counts: Integers, slopes: Reals, mean: Integers, n: tuple[int, int], check: Check
) -> NDArray[np.complex128]:
    """Return the transform of the tilted distribution of places less their mean, shape (n[0], n[1] // 2 + 1)."""
    frequencies = np.arange(n[0]), np.arange(n[1] // 2 + 1)
    off = grid.sizes[-1] - 2 * mean
    found = np.multiply.outer(*(_turn(k * int(m), length) for k, m, length in zip(frequencies, off, n, strict=True)))
    for step, m, slope in zip(steps, counts.tolist(), slopes.tolist(), strict=True):
        one = np.multiply.outer(*(_turn(k * int(c), length) for k, c, length in zip(frequencies, step, n, strict=True)))
        one.imag *= slope
        _multiply(found, one, m)
        check()
    return found


def _turn(number: Integers, n: int) -> NDArray[np.complex128]:
    """Return exp(-i pi number / n)."""
    return np.asarray(np.exp(-1j * np.pi / n * (number % (2 * n))))


def _multiply(found: NDArray[np.complex128], one: NDArray[np.complex128], m: int) -> None:
    """Multiply by the m-th power, by squares."""
    while m:
        if m & 1:
            found *= one
        m >>= 1
        if m:
            one *= one


def _sums(
    grid: StepGrid,
    decision: TieRule,
    around: Reals,
    mean: Integers,
    places: list[Integers],
    theta: Reals,
    log_mass: float,
    least_of_interest: float,
    check: Check,
) -> tuple[float, float]:
    """Return the sums of what reaches |t| and of what passes it, of places that are likely enough to matter.

    Elsewhere there is rounding alone, which a tilt that points elsewhere would make large.
    """
    least = least_of_interest - math.log(len(places[0]) * len(places[1]))
    parts: tuple[list[float], list[float]] = ([], [])
    rows = max(BLOCK // len(places[1]), 1)
    for start in range(0, len(places[0]), rows):
        some = places[0][start : start + rows]
        own = np.take(np.take(around, some - mean[0], axis=0, mode="wrap"), places[1] - mean[1], axis=1, mode="wrap")
        signed = 2 * np.stack(np.meshgrid(some, places[1], indexing="ij"), axis=-1).reshape(-1, 2) - grid.sizes[-1]
        signed, chances = signed[inside := _bound(grid, signed) > least], own.ravel()[inside]
        shares = chances * np.exp(np.minimum(log_mass - signed @ theta, 700.0))
        reached, passed, _ = decision((grid.observed - signed) @ grid.basis // 2)
        parts[0].append(math.fsum(shares[reached]))
        parts[1].append(math.fsum(shares[passed]))
        check()
    return math.fsum(parts[0]), math.fsum(parts[1])


def _bound(grid: StepGrid, signed: Integers) -> Reals:
    """Return a bound of the logarithm of the probability of signed sums, which are sub-Gaussian."""
    kinds = grid.kinds.astype(np.float64)
    inverse = np.linalg.pinv((kinds * grid.counts[:, None]).T @ kinds)
    return np.asarray(-0.5 * ((signed @ inverse) * signed).sum(axis=1))


def _places(first: int, last: int, mean: int, n: int) -> Integers:
    """Return the places of a window that a transform of length n around the mean tells apart."""
    if n > last:
        return np.arange(first, last + 1)
    return np.arange(max(first, mean - n // 2), min(last, mean + (n - 1) // 2) + 1)
