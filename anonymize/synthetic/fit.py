"""Model: consistent tables from noisy marginals, as a function of the opened values alone.

A forest has a closed form: every edge's table only has to agree with the margins of its two columns. Estimates of the
same values are joined by inverse variance. Differences from independence are kept only beyond the noise
(positive-part James-Stein). Then negative counts are moved to zero (Norm-Sub; Wang et al., NDSS 2020) and edges are
raked to their margins (iterative proportional fitting; Deming, Stephan, AMS 1940).

Floating-point results are the same on every machine to the last bit: there are only + − · ÷ √ and comparison, whose
rounding IEEE 754 fixes, and a fixed order of sums (:func:`added_up`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.synthetic.marginals import Axis
from anonymize.synthetic.opened import Measured, Opened
from anonymize.table import Schema

Floats: TypeAlias = NDArray[np.float64]
_RAKINGS = 60
_LEAST = 0.02
"""Least part of the expectation or of the noise in a cell, because noise could hide a small count."""


def added_up(values: Floats, axis: int | None = None) -> Floats:
    """Return the sum along an axis, from the first value to the last; without an axis, of all values in C order.

    ``numpy.sum`` leaves the order open, which affects last digits; the result of ``cumsum`` fixes the order.
    """
    found: Floats = np.asarray(np.cumsum(values, axis=axis).take(-1, axis=axis))
    return found


@dataclass(frozen=True)
class Estimate:
    """Values with their variances, in arrays of equal shape."""

    values: Floats = field(repr=False)
    variances: Floats = field(repr=False)

    def summed(self, axis: int) -> Estimate:
        return Estimate(added_up(self.values, axis), added_up(self.variances, axis))

    def adding_up_to(self, totals: Floats | float, axis: int) -> Estimate:
        """Share out the difference to the totals along an axis, in proportion to variance."""
        missing = np.expand_dims(totals - added_up(self.values, axis), axis)
        share = self.variances / np.expand_dims(added_up(self.variances, axis), axis)
        return Estimate(self.values + missing * share, self.variances)


@dataclass(frozen=True)
class Edge:
    """Two columns of the forest.

    table:  records by bin of both and class, shape (n_bins, n_bins of the other, n_classes).
    """

    columns: tuple[int, int]
    table: Floats = field(repr=False)


@dataclass(frozen=True)
class Model:
    """Model for drawing rows. No value is negative; the sums of all tables are the totals, and of edges the margins.

    axes:     bins of every column.
    totals:   records of every class, shape (n_classes,).
    margins:  by column, records by bin and class, shape (n_bins, n_classes).
    edges:    in the order chosen.
    leaves:   by column, each leaf's share of its bin, shape (n_leaves,).
    """

    schema: Schema
    axes: tuple[Axis, ...]
    totals: Floats = field(repr=False)
    margins: tuple[Floats, ...] = field(repr=False)
    edges: tuple[Edge, ...]
    leaves: tuple[Floats, ...] = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows of the drawn table."""
        return round(float(added_up(self.totals)))


def fitted(schema: Schema, opened: Opened) -> Model:
    """Fit the model to the opened values."""
    pooled = [_by_bin(measured, axis) for measured, axis in zip(opened.leaves, opened.axes, strict=True)]
    crossed = [_joined(_by_class(opened, column)) for column in range(len(opened.bins))]
    totals = _class_totals(crossed, pooled)
    sizes = [
        _sizes(by_class, by_bin, added_up(totals)) for by_class, by_bin in zip(crossed, pooled, strict=True)
    ]
    margins = tuple(_margin(*each, totals) for each in zip(crossed, sizes, strict=True))
    edges = tuple(_edge(measured, margins, totals) for measured in opened.pairs)
    leaves = tuple(map(_shares, opened.leaves, opened.axes, sizes))
    return Model(schema, opened.axes, totals, margins, edges, leaves)


def _by_bin(measured: Measured, axis: Axis) -> Estimate:
    """Estimate the counts by bin from the counts by leaf."""
    n_leaves, values = np.bincount(axis.bins), np.zeros(axis.n_bins)
    np.add.at(values, np.array(axis.bins), measured.counts[:, 0])
    return Estimate(values, n_leaves.astype(np.float64) * measured.variance)


def _by_class(opened: Opened, column: int) -> Iterator[Estimate]:
    """Yield all estimates of a column by bin and class."""
    measured = opened.bins[column]
    yield _estimate(measured)
    for pair in opened.pairs:
        if column in pair.marginal.columns:
            yield _estimate(pair).summed(1 - pair.marginal.columns.index(column))


def _estimate(measured: Measured) -> Estimate:
    values = measured.counts.astype(np.float64)
    return Estimate(values, np.full(values.shape, measured.variance))


def _joined(estimates: Iterator[Estimate] | Sequence[Estimate]) -> Estimate:
    """Return the inverse-variance mean."""
    given = list(estimates)
    weight = sum((1 / each.variances for each in given), np.zeros_like(given[0].values))
    values = sum((each.values / each.variances for each in given), np.zeros_like(weight))
    return Estimate(values / weight, 1 / weight)


def _class_totals(crossed: Sequence[Estimate], pooled: Sequence[Estimate]) -> Floats:
    """Return the records of every class; their sum is the number of rows estimated from all tables."""
    by_class = _joined([each.summed(0) for each in crossed])
    rows = _joined([by_class.summed(0), *(each.summed(0) for each in pooled)])
    return np.maximum(by_class.adding_up_to(rows.values, 0).values, 0)


def _sizes(by_class: Estimate, by_bin: Estimate, n_rows: Floats) -> Floats:
    """Return the records of every bin."""
    known = _joined([by_class.summed(1), by_bin]).adding_up_to(n_rows, 0)
    return onto_simplex(known.values, n_rows)


def _margin(by_class: Estimate, sizes: Floats, totals: Floats) -> Floats:
    """Return the records by bin and class."""
    known = by_class.adding_up_to(sizes, 1).adding_up_to(totals, 0)
    alike = sizes[:, None] * totals / np.maximum(added_up(totals), 1.0)
    kept = Estimate(shrunk(known, alike), known.variances).adding_up_to(totals, 0)
    return np.stack([onto_simplex(*each) for each in zip(kept.values.T, totals, strict=True)], axis=1)


def shrunk(known: Estimate, prior: Floats) -> Floats:
    """Move the values to the prior by the share of noise in the squared distance; all the way if noise explains the
    distance.

    Positive-part James-Stein with known variances.
    """
    squared = added_up(np.square(known.values - prior))
    signal = squared - added_up(known.variances)
    found: Floats = prior + (known.values - prior) * (signal / squared if signal > 0 else 0.0)
    return found


def onto_simplex(values: Floats, total: Floats | float) -> Floats:
    """Return the closest non-negative values with the given sum: Norm-Sub. All arrays have shape (n,)."""
    if total <= 0:
        return np.zeros_like(values)
    ordered = np.sort(values)[::-1]
    excess = np.cumsum(ordered) - total
    taken = excess / np.arange(1, len(values) + 1)
    found: Floats = np.maximum(values - taken[np.flatnonzero(ordered >= taken)[-1]], 0)
    return found


def _edge(measured: Measured, margins: Sequence[Floats], totals: Floats) -> Edge:
    one, other = measured.marginal.columns
    known, table = _estimate(measured), np.empty(measured.counts.shape)
    prior = margins[one][:, None] * margins[other] / np.maximum(totals, 1.0)
    values = shrunk(known, prior)
    least = _LEAST * np.minimum(prior, np.sqrt(known.variances))
    for label in range(len(totals)):
        rows, columns = margins[one][:, label], margins[other][:, label]
        shifted = _shifted(values[..., label], rows, columns)
        moved = onto_simplex(shifted.reshape(-1), totals[label]).reshape(shifted.shape)
        table[..., label] = raked(np.maximum(moved, least[..., label]), rows, columns)
    return Edge((one, other), table)


def _shifted(values: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return values with these sums, by the smallest change in squares."""
    by_row, by_column = rows - added_up(values, 1), columns - added_up(values, 0)
    n_rows, n_columns = values.shape
    shifted: Floats = (
        values + by_row[:, None] / n_columns + by_column / n_rows - added_up(by_row) / values.size
    )
    return shifted


def raked(values: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale by row and by column, repeatedly, to these sums; a sum may be 0."""
    for _ in range(_RAKINGS):
        values = values * _ratio(rows, added_up(values, 1))[:, None]
        values = values * _ratio(columns, added_up(values, 0))
    return values


def _ratio(wanted: Floats, found: Floats) -> Floats:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)


def _shares(measured: Measured, axis: Axis, sizes: Floats) -> Floats:
    """Return the share of every leaf in its bin; equal shares in a bin estimated empty."""
    bins, counts = np.array(axis.bins), measured.counts[:, 0].astype(np.float64)
    shares = np.empty(len(bins))
    for number, size in enumerate(sizes.tolist()):
        inside = np.flatnonzero(bins == number)
        alike = np.full(len(inside), 1 / len(inside))
        known = Estimate(counts[inside], np.full(len(inside), measured.variance))
        values = shrunk(known.adding_up_to(size, 0), alike * size)
        shares[inside] = onto_simplex(values, size) / size if size > 0 else alike
    return shares
