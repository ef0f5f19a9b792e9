"""Connections without a call at a real server: counted, told once a minute, and no peer among them."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from crypto.rng import SystemRng
from jobs.errors import PartyError
from party.net import server as serving_module
from party.net import strangers as module
from party.net.strangers import Strangers, _callers_of, _end_of
from party.owner.audit import Audit, Line
from party.owner.identity import make_credentials
from tests.support.calls import calling
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.identities import certificate_for, write_credentials
from tests.support.network import GUARD_S, Network, sample_network, served, serving, write_job
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES
HELLO_S, CALL_S = 1.0, 0.2
PATIENCE_S = HELLO_S + CALL_S


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    monkeypatch.setattr(serving_module, "CALL_S", CALL_S)
    made = sample_network(tmp_path / "net")
    for name in PARTIES:
        made.change(name, lambda fields: fields.update(timeouts={"hello_s": HELLO_S}))
    return made


def refusals(net: Network, name: str = A) -> list[Line]:
    audit = Audit(net.config(name).state_dir, SystemRng())
    return [line for line in audit.lines() if line.facts.get("caller") == "strangers"]


async def first_refusal(net: Network) -> Line:
    async with asyncio.timeout(GUARD_S):
        while not (found := refusals(net)):
            await asyncio.sleep(0.05)
    return found[0]


def opened(net: Network, name: str = A) -> socket.socket:
    host, port = net.addresses[name].rsplit(":", 1)
    return socket.create_connection((host, int(port)), GUARD_S)


def shake_hands(net: Network, *credentials: Path) -> None:
    """Begin TLS as a peer would, with a certificate of somebody else, or without one."""
    context = ssl.create_default_context(cafile=str(net.root / A / "tls" / "certificate.pem"))
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    if credentials:
        certificate, key = credentials
        context.load_cert_chain(certificate, key)
    with opened(net) as stream, suppress(OSError), context.wrap_socket(stream) as secure:
        while secure.recv(100):
            pass


def nobodys(net: Network) -> None:
    shake_hands(net)


def foreign(net: Network) -> None:
    shake_hands(net, *write_credentials(net.root / "foreign", make_credentials(B)))


def of_an_authority(net: Network) -> None:
    made = certificate_for([B], issuer=certificate_for(["authority"]))
    shake_hands(net, *write_credentials(net.root / "issued", made))


def plain(net: Network) -> None:
    with opened(net) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        with suppress(OSError):
            stream.recv(100)


def silent(net: Network) -> None:
    with opened(net) as stream, suppress(OSError):
        stream.recv(1)


def closed_at_once(net: Network) -> None:
    opened(net).close()


@pytest.mark.parametrize("call", [nobodys, foreign, of_an_authority, plain, silent])
def test_a_stranger_leaves_a_line(net: Network, call: Callable[[Network], None]) -> None:
    async def scenario() -> Line:
        async with serving(net, only=[A]):
            await asyncio.to_thread(call, net)
            return await first_refusal(net)

    line = run(scenario())
    assert line.event == "refusal"
    assert (line.facts["error"], line.facts["connections"]) == ("identity-unknown", 1)
    assert line.facts["addresses"] == ["127.0.0.1"]
    assert "connections without a call: 1 " in line.facts["message"]
    assert refusals(net) == [line]


def test_a_connection_that_is_closed_at_once_is_counted(net: Network) -> None:
    async def scenario() -> Line:
        async with serving(net, only=[A]):
            await asyncio.to_thread(closed_at_once, net)
            return await first_refusal(net)

    assert run(scenario()).facts["connections"] == 1


def test_a_thousand_connections_leave_a_line_in_a_minute(
    net: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, over several patiences: a line at once, and a line with the rest at the end."""
    n_connections = 1000

    def call_all() -> None:
        with ExitStack() as kept:
            for k in range(n_connections):
                stream = opened(net)
                if k % 2:
                    kept.enter_context(stream)
                else:
                    stream.close()
                time.sleep(0.003)

    async def scenario() -> int:
        async with serving(net, only=[A]):
            await asyncio.to_thread(call_all)
            await asyncio.sleep(2 * PATIENCE_S)
            return len(refusals(net))

    assert run(scenario()) == 1
    lines = refusals(net)
    assert len(lines) == 2
    assert sum(line.facts["connections"] for line in lines) == n_connections
    assert all(line.facts["addresses"] == ["127.0.0.1"] for line in lines)


def test_the_next_line_comes_after_the_window(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW_S", 4.0)
    told: list[float] = []

    async def scenario() -> None:
        async with serving(net, only=[A]):
            for n in (1, 2):
                await asyncio.to_thread(closed_at_once, net)
                async with asyncio.timeout(GUARD_S):
                    while len(refusals(net)) < n:
                        await asyncio.sleep(0.05)
                told.append(time.monotonic())

    run(scenario())
    assert told[1] - told[0] > 3.9


def test_peers_leave_no_line(net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Several channels, connections made again, a check, proposals, and a run."""

    async def scenario() -> None:
        async with serving(net):
            for name in (B, "coordinator", B):
                config: Any = net.coordinator if name == "coordinator" else net.config(name)
                async with calling(config) as one, calling(config) as other:
                    for calls in (one, other, one):
                        await calls._reach(A, net.addresses[A], calls._deadline())
            await conduct(net.task, net.coordinator, tmp_path / "out")
            await asyncio.sleep(3 * PATIENCE_S)

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert not [refusal for name in PARTIES for refusal in refusals(net, name)]
    assert "without a call" not in caplog.text


def test_commands_leave_no_line(net: Network, tmp_path: Path) -> None:
    job, config = write_job(tmp_path, joint_job()), net.config_path("coordinator")
    with served(net):
        assert invoke("party", "check", "--config", net.config_path(B)).code == 0
        for command in ("propose", "status", "run"):
            out = ("--out", tmp_path / "out") if command == "run" else ()
            assert invoke("coordinator", command, job, "--config", config, *out).code == 0
        time.sleep(3 * PATIENCE_S)
    assert not [refusal for name in PARTIES for refusal in refusals(net, name)]


def test_peers_beside_strangers_are_not_counted(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net, only=[A]):
            for _ in range(3):
                await asyncio.to_thread(closed_at_once, net)
                async with calling(net.config(B)) as calls:
                    await calls._reach(A, net.addresses[A], calls._deadline())
            await asyncio.sleep(3 * PATIENCE_S)

    run(scenario())
    assert [line.facts["connections"] for line in refusals(net)] == [3]


def test_a_removed_peer_is_told_once(net: Network) -> None:
    """A certificate that TLS still accepts has a line of its own, and is no stranger."""

    async def scenario() -> None:
        async with serving(net, only=[A]):
            async with calling(net.config(B)) as calls:
                await calls._reach(A, net.addresses[A], calls._deadline())
                net.change(A, lambda fields: fields["peers"].pop(B))
                with pytest.raises(PartyError):
                    await calls._reach(A, net.addresses[A], calls._deadline())
            await asyncio.sleep(3 * PATIENCE_S)

    run(scenario())
    audit = Audit(net.config(A).state_dir, SystemRng())
    callers = [line.facts["caller"] for line in audit.lines() if line.event == "refusal"]
    assert "strangers" not in callers
    assert callers == ["a stranger"]


def test_without_room_for_a_line_the_daemon_goes_on(
    net: Network, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise PartyError("io-failed", "the audit cannot be written: no work without a line", cause="ENOSPC")

    async def scenario() -> None:
        async with serving(net, only=[A]):
            with monkeypatch.context() as patched:
                patched.setattr(Audit, "note", full)
                await asyncio.to_thread(plain, net)
                async with asyncio.timeout(GUARD_S):
                    while "without a call: 1" not in caplog.text or "ENOSPC" not in caplog.text:
                        await asyncio.sleep(0.05)
            async with calling(net.config(B)) as calls:
                await calls._reach(A, net.addresses[A], calls._deadline())

    with caplog.at_level(logging.WARNING):
        run(scenario())


# ---- the counter alone


Report = tuple[int, tuple[str, ...]]


@dataclass
class Watched:
    """A counter at a port that nobody calls, and its reports."""

    reports: list[Report] = field(default_factory=list)
    strangers: Strangers = field(init=False)

    def __post_init__(self) -> None:
        self.strangers = Strangers(self.tell, 0.05)

    async def tell(self, n_connections: int, addresses: Sequence[str]) -> None:
        self.reports.append((n_connections, tuple(addresses)))

    async def counted(self, n_connections: int) -> None:
        """Wait until the reports are of a number of connections."""
        async with asyncio.timeout(GUARD_S):
            while sum(n for n, _ in self.reports) < n_connections:
                await asyncio.sleep(0.01)

    async def settled(self) -> None:
        async with asyncio.timeout(GUARD_S):
            while self.strangers._settled < self.strangers._begun:
                await asyncio.sleep(0.01)


def watched(work: Callable[[Watched], Coroutine[Any, Any, None]]) -> list[Report]:
    """The reports of a counter after some work."""
    made = Watched()

    async def scenario() -> None:
        made.strangers.start(1)
        try:
            await work(made)
        finally:
            await made.strangers.close()

    run(scenario())
    return made.reports


def test_a_late_call_hides_no_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW_S", 0.0)

    async def work(counter: Watched) -> None:
        counter.strangers.begun()
        await counter.counted(1)
        counter.strangers.called("ipv4:192.0.2.1:1")  # a peer that was slow
        counter.strangers.begun()
        await counter.counted(2)

    assert watched(work) == [(1, ()), (1, ())]


def test_calls_over_one_connection_count_once() -> None:
    async def work(counter: Watched) -> None:
        counter.strangers.begun()
        counter.strangers.begun()
        for _ in range(5):
            counter.strangers.called("ipv6:%5B2001:db8::1%5D:7400")
        await counter.counted(1)

    assert watched(work) == [(1, ())]


def test_a_connection_with_a_call_leaves_no_report() -> None:
    async def work(counter: Watched) -> None:
        for k in range(100):
            counter.strangers.begun()
            counter.strangers.called(f"ipv4:192.0.2.1:{k}")
        await counter.settled()

    assert watched(work) == []


def test_handshakes_in_threads_are_all_counted() -> None:
    async def work(counter: Watched) -> None:
        def many() -> None:
            for _ in range(1000):
                counter.strangers.begun()

        await asyncio.gather(*(asyncio.to_thread(many) for _ in range(8)))
        await counter.settled()

    assert sum(n for n, _ in watched(work)) == 8000


def test_without_a_list_of_connections_there_are_no_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tcp").write_bytes(b"head\n\xff garbage of a kernel 01\n")
    monkeypatch.setattr(module, "_LISTS", (tmp_path / "tcp", tmp_path / "tcp6"))

    async def work(counter: Watched) -> None:
        counter.strangers.begun()
        await counter.counted(1)

    assert watched(work) == [(1, ())]


def test_addresses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[Any] = []
    monkeypatch.setattr(module, "_callers_of", lambda _: iter(listed))

    async def work(counter: Watched) -> None:
        listed.extend((ip_address(f"198.51.{k // 256}.{k % 256}"), 7000) for k in range(5000))
        strangers = counter.strangers
        for _ in range(5000):
            strangers.begun()
        for k in range(5000):
            strangers.called(f"ipv4:203.0.113.1:{k + 1}")
        assert len(strangers._ends) <= module._MOST_KEPT
        strangers.begun()
        await counter.counted(1)

    ((n_connections, addresses),) = watched(work)
    assert n_connections == 1
    assert len(addresses) == module.MOST_TOLD


def test_connections_of_an_earlier_daemon_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[Any] = [(ip_address("203.0.113.1"), 7000)]
    monkeypatch.setattr(module, "_callers_of", lambda _: iter(listed))

    async def work(counter: Watched) -> None:
        listed.append((ip_address("198.51.100.1"), 7000))
        counter.strangers.begun()
        await counter.counted(1)

    assert watched(work) == [(1, ("198.51.100.1",))]


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("ipv4:192.0.2.7:4711", "192.0.2.7", 4711),
        ("ipv6:%5B2001:db8::7%5D:4711", "2001:db8::7", 4711),
        ("ipv6:[::ffff:192.0.2.7]:4711", "192.0.2.7", 4711),
        ("ipv6:%5Bfe80::1%25eth0%5D:4711", "fe80::1", 4711),
    ],
)
def test_names_of_connections_are_read(text: str, host: str, port: int) -> None:
    assert _end_of(text) == (ip_address(host), port)


def test_other_names_of_connections_stand_for_themselves() -> None:
    assert _end_of("unix:/tmp/socket") == "unix:/tmp/socket"
    assert _end_of("") == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_list_has_callers_of_the_port_alone(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((host, 0), family=family) as ours,
        socket.create_connection(ours.getsockname()[:2]) as caller,
    ):
        port, end = ours.getsockname()[1], caller.getsockname()[1]
        assert set(_callers_of(port)) == {(ip_address(host), end)}
        assert (ip_address(host), port) in set(_callers_of(end))


def test_a_list_longer_than_a_page_is_read_to_its_end() -> None:
    with ExitStack() as kept, socket.create_server(("127.0.0.1", 0), backlog=100) as ours:
        name = ours.getsockname()
        callers = [kept.enter_context(socket.create_connection(name)) for _ in range(100)]
        ends = {(ip_address("127.0.0.1"), caller.getsockname()[1]) for caller in callers}
        assert set(_callers_of(name[1])) == ends
