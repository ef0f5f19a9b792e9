"""Rows drawn from a model: class, roots, then along edges; a leaf of each bin; a number of each grid cell.

Numbers of rows are rounded, not drawn: each group is within 1 row of the model's expectation. Randomness only
decides the assignment of rows, and is public: a seed from opened values suffices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from anonymize.grid import Grid
from anonymize.release import LabelledColumn, Release, Rng, narrowed, random_order
from anonymize.synthetic.fit import Floats, Model
from anonymize.table import Ints, QidColumn, narrowest

Children: TypeAlias = tuple[int, int, Floats]
"""Column with known bins, dependent column, and their table, shape (n_bins, n_bins of the dependent, n_classes)."""


def drawn(model: Model, rng: Rng) -> Release:
    """Draw the synthetic table: the columns of the schema, then the class, rows in random order."""
    classes, leaves = drawn_leaves(model, rng)
    columns = {
        column.name: _written(column, codes, rng)
        for column, codes in zip(model.schema.qid, leaves, strict=True)
    }
    if model.schema.class_name is not None:
        columns[model.schema.class_name] = narrowed(model.schema.classes, classes)
    return Release(columns)


def drawn_leaves(model: Model, rng: Rng) -> tuple[Ints, tuple[Ints, ...]]:
    """Draw the class of each row, int64, shape (n_rows,), and the leaves by column, of the same shape."""
    n_classes = len(model.totals)
    classes = np.repeat(np.arange(n_classes), rounded(model.totals, model.n_rows, 0.5))
    classes = classes[random_order(len(classes), rng)]
    bins = dict[int, Ints]()
    for above, column, table in descent(model):
        if above == column:
            bins[column] = assigned(classes, table[0].T, rng)
        else:
            groups = classes * table.shape[0] + bins[above]
            bins[column] = assigned(groups, table.transpose(2, 0, 1).reshape(-1, table.shape[1]), rng)
    leaves = []
    for column, axis in enumerate(model.axes):
        inside = np.array(axis.bins) == np.arange(axis.n_bins)[:, None]
        leaves.append(assigned(bins[column], inside * model.leaves[column], rng))
    return classes, tuple(leaves)


def descent(model: Model) -> Iterator[Children]:
    """Yield every column once, parents first. A root is its own parent, with a table whose first axis has size 1."""
    tables = [(edge.columns, edge.table) for edge in model.edges]
    tables += [((b, a), table.transpose(1, 0, 2)) for (a, b), table in tables]
    seen = set[int]()
    for root, margin in enumerate(model.margins):
        pending: list[Children] = [] if root in seen else [(root, root, margin[None])]
        while pending:
            above, column, table = pending.pop(0)
            seen.add(column)
            yield above, column, table
            pending += [(column, b, below) for (a, b), below in tables if a == column and b not in seen]


def assigned(groups: Ints, weights: Floats, rng: Rng) -> Ints:
    """Assign a value to every row: each group's rows are shared by its weights, at random: int64, shape (n_rows,).

    groups:   of every row, shape (n_rows,).
    weights:  of every value in a group, shape (n_groups, n_values); all 0 means equal weights.
    """
    order = _by_group(groups, len(weights), rng)
    sizes = np.bincount(groups, minlength=len(weights)).tolist()
    offsets = (np.frombuffer(rng.bytes(8 * len(weights)), dtype="<u8") >> 11) * 2.0**-53
    shares = map(rounded, weights, sizes, offsets.tolist())
    values = np.empty(len(groups), dtype=np.int64)
    values[order] = np.concatenate([np.repeat(np.arange(weights.shape[1]), share) for share in shares])
    return values


def _by_group(groups: Ints, n_groups: int, rng: Rng) -> Ints:
    """Sort rows by group, and within a group by a random key of 32 bits: int64, shape (n_rows,).

    The sort takes half a key at a time, for NumPy's radix sort. Rows with equal keys keep their order. This hides
    nothing, because the draw is public, and changes no share.
    """
    halves = np.frombuffer(rng.bytes(4 * len(groups)), dtype="<u2").reshape(2, -1)
    order: Ints = np.argsort(halves[0], kind="stable")
    for key in (halves[1], groups.astype(narrowest(n_groups))):
        order = order[np.argsort(key[order], kind="stable")]
    return order


def rounded(weights: Floats, total: int, offset: float) -> Ints:
    """Return integers with sum ``total``, in proportion to weights, rounded up or down: int64, shape as ``weights``.

    offset:  in [0, 1). With a uniform offset, the mean of every integer is its share.
    """
    sums = np.cumsum(weights if weights.any() else np.ones(len(weights)))
    ends = np.floor(sums / sums[-1] * total + offset).astype(np.int64)
    found: Ints = np.diff(np.minimum(ends, total), prepend=0)
    return found


def _written(column: QidColumn, leaves: Ints, rng: Rng) -> LabelledColumn:
    """Return the texts of a column's values."""
    if isinstance(column.values, Grid):
        return _numbers(column.values, leaves, rng)
    return narrowed(column.values.leaves, leaves)


def _numbers(grid: Grid, cells: Ints, rng: Rng) -> LabelledColumn:
    """Draw a uniform number of each cell, with the decimals of the edges; an empty text for a missing number.

    ``check_synthetic`` limits the edges to 64 bits and to the precision of doubles.
    """
    edges = grid.units
    lows, widths = np.array([*edges[:-1], 0]), np.array([*np.diff(edges), 1])
    random = np.frombuffer(rng.bytes(8 * len(cells)), dtype="<u8")
    numbers = lows[cells] + (random % widths[cells].astype(np.uint64)).astype(np.int64)
    values = np.where(cells < grid.n_cells, numbers, edges[-1])  # no number reaches the end of the domain
    found, codes = np.unique(values, return_inverse=True)
    labels = ["" if each == edges[-1] else grid.text(each) for each in found.tolist()]
    return narrowed(tuple(labels), codes)
