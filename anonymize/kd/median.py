"""`split: median` ([MSA] Fig. 5): groups are cut at the best halving of their own records; for a single holder only.

Readers of the release do not know the tried and refused cut points. So a joint run would reveal more than its table
(semantics §11.6).
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
    """Single holder of a whole table, as a :class:`anonymize.kd.fronts.Cutter` with a candidate for each column.

    The candidate is the allowed place with records on both sides and the least |2·left − n|; on a tie, the smaller
    place.
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
    """Place in every column that can be cut, in the order of the columns. The rows decide the actual cut point."""

    def candidates(self, boxes: Boxes) -> Candidates:
        found = super().candidates(boxes)
        found.at[:, :, 1:] = 0
        return found


def _depths(column: QidColumn) -> Ints:
    """Return :func:`anonymize.kd.boxes.depths`; all equal for a grid."""
    if isinstance(column.values, Taxonomy):
        return depths(column.values)
    return np.zeros(column.n_leaves, dtype=np.int64)
