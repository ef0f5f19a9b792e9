"""A joint run read back from its release: the specializations from its report, the counts from their file.

All else of the result that its parties sign follows from these (:mod:`jobs.dp.replay`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from anonymize.candidates import marked
from anonymize.cut import Candidate, Cut, top
from anonymize.dp.noisy_table import cut_domain
from anonymize.errors import PrivacyError
from anonymize.table import Schema
from anonymize.tds import Step
from jobs.dp.counts import counts_csv, read_counts
from jobs.dp.nodes import nodes_of
from jobs.dp.replay import replayed_run
from jobs.dp.result import encode_result
from jobs.errors import PartyError
from jobs.release.encoded import MALFORMED
from jobs.release.report import as_text, printed_candidate
from jobs.task import Task


def signed_result(task: Task, counts: bytes, report: Mapping[str, Any]) -> str | None:
    """SHA-256, hexadecimal, of the result of the joint run that released these counts and this report.

    None where it cannot be told: the report names a node that prints as another of its cut. Raises PartyError
    (verification-failed) for specializations and counts of no run of the job.
    """
    try:
        followed = _followed(task.schema, report["specializations"])
        if followed is None:
            return None
        steps, cut = followed
        _, found = read_counts(counts, task.job.published)
        table = cut_domain(task.schema, cut).table(found)
        if counts_csv(table, task.job.published) != counts:
            raise ValueError("not the cells of the cut, in their order")
        return hashlib.sha256(encode_result(replayed_run(task, steps, table))).hexdigest()
    except (*MALFORMED, PrivacyError) as error:
        raise PartyError(
            "verification-failed", "no run of the job makes such specializations and counts"
        ) from error


def _followed(schema: Schema, told: Any) -> tuple[list[Step], Cut] | None:
    """The specializations of a report, from the top; None where one of them may be one or another.

    Raises PartyError, ValueError, TypeError or LookupError for one that the cut does not allow.
    """
    steps, cut = [], top(schema)
    for fields in told:
        found = list(_candidates(schema, cut, fields))
        if len(found) > 1:
            return None
        (candidate,) = found
        steps.append(Step(candidate, applied=True, score=0))
        cut = cut.specialized(candidate)
    return steps, cut


def _candidates(schema: Schema, cut: Cut, told: Mapping[str, Any]) -> Iterator[Candidate]:
    """The candidates of a cut that print as a report tells of one."""
    number = [column.name for column in schema.qid].index(told["attribute"])
    column, (_, second, *_) = schema.qid[number], told["children"]
    nodes = [node for node in nodes_of(column, [told["value"]])[told["value"]] if node in cut.nodes[number]]
    marks = {node.first for node in nodes_of(column, [second])[second]}
    for node, mark in product(nodes, marks):
        candidate = marked(number, column, node, mark)
        if candidate is not None and as_text(printed_candidate(schema, candidate)) == as_text(told):
            yield candidate
