"""Common records of a vertical run as a party knows them: the public T_g, and its own columns in full."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.cut import Candidate, Cut, child_of_leaf, top
from anonymize.partition import GeneralizedTable, LocalRecords, Refinement, fully_generalized, refine
from anonymize.table import CodedTable, Codes, Ints, Schema, coded_table, tally
from anonymize.taxonomy import Node
from crypto.rng import Rng, uniform_words


class CommonRecords:
    """T_g with the leaf partition of every common record, and the party's further knowledge.

    A column of another party is coded by the first leaf of a record's known node, which :meth:`learn` moves.
    Partitions have the same numbers at every party. Cells also separate own sensitive values, which stay at the
    party.
    """

    def __init__(
        self, schema: Schema, qid: Sequence[Codes | None], classes: Codes, sensitive: Sequence[Codes]
    ) -> None:
        """Store arrays in the common order. schema: all quasi-identifiers, the class, own sensitive columns.

        qid:  leaf numbers of own columns, None for other columns.
        """
        self.schema = schema
        self.classes = classes
        known = [np.zeros(len(classes), dtype=np.int64) if codes is None else codes for codes in qid]
        self.table: CodedTable = coded_table(schema, known, classes, list(sensitive))
        self.cell_counts = tally(self.table.cells, self.table.weights, schema.n_cells)
        self.cut: Cut = top(schema)
        self.generalized: GeneralizedTable = fully_generalized(len(schema.qid), self.cell_counts)
        self._records = LocalRecords(self.table, self.table.cells, self.generalized)

    @property
    def n_records(self) -> int:
        return len(self.classes)

    @property
    def partition(self) -> Ints:
        """Leaf partition of every record: int64, shape (n_records,)."""
        return self.generalized.partition[self._records.entry]

    def members(self, column: int, node: Node) -> Ints:
        """Return the records of T[v], ascending."""
        codes = self.table.qid[column]
        inside = np.flatnonzero((codes >= node.first) & (codes < node.last))
        return inside[np.isin(codes[inside], node.leaves)] if node.without else inside

    def child_of(self, candidate: Candidate, records: Ints) -> Ints:
        """Return the child of each given member; for another party's column only after it was learned."""
        codes = self.table.qid[candidate.column][records].astype(np.int64)
        return child_of_leaf(candidate)[codes - candidate.node.first]

    def learn(self, candidate: Candidate, child: Ints) -> None:
        """Store the child of every member, sent by the owner of the column."""
        codes = self.table.qid[candidate.column]
        firsts = np.array([node.first for node in candidate.children], dtype=codes.dtype)
        codes[self.members(candidate.column, candidate.node)] = firsts[child]

    def counts(self, candidate: Candidate) -> Ints:
        """Count the records per (refined entry of T_g, child)."""
        return self._records.counts(candidate, self.generalized.entries_of(candidate))

    def counts_of_each(self, asked: Sequence[tuple[Candidate, Ints]]) -> list[Ints]:
        """Count the records per (given entry, child) for several candidates with their entries."""
        return self._records.counts_of_each(asked)

    def apply(self, candidate: Candidate, counts: Ints) -> tuple[GeneralizedTable, Refinement]:
        """Specialize, with :meth:`counts` of the candidate; return T_g before, and the refinement."""
        before = self.generalized
        refinement = refine(before, candidate, counts)
        self._records.follow(candidate, refinement)
        self.generalized = refinement.table
        self.cut = self.cut.specialized(candidate)
        return before, refinement

    def released(self, rng: Rng) -> tuple[GeneralizedTable, Ints]:
        """Return T_g with class counts alone, entries in (partition, class) order, and the records in the same order.

        Records of an entry are in uniformly random order: int64, shape (n_records,).
        """
        n_classes = self.schema.n_classes
        keys = self.partition * n_classes + self.classes
        entries, counts = np.unique(keys, return_counts=True)
        partition, cell = np.divmod(entries, n_classes)
        table = GeneralizedTable(self.generalized.nodes, partition, cell, counts.astype(np.int64))
        return table, np.lexsort((uniform_words(rng, self.n_records), keys))
