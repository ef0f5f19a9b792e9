"""Costs before a run: no less than what runs take, and hardly more."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.joint.dp.noise import Plans
from anonymize.joint.synthetic.costs import Cost, Counted, Joined, Rows, Spread
from anonymize.table import CodedTable, Schema
from anonymize.tds import Turn, run_single
from tests.support.computations import watched
from tests.support.dp_runs import split_columns, thirds
from tests.support.dp_tables import categorical, numeric, people, schema_of, table_of
from tests.support.synthetic_joint import Joint, horizontal, one_run, vertical

LEAVES = {"*": [f"v{i}" for i in range(40)]}
WIDE = [*(numeric(f"n{i}", 12) for i in range(5)), categorical("c", LEAVES)]


def wide() -> CodedTable:
    schema, rng = schema_of(*WIDE), np.random.default_rng(0)
    sizes = [column.n_leaves for column in schema.qid] + [2]
    return table_of(schema, [tuple(rng.integers(0, sizes).tolist()) for _ in range(200)])


class Told(Counted):
    """Is told what was chosen."""

    chosen: tuple[int, ...]

    def choose(self, *given: Any) -> Turn[tuple[int, ...]]:
        yield from super().choose(*given)
        return self.chosen


def counted(run: Joint, schema: Schema, spread: Spread, n_edges: int, *, again: bool = False) -> Cost:
    holder = Told(spread, Plans(Fraction(1), 4))
    holder.chosen = run.opened[1]
    run_single(one_run(schema, holder, n_edges, again=again))
    return holder.cost


def at_most(schema: Schema, spread: Spread, n_edges: int) -> Cost:
    holder = Counted(spread, Plans(Fraction(1), 4))
    run_single(one_run(schema, holder, n_edges))
    return holder.cost


def expect(cost: Cost, run: Joint, gates: int) -> None:
    assert gates <= cost.gates <= 1.1 * gates
    assert run.transcript.bytes_sent() <= cost.bytes <= 1.1 * run.transcript.bytes_sent()
    assert run.transcript.rounds <= cost.rounds <= run.transcript.rounds + 2


@pytest.mark.some(2)
@pytest.mark.parametrize("n_edges", [1, 2])
@pytest.mark.parametrize("again", [False, True])
def test_of_rows(n_edges: int, again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    computed, table = watched(monkeypatch), people()
    for n in (2, 3, 5):
        computed.clear()
        run = horizontal(thirds(table, n), n_edges, again=again, max_rows=100)
        gates = sum(each.circuit.and_gates * each.batch for each in computed) // 2
        expect(counted(run, table.schema, Rows(n, 100), n_edges, again=again), run, gates)


@pytest.mark.parametrize("first", [[0], [0, 1, 2], [2]])
def test_of_columns(first: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    computed, table = watched(monkeypatch), people()
    run = vertical(table.schema, split_columns(table, first), 2)
    gates = sum(each.circuit.and_gates * each.batch for each in computed) // 2
    expect(counted(run, table.schema, Joined(first, 300), 2), run, gates)


@pytest.mark.some(1)
@pytest.mark.parametrize("n_edges", [3, 5])
def test_of_many_columns(n_edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    computed, table = watched(monkeypatch), wide()
    run = horizontal(thirds(table, 2), n_edges, max_rows=10_000)
    gates = sum(each.circuit.and_gates * each.batch for each in computed) // 2
    expect(counted(run, table.schema, Rows(2, 10_000), n_edges), run, gates)
    assert at_most(table.schema, Rows(2, 10_000), n_edges).gates >= gates


def test_rows_do_not_enter_but_for_the_width_of_words() -> None:
    """A hundred times as many rows cost a few more bits."""
    schema = schema_of(*WIDE)
    few, many = (at_most(schema, Rows(3, most), 3) for most in (10_000, 1_000_000))
    assert few.gates < many.gates < 1.3 * few.gates
    assert few.rounds == many.rounds


def test_seconds_are_those_of_the_bytes_and_of_the_rounds() -> None:
    assert Cost(7, 1000, 20).seconds(0.5, 100) == 1000 / 100 + 20 * 0.5
