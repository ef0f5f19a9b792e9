"""Ways to a peer: straight, or through a tunnel by an HTTP proxy or the relay.

gRPC opens no tunnel: gRPC's proxy obeys the environment, and knows no relay. So gRPC dials a socket of our process,
in a folder for our user alone. Each connection to the socket is joined to a new tunnel.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from jobs.errors import ConfigError
from party.net.pipes import Listener, Streams, joined, streams_of
from party.net.relayed import call
from party.net.sockets import Obstacle, connector
from party.owner.config import RELAYED, NodeConfig

Open = Callable[[], Awaitable[Streams]]
"""Opens a tunnel to a peer. Raises Obstacle."""

_MARGIN_S = 0.5
"""Time for the exact reason of a tunnel that does not open in time."""
_MOST = 16
"""Most connections through the tunnels to a peer: gRPC opens a connection, and a second after an error."""


class Way(Protocol):
    """Way to a peer at an address."""

    @property
    def target(self) -> str:
        """Address for gRPC."""
        ...

    @property
    def patience_s(self) -> float:
        """Time for a peer to answer, when we look for the reason of a failure."""
        ...

    @property
    def obstacle(self) -> Obstacle | None:
        """Obstacle on the way of the last connection, as far as known."""
        ...

    def connect(self, timeout_s: float) -> socket.socket:
        """Connect, blocking. Raises OSError."""
        ...


class Straight:
    """Way without anything between."""

    patience_s = 2.0
    obstacle: Obstacle | None = None

    def __init__(self, address: str) -> None:
        self.target = address

    def connect(self, timeout_s: float) -> socket.socket:
        host, port = self.target.rsplit(":", 1)
        return socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)


class Tunnel:
    """Way through a proxy or a relay."""

    def __init__(self, path: Path, open_tunnel: Open, patience_s: float) -> None:
        """``path``: of the socket for gRPC. ``patience_s``: time for opening a tunnel."""
        self.target = f"unix:{path}"
        self.obstacle: Obstacle | None = None
        self._path = str(path)
        self._open = open_tunnel
        self._patience_s = patience_s + _MARGIN_S
        self.patience_s = self._patience_s + _MARGIN_S
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self._path)
        listening.listen()
        self._listener = Listener(listening, self._carry, _MOST)

    def connect(self, timeout_s: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout_s)
        connection.connect(self._path)
        return connection

    async def close(self) -> None:
        await self._listener.close()

    async def _carry(self, connection: socket.socket) -> None:
        near = await streams_of(connection)
        try:
            async with asyncio.timeout(self._patience_s):
                far = await self._open()
        except (Obstacle, TimeoutError) as error:
            self.obstacle = error if isinstance(error, Obstacle) else Obstacle("no answer in time")
            near[1].close()
            return
        except BaseException:
            near[1].close()
            raise
        self.obstacle = None
        await joined(near, far)


class Ways:
    """Ways to all peers, as the configuration asks for them."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._tunnels: list[Tunnel] = []

    def to(self, peer: str, address: str) -> Way:
        """Return a new way. Raises ConfigError without a folder for sockets."""
        if address == RELAYED:
            return self._tunnel(lambda: call(self._config, peer))
        if self._config.proxy is not None:
            return self._tunnel(lambda: self._through_proxy(address))
        return Straight(address)

    async def close(self) -> None:
        """End all tunnels."""
        await asyncio.gather(*(tunnel.close() for tunnel in self._tunnels))
        if self._folder is not None:
            self._folder.cleanup()

    async def _through_proxy(self, address: str) -> Streams:
        return await streams_of(await connector(self._config)(address))

    def _tunnel(self, open_tunnel: Open) -> Tunnel:
        try:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="jointcut-")
            path = Path(self._folder.name) / str(len(self._tunnels))
            tunnel = Tunnel(path, open_tunnel, self._config.timeouts.connect_s)
        except OSError as error:  # no temporary folder, or a path that is too long for a socket
            raise ConfigError(
                "config-invalid",
                f"a tunnel needs a socket in the temporary folder: {error.strerror or error}",
                remedy="name a folder with a short path, in which this user can write, in the environment variable "
                "TMPDIR",
            ) from error
        self._tunnels.append(tunnel)
        return tunnel
