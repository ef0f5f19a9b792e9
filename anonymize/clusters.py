"""Clusters of raw records by a public model. Every holder finds the same nearest centroid, exactly ([CLU] 4).

A record is a point of integers, 2^16 times its features. A number has a single feature: the middle of its grid cell
as a share of the domain, from 0 to 1. Other columns have a feature 0 or 1/√2 for each leaf, so different leaves are
at distance 1. All distances are squared, in int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from anonymize.grid import Grid
from anonymize.table import Codes, Ints, QidColumn

UNIT = 1 << 16
LEAF = 46341
"""2^16 / √2, rounded."""
_BLOCK = 1 << 20
"""Number of distances in memory at once: 8 MiB."""
Distance: TypeAlias = Callable[[Codes], Ints]


def n_features(column: QidColumn) -> int:
    """Return the number of coordinates of a column."""
    return 1 if column.is_numeric else column.n_leaves


def middles(grid: Grid) -> Ints:
    """Return the middle of every cell, 2^16 times its share of the domain, halves up: int64, shape (n_cells,)."""
    edges = [Fraction(edge) for edge in grid.edges]
    low, width = edges[0], edges[-1] - edges[0]
    shares = ((a + b) / 2 - low for a, b in pairwise(edges))
    return np.array([int(UNIT * share / width + Fraction(1, 2)) for share in shares], dtype=np.int64)


@dataclass(frozen=True)
class Clusters:
    """Centroids over some columns of a schema.

    columns:    numbers in the schema, each once.
    centroids:  int64, shape (n_clusters, n_coordinates): column after column, coordinates in [0, 2^16].
    """

    columns: tuple[int, ...]
    centroids: Ints = field(repr=False)

    @property
    def count(self) -> int:
        return len(self.centroids)

    def labels(self, schema: Sequence[QidColumn], codes: Sequence[Codes]) -> Ints:
        """Return the nearest centroid of every record, the first on ties: int64, shape (n,).

        schema, codes: the columns of the schema, and the leaf numbers of the records in each, shape (n,).
        """
        n, step = len(codes[self.columns[0]]), max(_BLOCK // self.count, 1)
        away = self._distances(schema)
        nearest = np.empty(n, dtype=np.int64)
        for start in range(0, n, step):
            distances = np.zeros((min(step, n - start), self.count), dtype=np.int64)
            for number, distance in away.items():
                distances += distance(codes[number][start : start + step])
            nearest[start : start + step] = distances.argmin(axis=1)
        return nearest

    def _distances(self, schema: Sequence[QidColumn]) -> dict[int, Distance]:
        """Return the distances in each column, by the column's number."""
        found, start = {}, 0
        for number in self.columns:
            stop = start + n_features(schema[number])
            found[number] = _distance(schema[number], self.centroids[:, start:stop])
            start = stop
        return found


def _distance(column: QidColumn, centroids: Ints) -> Distance:
    """Return the squared distances of a column's leaves, by number, from the centroids: int64, shape (n, n_clusters).

    At most 2^32 for each of fewer than 2^30 coordinates. A grid has no table of distances: it may have many more
    cells than a model has coordinates.
    """
    if isinstance(column.values, Grid):
        places = middles(column.values)

        def of_cells(codes: Codes) -> Ints:
            apart: Ints = places[codes][:, None] - centroids[:, 0]
            return apart * apart

        return of_cells
    squares = (centroids * centroids).sum(axis=1)
    leaves: Ints = squares + LEAF * LEAF - 2 * LEAF * centroids.T
    return leaves.__getitem__
