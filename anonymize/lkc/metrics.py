"""Metrics of a release, computed from published data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymize.candidates import propose, prospects
from anonymize.criteria.clear import first_violation
from anonymize.criteria.criterion import RECORDS, Criterion
from anonymize.cut import Cut
from anonymize.partition import GeneralizedTable
from anonymize.release import Release
from anonymize.scores.score import Score
from anonymize.table import CodedTable, Ints, QidColumn, Schema, tally
from anonymize.taxonomy import Node
from anonymize.tds import Outcome
from anonymize.verification.tables import kinds_of_rows, label_codes


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


@dataclass(frozen=True)
class Stopped:
    """Reason for the end of a column's specialization: a threshold or another reason.

    reason:   K, C, leaf (a single value), empty, one value (all records share a leaf), no gain, or adds nothing
              (positive gain, but the score never exceeded 0).
    columns:  for a threshold, the fewest columns on which the next step would violate the threshold.
    """

    reason: str
    columns: int | None
    sensitive: str | None
    values: tuple[str, ...]


def why_stopped(
    table: CodedTable, outcome: Outcome, score: Score, of_size: Sequence[Sequence[Criterion]]
) -> dict[str, list[Stopped]]:
    """Return the reasons, per column, that a single holder's table was not specialized further.

    of_size:  by column, the criteria that the children's sizes must meet.
    """
    violations = {
        (step.candidate.column, step.candidate.taken_out or step.candidate.node): step.violation
        for step in outcome.steps
        if step.violation is not None
    }
    result = {}
    for number, column in enumerate(table.schema.qid):
        counts = table.class_histogram(number)
        grouped: dict[tuple[str, int | None, str | None], list[str]] = {}
        for node in outcome.cut.nodes[number]:
            discarded = (node, *(column.children(node) if column.by_child else ()))
            found = next(
                (violations[number, each] for each in discarded if (number, each) in violations), None
            )
            key: tuple[str, int | None, str | None]
            if found is not None:
                key = (found.criterion, found.n_columns, found.column)
            else:
                key = _unspecialized(number, column, node, counts, score, of_size[number])
            grouped.setdefault(key, []).append(column.label(node))
        result[column.name] = [Stopped(*key, tuple(values)) for key, values in grouped.items()]
    return result


def _unspecialized(
    number: int, column: QidColumn, node: Node, leaf_counts: Ints, score: Score, of_size: Sequence[Criterion]
) -> tuple[str, int | None, str | None]:
    """Return the reason that a node without a discarded candidate is still in the cut."""
    inside = leaf_counts[node.leaves]
    if node.n_leaves == 1:
        return "leaf", None, None
    if not inside.any():
        return "empty", None, None
    ways = prospects(number, column, node, each_child=score.needs_class)
    proposals = [propose(way, way.profile(leaf_counts), score.merit) for way in ways]
    found = [proposal for proposal in proposals if proposal is not None]
    if not found or np.count_nonzero(inside.sum(axis=1)) == 1:
        return "one value", None, None
    gaining = [proposal for proposal in found if proposal.gain > 0]
    if not gaining:
        return "no gain", None, None
    broken = [first_violation(of_size, {RECORDS: each.counts.sum(axis=1)}, 1) for each in gaining]
    first = broken[0]
    if first is None or None in broken:
        return "adds nothing", None, None
    return first.criterion, first.n_columns, first.column
