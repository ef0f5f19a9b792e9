"""The only seam between protocol logic and transport.

A protocol for a party is a generator. The generator yields a :class:`Round`: the messages to send, and the peers
whose messages are needed next. It receives an inbox with exactly the needed messages, and returns its output.
Protocols compose with ``yield from``. A protocol does not know if its peers live in the same process
(:mod:`crypto.local`) or behind a network (``party.net.runner``).

Links deliver in order, so the k-th message of a step from a peer answers the k-th wait for the step, and a step
name may recur. A round with an empty ``wait_for`` only sends, to stream large batches in pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from crypto.errors import LocalProtocolError

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


def abreast(order: Sequence[str], sessions: Iterable[Rounds[R]]) -> Rounds[list[R]]:
    """Run sessions side by side, each with a peer of its own; return their outputs, in the order of the sessions.

    order:  steps of the sessions, earlier steps first; the same at all parties. A session may use a step several
            times, but never an earlier step after a later one, unless the step stands in the order again.

    No party waits for ever: a party sends what it can, and waits for the earliest message in the order. So all that
    the sender of the earliest awaited message needs has arrived. The rounds are those of the longest session.

    Raises LocalProtocolError if two sessions send to the same peer, or await the same peer, at the same step.
    """
    running = list(sessions)
    outputs: dict[int, R] = {}
    due: dict[int, tuple[int, int, Round]] = {}

    def go_on(number: int, inbox: Inbox | None) -> None:
        """Let a session run until its next round. The round is due by its step, and by its number in the step."""
        place, times, _ = due.pop(number, (-1, 0, None))
        try:
            current = next(running[number]) if inbox is None else running[number].send(inbox)
        except StopIteration as end:
            outputs[number] = end.value
            return
        step = order.index(current.step, max(place, 0))
        due[number] = (step, times + 1 if step == place else 0, current)

    for number in range(len(running)):
        go_on(number, None)
    while due:
        sends = {number: each for number, each in due.items() if not each[-1].wait_for}
        first = min((step, times) for step, times, _ in (sends or due).values())
        rounds = {
            number: current for number, (*rank, current) in (sends or due).items() if tuple(rank) == first
        }
        outgoing = {
            peer: payload for current in rounds.values() for peer, payload in current.outgoing.items()
        }
        waits = frozenset(peer for current in rounds.values() for peer in current.wait_for)
        if len(outgoing) + len(waits) < sum(
            len(each.outgoing) + len(each.wait_for) for each in rounds.values()
        ):
            raise LocalProtocolError(f"{order[first[0]]}: two sessions with the same peer at the same step")
        inbox = yield Round(order[first[0]], outgoing, waits)
        for number, current in rounds.items():
            go_on(number, {peer: inbox[peer] for peer in current.wait_for})
    return [outputs[number] for number in range(len(running))]


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
