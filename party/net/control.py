"""What crosses the network, as our own values: the transport converts to and from them at once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jobs.errors import Problem
from party.net.protocol import Talked

RUN_BYTES = 16
PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Described:
    """What a peer says of itself, and what asking it took; all but ``round_trip_s`` as the peer says.

    talked:   which protocols it speaks; its version at most 40 printable characters.
    clock_s:  how far the peer's clock is ahead of ours, give or take half of the round trip; None if it says no time.
    """

    name: str
    talked: Talked
    clock_s: float | None
    round_trip_s: float


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message of a protocol, or a part of one."""

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
    """Part of a bundle, for a new run; protocol: which is spoken in it."""

    run: bytes
    bundle: Piece
    protocol: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """All parties admitted the job: go.

    key:  the coordinator's public key for this run, 32 bytes, where it alone receives the release; else empty.
    """

    key: bytes = b""


@dataclass(frozen=True, slots=True)
class Release:
    """Part of a file delivered to the party."""

    piece: Piece


@dataclass(frozen=True, slots=True)
class Stored:
    """The files, which parties do not receive, are at the coordinator.

    release:  the digest of the release (:mod:`jobs.sums`), 32 bytes.
    """

    release: bytes


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop."""


@dataclass(frozen=True, slots=True)
class Still:
    """I am still here, and wait: for my turn, or for that at another party."""


Request: TypeAlias = Submit | Start | Release | Stored | Cancel | Still


@dataclass(frozen=True, slots=True)
class Admitted:
    """The policy allows the job and the table fits it."""

    job: bytes


@dataclass(frozen=True, slots=True)
class Progress:
    """A turn of the loop, a sweep (then ``column`` is empty), or a new phase (then ``iteration`` is 0, too).

    The leader tells of it, for all.
    """

    phase: str
    iteration: int = 0
    column: str = ""
    applied: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The computation is done; what the party has to send besides follows.

    summary:  public JSON: reveals and costs.
    """

    result: bytes
    summary: str


@dataclass(frozen=True, slots=True)
class ResultPart:
    """Part of the result, or of what the release is made of besides."""

    piece: Piece


@dataclass(frozen=True, slots=True)
class Delivered:
    """All parties have checked the files, and keep them.

    release:  the digest of the release (:mod:`jobs.sums`) as the party computed it from what arrived, or was told.
    """

    release: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The job ended here."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Queued:
    """So many jobs come before yours; 0: it is your turn."""

    before: int


Event: TypeAlias = Admitted | Progress | Finished | ResultPart | Delivered | Failed | Queued
Emit = Callable[[Event], Coroutine[Any, Any, None]]
"""Sends an event to the coordinator."""


STANDINGS = ("automatic", "waiting", "approved", "denied", "ended", "unknown", "refused")


@dataclass(frozen=True, slots=True)
class Standing:
    """How a party stands to a job that is, or could be, proposed to it.

    state:   automatic (its owner is not asked), waiting, approved, denied, ended (approved runs that are over),
             unknown (not proposed), refused (its policy does not allow it).
    reason:  for people.
    """

    state: str
    reason: str = ""

    @property
    def lets_run(self) -> bool:
        return self.state in ("automatic", "approved")


def pieces(name: str, content: bytes) -> list[Piece]:
    """Cut content into pieces of bounded size; empty content is one piece."""
    starts = range(0, max(len(content), 1), PIECE_BYTES)
    return [Piece(name, content[i : i + PIECE_BYTES], i + PIECE_BYTES >= len(content)) for i in starts]
