"""`split: median` ([MSA] Fig. 5): groups are cut where their own records are halved best; for one holder alone.

A cut point that is tried and refused is then known to nobody who has the release, so a joint run would tell more than
its table (semantics §11.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anonymize.criteria.criterion import Criterion
from anonymize.kd.boxes import Boxes, Candidates, PublicSplit, depths
from anonymize.kd.fronts import Front, Verdict
from anonymize.kd.single import SingleHolder
from anonymize.table import CodedTable, Ints, QidColumn, Schema
from anonymize.taxonomy import Taxonomy
from anonymize.tds import Turn


class MedianHolder(SingleHolder):
    """The one holder of a whole table, as a :class:`anonymize.kd.fronts.Cutter` with one candidate for each column.

    It is the allowed place with records on both sides for which |2·left − n| is least, the smaller of two.
    """

    def __init__(self, table: CodedTable, criteria: Sequence[Criterion]) -> None:
        super().__init__(table, criteria)
        self._depths = [_depths(column) for column in table.schema.qid]

    def split(self, schema: Schema) -> PublicSplit:
        return _OnePerColumn(schema)

    def verdict(self, front: Front) -> Turn[Verdict]:
        self._halved = replace(front, at=self._rows.medians(front, self._depths))
        return (yield from super().verdict(self._halved))

    def apply(self, front: Front, verdict: Verdict) -> None:
        super().apply(self._halved, verdict)


class _OnePerColumn(PublicSplit):
    """A place in every column that may be cut at all, in the order of the columns; where it is cut, the rows say."""

    def candidates(self, boxes: Boxes) -> Candidates:
        found = super().candidates(boxes)
        found.at[:, :, 1:] = 0
        return found


def _depths(column: QidColumn) -> Ints:
    """As :func:`anonymize.kd.boxes.depths`; of a grid all equal."""
    if isinstance(column.values, Taxonomy):
        return depths(column.values)
    return np.zeros(column.n_leaves, dtype=np.int64)
