"""A party that is called through its relay: how it comes back when the relay is lost, and what its log says."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from party.net import presence
from party.net.presence import Presence
from party.net.splicing import Stream
from party.net.ways import NotReached
from party.owner.config import NodeConfig
from tests.support.duplex import run
from tests.support.network import sample_network
from tests.support.relays import relayed, relaying
from tests.support.samples import PARTIES

FIRST_S = 0.02


def test_a_lost_relay_is_tried_later_and_later_and_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    net = sample_network(tmp_path / "net")
    relayed(net)
    tried: list[float] = []

    async def lost(config: NodeConfig) -> Stream:
        tried.append(asyncio.get_running_loop().time())
        raise NotReached("the relay: Connection refused")

    monkeypatch.setattr(presence, "call_relay", lost)
    monkeypatch.setattr(presence, "WAITING", 1)

    async def scenario() -> None:
        found = Presence(net.config(PARTIES[0]), "127.0.0.1:9", FIRST_S)
        found.start()
        while len(tried) < 5:
            await asyncio.sleep(FIRST_S)
        await found.stop()

    run(scenario())
    gaps = [after - before for before, after in itertools.pairwise(tried)]
    assert all(gap >= 0.9 * FIRST_S * 2**i for i, gap in enumerate(gaps))
    said = [r.getMessage() for r in caplog.records if r.name == "party"]
    assert said == ["not connected to the relay, so nobody can call us: the relay: Connection refused"]


def test_coming_back_is_logged_and_begins_with_short_waits_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net = sample_network(tmp_path / "net")
    address = relayed(net)
    caplog.set_level("INFO", logger="party")

    def said() -> list[str]:
        return [r.getMessage().partition(":")[0] for r in caplog.records if r.name == "party"]

    async def until(n: int) -> None:
        while len(said()) < n:
            await asyncio.sleep(FIRST_S)

    async def scenario() -> None:
        found = Presence(net.config(PARTIES[0]), "127.0.0.1:9", FIRST_S)
        found.start()
        await until(1)
        async with relaying(net, address):
            await until(2)
        await until(3)
        await found.stop()

    run(scenario())
    lost = "not connected to the relay, so nobody can call us"
    assert said()[:3] == [lost, "connected to the relay", lost]
