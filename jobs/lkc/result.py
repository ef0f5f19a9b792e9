"""Result of a joint run in canonical bytes, for comparison by parties and collection by the coordinator.

The taken candidates are written in order, so that everybody with the bundle rebuilds cut and leaf partitions. The
counts of T_g follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anonymize.cut import Cut
from anonymize.joint.lkc.request import JointOutcome
from anonymize.joint.lkc.vertical import VerticalOutcome
from anonymize.linked_columns import Blocks, counted_blocks, relinked
from anonymize.lkc.metrics import published_class_counts
from anonymize.partition import GeneralizedTable
from anonymize.release import Release, cut_labels, release_of_counts, release_of_rows
from anonymize.table import MAX_RECORDS, Ints, Schema
from anonymize.tds import Outcome, Step
from jobs.data.arrow import pa
from jobs.data.sources import Source
from jobs.data.tables import Loaded, Table
from jobs.errors import PartyError
from jobs.lkc.joint_stopping import stopped_jointly
from jobs.lkc.own_links import OwnLinks
from jobs.lkc.report import build_report, tells_discarded
from jobs.lkc.verify import Verified
from jobs.publishing import generalized_rows
from jobs.release.encoded import MALFORMED, decoded_arrays, encoded_arrays, is_within
from jobs.release.reveals import Revealing, revealed
from jobs.release.shuffled_rows import ShuffledRows
from jobs.release.steps import replayed, step_fields
from jobs.task import Task


def _encoded(steps: Sequence[Step], table: GeneralizedTable) -> bytes:
    """Encode steps and T_g."""
    arrays = [table.nodes, table.partition, table.cell, table.count]
    return encoded_arrays({"steps": [step_fields(step) for step in steps]}, arrays)


@dataclass(frozen=True, kw_only=True)
class Made(Revealing, ABC):
    """Result of an LKC run of any method.

    mixed:  horizontal with plain columns: the rows of all parties.
    links:  at a party of a job that counts blocks separately: the links of its records by the peers.
    """

    mixed: ShuffledRows | None = field(default=None, repr=False)
    links: OwnLinks | None = field(default=None, repr=False)

    @property
    def own(self) -> dict[str, Any]:
        told = super().own
        if self.links is None:
            return told
        return told | {"records": self.links.fields(self.own_counted(self.links.table))}

    @property
    @abstractmethod
    def encoded_counts(self) -> bytes:
        """Counted part of the result, in canonical bytes."""

    @cached_property
    def encoded(self) -> bytes:
        """Counts; with shuffled rows, if any."""
        return self.encoded_counts if self.mixed is None else self.mixed.framed(self.encoded_counts)

    @property
    @abstractmethod
    def schema(self) -> Schema: ...

    @property
    @abstractmethod
    def n_records(self) -> int: ...

    @property
    @abstractmethod
    def counted(self) -> Release:
        """Table as far as it follows from the result, with its rows in no particular order."""

    @property
    def is_linked(self) -> bool:
        """True if the values of a row of :attr:`counted` belong to the same record, across blocks, too."""
        return True

    @property
    @abstractmethod
    def labels(self) -> dict[str, Sequence[str]]:
        """Possible labels of quasi-identifiers, by column."""

    @property
    def public_labels(self) -> dict[str, Sequence[str]]:
        """Possible labels of each column of :attr:`counted`."""
        of_class = {} if self.schema.class_name is None else {self.schema.class_name: self.schema.classes}
        return self.labels | of_class | {column.name: column.domain for column in self.schema.sensitive}

    @abstractmethod
    def own_counted(self, table: Table) -> Release:
        """Return the share of a party's table in :attr:`counted`, at the party."""

    @abstractmethod
    def relabelled(self, source: Source, task: Task, table: Table) -> Iterator[pa.RecordBatch]:
        """Return a party's rows as published, by pass 2. Raises DataError.

        table:  the table of pass 1, at the party of the run.
        """

    @abstractmethod
    def report(self, task: Task, release: Release, verified: Sequence[Verified]) -> dict[str, Any]:
        """Return the report of a joint run, without the maker's keys: the same at all parties and the coordinator."""


@dataclass(frozen=True)
class LkcResult(Made):
    """Result of a top-down run.

    apart:  separately counted blocks; empty: everything is linked.
    rows:   vertical, at a party: its records, in the release order of its remaining columns
            (:class:`anonymize.joint.lkc.vertical.VerticalOutcome`).
    """

    outcome: Outcome
    generalized: GeneralizedTable
    apart: Blocks = ()
    rows: Ints | None = field(default=None, repr=False)

    @cached_property
    def encoded_counts(self) -> bytes:
        """Steps and T_g."""
        return _encoded(self.outcome.steps, self.generalized)

    @property
    def schema(self) -> Schema:
        return self.outcome.schema

    @property
    def n_records(self) -> int:
        return self.generalized.n_records

    @property
    def counted(self) -> Release:
        return release_of_counts(self.schema, self.outcome.cut, self.generalized)

    @property
    def is_linked(self) -> bool:
        return not self.apart

    @property
    def labels(self) -> dict[str, Sequence[str]]:
        return {c.name: cut_labels(c, self.outcome.cut, i) for i, c in enumerate(self.schema.qid)}

    def own_counted(self, table: Table) -> Release:
        assert isinstance(table, Loaded)
        return release_of_rows(table.table, self.outcome.cut)

    def relabelled(self, source: Source, task: Task, table: Table) -> Iterator[pa.RecordBatch]:
        return generalized_rows(source, task, self.schema, self.outcome.cut)

    def report(self, task: Task, release: Release, verified: Sequence[Verified]) -> dict[str, Any]:
        counts = [
            published_class_counts(self.generalized, self.schema, i) for i in range(len(self.schema.qid))
        ]
        # Only some parties know the violations of candidates.
        steps = tuple(replace(step, violation=None) for step in self.outcome.steps)
        outcome = replace(self.outcome, steps=steps)
        report = build_report(task, outcome, release, verified, counts, reveals=self.reveals)
        discarded = report["discarded"] if tells_discarded(task) else None
        return report | {"stopped": stopped_jointly(task, outcome.cut, release, discarded)}


def result_of(joint: JointOutcome, apart: Blocks = (), links: OwnLinks | None = None) -> LkcResult:
    """Return the result of a joint run at a party. apart: the separately counted blocks."""
    return LkcResult(joint.outcome, joint.generalized, apart, links=links, **revealed(joint.ledger))


def vertical_result_of(joint: VerticalOutcome) -> LkcResult:
    """Return the result of a vertical run at a party."""
    return replace(result_of(joint), rows=joint.rows)


def decode_result(encoded: bytes, schema: Schema, sender: str, apart: Blocks = ()) -> LkcResult:
    """Decode a result, and check against the schema. apart: the separately counted blocks.

    Raises PartyError (peer-protocol) for a result that is malformed, not canonical, or linked differently than the
    blocks imply.
    """
    try:
        header, arrays = decoded_arrays(encoded, 4)
        steps, cut = replayed(schema, header["steps"])
        table = GeneralizedTable(*arrays)
        _check_table(table, schema, cut)
        if _encoded(steps, _relinked(table, schema, apart)) != encoded:
            raise ValueError("not in canonical form")
    except MALFORMED as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error
    return LkcResult(Outcome(schema, cut, steps), table, apart)


def _relinked(table: GeneralizedTable, schema: Schema, apart: Blocks) -> GeneralizedTable:
    """Return the table as a run writes it. Where everything is linked, entries stand in the order of their making."""
    if not apart:
        return table
    entries = table.partition, table.cell, table.count
    return GeneralizedTable(table.nodes, *relinked(schema, counted_blocks(schema, apart), entries))


def _check_table(table: GeneralizedTable, schema: Schema, cut: Cut) -> None:
    entries = len(table.cell)
    if table.nodes.ndim != 2 or len(table.nodes) != len(schema.qid):
        raise ValueError("wrong number of columns")
    if table.partition.shape != (entries,) or table.count.shape != (entries,) or (table.count < 1).any():
        raise ValueError("malformed entries")
    if not is_within(table.partition, table.n_partitions) or not is_within(table.cell, schema.n_cells):
        raise ValueError("numbers out of range")
    if (table.count > MAX_RECORDS).any() or table.n_records > MAX_RECORDS:
        raise ValueError("more records than any table may have")
    if np.unique(np.stack([table.partition, table.cell]), axis=1).shape[1] != entries:
        raise ValueError("an entry stands twice")
    for nodes, firsts in zip(table.nodes, cut.nodes, strict=True):
        if not np.isin(nodes, [node.first for node in firsts]).all():
            raise ValueError("a value outside the cut")
    if np.unique(table.nodes, axis=1).shape[1] != table.n_partitions:
        raise ValueError("a leaf partition stands twice")
