"""A run read back from its release: the specializations from its report, the counts from their file.

All else of report and result follows from these and the job (:mod:`jobs.dp.replay`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from anonymize.cut import Cut, top
from anonymize.dp.noisy_table import CellDomain, NoisyTable, domain_of
from anonymize.errors import PrivacyError
from anonymize.table import Schema
from anonymize.tds import Step
from jobs.dp.counts import COUNTS, counts_csv
from jobs.dp.replay import replayed_alone, replayed_run
from jobs.dp.result import DpResult, result_alone, result_of
from jobs.errors import PartyError
from jobs.release.encoded import MALFORMED
from jobs.release.steps import MOST_READINGS, candidates_told
from jobs.task import Task


def reread(task: Task, table: NoisyTable, report: Mapping[str, Any]) -> list[DpResult]:
    """Return the results that a release with this table and this report can have: one, or several.

    A report has several results where it names a node that prints as another node of its cut. Raises PartyError
    (verification-failed) for specializations and counts of no run of the job.
    """
    try:
        found = readings(task.schema, report["specializations"])
    except MALFORMED:
        found = []
    results = [result for steps, cut in found if (result := _result(task, table, steps, cut)) is not None]
    if not results:
        raise PartyError(
            "verification-failed",
            f"no run of the job makes these `specializations`, `cells`, `threshold` and {COUNTS}",
        )
    return results


def _result(task: Task, table: NoisyTable, steps: Sequence[Step], cut: Cut) -> DpResult | None:
    """Return the result of one reading; None where no run of the job comes to it."""
    try:
        again = _as_released(task.schema, cut, table)
        if counts_csv(again, task.job.published) != counts_csv(table, task.job.published):
            return None
        if task.job.roster:
            return result_of(replayed_run(task, steps, again))
        return result_alone(replayed_alone(task, steps, again))
    except (*MALFORMED, PrivacyError):
        return None


def _as_released(schema: Schema, cut: Cut, table: NoisyTable) -> NoisyTable:
    """Return the table that a run releases with this cut and these counts.

    The values of a set-valued column are those of the table, in the order in which the table has them first. Beyond
    the limit of cells a table need not have all of these, so there only the number of cells is compared.

    Raises ValueError for a number of cells that the cut does not have.
    """
    found = {i: _Found.of(table, c.name) for i, c in enumerate(schema.qid) if c.sets is not None}
    domain = domain_of(schema, cut, found)
    if table.threshold is None:
        if len(table.counts) != domain.size:
            raise ValueError("not the counts of the specializations")
        return domain.table(table.counts)
    if found:
        of_one_combination = prod(size for i, size in enumerate(domain.shape) if i not in found)
        if table.n_cells < domain.size or table.n_cells % of_one_combination:
            raise ValueError("not a number of cells of the specializations")
        return table
    if table.n_cells != domain.size:
        raise ValueError("not the number of cells of the specializations")
    return domain.listed(
        dict(zip(_numbers(domain, table), table.counts.tolist(), strict=True)), table.threshold
    )


@dataclass(frozen=True)
class _Found:
    """The values of a set-valued column that a table has."""

    labels: tuple[str, ...]

    @classmethod
    def of(cls, table: NoisyTable, name: str) -> _Found:
        """Return the values of a column in the order in which they stand first."""
        column = table.cells.columns[name]
        return cls(tuple(column.labels[code] for code in dict.fromkeys(column.codes.tolist())))

    @property
    def size(self) -> int:
        return len(self.labels)

    def label(self, value: int) -> str:
        return self.labels[value]


def _numbers(domain: CellDomain, table: NoisyTable) -> Iterator[int]:
    """Yield the number of each cell of a table; of cells that print alike the first after the cell before.

    Raises ValueError for cells that the domain does not have, or that do not ascend.
    """
    schema, columns = domain.schema, table.cells.columns
    printed = [[values.label(value) for value in range(values.size)] for values in domain.columns]
    names = (*(column.name for column in schema.qid), *filter(None, [schema.class_name]))
    places = [
        [[place for place, label in enumerate(labels) if label == own] for own in columns[name].labels]
        for name, labels in zip(names, (*printed, schema.classes), strict=True)
    ]
    number = -1
    for row in zip(*(columns[name].codes.tolist() for name in names), strict=True):
        alike = product(*(of[code] for of, code in zip(places, row, strict=True)))
        number = next((later for later in map(domain.number, alike) if later > number), -1)
        if number < 0:
            raise ValueError("not the cells of the cut, in order")
        yield number


def readings(schema: Schema, told: Sequence[Any]) -> list[tuple[tuple[Step, ...], Cut]]:
    """Return the specializations that a report can mean, from the top, each time with their cut.

    Raises PartyError, ValueError, TypeError or LookupError for a specialization that no cut allows.
    """
    found: list[tuple[tuple[Step, ...], Cut]] = [((), top(schema))]
    for fields in told:
        found = [
            ((*steps, Step(candidate, applied=True, score=0)), cut.specialized(candidate))
            for steps, cut in found
            for candidate in candidates_told(schema, cut, fields)
        ][:MOST_READINGS]
    if not found:
        raise ValueError("a specialization of a missing node")
    return found
