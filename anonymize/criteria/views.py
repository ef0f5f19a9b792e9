"""Views that map cells to tallies: several tallies of the same sensitive columns are counted in a single pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.criterion import RECORDS, Bools, Measure, Tally
from anonymize.table import Ints, Schema, tally

N = TypeVar("N", bound=np.generic)


@dataclass(frozen=True)
class CellView:
    """Sensitive columns with *labels*: combinations of values that no tally distinguishes have the same label.

    columns:   numbers of the columns, ascending.
    labels:    label of every combination of values, ``n_labels`` if no tally counts it: int64, an axis for each
               column.
    n_labels:  number of counted labels.
    tallies:   labels of each tally.
    """

    columns: tuple[int, ...]
    labels: Ints = field(repr=False)
    n_labels: int
    tallies: tuple[tuple[Tally, Ints], ...] = field(repr=False)

    @cached_property
    def tells_all_apart(self) -> bool:
        """True if each tally has a single label, in the order of the tallies."""
        return all(which.tolist() == [i] for i, (_, which) in enumerate(self.tallies))

    def of_cells(self, schema: Schema) -> Ints:
        """Return the label of every cell of the schema: int64, shape (n_cells,)."""
        return self.of_some(schema, np.arange(schema.n_cells))

    def of_some(self, schema: Schema, cells: Ints) -> Ints:
        """Return the labels of the given cells: int64, shape as ``cells``."""
        return self.of_codes(sensitive_codes(schema, cells)) if self.columns else np.zeros_like(cells)

    def of_codes(self, codes: Mapping[int, NDArray[np.integer]]) -> Ints:
        """Return the label of every record or cell, from its values by column: int64, shape as the codes."""
        labels: Ints = self.labels[tuple(codes[column] for column in self.columns)]
        return labels

    def read(self, by_label: NDArray[N]) -> dict[Measure, NDArray[N]]:
        """Return the tallies from counts by label along the first axis; modulo the range of the dtype."""
        return {
            t: by_label[which[0]] if len(which) == 1 else by_label[which].sum(axis=0, dtype=by_label.dtype)
            for t, which in self.tallies
        }


def sensitive_codes(schema: Schema, cells: Ints) -> dict[int, Ints]:
    """Return the category of every given cell by sensitive column."""
    _, *axes = schema.axes(cells)
    tested = (column.tests(codes) for column, codes in zip(schema.sensitive, axes, strict=True))
    return dict(enumerate(tested))


def views_of(schema: Schema, tallies: Sequence[Tally]) -> tuple[CellView, ...]:
    """Group tallies by columns, in their order; at least one view.

    Views are cached: the root check and all tests of a run use the same tallies and columns.
    """
    return _views_of(tuple(len(column.tested) for column in schema.sensitive), tuple(tallies), linked=False)


def linked_views_of(schema: Schema, tallies: Sequence[Tally]) -> tuple[CellView, ...]:
    """Group tallies likewise, but join columns of a common tally into a view with all their tallies.

    The result has fewer views with more labels, for callers with a cost per view.
    """
    return _views_of(tuple(len(column.tested) for column in schema.sensitive), tuple(tallies), linked=True)


@lru_cache(maxsize=8)
def _views_of(sizes: tuple[int, ...], tallies: tuple[Tally, ...], *, linked: bool) -> tuple[CellView, ...]:
    """Make the views. sizes: numbers of categories of the sensitive columns."""
    beside = _linked(tallies) if linked else {}
    by_columns: dict[tuple[int, ...], list[Tally]] = {}
    for counted in tallies:
        if counted != RECORDS:
            by_columns.setdefault(beside.get(counted.columns[0], counted.columns), []).append(counted)
    return tuple(_view(sizes, columns, own) for columns, own in by_columns.items()) or (_NOTHING,)


def _linked(tallies: Sequence[Tally]) -> dict[int, tuple[int, ...]]:
    """Return, by column, all columns linked with it by tallies, directly or indirectly, with the column itself."""
    found: dict[int, tuple[int, ...]] = {}
    for counted in tallies:
        known = (found.get(column, (column,)) for column in counted.columns)
        together = tuple(sorted({column for columns in known for column in columns}))
        found |= dict.fromkeys(together, together)
    return found


_NOTHING = CellView((), np.zeros((), dtype=np.int64), 0, ())


def _view(sizes: Sequence[int], columns: tuple[int, ...], tallies: Sequence[Tally]) -> CellView:
    shape = [sizes[column] for column in columns]
    codes = dict(zip(columns, np.indices(shape).reshape(len(shape), -1), strict=True))
    counted = np.stack([t.among(codes) for t in tallies])
    some: Bools = np.logical_or.reduce(counted, axis=0)
    _, first, inverse = np.unique(_in_order(counted[:, some]), return_index=True, return_inverse=True)
    labels = np.full(counted.shape[1], len(first), dtype=np.int64)
    labels[some] = inverse
    of_label = counted[:, some][:, first]
    of_tally = tuple((t, np.flatnonzero(row)) for t, row in zip(tallies, of_label, strict=True))
    return CellView(columns, labels.reshape(shape), len(first), of_tally)


def _in_order(counted: Bools) -> NDArray[np.void]:
    """Return a key for every column of bits: columns counted by the first row come first, and so on."""
    octets = np.ascontiguousarray(np.packbits(~counted, axis=0).T)
    return octets.view(np.dtype((np.void, octets.shape[1]))).reshape(-1)


def measures_of(views: Sequence[CellView]) -> tuple[Measure, ...]:
    """Return the measures in the rows of :func:`in_rows`: the tallies of every view, then the records."""
    return (*(t for view in views for t, _ in view.tallies), RECORDS)


def in_rows(views: Sequence[CellView], by_label: Sequence[Ints]) -> Ints:
    """Return the counts of :func:`measures_of`: int64, shape (n_measures, n_groups).

    by_label: per view counts of shape (n_labels + 1, n_groups), which may be overwritten.
    """
    records = by_label[0].sum(axis=0)
    if len(views) == 1 and views[0].tells_all_apart:
        by_label[0][-1] = records  # in place of the uncounted label; all other rows are in place
        return by_label[0]
    read = (sums for view, own in zip(views, by_label, strict=True) for sums in view.read(own).values())
    return np.stack([*read, records])


def count_by(
    views: Sequence[CellView],
    labels: Sequence[Ints],
    keys: Ints,
    n_keys: int,
    weights: Ints | NDArray[np.float64] | None,
) -> Ints:
    """Add up weights by key for all of :func:`measures_of`: int64, shape (n_measures, n_keys); None: 1 each.

    labels: per view the label of every item; keys and weights: of every item, shape (n_items,).
    """
    widths = [view.n_labels + 1 for view in views]
    by_label = [
        tally(label * n_keys + keys, weights, n_keys * width).reshape(width, n_keys)
        for label, width in zip(labels, widths, strict=True)
    ]
    return in_rows(views, by_label)
