"""Cuts: what covers the leaves of a column, and how a specialization changes it."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import Candidate, Cut, child_counts, interval_children, top
from anonymize.grid import from_step
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Node, from_nested
from tests.support import jobs
from tests.support.candidates import refined_at_random
from tests.support.examples import examples
from tests.support.tables import Case, cases

JOBS = from_nested({"Any": {"Blue": ["mason", "mover"], "White": ["clerk"]}}, "job", missing_leaf=False)
AGES = from_step(Decimal(0), Decimal(40), Decimal(10), "age")
SCHEMA = Schema((QidColumn("job", JOBS), QidColumn("age", AGES)), None, ("",))


def halves(cut: Cut, place: int = 0) -> Candidate:
    """The ages' node at ``place``, split after its first cell."""
    node = cut.nodes[1][place]
    return Candidate(1, node, interval_children(node, 1))


def test_the_top_is_one_node_for_each_column() -> None:
    cut = top(SCHEMA)
    assert [[SCHEMA.qid[i].label(node) for node in nodes] for i, nodes in enumerate(cut.nodes)] == [
        ["Any"],
        ["[0,40)"],
    ]
    assert not cut.is_refined(0)
    assert cut.positions(0).tolist() == [0, 0, 0]


def test_children_take_the_place_of_their_node() -> None:
    first = top(SCHEMA).specialized(halves(top(SCHEMA)))
    second = first.specialized(halves(first, 1))
    assert [SCHEMA.qid[1].label(node) for node in second.nodes[1]] == ["[0,10)", "[10,20)", "[20,40)"]
    assert second.positions(1).tolist() == [0, 1, 2, 2]
    assert second.is_refined(1)
    assert second.nodes[0] == top(SCHEMA).nodes[0]
    assert not second.is_refined(0)


def test_what_is_not_in_the_cut_cannot_be_specialized() -> None:
    candidate = halves(top(SCHEMA))
    with pytest.raises(ValueError, match="not in tuple"):
        top(SCHEMA).specialized(candidate).specialized(candidate)


@settings(deadline=None, max_examples=examples(40))
@given(case=cases(), data=st.data())
def test_every_cut_covers_every_leaf_once_in_the_order_of_first_ones(case: Case, data: st.DataObject) -> None:
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    cut, _, _ = refined_at_random(table, data)
    for number, column in enumerate(table.schema.qid):
        covered = [leaf for node in cut.nodes[number] for leaf in node.leaves]
        assert sorted(covered) == list(range(column.n_leaves))
        assert len(covered) == sum(node.n_leaves for node in cut.nodes[number])
        firsts = [node.first for node in cut.nodes[number]]
        assert firsts == sorted(min(node.leaves) for node in cut.nodes[number])
        positions = cut.positions(number)
        assert all(
            leaf in node.leaves for leaf, node in enumerate(cut.nodes[number][place] for place in positions)
        )


def test_candidates_are_in_the_order_of_columns_then_of_leaves() -> None:
    nodes = [Candidate(c, Node(first, 9), ()) for c, first in ((1, 0), (0, 4), (0, 2), (1, 3))]
    in_order = sorted(nodes, key=lambda c: c.order)
    assert [(c.column, c.node.first) for c in in_order] == [(0, 2), (0, 4), (1, 0), (1, 3)]


@given(st.integers(0, 50), st.integers(2, 50), st.data())
def test_the_children_of_an_interval_meet_at_the_split(first: int, size: int, data: st.DataObject) -> None:
    n_left = data.draw(st.integers(1, size - 1))
    left, right = interval_children(Node(first, first + size), n_left)
    assert (left.first, left.last) == (first, first + n_left)
    assert (right.first, right.last) == (first + n_left, first + size)


def test_counts_of_leaves_add_up_to_those_of_children() -> None:
    """Also where the children do not begin with the first leaf, nor end with the last."""
    counts = np.arange(12).reshape(6, 2)
    children = (Node(1, 2), Node(2, 5))
    assert child_counts(children, counts).tolist() == [[2, 3], [4 + 6 + 8, 5 + 7 + 9]]
    assert child_counts(children, counts[:, 0]).tolist() == [2, 18]
