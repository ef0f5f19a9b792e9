"""Test of orders of kd's public cuts by classes: do they make kd tables good for classification? K = 50, no C.

The orders are compared with today's order.

- *Gain*: every group takes the valid cut with the greatest information gain. The sides of a rejected cut do not
  follow from the release, so a joint run would disclose more than its table: a bound for orders, for a single
  holder.
- *Learned*: columns by the gain per record of cuts of boxes of equal width in earlier fronts. Columns without a
  known gain come first, spread over the groups. The order uses only class counts of earlier groups, which are
  unions of final groups: a replay finds the same order.
- *Scouts*: the same, but the smaller side of the first cut goes ahead. The larger side waits and begins with the
  gains learned there.
- *Constant*: columns by the gain of their best cut of the whole table, half the gain in boxes half as wide, and so
  on: a bound for orders that a job could name, as if its author knew the gains from elsewhere.

    python -m benchmarks.bench_kd_orders [DATA_SET ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Criterion
from anonymize.criteria.size import Size
from anonymize.joint.lkc.scores.rows import score_of
from anonymize.kd.fronts import NONE, Front, Verdict, cut_fronts
from anonymize.kd.rows import OpenRows
from anonymize.kd.single import SingleHolder, anonymize_kd
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.table import CodedTable, Ints, tally
from anonymize.tds import Observer, Turn, at_once, run_single
from benchmarks.data_sets import DATA_SETS, DataSet
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish
from evaluation.features import Seen, seen_by_cut, seen_in_boxes
from evaluation.holdout import mean_of, splits_of
from evaluation.learners import LEARNERS, learned

SIZE, MOST_SPLITS = 50, 3
Floats = NDArray[np.float64]


class _ByClass(SingleHolder):
    """Holder that takes valid cuts in an order computed from classes."""

    def __init__(self, table: CodedTable, criteria: Sequence[Criterion]) -> None:
        super().__init__(table, criteria)
        self._n_classes = table.schema.n_classes
        self._rows = OpenRows(table, [table.schema.classes_of(table.cells)])
        self._whole = np.array([column.n_leaves for column in table.schema.qid])

    def verdict(self, front: Front) -> Turn[Verdict]:
        left = self._rows.left_of(front)
        valid = (front.at > 0) & self._large_enough(left) & self._large_enough(front.sizes[:, None] - left)
        gains = np.stack([self._gain(front, place) for place in range(front.at.shape[1])], axis=1)
        order = self.order(front, gains)
        ranked = np.take_along_axis(valid, order, axis=1)
        first = np.take_along_axis(order, ranked.argmax(axis=1)[:, None], axis=1)[:, 0]
        taken = np.where(valid.any(axis=1), first, NONE)
        groups = np.arange(front.n_groups)
        records = np.where(taken == NONE, front.sizes, left[groups, taken])
        self.took(front, taken, records, gains[groups, taken])
        return at_once(Verdict(taken, records))

    def order(self, front: Front, gains: Floats) -> Ints:
        """Return the places of candidates in the order of trial: shape as ``front.at``."""
        raise NotImplementedError

    def took(self, front: Front, taken: Ints, records: Ints, gains: Floats) -> None:
        """Note the taken cuts."""

    def _gain(self, front: Front, place: int) -> Floats:
        """Return the bits that a cut of every group tells about its classes: shape (n_groups,)."""
        n = front.n_groups
        at = np.where(front.at[:, place] > 0, front.at[:, place], front.boxes.last[0])
        columns = np.where(front.at[:, place] > 0, front.columns[:, place], 0)
        sides = self._rows.sides_of(np.arange(n), columns, at)
        keys = sides.keys * self._n_classes + sides.labels[0]
        counts = tally(keys, sides.weights, 2 * n * self._n_classes).reshape(2, n, self._n_classes)
        gain: Floats = _bits(counts.sum(axis=0)) - _bits(counts).sum(axis=0)
        return np.maximum(gain, 0)


def _bits(counts: Ints) -> Floats:
    """Return records times entropy, over the last axis."""
    sizes = counts.sum(axis=-1)
    found: Floats = sizes * np.log2(np.maximum(sizes, 1)) - (counts * np.log2(np.maximum(counts, 1))).sum(-1)
    return found


class Gain(_ByClass):
    """Greatest gain first, ties in the given order."""

    def order(self, front: Front, gains: Floats) -> Ints:
        return np.argsort(-np.round(gains, 6), axis=1, kind="stable")


class Learned(_ByClass):
    """Columns by gain per record in earlier fronts; halved for boxes half as wide, and so on."""

    def __init__(self, table: CodedTable, criteria: Sequence[Criterion]) -> None:
        super().__init__(table, criteria)
        shape = len(self._whole), int(self._whole.max()).bit_length() + 1
        self._gained, self._records = np.zeros(shape), np.zeros(shape)

    def order(self, front: Front, gains: Floats) -> Ints:
        n_columns, groups = len(self._whole), np.arange(front.n_groups)
        known = self._records > 0
        rate = np.where(known, self._gained / np.maximum(self._records, 1), np.inf)
        for level in range(1, rate.shape[1]):
            rate[:, level] = np.where(known[:, level], rate[:, level], rate[:, level - 1] / 2)
        by_column = rate[np.arange(n_columns)[:, None], self._levels(front)].T
        untried = np.isinf(by_column)
        turn = (np.cumsum(untried, axis=1) - groups[:, None]) % max(int(untried.sum(axis=1).max()), 1)
        place = np.where(untried, turn - n_columns, -by_column).astype(np.float64)
        return np.argsort(np.take_along_axis(place, front.columns, axis=1), axis=1, kind="stable")

    def took(self, front: Front, taken: Ints, records: Ints, gains: Floats) -> None:
        columns, _ = front.of(taken)
        split = np.flatnonzero((taken != NONE) & (records > 0) & (records < front.sizes))
        at = columns[split], self._levels(front)[columns[split], split]
        np.add.at(self._gained, at, gains[split])
        np.add.at(self._records, at, front.sizes[split])

    def _levels(self, front: Front) -> Ints:
        """Count how often every box was halved in every column: shape (n_columns, n_groups)."""
        return np.round(np.log2(self._whole[:, None] / front.boxes.widths)).astype(np.int64)


class Scouts(Learned):
    """The smaller side of the first cut learns for the waiting larger side: here a run before the run."""

    def __init__(
        self, table: CodedTable, criteria: Sequence[Criterion], before: Scouts | None = None
    ) -> None:
        super().__init__(table, criteria)
        mine, theirs = (np.zeros_like(self._gained), np.zeros_like(self._records)), None
        if before is not None:
            theirs = before._known[0][0].copy(), before._known[0][1].copy()
        self._known = [mine, theirs or (np.zeros_like(self._gained), np.zeros_like(self._records))]
        self._cut = 0, 0, True

    def order(self, front: Front, gains: Floats) -> Ints:
        if front.depths[0] == 0:
            # As today, but the finest places first: scouts are to be few.
            tiers = np.repeat([0, 1, 2], np.array([1, 2, 4]) * len(self._whole))
            return np.argsort(-tiers, kind="stable")[None, :]
        found = np.empty(front.at.shape, dtype=np.int64)
        for chosen in self._sides(front):
            found[chosen] = super().order(front, gains)[chosen]
        return found

    def took(self, front: Front, taken: Ints, records: Ints, gains: Floats) -> None:
        if front.depths[0] == 0:
            (column,), (at,) = front.of(taken)
            self._cut = int(column), int(at), bool(2 * records[0] < front.sizes[0])
            return
        for chosen in self._sides(front):
            super().took(front, np.where(chosen, taken, NONE), records, gains)

    def _sides(self, front: Front) -> Iterator[NDArray[np.bool_]]:
        """Yield the scouting groups, then the waiting groups, each with their known gains."""
        column, at, is_left = self._cut
        left = front.boxes.last[column] <= at
        for known, chosen in zip(self._known, (left == is_left, left != is_left), strict=True):
            self._gained, self._records = known
            yield chosen


def scouted(table: CodedTable, criteria: Sequence[Criterion]) -> Scouts:
    before = Scouts(table, criteria)
    run_single(cut_fronts(before, Observer()))
    return Scouts(table, criteria, before)


class Constant(Learned):
    """Columns by their gain in the whole table."""

    def order(self, front: Front, gains: Floats) -> Ints:
        if not self._records.any():
            np.maximum.at(self._gained[:, 0], front.columns[0], gains[0])
            self._records[:, 0] = front.sizes[0]
        return super().order(front, gains)

    def took(self, front: Front, taken: Ints, records: Ints, gains: Floats) -> None:
        """Change nothing."""


def required(table: CodedTable, known: int) -> AskedList:
    return AskedList((Ask(known or len(table.schema.qid), (Size(SIZE), Confidences())),))


def kd(
    holder: Callable[[CodedTable, Sequence[Criterion]], SingleHolder] | None,
) -> Callable[[CodedTable], Seen]:
    return lambda table: seen_in_boxes(anonymize_kd(table, required(table, 0), holder=holder).table.boxes)


def top_down(known: int, score: str) -> Callable[[CodedTable], Seen]:
    return lambda table: seen_by_cut(
        anonymize_single(table, required(table, known), score_of(score, None)).cut
    )


WAYS: Mapping[str, Callable[[CodedTable], Seen]] = {
    "kd, today's order": kd(None),
    "kd, learned": kd(Learned),
    "kd, scouts": kd(scouted),
    "kd, constant": kd(Constant),
    "kd, gain": kd(Gain),
    **{
        f"top-down, {score}, L={known or 'all'}": top_down(known, score)
        for known in (0, 4, 2)
        for score in ("infogain", "groups")
    },
}


def rows_of(data: DataSet) -> list[Row]:
    """Return errors in percent, means over splits, by way and learner."""
    rows, errors = data.load(), dict[tuple[str, str], list[float]]()
    schema = rows.table().table.schema
    for split in splits_of(rows.whose, Fraction(1, 3), min(data.splits, MOST_SPLITS), 0):
        train = rows.table(split.train).table
        for way, seen in WAYS.items():
            features = seen(train)(rows, schema)
            for name in LEARNERS:
                found = learned(name, features, rows.class_codes, rows.n_classes, split.train, split.test)
                errors.setdefault((way, name), []).append(100 * found.error)
    return [
        Row(f"{data.name}, K={SIZE}: {way}, {name}", mean_of(found).mean, "% error")
        for (way, name), found in errors.items()
    ]


def main(names: Sequence[str]) -> None:
    chosen = names or ("crx", "support2", "Adult", "diabetes130")
    rows = [row for name in chosen for row in rows_of(DATA_SETS[name])]
    publish("orders of kd's cuts", rows, OUT.parent / "bench-kd-orders.json")


if __name__ == "__main__":
    main(sys.argv[1:])
