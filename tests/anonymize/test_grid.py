"""Numeric grids: cells, labels, edges."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.errors import SchemaError
from anonymize.grid import Grid, from_cuts, from_step
from anonymize.taxonomy import Node

D = Decimal


def test_a_step_that_does_not_divide_the_domain() -> None:
    grid = from_step(D(0), D(10), D(4), "x")
    assert grid.edges == (D(0), D(4), D(8), D(10))
    assert grid.label(grid.root) == "[0,10)"


@pytest.mark.parametrize(
    ("number", "text"),
    [("1E+2", "100"), ("1.500", "1.5"), ("0.0", "0"), ("-0.50", "-0.5"), ("100", "100"), ("1E-3", "0.001")],
)
def test_numbers_print_without_exponent_and_trailing_zeros(number: str, text: str) -> None:
    assert Grid((D(number), D("1E+9"))).edge_label(0) == text


def test_values_at_and_around_edges() -> None:
    grid = from_cuts(D("0.1"), D("0.5"), (D("0.2"), D("0.3")), "x")
    values = np.array([0.0999, 0.1, 0.19999, 0.2, 0.29999999999999999, 0.3, 0.4999, 0.5, np.nan, np.inf])
    assert grid.cells(values).tolist() == [-1, 0, 0, 1, 2, 2, 2, -1, -1, -1]


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True), st.floats(-60, 60))
def test_a_cell_holds_its_value(edges: list[int], value: float) -> None:
    edges.sort()
    grid = from_cuts(D(edges[0]), D(edges[-1]), tuple(map(D, edges[1:-1])), "x")
    (cell,) = grid.cells(np.array([value])).tolist()
    inside = [i for i in range(grid.n_cells) if edges[i] <= value < edges[i + 1]]
    assert inside == ([] if cell < 0 else [cell])


def test_interval_labels() -> None:
    assert from_step(D(17), D(91), D(1), "age").label(Node(3, 10)) == "[20,27)"


@pytest.mark.parametrize(
    "make",
    [
        lambda: from_step(D(1), D(1), D(1), "x"),
        lambda: from_step(D(2), D(1), D(1), "x"),
        lambda: from_step(D(0), D(1), D(0), "x"),
        lambda: from_step(D(0), D(1), D(-1), "x"),
        lambda: from_step(D(0), D(1), D("0.0000001"), "x"),
        lambda: from_cuts(D(0), D(1), (D(0),), "x"),
        lambda: from_cuts(D(0), D(1), (D(1),), "x"),
        lambda: from_cuts(D(0), D(9), (D(3), D(2)), "x"),
        lambda: from_cuts(D(0), D(9), (D(1), D("1.00000000000000000001")), "x"),
    ],
)
def test_senseless_grids_are_refused(make: object) -> None:
    with pytest.raises(SchemaError) as caught:
        make()  # type: ignore[operator]
    assert (caught.value.error_id, caught.value.column) == ("grid-invalid", "x")


@pytest.mark.parametrize(
    ("label", "ends"),
    [
        ("[0,10)", (0, 4)),
        ("[2.5,7.5)", (1, 3)),
        ("[7.5,10)", (3, 4)),
        ("[7.5,2.5)", None),
        ("[2.5,2.5)", None),
        ("[2.50,7.5)", None),
        ("[0,9)", None),
        ("[0,10]", None),
        ("0,10", None),
        ("[0,5,10)", None),
        ("", None),
    ],
)
def test_the_interval_that_prints_so(label: str, ends: tuple[int, int] | None) -> None:
    found = from_step(Decimal(0), Decimal(10), Decimal("2.5"), "x").interval(label)
    assert found == (None if ends is None else Node(*ends))


def test_a_grid_beyond_double_precision_is_refused_with_the_numbers() -> None:
    """From 2^53 on, not every integer is a double."""
    with pytest.raises(SchemaError) as caught:
        from_step(Decimal(9007199254740990), Decimal(9007199254741000), Decimal(1), "serial")
    assert caught.value.error_id == "grid-invalid"
    assert "9007199254740992 and 9007199254740993 are one number" in str(caught.value)
    assert "subtract a constant" in caught.value.remedy
    fine = from_step(Decimal(9007199254740990), Decimal(9007199254741000), Decimal(2), "serial")
    assert fine.n_cells == 5
