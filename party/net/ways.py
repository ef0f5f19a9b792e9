"""The way to a peer: straight, through an HTTP proxy (CONNECT, RFC 9110 §9.3.6), through our relay, or through both.

gRPC would take a proxy from the environment, and cannot be told a relay's certificate. So where somebody is in
between, gRPC calls a socket of this process, which only our user can open; from there the connection is made here,
and its bytes are carried as they are. TLS with the peer goes from end to end, whatever is in between.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from jobs.data.hidden import short_lived
from jobs.errors import PartyError, printable
from party.net.splicing import BUFFER_BYTES, Stream, secured, splice
from party.net.waiting import stopped
from party.owner.config import RELAYED, NodeConfig, Relay
from party.owner.identity import common_name, load_peer, read_bytes

UNIX = "unix:"
WAIT = b"GET / HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: jointcut\r\n\r\n"
"""How a party says to its relay that it can be called over this connection."""
ALIVE, CALL = b"?", b"!"
"""What a relay then says, each answered by the same: are you there; from the next byte on somebody speaks to you."""
SIGN_S = 15.0
"""How often a relay asks."""
_PORT = 443
"""Of a name at a relay, where it means nothing."""


class NotReached(Exception):
    """What is in the way, in words that follow `cannot reach NAME: `."""


# ---- connections


async def dial(config: NodeConfig, peer: str, address: str) -> Stream:
    """A connection to a peer, whatever is in between. Raises NotReached."""
    if address != RELAYED:
        return await _opened(config, address)
    stream = await call_relay(config)
    with hearing(stream):
        async with asyncio.timeout(config.timeouts.hello_s):
            await stream.send(_connect(f"{peer}:{_PORT}"))
            status = _status(await stream.head())
        if status != "200":
            raise NotReached(_RELAY_SAYS.get(status, f"the relay answered {status}"))
    return stream


@contextmanager
def hearing(stream: Stream) -> Iterator[None]:
    """Speak with a relay; whatever goes wrong, hang up. Raises NotReached where it hung up, or is none."""
    try:
        yield
    except (OSError, EOFError, ValueError) as error:
        stream.abort()
        raise NotReached(_HUNG_UP) from error
    except BaseException:
        stream.abort()
        raise


_HUNG_UP = "the relay hung up; it may not have our certificate installed, or one of our clocks is wrong"
_RELAY_SAYS = {
    "404": "the relay does not know it",
    "429": "the relay carries too many connections between us already",
    "503": "it is not connected to the relay",
}


async def call_relay(config: NodeConfig) -> Stream:
    """A connection to our relay, which has shown the certificate installed for it. Raises NotReached."""
    assert config.relay is not None
    try:
        name, context = await asyncio.to_thread(_trusting, config, config.relay)
    except (PartyError, OSError) as error:
        raise NotReached(f"the certificates for the relay cannot be used: {error}") from error
    raw = await _reached(config, config.relay.address, "the relay")
    try:
        async with asyncio.timeout(config.timeouts.hello_s):
            return await secured(raw, context, config.timeouts.hello_s, name)
    except ssl.SSLCertVerificationError as error:
        raise NotReached("the relay presented another certificate than the one installed for it") from error
    except OSError as error:
        raise NotReached("no TLS connection to the relay came about") from error


def _trusting(config: NodeConfig, relay: Relay) -> tuple[str, ssl.SSLContext]:
    """The name of the relay, and TLS that trusts its certificate alone and presents ours."""
    name = common_name(read_bytes(relay.certificate))
    trusted = load_peer(name, relay.certificate, None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=trusted.certificate.decode())
    context.load_cert_chain(config.tls.certificate, config.tls.key)
    return name, context


async def _opened(config: NodeConfig, address: str) -> Stream:
    raw = await _reached(config, address, "it")
    return Stream(*await asyncio.open_connection(sock=raw, limit=BUFFER_BYTES))


async def _reached(config: NodeConfig, address: str, whom: str) -> socket.socket:
    """A socket to an address, through our proxy if we have one. Raises NotReached, which says so of ``whom``."""
    proxy = config.proxy_address
    try:
        async with asyncio.timeout(config.timeouts.hello_s):
            if proxy is None:
                return await connected(address)
            return await _through(await connected(proxy), address)
    except TimeoutError as error:
        raise NotReached(f"{'the proxy' if proxy else whom} did not answer in time") from error
    except OSError as error:
        raise NotReached(f"{'the proxy' if proxy else whom}: {_in_words(error)}") from error


def _in_words(error: OSError) -> str:
    """What the operating system says; never with an address, as asyncio does."""
    if isinstance(error, socket.gaierror):
        return "no such host"
    return os.strerror(error.errno) if error.errno else "no answer"


async def connected(address: str) -> socket.socket:
    """A TCP connection to the first address of a name that takes one. Raises OSError."""
    host, port = address.rsplit(":", 1)
    loop = asyncio.get_running_loop()
    failed = OSError("no such host")
    for family, kind, _, _, place in await loop.getaddrinfo(
        host.strip("[]"), int(port), type=socket.SOCK_STREAM
    ):
        raw = socket.socket(family, kind)
        raw.setblocking(False)
        try:
            await loop.sock_connect(raw, place)
        except OSError as error:
            raw.close()
            failed = error
        except BaseException:
            raw.close()
            raise
        else:
            return raw
    raise failed


async def _through(raw: socket.socket, address: str) -> socket.socket:
    """Ask the proxy at the other end to connect us. Raises NotReached, OSError."""
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(raw, _connect(address))
        head = bytearray()
        while not head.endswith(b"\r\n\r\n"):
            part = await loop.sock_recv(raw, 1)  # what is behind the head belongs to who comes next
            if not part or len(head) > _PROXY_HEAD_BYTES:
                raise NotReached("the proxy hung up, or answered something else than HTTP")
            head += part
        status = _status(bytes(head))
        if status != "200":
            raise NotReached(f"the proxy answered {status} when asked to connect")
    except ValueError as error:
        raw.close()
        raise NotReached("the proxy answered something else than HTTP") from error
    except BaseException:
        raw.close()
        raise
    return raw


_PROXY_HEAD_BYTES = 16384


def _connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


def _status(head: bytes) -> str:
    """The three digits of an answer. Raises ValueError if it is no HTTP."""
    version, _, rest = head.decode("latin-1").partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise ValueError("not HTTP")
    return printable(rest[:3])


# ---- what gRPC calls


class Ways:
    """What gRPC is to call for each peer: its address, or a socket of ours from which we carry what is said."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._folder: Path | None = None
        self._left = ExitStack()
        self._doors: dict[tuple[str, str], tuple[str, asyncio.Server]] = {}
        self._why: dict[tuple[str, str], str] = {}
        self._carrying: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()

    async def target(self, peer: str, address: str) -> str:
        """What gRPC is to call, and who looks why nobody answers."""
        if self._config.proxy is None and address != RELAYED:
            return address
        async with self._opening:
            if (peer, address) not in self._doors:
                self._doors[peer, address] = await self._door(peer, address)
        return UNIX + self._doors[peer, address][0]

    def why(self, peer: str, address: str) -> str | None:
        """What was in the way to a peer when it was called last; None if it was reached."""
        return self._why.get((peer, address))

    async def close(self) -> None:
        """Hang up, and leave nothing behind."""
        for _, server in self._doors.values():
            server.close()
        await stopped(*self._carrying)
        self._doors.clear()
        self._left.close()
        self._folder = None

    async def _door(self, peer: str, address: str) -> tuple[str, asyncio.Server]:
        if self._folder is None:
            self._folder = self._left.enter_context(short_lived("jointcut-ways"))
        path = os.fspath(self._folder / str(len(self._doors)))
        begin = partial(self._begin, peer, address)
        return path, await asyncio.start_unix_server(begin, path, limit=BUFFER_BYTES)

    def _begin(
        self, peer: str, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        near = Stream(reader, writer)
        task = asyncio.create_task(self._carry(peer, address, near))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        task.add_done_callback(lambda _: near.abort())  # also if it never began

    async def _carry(self, peer: str, address: str, near: Stream) -> None:
        try:
            far = await dial(self._config, peer, address)
        except NotReached as error:
            self._why[peer, address] = str(error)
            return
        self._why.pop((peer, address), None)
        await splice(near, far)
