"""Reasons that the columns of a single holder's table were not specialized further."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice

import numpy as np

from anonymize.candidates import propose, prospects
from anonymize.criteria.clear import first_violation
from anonymize.criteria.confidence import Confidence
from anonymize.criteria.criterion import RECORDS, Criterion, Violation
from anonymize.criteria.groups import GroupTest
from anonymize.criteria.views import sensitive_codes
from anonymize.cut import Candidate, Cut, child_of_leaf
from anonymize.lkc.requirement import Entry
from anonymize.scores.score import Score
from anonymize.table import CodedTable, Ints, QidColumn, kinds_of_keys, pack, sums_by_key, tally
from anonymize.taxonomy import Node
from anonymize.tds import Outcome, Step


@dataclass(frozen=True)
class Stopped:
    """Reason for the end of a column's specialization: a threshold or another reason.

    reason:   K, C, leaf (a single value), empty, one value (all records share a leaf), no gain, or adds nothing
              (positive gain, but the score never exceeded 0).
    columns:  for a threshold, the fewest columns on which the next step would violate the threshold.
    """

    reason: str
    columns: int | None
    sensitive: str | None
    values: tuple[str, ...]


def why_stopped(
    table: CodedTable, outcome: Outcome, score: Score, of_size: Sequence[Sequence[Criterion]]
) -> dict[str, list[Stopped]]:
    """Return the reasons, per column, that a single holder's table was not specialized further.

    of_size:  by column, the criteria that the children's sizes must meet.
    """
    violations = {
        (step.candidate.column, step.candidate.taken_out or step.candidate.node): step.violation
        for step in outcome.steps
        if step.violation is not None
    }
    result = {}
    for number, column in enumerate(table.schema.qid):
        counts = table.class_histogram(number)
        grouped: dict[tuple[str, int | None, str | None], list[str]] = {}
        for node in outcome.cut.nodes[number]:
            discarded = (node, *(column.children(node) if column.by_child else ()))
            found = next(
                (violations[number, each] for each in discarded if (number, each) in violations), None
            )
            key: tuple[str, int | None, str | None]
            if found is not None:
                key = (found.criterion, found.n_columns, found.column)
            else:
                key = _unspecialized(number, column, node, counts, score, of_size[number])
            grouped.setdefault(key, []).append(column.label(node))
        result[column.name] = [Stopped(*key, tuple(values)) for key, values in grouped.items()]
    return result


def _unspecialized(
    number: int, column: QidColumn, node: Node, leaf_counts: Ints, score: Score, of_size: Sequence[Criterion]
) -> tuple[str, int | None, str | None]:
    """Return the reason that a node without a discarded candidate is still in the cut."""
    inside = leaf_counts[node.leaves]
    if node.n_leaves == 1:
        return "leaf", None, None
    if not inside.any():
        return "empty", None, None
    ways = prospects(number, column, node, each_child=score.needs_class)
    proposals = [propose(way, way.profile(leaf_counts), score.merit) for way in ways]
    found = [proposal for proposal in proposals if proposal is not None]
    if not found or np.count_nonzero(inside.sum(axis=1)) == 1:
        return "one value", None, None
    gaining = [proposal for proposal in found if proposal.gain > 0]
    if not gaining:
        return "no gain", None, None
    broken = [first_violation(of_size, {RECORDS: each.counts.sum(axis=1)}, 1) for each in gaining]
    first = broken[0]
    if first is None or None in broken:
        return "adds nothing", None, None
    return first.criterion, first.n_columns, first.column


@dataclass(frozen=True)
class Excess:
    """Protected value that is too frequent in a forbidden group.

    value:    the most frequent protected value, or its category.
    records:  number of the group's records with the value.
    bound:    largest share that the requirement allows.
    """

    value: str
    records: int
    bound: Fraction


@dataclass(frozen=True)
class Blocked:
    """Group of a single holder's records that the next step would make, and that the requirement forbids.

    The group is finer than the release: only the owner of the table may see the group.

    values:   printed values of the group by column; the column of the step comes first.
    records:  number of records.
    excess:   the protected value, if the group violates C.
    """

    values: tuple[tuple[str, str], ...]
    records: int
    excess: Excess | None = None


_MOST_SUBSETS = 300
"""Most sets of columns in which a forbidden group of a step is looked for."""


def blocked(
    table: CodedTable, outcome: Outcome, entries: Sequence[Entry]
) -> Mapping[tuple[str, str], Blocked]:
    """Return a smallest forbidden group of each discarded step, by column and printed value of the cut.

    Steps without a group found in few sets of columns are left out, and so are criteria with side counts.
    """
    found: dict[tuple[str, str], Blocked] = {}
    columns = [i for i in range(len(table.qid)) if outcome.cut.is_refined(i)]
    places = [outcome.cut.positions(i)[table.qid[i]] for i in columns]
    sizes = [*(len(outcome.cut.nodes[i]) for i in columns), table.schema.n_cells]
    first, kind = kinds_of_keys(pack([*places, table.cells], sizes), math.prod(sizes))
    for step in outcome.steps:
        candidate = step.candidate
        if step.violation is None or candidate.node not in outcome.cut.nodes[candidate.column]:
            continue
        rows = _Rows(table, outcome.cut, candidate, first, kind)
        for entry, others in islice(_sets(outcome.cut, entries, step), _MOST_SUBSETS):
            if (group := rows.forbidden(entry, others, step.violation)) is not None:
                column = table.schema.qid[candidate.column]
                found.setdefault((column.name, column.label(candidate.node)), group)
                break
    return found


class _Rows:
    """Rows of a table below the node of a candidate, with the child of each row. Rows that are alike are one row."""

    def __init__(self, table: CodedTable, cut: Cut, candidate: Candidate, first: Ints, kind: Ints) -> None:
        """``kind``: of each row in the release. ``first``: a row of each kind."""
        node, n_children = candidate.node, len(candidate.children)
        leaf = table.qid[candidate.column].astype(np.int64) - node.first
        within = np.flatnonzero((leaf >= 0) & (leaf < node.last - node.first))
        child = child_of_leaf(candidate)[leaf[within]]
        within, child = within[child >= 0], child[child >= 0]
        space = len(first) * n_children
        alike, weights = sums_by_key(kind[within] * n_children + child, table.weights[within], space)
        self._table, self._cut, self._candidate = table, cut, candidate
        self._rows, self._child, self._weights = first[alike // n_children], alike % n_children, weights

    def forbidden(self, entry: Entry, others: Sequence[int], violation: Violation) -> Blocked | None:
        """Return the smallest group that a criterion forbids among the groups on the column and on ``others``."""
        test = GroupTest(self._table.schema, entry.criteria)
        if test.sides:
            return None
        nodes = [self._candidate.children, *(self._cut.nodes[i] for i in others)]
        places = [self._child, *(self._cut.positions(i)[self._table.qid[i][self._rows]] for i in others)]
        radices = list(map(len, nodes))
        first, group = kinds_of_keys(pack(places, radices), math.prod(radices))
        weights, broken = self._weights, np.zeros(len(first), dtype=bool)
        labels = test.labels(self._table.cells[self._rows])
        for criterion, met in test.met(labels, group, len(first), weights.astype(np.float64)):
            if (criterion.name, criterion.column) == (violation.criterion, violation.column):
                broken |= ~met
        if not broken.any():
            return None
        sizes = tally(group, weights, len(first))
        smallest = int(np.flatnonzero(broken)[np.argmin(sizes[broken])])
        columns = [self._table.schema.qid[i] for i in (self._candidate.column, *others)]
        own = [of[place[first[smallest]]] for of, place in zip(nodes, places, strict=True)]
        values = tuple((column.name, column.label(node)) for column, node in zip(columns, own, strict=True))
        inside = np.flatnonzero(group == smallest)
        return Blocked(values, int(sizes[smallest]), self._excess(entry, violation, inside))

    def _excess(self, entry: Entry, violation: Violation, inside: Ints) -> Excess | None:
        """Return the most frequent protected value of a group that violates C; None for another criterion.

        inside:  places of the group's rows.
        """
        broken = (each for each in entry.criteria if isinstance(each, Confidence))
        criterion = next((each for each in broken if each.column == violation.column), None)
        if criterion is None or criterion.name != violation.criterion:
            return None
        schema = self._table.schema
        tested = schema.sensitive[criterion.number].tested
        codes = sensitive_codes(schema, self._table.cells[self._rows[inside]])[criterion.number]
        counts = tally(codes, self._weights[inside], len(tested))
        most = max(criterion.values, key=counts.__getitem__)
        return Excess(tested[most], int(counts[most]), criterion.bound)


def _sets(cut: Cut, entries: Sequence[Entry], step: Step) -> Iterator[tuple[Entry, tuple[int, ...]]]:
    """Yield each entry about the column of a step, with the other columns of each set of the violation's size."""
    assert step.violation is not None
    number = step.candidate.column
    for entry in entries:
        if number in entry.scope.columns:
            refined = [i for i in entry.scope.columns if i != number and cut.is_refined(i)]
            size = entry.scope.among(step.violation.n_columns) - 1
            for others in combinations(refined, min(size, len(refined))):
                yield entry, others
