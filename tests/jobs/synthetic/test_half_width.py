"""95 of 100 counts are off by no more than `half_width_95`."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.synthetic.report import half_width
from tests.support.examples import examples


def outside(rate: float, width: int) -> float:
    """Return the chance of noise beyond a width, summed term by term."""
    each = (1 - math.exp(-rate)) / (1 + math.exp(-rate))
    return 1 - sum(each * math.exp(-rate * abs(k)) for k in range(-width, width + 1))


@pytest.mark.parametrize(("scale", "width"), [(0.660066, 2), (0.282885, 1), (0.2, 0)])
def test_small_scales(scale: float, width: int) -> None:
    assert half_width(1 / scale) == width


@settings(max_examples=examples(200))
@given(st.floats(0.01, 20))
def test_the_least_that_holds(rate: float) -> None:
    width = half_width(rate)
    assert outside(rate, width) <= 0.05 + 1e-9
    assert width == 0 or outside(rate, width - 1) > 0.05 - 1e-9
