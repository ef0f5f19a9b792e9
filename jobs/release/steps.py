"""The specializations of a run as they are encoded in its result, and followed again from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonymize.candidates import marked
from anonymize.cut import Cut, top
from anonymize.table import Schema
from anonymize.tds import Step


def step_fields(step: Step) -> list[Any]:
    """A step as it is encoded; one that was not made for its score has null in its place."""
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
