"""Adult for kd: eight quasi-identifiers, four sensitive columns; and a million similar rows."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np

from anonymize.grid import from_cuts, from_step
from anonymize.table import CodedTable, Codes, QidColumn, Schema, SensitiveColumn, coded_table
from anonymize.taxonomy import Node, Taxonomy, from_arx_csv
from benchmarks.shared_jobs import SHARED, SharedDataAbsent

GRIDS = {"age": (17, 91), "hours-per-week": (1, 100)}
QID = (
    "age",
    "education",
    "marital-status",
    "relationship",
    "race",
    "sex",
    "hours-per-week",
    "native-country",
)
SENSITIVE = ("workclass", "occupation", "capital-gain", "capital-loss")
CUTS = {"capital-gain": (100000, [1, 3000, 5000, 7000, 15000]), "capital-loss": (5000, [1, 1500, 2000])}


def adult_rows() -> list[dict[str, str]]:
    """Return the 45,222 complete records."""
    folder = SHARED / "data" / "adult"
    if not folder.exists():
        raise SharedDataAbsent("these benchmarks need ../shared (data and jobs), which is not here")
    text = gzip.decompress((folder / "adult.csv.gz").read_bytes()).decode()
    return [row for row in csv.DictReader(io.StringIO(text)) if "?" not in row.values()]


def adult() -> CodedTable:
    """Return Adult, coded."""
    rows = adult_rows()
    qid = [_qid_column(name) for name in QID]
    classes = tuple(sorted({row["income"] for row in rows}))
    coded = [_sensitive(name, rows) for name in SENSITIVE]
    schema = Schema(tuple(qid), "income", classes, tuple(column for column, _ in coded))
    codes = [_codes(column, [row[column.name] for row in rows]) for column in qid]
    own_class = np.array([classes.index(row["income"]) for row in rows])
    return coded_table(schema, codes, own_class, [values for _, values in coded])


def blown_up(table: CodedTable, n: int, seed: int = 0) -> CodedTable:
    """Draw ``n`` rows from a table; every tenth value of a quasi-identifier comes from a different row."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(table.cells), n)
    qid = []
    for codes in table.qid:
        own = codes[rows]
        redrawn = rng.random(n) < 0.1
        own[redrawn] = codes[rng.integers(0, len(codes), int(redrawn.sum()))]
        qid.append(own)
    return CodedTable(table.schema, tuple(qid), table.cells[rows], np.ones(n, dtype=np.int64))


def _qid_column(name: str) -> QidColumn:
    if name in GRIDS:
        low, high = GRIDS[name]
        return QidColumn(name, from_step(Decimal(low), Decimal(high), Decimal(1), name))
    text = (SHARED / "data" / "adult" / "hierarchies" / f"{name}.csv").read_text()
    return QidColumn(name, from_arx_csv(text, name, missing_leaf=False))


def _sensitive(name: str, rows: Sequence[Mapping[str, str]]) -> tuple[SensitiveColumn, Codes]:
    """Return a sensitive column, all values protected, and its codes."""
    if name in CUTS:
        high, cuts = CUTS[name]
        grid = from_cuts(Decimal(0), Decimal(high), tuple(map(Decimal, cuts)), name)
        domain = tuple(grid.label(Node(i, i + 1)) for i in range(grid.n_cells))
        codes = grid.cells(np.array([float(row[name]) for row in rows]))
    else:
        domain = tuple(sorted({row[name] for row in rows}))
        place = {value: i for i, value in enumerate(domain)}
        codes = np.array([place[row[name]] for row in rows])
    return SensitiveColumn(name, domain, tuple(range(len(domain)))), codes


def _codes(column: QidColumn, values: Sequence[str]) -> Codes:
    if not isinstance(column.values, Taxonomy):
        return column.values.cells(np.array([float(value) for value in values]))
    place = column.values.leaf_index()
    return np.array([place[value] for value in values])
