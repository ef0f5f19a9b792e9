"""A relay that lies: it joins the wrong parties, poses as them, and changes, cuts or repeats what it forwards.

Every session has TLS from end to end, with both certificates installed beforehand. So a hostile relay can end a job,
and nothing else.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.relay import Bounds, Relay, roster_of
from coordinator.run import conduct
from jobs.errors import Problem
from party.net.pipes import Streams, answered, dropped, joined, line, streams_of
from party.net.sockets import straight
from party.owner.config import CoordinatorConfig
from tests.support.by_hand import reached, works
from tests.support.calls import calling, impatient, refused
from tests.support.duplex import run
from tests.support.monitors import asked, watched
from tests.support.network import GUARD_S, Network, processes, sample_network, serving
from tests.support.relays import (
    joined_as,
    listening,
    relay_address,
    relay_config,
    relaying,
    taken,
    until,
    until_waiting,
    with_relay,
)
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return with_relay(sample_network(tmp_path / "net"))


class Hostile(Relay):
    """A relay that joins whom it likes, and meddles with what it forwards."""

    def __init__(self, config: CoordinatorConfig, bounds: Bounds | None = None) -> None:
        super().__init__(config, bounds)
        self.instead: dict[bytes, bytes] = {}
        self.named = ""
        """Name that is told of each caller, if not the caller's."""
        self.change: Callable[[bytes, int], bytes] | None = None
        """Takes a piece on its way to the party that was called, and the bytes before it; None cuts."""
        self.recorded = b""

    async def _call(self, caller: Any, name: bytes, streams: Streams) -> None:
        told = replace(caller, name=self.named or caller.name)
        await super()._call(told, self.instead.get(name, name), streams)

    async def _forward(self, caller: str, called: str, near: Streams, far: Streams) -> int:
        forward, back = asyncio.create_task(self._meddle(near, far)), asyncio.create_task(_copy(far, near))
        await asyncio.wait({forward, back}, return_when=asyncio.FIRST_COMPLETED)
        for task in (forward, back):
            task.cancel()
        await asyncio.gather(forward, back, return_exceptions=True)
        dropped(near)
        dropped(far)
        return 0

    async def _meddle(self, near: Streams, far: Streams) -> None:
        n_bytes = 0
        while piece := await near[0].read(1 << 14):
            self.recorded += piece
            changed = self.change(piece, n_bytes) if self.change else piece
            n_bytes += len(piece)
            if not changed:
                return
            far[1].write(changed)
            await far[1].drain()


async def _copy(here: Streams, there: Streams) -> None:
    while piece := await here[0].read(1 << 14):
        there[1].write(piece)
        await there[1].drain()


def hostile(relay: Relay) -> Hostile:
    assert isinstance(relay, Hostile)
    return relay


def _nothing_kept(net: Network) -> None:
    assert [net.releases(party) for party in PARTIES] == [[], [], []]


def test_a_caller_who_is_joined_to_another_knows_it(net: Network) -> None:
    """Also to somebody whose certificate is installed here: the name counts that was called."""

    async def scenario() -> Problem:
        async with relaying(net, Hostile) as relay, serving(net), calling(net.config(C)) as calls:
            hostile(relay).instead[A.encode()] = B.encode()
            await until_waiting(relay, B)
            return await refused(calls.open_mesh(A, "relay"))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("identity-mismatch", A)
    assert "presented a different certificate" in problem.message


def test_a_party_that_is_joined_to_itself_knows_it(net: Network) -> None:
    async def scenario() -> Problem:
        async with relaying(net, Hostile) as relay, serving(net), calling(net.config(C)) as calls:
            hostile(relay).instead[A.encode()] = C.encode()
            hostile(relay).named = B
            await until_waiting(relay, C)
            return await refused(calls.open_mesh(A, "relay"))

    assert run(scenario()).error_id in {"identity-mismatch", "tls-failed"}


@pytest.mark.more
def test_a_job_with_a_party_exchanged_ends_at_once(net: Network, tmp_path: Path) -> None:
    async def scenario() -> Problem:
        async with relaying(net, Hostile) as relay, serving(net):
            hostile(relay).instead[A.encode()] = B.encode()
            problem = await refused(conduct(net.task, net.coordinator, tmp_path / "out"))
            hostile(relay).instead.clear()
            await works(net, tmp_path / "again")
            return problem

    assert run(scenario()).error_id == "identity-mismatch"


class Posing(Relay):
    """A relay that answers each caller itself, as a party."""

    async def _join(self, caller: object, member: object, streams: Streams) -> None:
        streams[1].write(b"ok\n")
        near, far = await _pair()
        serving = asyncio.create_task(_answer_as_server(far, self._roster.context))
        await joined(streams, near, 1)
        await serving


async def _pair() -> tuple[Streams, Streams]:
    one, other = socket.socketpair()
    one.setblocking(False)
    other.setblocking(False)
    return await streams_of(one), await streams_of(other)


async def _answer_as_server(far: Streams, context: ssl.SSLContext) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    while piece := await far[0].read(1 << 14):
        incoming.write(piece)
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            break
        far[1].write(outgoing.read())
    far[1].close()


def test_the_relay_cannot_pose_as_a_party(net: Network) -> None:
    async def scenario() -> Problem:
        async with relaying(net, Posing), calling(net.coordinator) as calls:
            return await refused(reached(calls, A, "relay"))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("identity-mismatch", A)


def test_the_relay_cannot_pose_as_a_coordinator(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own certificate, or without, it is a stranger; the audit counts its connections."""
    monkeypatch.setattr("party.net.server.CALL_S", 0.1)
    net.change(A, lambda fields: fields.update(timeouts={"hello_s": 0.5}))
    audit = net.config(A).state_dir / "audit.jsonl"

    async def scenario() -> list[bytes]:
        async with relaying(net) as relay, serving(net, only=[A]):
            await until_waiting(relay, A)
            found = [await _tls_through(relay, net, A, own) for own in (True, False)]
            await until(lambda: audit.exists() and '"connections"' in audit.read_text())
            return found

    assert run(scenario()) == [b"", b""]


async def _tls_through(relay: Relay, net: Network, name: str, own: bool) -> bytes:
    """Take a waiting connection of a party, as the relay can, and speak to the party's server."""
    far = await joined_as(relay, name, "coordinator")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if own:
        folder = net.root / "relay" / "tls"
        context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    tls = context.wrap_bio(incoming, outgoing)
    found = b""
    try:
        while True:
            try:
                found += tls.read(1 << 14)
            except ssl.SSLWantReadError:
                far[1].write(outgoing.read())
                piece = await far[0].read(1 << 14)
                if not piece:
                    return found
                incoming.write(piece)
    except ssl.SSLError:
        return found
    finally:
        dropped(far)


@pytest.mark.parametrize(
    "at",
    [0, pytest.param(3000, marks=pytest.mark.more), pytest.param(9000, marks=pytest.mark.more)],
    ids=["in the handshake", "early", "later"],
)
def test_a_changed_byte_ends_the_job(net: Network, tmp_path: Path, at: int) -> None:
    def change(piece: bytes, before: int) -> bytes:
        place = at - before + 20
        if not 0 <= place < len(piece):
            return piece
        return piece[:place] + bytes([piece[place] ^ 1]) + piece[place + 1 :]

    problem = _spoilt(net, tmp_path, change)
    assert problem.error_id in {"peer-lost", "peer-unreachable", "tls-failed"}


@pytest.mark.parametrize("at", [pytest.param(3000, marks=pytest.mark.more), 9000])
def test_a_cut_ends_the_job(net: Network, tmp_path: Path, at: int) -> None:
    problem = _spoilt(net, tmp_path, lambda piece, before: piece if before < at else b"")
    assert problem.error_id in {"peer-lost", "peer-unreachable", "tls-failed"}


def _spoilt(net: Network, tmp_path: Path, change: Callable[[bytes, int], bytes]) -> Problem:
    """Run a job over a relay that meddles; the same daemons then run it undisturbed."""

    async def scenario() -> Problem:
        async with relaying(net, Hostile) as relay, serving(net):
            hostile(relay).change = change
            coordinator = impatient(net.coordinator, 0.8)
            problem = await refused(conduct(net.task, coordinator, tmp_path / "out"))
            _nothing_kept(net)
            hostile(relay).change = None
            await works(net, tmp_path / "again")
            return problem

    return run(scenario())


def test_a_recorded_session_is_worth_nothing(net: Network, tmp_path: Path) -> None:
    """The bytes of a whole job, said again to the party, begin nothing."""

    async def scenario() -> tuple[int, bytes]:
        async with relaying(net, Hostile) as relay, serving(net) as servers:
            await works(net, tmp_path / "out")
            before = len(net.releases(A))
            await until_waiting(relay, A)
            far = await joined_as(relay, A, "coordinator")
            far[1].write(hostile(relay).recorded)
            found = await _until_end(far)
            assert servers[A].current() is None
            assert len(net.releases(A)) == before
            return before, found

    before, found = run(scenario())
    assert before == 1
    assert len(found) < 5000  # a handshake of the server, or an alert, and no answer


async def _until_end(streams: Streams) -> bytes:
    found = b""
    try:
        async with asyncio.timeout(15):
            while piece := await streams[0].read(1 << 14):
                found += piece
    except OSError:
        pass
    finally:
        dropped(streams)
    return found


def test_a_relay_that_calls_all_the_time_is_joined_so_often_and_not_more(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each known name so often, for an unknown name never. A direct caller gets in all the same."""
    monkeypatch.setattr("party.net.relayed._MOST_OF_EACH", 3)

    async def flood(relay: Relay) -> None:
        held = []
        try:
            for caller in itertools.cycle((B, C, "coordinator", "stranger", A)):
                found = await taken(relay, A, caller)
                if not isinstance(found, bytes):
                    held.append(found)
        finally:
            for streams in held:
                dropped(streams)

    async def scenario() -> int:
        async with relaying(net) as relay, serving(net, only=[A]) as servers:
            flooding = asyncio.create_task(flood(relay))
            await asyncio.sleep(1)
            (await straight(net.addresses[A])).close()
            (attendance,) = servers[A]._attendances
            n_joined = len(attendance._joined)
            flooding.cancel()
            await asyncio.gather(flooding, return_exceptions=True)
            return n_joined

    assert run(scenario()) == 3 * 3


async def _floods(streams: Streams) -> None:
    """Greet a party, and ask for signs of life without end."""
    await line(streams[0])
    answers = asyncio.create_task(_discarded(streams[0]))
    try:
        while True:
            streams[1].write(b"ping\n" * 1000)
            await streams[1].drain()
            await asyncio.sleep(0)  # the test goes on, too
    finally:
        answers.cancel()


async def _discarded(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 14):
        pass


def test_a_relay_that_pings_without_end_is_left(net: Network) -> None:
    """The daemon answers its monitor, says why, and stops when told."""
    context = roster_of(relay_config(net)).context
    address = watched(net, A)
    n_flooded = 0

    async def serve(connection: socket.socket) -> None:
        nonlocal n_flooded
        streams = await answered(connection, context, GUARD_S)
        try:
            n_flooded += 1
            await _floods(streams)
        except (OSError, EOFError):
            pass
        finally:
            dropped(streams)

    async def scenario() -> None:
        async with listening(relay_address(net), serve):
            with processes(net, only=[A]) as running:
                why = f"{A} does not wait for callers at the relay, and tries again: the relay asks for signs of life"
                while n_flooded < 8:
                    assert await asyncio.to_thread(asked, address, "/livez") == (200, "ok\n")
                await until(lambda: why in running.log(A))
                running.signal(A, signal.SIGTERM)
                process = running.running[A].process
                assert await asyncio.to_thread(process.wait, GUARD_S / 3) == 0

    run(scenario())
