"""Sources that an SQL engine reads, beside the same table as an Arrow one: what pass 1 and pass 2 must agree in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from anonymize.grid import from_step
from anonymize.table import SetRule
from jobs.data.coders import DROPPED, Categorical, Coder, Numeric, Sets, Unlisted
from jobs.data.coding import Coded, Coding, Published
from jobs.data.streaming import Streamed
from jobs.data.texts import as_text

GRID = from_step(Decimal(0), Decimal(100), Decimal(10), "x")
CODERS: Mapping[str, Coder] = {
    "taxonomy": Categorical({"a": 0, "b": 1, "é": 2, "0": 3, "-0": 4, "true": 5, "5": 6}, DROPPED, other=7),
    "domain": Categorical({"a": 0, "b": 1, "?": 2}, 2, other=2, moved=True),
    "unlisted": Unlisted(None),
    "dropping": Unlisted(DROPPED),
    "clamped": Numeric(GRID, clamp=True),
    "clamped with a cell for missing": Numeric(GRID, clamp=True, missing=0),
    "numeric": Numeric(GRID),
    "sets": Sets(
        Categorical({"a": 0, "b": 1, "é": 2, "?": DROPPED}, DROPPED, other=DROPPED), SetRule(";", 3)
    ),
}


@dataclass(frozen=True)
class InMemory(Streamed):
    """What streams an Arrow table."""

    table: pa.Table

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.table.select(list(columns)).to_batches(7):
            yield pa.RecordBatch.from_arrays(list(map(as_text, batch.columns)), list(columns))

    def place(self, row: int) -> str:
        return f"row {row}"


def meaning(coded: Coded) -> Counter[tuple[Any, ...]]:
    """How many records have which values, whatever the order of rows and the numbering of what was found."""
    columns = []
    for column in coded.columns.values():
        codes: list[Any] = column.codes.tolist()
        if column.domain:
            codes = [column.domain[code] for code in codes]
        if column.sets is not None:
            codes = [tuple(column.sets.leaves[slice(*column.sets.starts[c : c + 2])].tolist()) for c in codes]
        columns.append(codes)
    found: Counter[tuple[Any, ...]] = Counter()
    for *row, weight in zip(*columns, coded.weights.tolist(), strict=True):
        found[tuple(row)] += weight
    return found


def same_pass_1(source: Streamed, expected: Streamed, coding: Coding) -> Coded:
    """Assert that two sources give the same of pass 1; return what the first gave."""
    one, two = source.collapse(coding), expected.collapse(coding)
    assert meaning(one) == meaning(two)
    assert (one.rows, one.n_ids) == (two.rows, two.n_ids)
    assert [one.columns[n].domain for n in one.columns] == [two.columns[n].domain for n in two.columns]
    return one


def same_pass_2(
    source: Streamed, expected: Streamed, published: Mapping[str, Published], names: Sequence[str]
) -> None:
    """Assert that two sources give the same rows in pass 2."""
    one, two = (_rows(each.relabel(published, names)) for each in (source, expected))
    assert one == two


def _rows(batches: Iterator[pa.RecordBatch]) -> Counter[tuple[str, ...]]:
    rows: Counter[tuple[str, ...]] = Counter()
    for batch in batches:
        assert all(pa.types.is_dictionary(column.type) for column in batch.columns)
        rows.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows
