"""Small tables as CSV text, and coded tables as rows."""

from __future__ import annotations

import csv
import io

from anonymize.table import CodedTable
from tests.support.jobs import dense

HEADER = ["patient", "job", "age", "transfused", "surgery"]
GOOD = ["1", "Janitor", "5", "Y", "Heart"]


def lines(*rows: list[str], header: list[str] | None = None, delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows([header or HEADER, *rows])
    return out.getvalue()


def codes(table: CodedTable) -> list[tuple[int, ...]]:
    """Every record of a table as its codes, in order; cells as the parties of a joint run number them."""
    table = dense(table)
    rows = zip(*(c.tolist() for c in table.qid), table.cells.tolist(), table.weights.tolist(), strict=True)
    return sorted(row[:-1] for row in rows for _ in range(row[-1]))
