"""Specializations of a run: encoding in the result, and replay from the encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anonymize.candidates import marked, prospects
from anonymize.cut import Candidate, Cut, top
from anonymize.grid import Grid
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Node
from anonymize.tds import Step
from jobs.release.report import printed_candidate

MOST_READINGS = 256
"""Most readings of a report. Only a taxonomy with nodes that print alike allows several readings."""


def step_fields(step: Step) -> list[Any]:
    """Return an encoded step. A step because of a node with a single value has null in the score's place."""
    candidate, score = step.candidate, None if step.naming else step.score
    return [candidate.column, candidate.node.first, candidate.mark, step.applied, score]


def replayed(schema: Schema, fields: Sequence[Sequence[Any]]) -> tuple[tuple[Step, ...], Cut]:
    """Follow encoded steps from the top. Raises ValueError or LookupError for a step that the cut does not allow."""
    cut, steps = top(schema), []
    for told, first, mark, applied, score in fields:
        number = range(len(schema.qid)).index(told)  # from the end a column has a second number
        (node,) = [node for node in cut.nodes[number] if node.first == first]
        candidate = marked(number, schema.qid[number], node, mark)
        if candidate is None:
            raise ValueError("no such candidate")
        if score is None and not (applied and schema.qid[number].parts_by_child(node)):
            raise ValueError("a node that cannot be called by one of its children")
        steps.append(Step(candidate, bool(applied), 0 if score is None else int(score), naming=score is None))
        cut = cut.specialized(candidate) if applied else cut
    return tuple(steps), cut


def candidates_told(schema: Schema, cut: Cut, told: Mapping[str, Any]) -> Iterator[Candidate]:
    """Yield the candidates of a cut that print like a report's candidate.

    Several candidates print alike only if nodes of the taxonomy do. Raises ValueError, TypeError or LookupError for
    a malformed specialization.
    """
    printed = {key: told[key] for key in ("attribute", "value", "children")}
    if not (isinstance(printed["children"], list) and _are_texts([printed["value"], *printed["children"]])):
        raise TypeError("a specialization whose value or children are no texts")
    number = [column.name for column in schema.qid].index(printed["attribute"])
    column = schema.qid[number]
    for node in cut.nodes[number]:
        if column.label(node) == printed["value"]:
            for candidate in _candidates(number, column, node, printed["children"]):
                if printed_candidate(schema, candidate) == printed:
                    yield candidate


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _candidates(number: int, column: QidColumn, node: Node, children: Sequence[str]) -> Iterator[Candidate]:
    """Yield the candidates of a node; for an interval, the candidate with the second of the given children."""
    if isinstance(column.values, Grid):
        second = column.values.interval(children[1])
        candidate = None if second is None else marked(number, column, node, second.first)
        yield from () if candidate is None else (candidate,)
    else:
        yield from (way.specialized(0) for way in prospects(number, column, node, each_child=True))
