"""Clusters found in a table, and in a release of the table, by scikit-learn: the comparison of [CLU].

A raw record is the point of :mod:`anonymize.clusters`. The point of a released record is as near as the values
allow: an interval is its middle, and a node of a taxonomy has the same share of each leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.clusters import UNIT, middles
from anonymize.grid import Grid
from anonymize.table import Codes, Ints, QidColumn, pack, tally
from anonymize.taxonomy import Taxonomy
from evaluation.learners import library

Floats = NDArray[np.float64]
METHODS: Mapping[str, str] = {"kmeans": "KMeans", "bisecting": "BisectingKMeans"}
"""Class of scikit-learn, by name."""
_STARTS = 3


@dataclass(frozen=True)
class Points:
    """Values of a column as points, by number.

    coordinates:  float64, shape (n_values, n_features).
    of_leaf:      the number of the value of each leaf: int64, shape (n_leaves,).
    """

    coordinates: Floats = field(repr=False)
    of_leaf: Ints = field(repr=False)


def raw_points(column: QidColumn) -> Points:
    """Return points with every leaf as a value."""
    values = column.values
    if isinstance(values, Grid):
        coordinates = middles(values)[:, None] / UNIT
    else:
        coordinates = np.eye(column.n_leaves) / np.sqrt(2)
    return Points(coordinates, np.arange(column.n_leaves))


def released_points(column: QidColumn, of_leaf: Ints) -> Points:
    """Return points, equal for leaves published alike; of_leaf: the value of each leaf, int64, shape (n_leaves,)."""
    values, n_values = column.values, int(of_leaf.max()) + 1
    sizes = np.bincount(of_leaf, minlength=n_values)
    if isinstance(values, Grid):
        edges = np.array([float(edge) for edge in values.edges])
        first = np.array([np.flatnonzero(of_leaf == i)[0] for i in range(n_values)])
        shares = ((edges[first] + edges[first + sizes]) / 2 - edges[0]) / (edges[-1] - edges[0])
        return Points(shares[:, None], of_leaf)
    coordinates = (of_leaf == np.arange(n_values)[:, None]) / sizes[:, None] / np.sqrt(2)
    return Points(coordinates, of_leaf)


def places_of_labels(column: QidColumn, labels: Sequence[str]) -> Ints | None:
    """Return the place, among the different labels, of each leaf's published label; None if labels do not cover the
    leaves.

    The label of a leaf is the nearest published node above (or itself), or the nearest node with a published rest.
    Below a node with values taken out, the taken-out values stand deeper.
    """
    place = {label: i for i, label in enumerate(labels)}
    values = column.values
    found = np.full(column.n_leaves, -1, dtype=np.int64)
    if isinstance(values, Taxonomy):
        for node in values.nodes:  # every node stands behind its ancestors
            label = values.label(node)
            number = place.get(label, place.get(f"other {label}", -1))
            if number >= 0:
                found[node.first : node.last] = number
    else:
        for label, number in place.items():
            interval = values.interval(label)
            if interval is not None:
                found[interval.first : interval.last] = number
    return found if set(found.tolist()) == set(range(len(labels))) else None


@dataclass(frozen=True)
class Found:
    """Clusters of records.

    labels:     of every record: int64, shape (n_records,).
    centroids:  float64, shape (n_clusters, n_features).
    """

    labels: Ints = field(repr=False)
    centroids: Floats = field(repr=False)

    @property
    def count(self) -> int:
        return len(self.centroids)


def clustered(
    points: Sequence[Points],
    codes: Sequence[Codes],
    weights: Ints,
    count: int,
    method: str,
    seed: int = 0,
) -> Found:
    """Find clusters of different records with their weights, the same for the same seed and for any order.

    points, codes:  by column its values and the leaf numbers of the rows, shape (n_rows,).
    weights:        int64, shape (n_rows,).

    With fewer than ``count`` different records, each record is a cluster.
    """
    values = [point.of_leaf[code] for point, code in zip(points, codes, strict=True)]
    keys = pack(values, [len(point.coordinates) for point in points])
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    parts = [point.coordinates[value[first]] for point, value in zip(points, values, strict=True)]
    different = np.hstack(parts)
    if len(different) <= count:
        return Found(inverse, different)
    of_each = tally(inverse, weights, len(different))
    with library("threadpoolctl").threadpool_limits(1):  # threads wait for each other on a busy machine
        kind = getattr(library("sklearn.cluster"), METHODS[method])
        model = kind(n_clusters=count, n_init=_STARTS, random_state=seed).fit(
            different, sample_weight=of_each
        )
    labels: Ints = model.labels_.astype(np.int64)[inverse]
    return Found(labels, model.cluster_centers_)
