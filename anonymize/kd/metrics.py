"""Metrics of a kd release, computed from published data: its utility, and inferences from its groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from anonymize.criteria.clear import met_by_group
from anonymize.criteria.confidence import Confidence
from anonymize.criteria.criterion import RECORDS, Bools
from anonymize.kd.table import BoxedTable
from anonymize.release import LabelledColumn, Release, ranks
from anonymize.table import Ints, Schema, tally
from anonymize.verification.tables import Bound, kinds_of_rows, label_codes, number_rows


@dataclass(frozen=True)
class Metrics:
    """Measures of a released table. Groups are as seen by readers: boxes with equal labels are the same group.

    groups:                distinct combinations of generalized quasi-identifiers.
    smallest:              records in the smallest group.
    average_group:         Σ |G|² / n: records in the group of an average record; at best K.
    discernibility_ratio:  Σ |G|² / n² ([T] 3.4): 0 to 1, lower is better.
    """

    groups: int
    smallest: int
    average_group: float
    discernibility_ratio: float


@dataclass(frozen=True)
class Loss:
    """Loss by generalization.

    generalization_loss:  per column the average over records of (w − 1) / (W − 1), for a box with w of the column's W
                          leaves: 0 for raw values, 1 for the root; 0 for a column with a single leaf.
    ncp:                  mean over all columns (normalized certainty penalty).
    """

    generalization_loss: dict[str, float]
    ncp: float


@dataclass(frozen=True)
class Inference:
    """Inference on a sensitive column from the groups of a table, each figure from its worst group.

    fewest_values:    different values in a group.
    greatest_share:   share of a protected value in a group.
    smallest_entropy_l: 2 to the entropy of a group's values: the number of equally frequent values with the same
                        entropy.
    greatest_t:       half the sum over values of the differences between the shares in a group and in the table.
    """

    fewest_values: int
    greatest_share: float
    smallest_entropy_l: float
    greatest_t: float


def measure_loss(schema: Schema, table: BoxedTable) -> Loss:
    """Measure the boxes of a table."""
    whole = np.array([max(column.n_leaves - 1, 1) for column in schema.qid])
    sizes = table.sizes()
    loss = ((table.boxes.widths - 1) @ sizes) / (whole * int(sizes.sum()))
    return Loss({c.name: float(x) for c, x in zip(schema.qid, loss, strict=True)}, float(loss.mean()))


class Groups:
    """Groups of a release as seen by readers, with inferences on sensitive columns."""

    def __init__(
        self,
        release: Release,
        columns: Sequence[str],
        bounds: Sequence[Bound],
        blocks: Sequence[Sequence[str]] | None = None,
    ) -> None:
        """Group the rows. columns: the quasi-identifiers. bounds: protected values and C of each sensitive column.

        blocks: linked sensitive columns of the release; None: all.
        """
        self._blocks = [[bound.column for bound in bounds]] if blocks is None else blocks
        codes = [label_codes(release.columns[name]) for name in columns]
        _, group = np.unique(number_rows(codes, release.n_rows), return_inverse=True)
        self.sizes = tally(group, release.counts, int(group.max(initial=-1)) + 1)
        values = [ranks(release.columns[bound.column]) for bound in bounds]
        first, self._count = kinds_of_rows([group, *values], release)
        self._group = group[first]
        self._n_records = release.n_records
        self._columns = [
            _Sensitive(bound, rank[first], _protected(release.columns[bound.column], bound.values))
            for bound, rank in zip(bounds, values, strict=True)
        ]

    @property
    def metrics(self) -> Metrics:
        """Measure the groups."""
        n, squares = self._n_records, int((self.sizes**2).sum())
        return Metrics(len(self.sizes), int(self.sizes.min()), squares / n, squares / n**2)

    @property
    def inferences(self) -> dict[str, Inference]:
        """Measure the inferences, by sensitive column."""
        return {column.bound.column: self._inference(column) for column in self._columns}

    def _inference(self, column: _Sensitive) -> Inference:
        n, n_values = len(self.sizes), len(column.protected)
        keys, key = np.unique(self._group * n_values + column.codes, return_inverse=True)
        counts = tally(key, self._count, len(keys))
        group, value = np.divmod(keys, n_values)
        share, of_all = counts / self.sizes[group], tally(value, counts, n_values) / self._n_records
        entropy = np.bincount(group, -share * np.log2(share), n)
        here = np.bincount(group, np.abs(share - of_all[value]), n)
        elsewhere = 1 - np.bincount(group, of_all[value], n)
        return Inference(
            fewest_values=int(np.bincount(group, minlength=n).min()),
            greatest_share=float(share[column.protected[value]].max(initial=0)),
            smallest_entropy_l=float(2 ** entropy.min()),
            greatest_t=float((here + elsewhere).max() / 2),
        )

    @property
    def linked_exposure(self) -> int:
        """Records exposed to somebody who knows a value of another linked sensitive column. Among the records of the
        group with the same known value, the record's protected value has a share above C.
        """
        exposed = np.zeros(len(self._group), dtype=bool)
        for block in self._blocks:
            for known, told in permutations([c for c in self._columns if c.bound.column in block], 2):
                exposed |= self._exposed(known, told)
        return int(self._count[exposed].sum())

    def _exposed(self, known: _Sensitive, told: _Sensitive) -> Bools:
        """Return True for the entries whose protected value is too frequent, given the known value."""
        pairs, pair = np.unique(self._group * len(known.protected) + known.codes, return_inverse=True)
        sizes = tally(pair, self._count, len(pairs))
        n_values = len(told.protected)
        keys, key = np.unique(pair * n_values + told.codes, return_inverse=True)
        of_pair, value = np.divmod(keys, n_values)
        criterion = Confidence(told.bound.column, 0, (0,), told.bound.confidence)
        (held,) = criterion.tallies
        met = met_by_group(criterion, {RECORDS: sizes[of_pair], held: tally(key, self._count, len(keys))})
        above: Bools = ~met & told.protected[value]
        return above[key]


@dataclass(frozen=True)
class _Sensitive:
    """Sensitive column of distinct rows: codes, and by code True for protected values."""

    bound: Bound
    codes: Ints = field(repr=False)
    protected: Bools = field(repr=False)


def _protected(column: LabelledColumn, values: frozenset[str]) -> Bools:
    return np.array([label in values for label in sorted(set(column.labels))], dtype=bool)
