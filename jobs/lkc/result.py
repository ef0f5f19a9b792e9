"""The result of a joint run in canonical bytes: what parties compare and the coordinator collects.

The candidates taken are written in order, so that whoever has the bundle rebuilds cut and leaf partitions;
then the counts of T_g.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anonymize.cut import Cut
from anonymize.joint.disclosure import PRIVATE, RevealLedger
from anonymize.joint.lkc.request import JointOutcome
from anonymize.joint.lkc.vertical import VerticalOutcome
from anonymize.partition import GeneralizedTable
from anonymize.table import MAX_RECORDS, Ints, Schema
from anonymize.tds import Outcome, Step
from jobs.errors import PartyError
from jobs.steps import replayed, step_fields

_HEADER_BYTES = 8


def _encoded(steps: Sequence[Step], table: GeneralizedTable) -> bytes:
    """Encode steps and T_g: a JSON header, then the arrays as little-endian 64-bit integers."""
    arrays = [table.nodes, table.partition, table.cell, table.count]
    header = json.dumps(
        {"steps": [step_fields(step) for step in steps], "shapes": [list(array.shape) for array in arrays]},
        separators=(",", ":"),
    ).encode()
    body = b"".join(np.ascontiguousarray(array, dtype="<i8").tobytes() for array in arrays)
    return len(header).to_bytes(_HEADER_BYTES, "little") + header + body


@dataclass(frozen=True)
class LkcResult:
    """What an LKC run comes to.

    reveals:      the reveal ledger as every party has it; ``own_reveals``: with what only this party's ledger has
                  (its own validity bits, tests against its own columns).
    rows:         vertical, at a party: its records, in the order in which its other columns are released
                  (:class:`anonymize.joint.lkc.vertical.VerticalOutcome`).
    """

    outcome: Outcome
    generalized: GeneralizedTable
    reveals: tuple[dict[str, Any], ...] = ()
    own_reveals: tuple[dict[str, Any], ...] = ()
    rows: Ints | None = field(default=None, repr=False)

    @cached_property
    def encoded(self) -> bytes:
        """Steps and T_g."""
        return _encoded(self.outcome.steps, self.generalized)

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

    def after(self, ledger: RevealLedger) -> LkcResult:
        """With what was revealed before the run."""
        before = tuple(reveal_fields(ledger))
        return replace(self, reveals=before + self.reveals, own_reveals=before + self.own_reveals)

    def completed(self, told: Sequence[Mapping[str, Any]]) -> LkcResult:
        """With the reveals, which are not in the bytes."""
        return replace(self, reveals=tuple(told[0].get("reveals", ())))


def result_of(joint: JointOutcome) -> LkcResult:
    """What a joint run comes to at a party."""
    ledger = joint.ledger
    own = tuple(reveal_fields(ledger, private=True))
    return LkcResult(joint.outcome, joint.generalized, tuple(reveal_fields(ledger)), own)


def vertical_result_of(joint: VerticalOutcome) -> LkcResult:
    """The same of a vertical run."""
    return replace(result_of(joint), rows=joint.rows)


def decode_result(encoded: bytes, schema: Schema, sender: str) -> LkcResult:
    """Decode and check against the schema.

    Raises PartyError (peer-protocol) for anything malformed, or written otherwise than it is encoded.
    """
    try:
        size = int.from_bytes(encoded[:_HEADER_BYTES], "little")
        header = json.loads(encoded[_HEADER_BYTES : _HEADER_BYTES + size])
        steps, cut = replayed(schema, header["steps"])
        arrays = _arrays(encoded[_HEADER_BYTES + size :], header["shapes"])
        table = GeneralizedTable(*arrays)
        _check_table(table, schema, cut)
        if _encoded(steps, table) != encoded:
            raise ValueError("not in canonical form")
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise PartyError("peer-protocol", "the result is malformed", party=sender) from error
    return LkcResult(Outcome(schema, cut, steps), table)


def _arrays(body: bytes, shapes: Sequence[Sequence[int]]) -> list[Ints]:
    values = np.frombuffer(body, dtype="<i8").astype(np.int64)
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    if len(shapes) != 4 or sum(sizes) != len(values):
        raise ValueError("wrong sizes")
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _check_table(table: GeneralizedTable, schema: Schema, cut: Cut) -> None:
    entries = len(table.cell)
    if table.nodes.ndim != 2 or len(table.nodes) != len(schema.qid):
        raise ValueError("wrong number of columns")
    if table.partition.shape != (entries,) or table.count.shape != (entries,) or (table.count < 1).any():
        raise ValueError("malformed entries")
    if not _within(table.partition, table.n_partitions) or not _within(table.cell, schema.n_cells):
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


def _within(values: Ints, bound: int) -> bool:
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
