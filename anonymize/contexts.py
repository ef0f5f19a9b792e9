"""Contexts: parts of the published table that already inform about the class (semantics §10.6).

A context of a node is a set of records that T_g separates before the specialization: a large cell (leaf partition ×
sensitive values), the remainder of a leaf partition, or the remainder of the node. All follow from T_g, which is
public in joint runs. The gain of a specialization is counted by context.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable, Refinement, occurring
from anonymize.score import impurity
from anonymize.scores.names import By
from anonymize.table import Ints, Schema, tally

PARAMETER = 1_512_775
"""round(2**20 / ln 2): 1/ln 2 bits per free parameter, twice the expected gain by chance (AIC), in units of F."""

LEAST_PER_CLASS = 64
"""Least records of a context for each class value but one. Above it, noise within a cell does not decide."""

MOST_CONTEXTS = 512


def least_size(n_records: int, n_classes: int, per_class: int = LEAST_PER_CLASS) -> int:
    """Return T, the least number of records in a context of a cell or of a leaf partition."""
    return max(per_class * (n_classes - 1), -(-n_records // MOST_CONTEXTS))


def added_by(counts: Ints) -> Ints:
    """Return gain_x − U·d_x of contexts, from records per (context, child, class): int64, shape (n_contexts,)."""
    of_context = counts.sum(axis=1)
    gain = impurity(of_context) - impurity(counts).sum(axis=1)
    parameters = beyond_one(counts.sum(axis=2) > 0) * beyond_one(of_context > 0)
    added: Ints = gain - PARAMETER * parameters
    return added


def beyond_one(present: Bools) -> Ints:
    """Count the 1 bits of each row, less one in rows with 1 bits: int64, shape (n_rows,)."""
    count: Ints = np.maximum(present.sum(axis=1) - 1, 0)
    return count


@dataclass(frozen=True)
class Large:
    """Contexts of some leaf partitions, without the remainder of a node.

    entries:    entries of T_g in these contexts, ascending: int64, shape (n_entries,).
    context:    context of each entry: int64, shape (n_entries,).
    classes:    class of each entry: int64, shape (n_entries,).
    partition:  leaf partition of each context: int64, shape (n_contexts,).
    totals:     class counts of each context: int64, shape (n_contexts, n_classes).
    """

    entries: Ints = field(repr=False)
    context: Ints = field(repr=False)
    classes: Ints = field(repr=False)
    partition: Ints = field(repr=False)
    totals: Ints = field(repr=False)

    def among(self, chosen: Bools) -> Large:
        """Return the contexts of the chosen leaf partitions, shape (n_partitions,)."""
        kept = chosen[self.partition]
        inside = np.flatnonzero(kept[self.context])
        number = np.cumsum(kept) - 1
        return Large(
            self.entries[inside],
            number[self.context[inside]],
            self.classes[inside],
            self.partition[kept],
            self.totals[kept],
        )

    def sums(self, counts: Ints) -> Ints:
        """Count the records per (context, child but the last, class): int64; counts: per (entry, child)."""
        n_contexts, n_classes = self.totals.shape
        by_class = np.zeros((n_contexts, n_classes, counts.shape[1] - 1), dtype=np.int64)
        np.add.at(by_class, (self.context, self.classes), counts[:, :-1])
        return by_class.swapaxes(1, 2)

    def with_last(self, sums: Ints) -> Ints:
        """Return :meth:`sums` with the last child, computed from the totals."""
        last = self.totals[:, None, :] - sums.sum(axis=1, keepdims=True)
        return np.concatenate([sums, last], axis=1)


class Contexts:
    """Contexts of the current T_g, with a mark on the contexts of the last specialization.

    broken:  leaf partitions with contexts that the last specialization refined. Each number now belongs to a part.
    turn:    number of specializations so far.
    """

    def __init__(self, schema: Schema, table: GeneralizedTable, by: By, per_class: int) -> None:
        self._schema = schema
        self._by = by
        self._least = least_size(table.n_records, schema.n_classes, per_class)
        self._sensitive, self._n_sensitive = schema.beside_class()
        self.turn = 0
        self.broken: Ints = np.zeros(0, dtype=np.int64)
        self._set(table, np.ones(table.n_partitions, dtype=bool))

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> int:
        """Account for a specialization. Return its gain in units of F."""
        old, after = occurring(before.partition[refinement.entries], before.n_partitions), refinement.table
        added = self._added(before, refinement, old)
        self.turn += 1
        self.broken = old[before.sizes()[old] >= self._least]
        fresh = np.arange(after.n_partitions) >= before.n_partitions
        fresh[self.broken] = True
        self._set(after, fresh)
        return added

    def _set(self, table: GeneralizedTable, fresh: Bools) -> None:
        self.table = table
        self._fresh = fresh
        self._large = self._large_of(table)

    def of(self, candidate: Candidate) -> Large:
        """Return the contexts of a candidate's node, without the remainder of the node."""
        return self._large.among(self._inside(candidate))

    def new_of(self, candidate: Candidate) -> Large | None:
        """Return the node's contexts from the last specialization; None if it broke no context of the node."""
        inside = self._inside(candidate)
        return self._large.among(inside & self._fresh) if inside[self.broken].any() else None

    def _inside(self, candidate: Candidate) -> Bools:
        inside: Bools = self.table.nodes[candidate.column] == candidate.node.first
        return inside

    def class_counts(self, candidate: Candidate) -> Ints:
        """Return the class counts of the node: int64, shape (n_classes,)."""
        return self.table.class_counts(candidate.column, candidate.node.first, self._schema)

    def _large_of(self, table: GeneralizedTable) -> Large:
        """Find the large cells. Join the smaller cells of a leaf partition if together they have enough records."""
        n_rest = self._n_sensitive
        large = table.sizes() >= self._least
        entries = np.flatnonzero(large[table.partition])
        partition, count = table.partition[entries], table.count[entries]
        classes, rest = self._schema.classes_of(table.cell[entries]), self._sensitive[table.cell[entries]]
        if self._by == "partitions":
            rest = np.zeros_like(rest)
        cells, cell = np.unique(partition * n_rest + rest, return_inverse=True)
        is_large = tally(cell, count, len(cells)) >= self._least
        owner = cells // n_rest
        # A cell has its number as key, the remainder of a partition a number above all cells.
        key = np.where(is_large[cell], cell, len(cells) + partition)
        left = tally(owner[cell[~is_large[cell]]], count[~is_large[cell]], table.n_partitions)
        kept = is_large[cell] | (left[partition] >= self._least)
        keys, context = np.unique(key[kept], return_inverse=True)
        of_context = np.empty(len(keys), dtype=np.int64)
        of_context[context] = partition[kept]
        n_classes = self._schema.n_classes
        totals = tally(context * n_classes + classes[kept], count[kept], len(keys) * n_classes)
        return Large(entries[kept], context, classes[kept], of_context, totals.reshape(-1, n_classes))

    def _added(self, before: GeneralizedTable, refinement: Refinement, old: Ints) -> int:
        """Return A(v) of the applied specialization, from its public counts."""
        chosen = np.zeros(before.n_partitions, dtype=bool)
        chosen[old] = True
        large = self._large.among(chosen)
        after = np.append(refinement.table.count, 0)[refinement.targets]
        place = np.searchsorted(refinement.entries, large.entries)
        by_child = large.with_last(large.sums(after[place]))
        classes = self._schema.classes_of(before.cell[refinement.entries])
        of_node = np.zeros((self._schema.n_classes, after.shape[1]), dtype=np.int64)
        np.add.at(of_node, classes, after)
        return int(total_added(by_child, of_node.T))


def total_added(large: Ints, of_node: Ints) -> Ints:
    """Return A(v) from the node's contexts, shape (n_contexts, n_children, n_classes), and its remainder."""
    left = of_node - large.sum(axis=0)
    total: Ints = added_by(np.concatenate([large, left[None]])).sum()
    return total
