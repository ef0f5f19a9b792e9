"""Metrics of a release, computed from published data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from anonymize.cut import Cut
from anonymize.partition import GeneralizedTable
from anonymize.release import Release
from anonymize.table import Ints, Schema, kinds_of_keys, tally
from anonymize.verification.tables import kinds_of_rows, label_codes, number_rows


def published_class_counts(generalized: GeneralizedTable, schema: Schema, column: int) -> Ints:
    """Return the class counts per node of the final cut, at the node's first leaf: shape (n_leaves, n_classes).

    The counts of every node specialized during the run follow, because the node is a union of nodes of the cut.
    """
    n_leaves, n_classes = schema.qid[column].n_leaves, schema.n_classes
    classes = schema.classes_of(generalized.cell)
    keys = generalized.nodes[column][generalized.partition] * n_classes + classes
    return tally(keys, generalized.count, n_leaves * n_classes).reshape(n_leaves, n_classes)


def measure_loss(release: Release, schema: Schema, cut: Cut) -> dict[str, float]:
    """Return the average share of each column's domain that a published value covers, beyond a single leaf.

    0 for raw values, 1 for the root.
    """
    return {column.name: _loss(release, schema, cut, i) for i, column in enumerate(schema.qid)}


def measure_partitions(release: Release, qid: Sequence[str]) -> dict[str, Any]:
    """Measure the groups of a released table as readers see them: nodes with the same label are the same value.

    leaf_partitions:       distinct combinations of generalized quasi-identifiers.
    discernibility_ratio:  Σ |T[qid]|² / |T|² over the combinations ([T] 3.4): 0 to 1, lower is better.
    smallest_partition:    records in the smallest partition; may be below K if L is below the number of columns.
    """
    sizes = partition_sizes(release, qid)
    return {
        "leaf_partitions": len(sizes),
        "discernibility_ratio": float((sizes.astype(np.float64) ** 2).sum() / release.n_records**2),
        "smallest_partition": int(sizes.min()),
    }


def partition_sizes(release: Release, qid: Sequence[str]) -> Ints:
    """Count the records of every group that agrees on the given columns."""
    columns = [label_codes(release.columns[name]) for name in qid]
    return kinds_of_rows(columns, release)[1]


def largest_share(
    release: Release, known: Iterable[Sequence[str]], name: str, protected: Collection[str]
) -> float:
    """Return the largest share of a protected value of a column in a group of a reader.

    known:  the columns of each reader; a group agrees on the columns.
    """
    column, readers = release.columns[name], list(known)
    wanted = np.array([label in protected for label in column.labels], dtype=bool)[column.codes]
    values = label_codes(column)[wanted]
    counts = None if release.counts is None else release.counts[wanted]
    codes = {each: label_codes(release.columns[each]) for each in dict.fromkeys(chain(*readers))}
    radix, largest = int(values.max(initial=0)) + 1, 0.0
    for columns in readers:
        numbers = number_rows([codes[each] for each in columns], release.n_rows)
        first, group = kinds_of_keys(numbers, int(numbers.max(initial=0)) + 1)
        sizes = tally(group, release.counts, len(first))
        own = group[wanted]
        first, pair = kinds_of_keys(own * radix + values, len(sizes) * radix)
        held = tally(pair, counts, len(first))
        largest = max(largest, float((held / sizes[own[first]]).max(initial=0)))
    return largest


@dataclass(frozen=True)
class Risk:
    """Records in small groups on all quasi-identifiers of a released table. L may not bound these groups.

    columns:  number of quasi-identifiers. unique: records alone in their group. below_k: records in groups smaller
              than K, including unique records. unique_share, below_k_share: shares of all records.
    """

    columns: int
    unique: int
    unique_share: float
    below_k: int
    below_k_share: float


def measure_risk(release: Release, qid: Sequence[str], min_size: int) -> Risk:
    """Count the records in groups of 1 and of fewer than ``min_size`` (K) on all quasi-identifiers."""
    sizes = partition_sizes(release, qid)
    unique, below = int((sizes == 1).sum()), int(sizes[sizes < min_size].sum())
    return Risk(len(qid), unique, unique / release.n_records, below, below / release.n_records)


def _loss(release: Release, schema: Schema, cut: Cut, number: int) -> float:
    column = schema.qid[number]
    if column.n_leaves == 1:
        return 0.0
    widths: Counter[str] = Counter()
    for node in cut.nodes[number]:
        widths[column.label(node)] += node.n_leaves
    published = release.columns[column.name]
    covered = np.array([widths[label] - 1 for label in published.labels], dtype=np.float64)
    return float(np.average(covered[published.codes], weights=release.counts) / (column.n_leaves - 1))
