"""A relay that swaps, cuts, changes, replays and reads what it carries: it can end a job, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator import relay
from coordinator.relay import Bounds, Relay
from coordinator.run import conduct
from jobs.errors import CATALOGUE, PartyError, Problem
from party.net import presence
from party.net.splicing import Stream
from party.net.waiting import stopped
from tests.support.calls import calling, impatient, refused
from tests.support.duplex import run
from tests.support.network import Network, released, sample_network, serving
from tests.support.relays import QUICK, relayed, relaying
from tests.support.samples import PARTIES

A, B, C = PARTIES
PART = 1 << 14

Meddle = Callable[[int, bytes], list[bytes] | None]
"""What becomes of the n-th part of one direction of a connection; None: the connection is cut."""


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


class Swapping(Relay):
    """Connects whoever asks for one party with another."""

    async def _carry(self, caller: str, party: str, stream: Stream) -> None:
        await super()._carry(caller, {A: B, B: C, C: A}[party], stream)


def meddling(meddle: Callable[[], Meddle], seen: list[bytes]) -> Any:
    """What carries bytes, of a relay that meddles, by ``meddle``, with each direction, and keeps what it sees."""

    async def splice(one: Stream, other: Stream, idle_s: float) -> None:
        pumps = [asyncio.create_task(pump(*ends, meddle())) for ends in ((one, other), (other, one))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await stopped(*pumps)
            one.abort()
            other.abort()

    async def pump(source: Stream, target: Stream, change: Meddle) -> None:
        n = 0
        try:
            while part := await source.reader.read(PART):
                seen.append(part)
                parts = change(n, part)
                if parts is None:
                    return
                for each in parts:
                    await target.send(each)
                n += 1
        except OSError:
            return

    return splice


def honest() -> Meddle:
    return lambda n, part: [part]


def cutting(at: int) -> Meddle:
    return lambda n, part: None if n == at else [part]


def twice(at: int) -> Meddle:
    return lambda n, part: [part, part] if n == at else [part]


def flipping(at: int) -> Meddle:
    return lambda n, part: [part[:-1] + bytes([part[-1] ^ 1])] if n == at else [part]


def leaving_out(at: int) -> Meddle:
    return lambda n, part: [] if n == at else [part]


def reordering(at: int) -> Meddle:
    held: list[bytes] = []

    def change(n: int, part: bytes) -> list[bytes]:
        if n == at:
            held.append(part)
            return []
        return [part, held.pop()] if held else [part]

    return change


KINDS = {each.__name__: each for each in (cutting, twice, flipping, leaving_out, reordering)}


async def conducted(net: Network, out: Path) -> Problem | None:
    """Conduct the job; why it failed."""
    try:
        async with asyncio.timeout(20):
            await conduct(net.task, net.coordinator, out)
    except PartyError as error:
        return error.problem
    return None


def test_who_is_connected_with_the_wrong_party_finds_it_out(net: Network, tmp_path: Path) -> None:
    address = relayed(net)

    async def scenario() -> tuple[Problem, Problem | None]:
        async with relaying(net, address, make=Swapping), serving(net):
            async with calling(impatient(net.coordinator)) as calls:
                first = await refused(calls.open_control(A, "relay"))
            return first, await conducted(net, tmp_path / "out")

    first, second = run(scenario())
    assert (first.error_id, first.party) == ("identity-mismatch", A)
    assert second is not None
    assert second.error_id == "identity-mismatch"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("at", [0, 12])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_changed_on_the_way_ends_the_job(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, at: int
) -> None:
    """Nobody keeps a table, and the next job, over new connections of an honest relay, is as if nothing had been."""
    address = relayed(net)
    for name in (*PARTIES, "coordinator"):
        net.change(name, lambda fields: fields.update(timeouts={"connect_s": 2, "keepalive_s": 1}))

    async def scenario() -> tuple[Problem | None, Problem | None]:
        with monkeypatch.context() as hostile:
            hostile.setattr(relay, "splice", meddling(lambda: KINDS[kind](at), []))
            async with relaying(net, address), serving(net):
                bent = await conducted(net, tmp_path / "bent")
                assert bent is None or not any(net.releases(party) for party in PARTIES)
        async with relaying(net, address), serving(net):
            return bent, await conducted(net, tmp_path / "out")

    bent, after = run(scenario())
    assert bent is not None
    assert bent.error_id in CATALOGUE
    assert bent.error_id != "bug"
    assert after is None
    assert not (tmp_path / "bent").exists()


def test_a_connection_that_is_replayed_gets_nowhere(net: Network) -> None:
    """Byte for byte what the coordinator said before, to the party whom it was said to: TLS is fresh each time."""
    address = relayed(net)
    said: list[list[bytes]] = []

    class Keeping(Relay):
        async def _carry(self, caller: str, party: str, stream: Stream) -> None:
            mine: list[bytes] = []
            said.append(mine)
            read = stream.reader.read

            async def kept(n: int = -1) -> bytes:
                part = await read(n)
                mine.append(part)
                return part

            stream.reader.read = kept  # type: ignore[method-assign]
            await super()._carry(caller, party, stream)

    async def scenario() -> bytes:
        async with relaying(net, address, make=Keeping) as hostile, serving(net, only=[A]) as servers:
            async with calling(net.coordinator) as calls:
                await (await calls.open_control(A, "relay")).close()
            waiting = await hostile._rooms[A].newest()
            assert await waiting.call()
            for part in said[0]:
                await waiting.stream.send(part)
            answer = bytearray()
            while part := await waiting.stream.reader.read(PART):
                answer += part
            waiting.over.set()
            handshakes = servers[A].handshakes
            assert (handshakes.begun, handshakes.look(over=True)) == (2, 1)  # nobody spoke over the second
            return bytes(answer)

    found = records(run(scenario()))
    assert [kind for kind, _ in found[:2]] == [0x16, 0x14]  # the party's own hello of TLS,
    assert {kind for kind, _ in found[2:]} <= {0x17, 0x15}  # and no more than what follows it


def records(answer: bytes) -> list[tuple[int, int]]:
    """The kinds and lengths of TLS records, which must be whole."""
    found = []
    while answer:
        n = int.from_bytes(answer[3:5], "big")
        assert len(answer) >= 5 + n
        found.append((answer[0], n))
        answer = answer[5 + n :]
    return found


def test_a_relay_that_reads_along_reads_nothing(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither names of columns and steps nor values, which are all over the messages it carries."""
    address = relayed(net)
    seen: list[bytes] = []
    monkeypatch.setattr(relay, "splice", meddling(honest, seen))

    async def scenario() -> Problem | None:
        async with relaying(net, address), serving(net):
            return await conducted(net, tmp_path / "out")

    assert run(scenario()) is None
    whole = b"".join(seen)
    assert len(whole) > 20_000
    for word in (b"surgery", b"Janitor", b"Heart", b"link/hello", b"job_sha256", b"taxonomy"):
        assert word not in whole
    assert released(tmp_path / "out", net.bundle)


def test_a_relay_that_calls_without_end_is_answered_so_often_and_no_more(net: Network) -> None:
    """It opens calls to the party that nobody makes; the party has a bound of its own."""
    address = relayed(net)
    bounds = Bounds(sign_s=QUICK.sign_s, answer_s=0.5)

    async def scenario() -> int:
        async with relaying(net, address, bounds) as hostile, serving(net, only=[A]):
            n = 0
            try:
                async with asyncio.timeout(5):
                    while True:
                        async with asyncio.timeout(2):
                            waiting = await hostile._rooms[A].newest()
                        n += await waiting.call()
            except TimeoutError:
                return n

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence, "MOST", 6)
        assert run(scenario()) == 6
