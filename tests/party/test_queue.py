"""The queue at the one place for a job: the order, its bounds, and who loses a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coordinator.conduct import Conductor
from coordinator.run import conduct
from jobs.errors import Exit, JobFailed, PartyError, Problem
from party.net import control
from party.net.client import Calls, ControlStream
from party.net.control import Cancel, Event, Queued, Request, Start, Still
from party.net.mailbox import Mailbox
from party.owner.config import Limits, Timeouts, credentials_of, peers_of
from party.queue import Place, Turn, in_turn
from tests.support.by_hand import submit, tell, until_the_end, works
from tests.support.duplex import run
from tests.support.network import Network, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES
FEW = Limits(waiting=3, waiting_each=2)


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


# ---- the place


def test_turns_come_in_the_order_of_coming() -> None:
    place = Place(A)
    first = place.take("x")
    second, third, fourth = (place.queue(caller, FEW) for caller in "xyz")
    assert [turn.before for turn in (first, second, third, fourth)] == [0, 1, 2, 3]
    place.leave(third)
    assert [turn.before for turn in (first, second, fourth)] == [0, 1, 2]
    assert not second.changed.is_set()
    place.leave(first)
    assert [turn.before for turn in (second, fourth)] == [0, 1]
    assert second.changed.is_set()
    assert place.taken
    for turn in (second, fourth):
        place.leave(turn)
    assert not place.taken
    assert place.queue("z", FEW).before == 0


def test_nobody_gets_in_before_who_waits() -> None:
    place = Place(A)
    first, _ = place.take("x"), place.queue("y", FEW)
    place.leave(first)
    with pytest.raises(PartyError) as caught:
        place.take("z")
    assert caught.value.problem.error_id == "busy"


@pytest.mark.parametrize(
    ("waiting", "caller", "says"),
    [
        ("xyz", "w", "at hospital-a no more coordinators may wait"),
        ("xx", "x", "at hospital-a x may not wait more often"),
    ],
)
def test_the_queue_is_bounded_in_all_and_of_each(waiting: str, caller: str, says: str) -> None:
    place = Place(A)
    place.take("x")
    turns = [place.queue(each, FEW) for each in waiting]
    with pytest.raises(PartyError) as caught:
        place.queue(caller, FEW)
    assert (caught.value.problem.error_id, caught.value.problem.message) == ("busy", says)
    place.leave(turns[0])
    assert place.queue(caller, FEW).before == len(waiting)


def test_a_queue_of_none_refuses_as_before() -> None:
    place = Place(A)
    assert place.queue("x", Limits(waiting=0)).before == 0
    with pytest.raises(PartyError):
        place.queue("y", Limits(waiting=0))


def test_a_place_that_is_closed_is_for_who_has_begun_alone() -> None:
    place = Place(A)
    first, second = place.take("x"), place.queue("y", FEW)
    place.close()
    assert first.refused is None
    assert second.refused is not None
    assert second.refused.problem.exit_code is Exit.UNREACHABLE
    for attempt in (lambda: place.take("z"), lambda: place.queue("z", FEW)):
        with pytest.raises(PartyError) as caught:
            attempt()
        assert caught.value.problem.error_id == "stopping"


# ---- what a coordinator is told, and has to say


async def _waits(
    turn: Turn, says: Sequence[Request], told: list[Event], timeouts: Timeouts
) -> control.Submit:
    requests: Mailbox[Request] = Mailbox(8)
    for each in says:
        await requests.put(each)

    async def emit(event: Event) -> None:
        told.append(event)

    return await in_turn(turn, requests, emit, timeouts)


def _refusal(turn: Turn, *says: Request, timeouts: Timeouts = Timeouts(silent_s=0.2)) -> Problem:  # noqa: B008
    with pytest.raises(PartyError) as caught:
        run(_waits(turn, says, [], timeouts))
    return caught.value.problem


def test_a_coordinator_is_told_how_many_come_before_it(net: Network) -> None:
    async def scenario() -> list[Event]:
        place, told = Place(A), list[Event]()
        others = [place.take("x"), place.queue("x", FEW)]
        turn = place.queue("y", FEW)
        first = submit(net)[0]
        waiting = asyncio.create_task(_waits(turn, [Still(), Still()], told, Timeouts()))
        for other in others:
            await asyncio.sleep(0.01)
            place.leave(other)
        await asyncio.sleep(0.01)
        waiting.cancel()
        assert await _waits(turn, [Still(), first], told, Timeouts()) is first
        assert turn.begun
        return told

    assert run(scenario()) == [Queued(2), Queued(1), Queued(0), Queued(0)]


def test_who_is_silent_loses_its_place() -> None:
    problem = _refusal(Turn("x", 1), Still())
    assert (problem.error_id, problem.message) == ("peer-timeout", "no request from x within 0.2 s")
    assert "timeouts.silent_s" in problem.remedy


def test_who_does_not_use_its_turn_loses_it_whatever_it_says() -> None:
    async def scenario() -> None:
        requests: Mailbox[Request] = Mailbox(8)

        async def chatter() -> None:
            while True:
                await requests.put(Still())
                await asyncio.sleep(0.01)

        async def emit(event: Event) -> None:
            pass

        talking = asyncio.create_task(chatter())
        try:
            await in_turn(Turn("x", 0), requests, emit, Timeouts(coordinator_s=0.2))
        finally:
            talking.cancel()

    with pytest.raises(PartyError) as caught:
        run(scenario())
    assert caught.value.problem.error_id == "turn-lost"


def test_what_is_not_to_be_said_in_the_queue_ends_it(net: Network) -> None:
    assert _refusal(Turn("x", 1), submit(net)[0]).error_id == "peer-protocol"  # before its turn
    assert _refusal(Turn("x", 0), Start()).error_id == "peer-protocol"
    assert _refusal(Turn("x", 0), Cancel()).error_id == "cancelled"


# ---- over real streams


@asynccontextmanager
async def queued(net: Network, party: str) -> AsyncIterator[ControlStream]:
    """A coordinator's stream in the queue, spoken by hand."""
    config = net.coordinator
    calls = Calls(config, credentials_of(config), peers_of(config))
    try:
        yield await calls.open_queue(party, net.addresses[party])
    finally:
        await calls.close()


@asynccontextmanager
async def running(net: Network) -> AsyncIterator[Conductor]:
    """A job that all parties have admitted, and that nobody starts."""
    conductor = Conductor(net.task, net.coordinator, lambda party, turn: None)
    await conductor.connect()
    async with conductor:
        await conductor.submit()
        yield conductor


def test_who_waits_runs_when_the_job_before_has_ended(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            async with running(net) as first, queued(net, A) as second:
                assert await second.read() == Queued(1)
                assert (await tell(net, A, *submit(net))).error_id == "busy"
                waiting = asyncio.create_task(conduct(net.task, net.coordinator, tmp_path / "out", wait_s=30))
                await second.write(Still())
                await first.compute()
                assert not waiting.done()
            await waiting
            await works(net, tmp_path / "next")

    run(scenario())
    assert [len(net.releases(party)) for party in PARTIES] == [2] * 3


def test_who_may_start_no_jobs_gets_into_no_queue(net: Network) -> None:
    """And is not told that there is one."""

    async def scenario() -> tuple[list[Event], list[Event]]:
        config = net.config(B)
        calls = Calls(config, credentials_of(config), peers_of(config))
        try:
            async with serving(net, only=[A]), queued(net, A) as first:
                alone = await until_the_end(await calls.open_queue(A, net.addresses[A]))
                assert await first.read() == Queued(0)
                return alone, await until_the_end(await calls.open_queue(A, net.addresses[A]))
        finally:
            await calls.close()

    alone, behind = run(scenario())
    assert alone == behind
    (failed,) = alone
    assert isinstance(failed, control.Failed)
    assert failed.problem.error_id == "policy-refused"


def test_a_silent_coordinator_gives_its_place_to_the_next(net: Network) -> None:
    net.change(A, lambda fields: fields.update(timeouts={"silent_s": 1}))

    async def scenario() -> tuple[list[Event], list[Event]]:
        async with serving(net, only=[A]), queued(net, A) as silent, queued(net, A) as awake:
            assert await silent.read() == Queued(0)
            assert await awake.read() == Queued(1)
            while True:
                await awake.write(Still())
                try:
                    async with asyncio.timeout(0.2):
                        event = await awake.read()
                except TimeoutError:
                    continue
                return await until_the_end(silent), [event] if event else []

    lost, next_ = run(scenario())
    assert [event.problem.error_id for event in lost if isinstance(event, control.Failed)] == ["peer-timeout"]
    assert next_ == [Queued(0)]


def test_who_waits_longer_than_it_wants_to_is_told_for_whom(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            async with running(net):
                with pytest.raises(JobFailed) as caught:
                    await conduct(net.task, net.coordinator, tmp_path / "out", wait_s=0.5)
            problem = caught.value.problem
            assert (problem.error_id, problem.party, problem.phase) == ("busy", A, "queue")
            await works(net, tmp_path / "next")  # it has left the queue

    run(scenario())


def test_a_daemon_that_drains_ends_its_job_and_takes_no_other(net: Network) -> None:
    async def scenario() -> None:
        async with serving(net) as servers, running(net) as first, queued(net, B) as second:
            assert await second.read() == Queued(1)
            draining = asyncio.create_task(servers[B].drained())
            (refused,) = await until_the_end(second)
            assert isinstance(refused, control.Failed)
            assert (await tell(net, B, *submit(net))).error_id == refused.problem.error_id == "stopping"
            await first.compute()
            await first.collect()
            assert not draining.done()
            await first._close()
            await draining

    run(scenario())


def test_a_job_that_does_not_end_is_waited_for_no_longer_than_said(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    net.change(B, lambda fields: fields.update(timeouts={"drain_s": 0.1}))

    async def scenario() -> None:
        async with serving(net) as servers, running(net):
            await servers[B].drained()

    run(scenario())
    assert "the job that runs is ended: it was not over within 0.1 s" in caplog.messages
