"""Marginals count every record once, whatever it lacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anonymize.synthetic.marginals import Axis, Marginal, leaf_marginals, pairs_of, score
from anonymize.table import coded_table
from tests.support.dp_tables import numeric, schema_of, table_of
from tests.support.synthetic import people, people_schema


def test_a_missing_number_is_a_leaf_of_its_own() -> None:
    schema = people_schema()
    assert [column.n_leaves for column in schema.qid] == [9, 5, 2, 4]
    assert schema.qid[0].root.last == 8  # no interval has it
    assert [marginal.shape for marginal in leaf_marginals(schema)] == [(9, 1), (5, 1), (2, 1), (4, 1)]


def test_counts_by_leaf() -> None:
    schema = people_schema()
    table = table_of(schema, [(8, 0, 1, 2, 1), (8, 0, 1, 2, 0), (0, 4, 0, 0, 1)])
    counts = [marginal.counts(table)[:, 0].tolist() for marginal in leaf_marginals(schema)]
    assert counts == [[1, 0, 0, 0, 0, 0, 0, 0, 2], [2, 0, 0, 0, 1], [1, 2], [1, 0, 2, 0]]


def test_equal_rows_count_by_their_weights() -> None:
    table = people()
    pair = Marginal((Axis(0, (0, 0, 0, 1, 1, 1, 2, 2, 3)), Axis(1, (0, 1, 0, 1, 0))), 2)
    assert len(table.collapsed().weights) < len(table.weights)
    assert (pair.counts(table) == pair.counts(table.collapsed())).all()
    assert pair.shape == (4, 2, 2)
    assert pair.size == 16


def test_a_missing_cell_is_told_from_the_last_one() -> None:
    """Rows with either are not joined, and the code has room."""
    schema = schema_of(replace(numeric("x", 256), missing_cell=True), numeric("y", 2))
    table = coded_table(schema, [np.array([255, 256, 255]), np.array([1, 0, 1])], np.array([0, 0, 0]), [])
    assert sorted(table.collapsed().weights.tolist()) == [1, 2]
    assert leaf_marginals(schema)[0].counts(table)[254:, 0].tolist() == [0, 2, 1]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_pairs_come_in_the_order_of_their_columns(n: int) -> None:
    pairs = pairs_of([Axis(i, (0, 1)) for i in range(n)], 3)
    assert [pair.columns for pair in pairs] == [(a, b) for a in range(n) for b in range(a + 1, n)]
    assert {pair.shape for pair in pairs} == {(2, 2, 3)}


def test_a_score_is_the_distance_less_the_penalty() -> None:
    assert score(np.array([[3, 0], [1, 5]]), np.array([[1, 1], [1, -2]]), 4) == 2 + 1 + 0 + 7 - 4
