"""A party of the compute pair that meddles with what it carries, in real runs; and what it sees of the messages."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import coordinator.conduct
from coordinator.run import conduct
from jobs.data.sources import Csv
from jobs.errors import PartyError, Problem
from jobs.loading import open_task
from party.net.carried import CARRIED
from party.net.control import Envelope
from party.net.wiring import Wiring
from tests.attacks import tampering
from tests.support import five, jobs
from tests.support.duplex import run
from tests.support.five import DEPUTY, LEADER, PARTIES
from tests.support.meddling import CUT, Meddler, once, swapped
from tests.support.network import network, released, serving

LKC = {"lkc": {"L": "2", "K": "2", "C": "0.8"}}


def bent(envelope: Envelope) -> Envelope:
    return replace(envelope, payload=envelope.payload[:-1] + bytes((envelope.payload[-1] ^ 1,)))


FRAME = f"{CARRIED}p0"
"""Step of what p0 says to p2 or p4, on the carriages of p1 or p3."""
MEDDLING: dict[str, Callable[[], Any]] = {
    "changed": lambda: once(FRAME, lambda e: [bent(e)]),
    "swapped": lambda: swapped(FRAME),
    "cut": lambda: once(FRAME, lambda e: [CUT]),
}


@pytest.mark.by_lot(1)
@pytest.mark.parametrize("how", MEDDLING)
def test_a_carrier_that_meddles_is_among_those_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The run ends without a release; the same daemons then make the table."""
    monkeypatch.setattr(coordinator.conduct, "_GRACE_S", 0.5)
    bundle, meddler = jobs.bundle_of(five.horizontal()), Meddler(MEDDLING[how]())
    net = network(tmp_path / "net", bundle, five.tables(tmp_path / "tables", bundle))
    for name in PARTIES:
        net.change(name, lambda fields: fields.update(timeouts={"round_s": 5, "connect_s": 3}))

    async def scenario() -> Problem:
        async with serving(net, {LEADER: meddler}):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, tmp_path / "out")
            assert not (tmp_path / "out").exists()
            assert not any(net.releases(party) for party in PARTIES)
            meddler.active = False
            await conduct(net.task, net.coordinator, tmp_path / "out")
            return caught.value.problem

    problem = run(scenario())
    assert any(envelope.step == FRAME for envelope in meddler.seen)
    assert problem.error_id in {"peer-protocol", "peer-lost", "peer-unreachable", "job-hash-mismatch"}
    named = f"{problem.party} {problem.about} {problem.message}"
    assert LEADER in named
    assert released(tmp_path / "out", bundle)


def fields_of(kind: str) -> dict[str, Any]:
    """The small job of a kind, for five parties."""
    fields = tampering._fields_of_kind(kind)
    if fields["partition"] == "vertical":
        return five.vertical(disclosure=fields["disclosure"], model=LKC)
    parties = {name: {"address": f"127.0.0.1:{7400 + i}"} for i, name in enumerate(PARTIES)}
    return {**fields, "parties": parties, "leader": LEADER, "deputy": DEPUTY}


OF_TWO = {"dp/horizontal/thesis", "dp/vertical/circuit", "dp/vertical/thesis", "dp/vertical/synthetic"}
"""Modes of two parties: nothing is carried."""


@pytest.mark.by_lot(1)
@pytest.mark.parametrize("kind", [kind for kind in tampering.KINDS if kind not in OF_TWO])
def test_lengths_of_carried_messages_tell_the_pair_nothing(kind: str) -> None:
    """A member of the pair has the same number of messages of that step and length from the same sender itself."""
    bundle = jobs.bundle_of(fields_of(kind))
    task = open_task(bundle)
    with tempfile.TemporaryDirectory() as folder:
        vertical = task.mode.partition == "vertical"
        make = five.tables if vertical else tampering._MODELS[task.mode.model].tables
        paths = make(Path(folder), bundle)
        tables = {me: task.load(Csv(path), me) for me, path in paths.items()}
        files = {me: path.read_bytes() for me, path in paths.items()}
        _, transcript = tampering.Stage(task, tables, files).run(0)
    job = task.job
    wiring = Wiring("p0", job.roster, (job.leader_name, job.deputy_name), task.mode.apart(task))
    carried: Counter[tuple[str, str, str, int]] = Counter()
    heard: Counter[tuple[str, str, str, int]] = Counter()
    for message in transcript.messages:
        what = (message.sender, message.recipient, message.step, len(message.payload))
        if wiring.carrier(message.sender, message.recipient) is not None:
            carried[what] += 1
        elif message.recipient in wiring.pair:
            heard[what] += 1
    assert carried
    for (sender, _, step, length), count in carried.items():
        assert count <= max(heard[sender, by, step, length] for by in wiring.pair), step
