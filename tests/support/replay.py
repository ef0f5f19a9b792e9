"""Openings of a strict run, computed from the released table and the public job alone.

A loop of its own over the published values: it knows no record, only cells of the release, and asks no validity.
Every specialization whose result is published was made; of those that can come next the best one came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonymize.candidates import Prospect, prospects
from anonymize.cut import Candidate, Cut, top
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.partition import GeneralizedTable, LocalRecords, fully_generalized, refine
from anonymize.score import best_option, impurity
from anonymize.table import CodedTable, Ints
from anonymize.taxonomy import Node
from tests.support.entries import plan_of
from tests.support.scores import PUBLISHED

Told = tuple[str, Any]
"""A value by its name, arrays as lists."""


@dataclass(frozen=True)
class Released:
    """A released table as anybody reads it: rows of published values with weights."""

    request: Request
    cut: Cut
    rows: CodedTable

    @classmethod
    def of(cls, request: Request, result: JointOutcome) -> Released:
        """The leaf partitions of the end, each row standing at the first leaf of its published value."""
        final = result.generalized
        qid = tuple(nodes[final.partition] for nodes in final.nodes)
        rows = CodedTable(request.schema, qid, final.cell, final.count)
        return cls(request, result.outcome.cut, rows)

    @property
    def cell_counts(self) -> Ints:
        n_cells = self.request.schema.n_cells
        return np.bincount(self.rows.cells, self.rows.weights, n_cells).astype(np.int64)


@dataclass(frozen=True)
class OnlyChild:
    """In which of its children all records of a node lie, if in one, and how the node is then replaced."""

    n_children: int
    place: int | None = None
    named: Candidate | None = None


class Places:
    """The prospects that a strict run holds, by place: what names a candidate inside the circuits, and is public."""

    def __init__(self, released: Released) -> None:
        self._released = released
        self._ways: list[Prospect] = []
        self._slots: dict[Prospect, int] = {}
        schema = released.request.schema
        self._enter([(number, column.root) for number, column in enumerate(schema.qid)])

    def named(self, children: Sequence[OnlyChild]) -> list[int]:
        """Return the openings of the circuit that tells only children: for each child of each node, 1 if it
        has all records.
        """
        replaced = [each.named for each in children if each.named is not None]
        for named in replaced:
            self._drop(named)
        self._enter([(named.column, child) for named in replaced for child in named.children])
        return [int(place == each.place) for each in children for place in range(each.n_children)]

    def _drop(self, taken: Candidate) -> None:
        self._ways = [way for way in self._ways if (way.column, way.node) != (taken.column, taken.node)]

    def opened(self, candidate: Candidate | None) -> dict[str, int]:
        """Return the openings of the circuit that finds the best candidate; nothing is evaluated where no
        node is left.
        """
        if candidate is None:
            return {"valid": 0, "index": 0, "slot": 0} if self._ways else {}
        (way,) = [way for way in self._ways if way.admits(candidate)]
        slot = self._slot(way)
        self._drop(candidate)
        self._enter([(candidate.column, child) for child in candidate.children])
        options = range(1, way.n_options + 1)
        index = next((i for i in options if way.specialized(i) == candidate), 0)
        return {"valid": 1, "index": index, "slot": slot}

    def _slot(self, asked: Prospect) -> int:
        """The slot of a prospect: a new one, in candidate order, takes the least that is free, and keeps it."""
        self._slots = {way: self._slots[way] for way in self._ways if way in self._slots}
        for way in sorted(self._ways, key=lambda way: way.specialized(1).order):
            if way not in self._slots:
                self._slots[way] = min(set(range(len(self._ways))) - set(self._slots.values()))
        return self._slots[asked]

    def _enter(self, nodes: Sequence[tuple[int, Node]]) -> None:
        """Ways to specialize nodes with records; those with options first."""
        request = self._released.request
        live = [
            way
            for number, node in nodes
            if _counts(self._released, number, [node]).any()
            for way in prospects(
                number, request.schema.qid[number], node, each_child=request.goal.needs_class
            )
        ]
        self._ways += sorted(live, key=lambda way: not way.n_options)


def told_by(released: Released) -> list[Told]:
    """Everything that all parties are told, in order."""
    request, counts = released.request, released.cell_counts
    told: list[Told] = [("root_check", True), ("root_counts", counts.tolist())]
    entries = request.requirement.entries(request.schema)
    table = fully_generalized(len(request.schema.qid), counts)
    records = LocalRecords(released.rows, released.rows.cells, table)
    cut = top(request.schema)
    asked: set[tuple[int, Node]] = set()
    is_over = False
    while not is_over:
        candidate = _next(released, cut, table)
        told.append(("candidate", candidate))
        if candidate is None:
            children = _only_children(released, cut, asked)
            if children:
                told.append(("only_child", children))
            made = [each.named for each in children if each.named is not None]
            is_over = not made
        else:
            plan = plan_of(request.schema, entries, table, candidate)
            if any(plan.at_stake(criterion).any() for criterion in plan.criteria):
                told.append(("same_counts", True))
            made = [candidate]
        for each in made:
            by_child = records.counts(each, table.entries_of(each))
            if candidate is not None:
                told.append(("partition_counts", by_child[:, :-1].tolist()))
            refinement = refine(table, each, by_child)
            records.follow(each, refinement)
            table, cut = refinement.table, cut.specialized(each)
    return told


def _only_children(released: Released, cut: Cut, asked: set[tuple[int, Node]]) -> list[OnlyChild]:
    """Of every node that was not asked about."""
    found = []
    for number, column in enumerate(released.request.schema.qid):
        for node in sorted(cut.nodes[number], key=lambda node: node.place):
            children = column.children(node)
            if (number, node) in asked or not column.by_child or not 2 <= len(children) <= 64:
                continue
            if _counts(released, number, [node]).any():
                asked.add((number, node))
                found.append(_only_child(released, number, node, children))
    return found


def _only_child(released: Released, number: int, node: Node, children: Sequence[Node]) -> OnlyChild:
    if node in released.cut.nodes[number]:  # it would be called by that child
        return OnlyChild(len(children))
    occupied = np.flatnonzero(_counts(released, number, children).any(axis=1)).tolist()
    if len(occupied) > 1:
        return OnlyChild(len(children))
    (place,) = occupied
    rest = released.request.schema.qid[number].rest_of(node, children[place]) if len(children) > 2 else None
    parts = tuple(children) if rest is None else (children[place], rest)
    return OnlyChild(len(children), place, Candidate(number, node, parts))


def _next(released: Released, cut: Cut, table: GeneralizedTable) -> Candidate | None:
    """The best of the specializations that were made, and whose node is there by now."""
    made = [
        candidate
        for number, nodes in enumerate(cut.nodes)
        for node in nodes
        if node not in released.cut.nodes[number]
        for candidate in _made(released, number, node)
    ]
    ranked = ((-_score(released, candidate, table), candidate.order, candidate) for candidate in made)
    return min(ranked, default=(0, (), None), key=lambda entry: entry[:2])[2]


def _made(released: Released, number: int, node: Node) -> list[Candidate]:
    """The specializations of a node that is not published itself: those whose parts are published apart."""
    column = released.request.schema.qid[number]
    if column.leaves_one_by_one(node):
        return _taken_out(released, number, node)
    if not column.is_numeric:
        made = Candidate(number, node, column.children(node))
        sides = _counts(released, number, made.children).any(axis=1)
        # With all records in one of two children there is no gain: then the node was called by that child.
        return [made] if sides.sum() > 1 or not released.request.goal.needs_class else []
    pieces = [piece for piece in released.cut.nodes[number] if node.first <= piece.first < node.last]
    counts = _counts(released, number, pieces)
    split = best_option(counts.cumsum(axis=0)[:-1], counts.sum(axis=0), released.request.goal.merit)
    assert split is not None, "what was specialized had records on both sides"
    middle = pieces[split + 1].first
    return [Candidate(number, node, (Node(node.first, middle), Node(middle, node.last)))]


def _taken_out(released: Released, number: int, node: Node) -> list[Candidate]:
    """For each child that is published apart from its siblings; for general use the one that parts records best."""
    column, request = released.request.schema.qid[number], released.request
    final = released.cut.positions(number)
    made, merits = [], []
    for child in column.children(node):
        rest = column.rest_of(node, child)
        if set(final[child.leaves]).isdisjoint(final[rest.leaves]):
            sides = _counts(released, number, [child, rest])
            if sides.any(axis=1).all():
                made.append(Candidate(number, node, (child, rest)))
                merits.append(int(request.goal.merit(sides[:1], sides[1:])[0]))
    return made if request.goal.needs_class or not made else [made[int(np.argmax(merits))]]


def _score(released: Released, candidate: Candidate, table: GeneralizedTable) -> Fraction:
    """InfoGain, or the sum of the squares of the leaf partitions that hold the node."""
    if released.request.goal == PUBLISHED["classification"]:
        counts = _counts(released, candidate.column, candidate.children)
        whole = counts.sum(axis=0)
        return Fraction(int(impurity(whole) - impurity(counts).sum()), int(whole.sum()))
    holds = table.nodes[candidate.column] == candidate.node.first
    return Fraction(int((table.sizes()[holds] ** 2).sum()))


def _counts(released: Released, number: int, nodes: Sequence[Node]) -> Ints:
    """Class counts of nodes whose parts are published: shape (n_nodes, n_classes)."""
    histogram = released.rows.class_histogram(number)
    return np.array([histogram[node.leaves].sum(axis=0) for node in nodes])
