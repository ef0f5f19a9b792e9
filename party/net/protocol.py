"""Which protocols a program speaks: one number for all that parties and coordinators say to each other.

A run has one number: the greatest that its coordinator and all its parties speak. Whoever is called says what it
speaks when it is asked who it is; the coordinator chooses, says the number with the job, and a party that does not
speak it refuses. Between parties every stream begins with the number, both ways, and so does what each signs of the
stream: parties that were told different numbers find that out before anything else is said.

Number 0 is what programs spoke before there were numbers: it is said by saying none. What each number stands for, and
how long it is spoken: docs/operations.md, Another version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.errors import PartyError
from jobs.version import __version__

_BYTES = 4


@dataclass(frozen=True, slots=True)
class Talked:
    """The protocols from ``oldest`` to ``newest``, which a program of this version speaks."""

    oldest: int = 0
    newest: int = 0
    version: str = ""

    def __contains__(self, protocol: int) -> bool:
        return self.oldest <= protocol <= self.newest

    def __str__(self) -> str:
        spoken = (
            f"protocol {self.newest}"
            if self.oldest == self.newest
            else f"protocols {self.oldest} to {self.newest}"
        )
        return f"{spoken} (version {self.version or 'unknown'})"


OURS = Talked(0, 1, __version__)
"""What this program speaks: its own protocol, and the one before."""

FEW_LINKS = 1
"""The first in which parties speak with those alone whom a mode needs."""


def common(talked: Mapping[str, Talked]) -> int:
    """The greatest protocol that all speak, by name. Raises PartyError if there is none."""
    behind = min(talked, key=lambda name: talked[name].newest)
    ahead = max(talked, key=lambda name: talked[name].oldest)
    protocol = talked[behind].newest
    if protocol not in talked[ahead]:
        raise PartyError("version-mismatch", f"{behind} speaks {talked[behind]}, {ahead} {talked[ahead]}")
    return protocol


def check_spoken(talked: Talked, protocol: int, me: str, caller: str) -> None:
    """Raise PartyError unless we speak what a caller chose for a job."""
    if protocol not in talked:
        raise PartyError(
            "version-mismatch", f"{me} speaks {talked}, {caller} wants protocol {protocol}", party=me
        )


def greeting(protocol: int) -> bytes:
    """What a stream between parties begins with: 4 bytes, big-endian; nothing for protocol 0."""
    return protocol.to_bytes(_BYTES, "big") if protocol else b""


def check_greeting(payload: bytes, protocol: int, me: str, peer: str) -> None:
    """Raise PartyError unless a peer was told the same protocol for this run as we were."""
    if payload != greeting(protocol):
        told = (
            f"protocol {int.from_bytes(payload, 'big')}"
            if len(payload) in (0, _BYTES)
            else "none that we know"
        )
        raise PartyError(
            "version-mismatch", f"{me} was told to speak protocol {protocol}, {peer} {told}", party=peer
        )
