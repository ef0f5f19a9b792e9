"""Driving generators over links: the same run as in process, costs by phase, and clean ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from crypto.errors import RemoteProtocolError
from crypto.local import run_local
from crypto.rounds import Round, Rounds, exchange, receive, send
from jobs.errors import PartyError, TransportError
from party.net.link import Link
from party.net.runner import Meter, PhaseCost, drive
from tests.support.duplex import KEY, finished, linked, pair, pumping, run
from tests.support.recording import RecordingLink, in_the_order_of, seeded
from tests.support.samples import PARTIES

PATIENCE_S = 20.0


def mesh(parties: tuple[str, ...]) -> dict[str, dict[str, RecordingLink]]:
    """A link between every two parties: by party and peer."""
    links: dict[str, dict[str, RecordingLink]] = {party: {} for party in parties}
    for i, one in enumerate(parties):
        for other in parties[i + 1 :]:
            ends = pair()
            links[one][other] = RecordingLink(one, other, KEY, ends[0], greeted=False)
            links[other][one] = RecordingLink(other, one, KEY, ends[1], greeted=False)
    return links


async def drive_all(
    generators: Mapping[str, Rounds[Any]], links: Mapping[str, Mapping[str, Link]]
) -> tuple[dict[str, Any], dict[str, Meter]]:
    """Drive every party over its links, and end the links."""
    meters = {party: Meter() for party in generators}

    async def one(party: str) -> Any:
        result = await drive(generators[party], links[party], meters[party], PATIENCE_S)
        await asyncio.gather(*(finished(link) for link in links[party].values()))
        return result

    async def everybody() -> list[Any]:
        return list(await asyncio.gather(*map(one, generators)))

    flat = [link for of_party in links.values() for link in of_party.values()]
    results = await pumping(*flat, work=everybody())
    return dict(zip(generators, results, strict=True)), meters


@pytest.mark.some(2)
@pytest.mark.parametrize("sums", ["masked", "ring"])
@pytest.mark.parametrize("goal", ["classification", "general"])
def test_same_seeds_two_transports_one_digest(goal: str, sums: str) -> None:
    expected, transcript = run_local(seeded(goal, sums))
    links = mesh(PARTIES)
    results, _ = run(drive_all(seeded(goal, sums), links))
    assert in_the_order_of(transcript, links).digest() == transcript.digest()
    for party in PARTIES:
        assert results[party].encoded == expected[party].encoded
        assert results[party].reveals == expected[party].reveals


def test_costs_are_those_of_the_transcript() -> None:
    _, transcript = run_local(seeded("general", "masked"))
    links = mesh(PARTIES)
    _, meters = run(drive_all(seeded("general", "masked"), links))
    for party in PARTIES:
        costs = list(meters[party].phases.values())
        assert sum(c.bytes_sent for c in costs) == transcript.bytes_sent(party)
        assert sum(c.bytes_received for c in costs) == sum(len(m.payload) for m in transcript.view(party))
        assert sum(link.traffic.bytes_sent for link in links[party].values()) == transcript.bytes_sent(party)
        assert sum(c.rounds for c in costs) > 0


def test_a_meter_counts_by_phase() -> None:
    meter = Meter()
    meter.sent(1)
    meter.phase("score")
    meter.sent(2)
    meter.received(3)
    meter.waited()
    meter.phase("open")
    meter.phase("score")
    meter.sent(4)
    meter.close()
    assert list(meter.phases) == ["start", "score", "open"]
    score = meter.phases["score"]
    assert (score.bytes_sent, score.bytes_received, score.rounds) == (6, 3, 1)
    assert meter.phases["start"].bytes_sent == 1
    assert meter.phases["open"] == PhaseCost(seconds=meter.phases["open"].seconds)
    assert all(cost.seconds >= 0 for cost in meter.phases.values())


def test_the_loop_stays_responsive_while_a_generator_computes() -> None:
    release = threading.Event()

    def busy() -> Rounds[str]:
        release.wait(PATIENCE_S)
        return threading.current_thread().name
        yield Round("never")

    async def scenario() -> str:
        task = asyncio.create_task(drive(busy(), {}, Meter(), PATIENCE_S))
        await asyncio.sleep(0.01)
        assert not task.done()
        release.set()  # only a loop that still runs gets here
        return await task

    assert run(scenario()).startswith("protocol")


def test_sending_and_receiving_do_not_wait_for_each_other() -> None:
    """Both send more than any queue holds before either reads: a driver that sent first would hang."""
    payload = bytes(40 << 20)

    async def scenario() -> list[bytes]:
        one, other = linked()
        work = asyncio.gather(
            drive(exchange("x", "b", payload), {"b": one}, Meter(), PATIENCE_S),
            drive(exchange("x", "a", payload), {"a": other}, Meter(), PATIENCE_S),
        )

        async def both() -> list[bytes]:
            return await work

        return await pumping(one, other, work=both())

    assert [len(received) for received in run(scenario())] == [len(payload)] * 2


# ---- failures


class Closing:
    """A generator's wrapper that tells whether it was closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def waits(self) -> Rounds[None]:
        try:
            yield from receive("x", "b")
        finally:
            self.closed.set()


def drive_until_it_fails(
    generator: Rounds[Any], told: list[tuple[str, bytes]], timeout_s: float
) -> Exception:
    """Drive a generator whose only peer says what is told, then is silent."""

    async def scenario() -> None:
        ours, theirs = linked()
        for step, payload in told:
            await theirs.send(step, payload)
        await pumping(ours, theirs, work=drive(generator, {"b": ours}, Meter(), timeout_s))

    with pytest.raises((PartyError, RemoteProtocolError, ValueError)) as caught:
        run(scenario())
    return caught.value


def test_a_timeout_names_the_peer_and_the_step() -> None:
    closing = Closing()
    error = drive_until_it_fails(closing.waits(), [], timeout_s=0.05)
    assert isinstance(error, TransportError)
    problem = error.problem
    assert (problem.error_id, problem.party) == ("peer-timeout", "b")
    assert problem.message == "no message of step x from b within 0.05 s"
    assert "timeouts.round_s" in problem.remedy
    assert closing.closed.wait(PATIENCE_S)


def test_a_wrong_step_closes_the_generator() -> None:
    closing = Closing()
    error = drive_until_it_fails(closing.waits(), [("y", b"")], timeout_s=PATIENCE_S)
    assert isinstance(error, RemoteProtocolError)
    assert (error.culprit, error.step) == ("b", "x")
    assert closing.closed.wait(PATIENCE_S)


def test_an_error_of_the_generator_comes_through_as_it_is() -> None:
    def fails() -> Rounds[None]:
        yield from send("x", {"b": b""})
        raise ValueError("ours")

    error = drive_until_it_fails(fails(), [], timeout_s=PATIENCE_S)
    assert isinstance(error, ValueError)
    assert str(error) == "ours"


def test_a_cancelled_run_closes_its_generator() -> None:
    closing = Closing()

    async def scenario() -> None:
        ours, theirs = linked()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await pumping(ours, theirs, work=drive(closing.waits(), {"b": ours}, Meter(), PATIENCE_S))

    run(scenario())
    assert closing.closed.wait(PATIENCE_S)


def test_a_generator_that_computes_is_closed_when_it_is_done() -> None:
    """Nobody waits for a step that is being computed when the run is cancelled; it ends in its thread."""
    started, release, closed = threading.Event(), threading.Event(), threading.Event()

    def busy() -> Rounds[None]:
        try:
            started.set()
            release.wait(PATIENCE_S)
            yield from receive("x", "b")
        finally:
            closed.set()

    async def scenario() -> None:
        task = asyncio.create_task(drive(busy(), {}, Meter(), PATIENCE_S))
        await asyncio.to_thread(started.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not closed.is_set()
        release.set()

    run(scenario())
    assert closed.wait(PATIENCE_S)


def test_nothing_keeps_running_after_a_round_failed() -> None:
    async def scenario() -> set[str]:
        ours, theirs = linked()
        before = asyncio.all_tasks()

        def waits_for_two() -> Rounds[None]:
            yield Round("x", {}, frozenset({"b", "c"}))

        silent, other = linked("a", "c")
        await theirs.send("y", b"")
        work = drive(waits_for_two(), {"b": ours, "c": silent}, Meter(), PATIENCE_S)
        with pytest.raises(RemoteProtocolError):
            await pumping(ours, theirs, silent, other, work=work)
        await asyncio.sleep(0)
        return {task.get_name() for task in asyncio.all_tasks() - before}

    assert run(scenario()) == set()
