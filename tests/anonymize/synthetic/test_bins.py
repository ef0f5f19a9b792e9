"""Bins of columns, and what pairs are expected to look like."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.synthetic.bins import bins_of, class_totals, expected, margin, penalty
from anonymize.synthetic.marginals import Axis, Marginal
from anonymize.synthetic.requirement import Design
from anonymize.table import QidColumn
from tests.support.dp_tables import categorical, numeric

FEW = replace(Design(), grid_bins=4, taxonomy_bins=4)


def bins(column: QidColumn, counts: list[int], theta: int, design: Design = FEW) -> tuple[int, ...]:
    return bins_of(0, column, np.array(counts), theta, design).bins


@pytest.mark.parametrize(
    ("counts", "theta", "found"),
    [
        ([5, 5, 5, 5], 5, (0, 1, 2, 3)),
        ([5, 5, 5, 5], 6, (0, 0, 1, 1)),
        ([5, 5, 5, 5], 21, (0, 0, 0, 0)),  # too few for θ: one bin
        ([0, 0, 0, 0], 1, (0, 0, 0, 0)),
        ([9, 1, 1, 9], 5, (0, 1, 1, 1)),  # 9 of 20 are a quarter at least; then 11 in three bins: 4 each
        ([4, 0, 0, 4], 4, (0, 1, 1, 1)),
        ([-3, 9, -9, 4], 4, (0, 0, 0, 0)),
        ([9, 9, 0, 1], 5, (0, 1, 1, 1)),  # what is left in the end joins the last bin
    ],
)
def test_neighbouring_cells_are_merged(counts: list[int], theta: int, found: tuple[int, ...]) -> None:
    assert bins(numeric("x", 4), counts, theta) == found


def test_there_are_no_more_bins_than_allowed() -> None:
    assert bins(numeric("x", 40), [10] * 40, 1) == tuple(np.repeat(range(4), 10).tolist())


def test_missing_cells_are_a_bin_of_their_own() -> None:
    column = replace(numeric("x", 4), missing_cell=True)
    assert bins(column, [5, 5, 5, 5, 0], 6) == (0, 0, 1, 1, 2)
    assert bins(column, [0, 0, 0, 0, 90], 6) == (0, 0, 0, 0, 1)


TREE = {"*": {"A": ["a1", "a2", "a3"], "B": ["b1", "b2"], "C": ["c1"]}}


@pytest.mark.parametrize(
    ("counts", "theta", "found"),
    [
        ([9, 9, 9, 9, 9, 9], 10, (0, 0, 0, 1, 1, 2)),
        ([9, 2, 3, 9, 9, 1], 5, (0, 1, 1, 2, 3, 4)),  # a2 and a3 together; c1 is left
        ([9, 2, 2, 1, 9, 1], 5, (0, 1, 1, 1, 2, 1)),  # a2, a3 and b1 go up, and meet c1
        ([1, 1, 1, 1, 1, 1], 9, (0, 0, 0, 0, 0, 0)),
        ([-4, 9, -4, 8, 0, 0], 5, (0, 1, 0, 2, 0, 0)),
    ],
)
def test_values_are_merged_in_their_node_then_further_up(
    counts: list[int], theta: int, found: tuple[int, ...]
) -> None:
    assert bins(categorical("c", TREE), counts, theta, Design()) == found


def test_a_taxonomy_of_many_values_has_few_bins() -> None:
    column = categorical("c", {"*": {f"g{i}": [f"v{i}{k}" for k in range(10)] for i in range(20)}})
    found = bins(column, [10 + i % 7 for i in range(200)], 1)
    assert max(found) < 4
    assert len(found) == 200


@given(st.lists(st.integers(-20, 60), min_size=6, max_size=6), st.integers(1, 80))
def test_bins_are_numbered_without_gaps(counts: list[int], theta: int) -> None:
    for column in (numeric("x", 6), categorical("c", TREE)):
        found = bins(column, counts, theta, Design())
        assert sorted(set(found)) == list(range(max(found) + 1))
        assert [found.index(number) for number in range(max(found) + 1)] == sorted(
            map(found.index, set(found))
        )


# ---- what is expected


def test_class_totals_weigh_columns_by_their_cells() -> None:
    one, other = np.array([[10, 0], [20, 6]]), np.array([[12, 1], [12, 1], [12, 1]])
    assert class_totals([one, other]).tolist() == [
        round((30 / 2 + 36 / 3) / (5 / 6)),
        round((6 / 2 + 3 / 3) / (5 / 6)),
    ]
    assert class_totals([np.array([[-5], [3]])]).tolist() == [0]


@given(
    st.lists(st.tuples(st.integers(-50, 90), st.integers(-50, 90)), min_size=1, max_size=7),
    st.integers(0, 200),
)
def test_margins_have_the_totals_and_nothing_negative(counts: list[tuple[int, int]], total: int) -> None:
    totals = np.array([total, 17])
    found = margin(np.array(counts), totals)
    assert found.min() >= 0
    assert found.sum(axis=0).tolist() == totals.tolist()


def test_margins_of_counts_that_agree_stay_as_they_are() -> None:
    counts = np.array([[3, 0], [4, 5]])
    assert (margin(counts, np.array([7, 5])) == counts).all()


def test_expected_is_the_product_rounded() -> None:
    one, other, totals = np.array([[6, 0], [4, 0]]), np.array([[5, 0], [2, 0], [3, 0]]), np.array([10, 0])
    found = expected(one, other, totals)
    assert found[:, :, 0].tolist() == [[3, 1, 2], [2, 1, 1]]
    assert not found[:, :, 1].any()


def test_the_penalty_is_the_scale_for_every_cell() -> None:
    pair = Marginal((Axis(0, (0, 1)), Axis(1, (0, 1, 2))), 2)
    assert penalty(pair, Fraction(2, 7)) == 42
