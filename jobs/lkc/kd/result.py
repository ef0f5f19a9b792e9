"""Result of a joint kd run in canonical bytes: boxes, and the counts of their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anonymize.joint.kd.sealed import JointKd
from anonymize.kd.boxes import Boxes
from anonymize.kd.replay import cuts_of
from anonymize.kd.table import (
    BoxedTable,
    GroupsByLeaves,
    box_labels,
    release_of_boxed_rows,
    release_of_boxes,
)
from anonymize.linked_columns import Blocks, counted_blocks, relinked
from anonymize.release import Release
from anonymize.table import MAX_RECORDS, Ints, Schema
from jobs.data.arrow import pa
from jobs.data.sources import Source
from jobs.data.tables import Loaded, Table
from jobs.errors import PartyError
from jobs.lkc.kd.report import build_report
from jobs.lkc.own_links import OwnLinks
from jobs.lkc.result import Made
from jobs.lkc.verify import Verified
from jobs.publishing import boxed_rows
from jobs.release.encoded import MALFORMED, decoded_arrays, encoded_arrays, is_within
from jobs.release.reveals import revealed
from jobs.task import Task


@dataclass(frozen=True)
class KdResult(Made):
    """Result of a joint kd run.

    of:     the schema.
    least:  K.
    apart:  separately counted blocks; empty: everything is linked.
    group:  at a party: the group of every row of its table.
    """

    of: Schema = field(repr=False)
    table: BoxedTable
    least: int
    apart: Blocks = ()
    group: Ints | None = field(default=None, repr=False)

    @cached_property
    def encoded_counts(self) -> bytes:
        """Boxes and counts."""
        table = self.table
        return encoded_arrays({}, [table.boxes.first, table.boxes.last, table.group, table.cell, table.count])

    @property
    def schema(self) -> Schema:
        return self.of

    @property
    def n_records(self) -> int:
        return int(self.table.count.sum())

    @property
    def counted(self) -> Release:
        return release_of_boxes(self.schema, self.table)

    @property
    def labels(self) -> dict[str, Sequence[str]]:
        printed = box_labels(self.schema, self.table.boxes)
        return {column.name: own.labels for column, own in zip(self.schema.qid, printed, strict=True)}

    @cached_property
    def cuts(self) -> Ints:
        """Numbers of groups cut, by column and earlier cuts."""
        return cuts_of(self.schema, self.table, self.least)

    @property
    def is_linked(self) -> bool:
        return not self.apart

    def own_counted(self, table: Table) -> Release:
        assert isinstance(table, Loaded)
        assert self.group is not None, "the result of another party"
        return release_of_boxed_rows(table.table, self.table.boxes, self.group)

    def relabelled(self, source: Source, task: Task, table: Table) -> Iterator[pa.RecordBatch]:
        assert isinstance(table, Loaded)
        assert self.group is not None, "the result of another party"
        known = GroupsByLeaves(self.schema, table.table.qid, self.group)
        return boxed_rows(source, task, self.schema, box_labels(self.schema, self.table.boxes), known.of)

    def report(self, task: Task, release: Release, verified: Sequence[Verified]) -> dict[str, Any]:
        return build_report(task, self.schema, self.table, self.cuts, release, verified, reveals=self.reveals)


def result_of(joint: JointKd, least: int, apart: Blocks = (), links: OwnLinks | None = None) -> KdResult:
    """Return the result of a joint run at a party. least: K. apart: the separately counted blocks."""
    return KdResult(
        joint.schema, joint.table, least, apart, joint.group, links=links, **revealed(joint.ledger)
    )


def decode_result(encoded: bytes, schema: Schema, least: int, sender: str, apart: Blocks = ()) -> KdResult:
    """Decode a result, and check against the schema. least: K. apart: the separately counted blocks.

    Raises PartyError (peer-protocol) for a result that is malformed, not canonical, linked differently than the
    blocks imply, or impossible for any run.
    """
    try:
        _, (first, last, *entries) = decoded_arrays(encoded, 5)
        table = BoxedTable(Boxes(first, last), *entries)
        _check_table(table, schema)
        result = KdResult(schema, table, least, apart)
        linked = relinked(schema, counted_blocks(schema, apart), (table.group, table.cell, table.count))
        again = replace(result, table=BoxedTable(table.boxes, *linked))
        if again.encoded != encoded:
            raise ValueError("not in canonical form")
        cuts_of(schema, table, least)
    except MALFORMED as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error
    return result


def _check_table(table: BoxedTable, schema: Schema) -> None:
    first, last, n_entries = table.boxes.first, table.boxes.last, len(table.group)
    if first.ndim != 2 or first.shape != last.shape or len(first) != len(schema.qid):
        raise ValueError("wrong number of columns")
    leaves = np.array([column.n_leaves for column in schema.qid]).reshape(-1, 1)
    if (first < 0).any() or (first >= last).any() or (last > leaves).any():
        raise ValueError("boxes out of range")
    if any(array.shape != (n_entries,) for array in (table.cell, table.count)) or (table.count < 1).any():
        raise ValueError("malformed entries")
    if not is_within(table.group, table.n_groups) or not is_within(table.cell, schema.n_cells):
        raise ValueError("numbers out of range")
    if (table.count > MAX_RECORDS).any() or table.count.sum() > MAX_RECORDS:
        raise ValueError("more records than any table may have")
    group, cell = np.diff(table.group), np.diff(table.cell)
    if ((group < 0) | (group == 0) & (cell <= 0)).any():
        raise ValueError("an entry stands twice, or not in order")
    if len(np.unique(table.group)) != table.n_groups:
        raise ValueError("a group without records")
