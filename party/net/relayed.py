"""Client side of the relay: calls to a party, and a party's connections waiting for calls.

A connection to the relay begins with a line of the client. `call 1 NAME` asks for a party; after `ok` every byte goes
to the party. `wait 1` offers the connection to callers. The relay says `ping` from time to time, and hears `pong`; or
says `call NAME` for a caller, and hears `here`; then every byte goes to the caller. `no REASON` refuses.

The bytes are the usual session between two peers, with TLS from end to end, so the relay can only cut the session.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from jobs.errors import PartyError
from party.net.pipes import Streams, dropped, joined, line, said, secured, streams_of
from party.net.sockets import Obstacle, connector, straight
from party.net.tls import context_to
from party.net.waiting import stopped
from party.owner.config import NodeConfig, relay_of

log = logging.getLogger("party")

VERSION = b"1"
CALL_LINE, WAIT_LINE = b"call", b"wait"
_NOBODY = b"-"
"""No name of a party."""
OK, NO, PING, PONG, CALLED, HERE = b"ok", b"no", b"ping", b"pong", b"call", b"here"
ABSENT, UNKNOWN, FULL, OTHER_VERSION = b"absent", b"unknown", b"full", b"version"
STRANGER, MANY = b"stranger", b"many"
"""Reasons of a party against a caller."""

PING_S = 5.0
"""Time between two signs of life to a waiting party. Proxies and firewalls may cut what is idle for 10 s."""
_SILENCE_S = 60.0
"""Time for a relay to say something. Earlier relays give a sign of life every 20 s."""
_MOST_PINGS, _EACH_S = 20, 1.0
"""Most signs of life that the relay may ask for: so many, and another after each such time."""
_SPARE = 4
"""Connections kept by a party for callers."""
_MOST_OF_EACH = 16
"""Most connections of a caller at a time: as many as its tunnels to a peer."""
_PAUSE_S, _MOST_PAUSE_S = 1.0, 60.0
_STEADY_S = 10.0
"""Time at the relay after which pauses begin small again: a relay that always hangs up soon must not keep us busy."""
_BETWEEN_S = 0.05
"""Shortest time between a call and the next offer of a connection: a lying relay must not keep us busy."""

_REASONS = {
    ABSENT: ("the party does not wait at the relay", "at the party: check that the daemon runs, and `relay`"),
    UNKNOWN: ("the relay does not know the party", "at the relay: coordinator peers add NAME CERTIFICATE"),
    FULL: ("the relay has too many connections of ours", "end other programs that use our certificate"),
    STRANGER: ("the party does not know us", "at the party: party peers add NAME CERTIFICATE"),
    MANY: ("the party has too many connections of ours", "end other programs that use our certificate"),
    OTHER_VERSION: ("the relay has another version", "install the same version here and at the relay"),
}
_ODD = "the relay answered in an unknown form"
_CHECK = "check `relay` in the configuration, and that the relay runs"
_LATE = Obstacle("the relay gave no answer in time", _CHECK)
_SILENT = Obstacle(
    "the relay gave no answer in time; perhaps the party does not wait at the relay", _REASONS[ABSENT][1]
)
"""A relay asks the party for a few seconds before it answers a call. We may be less patient."""


async def call(config: NodeConfig, name: str) -> Streams:
    """Return streams to the party ``name``, through the relay. Raises Obstacle."""
    streams, answer = await _greeted(config, b" ".join((CALL_LINE, VERSION, name.encode())), _SILENT)
    if answer != OK:
        dropped(streams)
        raise _refusal(answer)
    return streams


async def check_relay(config: NodeConfig) -> None:
    """Raise Obstacle unless the relay can be reached and knows our certificate: call nobody, and hear of nobody."""
    streams, answer = await _greeted(config, b" ".join((CALL_LINE, VERSION, _NOBODY)))
    dropped(streams)
    if answer != b" ".join((NO, UNKNOWN)):
        raise _refusal(answer)


async def _greeted(config: NodeConfig, first: bytes, silent: Obstacle = _LATE) -> tuple[Streams, bytes]:
    """Connect to the relay, with certificates on both sides, and say a first line; return the streams and the answer.

    Raises Obstacle, also if the relay needs longer than ``connect_s``. silent: raised if no answer follows the line.
    """
    try:
        relay = relay_of(config)
        context = context_to(config, relay)
    except PartyError as error:
        raise Obstacle(error.problem.message, error.problem.remedy) from error
    except OSError as error:
        raise Obstacle("our own certificate and key cannot be read") from error
    assert relay.address is not None
    try:
        connection = await connector(config)(relay.address)
    except Obstacle as error:
        raise Obstacle(f"the relay cannot be reached: {error.reason}", error.remedy or _CHECK) from error
    patience_s, late = config.timeouts.connect_s, _LATE
    try:
        async with asyncio.timeout(patience_s):
            streams = await secured(connection, context, relay.name, patience_s)
            late = silent
            return streams, await _answer(streams, first)
    except ssl.SSLCertVerificationError as error:
        reason = "the relay presented a different certificate than the installed certificate"
        raise Obstacle(reason, "compare the fingerprint with the operator of the relay") from error
    except TimeoutError as error:
        raise Obstacle(late.reason, late.remedy) from error
    except (OSError, EOFError, ValueError) as error:
        raise _turned_away(error) from error


async def _answer(streams: Streams, words: bytes) -> bytes:
    """Say a line, and return the answer. Closes the connection after an error."""
    try:
        await said(streams[1], words)
        return await line(streams[0])
    except BaseException:
        dropped(streams)
        raise


def _turned_away(error: Exception) -> Obstacle:
    if isinstance(error, ValueError):
        return Obstacle(_ODD, _CHECK)
    if isinstance(error, ssl.SSLError):  # a TLS alert
        return Obstacle(
            "the relay refused our certificate",
            "at the relay: coordinator peers add NAME CERTIFICATE, then send SIGHUP to the relay",
        )
    return Obstacle(
        "the relay ended the connection: it has too many, is about to stop, or does not know our certificate",
        "at the relay: see the log; coordinator peers list",
    )


def _refusal(answer: bytes) -> Obstacle:
    word, _, reason = answer.partition(b" ")
    return Obstacle(*_REASONS.get(reason if word == NO else b"", (_ODD, _CHECK)))


class Attendance:
    """Connections kept by a party at the relay. Each call of a peer is joined to our own server.

    The relay names the caller. The name bounds the connections of each caller, and nothing else: the server
    identifies the caller by TLS.
    """

    def __init__(self, config: Callable[[], NodeConfig]) -> None:
        """``config``: the configuration now in force."""
        self._config = config
        self._server = ""
        self._keeping: list[asyncio.Task[None]] = []
        self._joined: set[asyncio.Task[None]] = set()
        self._n_of: Counter[str] = Counter()
        """Connections by caller."""
        self._trouble: str | None = ""
        """Reason for not waiting at the relay now; None: we wait; empty: not known yet."""

    def start(self, server: str) -> None:
        """Begin to wait. ``server``: the address of our own server on this machine."""
        self._server = server
        self._keeping = [asyncio.create_task(self._keep()) for _ in range(_SPARE)]

    async def close(self) -> None:
        """End all connections."""
        await stopped(*self._keeping)
        await stopped(*self._joined)  # by now each has begun, and closes what it holds

    async def _keep(self) -> None:
        """Keep a connection at the relay; after an error try again, with growing pauses."""
        pause_s, clock = _PAUSE_S, asyncio.get_running_loop().time
        while True:
            greeted_at = math.inf
            try:
                far, word = await _greeted(self._config(), b" ".join((WAIT_LINE, VERSION)))
                greeted_at = clock()
                await self._wait_for_call(far, word)
            except (Obstacle, OSError, EOFError, ValueError, TimeoutError) as error:
                self._note(error.reason if isinstance(error, Obstacle) else "the connection was lost")
                if clock() - greeted_at > _STEADY_S:
                    pause_s = _PAUSE_S
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _MOST_PAUSE_S)
            else:
                pause_s = _PAUSE_S
                await asyncio.sleep(_BETWEEN_S)

    def _note(self, trouble: str | None) -> None:
        """Log if we wait at the relay now, and did not before, or the reverse."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble is None:
            log.info("%s waits for callers at the relay", self._config().name)
        else:
            log.warning(
                "%s does not wait for callers at the relay, and tries again: %s", self._config().name, trouble
            )

    async def _wait_for_call(self, far: Streams, word: bytes) -> None:
        """Wait for a caller; return once a task serves the caller. Raises Obstacle and others.

        word:  the first that the relay said.
        """
        try:
            caller = await self._called(far, word)
        except BaseException:
            dropped(far)
            raise
        self._n_of[caller] += 1
        task = asyncio.create_task(_serve_caller(self._server, far))
        self._joined.add(task)
        task.add_done_callback(partial(self._left, caller))

    def _left(self, caller: str, task: asyncio.Task[None]) -> None:
        self._joined.discard(task)
        self._n_of[caller] -= 1

    async def _called(self, far: Streams, word: bytes) -> str:
        """Answer the relay until a caller comes whom we take; return the caller's name."""
        clock, n_pings = asyncio.get_running_loop().time, 0
        begun = clock()
        while True:
            match word.split(b" "):
                case [relay_word] if relay_word == PING:
                    n_pings += 1
                    if n_pings > _MOST_PINGS + (clock() - begun) / _EACH_S:
                        raise Obstacle("the relay asks for signs of life all the time", _CHECK)
                    self._note(None)
                    answer = PONG
                case [relay_word, name] if relay_word == CALLED:
                    caller = name.decode("ascii", "replace")
                    if (objection := self._objection(caller)) is None:
                        return caller
                    answer = NO + b" " + objection
                    await asyncio.sleep(_BETWEEN_S)
                case _:
                    raise _refusal(word)
            async with asyncio.timeout(_SILENCE_S):
                word = await _answer(far, answer)

    def _objection(self, caller: str) -> bytes | None:
        """Return the reason against a connection with a caller, or None."""
        if caller not in self._config().peers:
            return STRANGER
        return MANY if self._n_of[caller] >= _MOST_OF_EACH else None


async def _serve_caller(server: str, far: Streams) -> None:
    try:
        near = await streams_of(await straight(server))
    except BaseException as error:
        dropped(far)
        if isinstance(error, (Obstacle, OSError)):  # our server has stopped
            return
        raise
    with suppress(OSError):  # the caller has left
        await said(far[1], HERE)
    await joined(near, far)
