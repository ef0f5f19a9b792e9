"""Messages of the network as our own values. The transport converts at once in both directions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jobs.errors import Problem
from party.owner.approvals import State

RUN_BYTES = 16
PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Envelope:
    """Message of a protocol, or a part of a message."""

    job: bytes
    run: bytes
    sender: str
    recipient: str
    sequence: int
    step: str
    payload: bytes = field(repr=False)
    last: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of something larger; the last part says so."""

    name: str
    content: bytes = field(repr=False)
    last: bool


@dataclass(frozen=True, slots=True)
class Submit:
    """Part of a bundle, for a new run."""

    run: bytes
    bundle: Piece


@dataclass(frozen=True, slots=True)
class Proposal:
    """Part of a bundle for an owner to decide on. ask: answer, and keep nothing."""

    bundle: Piece
    ask: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Decision on a proposal. reason: of a denial."""

    state: State
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """All parties allow the job: read the table."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start after all parties admitted the job.

    key:  the coordinator's public key for the run, 32 bytes, if only the coordinator receives the release;
          else empty.
    """

    key: bytes = b""


@dataclass(frozen=True, slots=True)
class Release:
    """Part of a file delivered to the party."""

    piece: Piece


@dataclass(frozen=True, slots=True)
class Stored:
    """Message that the files, which parties do not receive, are at the coordinator.

    release:  the digest of the release (:mod:`jobs.release.sums`), 32 bytes.
    """

    release: bytes


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop.

    problem:  the coordinator's reason: JSON as in :class:`Failed`; may be empty.
    """

    problem: str = ""


Request: TypeAlias = Submit | Read | Start | Release | Stored | Cancel


@dataclass(frozen=True, slots=True)
class Allowed:
    """Policy, peers and ledger allow the job; the table was not looked at."""

    job: bytes


@dataclass(frozen=True, slots=True)
class Admitted:
    """Message that the table fits the job, too."""

    job: bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """Turn of the loop, a sweep (then ``column`` is empty), or a new phase (then ``iteration`` is 0, too)."""

    phase: str
    iteration: int = 0
    column: str = ""
    applied: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """Message that the computation is done, and all parties have signed the result. The party's parts follow.

    summary:  public JSON: reveals and costs.
    """

    result: bytes
    summary: str


@dataclass(frozen=True, slots=True)
class ResultPart:
    """Part of the result."""

    piece: Piece


@dataclass(frozen=True, slots=True)
class Delivered:
    """Delivery that all parties have checked and keep.

    release:  the digest of the release (:mod:`jobs.release.sums`), computed by the party from the delivery,
              or reported to the party.
    """

    release: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """Message that the job ended here."""

    problem: Problem


Event: TypeAlias = Allowed | Admitted | Progress | Finished | ResultPart | Delivered | Failed
Emit = Callable[[Event], Coroutine[Any, Any, None]]
"""Sends an event to the coordinator."""


def pieces(name: str, content: bytes) -> list[Piece]:
    """Cut content into pieces of bounded size; empty content is a single piece."""
    starts = range(0, max(len(content), 1), PIECE_BYTES)
    return [Piece(name, content[i : i + PIECE_BYTES], i + PIECE_BYTES >= len(content)) for i in starts]
