"""Naive Bayes with counts of values: how well columns predict a class, by a model that everybody knows.

The classifier takes every column as independent of the others within a class, with one record added to every count
(Laplace). All figures are exact and need no randomness: to predict a counted record, the record leaves the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.table import Codes, Ints, tally

Logs: TypeAlias = NDArray[np.float64]
_AT_ONCE = 1 << 16
"""Records that are predicted at once."""


@dataclass(frozen=True)
class Labelled:
    """Records with a class.

    columns:  codes of each column: integers, shape (n,).
    classes:  codes of the class: integers, shape (n,).
    weights:  records of each row: shape (n,), positive.
    """

    columns: Sequence[Codes] = field(repr=False)
    classes: Codes = field(repr=False)
    weights: Ints = field(repr=False)

    def some(self, rows: slice) -> Labelled:
        """Return some of the rows."""
        return Labelled([codes[rows] for codes in self.columns], self.classes[rows], self.weights[rows])

    @property
    def parts(self) -> Iterator[Labelled]:
        """Rows, not too many at once."""
        for first in range(0, len(self.classes), _AT_ONCE):
            yield self.some(slice(first, first + _AT_ONCE))


@dataclass(frozen=True)
class NaiveBayes:
    """Counts of records.

    classes:  of each class: int64, shape (n_classes,).
    values:   of each value of each column by class: int64, shapes (n_values, n_classes).
    """

    classes: Ints = field(repr=False)
    values: Sequence[Ints] = field(repr=False)

    def accuracy(self, records: Labelled) -> float:
        """Return the share of other records with a correctly predicted class. Of equal classes the first is taken."""
        return self._share(records, 0)

    def accuracy_of_own(self, records: Labelled) -> float:
        """Return the share of the counted records with a correctly predicted class, each from all other records."""
        return self._share(records, 1)

    def _share(self, records: Labelled, own: int) -> float:
        hits = sum(
            int(part.weights[self._predicted(part, own) == part.classes].sum()) for part in records.parts
        )
        return hits / int(records.weights.sum())

    def _predicted(self, records: Labelled, own: int) -> Ints:
        """Return the class of the highest probability for each row: int64, shape (n,). own: 1 leaves the row out."""
        of_class, of_values = self._logs(0)
        scores = np.tile(of_class, (len(records.classes), 1))
        for codes, logs in zip(records.columns, of_values, strict=True):
            scores += logs.take(codes, axis=0)
        if own:
            of_class, of_values = self._logs(own)
            left_out = of_class[records.classes]
            for codes, logs in zip(records.columns, of_values, strict=True):
                left_out += logs[codes, records.classes]
            scores[np.arange(len(records.classes)), records.classes] = left_out
        found: Ints = scores.argmax(axis=1)
        return found

    def _logs(self, less: int) -> tuple[Logs, list[Logs]]:
        """Return the summands of the logarithm of each class's probability, up to a constant.

        The first has shape (n_classes,), and each column's have shape (n_values, n_classes): float64.

        less:  records that leave every count.
        """
        of_class = np.maximum(self.classes - less, 0)
        of_values = [
            np.log(np.maximum(counts - less, 0) + 1.0) - np.log(of_class + len(counts))
            for counts in self.values
        ]
        return np.log(of_class + 1.0), of_values


def counted_of(records: Labelled, sizes: Sequence[int], n_classes: int) -> NaiveBayes:
    """Count records. sizes: the number of values of each column, one column or more."""
    values = [
        tally(codes.astype(np.int64) * n_classes + records.classes, records.weights, size * n_classes)
        for codes, size in zip(records.columns, sizes, strict=True)
    ]
    of_class = tally(records.classes.astype(np.int64), records.weights, n_classes)
    return NaiveBayes(
        of_class, [found.reshape(size, n_classes) for found, size in zip(values, sizes, strict=True)]
    )
