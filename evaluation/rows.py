"""Table for an evaluation: a row for each record, with leaf codes and the numbers behind the codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from anonymize.grid import Grid
from anonymize.table import CodedTable, Ints, pack
from jobs.data.arrow import pa
from jobs.data.coders import numbers_in
from jobs.data.coding import Coded
from jobs.data.kept import coded_with_numbers, keeping
from jobs.data.sources import Source
from jobs.data.tables import Loaded
from jobs.reading import check_columns, check_rows, coding_of, table_of
from jobs.task import Task

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Records of a table kept by pass 1.

    coded:    a row for each record.
    numbers:  by numeric quasi-identifier, the table's numbers, and the middle of the domain for a missing number:
              float64, shape (n_records,).
    """

    task: Task
    coded: Coded = field(repr=False)
    numbers: Mapping[str, Floats] = field(repr=False)

    @property
    def n_records(self) -> int:
        return len(self.coded.weights)

    @property
    def n_classes(self) -> int:
        return max(len(self._domain_of_class()), 1)

    @property
    def whose(self) -> Ints:
        """Number of each record's person, from 0; if the job counts records, every record has its own person."""
        return np.arange(self.n_records) if self.coded.person is None else self.coded.person

    @property
    def class_codes(self) -> Ints:
        """Places in the domain of the class: int64, shape (n_records,)."""
        return self.coded.columns[self._class_name].codes.astype(np.int64)

    def codes(self, name: str) -> Ints:
        """Return leaf numbers or places in the domain of a column: int64, shape (n_records,)."""
        return self.coded.columns[name].codes.astype(np.int64)

    def table(self, records: Ints | None = None) -> Loaded:
        """Return some of the records, by number, in the form of a run's table; None: all."""
        return table_of(self.coded if records is None else self.coded.some(records), self.task)

    def among(self, records: Ints, table: CodedTable) -> Ints:
        """Return the records of a table, compared by all values that the table tells apart.

        Domains that the job leaves to its data may be smaller in the table.
        """
        schema = self.table(records[:0]).table.schema
        table = table.recoded(schema)
        names = [*(c.name for c in schema.qid), self._class_name, *(c.name for c in schema.sensitive)]
        theirs = [*table.qid, *(table.axis(i) for i in range(len(schema.cell_shape)))]
        columns = [np.concatenate([self.codes(n)[records], t]) for n, t in zip(names, theirs, strict=True)]
        keys = pack(columns, [*(c.n_leaves for c in schema.qid), *schema.cell_shape])
        there: Ints = records[np.isin(keys[: len(records)], keys[len(records) :])]
        return there

    @property
    def _class_name(self) -> str:
        (name,) = self.task.job.names("class")
        return name

    def _domain_of_class(self) -> Sequence[str]:
        return self.task.job.columns[self._class_name].domain or self.coded.columns[self._class_name].domain


def read_rows(source: Source, task: Task) -> Rows:
    """Read all columns of a job from a single table, for any holders in a run. Raises DataError as pass 1."""
    coding = coding_of(task, None, matched=False)
    grids = {n: v for n in task.job.names("qid") if isinstance(v := task.taxonomies[n], Grid)}
    numeric = list(grids)
    check_columns(source, task)
    coded = source.collapse(keeping(coding, numeric))
    check_rows(coded, coding)
    coded, found = coded_with_numbers(coded, coding, numeric)
    numbers = {
        name: _filled(numbers_in(grids[name], pa.array(column.labels, pa.string())), grids[name])[
            column.codes
        ]
        for name, column in found.items()
    }
    units = np.repeat(np.arange(len(coded.weights)), coded.weights)
    single = replace(coded, weights=np.ones(len(coded.weights), dtype=np.int64)).some(units)
    return Rows(task, single, {name: values[units] for name, values in numbers.items()})


def _filled(numbers: Floats, grid: Grid) -> Floats:
    """Return numbers with the middle of the domain in place of a missing number."""
    return np.where(np.isnan(numbers), grid.middle(grid.root), numbers)
