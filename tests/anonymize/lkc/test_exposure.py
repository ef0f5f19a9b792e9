"""Homogeneous cells: counted literally, and on cells made by hand."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.lkc.exposure import measure_exposure
from anonymize.verification.tables import Bound
from tests.support.examples import examples
from tests.support.releases import Rows, release_of

BOUNDS = [Bound("s", frozenset("x"), Fraction(1, 2)), Bound("t", frozenset("uv"), Fraction(1))]


def test_each_kind_of_cell() -> None:
    rows = [
        *[("a", "Y", "x", "u"), ("a", "Y", "y", "v")],  # nothing to see: half is not above C
        *[("a", "N", "x", "u"), ("a", "N", "x", "v"), ("a", "N", "y", "v")],  # x above C
        *[("b", "Y", "y", "u"), ("b", "Y", "y", "v")],  # one value of s, not a protected one
        ("b", "N", "z", "w"),  # alone
    ]
    found = measure_exposure(release_of(["q", "c", "s", "t"], rows), ["q", "c"], BOUNDS)
    assert (found.cells, found.alone, found.homogeneous) == (4, 1, 6)
    assert found.one_value == {"s": 3, "t": 1}
    assert found.above_c == {"s": 3, "t": 0}


def test_no_sensitive_column_leaves_cells_of_one() -> None:
    found = measure_exposure(release_of(["q"], [("a",), ("a",), ("b",)]), ["q"], [])
    assert (found.cells, found.alone, found.homogeneous) == (2, 1, 1)
    assert found.one_value == found.above_c == {}


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(*(st.sampled_from(v) for v in ("ab", "cd", "YN", "xyz", "uvw"))), min_size=1))
def test_is_the_count_taken_literally(rows: Rows) -> None:
    cells: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        cells.setdefault(row[:3], []).append(row)
    one_value, above_c, homogeneous = Counter[str](), Counter[str](), 0
    for cell in cells.values():
        told = len(cell) == 1
        for i, bound in enumerate(BOUNDS):
            counts = Counter(row[3 + i] for row in cell)
            one = len(counts) == 1
            above = any(Fraction(counts[v], len(cell)) > bound.confidence for v in bound.values)
            one_value[bound.column] += len(cell) * one
            above_c[bound.column] += len(cell) * above
            told |= one or above
        homogeneous += len(cell) * told
    found = measure_exposure(release_of(["p", "q", "c", "s", "t"], rows), ["p", "q", "c"], BOUNDS)
    assert found.cells == len(cells)
    assert found.alone == sum(len(cell) == 1 for cell in cells.values())
    assert (found.one_value, found.above_c) == (dict(one_value), dict(above_c))
    assert found.homogeneous == homogeneous
