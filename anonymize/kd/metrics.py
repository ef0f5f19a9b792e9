"""What a kd release is worth, computed from what is published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonymize.kd.table import BoxedTable
from anonymize.lkc.verification import label_codes, number_rows
from anonymize.release import Release
from anonymize.table import Schema


@dataclass(frozen=True)
class Metrics:
    """Measures of a released table; groups are those that its readers see, boxes that print alike being one.

    groups:                distinct combinations of generalized quasi-identifiers.
    smallest:              records in the smallest one.
    average_group:         Σ |G|² / n: records in the group of an average record; at best K.
    discernibility_ratio:  Σ |G|² / n² ([T] 3.4): 0 to 1, lower is better.
    generalization_loss:   per column the average over records of (w − 1) / (W − 1), for a box of w of the column's W
                           leaves: 0 for raw values, 1 for the root; 0 for a column of one leaf.
    ncp:                   the mean of these over all columns (normalized certainty penalty).
    """

    groups: int
    smallest: int
    average_group: float
    discernibility_ratio: float
    generalization_loss: dict[str, float]
    ncp: float


def measure(schema: Schema, table: BoxedTable, release: Release) -> Metrics:
    """Measure a table and its release."""
    codes = [label_codes(release.columns[column.name]) for column in schema.qid]
    sizes = np.unique(number_rows(codes, release.n_rows), return_counts=True)[1]
    squares = float((sizes.astype(np.float64) ** 2).sum())
    whole = np.array([max(column.n_leaves - 1, 1) for column in schema.qid])
    records = table.sizes() / release.n_rows
    loss = ((table.boxes.widths - 1) / whole[:, None]) @ records
    return Metrics(
        groups=len(sizes),
        smallest=int(sizes.min()),
        average_group=squares / release.n_rows,
        discernibility_ratio=squares / release.n_rows**2,
        generalization_loss={c.name: float(x) for c, x in zip(schema.qid, loss, strict=True)},
        ncp=float(loss.mean()),
    )
