"""Envelopes cut, lost, doubled, late, swapped and bent at every step of a run, over real streams.

Whatever happens to them, every party and the coordinator end with one error that names the culprit, nothing is
half-written, and the same daemons serve the next job.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

import coordinator.conduct
from coordinator.run import conduct
from jobs.errors import Exit, PartyError, Problem
from jobs.release.commitment import COMMITMENT
from jobs.release.signatures import STATEMENT
from party.agreement import CHECKED, KEPT
from party.net.control import Envelope
from party.net.link import END, HELLO
from party.owner.config import credentials_of
from tests.support.commands import listing
from tests.support.duplex import run
from tests.support.meddling import CUT, Meddle, Meddler, delayed, honestly, once, swapped
from tests.support.network import GUARD_S, Network, released, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES
LED_BY_A = ["horizontal/root", "horizontal/open", "horizontal/asked", "horizontal/verdicts"]
STEPS = [
    ("secure_sum/keys", B),
    ("secure_sum/masked", B),
    *((step, A) for step in LED_BY_A),
    ("lkc/earlier", B),
    ("lkc/opening", B),
    (COMMITMENT, B),
    (STATEMENT, B),
]
"""Every step of a run under a leader, with one who sends it."""

BENT: dict[str, Callable[[Envelope], list[Envelope | str]]] = {
    "cut": lambda e: [CUT],
    "doubled": lambda e: [e, e],
    "lost": lambda e: [],
    "of another job": lambda e: [replace(e, job=b"k" * 32)],
    "of another run": lambda e: [replace(e, run=b"s" * 16)],
    "of another sender": lambda e: [replace(e, sender=C if e.sender != C else B)],
    "for somebody else": lambda e: [replace(e, recipient=C if e.recipient != C else B)],
    "too short": lambda e: [replace(e, payload=e.payload[:-1])],
    "too long": lambda e: [replace(e, payload=e.payload + b"\0")],
    "of another step": lambda e: [replace(e, step="horizontal/surprise")],
    "without an end": lambda e: [replace(e, last=False)],
}
CAUSES = {
    "cut": {"peer-lost"},
    "of another job": {"job-hash-mismatch"},
    "of another run": {"job-hash-mismatch"},
}


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net", goal="general")


@pytest.fixture(autouse=True)
def no_bugs(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nobody takes any act of a peer for a bug of ours. On loopback the root cause is known at once."""
    monkeypatch.setattr(coordinator.conduct, "_GRACE_S", 0.5)
    caplog.set_level(logging.INFO, "party")
    yield
    assert [record for record in caplog.records if getattr(record, "error_id", None) == "bug"] == []


def failed(net: Network, out: Path, meddler: Meddler, culprit: str, **timeouts: float) -> Problem:
    """Run with a meddler; return the coordinator's error. Then let the same daemons run it undisturbed."""
    for name in PARTIES:
        net.change(name, lambda fields: fields.update(timeouts={"round_s": 5, **timeouts}))

    async def scenario() -> Problem:
        async with serving(net, {culprit: meddler}) as servers:
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, out)
            assert listing(out.parent) == before
            async with asyncio.timeout(GUARD_S):
                while not all(server.idle for server in servers.values()):
                    await asyncio.sleep(0.02)
            assert not any(net.releases(party) for party in PARTIES)
            meddler.active = False
            await conduct(net.task, net.coordinator, out)
            return caught.value.problem

    out.parent.mkdir()
    before = listing(out.parent)
    problem = run(scenario())
    assert sum(released(out, net.bundle).values()) == 60
    assert problem.message
    assert problem.exit_code in {Exit.FAILED, Exit.UNREACHABLE, Exit.IDENTITY}
    return problem


ARRIVING = [how for how in BENT if how not in {"lost", "without an end"}]
CASES = [
    *((*STEPS[1], how) for how in ARRIVING),
    *((step, culprit, how) for step, culprit in STEPS for how in ("cut", "doubled", "too short")),
]
"""Every way at one step, some at every step."""


@pytest.mark.some(1)
@pytest.mark.parametrize(("step", "culprit", "how"), list(dict.fromkeys(CASES)))
def test_one_envelope_bent(net: Network, tmp_path: Path, step: str, culprit: str, how: str) -> None:
    to = C if culprit == A else A
    problem = failed(net, tmp_path / "outs" / "out", Meddler(once(step, BENT[how], to=to)), culprit)
    assert problem.error_id in CAUSES.get(how, {"peer-protocol"})
    assert problem.named in (
        {culprit, to} if how == "cut" else {culprit}
    )  # both ends of a cut miss the other
    assert problem.phase


@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["cut", "of another job", "of another sender", "for somebody else"])
def test_a_greeting_bent(net: Network, tmp_path: Path, how: str) -> None:
    meddler = Meddler(once(HELLO, BENT[how], to=C))
    problem = failed(net, tmp_path / "outs" / "out", meddler, B, connect_s=1)
    if problem.named is None:
        # C told its reason to B alone, which passed it on: only the text names a party.
        assert how != "cut"
        assert problem.message.startswith(f"passed on by {B}: {C} ")
    else:  # gRPC lost the reason, if B was writing as C ended the stream
        assert problem.named in {B, C}
    assert problem.phase


VOTES = [
    *((CHECKED, how) for how in BENT),
    *(
        (step, how)
        for step in (KEPT, END)
        for how in ("cut", "doubled", "lost", "too short", "without an end")
    ),
]


@pytest.mark.some(1)
@pytest.mark.parametrize(("step", "how"), VOTES)
def test_a_vote_or_a_farewell_bent(net: Network, tmp_path: Path, step: str, how: str) -> None:
    """One link of three breaks while the parties agree: all keep the release, or none, and all are free again."""
    for name in PARTIES:
        net.change(name, lambda fields: fields.update(timeouts={"coordinator_s": 3}))
    meddler = Meddler(once(step, BENT[how], to=A))

    async def scenario() -> None:
        async with serving(net, {B: meddler}) as servers:
            with suppress(PartyError):  # which of the two it was, the releases show
                await conduct(net.task, net.coordinator, tmp_path / "out")
            async with asyncio.timeout(GUARD_S):
                while not all(server.idle for server in servers.values()):
                    await asyncio.sleep(0.02)
            kept = [len(net.releases(party)) for party in PARTIES]
            assert kept in ([0, 0, 0], [1, 1, 1])
            assert (tmp_path / "out").exists() == (kept == [1, 1, 1])
            if step != CHECKED:
                assert kept == [1, 1, 1]
            meddler.active = False
            await conduct(net.task, net.coordinator, tmp_path / "again")

    run(scenario())


@pytest.mark.some(1)
@pytest.mark.parametrize(("step", "culprit"), [STEPS[0], STEPS[1], STEPS[4]])
def test_two_envelopes_swapped(net: Network, tmp_path: Path, step: str, culprit: str) -> None:
    problem = failed(net, tmp_path / "outs" / "out", Meddler(swapped(step)), culprit, round_s=3)
    assert problem.error_id in {"peer-protocol", "peer-timeout"}
    if problem.error_id == "peer-protocol":
        assert problem.named == culprit


@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["lost", "without an end"])
@pytest.mark.parametrize(("step", "culprit"), [STEPS[1], STEPS[4]])
def test_one_envelope_that_never_arrives(
    net: Network, tmp_path: Path, step: str, culprit: str, how: str
) -> None:
    """The next message is out of sequence; without one, somebody's patience ends. The error says who waits
    for whom.
    """
    problem = failed(net, tmp_path / "outs" / "out", Meddler(once(step, BENT[how])), culprit, round_s=3)
    assert problem.error_id in {"peer-timeout", "peer-protocol"}
    assert problem.phase


@pytest.mark.more
def test_a_party_that_is_too_late(net: Network, tmp_path: Path) -> None:
    meddler = Meddler(delayed("secure_sum/masked", 7.0))
    problem = failed(net, tmp_path / "outs" / "out", meddler, B, round_s=2)
    assert (problem.error_id, problem.exit_code) == ("peer-timeout", Exit.UNREACHABLE)
    assert problem.phase


def test_lateness_alone_changes_nothing(net: Network, tmp_path: Path) -> None:
    """Every envelope of one party 20 ms late, in every step: same result as undisturbed."""

    async def late(envelope: Envelope) -> Any:
        await asyncio.sleep(0.02)
        yield envelope

    async def scenario() -> None:
        async with serving(net, {B: Meddler(late)}):
            await conduct(net.task, net.coordinator, tmp_path / "late")
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "undisturbed")

    run(scenario())
    assert released(tmp_path / "late", net.bundle) == released(tmp_path / "undisturbed", net.bundle)


def test_every_step_of_a_run_is_meddled_with_above(net: Network, tmp_path: Path) -> None:
    watchers = {party: Meddler(honestly) for party in PARTIES}

    async def scenario() -> None:
        async with serving(net, watchers):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    seen = {(e.step, e.sender) for watcher in watchers.values() for e in watcher.seen}
    assert {step for step, _ in seen} == {step for step, _ in STEPS} | {HELLO, CHECKED, KEPT, END}
    assert set(STEPS) <= seen


def counted(meddle: Callable[[int, Envelope], list[Envelope | str]]) -> Meddle:
    """Meddle with what goes to A, by its number."""
    numbers = itertools.count()

    async def on_way(envelope: Envelope) -> Any:
        for other in meddle(next(numbers), envelope) if envelope.recipient == A else [envelope]:
            yield other

    return on_way


@pytest.fixture(scope="module")
def sent_when_sealed(tmp_path_factory: pytest.TempPathFactory) -> list[Envelope]:
    """Return the envelopes from B to A in an undisturbed sealed run."""
    folder = tmp_path_factory.mktemp("sealed")
    net, watcher = sample_network(folder / "net", disclosure="sealed", score="infogain"), Meddler(honestly)

    async def undisturbed() -> None:
        async with serving(net, {B: watcher}):
            await conduct(net.task, net.coordinator, folder / "out")

    run(undisturbed())
    return [envelope for envelope in watcher.seen if envelope.recipient == A]


@pytest.mark.more
@pytest.mark.parametrize("how", ["cut", "doubled", "too short"])
@pytest.mark.parametrize("part", [0.05, 0.5, 0.95])
def test_sealed_runs_end_as_clearly(
    tmp_path: Path, sent_when_sealed: list[Envelope], how: str, part: float
) -> None:
    """Anywhere in the stream between the compute pair, whichever step that is."""
    net = sample_network(tmp_path / "net", disclosure="sealed", score="infogain")
    position = int(part * len(sent_when_sealed))
    while not sent_when_sealed[position].payload:
        position += 1
    meddle = counted(lambda i, envelope: BENT[how](envelope) if i == position else [envelope])
    problem = failed(net, tmp_path / "outs" / "out", Meddler(meddle), B)
    assert problem.named in ({A, B} if how == "cut" else {B})
    assert problem.error_id in CAUSES.get(how, {"peer-protocol"})
    assert problem.phase


def test_garbage_beside_a_running_job_does_not_disturb_it(net: Network, tmp_path: Path) -> None:
    """A known peer opens more streams while the job runs, with nonsense and with forged greetings."""
    started, go_on = asyncio.Event(), asyncio.Event()

    async def pause(envelope: Envelope) -> Any:
        if envelope.step == "horizontal/asked":
            started.set()
            await go_on.wait()
        yield envelope

    async def pester() -> list[str]:
        own = credentials_of(net.config(B))
        root = (net.root / C / "tls" / "certificate.pem").read_bytes()
        secure = grpc.ssl_channel_credentials(root, own.key, own.certificate)
        options = [("grpc.ssl_target_name_override", C)]
        answers = []
        async with grpc.aio.secure_channel(net.addresses[C], secure, options) as channel:
            for garbage in (b"\xff" * 30, b"", bytes(1000)):
                call = channel.stream_stream("/jointcut.v1.Mesh/Exchange")()
                await call.write(garbage)
                await call.done_writing()
                try:
                    while await call.read() is not grpc.aio.EOF:
                        pass
                except grpc.aio.AioRpcError as error:
                    answers.append(error.details() or "")
        return answers

    async def scenario() -> list[str]:
        async with serving(net, {A: Meddler(pause)}):
            job = asyncio.create_task(conduct(net.task, net.coordinator, tmp_path / "out"))
            await started.wait()
            answers = await pester()
            assert not job.done()
            go_on.set()
            await job
            return answers

    answers = run(scenario())
    assert len(answers) == 3
    assert {json.loads(a)["error"] for a in answers if a.startswith("{")} <= {
        "identity-mismatch",
        "peer-protocol",
    }
    assert sum(released(tmp_path / "out", net.bundle).values()) == 60
