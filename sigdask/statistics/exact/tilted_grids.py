"""P-values of quotients of two sums, by the Fourier transform of a tilted distribution on a grid.

The tilt follows the slope of the score at the most likely sums that reach the observed difference.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from sigdask.statistics.exact.classes import Integers
from sigdask.statistics.exact.problems import QuotientProblem
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.step_grids import BLOCK, NANOSECONDS_PER_CELL, StepGrid, estimate_log_p
from sigdask.statistics.exact.sums.saddlepoint import log_cosh
from sigdask.statistics.exact.sums.tilted import CLAIMED, REACH
from sigdask.statistics.exact.ties import TieRule

Reals = NDArray[np.float64]

FEWEST_UNITS, MOST_UNITS = 63, 200_000
"""Fewer can be counted; of more the rounding of powers would be larger than what is claimed."""

NEGLIGIBLE_SHARE = 1e-13
"""Share of p that unlikely places may have together."""

N_ITERATIONS = 8
"""How often slope and place are found of each other."""


def is_smooth(problem: QuotientProblem) -> bool:
    """Return whether the method applies: the number of units is suitable and no score can be 0/0."""
    reach = int(np.abs(problem.vectors[:, 1]).sum())
    return FEWEST_UNITS <= len(problem.vectors) <= MOST_UNITS and int(problem.totals[:, 1].sum()) > reach


def compute_lengths(grid: StepGrid) -> tuple[int, int]:
    """Return the transform's length in both directions."""
    widths, largest = grid.sizes[-1], np.abs(grid.kinds).max(axis=0)
    needed = np.minimum(REACH * np.sqrt(grid.variances[-1]) + 2 * largest + 64, widths + 1)
    first, second = (fft.next_fast_len(math.ceil(n)) for n in needed)
    return first, second + second % 2


def estimate_cost(problem: QuotientProblem) -> tuple[int, int]:
    """Return the estimated nanoseconds and bytes."""
    grid = StepGrid.from_cells(problem.cells)
    first, second = compute_lengths(grid)
    products = sum(m.bit_length() + 2 for m in grid.counts.tolist())
    return first * second * (5 * products + 2 * NANOSECONDS_PER_CELL), 60 * first * second + 200 * BLOCK


def compute_tails(problem: QuotientProblem, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(T >= |t|) and P(T > |t|), as wide as the claimed relative error."""
    grid, decision = StepGrid.from_cells(problem.cells), TieRule.from_problem(problem)
    steps, counts = grid.kinds, grid.counts
    theta = _find_tilt(problem, grid, steps, counts, decision)
    n = compute_lengths(grid)
    slopes = np.tanh(steps @ theta)
    mean = np.rint((grid.sizes[-1] + (counts * slopes) @ steps) / 2).astype(np.int64)
    probabilities = fft.irfft2(_compute_characteristic(grid, steps, counts, slopes, mean, n, check), n)
    log_mass = float(counts @ log_cosh(steps @ theta))
    expected = estimate_log_p(problem, decision)
    window = (bound[-1] for bound in grid.compute_bounds(grid.compute_widths(expected)))
    windows = [_list_window(*limits) for limits in zip(*window, mean, n, strict=True)]
    sums = _sum_tails(
        grid, decision, probabilities, mean, windows, theta, log_mass, expected + math.log(NEGLIGIBLE_SHARE), check
    )
    reached, passed = (TailProbability(p * (1 - CLAIMED), min(p * (1 + CLAIMED), 1.0)) for p in sums)
    return reached, passed


def _find_tilt(problem: QuotientProblem, grid: StepGrid, steps: Integers, counts: Integers, decision: TieRule) -> Reals:
    """Return the tilt theta under which the mean of the signed sums just gives the observed difference."""
    size = abs(decision.observed)
    middle = problem.totals.sum(axis=0) / 2
    signed_mean, theta = np.zeros(2), np.zeros(2)
    for _ in range(N_ITERATIONS if size else 0):
        slope = _compute_slope(middle, signed_mean, grid.basis)
        if not slope.any():
            break
        low, high = 0.0, 1.0 / float(np.abs(steps @ slope).max())
        while (
            _compute_difference(middle, _compute_mean(steps, counts, high * slope), grid.basis) < size and high < 1e300
        ):
            low, high = high, 2 * high
            if np.abs(high * (steps @ slope)).min(initial=np.inf) > 20:
                break
        for _ in range(60):
            between = 0.5 * (low + high)
            short = _compute_difference(middle, _compute_mean(steps, counts, between * slope), grid.basis) < size
            low, high = (between, high) if short else (low, between)
        theta = high * slope
        signed_mean = _compute_mean(steps, counts, theta)
    return -theta if decision.is_negative else theta


def _compute_mean(steps: Integers, counts: Integers, theta: Reals) -> Reals:
    return np.asarray((counts * np.tanh(steps @ theta)) @ steps, np.float64)


def _compute_difference(middle: Reals, signed: Reals, basis: Integers) -> float:
    """Return the difference of two quotients whose sums lie signed @ basis / 2 above and below `middle`."""
    (n, d), (up, down) = middle, signed @ basis / 2
    if d - abs(down) <= 0:
        return math.inf
    return float((n + up) / (d + down) - (n - up) / (d - down))


def _compute_slope(middle: Reals, signed: Reals, basis: Integers) -> Reals:
    """Return the gradient of the difference of the two quotients with respect to the signed sums."""
    (n, d), (up, down) = middle, signed @ basis / 2
    if d - abs(down) <= 0:
        return np.zeros(2)
    across = 1 / (d + down) + 1 / (d - down)
    along = -(n + up) / (d + down) ** 2 - (n - up) / (d - down) ** 2
    return np.asarray(basis @ np.array([across, along]) / 2, np.float64)


def _compute_characteristic(
    grid: StepGrid, steps: Integers, counts: Integers, slopes: Reals, mean: Integers, n: tuple[int, int], check: Check
) -> NDArray[np.complex128]:
    """Return the Fourier transform of the tilted, centred distribution of sums, shape (n[0], n[1] // 2 + 1)."""
    frequencies = np.arange(n[0]), np.arange(n[1] // 2 + 1)
    off = grid.sizes[-1] - 2 * mean
    transform = np.multiply.outer(
        *(_compute_phase(k * int(m), length) for k, m, length in zip(frequencies, off, n, strict=True))
    )
    for step, m, slope in zip(steps, counts.tolist(), slopes.tolist(), strict=True):
        factor = np.multiply.outer(
            *(_compute_phase(k * int(c), length) for k, c, length in zip(frequencies, step, n, strict=True))
        )
        factor.imag *= slope
        _multiply_power(transform, factor, m)
        check()
    return transform


def _compute_phase(number: Integers, n: int) -> NDArray[np.complex128]:
    """Return the phases exp(-i pi number / n) of the Fourier transform that gives the distribution of sums."""
    return np.asarray(np.exp(-1j * np.pi / n * (number % (2 * n))))


def _multiply_power(transform: NDArray[np.complex128], factor: NDArray[np.complex128], m: int) -> None:
    """Multiply `transform` in place by the m-th power of `factor`, which is squared repeatedly in place."""
    while m:
        if m & 1:
            transform *= factor
        m >>= 1
        if m:
            factor *= factor


def _sum_tails(
    grid: StepGrid,
    decision: TieRule,
    probabilities: Reals,
    mean: Integers,
    windows: list[Integers],
    theta: Reals,
    log_mass: float,
    min_log_p: float,
    check: Check,
) -> tuple[float, float]:
    """Return the total probability of grid points whose difference is at least |t|, and of points with a larger one.

    Very unlikely grid points are left out: there the transform holds rounding errors alone, which undoing the tilt
    could enlarge.
    """
    log_threshold = min_log_p - math.log(len(windows[0]) * len(windows[1]))
    parts: tuple[list[float], list[float]] = ([], [])
    rows = max(BLOCK // len(windows[1]), 1)
    for start in range(0, len(windows[0]), rows):
        chunk = windows[0][start : start + rows]
        block = np.take(
            np.take(probabilities, chunk - mean[0], axis=0, mode="wrap"), windows[1] - mean[1], axis=1, mode="wrap"
        )
        signed = 2 * np.stack(np.meshgrid(chunk, windows[1], indexing="ij"), axis=-1).reshape(-1, 2) - grid.sizes[-1]
        signed, chances = signed[inside := _bound_log_p(grid, signed) > log_threshold], block.ravel()[inside]
        shares = chances * np.exp(np.minimum(log_mass - signed @ theta, 700.0))
        reached, passed, _ = decision((grid.observed - signed) @ grid.basis // 2)
        parts[0].append(math.fsum(shares[reached]))
        parts[1].append(math.fsum(shares[passed]))
        check()
    return math.fsum(parts[0]), math.fsum(parts[1])


def _bound_log_p(grid: StepGrid, signed: Integers) -> Reals:
    """Return an upper bound on the log probability of each of some signed sums, which are sub-Gaussian."""
    kinds = grid.kinds.astype(np.float64)
    inverse = np.linalg.pinv((kinds * grid.counts[:, None]).T @ kinds)
    return np.asarray(-0.5 * ((signed @ inverse) * signed).sum(axis=1))


def _list_window(first: int, last: int, mean: int, n: int) -> Integers:
    """Return the grid points of a window that a transform of length n around the mean can tell apart."""
    if n > last:
        return np.arange(first, last + 1)
    return np.arange(max(first, mean - n // 2), min(last, mean + (n - 1) // 2) + 1)
