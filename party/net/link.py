"""End of the envelope stream between two parties: order, parts, limits, and a clean end.

Every envelope is checked against the run: job hash, run, sender, recipient, and a sequence without gaps. A stream
that ends without the closing envelope means that the peer is gone. Every party of the run learns of the loss at
once, waiting or not.

A party that stops tells its peers the reason, with the head of its audit (64 bytes more; the head says nothing about
its line). A head of another form counts as no head.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from crypto.errors import RemoteProtocolError
from jobs.errors import JobFailed, PartyError, Problem, TransportError, json_object, printable
from party.net.control import PIECE_BYTES, Envelope
from party.net.waiting import stopped
from party.owner.audit import HEAD_BYTES

HELLO, END, ABORT = "link/hello", "link/end", "link/abort"
MAX_MESSAGE_BYTES = 64 << 20
"""Largest message, unless the configuration says otherwise."""
MAX_STEP_CHARS = 80
_HEAD = "audit_head"
"""Key of a head in the reason of a party that stops."""
_AHEAD_BYTES = 64 << 20
_AHEAD_MESSAGES = 4096
"""Largest number of unread messages, beside the bound on payload: messages without payload take memory, too."""
_SEND_AHEAD = 8
_WRITE_S = 1.0
"""Time for a write to end when its link breaks."""


class Duplex(Protocol):
    """Stream of envelopes in both directions, provided by the transport."""

    async def read(self) -> Envelope | None:
        """Return the next envelope, or None after the peer's end. Raises TransportError when the stream broke."""
        ...

    async def write(self, envelope: Envelope) -> None:
        """Send; waits while the network is slower than we are."""
        ...

    async def close(self) -> None:
        """End the stream."""
        ...


@dataclass(frozen=True)
class RunKey:
    """Key of a run, carried by every envelope."""

    job: bytes
    run: bytes


@dataclass(slots=True)
class Traffic:
    """Traffic of a link: payload bytes and messages. Never their content."""

    bytes_sent: int = 0
    bytes_received: int = 0
    messages_sent: int = 0


class Link:
    """Our end of a stream. :meth:`run` pumps until both sides ended; the remaining methods are called meanwhile."""

    def __init__(
        self,
        me: str,
        peer: str,
        key: RunKey,
        duplex: Duplex,
        *,
        greeted: bool,
        max_bytes: int = MAX_MESSAGE_BYTES,
        suspects: str | None = None,
        greeting: bytes = b"",
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        """``greeted``: True if the server read the peer's hello. ``max_bytes``: the largest accepted message.
        ``suspects``: parties to name for silence; the peer, if not given. ``greeting``: payload of our hello.
        ``piece_bytes``: the most payload that we put into an envelope.
        """
        self.peer = peer
        self.suspects = suspects or peer
        self.answered = asyncio.Event()
        """Set once the peer has greeted us."""
        self.traffic = Traffic()
        self.head: bytes | None = None
        """Head of the peer's audit, 32 bytes, as the peer told last."""
        self._me = me
        self._key = key
        self._duplex = duplex
        self._outgoing: asyncio.Queue[tuple[str, bytes, bool]] = asyncio.Queue(_SEND_AHEAD)
        self._arrived: deque[tuple[str, bytes]] = deque()
        self._ahead = 0
        self._changed = asyncio.Condition()
        self._sequence_in = 1 if greeted else 0
        self._sequence_out = 0
        self._ended = False
        self._broken: Exception | None = None
        self._writing = asyncio.Lock()
        self._max_bytes = max_bytes
        self._greeting = greeting
        self._piece_bytes = piece_bytes

    async def send(self, step: str, payload: bytes) -> None:
        """Queue a message; wait while the queue is full. The parts go out in order."""
        self.traffic.bytes_sent += len(payload)
        self.traffic.messages_sent += 1
        for start in range(0, max(len(payload), 1), self._piece_bytes):
            end = start + self._piece_bytes
            await self._outgoing.put((step, payload[start:end], end >= len(payload)))

    async def receive(self, step: str) -> bytes:
        """Return the peer's next message, which must be of the given step. Raises as :meth:`take`."""
        message = await self.take()
        if message is None:
            raise RemoteProtocolError(self.peer, step, "the end of the stream where a message is due")
        found, payload = message
        if found != step:
            raise RemoteProtocolError(self.peer, step, f"a message of step {found}")
        return payload

    async def take(self) -> tuple[str, bytes] | None:
        """Return the peer's next message with its step, or None at the end.

        After a broken link, the earlier messages are returned first; then the cause is raised.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._arrived or self._ended or self._broken)
            if self._arrived:
                found, payload = self._arrived.popleft()
                self._ahead -= len(payload)
                self._changed.notify_all()
                return found, payload
            if self._broken is not None:
                raise self._broken
            return None

    async def end(self) -> None:
        """Announce that nothing follows."""
        await self._outgoing.put((END, b"", True))

    async def abort(self, problem: Problem, head: bytes | None = None) -> None:
        """Tell the peer why we stop, ahead of everything queued. ``head``: of our audit, 32 bytes, if known."""
        told = {} if head is None else {_HEAD: head.hex()}
        await self._write(ABORT, problem.for_others(**told).encode(), last=True)

    async def run(self) -> None:
        """Pump both directions until both sides ended, then close the stream. Raises what broke the link.

        A broken link's stream stays open: the peer is still to be told why, by :meth:`abort`.
        """
        writer = asyncio.create_task(self._write_all())
        reader = asyncio.create_task(self._read_all())
        try:
            await asyncio.gather(reader, writer)
            await self._duplex.close()
        except Exception as error:  # any break of the link is passed on
            await self._break(error)
            raise
        finally:
            reader.cancel()
            # gRPC breaks a stream whose write is cancelled: our last words would not go out.
            with suppress(TimeoutError):
                async with asyncio.timeout(_WRITE_S), self._writing:
                    writer.cancel()
            await stopped(reader, writer)

    async def _break(self, error: Exception) -> None:
        async with self._changed:
            self._broken = error
            self._changed.notify_all()

    async def _write_all(self) -> None:
        async with self._writing:
            await self._greet()
        while True:
            step, part, last = await self._outgoing.get()
            await self._write(step, part, last=last)
            if step == END:
                return

    async def _write(self, step: str, part: bytes, *, last: bool) -> None:
        async with self._writing:
            await self._greet()
            await self._put(step, part, last=last)

    async def _greet(self) -> None:
        """Begin with hello, even if the first message is our reason to stop. Only while ``_writing``."""
        if self._sequence_out == 0:
            await self._put(HELLO, self._greeting, last=True)

    async def _put(self, step: str, part: bytes, *, last: bool) -> None:
        sequence, self._sequence_out = self._sequence_out, self._sequence_out + 1
        key = self._key
        envelope = Envelope(key.job, key.run, self._me, self.peer, sequence, step, part, last)
        await self._duplex.write(envelope)

    async def _read_all(self) -> None:
        message = _Assembly(self.peer, self._max_bytes)
        while True:
            envelope = await self._duplex.read()
            if envelope is None:
                raise TransportError("peer-lost", f"{self.peer} went away", party=self.peer)
            check_envelope(envelope, self._key, self.peer, self._me, self._sequence_in)
            self._sequence_in += 1
            self.answered.set()
            payload = message.add(envelope)
            if payload is None or envelope.step == HELLO:
                continue
            if envelope.step == ABORT:
                self.head = _head_told(payload) or self.head
                raise JobFailed(Problem.told(payload, self.peer))
            if envelope.step == END:
                await self._arrive(None)
                return
            await self._arrive((envelope.step, payload))

    async def _arrive(self, message: tuple[str, bytes] | None) -> None:
        """Hand a message over; reading pauses while too much lies unread."""
        async with self._changed:
            if message is None:
                self._ended = True
            else:
                self.traffic.bytes_received += len(message[1])
                self._arrived.append(message)
                self._ahead += len(message[1])
            self._changed.notify_all()
            await self._changed.wait_for(
                lambda: self._ahead <= _AHEAD_BYTES and len(self._arrived) <= _AHEAD_MESSAGES
            )


class PeerLink(Link):
    """Link with a peer of the run: keeps the digests of all messages."""

    def __init__(self, me: str, peer: str, key: RunKey, duplex: Duplex, **more: Any) -> None:
        """Take the arguments of :class:`Link`."""
        super().__init__(me, peer, key, duplex, **more)
        self._sent, self._taken = hashlib.sha256(), hashlib.sha256()

    async def send(self, step: str, payload: bytes) -> None:
        _record(self._sent, step, payload)
        await super().send(step, payload)

    async def take(self) -> tuple[str, bytes] | None:
        message = await super().take()
        if message is not None:
            _record(self._taken, *message)
        return message

    def transcript(self) -> tuple[str, str]:
        """Return SHA-256 of all messages sent and of all taken so far, with steps and lengths, in order, as hex."""
        return self._sent.hexdigest(), self._taken.hexdigest()


def _head_told(reason: bytes) -> bytes | None:
    """Return the head of an audit that came with a reason to stop; None without one, or for anything else."""
    text = (json_object(reason) or {}).get(_HEAD)
    if not isinstance(text, str) or not re.fullmatch(f"[0-9a-f]{{{2 * HEAD_BYTES}}}", text):
        return None
    return bytes.fromhex(text)


def _record(transcript: hashlib._Hash, step: str, payload: bytes) -> None:
    name = step.encode()
    transcript.update(len(name).to_bytes(2, "little") + name + len(payload).to_bytes(8, "little"))
    transcript.update(payload)


class _Assembly:
    """Puts the parts of a message together. An abort may interrupt a message; nothing else may."""

    def __init__(self, peer: str, max_bytes: int) -> None:
        self._peer = peer
        self._max_bytes = max_bytes
        self._step = ""
        self._begun = False
        self._content = bytearray()

    def add(self, envelope: Envelope) -> bytes | None:
        """Take the next part; return the message when complete."""
        if envelope.step == ABORT:
            return envelope.payload
        if self._begun and envelope.step != self._step:
            raise RemoteProtocolError(self._peer, self._step, "a message stops half-way")
        self._step = envelope.step
        if not envelope.payload and not envelope.last:  # an endless stream of empty parts would keep us busy
            raise RemoteProtocolError(self._peer, self._step, "a part without content before the last part")
        if len(self._content) + len(envelope.payload) > self._max_bytes:
            reason = f"more than {self._max_bytes} bytes (`limits.message_mb`)"
            raise RemoteProtocolError(self._peer, self._step, reason)
        if envelope.last and not self._begun:
            return envelope.payload
        self._content += envelope.payload
        self._begun = not envelope.last
        if self._begun:
            return None
        payload, self._content = bytes(self._content), bytearray()
        return payload


def check_envelope(envelope: Envelope, key: RunKey, sender: str, recipient: str, sequence: int) -> None:
    """Refuse an envelope of a different job, run, sender or recipient, or out of sequence."""
    if envelope.job != key.job or envelope.run != key.run:
        message = f"a message of {sender} belongs to a different job or run"
        raise PartyError("job-hash-mismatch", message, party=sender)
    step = printable(envelope.step[:MAX_STEP_CHARS])
    if step != envelope.step:
        raise RemoteProtocolError(sender, step, "an unknown name of a step")
    if (envelope.sender, envelope.recipient) != (sender, recipient):
        raise RemoteProtocolError(sender, step, "an envelope and its stream have different names")
    if envelope.sequence != sequence:
        raise RemoteProtocolError(sender, step, "an envelope out of sequence")
    if (step == HELLO) != (sequence == 0) and step != ABORT:
        raise RemoteProtocolError(sender, step, "a stream begins with one hello")
