"""Replay of a kd run from its release alone (semantics §11.5).

The first valid candidate of a group is the first candidate that no final group crosses. Each side of such a candidate
is a union of groups that meet the requirement, so the side meets it, too; and a valid candidate is taken. So every
decision of a run, and every count opened by a joint run, follows from the final boxes and their counts. A holder of
the table learns nothing more from the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.kd.boxes import PublicSplit
from anonymize.kd.fronts import NONE, CutCounts, Front, Fronts, Verdict, first_valid
from anonymize.kd.table import BoxedTable, in_box_order
from anonymize.table import Ints, Schema, tally


@dataclass(frozen=True)
class Replayed:
    """Front of a run.

    left:  final groups left of the cut of their group, and all final groups in uncut groups: shape (n_final,).
    group:  open group of each final group, NONE if already final: int64, shape (n_final,).
    """

    front: Front
    verdict: Verdict
    left: Bools = field(repr=False)
    group: Ints = field(repr=False)


def cuts_of(schema: Schema, table: BoxedTable, least: int) -> Ints:
    """Count the cut groups, by column and cuts before: int64, shape (n_columns, n_depths); least: K.

    Raises ValueError for boxes other than the final boxes of the replay: no run makes such boxes.
    """
    cuts, fronts = CutCounts(schema), _fronts(schema, table, least)
    for each in _replayed(table, fronts, lambda _: None):
        cuts.add(each.front, each.verdict)
    boxes, _ = fronts.final
    made = boxes.some(in_box_order(boxes))
    if not (np.array_equal(made.first, table.boxes.first) and np.array_equal(made.last, table.boxes.last)):
        raise ValueError("boxes that no run makes")
    return cuts.by_column


def replay(
    schema: Schema, table: BoxedTable, least: int, width: Callable[[Ints], int | None] = lambda _: None
) -> Iterator[Replayed]:
    """Yield every front of the run that made a table.

    least:  K. width: function from the open group of every final group (NONE: already final) to the number of
            candidates in the next front, None for all.
    """
    yield from _replayed(table, _fronts(schema, table, least), width)


def _fronts(schema: Schema, table: BoxedTable, least: int) -> Fronts:
    return Fronts(schema, PublicSplit(schema), int(table.count.sum()), least)


def _replayed(table: BoxedTable, fronts: Fronts, width: Callable[[Ints], int | None]) -> Iterator[Replayed]:
    sizes = table.sizes()
    group = np.zeros(table.n_groups, dtype=np.int64)
    first, last = table.boxes.first, table.boxes.last
    while (front := fronts.next(width(group))) is not None:
        members = np.flatnonzero(group != NONE)
        of = group[members]
        crossed = np.zeros(front.at.shape, dtype=bool)
        for place in range(front.at.shape[1]):
            columns, at = front.columns[of, place], front.at[of, place]
            crosses = (first[columns, members] < at) & (at < last[columns, members])
            crossed[of[crosses], place] = True
        taken = first_valid((front.at > 0) & ~crossed)
        columns, at = front.of(taken)
        left = np.zeros(table.n_groups, dtype=bool)
        left[members] = last[columns[of], members] <= at[of]
        verdict = Verdict(taken, tally(of, sizes[members] * left[members], front.n_groups))
        yield Replayed(front, verdict, left, group)
        move = fronts.follow(front, verdict)
        number = np.where(move.is_final, NONE, np.cumsum(~move.is_final) - 1)
        child = np.full((2, front.n_groups), NONE, dtype=np.int64)
        child[move.is_right.astype(np.int64), move.parent] = number
        group = group.copy()
        group[members] = child[(~left[members]).astype(np.int64), of]
