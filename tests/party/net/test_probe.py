"""Reasons that somebody is not reached: the network, a certificate, or the other side."""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from pathlib import Path

import pytest

from jobs.errors import Exit, Problem
from party.owner.identity import make_credentials
from tests.support.by_hand import reached
from tests.support.calls import calling, coordinator_as, impatient, issued, refused
from tests.support.duplex import run
from tests.support.identities import write_credentials
from tests.support.network import Network, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def test_nobody_there(net: Network) -> None:
    async def scenario() -> None:
        async with calling(impatient(net.coordinator)) as calls:
            problem = await refused(reached(calls, A, net.addresses[A]))
        assert (problem.error_id, problem.party, problem.exit_code) == (
            "peer-unreachable",
            A,
            Exit.UNREACHABLE,
        )
        assert problem.private == f"at {net.addresses[A]}"
        assert net.addresses[A] not in str(problem.shared())
        assert "Connection refused" in problem.message

    run(scenario())


def test_a_host_that_does_not_exist(net: Network) -> None:
    async def scenario() -> None:
        async with calling(impatient(net.coordinator)) as calls:
            problem = await refused(reached(calls, A, "no-such-host.invalid:1"))
        assert (problem.error_id, problem.party) == ("peer-unreachable", A)

    run(scenario())


def test_somebody_who_takes_the_call_and_says_nothing(net: Network) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:

        async def scenario() -> Problem:
            async with calling(impatient(net.coordinator)) as calls:
                return await refused(reached(calls, A, f"127.0.0.1:{silent.getsockname()[1]}"))

        problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-unreachable", A)


@pytest.mark.parametrize("words", [b"SSH-2.0-OpenSSH_9.6\r\n", b""], ids=["another protocol", "hangs up"])
def test_somebody_who_speaks_no_tls(net: Network, words: bytes) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def chatter() -> None:
            while True:
                try:
                    with closing(server.accept()[0]) as stream:
                        stream.sendall(words)
                except OSError:
                    return

        thread = threading.Thread(target=chatter)
        thread.start()

        async def scenario() -> Problem:
            async with calling(impatient(net.coordinator)) as calls:
                return await refused(reached(calls, A, f"127.0.0.1:{server.getsockname()[1]}"))

        problem = run(scenario())
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    assert (problem.error_id, problem.party) == ("peer-unreachable", A)
    assert "the TLS handshake broke off" in problem.message  # nobody refused a certificate


def test_a_server_with_another_certificate(net: Network) -> None:
    """Somebody else listens at the party's address: another key, though it bears the right name."""
    write_credentials(net.root / "other", make_credentials(A))
    tls = {"certificate": "../other/certificate.pem", "key": "../other/key.pem"}
    net.change(A, lambda fields: fields.update(tls=tls))

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(reached(calls, A, net.addresses[A]))

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.exit_code) == ("identity-mismatch", A, Exit.IDENTITY)
    assert "presented a different certificate" in problem.message


def test_a_party_reached_at_the_address_of_another(net: Network) -> None:
    async def scenario() -> Problem:
        async with serving(net, only=[B]), calling(net.coordinator) as calls:
            return await refused(reached(calls, A, net.addresses[B]))

    assert run(scenario()).error_id == "identity-mismatch"


def test_a_server_with_another_certificate_of_the_same_authority(net: Network) -> None:
    """The authority gave the name to somebody else, too; it is in the installed file, and no identity."""
    installed = issued(net, A, "coordinator")["certificate"]
    net.change(A, lambda fields: fields.update(tls=issued(net, A)))
    net.change("coordinator", lambda fields: fields["peers"][A].update(certificate=installed))

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(reached(calls, A, net.addresses[A]))

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("identity-mismatch", A)


def test_a_client_with_another_certificate_of_the_same_authority(net: Network) -> None:
    installed = issued(net, "coordinator", A)["certificate"]
    net.change(A, lambda fields: fields["peers"]["coordinator"].update(certificate=installed))
    net.change("coordinator", lambda fields: fields.update(tls=issued(net, "coordinator")))

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(net.coordinator) as calls:
            return await refused(reached(calls, A, net.addresses[A]))

    assert run(scenario()).error_id == "tls-failed"


@pytest.mark.parametrize("name", ["coordinator", "stranger"])
def test_a_client_with_a_certificate_nobody_installed(net: Network, name: str) -> None:
    config = coordinator_as(net, name)

    async def scenario() -> Problem:
        async with serving(net, only=[A]), calling(config) as calls:
            return await refused(reached(calls, A, net.addresses[A]))

    for _ in range(3):  # the alert of the server must not lose a race against its hang-up
        problem = run(scenario())
        assert (problem.error_id, problem.party, problem.exit_code) == ("tls-failed", A, Exit.IDENTITY)
        assert f"Perhaps the certificate of {name} is not installed" in problem.message
