"""The relay: connects parties that accept no connections with whoever may call them, and carries what they say.

Both sides come to it, each over TLS 1.3 with its own certificate. A party waits (``GET`` with ``Upgrade: jointcut``);
a caller asks for it by name (``CONNECT NAME:443``, RFC 9110 §9.3.6), and from then on bytes go through as they are.
What they say to each other is TLS from end to end, so we see who speaks with whom, when and how much, and can cut it.
Nobody waits under another's name: it follows from the certificate. What anybody can make us hold is bounded, and none
of it before the certificate is known lasts longer than ``hello_s``.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import ssl
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jobs.errors import ConfigError, PartyError
from party.net.splicing import IDLE_S, Stream, secured, splice
from party.net.waiting import stopped
from party.net.ways import ALIVE, CALL, SIGN_S, WAIT
from party.owner.config import CoordinatorConfig, credentials_of, load_config, trusted_peers
from party.owner.identity import fingerprint

log = logging.getLogger("coordinator")

_FULL_PAUSE_S = 0.1
_LOOK_S = 2.0


@dataclass(frozen=True)
class Bounds:
    """How much, and how long.

    greeting:  connections that have not said who they are; one more ends the oldest.
    waiting:   connections over which one party waits to be called; one more ends the oldest.
    calls:     calls at once of one caller to one party.
    total:     connections in all.
    sign_s:    seconds between signs of life of who waits.
    answer_s:  seconds for an answer to them.
    patience_s:  seconds that a call waits for its party.
    idle_s:    seconds without a byte after which a call is over.
    """

    greeting: int = 64
    waiting: int = 8
    calls: int = 16
    total: int = 4096
    sign_s: float = SIGN_S
    answer_s: float = 2.0
    patience_s: float = 4.0
    idle_s: float = IDLE_S


class Refused(Exception):
    """A request that is answered with a status of HTTP."""


@dataclass(eq=False)
class _Waiting:
    """A connection over which a party can be called."""

    stream: Stream
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    there: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self) -> bool:
        """Whether the party answers: then the stream is ours, until ``over`` is set."""
        self.wanted.set()
        return await asyncio.shield(self.there)

    def drop(self) -> None:
        """Hang up."""
        self.stream.abort()
        self.wanted.set()

    async def wait(self, bounds: Bounds) -> None:
        """Ask for signs of life until somebody calls, then tell whether the party answers. Raises what ended it."""
        try:
            while not self.wanted.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(bounds.sign_s):
                        await self.wanted.wait()
                        break
                await self._exchange(ALIVE, bounds.answer_s)
            await self._exchange(CALL, bounds.answer_s)
            self.there.set_result(True)
        finally:
            if not self.there.done():
                self.there.set_result(False)

    async def _exchange(self, sign: bytes, answer_s: float) -> None:
        async with asyncio.timeout(answer_s):
            await self.stream.send(sign)
            if await self.stream.reader.readexactly(1) != sign:
                raise ValueError("not an answer to a sign of life")


class _Room:
    """The connections over which one party can be called."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._changed = asyncio.Condition()

    async def enter(self, waiting: _Waiting, most: int) -> _Waiting | None:
        """Add one; return the oldest if that is one too many."""
        async with self._changed:
            self._waiting.append(waiting)
            self._changed.notify()
            return self._waiting.pop(0) if len(self._waiting) > most else None

    def leave(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)

    async def newest(self) -> _Waiting:
        """Take out the one that came last: whoever came back is there, who came earlier may be gone."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting)
            return self._waiting.pop()


@dataclass(frozen=True)
class _Known:
    """Who may come. ``names``: by the SHA-256 of their certificates."""

    names: Mapping[str, str]
    context: ssl.SSLContext = field(repr=False)
    signature: tuple[tuple[int, int], ...]


class Relay:
    """Listens; :meth:`serve` lets in who is in the configuration's `peers`, and ourselves."""

    def __init__(self, path: Path, listen: str, bounds: Bounds | None = None) -> None:
        """``path``: of the configuration, read again when it or a certificate changes. Raises ConfigError."""
        self._path = path
        self._bounds = bounds or Bounds()
        self._known = _load(path)
        self._hello_s = load_config(CoordinatorConfig, path).timeouts.hello_s
        self._listener = _listening(listen)
        self._rooms: dict[str, _Room] = defaultdict(_Room)
        self._calls: Counter[tuple[str, str]] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._greeting: dict[asyncio.Task[None], None] = {}
        self._guests: dict[asyncio.Task[None], str] = {}
        self._n_refused = 0

    @property
    def address(self) -> str:
        """host:port, with the port that was chosen if we were to listen on 0."""
        host, port = self._listener.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def serve(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        looking = asyncio.create_task(self._look_again_and_again())
        try:
            while True:
                try:
                    raw, _ = await loop.sock_accept(self._listener)
                except OSError:  # no more files, for now
                    await asyncio.sleep(_FULL_PAUSE_S)
                    continue
                self._take(raw)
                await asyncio.sleep(0)  # what was accepted begins before the next is
        finally:
            self._listener.close()
            await stopped(looking, *self._tasks)

    def _take(self, raw: socket.socket) -> None:
        if len(self._tasks) >= self._bounds.total:
            raw.close()
            return
        raw.setblocking(False)
        task = asyncio.create_task(self._meet(raw))
        task.add_done_callback(self._parted)
        self._tasks.add(task)
        self._greeting[task] = None
        if len(self._greeting) > self._bounds.greeting:
            oldest = next(iter(self._greeting))
            del self._greeting[oldest]
            oldest.cancel()

    async def _meet(self, raw: socket.socket) -> None:
        """A connection from its first byte to its last."""
        task = asyncio.current_task()
        assert task is not None
        stream = None
        try:
            async with asyncio.timeout(self._hello_s):
                stream = await secured(raw, self._known.context, self._hello_s)
                name = self._name_of(stream)
                head = await stream.head()
            self._greeting.pop(task, None)
            self._guests[task] = name
            await self._answer(name, head, stream)
        except (OSError, EOFError, ValueError) as error:
            if task in self._greeting:
                self._n_refused += 1
            log.debug("a connection ended: %s", type(error).__name__)
        finally:
            if stream is not None:
                stream.abort()
            raw.close()

    def _parted(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._greeting.pop(task, None)
        self._guests.pop(task, None)

    def _name_of(self, stream: Stream) -> str:
        """Whose certificate was presented. Raises ValueError if it is nobody's that we know."""
        presented = stream.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        name = self._known.names.get(hashlib.sha256(presented or b"").hexdigest())
        if name is None:
            raise ValueError("a certificate that is not installed")
        return name

    async def _answer(self, name: str, head: bytes, stream: Stream) -> None:
        method, _, rest = head.partition(b" ")
        try:
            if head + b"\r\n\r\n" == WAIT:
                await self._wait(name, stream)
            elif method == b"CONNECT":
                await self._connect(name, rest.split(b":")[0].decode("ascii"), stream)
            else:
                raise Refused("400 Bad Request")
        except Refused as refused:
            await stream.send(f"HTTP/1.1 {refused}\r\n\r\n".encode())
            await stream.close()

    async def _wait(self, name: str, stream: Stream) -> None:
        waiting, room = _Waiting(stream), self._rooms[name]
        await stream.send(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: jointcut\r\n\r\n"
        )
        oldest = await room.enter(waiting, self._bounds.waiting)
        if oldest is not None:
            oldest.drop()
        log.info("%s waits", name)
        try:
            await waiting.wait(self._bounds)
            await waiting.over.wait()
        finally:
            room.leave(waiting)

    async def _connect(self, caller: str, party: str, stream: Stream) -> None:
        """Let a caller speak to a party. Raises Refused."""
        if party not in self._known.names.values():
            raise Refused("404 Not Found")
        if self._calls[caller, party] >= self._bounds.calls:
            raise Refused("429 Too Many Requests")
        self._calls[caller, party] += 1
        try:
            await self._carry(caller, party, stream)
        finally:
            self._calls[caller, party] -= 1

    async def _carry(self, caller: str, party: str, stream: Stream) -> None:
        found: list[_Waiting] = []
        try:
            try:
                async with asyncio.timeout(self._bounds.patience_s):
                    while not found or not await found[-1].call():
                        found.append(await self._rooms[party].newest())
            except TimeoutError:
                raise Refused("503 Service Unavailable") from None
            log.info("%s speaks to %s", caller, party)
            await stream.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await splice(stream, found[-1].stream, self._bounds.idle_s)
        finally:
            for each in found:
                each.over.set()

    # ---- who is known

    async def _look_again_and_again(self) -> None:
        """Take over certificates that were added, renewed or removed; hang up on who is not known any more."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._n_refused:
                log.warning("connections that did not show an installed certificate: %d", self._n_refused)
                self._n_refused = 0
            try:
                known = await asyncio.to_thread(_load, self._path, self._known)
            except (PartyError, OSError, ValueError) as error:
                log.warning("the configuration changed and is not in force: %s", error)
                continue
            if known is not self._known:
                self._known = known
                log.info("the configuration changed and is in force")
                for task, name in list(self._guests.items()):
                    if name not in known.names.values():
                        task.cancel()


def _load(path: Path, before: _Known | None = None) -> _Known:
    """Read who may come, unless no file has changed. Raises PartyError."""
    config = load_config(CoordinatorConfig, path)
    entries = (entry.certificate for entry in config.peers.values())
    signature = tuple(_signature(file) for file in (path, config.tls.certificate, config.tls.key, *entries))
    if before is not None and before.signature == signature:
        return before
    own = credentials_of(config)
    peers = trusted_peers(config)
    names = {peer.fingerprint: peer.name for peer in peers.values()}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusted = [own.certificate, *(peer.certificate for peer in peers.values())]
    context.load_verify_locations(cadata=b"\n".join(trusted).decode())
    context.load_cert_chain(config.tls.certificate, config.tls.key)
    return _Known({**names, fingerprint(own.certificate): config.name}, context, signature)


def _signature(file: Path) -> tuple[int, int]:
    """What changes when a file does."""
    try:
        found = file.stat()
    except OSError:
        return 0, -1
    return found.st_mtime_ns, found.st_size


def _listening(listen: str) -> socket.socket:
    """A socket on host:port. Raises ConfigError if it cannot be had."""
    host, port = listen.rsplit(":", 1)
    host = host.strip("[]")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, int(port)), family=family, backlog=256)
    except OSError as error:
        raise ConfigError(
            "config-invalid",
            f"cannot listen on {listen}: {error.strerror}",
            remedy="choose another --listen, or stop what uses it",
        ) from error
    listener.setblocking(False)
    return listener
