"""Boxes by hand: where they are cut, in which order, and how they print."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from anonymize.errors import SchemaError
from anonymize.grid import from_cuts, from_step
from anonymize.kd.boxes import N_SLOTS, Boxes, Labels, PublicSplit, boundaries, depths, whole
from anonymize.kd.single import check_labels
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Taxonomy, from_nested
from anonymize.verification.boxes import box_test

TREE = from_nested(
    {"*": {"A": ["a", "b"], "only": {"B": ["c", "d", "e"]}, "F": ["f"]}}, "q", missing_leaf=True
)
GRID = from_step(Decimal(0), Decimal(10), Decimal(1), "n")


def schema_of(*values: object) -> Schema:
    return Schema(tuple(QidColumn(f"q{i}", v) for i, v in enumerate(values)), None, ("",))  # type: ignore[arg-type]


def cuts(values: object, first: int, last: int) -> list[int]:
    """Return the places where a run is cut, without places that are not there."""
    found = PublicSplit(schema_of(values)).candidates(Boxes(np.array([[first]]), np.array([[last]])))
    return [at for at in found.at[0, 0].tolist() if at]


def test_boundaries_of_a_taxonomy_lie_between_children_of_the_lowest_node() -> None:
    depth = depths(TREE)
    assert TREE.leaves == ("a", "b", "c", "d", "e", "f", "?")
    assert boundaries(depth, 0, 7).tolist() == [2, 5, 6]
    assert boundaries(depth, 0, 2).tolist() == [1]
    assert boundaries(depth, 2, 5).tolist() == [3, 4]
    assert boundaries(depth, 2, 6).tolist() == [5]
    assert boundaries(depth, 3, 5).tolist() == [4]
    assert boundaries(depth, 5, 6).tolist() == []


def test_cuts_are_the_nearest_places_to_halves_quarters_and_eighths() -> None:
    # 10 cells: 5; 2.5 and 7.5, the smaller of two; 1.25, 3.75, 6.25, 8.75.
    assert cuts(GRID, 0, 10) == [5, 2, 7, 1, 4, 6, 9]
    assert cuts(GRID, 3, 6) == [4, 5]  # 1.5: the smaller; then 0.75 and 2.25; nothing new at eighths
    assert cuts(GRID, 3, 5) == [4]
    assert cuts(GRID, 3, 4) == []
    # 7 leaves, boundaries 2, 5, 6: 3.5 is as far from 2 as from 5; 1.75, 5.25; 0.875, 2.625, 4.375, 6.125.
    assert cuts(TREE, 0, 7) == [2, 5, 6]
    assert cuts(TREE, 2, 5) == [3, 4]


def test_columns_come_by_the_share_that_a_box_covers_then_as_the_job_names_them() -> None:
    wide, narrow = (
        from_step(Decimal(0), Decimal(9), Decimal(1), "w"),
        from_cuts(Decimal(0), Decimal(9), (Decimal(5),), "n"),
    )
    split = PublicSplit(schema_of(narrow, wide, from_cuts(Decimal(0), Decimal(1), (), "one")))
    found = split.candidates(Boxes(np.array([[0, 0], [0, 0], [0, 0]]), np.array([[2, 2], [9, 5], [1, 1]])))
    assert found.order.tolist() == [[0, 1, 2], [0, 1, 2]]
    columns, at = found.columns, found.in_order(found.at)
    assert [(c, p) for c, p in zip(columns[0].tolist(), at[0].tolist(), strict=True) if p] == [
        (0, 1), (1, 4), (1, 2), (1, 7), (1, 1), (1, 3), (1, 6), (1, 8),
    ]  # fmt: skip
    other = split.candidates(Boxes(np.array([[0], [0], [0]]), np.array([[1], [2], [1]])))
    assert other.order.tolist() == [[1, 0, 2]]
    assert at.shape == (2, 3 * N_SLOTS)


def test_shares_are_compared_exactly() -> None:
    """1/3 of one column is 349,525 / 1,048,575 of another: column order decides; one leaf more, and it does not."""
    few = from_step(Decimal(0), Decimal(4), Decimal(1), "few")
    many = from_step(Decimal(0), Decimal(1 << 20), Decimal(1), "many")
    split = PublicSplit(schema_of(few, many))
    for width, first in ((349526, 0), (349527, 1), (349525, 0)):
        assert split.candidates(Boxes(np.array([[0], [0]]), np.array([[2], [width]]))).order[0, 0] == first


@pytest.mark.parametrize(
    ("first", "last", "label"),
    [
        (0, 7, "*"),
        (0, 2, "A"),
        (2, 5, "B"),  # also "only", which is not as deep
        (5, 6, "f"),  # also "F"
        (6, 7, "?"),
        (3, 5, "d|e"),
        (0, 5, "A|B"),
        (5, 7, "f|?"),
        (2, 7, "B|f|?"),
    ],
)
def test_boxes_print_as_nodes_or_siblings(first: int, last: int, label: str) -> None:
    assert Labels(QidColumn("q", TREE)).of(first, last) == label
    assert box_test(TREE)(label)


def test_nodes_with_one_label_print_with_an_asterisk_also_among_siblings() -> None:
    x, y = {"s": ["a", "b"], "t": ["c"]}, {"s": ["d", "e"], "u": ["f"]}
    tree = from_nested({"*": {"x": x, "y": y, "z": ["g"]}}, "q", missing_leaf=False)
    assert Labels(QidColumn("q", tree)).of(0, 2) == "s*"
    assert Labels(QidColumn("q", tree)).of(3, 5) == "s*"
    assert Labels(QidColumn("q", tree)).of(0, 6) == "x|y"


def test_intervals_print_as_ever() -> None:
    assert Labels(QidColumn("n", GRID)).of(3, 10) == "[3,10)"
    assert box_test(GRID)("[3,10)")


@pytest.mark.parametrize("label", ["a|c", "b|a", "A|f", "a|b|c", "B|", "|", "x", "A|B|f|?|", "d|", ""])
def test_what_is_no_run_of_siblings_is_no_box(label: str) -> None:
    assert not box_test(TREE)(label)


@pytest.mark.parametrize("label", ["[3,11)", "[3,3)", "3", "[0,1)|[1,2)"])
def test_what_is_no_interval_is_no_box(label: str) -> None:
    assert not box_test(GRID)(label)


def test_a_label_with_the_sign_between_siblings_is_refused() -> None:
    bad: Taxonomy = from_nested({"*": ["a", "b|c"]}, "q", missing_leaf=False)
    with pytest.raises(SchemaError, match="q1") as caught:
        check_labels(schema_of(TREE, bad).qid)
    assert "top-down" in caught.value.remedy
    check_labels(schema_of(TREE, GRID).qid)


def test_the_whole_is_every_leaf() -> None:
    boxes = whole(schema_of(TREE, GRID))
    assert (boxes.first.tolist(), boxes.last.tolist()) == ([[0], [0]], [[7], [10]])
