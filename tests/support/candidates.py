"""Candidates and cuts drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

from anonymize.candidates import propose, prospects
from anonymize.cut import Candidate, Cut, top
from anonymize.partition import GeneralizedTable, LocalRecords, fully_generalized, refine
from anonymize.scores.groups import Groups
from anonymize.table import CodedTable, Schema, tally


def refined_at_random(table: CodedTable, data: st.DataObject) -> tuple[Cut, GeneralizedTable, LocalRecords]:
    """Apply a few candidates, valid or not."""
    schema = table.schema
    generalized = fully_generalized(len(schema.qid), tally(table.cells, table.weights, schema.n_cells))
    records = LocalRecords(table, table.cells, generalized)
    cut = top(schema)
    for _ in range(data.draw(st.integers(0, 5))):
        candidate = random_candidate(table, cut, data)
        if candidate is None:
            break
        change = refine(generalized, candidate, records.counts(candidate, generalized.entries_of(candidate)))
        records.follow(candidate, change)
        generalized, cut = change.table, cut.specialized(candidate)
    return cut, generalized, records


def random_candidate(table: CodedTable, cut: Cut, data: st.DataObject):  # type: ignore[no-untyped-def]
    candidates = candidates_of(table, cut)
    return data.draw(st.sampled_from(candidates)) if candidates else None


def candidates_of(table: CodedTable, cut: Cut) -> list[Candidate]:
    """All there are on a cut, valid or not."""
    found = [
        propose(prospect, prospect.profile(table.class_histogram(c)), Groups().merit)
        for c, column in enumerate(table.schema.qid)
        for node in cut.nodes[c]
        for prospect in prospects(c, column, node, each_child=False)
    ]
    return [p.candidate for p in found if p is not None]


def as_it_stands(schema: Schema, cut: Cut, discarded: Candidate) -> Candidate:
    """A discarded candidate on a later cut: where other children left its node, for what is left of it."""
    child, column = discarded.taken_out, schema.qid[discarded.column]
    if child is None:
        return discarded
    (node,) = [node for node in cut.nodes[discarded.column] if child in column.children(node)]
    if len(column.children(node)) == 2:
        return Candidate(discarded.column, node, column.children(node))
    return Candidate(discarded.column, node, (child, column.rest_of(node, child)))
