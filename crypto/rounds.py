"""The only seam between protocol logic and transport.

A protocol for a party is a generator. The generator yields a :class:`Round`: the messages to send, and the peers
whose messages are needed next. It receives an inbox with exactly the needed messages, and returns its output.
Protocols compose with ``yield from``. A protocol does not know if its peers live in the same process
(:mod:`crypto.local`) or behind a network (``party.net.runner``).

Links deliver in order, so the k-th message of a step from a peer answers the k-th wait for the step, and a step
name may recur. A round with an empty ``wait_for`` only sends, to stream large batches in pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

R = TypeVar("R")

Inbox: TypeAlias = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Round:
    """A communication exchange, seen from a party.

    step:      public name of the exchange, the same at sender and recipient, e.g. ``secure_sum/share``.
    outgoing:  payload for each recipient.
    wait_for:  peers whose message of the step is needed before the protocol goes on.
    """

    step: str
    outgoing: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    wait_for: frozenset[str] = frozenset()


Rounds: TypeAlias = Generator[Round, Inbox, R]


def send(step: str, outgoing: Mapping[str, bytes]) -> Rounds[None]:
    """Send and go on at once."""
    yield Round(step, outgoing)


def receive(step: str, peer: str) -> Rounds[bytes]:
    """Wait for a message of ``peer``."""
    inbox = yield Round(step, {}, frozenset((peer,)))
    return inbox[peer]


def exchange(step: str, peer: str, payload: bytes) -> Rounds[bytes]:
    """Send ``payload`` to ``peer`` and wait for the peer's message of the same step."""
    inbox = yield Round(step, {peer: payload}, frozenset((peer,)))
    return inbox[peer]
