"""gRPC with mTLS: who is reached, and when."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from jobs.errors import Problem
from jobs.version import __version__
from party.net import client, server
from party.net.control import Envelope
from party.net.link import HELLO
from tests.support.by_hand import reached
from tests.support.calls import calling, impatient, issued, refused
from tests.support.duplex import run
from tests.support.network import Network, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def test_known_peers_reach_each_other(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net), calling(net.coordinator) as calls:
            for party in PARTIES:
                stream = await reached(calls, party, net.addresses[party])
                await stream.close()

    run(scenario())


def test_a_peer_of_a_far_version_is_named(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "__version__", "99.0.1\n")

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(reached(calls, A, net.addresses[A]))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("version", A)
    assert problem.message == f"{A} runs Jointcut 99.0.1 , and coordinator {__version__}"


def test_a_party_that_comes_up_while_it_is_called_is_reached(net: Network) -> None:
    async def scenario() -> None:
        async with calling(net.coordinator) as calls:
            opening = asyncio.create_task(reached(calls, A, net.addresses[A]))
            await asyncio.sleep(0.7)
            assert not opening.done()
            async with serving(net, only=[A]):
                await (await opening).close()

    run(scenario())


def test_a_party_that_was_down_for_long_is_reached_at_once_when_it_is_up(net: Network) -> None:
    """gRPC backs off further with every failure. A coordinator that waits keeps its channels."""

    async def scenario() -> None:
        async with calling(impatient(net.coordinator, 2.0)) as calls:
            for _ in range(3):
                await refused(reached(calls, A, net.addresses[A]))
            async with serving(net, only=[A]):
                await (await reached(calls, A, net.addresses[A])).close()

    run(scenario())


def test_a_coordinator_of_a_far_version_is_refused_unheard(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "__version__", "99.0.1")

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            stream = await reached(calls, A, net.addresses[A])
            problem = await refused(stream.read())
            await stream.close()
            return problem

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("version", A)
    assert problem.message.endswith(f"coordinator runs Jointcut 99.0.1, and {A} {__version__}")


def test_a_peer_that_is_lost_between_two_questions_is_told(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`party check --peers` asks a second time, for the round trip."""
    original, n_asked = server._Control.Describe, 0

    async def once(self: Any, request: Any, context: Any) -> Any:
        nonlocal n_asked
        n_asked += 1
        if n_asked > 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        return await original(self, request, context)

    monkeypatch.setattr(server._Control, "Describe", once)

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(calls.describe(A, net.addresses[A]))

    assert run(scenario()) == Problem("peer-lost", f"{A} went away", A)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the parties that were asked for their identity, in order."""
    names: list[str] = []
    original = server._Control.Describe

    async def noted(self: Any, request: Any, context: Any) -> Any:
        names.append(self._daemon.name)
        return await original(self, request, context)

    monkeypatch.setattr(server._Control, "Describe", noted)
    return names


def test_a_connection_begun_ahead_is_asked_once(net: Network, asked: list[str]) -> None:
    async def scenario() -> None:
        async with serving(net, only=[B]), calling(net.config(A)) as calls:
            calls.begin(B, net.addresses[B])
            for _ in range(2):
                await (await calls.open_mesh(B, net.addresses[B])).close()

    run(scenario())
    assert asked == [B]


def test_a_connection_begun_ahead_and_lost_is_made_again(net: Network, asked: list[str]) -> None:
    async def scenario() -> None:
        async with calling(net.config(A)) as calls:
            async with serving(net, only=[B]):
                calls.begin(B, net.addresses[B])
                await (await calls.open_mesh(B, net.addresses[B])).close()
            opening = asyncio.create_task(calls.open_mesh(B, net.addresses[B]))
            await asyncio.sleep(0.1)
            async with serving(net, only=[B]):
                await (await opening).close()

    run(scenario())
    assert asked == [B, B]


def test_a_connection_begun_in_vain_is_tried_again_by_the_call(net: Network) -> None:
    async def scenario() -> tuple[Problem, Problem]:
        async with calling(impatient(net.config(A))) as calls:
            calls.begin(B, net.addresses[B])
            await asyncio.wait(calls._begun.values())
            begun = await refused(calls.open_mesh(B, net.addresses[B]))
            fresh = await refused(reached(calls, B, net.addresses[B]))
            async with serving(net, only=[B]):
                await (await calls.open_mesh(B, net.addresses[B])).close()
            return begun, fresh

    begun, fresh = run(scenario())
    assert begun == fresh
    assert (begun.error_id, begun.party) == ("peer-unreachable", B)


def test_a_connection_begun_for_nothing_makes_a_call(net: Network, asked: list[str]) -> None:
    """Otherwise the peer would count a stranger."""

    async def scenario() -> None:
        async with serving(net, only=[B]):
            async with calling(net.config(A)) as calls:
                calls.begin(B, net.addresses[B])
            assert asked == [B]

    run(scenario())


def test_a_write_behind_a_refusal_raises_the_reason(net: Network) -> None:
    async def scenario() -> tuple[Problem, Problem]:
        async with serving(net, only=[A]), calling(net.config(B)) as calls:
            stream = await calls.open_mesh(A, net.addresses[A])
            hello = Envelope(b"k" * 32, b"s" * 16, B, A, 0, HELLO, b"", last=True)
            await stream.write(hello)
            read = await refused(stream.read())
            written = await refused(stream.write(hello))
            await stream.close()
            return read, written

    read, written = run(scenario())
    assert read == written
    assert (written.error_id, written.message) == ("job-hash-mismatch", f"{A} runs no such job")


def test_no_certificate_no_call(net: Network) -> None:
    net.change("coordinator", lambda fields: fields["peers"].pop(A))

    async def scenario() -> Problem:
        async with serving(net), calling(net.coordinator) as calls:
            return await refused(reached(calls, A, net.addresses[A]))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("identity-unknown", "coordinator")
    assert f"peers add {A}" in problem.remedy


def test_certificates_of_an_authority(net: Network) -> None:
    """Each party may have a certificate of its site's authority, which stands behind it in the file."""
    ours, theirs = issued(net, "coordinator"), issued(net, A)
    net.change(A, lambda fields: fields.update(tls=theirs))
    net.change(A, lambda fields: fields["peers"]["coordinator"].update(certificate=ours["certificate"]))
    net.change("coordinator", lambda fields: fields.update(tls=ours))
    net.change("coordinator", lambda fields: fields["peers"][A].update(certificate=theirs["certificate"]))

    async def scenario() -> None:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            await (await reached(calls, A, net.addresses[A])).close()

    run(scenario())
