"""Adult: how far two-way tables of synthetic rows are from those of the records, against the bar and DiffGen."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from anonymize.dp.accounting import Dp
from anonymize.dp.diffgen import release_single
from anonymize.dp.noise import exact_noise
from anonymize.dp.noisy_table import norm_sub
from anonymize.synthetic.draw import drawn_leaves
from anonymize.synthetic.fit import fitted
from anonymize.synthetic.requirement import Synthetic
from anonymize.synthetic.single import synthesize_single
from anonymize.table import CodedTable, Ints
from tests.support.adult import adult
from tests.support.rng import SeededRng

GROUPS = 16
SEEDS = 10
BAR = {"1/10": 13.0, "1/4": 8.0, "1/2": 6.0, "1": 4.6}
"""Mean total variation distance of all two-way tables, in percent."""


def grouped(table: CodedTable, leaves: tuple[Ints, ...], classes: Ints) -> list[Ints]:
    """Every column in at most 16 groups, and the class."""
    sizes = [column.n_leaves for column in table.schema.qid]
    groups = [
        codes.astype(np.int64) * GROUPS // max(n, GROUPS) for codes, n in zip(leaves, sizes, strict=True)
    ]
    return [*groups, classes]


def distance(one: list[Ints], other: list[Ints]) -> float:
    found = []
    for a, b in combinations(range(len(one)), 2):
        tables = [
            np.bincount(rows[a] * GROUPS + rows[b], minlength=GROUPS**2) / len(rows[a])
            for rows in (one, other)
        ]
        found.append(50 * np.abs(tables[0] - tables[1]).sum())
    return float(np.mean(found))


def of_records(table: CodedTable) -> list[Ints]:
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    return grouped(table, tuple(codes[rows] for codes in table.qid), table.axis(0)[rows])


def of_synthetic(table: CodedTable, epsilon: str, seed: int) -> list[Ints]:
    asked = Synthetic(Fraction(epsilon), max_rows=100_000)
    outcome = synthesize_single(table, asked, exact_noise(SeededRng(seed)))
    classes, leaves = drawn_leaves(fitted(outcome.schema, outcome.opened), SeededRng(-seed))
    return grouped(table, leaves, classes)


def of_diffgen(table: CodedTable, epsilon: str, seed: int) -> list[Ints]:
    """Rows spread evenly inside the cells."""
    rng = np.random.default_rng(seed)
    found = release_single(table, Dp(Fraction(epsilon), 10, max_rows=100_000), exact_noise(SeededRng(seed)))
    rows = np.repeat(np.arange(len(found.table.counts)), norm_sub(found.table.counts))
    leaves = []
    for column, nodes in zip(table.schema.qid, found.outcome.cut.nodes, strict=True):
        released, of_label = (
            found.table.cells.columns[column.name],
            {column.label(node): node for node in nodes},
        )
        places = [of_label[label] for label in released.labels]
        first, size = (
            np.array(each)[released.codes[rows]]
            for each in zip(*((p.first, p.n_leaves) for p in places), strict=True)
        )
        leaves.append(first + (rng.random(len(rows)) * size).astype(np.int64))
    return grouped(
        table,
        tuple(leaves),
        found.table.cells.columns[table.schema.class_name or ""].codes[rows].astype(np.int64),
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", list(BAR))
def test_two_way_tables_are_close(epsilon: str) -> None:
    _, table = adult()
    real = of_records(table)
    far = np.mean([distance(of_synthetic(table, epsilon, seed), real) for seed in range(SEEDS)])
    assert far <= BAR[epsilon]
    assert 4 * far < distance(of_diffgen(table, epsilon, 1), real)
