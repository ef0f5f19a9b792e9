"""Tests of criteria for groups of a holder's items: by cases, from counts in a single pass, or by exact search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import Bools, Criterion, Violation, Weights, sides_of, tallies_of
from anonymize.criteria.views import count_by, measures_of, sensitive_codes, views_of
from anonymize.table import Ints, Schema, pack, tally

_DENSE = 4
"""Items are joined if there are at most ``_DENSE`` times as many (group, combination of values) as items."""


class GroupTest:
    """Criteria for the columns of a schema, with look-ups done once.

    sides:  side counts of the criteria, in the order for :meth:`met`.
    """

    def __init__(self, schema: Schema, criteria: Sequence[Criterion]) -> None:
        listed = [criterion for criterion in criteria if criterion.search is None]
        self._searches = [(c, c.search) for c in criteria if c.search is not None]
        self.sides = sides_of(listed)
        self._views = views_of(schema, tallies_of(listed)) if listed else ()
        self._judge = Judge(listed, (*measures_of(self._views), *self.sides)) if listed else None
        columns = sorted({column for _, search in self._searches for column in search.columns})
        self._place = {column: i for i, column in enumerate(columns)}
        self._labels = [view.of_cells(schema) for view in self._views]
        if columns:
            of_cells, self._combinations = _combinations(schema, columns)
            self._labels.append(of_cells)

    @property
    def width(self) -> int:
        """Number of counts per group."""
        return len(measures_of(self._views)) + sum(search.width for _, search in self._searches)

    def labels(self, cells: Ints) -> list[Ints]:
        """Return the labels of items by their cells: int64, the shape of ``cells``, for each way to count."""
        return [label[cells] for label in self._labels]

    def met(
        self,
        labels: Sequence[Ints],
        keys: Ints,
        n_keys: int,
        weights: Weights | None,
        side_counts: Sequence[Ints] = (),
    ) -> Iterator[tuple[Criterion, Bools]]:
        """Yield each criterion with True for the groups that meet it, shape (n_keys,). Searched criteria come last.

        labels:  from :meth:`labels`. keys: group of every item. weights: records of each item; None: 1. Shape
                 (n_items,) each. beside: side counts of every group, shape (n_keys,) each.
        """
        if self._judge is not None:
            counts = count_by(self._views, labels[: len(self._views)], keys, n_keys, weights)
            if side_counts:
                counts = np.concatenate([counts, np.stack(list(side_counts))])
            for criterion, of_cases in self._judge.met(counts):
                yield criterion, np.logical_and.reduce(of_cases, axis=0)
        if self._searches:
            combined = self._joined(labels[-1], keys, n_keys, weights)
            for criterion, search in self._searches:
                found, label, own = combined
                codes = [self._combinations[self._place[column]][label] for column in search.columns]
                yield criterion, ~search.broken(found, n_keys, codes, own)

    def violation(
        self,
        labels: Sequence[Ints],
        keys: Ints,
        n_keys: int,
        weights: Weights | None,
        n_columns: int,
        side_counts: Sequence[Ints] = (),
    ) -> Violation | None:
        """Return the first criterion that some group does not meet, or None. Arguments as in :meth:`met`."""
        for criterion, met in self.met(labels, keys, n_keys, weights, side_counts):
            if not met.all():
                return Violation(criterion.name, n_columns, criterion.column)
        return None

    def _joined(
        self, label: Ints, keys: Ints, n_keys: int, weights: Weights | None
    ) -> tuple[Ints, Ints, Weights | None]:
        """Return group, combination and records of the items, joined if the joined items are far fewer."""
        n = self._combinations.shape[1]
        if n_keys * n > _DENSE * len(keys):
            return keys, label, weights
        counts = tally(keys * n + label, weights, n_keys * n)
        present = np.flatnonzero(counts)
        return *np.divmod(present, n), counts[present]


def _combinations(schema: Schema, columns: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the combination of each cell, int64, shape (n_cells,), and its values, int64, shape (n_columns, n)."""
    codes = sensitive_codes(schema, np.arange(schema.n_cells))
    chosen = [codes[column] for column in columns]
    keys = pack(chosen, [int(own.max(initial=0)) + 1 for own in chosen])
    _, first, label = np.unique(keys, return_index=True, return_inverse=True)
    return label, np.stack(chosen)[:, first]
