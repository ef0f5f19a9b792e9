"""The daemon's life over real streams: one job at a time, and no failure of one run touches another."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coordinator.conduct import Conductor
from coordinator.run import conduct
from party import messages
from party.config import credentials_of, peers_of
from party.errors import JobFailed, PartyError, Problem
from party.messages import Cancel, Event, Fetch, Piece, Release, Request, Start, Submit, pieces
from party.release_file import REPORT, TABLE
from party.result import LkcResult
from party.transport import Calls, ControlStream
from tests.support.duplex import run
from tests.support.network import Network, released, report_of, sample_network, serving
from tests.support.samples import PARTIES

RUN = b"r" * messages.RUN_BYTES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


async def works(net: Network, out: Path) -> None:
    """A job runs to its end."""
    await conduct(net.bundle, net.coordinator, out)
    assert sum(released(out, net.bundle).values()) == 60


async def open_control(net: Network, party: str, calls: list[Calls]) -> ControlStream:
    """A coordinator's stream, spoken by hand."""
    config = net.coordinator
    calls.append(Calls(config, credentials_of(config), peers_of(config)))
    return await calls[-1].open_control(party, net.addresses[party])


async def until_the_end(stream: ControlStream) -> list[Event]:
    events: list[Event] = []
    while (event := await stream.read()) is not None:
        events.append(event)
    return events


async def tell(net: Network, party: str, *requests: Request) -> Problem:
    """Say these requests, then wait for the failure they must lead to."""
    calls: list[Calls] = []
    stream = await open_control(net, party, calls)
    for request in requests:
        await stream.write(request)
    events = await until_the_end(stream)
    await stream.close()
    await calls[0].close()
    (failed,) = [event for event in events if isinstance(event, messages.Failed)]
    return failed.problem


def submit(net: Network) -> list[Request]:
    return [Submit(RUN, piece) for piece in pieces("bundle", net.bundle.encoded)]


def test_a_run_leaves_nothing_behind(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "one")
            tasks = len(asyncio.all_tasks())
            for i in range(3):
                await works(net, tmp_path / f"more-{i}")
            await asyncio.sleep(0.1)
            assert len(asyncio.all_tasks()) <= tasks
        for party in PARTIES:
            assert len(net.releases(party)) == 4

    run(scenario())


def test_a_failed_run_leaves_no_streams_behind(net: Network, tmp_path: Path) -> None:
    """What a run opened is closed when it fails: else every failure would cost a stream for ever."""

    async def fail(i: int) -> None:
        async with Conductor(net.bundle, net.coordinator, lambda party, turn: None) as conductor:
            await conductor.connect()
            await conductor.submit()
            await conductor._tell_all(Start())
            await asyncio.sleep(0.01 * i)
            raise PartyError("result-mismatch", "says the test")

    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "before")
            tasks = len(asyncio.all_tasks())
            for i in range(6):
                with pytest.raises(JobFailed):
                    await fail(i)
            await works(net, tmp_path / "after")
            for _ in range(50):
                await asyncio.sleep(0.1)
                if len(asyncio.all_tasks()) <= tasks:
                    break
            assert len(asyncio.all_tasks()) <= tasks

    run(scenario())


def test_a_second_coordinator_does_not_touch_a_running_job(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            conductor = Conductor(net.bundle, net.coordinator, lambda party, turn: None)
            await conductor.connect()
            async with conductor:
                await conductor.submit()
                for party in PARTIES:
                    for requests in (submit(net), [Start()], [Submit(RUN, Piece("bundle", b"junk", True))]):
                        problem = await tell(net, party, *requests)
                        assert problem.party == party
                        if len(requests) == 1 and isinstance(requests[0], Start):
                            assert problem.error_id == "peer-protocol"
                busy = await tell(net, PARTIES[1], *submit(net))
                assert (busy.error_id, busy.party) == ("busy", PARTIES[1])
                await conductor.compute()
                conducted = await conductor.collect()
            assert isinstance(conducted.result, LkcResult)
            assert conducted.result.generalized.n_records == 60
            await works(net, tmp_path / "out")

    run(scenario())


@pytest.mark.parametrize(
    ("requests", "says"),
    [
        ([Start()], "a job begins with its bundle"),
        ([Fetch()], "a job begins with its bundle"),
        ([Cancel()], "a job begins with its bundle"),
        ([Release(Piece(TABLE, b"", True))], "a job begins with its bundle"),
        ([Submit(b"short", Piece("bundle", b"{}", True))], "a job begins with its bundle"),
        ([Submit(RUN, Piece("bundle", b"{", False)), Start()], "a job begins with its bundle"),
        ([Submit(RUN, Piece("bundle", b"{}", True))], "the bundle has another format"),
        (["bundle", Fetch()], "Fetch is out of order"),
        (["bundle", Release(Piece(TABLE, b"", True))], "Release is out of order"),
        (["bundle", Submit(RUN, Piece("bundle", b"{}", True))], "Submit is out of order"),
        (["bundle", Cancel()], "the coordinator cancelled the job"),
    ],
)
def test_requests_out_of_order_are_refused(
    net: Network, tmp_path: Path, requests: list[Any], says: str
) -> None:
    async def scenario() -> Problem:
        async with serving(net):
            said: list[Request] = []
            for request in requests:
                said += submit(net) if request == "bundle" else [request]
            problem = await tell(net, PARTIES[0], *said)
            await works(net, tmp_path / "out")
            return problem

    problem = run(scenario())
    assert says in problem.message
    assert problem.party == PARTIES[0]


def test_a_bundle_has_a_greatest_size(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    import party.daemon

    monkeypatch.setattr(party.daemon, "MAX_BUNDLE_BYTES", 100)

    async def scenario() -> Problem:
        async with serving(net):
            return await tell(net, PARTIES[0], *submit(net))

    assert "more than 100 bytes" in run(scenario()).message


def test_a_coordinator_that_leaves_frees_the_party(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            for _ in range(3):
                calls: list[Calls] = []
                stream = await open_control(net, PARTIES[0], calls)
                for request in submit(net):
                    await stream.write(request)
                assert isinstance(await stream.read(), messages.Admitted)
                await calls[0].close()  # no farewell
                await stream.close()
            await works(net, tmp_path / "out")

    run(scenario())


def test_an_unknown_peer_of_the_job_is_named(net: Network) -> None:
    net.change(PARTIES[1], lambda fields: fields["peers"].pop(PARTIES[2]))

    async def scenario() -> Problem:
        async with serving(net, only=PARTIES[1:2]):
            return await tell(net, PARTIES[1], *submit(net))

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.phase) == ("identity-unknown", PARTIES[1], "admit")
    assert f"party peers add {PARTIES[2]}" in problem.remedy


def test_what_is_delivered_is_what_the_coordinator_has(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    run(scenario())
    for party in PARTIES:
        (folder,) = net.releases(party)
        assert sorted(p.name for p in folder.iterdir()) == [TABLE, REPORT]
        for name in (TABLE, REPORT):
            assert (folder / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert report_of(tmp_path / "out")["rows"] == 60


def test_a_forged_delivery_is_refused_and_not_kept(net: Network, tmp_path: Path) -> None:
    """A coordinator that delivers another table than was computed is found out by every party."""
    forged = tmp_path / "forged"
    forged.mkdir()

    async def deliver_forged() -> None:
        async with Conductor(net.bundle, net.coordinator, lambda party, turn: None) as conductor:
            await conductor.connect()
            await conductor.submit()
            await conductor.compute()
            await conductor.collect()
            (forged / TABLE).write_text("job,age,transfused,surgery\n" + 'Any,"[0,100)",Y,Knee\n' * 60)
            (forged / REPORT).write_text(f'{{"job_sha256": "{net.bundle.digest.hex()}"}}')
            await conductor.deliver(forged)

    async def scenario() -> Problem:
        async with serving(net):
            with pytest.raises(JobFailed) as caught:
                await deliver_forged()
            return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.phase) == ("result-mismatch", "deliver")
    assert all(net.releases(party) == [] for party in PARTIES)
