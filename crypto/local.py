"""All parties of a protocol in a single process, in lock step.

The parties take turns in the given order. A party sends the messages of its current round, and goes on as soon as
the messages of the round have arrived. The order is fixed, so the same coins give the same transcript.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rounds import Inbox, Round, Rounds

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Message:
    """A payload on its way. ``depth`` is the length of the longest chain of messages up to and including the
    message.
    """

    sender: str
    recipient: str
    step: str
    payload: bytes = field(repr=False)
    depth: int


@dataclass(slots=True)
class Transcript:
    """All messages of a run, in order."""

    messages: list[Message] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """Length of the longest chain of messages in which each waits for its predecessor."""
        return max((message.depth for message in self.messages), default=0)

    @property
    def steps(self) -> tuple[str, ...]:
        """Step names in order of first use."""
        return tuple(dict.fromkeys(message.step for message in self.messages))

    def view(self, party: str) -> list[Message]:
        """Return the messages that ``party`` received, in order."""
        return [message for message in self.messages if message.recipient == party]

    def bytes_sent(self, party: str | None = None) -> int:
        """Return the payload bytes sent by ``party``, or by all."""
        return sum(len(m.payload) for m in self.messages if party is None or m.sender == party)

    def digest(self) -> str:
        """Return SHA-256 over every message with sender, recipient and step: the content of golden vectors."""
        h = hashlib.sha256()
        for message in self.messages:
            for part in (message.sender.encode(), message.recipient.encode(), message.step.encode()):
                h.update(len(part).to_bytes(4, "little") + part)
            h.update(len(message.payload).to_bytes(8, "little") + message.payload)
        return h.hexdigest()


Tamper = Callable[[Message], bytes | None]
"""A hostile network: returns a changed payload for a message, or None to drop the message."""


@dataclass(slots=True)
class _Party(Generic[R]):
    """A generator with the messages received and not yet consumed."""

    name: str
    generator: Rounds[R]
    current: Round | None = None
    received: dict[str, deque[Message]] = field(default_factory=dict)
    depth: int = 0
    done: bool = False
    output: R | None = None

    def advance(self, inbox: Inbox | None) -> None:
        try:
            self.current = next(self.generator) if inbox is None else self.generator.send(inbox)
        except StopIteration as stop:
            self.done, self.current, self.output = True, None, stop.value

    def take(self) -> Inbox | None:
        """Return the inbox of the current round, or None while a message is missing."""
        assert self.current is not None
        if any(not self.received.get(peer) for peer in self.current.wait_for):
            return None
        inbox = {}
        for peer in sorted(self.current.wait_for):
            message = self.received[peer].popleft()
            if message.step != self.current.step:
                raise RemoteProtocolError(peer, self.current.step, f"a message of step {message.step}")
            self.depth = max(self.depth, message.depth)
            inbox[peer] = message.payload
        return inbox


def run_local(
    parties: Mapping[str, Rounds[R]], *, record: bool = True, tamper: Tamper | None = None
) -> tuple[dict[str, R], Transcript]:
    """Run a generator per party to the end; return the outputs by party and the transcript.

    record:  False keeps no messages (for runs whose traffic does not fit in memory).
    tamper:  changes messages on their way, for tests against hostile input.

    Raises LocalProtocolError if the parties wait for each other for ever, address an unknown party, or leave a
    message unread; RemoteProtocolError if a message of a wrong step arrives.
    """
    transcript = Transcript()
    states: dict[str, _Party[R]] = {name: _Party(name, generator) for name, generator in parties.items()}
    try:
        for state in states.values():
            state.advance(None)
            _post(state, states, transcript, record, tamper)
        while any(not state.done for state in states.values()):
            if not _turn(states, transcript, record, tamper):
                raise LocalProtocolError(f"every party waits: {_waiting(states)}")
    finally:
        for state in states.values():
            state.generator.close()
    _nothing_unread(states)
    return {name: state.output for name, state in states.items()}, transcript  # type: ignore[misc]  # all are done


def _turn(
    states: Mapping[str, _Party[R]], transcript: Transcript, record: bool, tamper: Tamper | None
) -> bool:
    """Let every party that can go on take a step; return True if a party did."""
    moved = False
    for state in states.values():
        if state.done:
            continue
        inbox = state.take()
        if inbox is not None:
            moved = True
            state.advance(inbox)
            _post(state, states, transcript, record, tamper)
    return moved


def _post(
    sender: _Party[R],
    states: Mapping[str, _Party[R]],
    transcript: Transcript,
    record: bool,
    tamper: Tamper | None,
) -> None:
    """Deliver the messages of the sender's new round."""
    if sender.current is None:
        return
    for recipient, payload in sender.current.outgoing.items():
        if recipient not in states or recipient == sender.name:
            raise LocalProtocolError(f"{sender.name} addresses {recipient}, which is not its peer")
        message = Message(sender.name, recipient, sender.current.step, payload, sender.depth + 1)
        if record:
            transcript.messages.append(message)
        if tamper is not None:
            changed = tamper(message)
            if changed is None:
                continue
            message = Message(message.sender, recipient, message.step, changed, message.depth)
        states[recipient].received.setdefault(sender.name, deque()).append(message)


def _waiting(states: Mapping[str, _Party[R]]) -> str:
    return ", ".join(
        f"{s.name} at {s.current.step} for {'+'.join(sorted(s.current.wait_for))}"
        for s in states.values()
        if s.current is not None
    )


def _nothing_unread(states: Mapping[str, _Party[R]]) -> None:
    for state in states.values():
        for peer, queue in state.received.items():
            if queue:
                raise RemoteProtocolError(peer, queue[0].step, f"a message that {state.name} never awaits")
