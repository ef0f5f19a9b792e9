"""Columns of a vertical run by party, and the records of a party."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anonymize.table import Codes, Ints, Schema
from crypto.errors import LocalProtocolError


@dataclass(frozen=True)
class Columns:
    """Party of each column: public, from the job.

    qid, sensitive:  party of each column, in schema order. plain: likewise, in job order.
    class_from:      party that sends the class by record to the others; None if all hold the class.
    """

    qid: tuple[str, ...]
    sensitive: tuple[str, ...]
    plain: tuple[str, ...] = ()
    class_from: str | None = None

    def qid_of(self, party: str) -> tuple[int, ...]:
        return tuple(i for i, owner in enumerate(self.qid) if owner == party)

    def sensitive_of(self, party: str) -> tuple[int, ...]:
        return tuple(i for i, holder in enumerate(self.sensitive) if holder == party)


@dataclass(frozen=True)
class Holding:
    """Records of a party after pass 1, in any order.

    ids:        a different byte string for each record.
    qid:        leaf numbers of own columns, None for other columns; integers of shape (n,).
    classes:    class values, None if another party sends them or the job has no class.
    sensitive:  values of own columns, None for other columns.
    """

    ids: list[bytes] = field(repr=False)
    qid: tuple[Codes | None, ...] = field(repr=False)
    classes: Codes | None = field(repr=False)
    sensitive: tuple[Codes | None, ...] = field(repr=False)

    def same_as(self, other: Holding) -> bool:
        """Return True if both holdings have the same records in the same order."""
        ours, theirs = ((*h.qid, h.classes, *h.sensitive) for h in (self, other))
        return self.ids == other.ids and all(map(_equal, ours, theirs))

    def common(self, positions: Ints) -> Holding:
        """Return the records at ``positions``, in the given order, without ids."""

        def taken(codes: Codes | None) -> Codes | None:
            return None if codes is None else codes[positions]

        return Holding(
            [],
            tuple(taken(codes) for codes in self.qid),
            taken(self.classes),
            tuple(taken(codes) for codes in self.sensitive),
        )


def _equal(one: Codes | None, other: Codes | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def class_schema(schema: Schema) -> Schema:
    """Return the schema of the common knowledge, without sensitive columns."""
    return Schema(schema.qid, schema.class_name, schema.classes)


def own_schema(schema: Schema, columns: Columns, me: str) -> Schema:
    """Return the schema of a party's knowledge, with only its own sensitive columns."""
    own = tuple(schema.sensitive[i] for i in columns.sensitive_of(me))
    return Schema(schema.qid, schema.class_name, schema.classes, own)


def check_holding(holding: Holding, columns: Columns, schema: Schema, me: str) -> None:
    """Refuse a holding that does not match the party's part of ``columns``. Raises LocalProtocolError."""
    if len(columns.qid) != len(schema.qid) or len(columns.sensitive) != len(schema.sensitive):
        raise LocalProtocolError("every column of the schema has one party that holds it")
    held_class = schema.class_name is not None and columns.class_from in (None, me)
    expected = [
        *zip(holding.qid, (owner == me for owner in columns.qid), strict=True),
        *zip(holding.sensitive, (holder == me for holder in columns.sensitive), strict=True),
        (holding.classes, held_class),
    ]
    for codes, ours in expected:
        if (codes is not None) != ours:
            raise LocalProtocolError(f"{me} holds other columns than it should")
        if codes is not None and (
            codes.shape != (len(holding.ids),) or not np.issubdtype(codes.dtype, np.integer)
        ):
            raise LocalProtocolError(f"columns of {len(holding.ids)} integers are prescribed")
