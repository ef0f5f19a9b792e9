"""Rows drawn from a model: within one row of what it expects, in the domains of the job, alike for the same seed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from anonymize.dp.noise import exact_noise
from anonymize.grid import from_cuts
from anonymize.synthetic.draw import assigned, drawn, drawn_leaves, rounded
from anonymize.synthetic.fit import Edge, Model, fitted
from anonymize.synthetic.marginals import Axis
from anonymize.synthetic.requirement import check_synthetic
from anonymize.synthetic.single import synthesize_single
from anonymize.table import QidColumn
from tests.support.dp_tables import categorical, numeric, schema_of
from tests.support.rng import SeededRng
from tests.support.synthetic import people, requirement, scripted


def a_model() -> Model:
    """x → c; y alone; three bins of x, the last one missing."""
    schema = schema_of(
        replace(numeric("x", 3), missing_cell=True), categorical("c", {"*": ["a", "b"]}), numeric("y", 2)
    )
    axes = (Axis(0, (0, 0, 1, 2)), Axis(1, (0, 1)), Axis(2, (0, 0)))
    table = np.array([[[30.0, 0.0], [0.0, 5.0]], [[10.0, 10.0], [0.0, 20.0]], [[0.0, 0.0], [10.0, 15.0]]])
    margins = (table.sum(axis=1), table.sum(axis=0), np.array([[50.0, 50.0]]))
    leaves = (np.array([0.8, 0.2, 1.0, 1.0]), np.ones(2), np.array([0.5, 0.5]))
    return Model(schema, axes, np.array([50.0, 50.0]), margins, (Edge((0, 1), table),), leaves)


def test_rows_are_as_the_model_expects() -> None:
    model = a_model()
    classes, (x, c, y) = drawn_leaves(model, SeededRng(1))
    assert np.bincount(classes).tolist() == [50, 50]
    bins = np.array(model.axes[0].bins)[x]
    found = np.zeros((3, 2, 2))
    np.add.at(found, (bins, c, classes), 1)
    assert np.abs(found - model.edges[0].table).max() <= 1
    assert abs((x == 0).sum() - 0.8 * 35) <= 1
    assert np.bincount(y).tolist() == [50, 50]


def test_the_forest_is_followed_in_any_direction() -> None:
    """Also where the second column of an edge stands above the first."""
    model = a_model()
    schema = replace(model.schema, qid=(model.schema.qid[1], model.schema.qid[2], model.schema.qid[0]))
    order = (1, 2, 0)
    turned = Model(
        schema,
        tuple(Axis(i, model.axes[of].bins) for i, of in enumerate(order)),
        model.totals,
        tuple(model.margins[of] for of in order),
        (Edge((0, 2), model.edges[0].table.transpose(1, 0, 2)),),
        tuple(model.leaves[of] for of in order),
    )
    classes, (c, _, x) = drawn_leaves(turned, SeededRng(2))
    found = np.zeros((3, 2, 2))
    np.add.at(found, (np.array(turned.axes[2].bins)[x], c, classes), 1)
    assert np.abs(found - model.edges[0].table).max() <= 1


def test_chains_hold_together() -> None:
    """a = b = c by edges in an order in which the middle one comes last."""
    schema = schema_of(*(categorical(name, {"*": ["0", "1"]}) for name in "abc"), classes=("",))
    same, axes = np.diag([30.0, 10.0])[:, :, None], tuple(Axis(i, (0, 1)) for i in range(3))
    edges = (Edge((1, 2), same), Edge((0, 2), same))
    model = Model(schema, axes, np.array([40.0]), (same.sum(axis=1),) * 3, edges, (np.ones(2),) * 3)
    _, (a, b, c) = drawn_leaves(model, SeededRng(3))
    assert (a == b).all()
    assert (b == c).all()
    assert a.sum() == 10


def test_what_is_written() -> None:
    table = drawn(a_model(), SeededRng(4))
    assert list(table.columns) == ["x", "c", "y", "cls"]
    assert table.n_rows == 100
    texts = {name: np.array(column.labels)[column.codes] for name, column in table.columns.items()}
    assert set(texts["x"].tolist()) == {"0", "1", "2", ""}
    assert set(texts["c"].tolist()) == {"a", "b"}
    assert set(texts["cls"].tolist()) == {"Y", "N"}
    assert not (texts["x"] == "")[texts["c"] == "a"].any()


def test_numbers_are_uniform_in_their_cell_and_of_the_edges_precision() -> None:
    edges = from_cuts(Decimal("-1"), Decimal("10.0"), (Decimal("0.5"), Decimal("2")), "x")
    schema = schema_of(QidColumn("x", edges), classes=("",))
    margin = np.array([[150.0], [150.0], [800.0]])
    model = Model(schema, (Axis(0, (0, 1, 2)),), np.array([1100.0]), (margin,), (), (np.ones(3),))
    column = drawn(model, SeededRng(5)).columns["x"]
    numbers = np.array([float(text) for text in column.labels])[column.codes]
    assert set(column.labels) <= {str(Decimal(k).scaleb(-1)).removesuffix(".0") for k in range(-10, 100)}
    assert "0" in column.labels
    assert np.histogram(numbers, [-1, 0.5, 2, 10])[0].tolist() == [150, 150, 800]
    assert len(column.labels) == 110


@pytest.mark.parametrize(
    "edges",
    ["-1e15 999999999999999 1e15", "0 0.000000000000001 1", "-1 0 0.999999999999999 1", "1e14 5e14 1e15"],
)
def test_numbers_of_the_most_digits_are_read_in_the_cell_they_were_drawn_in(edges: str) -> None:
    low, *cuts, high = map(Decimal, edges.split())
    grid = from_cuts(low, high, tuple(cuts), "x")
    schema = schema_of(QidColumn("x", grid), classes=("",))
    check_synthetic(schema, requirement(0))
    n = grid.n_cells
    margin = np.full((n, 1), 500.0)
    model = Model(schema, (Axis(0, tuple(range(n))),), np.array([500.0 * n]), (margin,), (), (np.ones(n),))
    column = drawn(model, SeededRng(5)).columns["x"]
    assert all(low <= Decimal(text) < high for text in column.labels)
    cells = grid.cells(np.array([float(text) for text in column.labels]))[column.codes]
    assert np.bincount(cells).tolist() == [500] * n


def test_the_same_seed_draws_the_same_table() -> None:
    outcome = synthesize_single(people(), requirement(2), exact_noise(SeededRng(6)))
    model = fitted(outcome.schema, outcome.opened)
    one, two, other = (drawn(model, SeededRng(seed)) for seed in (1, 1, 2))
    assert all((one.columns[name].codes == two.columns[name].codes).all() for name in one.columns)
    assert any((one.columns[name].codes != other.columns[name].codes).any() for name in one.columns)


def test_a_table_of_nothing_has_no_rows() -> None:
    outcome, _ = scripted(people(n=0), requirement(2))
    table = drawn(fitted(outcome.schema, outcome.opened), SeededRng(7))
    assert table.n_rows == 0


def test_rows_of_dependent_columns_stay_dependent() -> None:
    """From a run with little noise: job by age, as in the data."""
    outcome = synthesize_single(people(n=3000), requirement(1, epsilon="20"), exact_noise(SeededRng(8)))
    assert outcome.opened.pairs[0].marginal.columns == (0, 1)
    _, (age, job, _, _) = drawn_leaves(fitted(outcome.schema, outcome.opened), SeededRng(9))
    known = age < 8
    assert (job == (age // 2) % 5)[known].mean() > 0.75


# ---- rounding


@pytest.mark.parametrize("offset", [0.0, 0.3, 0.999])
def test_rounded_counts_are_within_one_and_add_up(offset: float) -> None:
    rng = np.random.default_rng(10)
    for total in (0, 1, 7, 1000):
        weights = rng.random(9) * (rng.random(9) < 0.7)
        found = rounded(weights, total, offset)
        assert found.sum() == total
        assert found.min() >= 0
        assert np.abs(found - total * weights / weights.sum()).max() < 1 + 1e-9
    assert rounded(np.zeros(4), 6, 0.5).sum() == 6


def test_rounding_favours_nobody() -> None:
    """The mean over all offsets is the exact share."""
    weights, n = np.array([1.0, 2.0, 4.0]), 700
    mean = sum(rounded(weights, 10, k / n) for k in range(n)) / n
    assert np.abs(mean - 10 * weights / 7).max() < 0.01


def test_groups_get_their_own_shares() -> None:
    groups = np.array([2, 0, 2, 0, 2, 2])
    values = assigned(groups, np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), SeededRng(11))
    assert values[groups == 0].tolist() == [1, 1]
    assert sorted(values[groups == 2].tolist()) == [0, 0, 1, 1]


def test_fractions_of_rows_are_rounded_in_the_total() -> None:
    model = a_model()
    half = replace(model, totals=model.totals + 0.25)
    assert len(drawn_leaves(half, SeededRng(12))[0]) == round(Fraction(201, 2))
