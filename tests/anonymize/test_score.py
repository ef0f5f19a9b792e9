"""The integer scores against the formula of semantics §3.4 and against real logarithms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.score import LOG_TABLE, Merit, best_option, f_score, impurity
from anonymize.scores.groups import Groups
from anonymize.scores.infogain import InfoGain
from anonymize.table import Ints
from tests.support import reference
from tests.support.scores import PUBLISHED

LIMIT = 2**31 - 1


def test_f_is_the_formula_for_all_small_arguments() -> None:
    x = np.arange(1 << 16)
    assert f_score(x).tolist() == [reference.f(int(v)) for v in x]


@given(st.integers(0, LIMIT))
def test_f_is_the_formula(x: int) -> None:
    value = int(f_score(np.array([x]))[0])
    assert value == reference.f(x)
    assert value < 2**56
    if x > 1:
        assert abs(value - x * math.log2(x) * 2**20) <= 3e-6 * x * 2**20


def test_f_at_the_edges() -> None:
    edges = [0, 1, 2, 3, LIMIT, LIMIT - 1] + [2**k + d for k in range(2, 31) for d in (-1, 0, 1)]
    assert f_score(np.array(edges)).tolist() == [reference.f(x) for x in edges]


def test_the_table_is_rounded_correctly() -> None:
    """In exact integers: T = round(2**20 · log2 q) says that q**(2**21) lies between powers of two."""
    for j in range(0, 513, 8):
        t, q = int(LOG_TABLE[j]), 512 + j
        scaled = q ** (2**13)  # log2 of it, over 2**13, to far more digits than needed
        bits = scaled.bit_length()
        low, high = (bits - 1) / 2**13 - 9, bits / 2**13 - 9
        assert low * 2**20 - 129 <= t <= high * 2**20 + 129


def best_split(cells: Ints, merit: Merit) -> int | None:
    """The number of cells on the left of the best grid point."""
    found = best_option(cells.cumsum(axis=0)[:-1], cells.sum(axis=0), merit)
    return None if found is None else found + 1


@given(st.lists(st.lists(st.integers(0, 1000), min_size=2, max_size=2), min_size=1, max_size=12))
def test_best_split_is_the_best(cells: list[list[int]]) -> None:
    counts = np.array(cells)
    options = {}
    for i in range(1, len(cells)):
        left, right = counts[:i].sum(axis=0), counts[i:].sum(axis=0)
        if left.sum() and right.sum():
            options[i] = (
                int(impurity(counts.sum(axis=0)) - impurity(left) - impurity(right)),
                int(left.sum()) ** 2 + int(right.sum()) ** 2,
            )
    if not options:
        assert best_split(counts, InfoGain().merit) is None
        assert best_split(counts, Groups().merit) is None
        return
    assert best_split(counts, InfoGain().merit) == min(options, key=lambda i: (-options[i][0], i))
    assert best_split(counts, Groups().merit) == min(options, key=lambda i: (options[i][1], i))


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_split_sums_do_not_overflow(goal: str) -> None:
    half = LIMIT // 2
    assert best_split(np.array([[half, 0], [0, half]]), PUBLISHED[goal].merit) == 1
