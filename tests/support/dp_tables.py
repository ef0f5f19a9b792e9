"""Tiny tables for differential privacy: every table of a few records, and their neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anonymize.grid import from_step
from anonymize.table import CodedTable, LeafSets, QidColumn, Schema, SetRule, coded_table
from anonymize.taxonomy import Nested, from_nested
from tests.support import jobs
from tests.support.tables import cases

Record = tuple[int, ...]
"""A leaf (or the number of a set) for every column, then the class."""

Counts = tuple[int, ...]
"""Number of each record of the domain."""


def numeric(name: str, cells: int) -> QidColumn:
    return QidColumn(name, from_step(Decimal(0), Decimal(cells), Decimal(1), name))


def categorical(name: str, tree: Nested) -> QidColumn:
    return QidColumn(name, from_nested(tree, name, missing_leaf=False))


def set_valued(name: str, tree: Nested, max_items: int | None = None) -> QidColumn:
    return QidColumn(name, from_nested(tree, name, missing_leaf=False), SetRule(";", max_items))


def schema_of(*columns: QidColumn, classes: Sequence[str] = ("Y", "N")) -> Schema:
    return Schema(columns, "cls", tuple(classes))


def all_sets(n_leaves: int, max_items: int | None = None) -> list[tuple[int, ...]]:
    """Every non-empty set of leaves."""
    sets = [tuple(i for i in range(n_leaves) if mask >> i & 1) for mask in range(1, 1 << n_leaves)]
    return [s for s in sets if max_items is None or len(s) <= max_items]


def leaf_sets(sets: Sequence[Sequence[int]]) -> LeafSets:
    starts = np.cumsum([0, *map(len, sets)])
    return LeafSets(np.array([leaf for s in sets for leaf in s], dtype=np.int64), starts)


def table_of(
    schema: Schema, records: Sequence[Record], sets: dict[int, LeafSets] | None = None
) -> CodedTable:
    """A table of these records, in this order, one row each."""
    columns = np.array(records, dtype=np.int64).reshape(len(records), len(schema.qid) + 1).T
    table = coded_table(schema, list(columns[:-1]), columns[-1], [])
    return CodedTable(schema, tuple(columns[:-1]), table.cells, table.weights, sets or {})


def domain_records(schema: Schema, sets: dict[int, LeafSets] | None = None) -> list[Record]:
    """Every record there can be."""
    sizes = [sets[i].n_sets if sets and i in sets else c.n_leaves for i, c in enumerate(schema.qid)]
    return list(product(*map(range, sizes), range(schema.n_classes)))


def all_tables(records: Sequence[Record], most: int) -> Iterator[tuple[int, ...]]:
    """Every multiset of at most ``most`` records, as ascending numbers of them."""
    for size in range(most + 1):
        yield from combinations_with_replacement(range(len(records)), size)


def neighbours(table: tuple[int, ...], n_records: int) -> Iterator[tuple[int, ...]]:
    """Every table with one record more."""
    return (tuple(sorted((*table, added))) for added in range(n_records))


@st.composite
def tables(draw: st.DrawFn) -> CodedTable:
    """A random table with a class and without sensitive columns; one row per record, in order."""
    case = draw(cases())
    columns = {
        name: {key: value for key, value in column.items() if key != "refine"}
        for name, column in case.fields["columns"].items()
        if column["role"] != "sensitive"
    }
    columns.setdefault("cls", {"role": "class", "domain": ["Y", "N"]})
    lkc = {**case.fields["model"]["lkc"], "K": "2"}  # without sensitive columns a job asks by K alone
    said = {"model": {"lkc": lkc}, "goal": "classification", "score": "infogain", "columns": columns}
    fields = {**case.fields, **said}
    rows = [{name: row.get(name, "Y") for name in columns} for row in case.rows]
    table = jobs.coded(jobs.bundle_of(fields), rows)
    order = np.repeat(np.arange(len(table.weights)), table.weights)
    units = np.ones(len(order), dtype=np.int64)
    return CodedTable(table.schema, tuple(c[order] for c in table.qid), table.cells[order], units)


JOBS = {"*": {"White": ["clerk", "lawyer"], "Blue": ["mason", "mover", "welder"]}}


def people(seed: int = 0, n: int = 300, columns: Any = None) -> CodedTable:
    schema = schema_of(
        *(columns or (numeric("age", 8), categorical("job", JOBS), categorical("sex", {"*": ["m", "f"]})))
    )
    rng = np.random.default_rng(seed)
    age, job, sex = rng.integers(0, 8, n), rng.integers(0, 5, n), rng.integers(0, 2, n)
    cls = ((age > 4) ^ (rng.random(n) < 0.2)).astype(int)
    return table_of(schema, list(zip(age, job, sex, cls, strict=True)))


def hospital(seed: int = 0, n: int = 400) -> CodedTable:
    codes = set_valued("codes", {"*": {"1*": ["11", "12"], "2*": ["21", "22"], "3*": ["31", "32"]}})
    schema = schema_of(codes, categorical("sex", {"*": ["m", "f"]}), numeric("age", 4))
    sets = leaf_sets(all_sets(6))
    rng = np.random.default_rng(seed)
    which = np.minimum(rng.geometric(0.15, n) - 1, sets.n_sets - 1)
    rows = zip(which, *(rng.integers(0, size, n) for size in (2, 4, 2)), strict=True)
    return table_of(schema, list(rows), {0: sets})
