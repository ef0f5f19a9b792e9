"""The relay: who may come, who is reached, and what it takes of anybody. Over real TLS on this machine."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.run import conduct
from coordinator.simulate import CONFIG
from jobs.errors import Problem
from party.net.presence import WAITING
from party.net.splicing import HEAD_BYTES, Stream
from party.net.ways import ALIVE, CALL, WAIT
from tests.support.calls import calling, coordinator_as, impatient, refused
from tests.support.duplex import run
from tests.support.network import (
    GUARD_S,
    Network,
    call,
    processes,
    released,
    sample_network,
    serving,
    write_job,
)
from tests.support.proxies import tinyproxy
from tests.support.relays import QUICK, RELAY, asked, knock, relay_process, relayed, relaying
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES
CONNECT_A = b"CONNECT hospital-a:443 HTTP/1.1\r\nHost: hospital-a:443\r\n\r\n"


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


async def waiting(net: Network, name: str, address: str) -> Stream:
    """A party that waits at the relay, by hand."""
    stream = await knock(net, net.config(name), address)
    try:
        assert (await asked(stream, WAIT)).startswith(b"HTTP/1.1 101 ")
    except BaseException:
        stream.abort()
        raise
    return stream


async def called(stream: Stream) -> Stream:
    """Answer until somebody calls."""
    while True:
        sign = await stream.reader.readexactly(1)
        await stream.send(sign)
        if sign == CALL:
            return stream


async def connected(net: Network, address: str) -> tuple[Stream, Stream]:
    """A party, and the coordinator that speaks to it, both by hand."""
    answering = asyncio.create_task(called(await waiting(net, A, address)))
    caller = await knock(net, net.coordinator, address)
    assert (await asked(caller, CONNECT_A)).startswith(b"HTTP/1.1 200 ")
    return await answering, caller


async def hung_up(stream: Stream) -> bool:
    """Whether the other end hangs up, with nothing more to say."""
    try:
        return await stream.reader.read(1) == b""
    except OSError:
        return True
    finally:
        stream.abort()


# ---- jobs


def test_a_job_of_parties_that_accept_no_connections(net: Network, tmp_path: Path) -> None:
    """Programs all of them; the table is the one of parties that reach each other."""
    job, config = write_job(tmp_path / "job", joint_job()), net.config_path("coordinator")
    with processes(net):
        assert call("run", job, "--config", config, "--out", tmp_path / "straight").code == 0
    address = relayed(net)
    with relay_process(net, address), processes(net):
        ran = call("run", job, "--config", config, "--out", tmp_path / "relayed")
        assert ran.code == 0, ran.err
    assert released(tmp_path / "relayed", net.bundle) == released(tmp_path / "straight", net.bundle)
    log = (net.root / RELAY / "log").read_text()
    for one, other in ((A, B), (A, C), (B, C), ("coordinator", A)):
        assert f"{one} speaks to {other}" in log
    assert f"{B} speaks to {A}" not in log  # who comes later in the roster is called


def test_a_relay_is_reached_through_a_proxy(net: Network, tmp_path: Path) -> None:
    address = relayed(net)
    with tinyproxy(tmp_path / "proxy", address.rpartition(":")[2]) as (proxy, log):
        for name in (*PARTIES, "coordinator"):
            net.change(name, lambda fields: fields.update(proxy=proxy))

        async def scenario() -> None:
            async with relaying(net, address), serving(net):
                await conduct(net.task, net.coordinator, tmp_path / "out")

        run(scenario())
        connected = log.read_text()
    assert connected.count(f"CONNECT {address}") >= 3 * WAITING
    assert not [party for party in PARTIES if net.addresses[party] in connected]


def test_parties_with_and_without_a_relay_in_one_job(net: Network, tmp_path: Path) -> None:
    address = relayed(net, B)

    async def scenario() -> None:
        async with relaying(net, address), serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert [len(net.releases(party)) for party in PARTIES] == [1, 1, 1]


def test_a_relay_that_is_started_again_is_found_again(net: Network) -> None:
    address = relayed(net)

    async def scenario() -> None:
        async with serving(net, only=[A]):
            for _ in range(2):
                async with relaying(net, address), calling(net.coordinator) as calls:
                    await (await calls.open_control(A, "relay")).close()

    run(scenario())


def test_a_party_that_is_started_again_is_reached_at_once(net: Network) -> None:
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address), calling(net.coordinator) as calls:
            for _ in range(2):
                async with serving(net, only=[A]):
                    await (await calls.open_control(A, "relay")).close()

    run(scenario())


# ---- what is in the way


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("no relay", "the relay: Connection refused"),
        ("no party", "it is not connected to the relay"),
        ("unknown party", "the relay does not know it"),
        ("not installed", "the relay hung up; it may not have our certificate installed"),
        ("another relay", "the relay presented another certificate than the one installed for it"),
    ],
)
def test_what_is_in_the_way_is_said(net: Network, change: str, words: str) -> None:
    address = relayed(net)
    if change == "unknown party":
        net.change(RELAY, lambda fields: fields["peers"].pop(A))
    if change == "not installed":
        net.change(RELAY, lambda fields: fields["peers"].pop("coordinator"))
    if change == "another relay":
        certificate = net.root / A / "tls" / "certificate.pem"
        net.change("coordinator", lambda fields: fields["relay"].update(certificate=str(certificate)))

    async def scenario() -> Problem:
        async with AsyncExitStack() as stack:
            if change != "no relay":
                await stack.enter_async_context(relaying(net, address, replace(QUICK, patience_s=0.1)))
            calls = await stack.enter_async_context(calling(impatient(net.coordinator)))
            return await refused(calls.open_control(A, "relay"))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-unreachable", A)
    assert f"cannot reach {A} through the relay: {words}" in problem.message
    assert "`relay`" in problem.remedy
    assert address not in str(problem.shared())


def test_a_relay_between_does_not_let_in_who_is_not_installed(net: Network) -> None:
    """The relay knows the caller, the party does not: TLS is between the two."""
    address = relayed(net)
    net.change(A, lambda fields: fields["peers"].pop("coordinator"))

    async def scenario() -> Problem:
        async with relaying(net, address), serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(calls.open_control(A, "relay"))

    assert run(scenario()).error_id == "tls-failed"


# ---- strangers


@pytest.mark.parametrize("who", ["nobody", "unknown", "borrowed name", "expired"])
def test_strangers_are_told_nothing(net: Network, who: str) -> None:
    address = relayed(net)
    if who == "expired":
        known = net.root / "other" / "certificate.pem"
        config = coordinator_as(net, "coordinator", days=(-2, -1))
        net.change(RELAY, lambda fields: fields["peers"]["coordinator"].update(certificate=str(known)))
    elif who != "nobody":
        config = coordinator_as(net, {"unknown": "stranger", "borrowed name": "coordinator"}[who])

    async def scenario() -> bytes:
        async with relaying(net, address), serving(net, only=[A]):
            try:
                stream = await knock(net, None if who == "nobody" else config, address)
            except OSError:
                return b""
            try:
                await stream.send(CONNECT_A)
                return await stream.reader.read(1)
            except OSError:
                return b""
            finally:
                stream.abort()

    assert run(scenario()) == b""


def test_tls_before_1_3_is_refused(net: Network) -> None:
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            host, port = address.split(":")
            with pytest.raises(OSError):  # of TLS, or of a connection that ends
                await asyncio.open_connection(host, int(port), ssl=context)

    run(scenario())


def test_who_says_nothing_is_gone_after_a_while(net: Network) -> None:
    """Before TLS, and after it: a head that comes byte by byte has the same time."""
    address = relayed(net)
    net.change(RELAY, lambda fields: fields.update(timeouts={"hello_s": 0.5}))

    async def scenario() -> None:
        host, port = address.split(":")
        async with relaying(net, address):
            before = Stream(*await asyncio.open_connection(host, int(port)))
            after = await knock(net, net.coordinator, address)
            trickle = asyncio.create_task(_trickle(after))
            began = time.monotonic()
            assert await hung_up(before)
            assert await hung_up(after)
            assert time.monotonic() - began < GUARD_S / 3
            trickle.cancel()

    run(scenario())


async def _trickle(stream: Stream) -> None:
    with suppress(OSError):
        while True:
            await stream.send(b"C")
            await asyncio.sleep(0.05)


def test_a_flood_of_strangers_does_not_keep_others_out(net: Network) -> None:
    """One that says nothing ends the oldest that says nothing; whoever has a certificate comes through."""
    address = relayed(net)
    net.change(RELAY, lambda fields: fields.update(timeouts={"hello_s": 600}))
    bounds = replace(QUICK, greeting=8)

    async def scenario() -> None:
        host, port = address.split(":")
        async with relaying(net, address, bounds) as relay, serving(net, only=[A]):
            flood = [Stream(*await asyncio.open_connection(host, int(port))) for _ in range(40)]
            async with asyncio.timeout(5):
                assert await hung_up(flood[0])
            assert len(relay._greeting) <= bounds.greeting
            async with calling(net.coordinator) as calls:
                await (await calls.open_control(A, "relay")).close()
            for stream in flood:
                stream.abort()

    run(scenario())


def test_connections_are_bounded_in_all(net: Network) -> None:
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address, replace(QUICK, total=2)):
            first = [await waiting(net, A, address) for _ in range(2)]
            with pytest.raises(OSError):
                await knock(net, net.coordinator, address)
            first.pop().abort()
            while True:
                with suppress(OSError):
                    (await knock(net, net.coordinator, address)).abort()
                    break
                await asyncio.sleep(0.05)
            first.pop().abort()

    run(scenario())


# ---- peers


@pytest.mark.parametrize(
    "request_",
    [b"GET / HTTP/1.1\r\n\r\n", b"CONNECT nobody:443 HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"CONNECT \r\n\r\n"],
)
def test_other_requests_are_refused(net: Network, request_: bytes) -> None:
    address = relayed(net)

    async def scenario() -> bytes:
        async with relaying(net, address):
            stream = await knock(net, net.coordinator, address)
            answer = await asked(stream, request_)
            assert await hung_up(stream)
            return answer

    assert run(scenario()).split()[1] in {b"400", b"404"}


@pytest.mark.parametrize("head", [b"X" * (HEAD_BYTES + 1), b"CONNECT \xff:443 HTTP/1.1\r\n\r\n"])
def test_malformed_requests_end_the_connection(net: Network, head: bytes) -> None:
    address = relayed(net)

    async def scenario() -> bool:
        async with relaying(net, address):
            stream = await knock(net, net.coordinator, address)
            await stream.send(head)
            return await hung_up(stream)

    assert run(scenario())


def test_nobody_waits_under_the_name_of_another(net: Network) -> None:
    """The name follows from the certificate, whatever is said."""
    address = relayed(net)

    async def scenario() -> bytes:
        async with relaying(net, address, replace(QUICK, patience_s=0.2)):
            posing = await waiting(net, B, address)
            caller = await knock(net, net.coordinator, address)
            answer = await asked(caller, CONNECT_A)
            posing.abort()
            return answer

    assert run(scenario()).startswith(b"HTTP/1.1 503 ")


def test_who_came_last_is_called_and_who_does_not_answer_is_passed_over(net: Network) -> None:
    """A party has come back; its connections of before are as good as dead."""
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address, replace(QUICK, sign_s=20.0, patience_s=5.0)):
            first = await waiting(net, A, address)
            second = await waiting(net, A, address)
            dead = await waiting(net, A, address)  # never answers
            answering = asyncio.create_task(called(second))
            caller = await knock(net, net.coordinator, address)
            assert (await asked(caller, CONNECT_A)).startswith(b"HTTP/1.1 200 ")
            await caller.send(b"to the second")
            assert await (await answering).reader.readexactly(13) == b"to the second"
            assert await dead.reader.readexactly(1) == CALL
            assert await hung_up(dead)
            first.abort()

    run(scenario())


def test_who_waits_and_does_not_answer_is_let_go(net: Network) -> None:
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address):
            silent, wrong = await waiting(net, A, address), await waiting(net, A, address)
            await wrong.send(b"x")
            for stream in (silent, wrong):
                assert await stream.reader.readexactly(1) == ALIVE
                assert await hung_up(stream)

    run(scenario())


def test_a_party_waits_over_so_many_connections_and_no_more(net: Network) -> None:
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address, replace(QUICK, sign_s=20.0, waiting=2)):
            streams = [await waiting(net, A, address) for _ in range(3)]
            assert await hung_up(streams[0])
            for stream in streams:
                stream.abort()

    run(scenario())


def test_a_caller_has_so_many_calls_to_a_party_and_no_more(net: Network) -> None:
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address, replace(QUICK, calls=2)), serving(net, only=[A]):
            calls = [await knock(net, net.coordinator, address) for _ in range(3)]
            answers = [(await asked(stream, CONNECT_A)).split()[1] for stream in calls]
            assert answers == [b"200", b"200", b"429"]
            other = await knock(net, net.config(B), address)
            assert (await asked(other, CONNECT_A)).split()[1] == b"200"
            for stream in (*calls, other):
                stream.abort()

    run(scenario())


def test_who_does_not_take_what_is_said_holds_up_who_says_it(net: Network) -> None:
    """Nothing piles up at the relay: what was written stays with the writer."""
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address, replace(QUICK, sign_s=20.0)):
            party, caller = await connected(net, address)
            sent = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    while sent < 1 << 30:
                        await caller.send(bytes(1 << 16))
                        sent += 1 << 16
            assert sent < 32 << 20  # sockets of the system hold some, streams at both ends the rest
            party.abort()
            caller.abort()

    run(scenario())


def test_a_call_on_which_nothing_is_said_ends(net: Network) -> None:
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address, replace(QUICK, idle_s=0.3)):
            party, caller = await connected(net, address)
            assert await hung_up(party)
            assert await hung_up(caller)

    run(scenario())


# ---- its own files


def test_peers_that_are_added_and_removed_count_without_a_restart(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinator.relay._LOOK_S", 0.05)
    address = relayed(net)
    entry = {"certificate": f"../{A}/tls/certificate.pem"}
    net.change(RELAY, lambda fields: fields["peers"].pop(A))

    async def scenario() -> None:
        async with relaying(net, address, replace(QUICK, sign_s=20.0)):
            net.change(RELAY, lambda fields: fields["peers"].update({A: entry}))
            while True:
                with suppress(OSError, EOFError):
                    stream = await waiting(net, A, address)
                    break
                await asyncio.sleep(0.05)
            net.change(RELAY, lambda fields: fields["peers"].pop(A))
            assert await hung_up(stream)

    run(scenario())


def test_files_that_are_no_configuration_change_nothing(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinator.relay._LOOK_S", 0.02)
    address = relayed(net)

    async def scenario() -> None:
        async with relaying(net, address):
            (net.root / RELAY / CONFIG).write_text("version: [")
            await asyncio.sleep(0.2)
            (await waiting(net, A, address)).abort()

    run(scenario())


def test_an_address_in_use_is_an_error(net: Network) -> None:
    address = relayed(net)
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
        ran = call("relay", "--config", net.root / RELAY / CONFIG, "--listen", address)
    assert ran.code == 2
    assert f"cannot listen on {address}" in ran.err
