"""Releases without links between some sensitive columns: blocks of columns, shuffled separately in every group.

The values of a record stay together within a block. Every order of a block in its group is equally likely and
independent of the other blocks, so nobody can link values of different blocks to a record. But if all records of a
group have the same values of a block, for example in a group with a single record, no order hides these values. The
same holds for a class, which is not shuffled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.release import LabelledColumn, Release, Rng, random_order
from anonymize.table import Ints
from anonymize.verification.tables import label_codes, number_rows


def groups_of(release: Release, columns: Sequence[str]) -> Ints:
    """Return the group of each row as readers see it, numbered from 0 without a gap: int64, shape (n_rows,).

    columns:  columns that form the groups, by printed values.
    """
    codes = [label_codes(release.columns[name]) for name in columns]
    found: Ints = np.unique(number_rows(codes, release.n_rows), return_inverse=True)[1].astype(np.int64)
    return found


def count_linked(release: Release, group: Ints, blocks: Sequence[Sequence[str]]) -> int:
    """Count the records in groups with a single combination of values in some block: no shuffle hides these values.

    group:  of every row, numbered from 0 without a gap: int64, shape (n_rows,).
    """
    first = np.unique(group, return_index=True)[1]
    is_linked = np.zeros(len(first), dtype=bool)
    for block in blocks:
        kind = groups_of(release, block)
        is_linked |= np.bincount(group[kind != kind[first][group]], minlength=len(first)) == 0
    return int(is_linked[group].sum() if release.counts is None else release.counts[is_linked[group]].sum())


def shuffled_apart(release: Release, group: Ints, blocks: Sequence[Sequence[str]], rng: Rng) -> Release:
    """Shuffle every block of columns independently inside each group. group: of every row: int64, shape (n_rows,)."""
    columns, places = dict(release.columns), np.argsort(group, kind="stable")
    for block in blocks:
        order = random_order(release.n_rows, rng)
        source = order[np.argsort(group[order], kind="stable")]
        for name in block:
            codes = np.empty_like(columns[name].codes)
            codes[places] = columns[name].codes[source]
            columns[name] = LabelledColumn(columns[name].labels, codes)
    return Release(columns)
