"""Groups of rows as readers tell them apart: cells of cuts, and boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import Cut
from anonymize.grouping import NOWHERE, BoxesOfRows, boxes_of, grouping_of_cut
from anonymize.taxonomy import Node, from_nested
from tests.support.examples import examples

WIDTH = 12


def cut_boxes(
    draw: st.DrawFn, first: list[int], last: list[int], depth: int
) -> list[tuple[list[int], list[int]]]:
    column = draw(st.integers(0, len(first) - 1))
    if depth == 0 or last[column] - first[column] < 2:
        return [(first, last)]
    at = draw(st.integers(first[column] + 1, last[column] - 1))
    left, right = [*last], [*first]
    left[column] = right[column] = at
    return cut_boxes(draw, first, left, depth - 1) + cut_boxes(draw, right, last, depth - 1)


@st.composite
def boxes(draw: st.DrawFn) -> BoxesOfRows:
    """Boxes that cuts leave, in any order, some of them missing."""
    n_columns = draw(st.integers(1, 3))
    made = cut_boxes(draw, [0] * n_columns, [WIDTH] * n_columns, draw(st.integers(0, 4)))
    kept = draw(st.lists(st.sampled_from(range(len(made))), unique=True, min_size=1))
    first, last = (np.array([made[i][side] for i in kept]).T for side in (0, 1))
    return BoxesOfRows(first, last)


@settings(max_examples=examples(200))
@given(boxes(), st.integers(0, 1000))
def test_each_row_is_in_the_box_that_covers_it(made: BoxesOfRows, seed: int) -> None:
    qid = np.random.default_rng(seed).integers(0, WIDTH, (len(made.first), 40))
    found = boxes_of(made, list(qid))
    for row, box in zip(qid.T, found.tolist(), strict=True):
        inside = [
            i
            for i in range(made.first.shape[1])
            if all(made.first[:, i] <= row) and all(row < made.last[:, i])
        ]
        assert inside == ([] if box == NOWHERE else [box])


def test_boxes_that_no_cuts_leave_are_refused() -> None:
    """Four boxes around a fifth: no plane leaves all of them whole."""
    first = np.array([[0, 2, 1, 0, 1], [0, 0, 2, 1, 1]])
    last = np.array([[2, 3, 3, 1, 2], [1, 2, 3, 3, 2]])
    with pytest.raises(ValueError, match="no cuts leave"):
        boxes_of(BoxesOfRows(first, last), [np.arange(3), np.arange(3)])


def test_no_rows_are_in_no_box() -> None:
    assert (
        boxes_of(BoxesOfRows(np.array([[0]]), np.array([[3]])), [np.zeros(0, dtype=np.int64)]).tolist() == []
    )


def test_cells_are_the_nodes_of_a_cut() -> None:
    tree = from_nested({"*": {"x": ["a", "b"], "y": ["c"], "z": ["d"]}}, "t", missing_leaf=False)
    x, y, z = tree.child_nodes(tree.root)
    rest = tree.rest(tree.root, y)
    found = grouping_of_cut(Cut(((x, z), tuple(sorted((rest, y))), (Node(0, 2),))), [4, 4, 2])
    assert [cells.tolist() for cells in found.cells] == [[0, 0, NOWHERE, 1], [0, 0, 1, 0], [0, 0]]
