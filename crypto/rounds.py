"""The only seam between protocol logic and its transport.

A protocol for one party is a generator. It yields a :class:`Round`: what this party sends, and from
whom it needs a message before it can go on. It is sent back an inbox with exactly those messages, and
returns its output. Protocols compose with ``yield from``; nothing in them knows whether the other
parties live in the same process (:mod:`crypto.local`) or behind a network (``party.net.runner``).

Links deliver in order, so the k-th message of a step from a peer answers the k-th wait for it, and a
step name may recur. A round with an empty ``wait_for`` only sends: that is how large batches are
streamed in pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

R = TypeVar("R")

Inbox: TypeAlias = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Round:
    """One communication exchange, seen from one party.

    step:      public name of the exchange, the same at sender and recipient, e.g. ``secure_sum/share``.
    outgoing:  payload for each recipient.
    wait_for:  peers whose message of this step is needed before the protocol goes on.
    hops:      how many messages, one after the other, stand behind what is waited for, where it is more than one: who
               has patience for one message has so many times that, so that of several who wait the one next to who is
               silent says so first.
    """

    step: str
    outgoing: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    wait_for: frozenset[str] = frozenset()
    hops: int = 1


Rounds: TypeAlias = Generator[Round, Inbox, R]


def send(step: str, outgoing: Mapping[str, bytes]) -> Rounds[None]:
    """Send and go on at once."""
    yield Round(step, outgoing)


def receive(step: str, peer: str) -> Rounds[bytes]:
    """Wait for one message of ``peer``."""
    inbox = yield Round(step, {}, frozenset((peer,)))
    return inbox[peer]


def exchange(step: str, peer: str, payload: bytes) -> Rounds[bytes]:
    """Send ``payload`` to ``peer`` and wait for its message of the same step."""
    inbox = yield Round(step, {peer: payload}, frozenset((peer,)))
    return inbox[peer]


def side_by_side(protocols: Sequence[Rounds[R]]) -> Rounds[list[R]]:
    """Run protocols of the same steps at once, each with another peer or in another direction; return their outputs.

    They go on together: what one of them waits for, all wait for. So many take as many rounds as the longest of them,
    and one more for each further message where messages of one step go both ways.
    """
    outputs: dict[int, R] = {}
    rounds: dict[int, Round] = {}

    def advance(number: int, inbox: Inbox | None) -> None:
        try:
            # A generator that has not begun takes nothing but None.
            rounds[number] = protocols[number].send(inbox)  # type: ignore[arg-type]
        except StopIteration as stop:
            outputs[number] = stop.value

    for number in range(len(protocols)):
        advance(number, None)
    while rounds:
        turn, rounds = rounds, {}
        (step,) = {each.step for each in turn.values()}
        outgoing = {peer: payload for each in turn.values() for peer, payload in each.outgoing.items()}
        awaited = frozenset(peer for each in turn.values() for peer in each.wait_for)
        inbox = yield Round(step, outgoing, awaited)
        for number, each in turn.items():
            advance(number, {peer: inbox[peer] for peer in each.wait_for})
    return [outputs[number] for number in range(len(protocols))]
