"""Features for learners: of raw records, of generalized records, and of records without quasi-identifiers.

A numeric column is a single feature: the number itself, or the middle of its interval. Any other column is a
feature of 0 and 1 for each value, or for each node of the cut. Of more than 255 values only the most frequent have
features. Writing a node as the shares of its leaves would give a tree the same questions to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from anonymize.cut import Cut
from anonymize.grid import Grid
from anonymize.kd.boxes import Boxes
from anonymize.table import Ints, QidColumn, Schema
from anonymize.taxonomy import Node
from evaluation.rows import Rows

Features = NDArray[np.float32]
"""Shape (n_records, n_features)."""

Seen = Callable[[Rows, Schema], Features]
"""Function that shows records as in a release, also records outside the release."""

MOST_VALUES = 255


def raw_features(rows: Rows, schema: Schema) -> Features:
    """Return quasi-identifiers as in the table, and the sensitive columns."""
    return _joined(
        [
            rows.numbers[column.name][:, None] if column.is_numeric else _one_hot(rows.codes(column.name))
            for column in schema.qid
        ],
        rows,
        schema,
    )


def generalized_features(rows: Rows, schema: Schema, cut: Cut) -> Features:
    """Return quasi-identifiers generalized by a cut, and the sensitive columns, as a release shows the records."""
    return _joined(
        [
            _generalized(column, cut, i, rows.codes(column.name))
            for i, column in enumerate(schema.qid)
            if cut.is_refined(i)
        ],
        rows,
        schema,
    )


def seen_by_cut(cut: Cut) -> Seen:
    """Return the view of a release of a cut."""
    return lambda rows, schema: generalized_features(rows, schema, cut)


def seen_in_boxes(boxes: Boxes) -> Seen:
    """Return the view of a release of boxes."""
    return lambda rows, schema: boxed_features(rows, schema, boxes)


def boxed_features(rows: Rows, schema: Schema, boxes: Boxes) -> Features:
    """Return quasi-identifiers generalized to the box of each record, and the sensitive columns.

    Boxes overlap from group to group, so the features of a run are the shares of its values.
    """
    group = nearest_boxes(schema, boxes, [rows.codes(column.name) for column in schema.qid])
    runs = list(zip(schema.qid, boxes.first, boxes.last, strict=True))
    refined = [run for run in runs if (run[2] - run[1] < run[0].n_leaves).any()]
    return _joined([_shares(*run, group) for run in refined], rows, schema)


def nearest_boxes(schema: Schema, boxes: Boxes, codes: Sequence[Ints]) -> Ints:
    """Return the box of every record, by number: int64, shape (n_records,).

    A record outside all boxes (no anonymized record lay there) goes to the nearest box: the distance is the number
    of leaves outside as a share of the column's leaves, added up over columns; ties go to the earlier box.
    """
    n_records = len(codes[0])
    found = np.empty(n_records, dtype=np.int64)
    step = max(1, _MOST_DISTANCES // boxes.n_boxes)
    for start in range(0, n_records, step):
        part = slice(start, start + step)
        distance = np.zeros((len(codes[0][part]), boxes.n_boxes))
        for column, first, last, own in zip(schema.qid, boxes.first, boxes.last, codes, strict=True):
            leaf = own[part, None]
            distance += (np.maximum(first - leaf, 0) + np.maximum(leaf - (last - 1), 0)) / column.n_leaves
        found[part] = distance.argmin(axis=1)
    return found


_MOST_DISTANCES = 1 << 23


def _shares(column: QidColumn, first: Ints, last: Ints, group: Ints) -> NDArray[np.floating]:
    if isinstance(column.values, Grid):
        middles = np.array([column.values.middle(Node(*run)) for run in zip(first, last, strict=True)])
        return middles[group][:, None]
    leaves = np.arange(column.n_leaves)
    share = ((first[:, None] <= leaves) & (leaves < last[:, None])) / (last - first)[:, None]
    kept = np.sort(np.argsort(-share[group].sum(axis=0), kind="stable")[:MOST_VALUES])
    shares: NDArray[np.floating] = share[:, kept][group]
    return shares


def sensitive_features(rows: Rows, schema: Schema) -> Features:
    """Return the features of a release without any quasi-identifier."""
    return _joined([], rows, schema)


def _generalized(column: QidColumn, cut: Cut, number: int, codes: Ints) -> NDArray[np.floating]:
    places = cut.positions(number)[codes]
    if not isinstance(column.values, Grid):
        return _one_hot(places)
    middles = np.array([column.values.middle(node) for node in cut.nodes[number]])
    return middles[places][:, None]


def _joined(qid: list[NDArray[np.floating]], rows: Rows, schema: Schema) -> Features:
    """Join the features and the sensitive columns; without any column, return a constant feature."""
    blocks = [*qid, *(_one_hot(rows.codes(column.name)) for column in schema.sensitive)]
    if not blocks:
        return np.zeros((rows.n_records, 1), dtype=np.float32)
    return np.hstack([block.astype(np.float32) for block in blocks])


def _one_hot(codes: Ints) -> Features:
    """Return a feature for each occurring value, at most MOST_VALUES: ties go to the smaller code."""
    values, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    kept = np.argsort(-counts, kind="stable")[:MOST_VALUES]
    identity = np.zeros((len(values), len(kept)), dtype=np.float32)
    identity[kept, np.arange(len(kept))] = 1
    return identity[places]
