"""The relay: joins callers to parties that accept no connection, and forwards bytes of which it knows nothing.

Parties and coordinators connect with certificates that are installed here; the certificate determines the name. The
installed certificates may change while the relay runs; connections with a certificate not installed any more end. A
party keeps connections that wait for callers (:mod:`party.net.relayed` has the words of both sides). The session
inside a joined connection has its own TLS from end to end, which the relay cannot read, change or begin.

Connections are bounded per name and together, and so is the memory of each. A connection without a certificate, or
without its first line in time, is closed. If too many are under way, the oldest of the busiest address is closed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import ssl
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from jobs.errors import ConfigError
from party.net import relayed
from party.net.pipes import IDLE_S, Listener, Streams, answered, closed, dropped, joined, line, said
from party.net.waiting import stopped
from party.owner.config import CoordinatorConfig, credentials_of, trusted_peers
from party.owner.identity import Credentials, Peer

log = logging.getLogger("coordinator")

_OBJECTIONS = (relayed.STRANGER, relayed.MANY)
_REPORT_S = 60.0
"""Shortest time between two reports of strangers."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of a relay, in connections and seconds.

    together:  all connections. A joined pair counts as one.
    unnamed:   connections without a first line yet.
    waiting:   connections of a name that wait for callers.
    calls:     calls of a name, also under way.
    pair_s:    time for a party to take a call. The caller is refused then.
    answer_s:  time for a party to answer a line.
    """

    together: int = 1024
    unnamed: int = 128
    waiting: int = 8
    calls: int = 64
    pair_s: float = 3.0
    answer_s: float = 2.0
    ping_s: float = relayed.PING_S
    idle_s: float = IDLE_S


class _Unnamed:
    """Tasks of connections without a first line yet, oldest first, with their addresses. At most ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._hosts: dict[asyncio.Task[object], str] = {}

    @contextmanager
    def entered(self, host: str) -> Iterator[None]:
        """Count the present task in; if there are too many, end the oldest of the address with the most."""
        if len(self._hosts) >= self._most:
            ((busiest, _),) = Counter(self._hosts.values()).most_common(1)
            oldest = next(task for task, each in self._hosts.items() if each == busiest)
            del self._hosts[oldest]
            oldest.cancel()
        task = asyncio.current_task()
        assert task is not None
        self._hosts[task] = host
        try:
            yield
        finally:
            self._hosts.pop(task, None)


@dataclass(eq=False)
class Call:
    """Wish of a caller.

    answer:  the streams to the party, or the party's reason against the caller.
    """

    caller: str
    answer: asyncio.Future[Streams | bytes]


@dataclass
class _Member:
    """Party or coordinator known to the relay, by name.

    certificate:  SHA-256 of its certificate, hexadecimal.
    calls:        callers of the party that still wait.
    tasks:        work for connections of the member, and for callers of the member.
    """

    name: str
    certificate: str
    tasks: list[asyncio.Task[object]] = field(default_factory=list)
    calls: deque[Call] = field(default_factory=deque)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    n_waiting: int = 0
    n_calls: int = 0

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Let the present task end with the member."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.append(task)
        try:
            yield
        finally:
            self.tasks.remove(task)

    async def next_call(self) -> Call:
        """Return the call that has waited longest, once there is a call."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.calls)
            return self.calls.popleft()

    async def add(self, call: Call) -> None:
        """Let a party's connection take a call."""
        async with self.changed:
            self.calls.append(call)
            self.changed.notify_all()

    def drop(self, call: Call) -> None:
        """Forget a call that nobody waits for any more, and what came of it."""
        with suppress(ValueError):
            self.calls.remove(call)
        if not call.answer.cancel() and not call.answer.cancelled():
            found = call.answer.result()
            if not isinstance(found, bytes):
                dropped(found)


@dataclass(frozen=True)
class Roster:
    """Own identity and certificates of all peers of a relay, as read from files at a moment.

    hello_s:  time for a connection to show a certificate, and to say its first line.
    """

    own: Credentials
    peers: Mapping[str, Peer]
    context: ssl.SSLContext
    hello_s: float


def roster_of(config: CoordinatorConfig) -> Roster:
    """Read the certificates of a configuration. Raises ConfigError or IdentityError if nobody could connect."""
    own, peers = credentials_of(config), trusted_peers(config)
    if not peers:
        raise ConfigError(
            "config-invalid",
            "no peers are known: nobody could connect",
            remedy="install a peer: coordinator peers add NAME CERTIFICATE",
        )
    context = _context(config, [peer.certificate for peer in peers.values()])
    return Roster(own, peers, context, config.timeouts.hello_s)


@dataclass(frozen=True)
class Changes:
    """Difference of two rosters, in names."""

    added: Sequence[str]
    removed: Sequence[str]
    replaced: Sequence[str]
    own: bool

    def __str__(self) -> str:
        kinds = {"added": self.added, "removed": self.removed, "replaced": self.replaced}
        said = [f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names]
        said += ["the own identity changed"] if self.own else []
        return "; ".join(said) or "nothing has changed"


class Relay:
    """Relay between the peers of a configuration."""

    def __init__(self, config: CoordinatorConfig, bounds: Bounds | None = None) -> None:
        """Raises ConfigError or IdentityError if nobody could connect."""
        self._bounds = bounds or Bounds()
        self._roster = roster_of(config)
        self._members = {name: _Member(name, peer.fingerprint) for name, peer in self._roster.peers.items()}
        self._unnamed = _Unnamed(self._bounds.unnamed)
        self._n_refused = 0
        self._report_at = 0.0
        self._listener: Listener | None = None

    async def start(self, listen: str) -> str:
        """Listen; return the address, with the chosen port for port 0. Raises ConfigError."""
        host, port = listen.rsplit(":", 1)
        try:
            family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
            listening = socket.create_server((host.strip("[]"), int(port)), family=family)
        except OSError as error:
            raise ConfigError(
                "config-invalid",
                f"cannot listen on {listen}: the address is in use, or not ours",
                remedy="choose a different --listen, or stop the process that uses the port",
            ) from error
        self._listener = Listener(listening, self._serve, self._bounds.together)
        return f"{host}:{listening.getsockname()[1]}"

    def n_waiting(self, name: str) -> int:
        """Return the number of a party's connections that wait for callers."""
        return self._members[name].n_waiting

    def n_calls(self, name: str) -> int:
        """Return the number of callers that wait for a party."""
        return len(self._members[name].calls)

    async def adopt(self, roster: Roster) -> Changes:
        """Know the certificates of a roster from now on, and no others; return the changes.

        Connections of certificates that are not known any more end, joined or not.
        """
        before, self._roster = self._roster, roster
        was, self._members = self._members, {}
        for name, peer in roster.peers.items():
            kept = was.get(name)
            same = kept is not None and kept.certificate == peer.fingerprint
            self._members[name] = kept if kept is not None and same else _Member(name, peer.fingerprint)
        gone = [member for name, member in was.items() if self._members.get(name) is not member]
        await stopped(*{task for member in gone for task in member.tasks})
        return Changes(
            [name for name in self._members if name not in was],
            [member.name for member in gone if member.name not in self._members],
            [member.name for member in gone if member.name in self._members],
            roster.own != before.own,
        )

    async def stop(self) -> None:
        """Listen no more, and end all connections."""
        if self._listener is not None:
            await self._listener.close()

    async def _serve(self, connection: socket.socket) -> None:
        """Serve a connection to its end."""
        with ExitStack() as connected:
            try:
                with self._unnamed.entered(_host(connection)):
                    streams, member, words = await self._greeted(connection, connected)
            except (OSError, EOFError, ValueError, TimeoutError):
                self._refuse()
                return
            except asyncio.CancelledError:
                self._refuse()
                raise
            try:
                await self._obey(streams, member, words)
            except (OSError, EOFError, ValueError, TimeoutError):  # lost, or not of our form
                dropped(streams)
            except BaseException:
                dropped(streams)
                raise

    async def _greeted(
        self, connection: socket.socket, connected: ExitStack
    ) -> tuple[Streams, _Member, list[bytes]]:
        """Return the client of a connection, and its first line. Closes the connection after an error.

        connected:  left when the connection is over.
        """
        hello_s = self._roster.hello_s
        streams = await answered(connection, self._roster.context, hello_s)
        try:
            member = self._of_certificate(_presented(streams))
            connected.enter_context(member.connected())
            async with asyncio.timeout(hello_s):
                words = await line(streams[0])
        except BaseException:
            dropped(streams)
            raise
        return streams, member, words.split(b" ")

    def _of_certificate(self, presented: str) -> _Member:
        """Return the member with a certificate. Raises ValueError if the certificate is not installed (any more)."""
        for member in self._members.values():
            if member.certificate == presented:
                return member
        raise ValueError("a certificate of the authority of a peer, and not the installed certificate")

    async def _obey(self, streams: Streams, member: _Member, words: Sequence[bytes]) -> None:
        match words:
            case [relayed.WAIT_LINE, relayed.VERSION]:
                await self._wait(member, streams)
            case [relayed.CALL_LINE, relayed.VERSION, called]:
                await self._call(member, called, streams)
            case [(relayed.WAIT_LINE | relayed.CALL_LINE), *_]:
                await _refused(streams, relayed.OTHER_VERSION)
            case _:
                dropped(streams)

    # ---- parties that wait

    async def _wait(self, member: _Member, streams: Streams) -> None:
        """Keep a connection until a caller has it, or it is lost."""
        if member.n_waiting >= self._bounds.waiting:
            await _refused(streams, relayed.FULL)
            return
        member.n_waiting += 1
        try:
            await self._ask(streams, relayed.PING, relayed.PONG)
            call = await self._taken_call(member, streams)
        finally:
            member.n_waiting -= 1
        if call.answer.done():  # the caller has left
            dropped(streams)
        else:
            call.answer.set_result(streams)

    async def _taken_call(self, member: _Member, streams: Streams) -> Call:
        """Return the next call that the party takes. A caller that the party refuses is told at once."""
        while True:
            call = await self._next_call(member, streams)
            try:
                heard = await self._asked(streams, relayed.CALLED + b" " + call.caller.encode())
                word, _, reason = heard.partition(b" ")
                if word != relayed.HERE and (word != relayed.NO or reason not in _OBJECTIONS):
                    raise ValueError("another answer")
            except BaseException:
                if not call.answer.done():
                    await member.add(call)  # for the party's next connection
                raise
            if word == relayed.HERE:
                return call
            if not call.answer.done():
                call.answer.set_result(reason)

    async def _next_call(self, member: _Member, streams: Streams) -> Call:
        """Return the next call; meanwhile ask the party for signs of life."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._bounds.ping_s):
                    return await member.next_call()
            await self._ask(streams, relayed.PING, relayed.PONG)

    async def _ask(self, streams: Streams, words: bytes, expected: bytes) -> None:
        """Say a line, and hear the expected answer. Raises OSError, EOFError, ValueError or TimeoutError."""
        if await self._asked(streams, words) != expected:
            raise ValueError("another answer")

    async def _asked(self, streams: Streams, words: bytes) -> bytes:
        """Say a line, and return the answer. Raises OSError, EOFError, ValueError or TimeoutError."""
        async with asyncio.timeout(self._bounds.answer_s):
            await said(streams[1], words)
            return await line(streams[0])

    # ---- callers

    async def _call(self, caller: _Member, name: bytes, streams: Streams) -> None:
        member = self._members.get(name.decode("ascii", "replace"))
        if member is None:
            await _refused(streams, relayed.UNKNOWN)
        elif caller.n_calls >= self._bounds.calls:
            await _refused(streams, relayed.FULL)
        else:
            with _counted(caller), member.connected():
                await self._join(caller, member, streams)

    async def _join(self, caller: _Member, member: _Member, streams: Streams) -> None:
        """Join a caller to a party until either ends."""
        call = Call(caller.name, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(self._bounds.pair_s):
                await member.add(call)
                far = await call.answer
        except TimeoutError:
            member.drop(call)
            await _refused(streams, relayed.ABSENT)
            return
        except BaseException:
            member.drop(call)
            raise
        if isinstance(far, bytes):
            await _refused(streams, far)
            return
        began = time.monotonic()
        try:
            await said(streams[1], relayed.OK)
        except BaseException:
            dropped(far)
            raise
        n_bytes = await self._forward(caller.name, member.name, streams, far)
        lasted = time.monotonic() - began
        log.info("%s called %s: %d bytes in %.1f s", caller.name, member.name, n_bytes, lasted)

    async def _forward(self, caller: str, called: str, near: Streams, far: Streams) -> int:
        return await joined(near, far, self._bounds.idle_s)

    def _refuse(self) -> None:
        """Count a connection without an installed certificate or a first line; log at most a line a minute."""
        self._n_refused += 1
        if time.monotonic() >= self._report_at:
            log.warning("turned away without an installed certificate or a first line: %d", self._n_refused)
            self._n_refused, self._report_at = 0, time.monotonic() + _REPORT_S


def _host(connection: socket.socket) -> str:
    """Return the address of a client; nothing if the client has left."""
    with suppress(OSError):
        return str(connection.getpeername()[0])
    return ""


@contextmanager
def _counted(caller: _Member) -> Iterator[None]:
    caller.n_calls += 1
    try:
        yield
    finally:
        caller.n_calls -= 1


async def _refused(streams: Streams, reason: bytes) -> None:
    """Say why, and close."""
    await said(streams[1], relayed.NO + b" " + reason)
    await closed(streams[1])


def _context(config: CoordinatorConfig, peers: Sequence[bytes]) -> ssl.SSLContext:
    """Return the context for clients with one of these certificates (PEM)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=b"\n".join(peers).decode())
    context.load_cert_chain(config.tls.certificate, config.tls.key)
    return context


def _presented(streams: Streams) -> str:
    """Return the SHA-256 of the client's certificate, hexadecimal."""
    presented = streams[1].get_extra_info("ssl_object").getpeercert(binary_form=True)
    return hashlib.sha256(presented).hexdigest()
