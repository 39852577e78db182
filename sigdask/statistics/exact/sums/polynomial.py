"""Count arrangements by their integer sum, as coefficients of the product of 1 + z**w over the sizes w.

Up to 62 units coefficients are numbers of 64 bits and the product is split into two of half as many
factors, which never meet: tails are made of the one and of the sums of the other. Beyond that the whole
product is one large integer whose slots of bits are the coefficients.

References
----------
Pagano & Tritchler 1983, JASA 78:435; Streitberg & Roehmel 1986, Statistical Software Newsletter 12:10.
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import cached_njit
from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import Check

MOST_UNITS = 62
"""So that 2**n is an integer of 64 bits."""

WORD = 64


def estimate_operations(steps: StepSizes) -> int:
    """Return the number of additions of coefficients."""
    if steps.n <= MOST_UNITS:
        return sum(_count_additions(half) + int(half.sum()) for half in _split_halves(steps))
    return _count_additions(steps.weights) * (steps.n // WORD + 1)


def estimate_bytes(steps: StepSizes) -> int:
    """Return the estimated memory in bytes."""
    if steps.n <= MOST_UNITS:
        return 8 * (steps.total + 2)
    return 3 * (steps.total + 1) * (steps.n + 1) // 8


def count_arrangements(steps: StepSizes, check: Check) -> tuple[int, int]:
    """Return how many arrangements reach each of the two thresholds."""
    if steps.n <= MOST_UNITS:
        return _count_in_words(steps, check)
    return _count_in_integer(steps, check)


def _split_halves(steps: StepSizes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return steps.weights[::2], steps.weights[1::2]


def _count_additions(weights: NDArray[np.int64]) -> int:
    return int(np.cumsum(weights.astype(np.float64)).sum())


def _count_in_words(steps: StepSizes, check: Check) -> tuple[int, int]:
    first, second = (_compute_coefficients(half, check) for half in _split_halves(steps))
    tails = np.cumsum(second[::-1])[::-1]
    reached, passed = (int(_sum_tail(first, tails, threshold)) for threshold in steps.thresholds)
    return reached, passed


def _compute_coefficients(weights: NDArray[np.int64], check: Check) -> NDArray[np.int64]:
    coefficients = np.zeros(int(weights.sum()) + 1, np.int64)
    coefficients[0] = 1
    reach = 0
    for w in weights.tolist():
        _multiply_factor(coefficients, reach, w)
        reach += w
        check()
    return coefficients


@cached_njit()
def _multiply_factor(coefficients, reach, w):
    """Multiply the polynomial of degree `reach` by 1 + z**w."""
    for x in range(reach, -1, -1):
        coefficients[x + w] += coefficients[x]


@cached_njit()
def _sum_tail(first, tails, threshold):
    """Return the sum of a product's coefficients from the threshold on: the sum of first[x] tails[threshold - x]."""
    total = 0
    for x in range(first.shape[0]):
        rest = max(threshold - x, 0)
        if rest < tails.shape[0]:
            total += first[x] * tails[rest]
    return total


def _count_in_integer(steps: StepSizes, check: Check) -> tuple[int, int]:
    bits = steps.n + 1
    product = 1
    for w in steps.weights.tolist():
        product += product << (w * bits)
        check()
    slot = (1 << bits) - 1
    reached, passed = (_sum_slots(product >> (max(x, 0) * bits), bits, slot) for x in steps.thresholds)
    return reached, passed


def _sum_slots(number: int, bits: int, slot: int) -> int:
    """Return the sum of the slots of `bits` bits in a large integer, by repeated halving; the sum must fit a slot."""
    while number > slot:
        half = (number.bit_length() // bits + 2) // 2 * bits
        number = (number & ((1 << half) - 1)) + (number >> half)
    return number
