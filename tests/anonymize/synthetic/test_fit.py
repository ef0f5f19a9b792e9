"""The model: a function of what was opened; exact where there is no noise; never negative, always consistent."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import anonymize.synthetic
from anonymize.dp.noise import exact_noise
from anonymize.synthetic.draw import drawn_leaves
from anonymize.synthetic.fit import Estimate, Model, added_up, fitted, onto_simplex, raked, shrunk
from anonymize.synthetic.marginals import Axis, Marginal, pairs_of
from anonymize.synthetic.opened import Measured, Opened
from anonymize.synthetic.single import synthesize_single
from anonymize.table import CodedTable, Ints, Schema
from tests.support.dp_tables import schema_of
from tests.support.rng import SeededRng
from tests.support.synthetic import people, people_schema, requirement
from tests.support.vectors import Golden

EXACT = Fraction(10**12)
"""A rate with which there is no noise to speak of."""
PAIRS = ((0, 1), (1, 3))


def opened(
    schema: Schema,
    counts: dict[str, list[Ints]],
    rate: Fraction = EXACT,
    pairs: tuple[tuple[int, int], ...] = PAIRS,
) -> Opened:
    """Made-up openings, every leaf a bin."""
    axes = [Axis(i, tuple(range(column.n_leaves))) for i, column in enumerate(schema.qid)]
    n = schema.n_classes
    of_pairs = {pair.columns: pair for pair in pairs_of(axes, n)}
    marginals = {
        "leaves": [Marginal((axis,), 1) for axis in axes],
        "bins": [Marginal((axis,), n) for axis in axes],
        "pairs": [of_pairs[pair] for pair in pairs],
    }
    found = {
        step: tuple(Measured(m, c.reshape(m.shape), rate) for m, c in zip(of_step, counts[step], strict=True))
        for step, of_step in marginals.items()
    }
    return Opened(**found)


def exactly(table: CodedTable, pairs: tuple[tuple[int, int], ...] = PAIRS) -> Opened:
    """A table's own counts."""
    zeros = opened(
        table.schema, _sized(table.schema, lambda n: np.zeros(n, dtype=np.int64), pairs), EXACT, pairs
    )
    return Opened(
        *(
            tuple(replace(m, counts=m.marginal.counts(table)) for m in getattr(zeros, step))
            for step in ("leaves", "bins", "pairs")
        )
    )


def _sized(schema: Schema, make, pairs: tuple[tuple[int, int], ...] = PAIRS) -> dict[str, list[Ints]]:  # type: ignore[no-untyped-def]
    sizes = [column.n_leaves for column in schema.qid]
    return {
        "leaves": [make(n) for n in sizes],
        "bins": [make(n * schema.n_classes) for n in sizes],
        "pairs": [make(sizes[a] * sizes[b] * schema.n_classes) for a, b in pairs],
    }


def check(model: Model) -> None:
    """Nothing is negative; all margins have the totals; every edge has the margins."""
    for margin in model.margins:
        assert margin.min() >= 0
        assert np.allclose(margin.sum(axis=0), model.totals, atol=1e-6)
    for edge in model.edges:
        one, other = (model.margins[column] for column in edge.columns)
        assert edge.table.min() >= 0
        assert np.allclose(edge.table.sum(axis=0), other, atol=1e-6)
        assert np.abs(edge.table.sum(axis=1) - one).max() <= 1e-6 + 1e-3 * model.totals.sum()
    for axis, shares in zip(model.axes, model.leaves, strict=True):
        assert shares.min() >= 0
        assert np.allclose(np.bincount(axis.bins, weights=shares), 1)


def test_without_noise_the_model_has_the_tables_of_the_data() -> None:
    table = people(n=500)
    given = exactly(table)
    model = fitted(table.schema, given)
    check(model)
    for margin, measured in zip(model.margins, given.bins, strict=True):
        assert np.abs(margin - measured.counts).max() < 1e-9
    for edge, pair in zip(model.edges, given.pairs, strict=True):
        assert np.abs(edge.table - pair.counts).max() < 1e-9
    assert np.abs(model.totals - table.class_histogram(0).sum(axis=0)).max() < 1e-9


@pytest.mark.parametrize("edges", [0, 1, 3])
@pytest.mark.parametrize("epsilon", ["1/100", "1/2", "20"])
def test_noise_leaves_a_consistent_model(edges: int, epsilon: str) -> None:
    for seed in range(3):
        outcome = synthesize_single(people(seed), requirement(edges, epsilon), exact_noise(SeededRng(seed)))
        model = fitted(outcome.schema, outcome.opened)
        check(model)
        assert len(model.edges) == edges


@pytest.mark.parametrize("value", [-40, 0, 3, 10**9])
def test_forged_openings_make_a_model_too(value: int) -> None:
    """All negative, all zero, all alike: whatever a file says."""
    schema = people_schema()
    for rate in (EXACT, Fraction(1, 50)):
        counts = _sized(schema, lambda n: np.full(n, value, dtype=np.int64))
        model = fitted(schema, opened(schema, counts, rate))
        check(model)
        assert (model.totals.sum() == 0) == (value <= 0)


def test_one_bin_and_one_class() -> None:
    schema = schema_of(*people_schema().qid[:2], classes=("",))
    rng = np.random.default_rng(3)
    counts = _sized(schema, lambda n: rng.integers(-9, 90, n), ((0, 1),))
    given = opened(schema, counts, Fraction(1, 10), ((0, 1),))
    check(fitted(schema, given))
    merged = [
        replace(m, marginal=Marginal((Axis(i, (0,) * len(m.counts)),), 1), counts=m.counts.sum(axis=0)[None])
        for i, m in enumerate(given.bins)
    ]
    check(fitted(schema, Opened(given.leaves, tuple(merged), ())))


def test_estimates_are_joined_by_their_variances() -> None:
    """Columns by bin and class, by leaf, and from the pairs: the most exact one counts most."""
    schema = people_schema()
    table = people(n=400)
    given = exactly(table)
    off = tuple(replace(m, counts=m.counts + 1000, rate=Fraction(1, 10**6)) for m in given.bins)
    model = fitted(schema, Opened(given.leaves, off, given.pairs))
    assert np.abs(model.margins[1] - given.bins[1].counts).max() < 1e-2  # known from the pairs
    assert abs(model.totals.sum() - 400) < 1e-2


def test_what_is_only_noise_is_shrunk_away() -> None:
    values, prior = np.array([11.0, 9.0, 10.0, 10.0]), np.full(4, 10.0)
    assert shrunk(Estimate(values, np.full(4, 1.0)), prior).tolist() == prior.tolist()
    half = shrunk(Estimate(values, np.full(4, 0.25)), prior)
    assert half.tolist() == [10.5, 9.5, 10.0, 10.0]
    assert shrunk(Estimate(prior, np.zeros(4)), prior).tolist() == prior.tolist()


def test_onto_simplex_is_the_closest_point() -> None:
    """Against the definition: the same taken off all that stay positive."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        values = rng.normal(0, 10, 6)
        found = onto_simplex(values, 12.0)
        assert found.min() >= 0
        assert abs(found.sum() - 12) < 1e-9
        taken = (values - found)[found > 0]
        assert np.ptp(taken) < 1e-9
        assert (values[found == 0] <= taken[0] + 1e-9).all()
    assert onto_simplex(np.array([1.0, 2.0]), 0.0).tolist() == [0, 0]


@pytest.mark.parametrize("total", [1e-20, 1e-300])
def test_a_total_that_is_lost_in_last_digits_is_one_of_nothing(total: float) -> None:
    assert onto_simplex(np.array([3.0, -1.0, 3.0]), total).tolist() == [0, 0, 0]


def test_raking_keeps_what_is_empty_empty() -> None:
    values = np.array([[1.0, 0.0], [1.0, 1.0]])
    found = raked(values, np.array([1.0, 2.0]), np.array([2.0, 1.0]))
    assert np.allclose(found, [[1, 0], [1, 1]])
    assert not raked(np.zeros((2, 2)), np.ones(2), np.ones(2)).any()


def test_model_and_rows_are_made_without_data() -> None:
    """Of what knows records neither file names anything: not the coded table, nor a holder, nor noise."""
    folder = Path(anonymize.synthetic.__path__[0])
    for name in ("fit", "draw"):
        nodes = list(ast.walk(ast.parse((folder / f"{name}.py").read_text())))
        imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
        modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not imported & {"CodedTable", "Holder", "Noise", "SingleHolder", "Synthesis"}
        assert {m for m in modules if m and m.startswith("anonymize")} <= {
            "anonymize.grid",
            "anonymize.release",
            "anonymize.table",
            "anonymize.synthetic.fit",
            "anonymize.synthetic.marginals",
            "anonymize.synthetic.opened",
        }


# ---- on every machine the same


def in_order(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def test_sums_are_taken_from_the_first_to_the_last() -> None:
    """Another order has other last digits: that of numpy does, here."""
    words = np.frombuffer(SeededRng("sums").bytes(8 * 40 * 50), dtype="<u8").reshape(40, 50)
    values = (words >> 11) * 2.0**-53
    assert added_up(values, 0).tolist() == [in_order(column) for column in values.T.tolist()]
    assert added_up(values, 1).tolist() == [in_order(row) for row in values.tolist()]
    assert float(added_up(values)) == in_order(values.reshape(-1).tolist()) != float(values.sum())


EXACT_CALLS = """add arange argsort array asarray at bincount concatenate cumsum diff divide empty expand_dims
flatnonzero float64 floor frombuffer full int64 maximum minimum ones repeat sort sqrt square
stack uint64 unique where zeros zeros_like"""
"""Of numpy: what moves numbers, and what rounds once and in one way. `add.at` and `cumsum` go by the order given."""
OPEN_ORDER = {"sum", "mean", "prod", "std", "var", "dot", "trace"}


@pytest.mark.parametrize("name", ["fit", "draw"])
def test_nothing_is_computed_whose_last_digits_are_left_open(name: str) -> None:
    folder = Path(anonymize.synthetic.__path__[0])
    nodes = list(ast.walk(ast.parse((folder / f"{name}.py").read_text())))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    assert {n.attr for n in attributes if ast.unparse(n.value) in ("np", "np.add")} <= set(
        EXACT_CALLS.split()
    )
    assert not {node.attr for node in attributes} & OPEN_ORDER
    assert not any(isinstance(node, ast.MatMult) for node in nodes)
    powers = [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)]
    assert {ast.unparse(node) for node in powers} <= {"2.0 ** (-53)"}


def test_a_model_and_its_rows_are_these_bits(golden: Golden) -> None:
    """On whatever machine, in whatever numpy: who draws again, draws the same."""
    schema, rng = people_schema(), SeededRng("forged")

    def forged(n: int) -> Ints:
        return np.frombuffer(rng.bytes(n), dtype="u1").astype(np.int64) - 20

    model = fitted(schema, opened(schema, _sized(schema, forged), Fraction(1, 7)))
    arrays = [model.totals, *model.margins, *model.leaves, *(edge.table for edge in model.edges)]
    bits = b"".join(np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays)
    golden.check("synthetic", "model", hashlib.sha256(bits).hexdigest())
    classes, leaves = drawn_leaves(model, SeededRng("rows"))
    rows = np.stack([classes, *leaves]).astype("<i8")
    assert rows.shape[1] == model.n_rows > 100
    golden.check("synthetic", "rows", hashlib.sha256(rows.tobytes()).hexdigest())
