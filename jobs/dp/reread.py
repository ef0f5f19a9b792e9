"""Run read back from its release: the specializations from its report, the counts from their file.

Everything else in report and result follows from specializations, counts and job (:mod:`jobs.dp.replay`).
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
from jobs.dp.replay import replayed_run, replayed_single
from jobs.dp.result import DpResult, result_of, result_single
from jobs.errors import PartyError
from jobs.release.encoded import MALFORMED
from jobs.release.steps import MOST_READINGS, candidates_told
from jobs.task import Task


def reread(task: Task, table: NoisyTable, report: Mapping[str, Any]) -> list[DpResult]:
    """Return the possible results, one or several, of a release with the given table and report.

    A report has several results if a name fits two nodes of a cut that print alike. Raises PartyError
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
    """Return the result of a reading, or None if no run of the job has the result."""
    try:
        again = _as_released(task.schema, cut, table)
        if counts_csv(again, task.job.published) != counts_csv(table, task.job.published):
            return None
        if task.job.roster:
            return result_of(replayed_run(task, steps, again))
        return result_single(replayed_single(task, steps, again))
    except (*MALFORMED, PrivacyError):
        return None


def _as_released(schema: Schema, cut: Cut, table: NoisyTable) -> NoisyTable:
    """Return the table that a run releases with the given cut and counts.

    The values of a set-valued column are the table's values, in the order of first appearance. Beyond the limit of
    cells a table need not have all values, so there only the number of cells is compared.

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
    """Values of a set-valued column in a table."""

    labels: tuple[str, ...]

    @classmethod
    def of(cls, table: NoisyTable, name: str) -> _Found:
        """Return the values of a column in the order of first appearance."""
        column = table.cells.columns[name]
        return cls(tuple(column.labels[code] for code in dict.fromkeys(column.codes.tolist())))

    @property
    def size(self) -> int:
        return len(self.labels)

    def label(self, value: int) -> str:
        return self.labels[value]


def _numbers(domain: CellDomain, table: NoisyTable) -> Iterator[int]:
    """Yield the number of each cell of a table; of cells that print alike, the first after the cell before.

    Raises ValueError for cells outside the domain, or not in ascending order.
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
    """Return the possible readings of a report's specializations, from the top, each with its cut.

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
