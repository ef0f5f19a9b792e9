"""Links between two parties through a carrier: sealed from end to end.

Each end signs a fresh X25519 key with the key of the certificate, for the job, the run, sender and recipient. AES-GCM
seals every message, with a key for each direction and the number of the message as nonce. So the carrier sees lengths
and times. A carrier can stop a message, which ends the run. A carrier cannot read, change, repeat, move or forge a
message. docs/proofs.md has the argument.

The carrier has a stream with each served party, a *carriage*. The step of a frame on a carriage names the far party.
A party has at most ``WINDOW`` unanswered messages under way to a peer. So a slow reader holds up nobody else, and a
carrier holds a bounded number of frames.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from crypto.errors import RemoteProtocolError
from crypto.rng import Rng
from jobs.errors import IdentityError, TransportError
from party.net.control import PIECE_BYTES, Envelope
from party.net.link import Link, RunKey
from party.net.waiting import together

GREETING = b"carriage"
"""Payload of the hello of a carriage."""
CARRIED, GONE = "carried/", "gone/"
"""Begin the steps of a carriage; the name of the far party follows."""
WINDOW = 8
"""Largest number of messages of a peer that we have not taken."""
MOST_FRAMES = 4 * WINDOW
"""Largest number of waiting frames from a party to a far party: messages, answers to messages, and the key."""
MAX_FRAME_BYTES = PIECE_BYTES
"""Largest frame: a single piece on a carriage, so the carrier passes it on as it is."""
PAYLOAD_BYTES = MAX_FRAME_BYTES - 1024
"""Most payload of an envelope in a frame; the rest is for its step, its number and the seal."""

_LABEL = b"jointcut/carried/1"
_KEY_BYTES, _NONCE_BYTES = 32, 12
_MESSAGE, _TAKEN = 0, 1
_SEQUENCE_BYTES = 8
_AGAIN = WINDOW // 2
"""Number of taken messages that are reported together."""


class Signs(Protocol):
    """Signatures of the parties of a run."""

    def sign(self, content: bytes) -> bytes:
        """Sign as ourselves."""
        ...

    def check(self, party: str, signature: bytes, content: bytes) -> None:
        """Raise IdentityError unless the party signed."""
        ...


class Carried:
    """Our end of a carried link: a stream of envelopes, for a :class:`party.net.link.Link`."""

    def __init__(
        self,
        me: str,
        peer: str,
        carrier: str,
        key: RunKey,
        post: Callable[[bytes], None],
        left: Callable[[], None],
    ) -> None:
        """``post``: sends a frame to the carrier. ``left``: told when the link has ended."""
        self.suspects = f"{peer} or {carrier}"
        """Parties to name for a broken link: nobody can tell the culprit."""
        self._me, self._peer, self._carrier = me, peer, carrier
        self._key = key
        self._post, self._left = post, left
        self._hello: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._seal: _Sealed | None = None
        self._open: _Sealed | None = None
        self._early: list[bytes] = []
        self._arrived: deque[Envelope] = deque()
        self._free = WINDOW
        self._taken = 0
        self._error: Exception | None = None
        self._changed = asyncio.Event()

    async def agree(self, signs: Signs, rng: Rng) -> None:
        """Agree on the keys with the peer. Raises RemoteProtocolError if the peer signed something else."""
        private = X25519PrivateKey.from_private_bytes(rng.bytes(_KEY_BYTES))
        public = private.public_key().public_bytes_raw()
        ours = public + signs.sign(self._signed(self._me, self._peer, public))
        self._post(ours)
        theirs = await self._hello
        try:
            signs.check(
                self._peer, theirs[_KEY_BYTES:], self._signed(self._peer, self._me, theirs[:_KEY_BYTES])
            )
            secret = private.exchange(X25519PublicKey.from_public_bytes(theirs[:_KEY_BYTES]))
        except (IdentityError, ValueError) as error:
            reason = f"a key that {self._peer} has not signed for this run"
            raise RemoteProtocolError(self.suspects, CARRIED, reason) from error
        ordered = (ours, theirs) if self._me < self._peer else (theirs, ours)
        names = sorted((self._me, self._peer))
        info = _joined(_LABEL, self._key.job, self._key.run, *(name.encode() for name in names), *ordered)
        keys = HKDF(hashes.SHA256(), 2 * _KEY_BYTES, salt=None, info=info).derive(secret)
        first, second = _Sealed(keys[:_KEY_BYTES]), _Sealed(keys[_KEY_BYTES:])
        self._seal, self._open = (first, second) if self._me < self._peer else (second, first)
        early, self._early = self._early, []
        for frame in early:
            self._opened(self._open, frame)

    def _signed(self, sender: str, recipient: str, public: bytes) -> bytes:
        return _joined(_LABEL, self._key.job, self._key.run, sender.encode(), recipient.encode(), public)

    def deliver(self, frame: bytes) -> None:
        """Take a frame from the carrier. The first frame is the peer's key."""
        if self._error is not None:
            return
        if not self._hello.done():
            self._hello.set_result(frame)
        elif self._open is not None:
            self._opened(self._open, frame)
        elif len(self._early) < MOST_FRAMES:
            self._early.append(frame)
        else:
            self._break(RemoteProtocolError(self.suspects, CARRIED, "more messages than agreed"))

    def lost(self) -> None:
        """Note that peer or carrier is gone."""
        message = f"the link to {self._peer}, carried by {self._carrier}, broke"
        self._break(TransportError("peer-lost", message, party=self.suspects))

    def _break(self, error: Exception) -> None:
        """Note the cause of a broken link; the first cause counts."""
        if self._error is None:
            self._error = error
            self._changed.set()
        if not self._hello.done():
            self._hello.set_exception(error)
            self._hello.exception()  # somebody may have stopped waiting

    def _opened(self, key: _Sealed, frame: bytes) -> None:
        try:
            content = key.opened(frame)
        except InvalidTag:
            reason = "a carried message that was changed, repeated, moved or left out"
            self._break(RemoteProtocolError(self.suspects, CARRIED, reason))
            return
        try:
            self._hear(content)
        except (IndexError, UnicodeDecodeError, ValueError):  # sealed by the peer itself
            self._break(RemoteProtocolError(self._peer, CARRIED, "a malformed message"))

    def _hear(self, content: bytes) -> None:
        if content[0] == _TAKEN:
            self._free += content[1]
            if self._free > WINDOW:
                raise ValueError
        elif content[0] == _MESSAGE and len(self._arrived) < WINDOW:
            self._arrived.append(self._envelope(content))
        else:
            raise ValueError
        self._changed.set()

    def _envelope(self, content: bytes) -> Envelope:
        sequence = int.from_bytes(content[1 : 1 + _SEQUENCE_BYTES], "little")
        last, length = content[1 + _SEQUENCE_BYTES] == 1, content[2 + _SEQUENCE_BYTES]
        begin = 3 + _SEQUENCE_BYTES
        step = content[begin : begin + length].decode()
        payload = content[begin + length :]
        return Envelope(self._key.job, self._key.run, self._peer, self._me, sequence, step, payload, last)

    async def read(self) -> Envelope | None:
        """Return the peer's next envelope. Raises the cause of a broken link, after all earlier envelopes."""
        while not self._arrived:
            if self._error is not None:
                raise self._error
            await self._wait()
        self._taken += 1
        if self._taken == _AGAIN:
            self._taken = 0
            self._send(bytes((_TAKEN, _AGAIN)))
        return self._arrived.popleft()

    async def write(self, envelope: Envelope) -> None:
        """Seal and send; waits while the window is full. Raises the cause of a broken link."""
        while not self._free:
            if self._error is not None:
                raise self._error
            await self._wait()
        self._free -= 1
        step = envelope.step.encode()
        head = bytes((_MESSAGE,)) + envelope.sequence.to_bytes(_SEQUENCE_BYTES, "little")
        self._send(head + bytes((envelope.last, len(step))) + step + envelope.payload)

    def _send(self, content: bytes) -> None:
        assert self._seal is not None  # keys are agreed on
        self._post(self._seal.sealed(content))

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def close(self) -> None:
        """End our part."""
        left, self._left = self._left, _nobody
        left()


def _nobody() -> None:
    """Tell nobody a second time."""


class _Sealed:
    """Messages of a direction, in order, under a key of the direction."""

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)
        self._number = 0

    def _next(self) -> bytes:
        number, self._number = self._number, self._number + 1
        return number.to_bytes(_NONCE_BYTES, "little")

    def sealed(self, content: bytes) -> bytes:
        """Seal the next message."""
        return self._aead.encrypt(self._next(), content, None)

    def opened(self, frame: bytes) -> bytes:
        """Open the next message. Raises InvalidTag for anything else."""
        return self._aead.decrypt(self._next(), frame, None)


def _joined(*parts: bytes) -> bytes:
    """Join parts without ambiguity."""
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


class Carriage:
    """Frames between a party and a carrier, at either end."""

    def __init__(
        self, link: Link, far: Mapping[str, object], take: Callable[[str, bytes | None], None]
    ) -> None:
        """``far``: the far parties. ``take``: takes a frame from a far party, or None once the far party is gone."""
        self._link = link
        self._open = set(far)
        self._far = frozenset(far)
        self._take = take
        self._outgoing: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue()
        self._waiting: Counter[str] = Counter()

    def post(self, far: str, frame: bytes) -> None:
        """Send a frame to, or of, a far party. Raises OverflowError if too many frames wait."""
        if self._waiting[far] >= MOST_FRAMES:
            raise OverflowError
        self._waiting[far] += 1
        self._outgoing.put_nowait((CARRIED + far, frame))

    def gone(self, far: str) -> None:
        """Report that a far party is gone."""
        self._outgoing.put_nowait((GONE + far, b""))

    def left(self, far: str) -> None:
        """End the link with a far party; the carriage ends with the last."""
        self._open.discard(far)
        if not self._open:
            self._outgoing.put_nowait(None)

    async def run(self) -> None:
        """Pump until both sides ended. Raises the cause of a broken carriage."""
        try:
            await together(self._link.run(), self._write_all(), self._read_all())
        finally:
            for far in self._far:
                self._take(far, None)

    async def _write_all(self) -> None:
        while (item := await self._outgoing.get()) is not None:
            step, frame = item
            await self._link.send(step, frame)
            if step.startswith(CARRIED):
                self._waiting[step.removeprefix(CARRIED)] -= 1
        await self._link.end()

    async def _read_all(self) -> None:
        while (message := await self._link.take()) is not None:
            step, frame = message
            kind = CARRIED if step.startswith(CARRIED) else GONE
            far = step.removeprefix(kind)
            if not step.startswith(kind) or far not in self._far or len(frame) > MAX_FRAME_BYTES:
                raise RemoteProtocolError(self._link.peer, kind, "a message for somebody else")
            self._take(far, frame if kind == CARRIED else None)
        for far in tuple(self._open):
            self.left(far)


class Carrier:
    """Carrier's part: passes on the frames between served parties."""

    def __init__(self, served: Callable[[str], tuple[str, ...]], links: Mapping[str, Link]) -> None:
        """``served``: the far parties of a party. ``links``: the carriages' streams by party."""
        self.carriages = {
            party: Carriage(link, dict.fromkeys(served(party)), self._passing(party))
            for party, link in links.items()
        }

    def _passing(self, party: str) -> Callable[[str, bytes | None], None]:
        def take(far: str, frame: bytes | None) -> None:
            if frame is None:
                self.carriages[far].gone(party)
                return
            try:
                self.carriages[far].post(party, frame)
            except OverflowError:
                raise RemoteProtocolError(party, CARRIED, "more messages than agreed") from None

        return take
