"""The released cells: their order and labels, counts against the definition, limits, Norm-Sub."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.cut import Candidate, Cut, interval_children, top
from anonymize.dp.noisy_table import (
    as_records,
    cell_counts,
    cells_after,
    check_cells,
    cut_domain,
    least_cells,
    most_cells,
    norm_sub,
    occupied_cells,
)
from anonymize.errors import PrivacyError
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Node
from tests.support import jobs
from tests.support.dp_tables import categorical, numeric, schema_of, table_of
from tests.support.tables import Case, cases

COLUMNS = (numeric("x", 5), categorical("q", {"*": {"A": ["a", "b"], "B": ["c", "d", "e"]}}))


def refined() -> tuple[Schema, Cut]:
    schema = schema_of(*COLUMNS)
    cut = top(schema).specialized(Candidate(0, Node(0, 5), interval_children(Node(0, 5), 2)))
    root = COLUMNS[1].root
    return schema, cut.specialized(Candidate(1, root, COLUMNS[1].children(root)))


def test_cells_are_the_product_in_order() -> None:
    schema, cut = refined()
    domain = cut_domain(schema, cut)
    table = domain.table(np.arange(8))
    assert (domain.shape, domain.size, table.n_cells, table.threshold) == ((2, 2, 2), 8, 8, None)
    rows = list(jobs.multiset(table.cells))
    expected = [(x, q, c) for x in ("[0,2)", "[2,5)") for q in ("A", "B") for c in ("Y", "N")]
    assert rows == expected
    assert [domain.number(domain._position(cell)) for cell in range(8)] == list(range(8))


def test_listed_cells_are_those_of_the_whole_table() -> None:
    schema, cut = refined()
    domain = cut_domain(schema, cut)
    whole, some = domain.table(np.arange(8) * 10), domain.listed({5: 50, 0: 7, 6: -3}, 2)
    rows = list(jobs.multiset(whole.cells))
    columns = some.cells.columns.values()
    found = [tuple(c.labels[c.codes[i]] for c in columns) for i in range(3)]
    assert found == [rows[5], rows[0], rows[6]]
    assert (some.counts.tolist(), some.n_cells, some.threshold) == ([50, 7, -3], 8, 2)


@given(cases())
def test_counts_are_those_of_the_definition(case: Case) -> None:
    """Random tables, the root's children of every column."""
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    schema, cut = table.schema, top(table.schema)
    for i, column in enumerate(schema.qid):
        children = column.children(column.root)
        if column.is_numeric and column.n_leaves > 1:
            children = interval_children(column.root, 1)
        if len(children) > 1:
            cut = cut.specialized(Candidate(i, column.root, children))
    domain = cut_domain(schema, cut)
    literal = Counter()
    for row, weight in enumerate(table.weights.tolist()):
        nodes = [
            next(n for n, node in enumerate(cut.nodes[i]) if node.first <= codes[row] < node.last)
            for i, codes in enumerate(table.qid)
        ]
        literal[domain.number([*nodes, int(table.axis(0)[row])])] += weight
    counts = cell_counts(table, cut, domain, {})
    assert {cell: n for cell, n in enumerate(counts.tolist()) if n} == literal
    assert occupied_cells(table, cut, domain, {}) == literal


def all_cuts(schema: Schema, h: int) -> list[set[Cut]]:
    """Every cut after 0, 1, … h specializations, as far as there are any."""
    levels = [{top(schema)}]
    for _ in range(h):
        level = {cut.specialized(c) for cut in levels[-1] for c in candidates(schema, cut)}
        if not level:
            break
        levels.append(level)
    return levels


def candidates(schema: Schema, cut: Cut) -> list[Candidate]:
    found = []
    for i, column in enumerate(schema.qid):
        for node in cut.nodes[i]:
            if column.is_numeric:
                splits = range(1, node.last - node.first)
                found += [Candidate(i, node, interval_children(node, split)) for split in splits]
            elif len(column.children(node)) > 1:
                found.append(Candidate(i, node, column.children(node)))
    return found


SCHEMAS: dict[str, tuple[QidColumn, ...]] = {
    "mixed": COLUMNS,
    "deep": (
        categorical("q", {"*": {"A": {"A1": ["a", "b", "c"], "A2": ["d"]}, "B": ["e"]}}),
        numeric("x", 2),
    ),
    "chain": (categorical("q", {"*": {"only": ["a", "b"]}}), categorical("p", {"*": ["c", "d", "e"]})),
    "one": (categorical("q", {"*": ["a"]}),),
}


@pytest.mark.parametrize("name", list(SCHEMAS))
@pytest.mark.parametrize("h", [1, 2, 3, 4])
def test_most_and_least_cells_by_going_through_all_cuts(name: str, h: int) -> None:
    schema = schema_of(*SCHEMAS[name], classes=("u", "v", "w"))
    levels = [[cut_domain(schema, cut).size for cut in level] for level in all_cuts(schema, h)]
    assert most_cells(schema, h) == max(max(level) for level in levels)
    assert least_cells(schema, h) == min(levels[-1])


def test_too_many_cells_are_refused_with_the_number_and_what_to_change() -> None:
    schema = schema_of(*COLUMNS)
    assert (least_cells(schema, 3), most_cells(schema, 3)) == (8, 16)
    check_cells(schema, 3, 8)
    with pytest.raises(PrivacyError) as caught:
        check_cells(schema, 3, 7)
    assert caught.value.error_id == "too-many-cells"
    assert "make 8 cells or more" in str(caught.value)
    assert caught.value.remedy == "raise max_cells to 8 or more, or specializations to at most 2"


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_cells_after_a_specialization(name: str) -> None:
    schema = schema_of(*SCHEMAS[name])
    for cut in all_cuts(schema, 2)[-1]:
        for c in candidates(schema, cut):
            expected = cut_domain(schema, cut.specialized(c)).size
            assert cells_after(schema, cut, c.column, len(c.children)) == expected


def literal_norm_sub(counts: list[int]) -> list[Fraction]:
    """Subtract the same amount from all, cut at 0, so that the sum stays: by bisection, in fractions."""
    total = max(0, sum(counts))
    low, high = Fraction(0), Fraction(max(counts) + 1)
    for _ in range(200):
        middle = (low + high) / 2
        kept = sum((max(Fraction(0), c - middle) for c in counts), Fraction(0))
        low, high = (middle, high) if kept > total else (low, middle)
    return [max(Fraction(0), c - low) for c in counts]


@given(st.lists(st.integers(-40, 60), min_size=1, max_size=20))
def test_norm_sub(counts: list[int]) -> None:
    reduced = norm_sub(np.array(counts)).tolist()
    assert min(reduced) >= 0
    assert sum(reduced) == max(0, sum(counts))
    if sum(counts) > 0:
        for found, exact in zip(reduced, literal_norm_sub(counts), strict=True):
            assert abs(found - exact) < 1 + Fraction(1, 10**6)
        assert all(
            reduced[i] >= reduced[j] - 1 for i, x in enumerate(counts) for j, y in enumerate(counts) if x >= y
        )


def test_norm_sub_of_nothing() -> None:
    assert norm_sub(np.zeros(0, dtype=np.int64)).size == 0
    assert norm_sub(np.array([-3, 1])).tolist() == [0, 0]


def test_norm_sub_of_counts_that_are_fine() -> None:
    assert norm_sub(np.array([0, 5, 2])).tolist() == [0, 5, 2]


def test_records_are_as_many_as_norm_sub_says() -> None:
    schema, cut = refined()
    counts = np.array([5, -2, 0, 3, 0, 0, 1, -1])
    records = as_records(cut_domain(schema, cut).table(counts))
    assert records.n_rows == counts.sum()
    cells = list(jobs.multiset(cut_domain(schema, cut).table(counts).cells))
    expected = {cell: n for cell, n in zip(cells, norm_sub(counts).tolist(), strict=True) if n}
    assert jobs.multiset(records) == expected


def test_a_table_of_no_records() -> None:
    schema, cut = refined()
    table = table_of(schema, [])
    domain = cut_domain(schema, cut)
    assert cell_counts(table, cut, domain, {}).tolist() == [0] * 8
    assert occupied_cells(table, cut, domain, {}) == {}
