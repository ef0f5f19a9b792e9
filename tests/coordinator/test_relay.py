"""The relay: who is joined to whom, what strangers get, and bounds."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.relay import Bounds, Relay, roster_of
from coordinator.run import conduct
from jobs.errors import ConfigError, PartyError, Problem
from party.net import control
from party.net.control import Event
from party.net.pipes import Streams, dropped, line, said, streams_of
from party.net.sockets import straight
from party.owner.config import CoordinatorConfig
from party.owner.peer_files import CERTIFICATE, make_identity
from tests.support.bare import bare
from tests.support.by_hand import reached, works
from tests.support.calls import calling, coordinator_as, issued
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.network import (
    GUARD_S,
    Network,
    call,
    command,
    processes,
    released,
    sample_network,
    serving,
    write_job,
)
from tests.support.relays import (
    RELAY,
    at_relay,
    called_by_hand,
    relay_address,
    relay_config,
    relaying,
    until,
    waiting_by_hand,
    with_relay,
)
from tests.support.samples import PARTIES, joint_job
from tests.support.saying import saying, when
from tests.support.waiting import until as until_said

A, B, C = PARTIES
QUICK = Bounds(pair_s=0.3, answer_s=0.3, ping_s=0.1, idle_s=0.3)


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return with_relay(sample_network(tmp_path / "net"))


class Noting(Relay):
    """A relay that remembers whom it joined."""

    def __init__(self, config: CoordinatorConfig, bounds: Bounds | None = None) -> None:
        super().__init__(config, bounds)
        self.joined: set[tuple[str, str]] = set()

    async def _forward(self, caller: str, called: str, near: Streams, far: Streams) -> int:
        self.joined.add((caller, called))
        return await super()._forward(caller, called, near, far)


# ---- jobs


def test_three_parties_without_inbound_ports_make_a_table(net: Network, tmp_path: Path) -> None:
    async def scenario() -> set[tuple[str, str]]:
        async with relaying(net, Noting) as relay:
            async with serving(net):
                await works(net, tmp_path / "out")
            assert isinstance(relay, Noting)
            return relay.joined

    joined = run(scenario())
    assert {called for caller, called in joined if caller == "coordinator"} == {A, B, C}
    assert {frozenset(pair) for pair in joined if "coordinator" not in pair} == {
        frozenset({A, B}),
        frozenset({A, C}),
        frozenset({B, C}),
    }
    assert all(len(net.releases(party)) == 1 for party in PARTIES)


def test_a_run_that_the_relay_ends_names_the_relay(net: Network, tmp_path: Path) -> None:
    async def scenario() -> Problem:
        async with relaying(net) as relay:
            ending: list[asyncio.Task[object]] = []

            def end(event: Any) -> list[Event]:
                nobody = replace(roster_of(relay_config(net)), peers={})
                ending.append(asyncio.create_task(relay.adopt(nobody)))
                return [event]

            async with serving(net, {B: saying(when(control.Admitted, end))}):
                with pytest.raises(PartyError) as caught:
                    await conduct(net.task, net.coordinator, tmp_path / "out")
            await asyncio.gather(*ending)
            return caught.value.problem

    problem = run(scenario())
    assert problem.error_id == "peer-lost"
    assert problem.remedy == "look at the party's log, and at the log of the relay; start the job again"


@pytest.mark.more
def test_a_job_of_real_processes_over_a_relay(net: Network, tmp_path: Path) -> None:
    words = command("relay", "--listen", relay_address(net), "-c", net.config_path(RELAY))
    job = write_job(tmp_path / "job", joint_job())
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=bare()
    ) as relay:
        assert relay.stdout is not None
        relay.stdout.readline()
        with processes(net):
            ran = call("run", job, "--config", net.config_path("coordinator"), "--out", tmp_path / "out")
            assert ran.code == 0, ran.err
        relay.send_signal(signal.SIGTERM)
        _, logged = relay.communicate(timeout=GUARD_S)
    assert sum(released(tmp_path / "out", net.bundle).values()) == 60
    assert f"coordinator called {A}: " in logged


def test_a_signal_takes_over_the_peers(net: Network, tmp_path: Path) -> None:
    words = command("relay", "--listen", relay_address(net), "-c", net.config_path(RELAY))
    logged = tmp_path / "log"
    entry = relay_config(net).peers[B].certificate

    def signalled(said: str) -> None:
        before = len(logged.read_text())
        relay.send_signal(signal.SIGHUP)
        until_said(lambda: said in logged.read_text()[before:], said)

    with (
        logged.open("w") as err,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=err, env=bare()) as relay,
    ):
        assert relay.stdout is not None
        relay.stdout.readline()
        signalled("reloaded: nothing has changed")
        net.change(RELAY, lambda fields: fields["peers"].pop(B))
        signalled(f"reloaded: removed {B}")
        net.change(RELAY, lambda fields: fields.update(peers={}))
        signalled("no peers are known")
        assert run(_is_served(net, C))
        assert not run(_is_served(net, B))
        made_anew = _made_anew(net, A)
        net.change(
            RELAY,
            lambda fields: fields.update(
                peers={B: {"certificate": str(entry)}, A: {"certificate": made_anew}}
            ),
        )
        signalled(f"reloaded: added {B}; removed {C}, coordinator; replaced {A}")
        relay.send_signal(signal.SIGTERM)
        assert relay.wait(GUARD_S) == 0


@pytest.mark.more
def test_the_command_listens_and_ends(net: Network) -> None:
    words = command("relay", "--listen", "127.0.0.1:0", "-c", net.config_path(RELAY))
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=bare()
    ) as relay:
        assert relay.stdout is not None
        said = relay.stdout.readline()
        assert '"event": "listening", "name": "relay", "address": "127.0.0.1:' in said
        relay.send_signal(signal.SIGTERM)
        out, err = relay.communicate(timeout=GUARD_S)
    assert (relay.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("listen", ["everywhere", "127.0.0.1:70000", "127.0.0.1"])
def test_an_address_that_is_none(net: Network, listen: str) -> None:
    ran = invoke("coordinator", "relay", "--listen", listen, "-c", net.config_path(RELAY))
    assert (ran.code, ran.out) == (2, "")
    assert f"--listen {listen}: write host:port" in ran.err


def test_a_port_that_is_taken(net: Network) -> None:
    async def scenario() -> None:
        async with relaying(net):
            with pytest.raises(ConfigError, match=f"cannot listen on {relay_address(net)}") as caught:
                await Relay(relay_config(net)).start(relay_address(net))
            assert "choose a different --listen" in caught.value.problem.remedy

    run(scenario())


def test_a_relay_without_peers(net: Network) -> None:
    net.change(RELAY, lambda fields: fields.update(peers={}))
    with pytest.raises(ConfigError, match="nobody could connect"):
        Relay(relay_config(net))


# ---- peers that change


async def _is_served(net: Network, name: str) -> bool:
    """Return True if the relay lets a party wait for callers."""
    try:
        streams = await at_relay(net.config(name))
    except OSError:
        return False
    try:
        await said(streams[1], b"wait 1")
        return await line(streams[0]) == b"ping"
    except (OSError, EOFError):
        return False
    finally:
        dropped(streams)


async def _joined_by_hand(net: Network, caller: str, called: str) -> tuple[Streams, Streams]:
    """Join a caller to a party, and send a byte each way."""
    far = await waiting_by_hand(net.config(called))
    calling = asyncio.create_task(called_by_hand(net.config(caller), called))
    assert await line(far[0]) == b"call " + caller.encode()
    await said(far[1], b"here")
    near, answer = await calling
    assert answer == b"ok"
    await _talk(near, far)
    return near, far


async def _talk(near: Streams, far: Streams) -> None:
    for one, other in ((near, far), (far, near)):
        await said(one[1], b"x")
        assert await line(other[0]) == b"x"


def _made_anew(net: Network, name: str) -> str:
    """Make another identity of a name; return the place of its certificate."""
    make_identity(net.root / "new" / name, name)
    return str(net.root / "new" / name / CERTIFICATE)


def _certificate_of(net: Network, name: str, change: str) -> None:
    """Remove a peer of the relay, or replace its certificate."""

    def changed(fields: dict[str, Any]) -> None:
        if change == "removed":
            del fields["peers"][name]
        else:
            fields["peers"][name]["certificate"] = _made_anew(net, name)

    net.change(RELAY, changed)


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_connections_of_a_certificate_that_is_gone_end(net: Network, change: str) -> None:
    """The peer waits, calls, is called, or has said nothing yet. Connections of others stay."""

    async def scenario() -> str:
        async with relaying(net) as relay:
            others = await _joined_by_hand(net, C, A)
            ended = [*await _joined_by_hand(net, B, A), *await _joined_by_hand(net, A, B)]
            ended += [await waiting_by_hand(net.config(B)), await at_relay(net.config(B))]
            silent = await at_relay(net.config(B))
            await said(silent[1], b"call 1 " + C.encode())
            await until(lambda: relay.n_calls(C))
            _certificate_of(net, B, change)
            changes = await relay.adopt(roster_of(relay_config(net)))
            for streams in (*ended, silent):
                assert await _ends(streams) == b""
            await _talk(*others)
            for streams in others:
                dropped(streams)
            assert not await _is_served(net, B)
            assert await _is_served(net, C)
            assert relay.n_calls(C) == 0
            return str(changes)

    assert run(scenario()) == f"{change} {B}"


def test_a_caller_of_a_party_that_is_removed_does_not_wait(net: Network) -> None:
    async def scenario() -> bytes:
        async with relaying(net, bounds=Bounds(pair_s=2 * GUARD_S)) as relay:
            caller = await at_relay(net.config(B))
            await said(caller[1], b"call 1 " + C.encode())
            await until(lambda: relay.n_calls(C))
            _certificate_of(net, C, "removed")
            await relay.adopt(roster_of(relay_config(net)))
            assert (await called_by_hand(net.config(B), C))[1] == b"no unknown"
            return await _ends(caller)

    assert run(scenario()) == b""


def test_a_peer_that_is_added_connects(net: Network) -> None:
    whole = relay_config(net)
    _certificate_of(net, B, "removed")

    async def scenario() -> str:
        async with relaying(net) as relay:
            assert not await _is_served(net, B)
            changes = await relay.adopt(roster_of(whole))
            for streams in await _joined_by_hand(net, A, B):
                dropped(streams)
            return str(changes)

    assert run(scenario()) == f"added {B}"


# ---- strangers, and clients without manners


async def _ends(streams: Streams) -> bytes:
    """Return what a connection still gives until the relay ends it."""
    found = b""
    try:
        async with asyncio.timeout(GUARD_S):
            while piece := await streams[0].read(1 << 16):
                found += piece
    except TimeoutError:
        raise
    except OSError:  # cut off, which takes nothing back
        pass
    finally:
        dropped(streams)
    return found


async def _without_tls(net: Network) -> Streams:
    streams = await streams_of(await straight(relay_address(net)))
    await said(streams[1], b"wait 1")
    return streams


async def _without_certificate(net: Network) -> Streams:
    context = ssl.create_default_context(cafile=str(net.root / RELAY / "tls" / "certificate.pem"))
    host, port = relay_address(net).split(":")
    return await asyncio.open_connection(host, int(port), ssl=context, server_hostname=RELAY)


async def _with_a_certificate_that_is_not_installed(net: Network) -> Streams:
    return await at_relay(coordinator_as(net, "coordinator"))


@pytest.mark.parametrize(
    "connect", [_without_tls, _without_certificate, _with_a_certificate_that_is_not_installed]
)
def test_a_stranger_gets_nothing(net: Network, connect: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> bytes:
        async with relaying(net):
            found = await _ends(await connect(net))
            for _ in range(3):
                dropped(await connect(net))
            return found

    found = run(scenario())
    assert b"ping" not in found
    turned_away = [each for each in caplog.messages if "turned away" in each]
    assert len(turned_away) <= 1


def test_another_certificate_of_the_authority_of_a_peer_is_a_stranger(net: Network) -> None:
    installed = issued(net, "coordinator", RELAY)["certificate"]
    net.change(RELAY, lambda fields: fields["peers"]["coordinator"].update(certificate=installed))
    net.change("coordinator", lambda fields: fields.update(tls=issued(net, "coordinator")))

    async def scenario() -> bytes:
        async with relaying(net):
            streams = await at_relay(net.coordinator)
            await said(streams[1], b"wait 1")
            return await _ends(streams)

    assert run(scenario()) == b""


_WITHOUT_MANNERS = [
    (b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n", b""),
    (b"\x00\xff" * 40 + b"\n", b""),
    (b"\n", b""),
    (b"wait\n", b"no version\n"),
    (b"wait 2\n", b"no version\n"),
    (b"call 1\n", b"no version\n"),
    (b"call 2 hospital-a\n", b"no version\n"),
    (b"call 1 nobody\n", b"no unknown\n"),
    (b"call 1 \xff\xfe\n", b"no unknown\n"),
    (b"call 1 \n", b"no unknown\n"),
    (b"call 1 hospital-b\n", b"no absent\n"),
    (b"x" * 10_000_000, b""),
    (b"wait 1", b""),
]


def test_clients_without_manners(net: Network) -> None:
    """A line that never ends, or is none, ends its connection alone."""
    net.change(RELAY, lambda fields: fields.update(timeouts={"hello_s": 0.5}))

    async def answered(words: bytes) -> bytes:
        streams = await at_relay(net.coordinator)
        streams[1].write(words)
        return await _ends(streams)

    async def scenario() -> list[bytes]:
        async with relaying(net, bounds=QUICK):
            found = await asyncio.gather(*(answered(words) for words, _ in _WITHOUT_MANNERS))
            async with serving(net, only=[A]), calling(net.coordinator) as calls:
                await (await reached(calls, A, "relay")).close()
            return found

    assert run(scenario()) == [answer for _, answer in _WITHOUT_MANNERS]


def test_a_client_that_sends_a_byte_now_and_then_is_closed_in_time(net: Network) -> None:
    net.change(RELAY, lambda fields: fields.update(timeouts={"hello_s": 0.5}))

    async def scenario() -> float:
        async with relaying(net):
            streams, loop = await at_relay(net.coordinator), asyncio.get_running_loop()
            began = loop.time()
            while not streams[1].is_closing() and loop.time() < began + GUARD_S:
                streams[1].write(b"w")
                await asyncio.sleep(0.1)
            return loop.time() - began

    assert run(scenario()) < 5


# ---- bounds


async def from_elsewhere(address: str) -> socket.socket:
    """Return a connection from another address of this machine."""
    host, port = address.rsplit(":", 1)
    connection = socket.socket()
    connection.bind(("127.0.0.2", 0))
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
    return connection


def test_connections_without_a_first_line_are_bounded(net: Network) -> None:
    """Strangers leave no room for each other, and room for the others: the oldest goes, of the busiest address."""

    async def scenario() -> None:
        async with relaying(net, bounds=Bounds(unnamed=4)):
            elsewhere = await from_elsewhere(relay_address(net))
            silent = [await straight(relay_address(net)) for _ in range(3)]
            dropped(await waiting_by_hand(net.config(A)))
            async with asyncio.timeout(GUARD_S):
                assert await asyncio.get_running_loop().sock_recv(silent[0], 1) == b""
            for connection in (elsewhere, *silent[1:]):
                with pytest.raises(BlockingIOError):
                    connection.recv(1)
            for connection in (elsewhere, *silent):
                connection.close()

    run(scenario())


def test_all_connections_are_bounded(net: Network) -> None:
    async def scenario() -> None:
        async with relaying(net, bounds=Bounds(together=2)):
            waiting = [await waiting_by_hand(net.config(A)) for _ in range(2)]
            with pytest.raises(OSError):
                await at_relay(net.config(B))
            dropped(waiting[0])
            await said(waiting[1][1], b"")  # still there
            dropped(waiting[1])

    run(scenario())


def test_connections_of_a_name_are_bounded(net: Network) -> None:
    async def scenario() -> list[bytes]:
        async with relaying(net, bounds=Bounds(waiting=2, calls=1, pair_s=GUARD_S)) as relay:
            kept = [await waiting_by_hand(net.config(A)) for _ in range(2)]
            third = await at_relay(net.config(A))
            await said(third[1], b"wait 1")
            first = await at_relay(net.config(B))
            await said(first[1], b"call 1 " + C.encode())
            await until(lambda: relay.n_calls(C))
            second, answer = await called_by_hand(net.config(B), C)
            answers = [await line(third[0]), answer]
            for streams in (*kept, first, second, third):
                dropped(streams)
            return answers

    assert run(scenario()) == [b"no full", b"no full"]


def test_callers_of_a_party_that_is_away_leave_nothing_behind(net: Network) -> None:
    async def scenario() -> tuple[list[bytes], int]:
        async with relaying(net, bounds=QUICK) as relay:
            called = await asyncio.gather(*(called_by_hand(net.config(B), A) for _ in range(20)))
            for streams, _ in called:
                dropped(streams)
            return [answer for _, answer in called], relay.n_calls(A)

    answers, n_left = run(scenario())
    assert set(answers) == {b"no absent"}
    assert n_left == 0


def test_bytes_wait_at_the_sender_while_the_receiver_is_slow(net: Network) -> None:
    """A caller cannot fill the relay's memory."""

    async def scenario() -> int:
        async with relaying(net):
            far = await waiting_by_hand(net.config(A))
            calling = asyncio.create_task(called_by_hand(net.config(B), A))
            assert await line(far[0]) == b"call " + B.encode()
            await said(far[1], b"here")
            far[1].transport.pause_reading()
            (_, writer), answer = await calling
            assert answer == b"ok"
            n_sent, piece = 0, bytes(1 << 16)
            while n_sent < 1 << 28:
                writer.write(piece)
                try:
                    async with asyncio.timeout(0.5):
                        await writer.drain()
                except TimeoutError:
                    break
                n_sent += len(piece)
            writer.transport.abort()
            dropped(far)
            return n_sent

    assert run(scenario()) < 32 << 20  # what the system's sockets hold, with room


# ---- signs of life


def test_a_party_that_answers_no_sign_of_life_is_dropped(net: Network) -> None:
    async def scenario() -> None:
        async with relaying(net, bounds=QUICK) as relay:
            streams = await waiting_by_hand(net.config(A))
            assert relay.n_waiting(A) == 1
            assert await line(streams[0]) == b"ping"
            assert await _ends(streams) == b""
            await until(lambda: relay.n_waiting(A) == 0)

    run(scenario())


def test_a_connection_that_died_silently_costs_no_caller(net: Network) -> None:
    """The next connection of the party takes the call."""

    async def scenario() -> bytes:
        async with relaying(net, bounds=Bounds(answer_s=0.3)) as relay:
            dead = await waiting_by_hand(net.config(A))
            async with serving(net, only=[A]):
                await until(lambda: relay.n_waiting(A) == 5)
                streams, answer = await called_by_hand(net.config(B), A)
                dropped(streams)
            dropped(dead)
            return answer

    assert run(scenario()) == b"ok"


def test_a_joined_pair_without_a_byte_is_closed(net: Network) -> None:
    async def scenario() -> bytes:
        async with relaying(net, bounds=QUICK), serving(net, only=[A]):
            streams, answer = await called_by_hand(net.config(B), A)
            assert answer == b"ok"
            return await _ends(streams)

    assert b"ping" not in run(scenario())


def test_a_caller_that_leaves_takes_nobody_along(net: Network) -> None:
    async def scenario() -> None:
        async with relaying(net), serving(net, only=[A]):
            for _ in range(10):
                streams = await at_relay(net.config(B))
                await said(streams[1], b"call 1 " + A.encode())
                dropped(streams)
            await _control(net)

    async def _control(net: Network) -> None:
        async with calling(net.coordinator) as calls:
            await (await reached(calls, A, "relay")).close()

    run(scenario())
