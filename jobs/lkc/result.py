"""The result of a joint run in canonical bytes: what parties compare and the coordinator collects.

The candidates taken are written in order, so that whoever has the bundle rebuilds cut and leaf partitions;
then the counts of T_g.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa

from anonymize.cut import Cut
from anonymize.joint.disclosure import PRIVATE, RevealLedger
from anonymize.joint.lkc.request import JointOutcome
from anonymize.joint.lkc.vertical import VerticalOutcome
from anonymize.lkc.metrics import published_class_counts
from anonymize.partition import GeneralizedTable
from anonymize.release import Release, cut_labels, release_of_counts, release_of_rows
from anonymize.table import MAX_RECORDS, Ints, Schema
from anonymize.tds import Outcome, Step
from jobs.data.sources import Source
from jobs.data.tables import Loaded, Table
from jobs.errors import PartyError
from jobs.lkc.mixed_rows import MixedRows
from jobs.lkc.report import build_report
from jobs.lkc.verify import Verified
from jobs.publishing import generalized_rows
from jobs.report import printed_step
from jobs.steps import replayed, step_fields
from jobs.task import Task

_HEADER_BYTES = 8


def _encoded(steps: Sequence[Step], table: GeneralizedTable) -> bytes:
    """Encode steps and T_g."""
    arrays = [table.nodes, table.partition, table.cell, table.count]
    return encoded_arrays({"steps": [step_fields(step) for step in steps]}, arrays)


def encoded_arrays(fields: Mapping[str, Any], arrays: Sequence[Ints]) -> bytes:
    """A JSON header with the shapes, then the arrays as little-endian 64-bit integers."""
    shapes = [list(array.shape) for array in arrays]
    header = json.dumps({**fields, "shapes": shapes}, separators=(",", ":")).encode()
    body = b"".join(np.ascontiguousarray(array, dtype="<i8").tobytes() for array in arrays)
    return len(header).to_bytes(_HEADER_BYTES, "little") + header + body


@dataclass(frozen=True, kw_only=True)
class Made(ABC):
    """What an LKC run comes to, by whatever method.

    reveals:      the reveal ledger as every party has it; ``own_reveals``: with what only this party's ledger has
                  (its own validity bits, tests against its own columns).
    mixed:        horizontal with plain columns: the rows of all parties.
    """

    reveals: tuple[dict[str, Any], ...] = ()
    own_reveals: tuple[dict[str, Any], ...] = ()
    mixed: MixedRows | None = field(default=None, repr=False)

    @property
    @abstractmethod
    def encoded_counts(self) -> bytes:
        """What was made of counts, in canonical bytes."""

    @cached_property
    def encoded(self) -> bytes:
        """The counts; with rows that were mixed, where there are any."""
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
        """The table as far as it follows from the result, its rows in no particular order."""

    @property
    @abstractmethod
    def labels(self) -> dict[str, Sequence[str]]:
        """What quasi-identifiers may print, by column."""

    @abstractmethod
    def own_counted(self, table: Table) -> Release:
        """The part of :attr:`counted` that a party's table is, at that party."""

    @abstractmethod
    def relabelled(self, source: Source, task: Task, table: Table) -> Iterator[pa.RecordBatch]:
        """Pass 2: a party's rows as they are published. Raises DataError.

        table:  what pass 1 made of the source, at the party that ran with it.
        """

    @abstractmethod
    def report(self, task: Task, release: Release, verified: Sequence[Verified]) -> dict[str, Any]:
        """The report of a joint run."""

    @abstractmethod
    def follows(self) -> dict[str, Any]:
        """What of a joint run's report says what was done; it follows from the result."""

    @staticmethod
    def comparable(report: Mapping[str, Any]) -> Mapping[str, Any]:
        """A delivered report without what of :meth:`follows` the coordinator alone computes."""
        return report

    @property
    def repeated(self) -> bool:
        """A run that repeats an earlier one computes again."""
        return False

    @property
    def told(self) -> dict[str, Any]:
        return {"reveals": list(self.reveals)}

    @property
    def own(self) -> dict[str, Any]:
        return {"reveals": list(self.own_reveals)}

    def after(self, ledger: RevealLedger) -> Self:
        """With what was revealed before the run."""
        before = tuple(reveal_fields(ledger))
        return replace(self, reveals=before + self.reveals, own_reveals=before + self.own_reveals)

    def completed(self, told: Sequence[Mapping[str, Any]]) -> Self:
        """With the reveals, which are not in the bytes."""
        return replace(self, reveals=tuple(told[0].get("reveals", ())))


@dataclass(frozen=True)
class LkcResult(Made):
    """What a top-down run comes to.

    rows:  vertical, at a party: its records, in the order in which its other columns are released
           (:class:`anonymize.joint.lkc.vertical.VerticalOutcome`).
    """

    outcome: Outcome
    generalized: GeneralizedTable
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
        return build_report(task, self.outcome, release, verified, counts, reveals=self.reveals)

    def follows(self) -> dict[str, Any]:
        steps = self.outcome.steps
        return {
            "cut": {name: list(labels) for name, labels in self.labels.items()},
            "specializations": [printed_step(self.schema, s) for s in steps if s.applied],
            "discarded": [printed_step(self.schema, s) for s in steps if not s.applied],
        }

    @staticmethod
    def comparable(report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Without the scores."""
        return {**report, **{key: _places(report.get(key)) for key in _STEPS}}


_STEPS = ("specializations", "discarded")


def _places(steps: Any) -> Any:
    """The turns of a report without their scores, which the coordinator computes."""
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return None
    keys = ("attribute", "value", "children", "naming")
    return [{key: step[key] for key in keys if key in step} for step in steps]


def revealed(ledger: RevealLedger) -> dict[str, Any]:
    """What a run's ledger says, as results have it."""
    own = tuple(reveal_fields(ledger, private=True))
    return {"reveals": tuple(reveal_fields(ledger)), "own_reveals": own}


def result_of(joint: JointOutcome) -> LkcResult:
    """What a joint run comes to at a party."""
    return LkcResult(joint.outcome, joint.generalized, **revealed(joint.ledger))


def vertical_result_of(joint: VerticalOutcome) -> LkcResult:
    """The same of a vertical run."""
    return replace(result_of(joint), rows=joint.rows)


def decode_result(encoded: bytes, schema: Schema, sender: str) -> LkcResult:
    """Decode and check against the schema.

    Raises PartyError (peer-protocol) for anything malformed, or written otherwise than it is encoded.
    """
    try:
        header, arrays = decoded_arrays(encoded, 4)
        steps, cut = replayed(schema, header["steps"])
        table = GeneralizedTable(*arrays)
        _check_table(table, schema, cut)
        if _encoded(steps, table) != encoded:
            raise ValueError("not in canonical form")
    except MALFORMED as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error
    return LkcResult(Outcome(schema, cut, steps), table)


MALFORMED = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
"""What reading bytes that nobody wrote in good faith can raise."""


def decoded_arrays(encoded: bytes, n_arrays: int) -> tuple[Any, list[Ints]]:
    """Header and arrays of :func:`encoded_arrays`. Raises one of :data:`MALFORMED`."""
    size = int.from_bytes(encoded[:_HEADER_BYTES], "little")
    header = json.loads(encoded[_HEADER_BYTES : _HEADER_BYTES + size])
    return header, _arrays(encoded[_HEADER_BYTES + size :], header["shapes"], n_arrays)


def _arrays(body: bytes, shapes: Sequence[Sequence[int]], n_arrays: int) -> list[Ints]:
    values = np.frombuffer(body, dtype="<i8").astype(np.int64)
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    if len(shapes) != n_arrays or sum(sizes) != len(values):
        raise ValueError("wrong sizes")
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


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
    if len(np.unique(table.partition * schema.n_cells + table.cell)) != entries:
        raise ValueError("an entry stands twice")
    for nodes, firsts in zip(table.nodes, cut.nodes, strict=True):
        if not np.isin(nodes, [node.first for node in firsts]).all():
            raise ValueError("a value outside the cut")
    if np.unique(table.nodes, axis=1).shape[1] != table.n_partitions:
        raise ValueError("a leaf partition stands twice")


def is_within(values: Ints, bound: int) -> bool:
    """Whether all are from 0 to below the bound."""
    return bool(((values >= 0) & (values < bound)).all())


def reveal_fields(ledger: RevealLedger, *, private: bool = False) -> list[dict[str, Any]]:
    """The reveal ledger as it stands in the report: what every party sees happen.

    private:  with what only this party's ledger has (its own validity bits, tests against its own columns).
    """
    return [
        {"name": r.name, "shape": list(r.shape), "to": r.to, "iteration": r.iteration}
        for r in ledger.reveals
        if private or r.to not in PRIVATE
    ]
