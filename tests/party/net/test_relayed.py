"""A party's waiting at the relay, and calls through it: reconnects, pauses, and reasons that are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from coordinator.relay import Bounds, roster_of
from jobs.errors import Problem
from party.cli.checks import checks_of_relay
from party.net import relayed
from party.net.pipes import Streams, answered, closed, dropped, line, said
from party.owner.identity import make_credentials
from tests.support.by_hand import reached
from tests.support.calls import calling, impatient, refused
from tests.support.duplex import run
from tests.support.identities import write_credentials
from tests.support.network import GUARD_S, Network, sample_network, serving
from tests.support.relays import (
    RELAY,
    called_by_hand,
    listening,
    relay_address,
    relay_config,
    relaying,
    until,
    until_waiting,
    with_relay,
)
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return with_relay(sample_network(tmp_path / "net"))


async def _reached(net: Network, name: str) -> None:
    async with calling(net.coordinator) as calls:
        await (await reached(calls, name, "relay")).close()


async def _unreached(net: Network, seconds: float = 0.3) -> Problem:
    async with calling(impatient(net.coordinator, seconds)) as calls:
        return await refused(reached(calls, A, "relay"))


def test_a_party_finds_a_relay_that_comes_later_and_comes_back(
    net: Network, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr("party.net.relayed._PAUSE_S", 0.2)

    async def scenario() -> None:
        async with serving(net, only=[A]):
            await until(lambda: any("does not wait" in each for each in caplog.messages))
            for _ in range(2):
                async with relaying(net) as relay:
                    await until_waiting(relay, A)
                    await _reached(net, A)

    run(scenario())
    told = [each for each in caplog.messages if each.startswith(A)]
    assert told[0] == (
        f"{A} does not wait for callers at the relay, and tries again: the relay cannot be reached: "
        "Connection refused"
    )
    assert f"{A} waits for callers at the relay" in told
    assert len(told) < 10


def test_a_party_keeps_connections_ready_while_calls_are_under_way(net: Network) -> None:
    async def scenario() -> int:
        async with relaying(net) as relay, serving(net, only=[A]), calling(net.coordinator) as calls:
            stream = await reached(calls, A, "relay")
            await until(lambda: relay.n_waiting(A) == 4)
            await stream.close()
            return relay.n_waiting(A)

    assert run(scenario()) == 4


def test_pauses_grow_while_the_relay_is_away(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("party.net.relayed._PAUSE_S", 0.05)
    monkeypatch.setattr("party.net.relayed._MOST_PAUSE_S", 0.4)
    n_tried = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal n_tried
        n_tried += 1
        writer.close()

    async def scenario() -> int:
        host, port = relay_address(net).split(":")
        async with await asyncio.start_server(count, host, int(port)), serving(net, only=[A]):
            await asyncio.sleep(1)
            return n_tried

    assert run(scenario()) <= 4 * (3 + 1 / 0.4)


Answer = Callable[[Streams], Coroutine[Any, Any, None]]


async def _garbage(streams: Streams) -> None:
    streams[1].write(b"x" * 100_000)


async def _hangs_up(streams: Streams) -> None:
    await line(streams[0])


async def _an_odd_word(streams: Streams) -> None:
    await line(streams[0])
    await said(streams[1], b"no \xff")


async def _full(streams: Streams) -> None:
    await line(streams[0])
    await said(streams[1], b"no full")
    await streams[0].read()


async def _silent(streams: Streams) -> None:
    await streams[0].read()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (_garbage, "the relay answered in an unknown form"),
        pytest.param(_hangs_up, "the relay ended the connection", marks=pytest.mark.more),
        pytest.param(_an_odd_word, "the relay answered in an unknown form", marks=pytest.mark.more),
        pytest.param(_full, "the relay has too many connections of ours", marks=pytest.mark.more),
        (_silent, "the relay gave no answer in time"),
    ],
)
def test_a_relay_without_manners_is_told_as_a_reason(net: Network, answer: Answer, reason: str) -> None:
    context = roster_of(relay_config(net)).context

    async def scenario() -> Problem:
        async def serve(connection: Any) -> None:
            streams = await answered(connection, context, 5)
            try:
                await answer(streams)
            except (OSError, EOFError):
                pass
            finally:
                await closed(streams[1])

        async with listening(relay_address(net), serve):
            return await _unreached(net, 0.7)

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-unreachable", A)
    assert reason in problem.message


REFUSED = (
    "the relay refused our certificate",
    "the relay ended the connection: it has too many, is about to stop, or does not know our certificate",
)
"""Reasons for a certificate that the relay does not know: the alert of TLS can be lost with the connection."""


def test_the_relay_itself_is_checked(net: Network) -> None:
    """A party that calls nobody through the relay learns, too, if the relay is there and knows the party."""

    async def checked() -> tuple[str, str]:
        (found,) = await asyncio.to_thread(lambda: list(checks_of_relay(net.config(A))))
        assert found.about == "relay"
        return found.status, found.words.partition(". What to do: ")[0]

    async def scenario() -> list[tuple[str, str]]:
        found = [await checked()]
        async with relaying(net):
            found.append(await checked())
        net.change(RELAY, lambda fields: fields["peers"].pop(A))
        async with relaying(net):
            found.append(await checked())
        return found

    away, there, unknown = run(scenario())
    assert away == ("FAIL", "the relay cannot be reached: Connection refused")
    assert there == ("PASS", f"{RELAY} at {relay_address(net)} knows us")
    assert unknown[0] == "FAIL"
    assert unknown[1] in REFUSED


def test_reasons_of_the_relay(net: Network) -> None:
    async def scenario() -> list[Problem]:
        found = [await _unreached(net)]
        async with relaying(net, bounds=Bounds(pair_s=0.1)):
            found.append(await _unreached(net))
        net.change(RELAY, lambda fields: fields["peers"].pop(A))
        async with relaying(net):
            found.append(await _unreached(net))
        net.change(RELAY, lambda fields: fields["peers"].pop("coordinator"))
        async with relaying(net):
            found.append(await _unreached(net))
        write_credentials(net.root / "other", make_credentials(RELAY))
        tls = {"certificate": "../other/certificate.pem", "key": "../other/key.pem"}
        net.change(RELAY, lambda fields: fields.update(tls=tls))
        async with relaying(net):
            found.append(await _unreached(net))
        return found

    found = run(scenario())
    assert {problem.error_id for problem in found} == {"peer-unreachable"}
    said = [problem.message.removeprefix(f"coordinator cannot reach {A}: ") for problem in found]
    assert said.pop(3) in REFUSED
    assert said == [
        "the relay cannot be reached: Connection refused",
        "the party does not wait at the relay",
        "the relay does not know the party",
        "the relay presented a different certificate than the installed certificate",
    ]
    places = [problem.remedy.partition(": ")[0] for problem in found]
    assert places == ["at coordinator", f"at {A}", "at the relay", "at the relay", "at coordinator"]
    assert all(relay_address(net) not in str(problem.shared()) for problem in found)


def test_signs_of_life_come_before_a_short_idle_limit_in_between() -> None:
    """A proxy that cut idle connections after 10 s made every party come and go. Parties bound the pings, too."""
    assert 2 * Bounds().ping_s <= 10
    assert Bounds().ping_s >= 2 * relayed._EACH_S
    assert relayed._SILENCE_S >= 3 * 20  # a relay of an earlier version


def test_a_caller_less_patient_than_the_relay_is_told_of_the_party(net: Network) -> None:
    async def scenario() -> Problem:
        async with relaying(net, bounds=Bounds(pair_s=GUARD_S)):
            return await _unreached(net)

    problem = run(scenario())
    assert problem.message.endswith(
        "the relay gave no answer in time; perhaps the party does not wait at the relay"
    )
    assert problem.remedy == f"at {A}: check that the daemon runs, and `relay`"


def test_a_tunnel_leaves_no_socket_behind(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def scenario() -> list[int]:
        async with relaying(net), serving(net, only=[A]), calling(net.coordinator) as calls:
            await (await reached(calls, A, "relay")).close()
            (folder,) = tmp_path.glob("jointcut-*")
            return [folder.stat().st_mode & 0o777, len(list(folder.iterdir()))]

    assert run(scenario()) == [0o700, 1]
    assert list(tmp_path.glob("jointcut-*")) == []


def test_a_temporary_folder_that_is_none(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    problem = run(_unreached(net))
    assert problem.error_id == "config-invalid"
    assert "TMPDIR" in problem.remedy


def test_the_server_of_a_party_that_stops_leaves_the_relay(net: Network) -> None:
    async def scenario() -> None:
        async with relaying(net) as relay:
            async with serving(net, only=[A]):
                await until_waiting(relay, A)
            await until(lambda: relay.n_waiting(A) == 0)

    run(scenario())


def test_two_names_that_call_and_call_close_a_party_to_nobody_else(net: Network) -> None:
    """Each peer of the party has a share of its own; a name that the party does not know has none."""
    net.change(A, lambda fields: fields["peers"].pop(C))

    async def scenario() -> tuple[list[bytes], list[bytes], Problem]:
        async with relaying(net) as relay, serving(net, only=[A]):
            await until_waiting(relay, A)
            called = {
                name: await asyncio.gather(*(called_by_hand(net.config(name), A) for _ in range(40)))
                for name in (B, C)
            }
            await _reached(net, A)
            for streams, _ in (*called[B], *called[C]):
                dropped(streams)
            async with calling(impatient(net.config(C), 0.3)) as calls:
                told = await refused(calls.open_mesh(A, "relay"))
            return [answer for _, answer in called[B]], [answer for _, answer in called[C]], told

    of_peer, of_stranger, told = run(scenario())
    assert (of_peer.count(b"ok"), of_peer.count(b"no many")) == (16, 24)
    assert of_stranger == [b"no stranger"] * 40
    assert told.message == f"{C} cannot reach {A}: the party does not know us"
