"""Columns of a party of a vertical DP run, the search for common records ([T] 5.6), and the session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from anonymize.errors import SchemaError
from anonymize.joint.alignment import align, check_class
from anonymize.joint.columns import Columns, Holding, check_holding
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import CircuitSession, CircuitSessions, open_sessions
from anonymize.table import CodedTable, Schema
from anonymize.tds import Observer
from crypto.errors import LocalProtocolError
from crypto.ot.extension import OtReceiver, OtSender
from crypto.rng import Rng
from crypto.rounds import Rounds

PairSession: TypeAlias = CircuitSession[OtSender] | CircuitSession[OtReceiver]
"""Single session of two parties; the leader garbles."""


class Request(Protocol):
    """Part of an agreed computation that the search for common records needs."""

    @property
    def schema(self) -> Schema: ...

    @property
    def job_hash(self) -> bytes: ...

    def check(self, n_records: int) -> None:
        """Refuse unsupported requests before anything is sent or spent. n_records: own records."""
        ...


Asked = TypeVar("Asked", bound=Request)


@dataclass(frozen=True)
class OwnColumns:
    """Columns of a party: records in the common order, with its own columns and the class.

    table:    its schema has only own columns.
    numbers:  numbers of own columns in the schema of the job, ascending.
    """

    table: CodedTable
    numbers: tuple[int, ...]

    @property
    def n_records(self) -> int:
        return self.table.n_records

    def own(self, column: int) -> int | None:
        """Return the own number of a column of the job; None for the peer's columns."""
        return self.numbers.index(column) if column in self.numbers else None


@dataclass(frozen=True)
class AlignedPair(Generic[Asked]):
    """State of a party after both have the same records in a common order, with a session."""

    roster: Roster
    request: Asked
    reveals: RevealLedger
    observer: Observer
    own: OwnColumns = field(repr=False)
    session: PairSession = field(repr=False)
    rng: Rng = field(repr=False)

    @property
    def peer(self) -> str:
        return self.roster.others[0]


def align_pair(
    roster: Roster,
    columns: Columns,
    holding: Holding,
    request: Asked,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None,
) -> Rounds[AlignedPair[Asked]]:
    """Find the common records, check that both parties have the same class (if any) for each, and open a session."""
    reveals, observer = RevealLedger(mode, observer=observer), observer or Observer()
    _check_two(roster)
    if columns.class_from is not None:
        raise SchemaError("job-invalid", "in DP jobs both parties hold the class: `shared_by` is refused")
    check_holding(holding, columns, request.schema, roster.me)
    request.check(len(holding.ids))
    observer.phase("align")
    positions = yield from align(roster, holding.ids, request.job_hash, rng, reveals, observer)
    own = own_columns(request.schema, holding.common(positions), len(positions))
    sessions = yield from _open(roster, rng, observer)
    classes = own.table.axis(0)
    observer.opening()  # no ε covers this exact bit: a request for it costs the whole job
    if request.schema.class_name is not None:
        yield from check_class(roster, classes, request.job_hash, sessions, reveals)
    return AlignedPair(roster, request, reveals, observer, own, session_of(roster, sessions), rng)


def open_aligned(
    roster: Roster, own: OwnColumns, request: Asked, rng: Rng, *, mode: str, observer: Observer | None
) -> Rounds[AlignedPair[Asked]]:
    """Open a session for records that both parties already have in a common order.

    Raises as :func:`anonymize.joint.dp.vertical.release_vertically` for requests that two parties cannot run.
    """
    _check_two(roster)
    request.check(own.n_records)
    if own.n_records < 1 or (own.table.weights != 1).any():
        raise LocalProtocolError("vertical runs are over one or more records, each a row of its own")
    observer = observer or Observer()
    session = yield from open_session(roster, rng, observer)
    return AlignedPair(roster, request, RevealLedger(mode, observer=observer), observer, own, session, rng)


def own_columns(schema: Schema, records: Holding, n_records: int) -> OwnColumns:
    """Return the columns of a party after alignment, with ``n_records`` common records."""
    held = {i: codes for i, codes in enumerate(records.qid) if codes is not None}
    own = Schema(tuple(schema.qid[i] for i in held), schema.class_name, schema.classes)
    units = np.ones(n_records, dtype=np.int64)
    classes = np.zeros_like(units) if records.classes is None else records.classes.astype(np.int64)
    table = CodedTable(own, tuple(held.values()), classes, units)
    return OwnColumns(table, tuple(held))


def open_session(roster: Roster, rng: Rng, observer: Observer) -> Rounds[PairSession]:
    """Make the base transfers of the two parties; the leader garbles."""
    return session_of(roster, (yield from _open(roster, rng, observer)))


def _open(roster: Roster, rng: Rng, observer: Observer) -> Rounds[CircuitSessions]:
    observer.phase("setup")
    return (yield from open_sessions(roster.me, [(roster.leader, roster.deputy)], rng, observer))


def session_of(roster: Roster, sessions: CircuitSessions) -> PairSession:
    """Return the own end of the session between leader and deputy."""
    return sessions.garbling[roster.deputy] if roster.leads else sessions.evaluating[roster.leader]


def _check_two(roster: Roster) -> None:
    if len(roster.parties) != 2 or {roster.leader, roster.deputy} != set(roster.parties):
        raise LocalProtocolError(
            f"vertical DP runs have two parties, a leader and a deputy, not {roster.parties}"
        )
