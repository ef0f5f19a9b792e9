"""The protocol of a job in whole daemons: the same seeds, the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import party.computation
import party.net.mesh
from coordinator.run import conduct
from crypto.local import run_local
from jobs.modes import protocol_of
from jobs.owner.account import LedgerAccount
from jobs.owner.charge import Limits, Release
from jobs.owner.ledger import PrivacyLedger
from tests.support.duplex import run
from tests.support.network import sample_network, serving
from tests.support.recording import RecordingLink, in_the_order_of, seeded
from tests.support.rng import SeededRng
from tests.support.samples import PARTIES
from tests.support.scores import PUBLISHED_NAMES

A, B, C = PARTIES
BESIDE = ("run/", "commit/")
"""Steps of a run that are not the protocol's."""


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["classification", "general"])
def test_same_seeds_over_grpc_one_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: str) -> None:
    """The run of tests/party/net/test_runner.py once more: whole daemons, over TLS, with seeded coins."""
    net = sample_network(tmp_path / "net", goal=goal, score=PUBLISHED_NAMES[goal])
    accounts = {
        me: LedgerAccount(
            Release(PrivacyLedger(tmp_path / f"{me}.sqlite", me), net.task, bytes(16), Limits())
        )
        for me in PARTIES
    }
    charged = seeded(goal, None, accounts)
    expected, transcript = run_local(charged)
    links: dict[str, dict[str, RecordingLink]] = {party: {} for party in PARTIES}
    results: dict[str, bytes] = {}

    def recording(me: str, peer: str, *arguments: Any, **more: Any) -> RecordingLink:
        links[me][peer] = RecordingLink(me, peer, *arguments, **more)
        return links[me][peer]

    def with_coins(task: Any, me: str, loaded: Any, _rng: Any, *rest: Any) -> Any:
        result = yield from protocol_of(task, me, loaded, SeededRng(me), *rest)
        results[me] = result.encoded
        return result

    monkeypatch.setattr(party.net.mesh, "PeerLink", recording)
    monkeypatch.setattr(party.computation, "protocol_of", with_coins)

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    for link in (link for of_party in links.values() for link in of_party.values()):
        link.sent = [(step, payload) for step, payload in link.sent if not step.startswith(BESIDE)]
    assert in_the_order_of(transcript, links).digest() == transcript.digest()
    assert set(results.values()) == {expected[A].encoded}
    assert len(results) == len(PARTIES)
