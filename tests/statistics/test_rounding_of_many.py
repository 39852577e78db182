"""Tests of rounding towards one side, for numbers and arrays, against decimal arithmetic."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigdask.statistics.rounding import format_lower_limit, format_p, format_upper_limit, round_up


def round_decimally(value, digits, rounding):
    """Round the shortest decimal that is read as the value, as the package first did it."""
    exact = Decimal(repr(value))
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=rounding)
    return f"{float(rounded):.{digits}g}"


NEAR_TENS = st.builds(lambda k, up: math.nextafter(10.0**k, up), st.integers(-15, 15), st.sampled_from([0.0, math.inf]))


@given(st.floats(allow_nan=False, allow_infinity=False) | NEAR_TENS | NEAR_TENS.map(lambda x: -x), st.integers(1, 17))
@example(9.996, 3)
@example(-9.996, 3)
@example(0.1, 16)
@example(5e-324, 16)
def test_a_number_is_rounded_as_its_shortest_decimal_is(value, digits):
    if value == 0:
        return
    try:
        limits = round_decimally(value, digits, ROUND_CEILING), round_decimally(value, digits, ROUND_FLOOR)
    except InvalidOperation:  # beyond the digits of the decimal context
        return
    assert (format_upper_limit(value, digits), format_lower_limit(value, digits)) == limits


@pytest.mark.parametrize("digits", [1, 3, 6])
def test_many_p_are_rounded_up_as_one_is(digits):
    rng = np.random.default_rng(3)
    near = [math.nextafter(x, side) for k in range(16) for x in (10.0**-k, 3.05 * 10.0**-k) for side in (0, 1, x)]
    p = np.concatenate([
        10 ** rng.uniform(-20, 0, 4000), rng.random(4000), np.round(rng.random(2000), 4), 1 - 10 ** rng.uniform(-16, -1, 500),
        near, [0.0, 1.0, 5e-324, math.nan],
    ])  # fmt: skip
    rounded = round_up(p, digits)
    assert [format_p(x, digits=digits) for x in rounded.tolist()] == [format_p(x, digits=digits) for x in p.tolist()]
    small_p = p[(p > 1e-3) & (p <= 1)]
    assert len(np.unique(round_up(small_p, digits))) <= 3 * 9 * 10 ** (digits - 1) + 1
