"""What learners are given: raw records, generalized ones, and what is left without quasi-identifiers.

A numeric column is one feature: the number itself, or the middle of its interval. Any other column is one feature of
0 and 1 for each of its values, or of the nodes of the cut; of more than 255 values the most frequent ones, the others
together having none. A node written as the shares of its leaves would give a tree the same questions to ask.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymize.cut import Cut
from anonymize.grid import Grid
from anonymize.table import Ints, QidColumn, Schema
from coordinator.evaluation.rows import Rows

Features = NDArray[np.float32]
"""Shape (n_records, n_features)."""

MOST_VALUES = 255


def raw_features(rows: Rows, schema: Schema) -> Features:
    """Quasi-identifiers as the table has them, and the sensitive columns."""
    return _joined(
        [
            rows.numbers[column.name][:, None] if column.is_numeric else _one_hot(rows.codes(column.name))
            for column in schema.qid
        ],
        rows,
        schema,
    )


def generalized_features(rows: Rows, schema: Schema, cut: Cut) -> Features:
    """Quasi-identifiers generalized by a cut, and the sensitive columns: what a release has of these records."""
    return _joined(
        [
            _generalized(column, cut, i, rows.codes(column.name))
            for i, column in enumerate(schema.qid)
            if cut.is_refined(i)
        ],
        rows,
        schema,
    )


def sensitive_features(rows: Rows, schema: Schema) -> Features:
    """What a release would have without any quasi-identifier."""
    return _joined([], rows, schema)


def _generalized(column: QidColumn, cut: Cut, number: int, codes: Ints) -> NDArray[np.floating]:
    places = cut.positions(number)[codes]
    if not isinstance(column.values, Grid):
        return _one_hot(places)
    edges = np.array([float(edge) for edge in column.values.edges])
    middles = np.array([(edges[node.first] + edges[node.last]) / 2 for node in cut.nodes[number]])
    return middles[places][:, None]


def _joined(qid: list[NDArray[np.floating]], rows: Rows, schema: Schema) -> Features:
    """These, and the sensitive columns; one constant feature where there is none."""
    blocks = [*qid, *(_one_hot(rows.codes(column.name)) for column in schema.sensitive)]
    if not blocks:
        return np.zeros((rows.n_records, 1), dtype=np.float32)
    return np.hstack([block.astype(np.float32) for block in blocks])


def _one_hot(codes: Ints) -> Features:
    """One feature for each value that occurs, at most MOST_VALUES: ties go to the smaller code."""
    values, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    kept = np.argsort(-counts, kind="stable")[:MOST_VALUES]
    identity = np.zeros((len(values), len(kept)), dtype=np.float32)
    identity[kept, np.arange(len(kept))] = 1
    return identity[places]
