"""A run read back from its release: the specializations from its report, the counts from their file.

All else of report and result follows from these and the job (:mod:`jobs.dp.replay`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from anonymize.candidates import marked
from anonymize.cut import Candidate, Cut, top
from anonymize.dp.noisy_table import NoisyTable, cut_domain
from anonymize.errors import PrivacyError
from anonymize.table import Schema
from anonymize.tds import Step
from jobs.dp.counts import counts_csv
from jobs.dp.nodes import nodes_of
from jobs.dp.replay import replayed_alone, replayed_run
from jobs.dp.result import DpResult, result_alone, result_of
from jobs.errors import PartyError
from jobs.release.encoded import MALFORMED
from jobs.release.report import as_text, printed_candidate
from jobs.task import Task

_MOST_READINGS = 16
"""Of one report. Only a taxonomy with nodes that print alike allows more than one reading."""


def reread(task: Task, table: NoisyTable, report: Mapping[str, Any]) -> list[DpResult]:
    """Return the results that a release with this table and this report can have: one, or several.

    A report has several results where it names a node that prints as another node of its cut. Raises PartyError
    (verification-failed) for specializations and counts of no run of the job.
    """
    try:
        found = readings(task.schema, report["specializations"])
        return [_result(task, table, steps, cut) for steps, cut in found]
    except (*MALFORMED, PrivacyError) as error:
        raise PartyError(
            "verification-failed", "no run of the job makes such specializations and counts"
        ) from error


def _result(task: Task, table: NoisyTable, steps: Sequence[Step], cut: Cut) -> DpResult:
    """Return the result of one reading. Raises ValueError where no run of the job comes to it."""
    if not task.job.roster:
        return result_alone(replayed_alone(task, steps, table))
    domain = cut_domain(task.schema, cut)
    if len(table.counts) != domain.size:
        raise ValueError("not the counts of the specializations")
    again = domain.table(table.counts)
    if counts_csv(again, task.job.published) != counts_csv(table, task.job.published):
        raise ValueError("not the cells of the cut, in their order")
    return result_of(replayed_run(task, steps, again))


def readings(schema: Schema, told: Sequence[Any]) -> list[tuple[tuple[Step, ...], Cut]]:
    """Return the specializations that a report can mean, from the top, each time with their cut.

    Raises PartyError, ValueError, TypeError or LookupError for a specialization that no cut allows.
    """
    found: list[tuple[tuple[Step, ...], Cut]] = [((), top(schema))]
    for fields in told:
        found = [
            ((*steps, Step(candidate, applied=True, score=0)), cut.specialized(candidate))
            for steps, cut in found
            for candidate in _candidates(schema, cut, fields)
        ][:_MOST_READINGS]
    if not found:
        raise ValueError("a specialization of a node that is not there")
    return found


def _candidates(schema: Schema, cut: Cut, told: Mapping[str, Any]) -> Iterator[Candidate]:
    """Yield the candidates of a cut that print as a report tells of one."""
    number = [column.name for column in schema.qid].index(told["attribute"])
    column, (_, second, *_) = schema.qid[number], told["children"]
    nodes = [node for node in nodes_of(column, [told["value"]])[told["value"]] if node in cut.nodes[number]]
    marks = {node.first for node in nodes_of(column, [second])[second]}
    for node, mark in product(nodes, marks):
        candidate = marked(number, column, node, mark)
        if candidate is not None and as_text(printed_candidate(schema, candidate)) == as_text(told):
            yield candidate
