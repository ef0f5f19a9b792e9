"""Source tables of synthetic tables, coded by leaf: four of ../shared/data, and two with a known structure.

No row is left out: a missing category is the leaf `?`, a missing number a separate leaf.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import numpy as np

from anonymize.grid import Grid, from_step
from anonymize.table import CodedTable, Ints, QidColumn, Schema, coded_table
from anonymize.taxonomy import MISSING, Taxonomy, from_arx_csv, from_nested
from benchmarks.shared_jobs import SHARED

Texts = Sequence[Mapping[str, str]]
Numbers = Mapping[str, tuple[str, str, str]]
"""The least number, the end of the domain and the step, by column."""
_NO_VALUE = frozenset({"", MISSING})


@dataclass(frozen=True)
class Coded:
    """Rows by leaf.

    leaves:   int64, shape (n_rows, n_columns).
    classes:  int64, shape (n_rows,).
    """

    schema: Schema
    leaves: Ints
    classes: Ints

    def some(self, rows: Ints) -> Coded:
        return Coded(self.schema, self.leaves[rows], self.classes[rows])

    @property
    def table(self) -> CodedTable:
        return coded_table(self.schema, list(self.leaves.T), self.classes, [])


def halves(rows: Coded, share: float, seed: int) -> tuple[Coded, Coded]:
    """Return a random share of the rows, and the rest."""
    order = np.random.default_rng(seed).permutation(len(rows.classes))
    n = round(share * len(order))
    return rows.some(order[:n]), rows.some(order[n:])


def coded(rows: Texts, columns: Sequence[QidColumn], of_class: str) -> Coded:
    classes = tuple(sorted({row[of_class] for row in rows}))
    leaves = [_leaves(column, [row[column.name] for row in rows]) for column in columns]
    place = {value: i for i, value in enumerate(classes)}
    labels = np.array([place[row[of_class]] for row in rows], dtype=np.int64)
    return Coded(Schema(tuple(columns), of_class, classes), np.array(leaves).T, labels)


def _leaves(column: QidColumn, texts: Sequence[str]) -> Ints:
    if isinstance(column.values, Taxonomy):
        index = column.values.leaf_index()
        return np.array([index[MISSING if text in _NO_VALUE else text] for text in texts], dtype=np.int64)
    missing = np.array([text in _NO_VALUE for text in texts])
    numbers = np.array([0.0 if text in _NO_VALUE else float(text) for text in texts])
    edges = [float(edge) for edge in column.values.edges]
    inside = np.clip(numbers, edges[0], np.nextafter(edges[-1], edges[0]))
    return np.where(missing, column.values.n_cells, column.values.cells(inside))


def number(name: str, bounds: tuple[str, str, str], rows: Texts = ()) -> QidColumn:
    grid: Grid = from_step(Decimal(bounds[0]), Decimal(bounds[1]), Decimal(bounds[2]), name)
    return QidColumn(name, grid, missing_cell=any(row[name] in _NO_VALUE for row in rows))


def values(name: str, rows: Texts) -> QidColumn:
    listed = sorted({row[name] for row in rows} - _NO_VALUE)
    missing = any(row[name] in _NO_VALUE for row in rows)
    return QidColumn(name, from_nested({"*": listed}, name, missing_leaf=missing))


def _read(*path: str) -> list[dict[str, str]]:
    file = SHARED.joinpath("data", *path)
    with gzip.open(file, "rt", newline="") if file.suffix == ".gz" else file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def _columns(rows: Texts, names: Sequence[str], numbers: Numbers) -> list[QidColumn]:
    return [number(name, numbers[name], rows) if name in numbers else values(name, rows) for name in names]


_ADULT: Numbers = {
    "age": ("17", "91", "1"),
    "fnlwgt": ("13492", "1490401", "11539"),
    "education-num": ("1", "17", "1"),
    "capital-gain": ("0", "100000", "782"),
    "capital-loss": ("0", "4357", "35"),
    "hours-per-week": ("1", "100", "1"),
}


@cache
def adult() -> tuple[Coded, Coded]:
    """Return the complete rows of Adult, split as by UCI: training rows, and test rows on which no choice is made."""
    rows = [row for row in _read("adult", "adult.csv.gz") if "?" not in row.values()]
    names = [name for name in rows[0] if name not in ("income", "split")]
    columns = [number(name, _ADULT[name]) if name in _ADULT else _adult_values(name) for name in names]
    found = coded(rows, columns, "income")
    is_train = np.array([row["split"] == "train" for row in rows])
    return found.some(np.flatnonzero(is_train)), found.some(np.flatnonzero(~is_train))


def _adult_values(name: str) -> QidColumn:
    text = (SHARED / "data" / "adult" / "hierarchies" / f"{name}.csv").read_text()
    return QidColumn(name, from_arx_csv(text, name, missing_leaf=False))


_DIABETES: Numbers = {
    "time_in_hospital": ("1", "15", "1"),
    "num_lab_procedures": ("0", "135", "5"),
    "num_procedures": ("0", "7", "1"),
    "num_medications": ("0", "85", "1"),
    "number_outpatient": ("0", "43", "1"),
    "number_emergency": ("0", "77", "1"),
    "number_inpatient": ("0", "22", "1"),
    "number_diagnoses": ("1", "17", "1"),
}


@cache
def diabetes() -> Coded:
    """Return diabetes130, all encounters; class: readmitted, within or after 30 days, or not."""
    rows = _read("diabetes130", "diabetic_data.csv.gz")
    names = ["race", "gender", "age", "admission_type_id", "discharge_disposition_id", "admission_source_id"]
    names += [*_DIABETES, "medical_specialty", "max_glu_serum", "A1Cresult", "metformin", "glipizide"]
    names += ["glyburide", "insulin", "change", "diabetesMed", "payer_code"]
    for row in rows:
        row["readmitted"] = "no" if row["readmitted"] == "NO" else "yes"
    return coded(rows, _columns(rows, names, _DIABETES), "readmitted")


_SUPPORT2: Numbers = {
    "age": ("18", "102", "1"),
    "num.co": ("0", "10", "1"),
    "edu": ("0", "32", "1"),
    "scoma": ("0", "105", "5"),
    "avtisst": ("0", "84", "1"),
    "hday": ("1", "149", "3"),
    "meanbp": ("0", "200", "5"),
    "wblc": ("0", "201", "2"),
    "hrt": ("0", "305", "5"),
    "resp": ("0", "92", "2"),
    "temp": ("31", "42", "0.2"),
    "pafi": ("0", "900", "20"),
    "alb": ("0", "10", "0.2"),
    "bili": ("0", "64", "1"),
    "crea": ("0", "22", "0.5"),
    "sod": ("110", "182", "1"),
    "ph": ("6.8", "7.8", "0.02"),
}


@cache
def support2() -> Coded:
    """Return all patients, demographics and facts known in the first days; class: death in hospital."""
    rows = _read("support2", "support2.csv.gz")
    names = [*_SUPPORT2, "sex", "dzgroup", "income", "race", "diabetes", "dementia", "ca"]
    return coded(rows, _columns(rows, names, _SUPPORT2), "hospdead")


_CRX: Numbers = {
    "A2": ("13", "81", "1"),
    "A3": ("0", "30", "0.5"),
    "A8": ("0", "30", "0.5"),
    "A11": ("0", "70", "1"),
    "A14": ("0", "2200", "20"),
    "A15": ("0", "100100", "800"),
}


@cache
def crx() -> Coded:
    rows = _read("crx", "crx.csv")
    return coded(rows, _columns(rows, [f"A{i}" for i in range(1, 16)], _CRX), "A16")


# ---- tables with a known structure


def generated(columns: Mapping[str, Ints], sizes: Mapping[str, int], classes: Ints) -> Coded:
    """Return a table: columns of even place are grids, the rest flat lists."""
    made = [
        number(name, ("0", str(sizes[name]), "1"))
        if i % 2 == 0
        else QidColumn(
            name, from_nested({"*": [f"v{k}" for k in range(sizes[name])]}, name, missing_leaf=False)
        )
        for i, name in enumerate(columns)
    ]
    schema = Schema(tuple(made), "class", ("no", "yes"))
    return Coded(schema, np.array(list(columns.values())).T.astype(np.int64), classes)


@cache
def forest(n_rows: int = 20_000) -> Coded:
    """Draw from a class-conditional forest: six chains of two or three columns; four columns alone."""
    rng = np.random.default_rng(15)
    classes = (rng.random(n_rows) < 0.35).astype(np.int64)
    columns, sizes = dict[str, Ints](), dict[str, int]()
    for number_of_chain, length in enumerate((3, 3, 3, 2, 2, 2, 1, 1, 1, 1)):
        above = np.zeros(n_rows, dtype=np.int64)
        for place in range(length):
            size = int(rng.choice([4, 8, 12, 40]))
            law = rng.dirichlet(np.full(size, 0.5), (2, int(above.max()) + 1))
            name = f"c{number_of_chain}{place}"
            sums = law.cumsum(axis=2)[classes, above]
            above = np.minimum((rng.random((n_rows, 1)) > sums).sum(axis=1), size - 1)
            columns[name], sizes[name] = above, size
    return generated(columns, sizes, classes)


@cache
def mixture(n_rows: int = 30_000) -> Coded:
    """Draw twelve columns linked through five hidden groups, and a class from two of the columns: no forest."""
    rng = np.random.default_rng(16)
    group = rng.integers(0, 5, n_rows)
    columns, sizes = dict[str, Ints](), dict[str, int]()
    for i in range(12):
        size = (6, 10, 30, 3)[i % 4]
        law = rng.dirichlet(np.full(size, 0.7), 5).cumsum(axis=1)[group]
        columns[f"m{i}"] = np.minimum((rng.random((n_rows, 1)) > law).sum(axis=1), size - 1)
        sizes[f"m{i}"] = size
    high = (columns["m0"] >= 3) ^ (columns["m1"] >= 5)
    classes = np.where(rng.random(n_rows) < 0.1, rng.integers(0, 2, n_rows), high).astype(np.int64)
    return generated(columns, sizes, classes)


TRAINING: Mapping[str, Callable[[], Coded]] = {
    "Adult": lambda: adult()[0],
    "diabetes130": diabetes,
    "support2": support2,
    "crx": crx,
    "forest": forest,
    "mixture": mixture,
}
"""Tables for choices. A share of each is held back for good: see :mod:`benchmarks.bench_synthetic_tuning`."""
