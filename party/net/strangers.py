"""Connections without a call: TLS turned their certificate away, or nobody spoke.

gRPC tells the program nothing of a handshake that failed. But gRPC asks for our certificate before each handshake,
and each call names its connection. So the difference counts the connections over which no call arrived: without a
certificate, with a certificate that is not installed, without TLS, silent, or only opened.

The addresses come from the system's list of TCP connections, as far as there is a list: best effort. A connection
that its caller closed at once may be missing from the list, and another program on the same port of another address
of the machine adds its callers.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote

from party.net.waiting import stopped

WINDOW_S = 60.0
"""Shortest time between two reports."""
CALL_S = 10.0
"""Time for a first call after the longest handshake."""
MOST_TOLD = 10
"""Most addresses of a report."""
_MOST_KEPT = 1000
"""Most connections whose addresses are kept."""
_LOOK_S = 1.0
"""Shortest time between two looks at the list of connections during handshakes."""
_LISTS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MOST_LIST = 4 << 20
_PAGE = resource.getpagesize()
_LINE = 256
"""Bytes of the longest line of a list, rounded up."""
_NO_CALLERS = frozenset({"03", "0A", "0C"})
"""States of a listening socket, and of a connection whose address may be forged."""

End: TypeAlias = tuple[IPv4Address | IPv6Address, int]
"""Address and port of a caller."""
Tell: TypeAlias = Callable[[int, Sequence[str]], Coroutine[Any, Any, None]]
"""Takes a number of connections without a call, and some of their addresses."""

_CALLED: Final = "called"
_TOLD: Final = "told"


class Strangers:
    """Counter of connections without a call.

    Each report comes at least ``patience_s`` after its handshakes began. While connections with calls begin, too, a
    report may count too few; the next report after a quiet time makes up for it.
    """

    def __init__(self, tell: Tell, patience_s: float) -> None:
        """``patience_s``: time for a connection to show a certificate and to make a call."""
        self._tell = tell
        self._patience_s = patience_s
        self._port = 0
        self._lock = threading.Lock()
        self._begun = self._settled = self._called = self._counted = 0
        self._ends: dict[End | str, int | Literal["called", "told"]] = {}
        """Connections: the handshakes begun when a connection without a call was seen, or the state."""
        self._look_at = 0.0
        self._next_report = 0.0
        self._due = 0
        self._cut = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    def start(self, port: int) -> None:
        """Watch the connections to a port of ours."""
        self._port = port
        with suppress(OSError, ValueError):  # of an earlier daemon: over, but still in the list
            self._ends |= dict.fromkeys(islice(_callers_of(port), _MOST_KEPT), _TOLD)
        self._loop = asyncio.get_running_loop()
        self._watching = asyncio.create_task(self._watch())

    def begun(self) -> None:
        """Count a handshake. Called in any thread; raises nothing, since the handshake would fail."""
        now = time.monotonic()
        with self._lock:
            self._begun += 1
            looks, wakes = now >= self._look_at, self._begun == self._cut + 1
            if looks:
                self._look_at = now + _LOOK_S
        if looks:
            self._look()
        if wakes and self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the daemon ends
                self._loop.call_soon_threadsafe(self._wake.set)

    def called(self, peer: str) -> None:
        """Note a call. ``peer``: the connection, as gRPC names it."""
        end = _end_of(peer)
        with self._lock:
            if self._ends.get(end) == _CALLED:
                return
            self._called += 1
            self._counted -= self._begun == self._settled  # late: counted already
            self._ends.pop(end, None)
            self._make_room()
            self._ends[end] = _CALLED

    async def close(self) -> None:
        """Report what is due, and watch no more."""
        if self._watching is not None:
            await stopped(self._watching)
            await self._report()

    async def _watch(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._begun > self._cut or self._due:
                with self._lock:
                    self._cut = self._begun
                await asyncio.sleep(self._patience_s)
                await asyncio.to_thread(self._look)
                self._settle()
                if time.monotonic() >= self._next_report:
                    await self._report()

    def _settle(self) -> None:
        """Count what began before the last patience, and made no call."""
        with self._lock:
            self._due = max(0, self._cut - self._called - self._counted)
            self._settled = self._cut
            if self._begun == self._cut:  # more late calls than connections without a call
                self._counted = min(self._counted, self._cut - self._called)

    async def _report(self) -> None:
        with self._lock:
            n_due, self._due = self._due, 0
            self._counted += n_due
            hosts = list(self._hosts()) if n_due else []
        if n_due:
            self._next_report = time.monotonic() + WINDOW_S
            await self._tell(n_due, hosts[:MOST_TOLD])

    def _hosts(self) -> Iterator[str]:
        """Yield addresses of connections without a call, each once, and mark the connections."""
        found = [end for end, seen in self._ends.items() if isinstance(seen, int) and seen <= self._cut]
        self._ends |= dict.fromkeys(found, _TOLD)
        yield from dict.fromkeys(str(end[0]) for end in found)

    def _look(self) -> None:
        """Read the list of connections: keep new ones, forget those that are over."""
        with suppress(OSError, ValueError):
            with self._lock:
                before = set(self._ends)
            present = set(_callers_of(self._port))
            with self._lock:
                for end in before - present:
                    if not isinstance(end, str) and self._ends.get(end) in (_CALLED, _TOLD):
                        del self._ends[end]
                for end in present:
                    if len(self._ends) < _MOST_KEPT:
                        self._ends.setdefault(end, self._begun)

    def _make_room(self) -> None:
        if len(self._ends) >= _MOST_KEPT:
            del self._ends[next(iter(self._ends))]


def _callers_of(port: int) -> Iterator[End]:
    """Yield the other ends of connections to a port of ours. Raises OSError or ValueError without a list."""
    for path in _LISTS:
        if not path.exists():
            continue
        for line in _content_of(path).decode("ascii").splitlines()[1:]:
            fields = line.split()
            if (
                len(fields) > 3
                and fields[3] not in _NO_CALLERS
                and int(fields[1].rsplit(":", 1)[1], 16) == port
            ):
                yield _listed(fields[2])


def _content_of(path: Path) -> bytes:
    """Read a list of connections. Linux returns as many lines at a time as fill a page.

    A page with room for a further line is the last one. Another read would search all connections of the machine
    anew, only to say that there are no more.
    """
    content = b""
    with path.open("rb", buffering=0) as file:
        while len(content) < _MOST_LIST and (page := file.read(_MOST_LIST)):
            content += page
            if len(page) < _PAGE - _LINE:
                break
    return content


def _listed(text: str) -> End:
    """Read an address and a port as Linux lists them: words of 32 bits in the order of the machine."""
    host, port = text.split(":")
    words = (int(host[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(host), 8))
    return _plain(ip_address(b"".join(words))), int(port, 16)


def _end_of(peer: str) -> End | str:
    """Read an address and a port as gRPC names them: ``ipv4:192.0.2.1:7400`` or ``ipv6:%5B::1%5D:7400``."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    try:
        return _plain(ip_address(host.strip("[]").partition("%")[0])), int(port)
    except ValueError:
        return peer


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
