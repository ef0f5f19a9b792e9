"""The relay: joins callers to parties that accept no connection, and forwards bytes of which it knows nothing.

Parties and coordinators connect with certificates that are installed here; the certificate determines the name. A
party keeps connections that wait for callers (:mod:`party.net.relayed` has the words of both sides). The session
inside a joined connection has its own TLS from end to end, which the relay cannot read, change or begin.

Connections are bounded per name and together, and so is the memory of each. A connection without a certificate, or
without its first line in time, is closed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from jobs.errors import ConfigError
from party.net import relayed
from party.net.pipes import IDLE_S, Listener, Streams, answered, closed, dropped, joined, line, said
from party.owner.config import CoordinatorConfig, credentials_of, trusted_peers

log = logging.getLogger("coordinator")

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


Call: TypeAlias = "asyncio.Future[Streams]"
"""Wish of a caller: gets the streams to the party."""


@dataclass
class _Member:
    """Party or coordinator known to the relay, by name.

    calls:  callers of the party that still wait.
    """

    name: str
    calls: deque[Call] = field(default_factory=deque)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    n_waiting: int = 0
    n_calls: int = 0

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
        if not call.cancel() and not call.cancelled():
            dropped(call.result())


class Relay:
    """Relay between the peers of a configuration."""

    def __init__(self, config: CoordinatorConfig, bounds: Bounds | None = None) -> None:
        """Raises ConfigError or IdentityError if nobody could connect."""
        credentials_of(config)  # raises the errors of our own identity
        peers = trusted_peers(config)
        if not peers:
            raise ConfigError(
                "config-invalid",
                "no peers are known: nobody could connect",
                remedy="install a peer: coordinator peers add NAME CERTIFICATE",
            )
        self._bounds = bounds or Bounds()
        self._hello_s = config.timeouts.hello_s
        self._names = {peer.fingerprint: name for name, peer in peers.items()}
        self._members = {name: _Member(name) for name in peers}
        self._context = _context(config, [peer.certificate for peer in peers.values()])
        self._n_unnamed = self._n_refused = 0
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

    async def stop(self) -> None:
        """Listen no more, and end all connections."""
        if self._listener is not None:
            await self._listener.close()

    async def _serve(self, connection: socket.socket) -> None:
        """Serve a connection to its end."""
        if self._n_unnamed >= self._bounds.unnamed:
            connection.close()
            return
        self._n_unnamed += 1
        try:
            streams, member, words = await self._greeted(connection)
        except (OSError, EOFError, ValueError, TimeoutError):
            self._refuse()
            return
        finally:
            self._n_unnamed -= 1
        try:
            await self._obey(streams, member, words)
        except (OSError, EOFError, ValueError, TimeoutError):  # lost, or not of our form
            dropped(streams)
        except BaseException:
            dropped(streams)
            raise

    async def _greeted(self, connection: socket.socket) -> tuple[Streams, _Member, list[bytes]]:
        """Return the client of a connection, and its first line. Closes the connection after an error."""
        streams = await answered(connection, self._context, self._hello_s)
        try:
            name = self._names.get(_presented(streams))
            if name is None:
                raise ValueError(
                    "a certificate of the authority of a peer, and not the installed certificate"
                )
            async with asyncio.timeout(self._hello_s):
                words = await line(streams[0])
        except BaseException:
            dropped(streams)
            raise
        return streams, self._members[name], words.split(b" ")

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
            call = await self._next_call(member, streams)
            try:
                await self._ask(streams, relayed.CALLED, relayed.HERE)
            except BaseException:
                if not call.done():
                    await member.add(call)  # for the party's next connection
                raise
        finally:
            member.n_waiting -= 1
        if call.done():  # the caller has left
            dropped(streams)
        else:
            call.set_result(streams)

    async def _next_call(self, member: _Member, streams: Streams) -> Call:
        """Return the next call; meanwhile ask the party for signs of life."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._bounds.ping_s):
                    return await member.next_call()
            await self._ask(streams, relayed.PING, relayed.PONG)

    async def _ask(self, streams: Streams, words: bytes, expected: bytes) -> None:
        """Say a line, and hear the expected answer. Raises OSError, EOFError, ValueError or TimeoutError."""
        async with asyncio.timeout(self._bounds.answer_s):
            await said(streams[1], words)
            if await line(streams[0]) != expected:
                raise ValueError("another answer")

    # ---- callers

    async def _call(self, caller: _Member, name: bytes, streams: Streams) -> None:
        member = self._members.get(name.decode("ascii", "replace"))
        if member is None:
            await _refused(streams, relayed.UNKNOWN)
        elif caller.n_calls >= self._bounds.calls:
            await _refused(streams, relayed.FULL)
        else:
            with _counted(caller):
                await self._join(caller, member, streams)

    async def _join(self, caller: _Member, member: _Member, streams: Streams) -> None:
        """Join a caller to a party until either ends."""
        call: Call = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._bounds.pair_s):
                await member.add(call)
                far = await call
        except TimeoutError:
            member.drop(call)
            await _refused(streams, relayed.ABSENT)
            return
        except BaseException:
            member.drop(call)
            raise
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
