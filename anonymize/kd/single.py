"""kd of a holder's table ([MSA] Fig. 5, corrected): the reference for every joint run (semantics §11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import RECORDS, Bools, Criterion, counts_records, sides_of
from anonymize.criteria.groups import GroupTest
from anonymize.criteria.size import least_size
from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.kd.boxes import SIBLINGS, PublicSplit
from anonymize.kd.fronts import NONE, CutCounts, Front, Fronts, Split, Verdict, cut_fronts, first_valid
from anonymize.kd.rows import OpenRows
from anonymize.kd.table import BoxedTable, boxed
from anonymize.lkc.requirement import Entry, Requirement, met_by_the_whole
from anonymize.table import CodedTable, Ints, QidColumn, Schema
from anonymize.tds import Observer, Turn, at_once, run_single

_MOST_COUNTS = 1 << 22
"""Most counts in memory at once for the judgement of groups."""


@dataclass(frozen=True)
class KdOutcome:
    """Result of a single holder's run.

    group:    group of every row of the table: int64, shape (n_rows,).
    cuts:     cut groups, by column and cuts before: int64, shape (n_columns, n_depths).
    refused:  cuts that the sizes of both sides allowed and another criterion refused. If 0, the groups follow from
              quasi-identifiers alone. Made from raw data: for the holder.
    """

    schema: Schema
    table: BoxedTable
    group: Ints = field(repr=False)
    cuts: Ints = field(repr=False)
    refused: int = field(repr=False)


def anonymize_kd(
    table: CodedTable,
    requirement: Requirement,
    observer: Observer | None = None,
    holder: Callable[[CodedTable, Sequence[Criterion]], SingleHolder] | None = None,
) -> KdOutcome:
    """Cut a holder's table into groups, each as far as the requirement allows (semantics §11).

    holder:  cutter of the groups; None: :class:`SingleHolder`, with public places.

    Raises PrivacyError if the whole table violates the requirement or is too large for exact integer arithmetic,
    SchemaError for a requirement or a schema that kd does not take.
    """
    schema = table.schema
    entry = the_entry(requirement, schema)
    check_labels(schema.qid)
    (entry,) = met_by_the_whole(table, requirement, {})
    cutter = (holder or SingleHolder)(table, entry.criteria)
    run_single(cut_fronts(cutter, observer or Observer()))
    boxes, _ = cutter.fronts.final
    return KdOutcome(schema, *boxed(table, boxes, cutter.group), cutter.cuts.by_column, cutter.refused)


def the_entry(requirement: Requirement, schema: Schema) -> Entry:
    """Return the entry of a requirement of kd: all qid columns, all of them known.

    Raises SchemaError for another requirement.
    """
    entries = requirement.entries(schema)
    columns = tuple(range(len(schema.qid)))
    if len(entries) != 1 or entries[0].scope.columns != columns or entries[0].scope.size < len(columns):
        raise SchemaError(
            "job-invalid",
            "`method: kd` takes a single entry, with `L: all` and without `columns`: each group is a box of all "
            "quasi-identifiers, so knowledge of fewer quasi-identifiers finds at least the whole group",
            remedy="write a single entry with `L: all`, or say `method: top-down`",
        )
    (entry,) = entries
    if sides := sides_of(entry.criteria):
        raise SchemaError(
            "job-invalid",
            f"`method: kd` counts records only, not {', '.join(side.name for side in sides)}",
            remedy="say `method: top-down`",
        )
    if entry.insider:
        raise SchemaError(
            "job-invalid",
            "`insider: true` is for vertical jobs, and `method: kd` is not",
            remedy="leave `insider` out",
        )
    return entry


def check_labels(qid: Sequence[QidColumn]) -> None:
    """Refuse labels that look like a run of siblings. Raises SchemaError."""
    for column in qid:
        if not isinstance(column.values, Grid) and any(SIBLINGS in label for label in column.values.printed):
            raise SchemaError(
                "taxonomy-invalid",
                f"a label of column {column.name} holds `{SIBLINGS}`, which `method: kd` prints between siblings",
                column=column.name,
                remedy=f"write the label without `{SIBLINGS}`, or say `method: top-down`",
            )


class SingleHolder:
    """Single holder of a whole table, as a :class:`anonymize.kd.fronts.Cutter`."""

    def __init__(self, table: CodedTable, criteria: Sequence[Criterion]) -> None:
        schema = table.schema
        of_size = [c for c in criteria if counts_records(c)]
        others = [c for c in criteria if c not in of_size]
        self._sizes = Judge(of_size, [RECORDS])
        self._others = GroupTest(schema, others) if others else None
        self._rows = OpenRows(table, self._others.labels(table.cells) if self._others else ())
        self.fronts = Fronts(schema, self.split(schema), table.n_records, least_size(criteria))
        self.cuts = CutCounts(schema)
        self.refused = 0

    def split(self, schema: Schema) -> Split:
        """Return the places where boxes may be cut."""
        return PublicSplit(schema)

    @property
    def group(self) -> Ints:
        """Final group of every row; 0 for a root that was never open."""
        return self._rows.group

    def next(self) -> Front | None:
        return self.fronts.next()

    def verdict(self, front: Front) -> Turn[Verdict]:
        left = self._rows.left_of(front)
        valid = (front.at > 0) & self._large_enough(left) & self._large_enough(front.sizes[:, None] - left)
        is_cut_off = (left == 0) | (left == front.sizes[:, None])
        taken = first_valid(valid)
        doubted = np.arange(front.n_groups)
        while self._others is not None and len(doubted):
            doubted = doubted[taken[doubted] != NONE]
            doubted = doubted[~is_cut_off[doubted, taken[doubted]]]
            refused = doubted[~self._is_met(self._others, front, doubted, taken)]
            valid[refused, taken[refused]] = False
            taken[refused] = first_valid(valid[refused])
            self.refused += len(refused)
            doubted = refused
        records = np.where(taken == NONE, front.sizes, left[np.arange(front.n_groups), taken])
        return at_once(Verdict(taken, records))

    def apply(self, front: Front, verdict: Verdict) -> None:
        self.cuts.add(front, verdict)
        self._rows.follow(front, verdict.taken, self.fronts.follow(front, verdict))

    def _large_enough(self, sizes: Ints) -> Bools:
        met = np.ones(sizes.size, dtype=bool)
        for _, of_cases in self._sizes.met(sizes.reshape(1, -1)):
            met &= of_cases.all(axis=0)
        return met.reshape(sizes.shape)

    def _is_met(self, test: GroupTest, front: Front, groups: Ints, taken: Ints) -> Bools:
        """Return True for the groups where both sides of a cut meet the criteria on cells."""
        columns, at = front.columns[groups, taken[groups]], front.at[groups, taken[groups]]
        met = np.ones(len(groups), dtype=bool)
        at_a_time = max(1, _MOST_COUNTS // (2 * test.width))
        for start in range(0, len(groups), at_a_time):
            part = slice(start, start + at_a_time)
            sides = self._rows.sides_of(groups[part], columns[part], at[part])
            for _, of_sides in test.met(sides.labels, sides.keys, sides.n_keys, sides.weights):
                met[part] &= of_sides.reshape(2, -1).all(axis=0)
        return met
