"""The daemon's life over real streams: one job at a time, and no failure of one run touches another."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coordinator.conduct import Conductor
from jobs.errors import JobFailed, PartyError, Problem
from jobs.lkc.result import LkcResult
from party import daemon
from party.daemon import Daemon
from party.net import control
from party.net.client import Calls
from party.net.control import Piece, Start, Submit
from party.net.server import PartyServer
from party.owner.config import Timeouts
from party.owner.current import CurrentJob
from party.owner.in_force import STATUS
from party.session import fail
from party.states import Session
from tests.support.by_hand import RUN, open_control, submit, tell, works
from tests.support.dialled import Dialled
from tests.support.duplex import run
from tests.support.hostile import answer
from tests.support.house import lines_of
from tests.support.network import GUARD_S, Network, sample_network, serving
from tests.support.samples import PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def test_a_run_leaves_nothing_behind(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "one")
            tasks = len(asyncio.all_tasks())
            for i in range(2):
                await works(net, tmp_path / f"more-{i}")
            await asyncio.sleep(0.1)
            assert len(asyncio.all_tasks()) <= tasks
        for party in PARTIES:
            assert len(net.releases(party)) == 3

    run(scenario())


def test_an_ended_run_is_freed(net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its table and its connections: nothing holds a run but its own objects, and those are collected."""
    monkeypatch.setattr(daemon, "_MOMENT_S", 0.05)

    def n_runs() -> int:
        return sum(isinstance(each, Session) for each in gc.get_objects())

    async def scenario() -> None:
        async with serving(net):
            for number in range(2):
                await works(net, tmp_path / f"out-{number}")
            async with asyncio.timeout(GUARD_S):
                while n_runs() > before:
                    await asyncio.sleep(0.05)

    before = n_runs()
    gc.disable()
    try:
        run(scenario())
    finally:
        gc.enable()


def test_calls_at_once_note_a_change_once(net: Network) -> None:
    name = PARTIES[0]

    async def scenario() -> None:
        async with serving(net, only=[name]) as servers:
            net.change(name, lambda fields: fields["policy"].update(min_k=3))
            changes = await asyncio.gather(*(servers[name].reload() for _ in range(5)))
            assert sum(map(bool, changes)) == 1

    run(scenario())
    noted = [line["event"] for line in lines_of(net.config(name).state_dir)]
    assert noted.count("configuration") == 1


def test_a_job_without_a_change_writes_no_status(net: Network, tmp_path: Path) -> None:
    """The file is written where the configuration has changed, and nowhere else."""
    status = net.config(PARTIES[0]).state_dir / STATUS

    async def scenario() -> tuple[int, int]:
        async with serving(net):
            before = status.stat().st_mtime_ns
            await works(net, tmp_path / "out")
            return before, status.stat().st_mtime_ns

    before, after = run(scenario())
    assert before == after


NOT_OF_STREAMS = ("Daemon._keep_account", "_AioCall._handle_status_once_received")
"""Tasks that outlive a run. Accounts are made after it, each in its time. gRPC's own task waits for the status of a
call: gRPC sometimes never ends this task of a cancelled call, though the call has ended (grpc/grpc issue 41875). An
open stream has other tasks, too: its reader at the client, its handler at the server.
"""


def tasks_of_streams() -> list[str]:
    """Name the tasks that are under way, but for those that a closed stream may leave."""
    names = [str(getattr(task.get_coro(), "__qualname__", task.get_coro())) for task in asyncio.all_tasks()]
    return sorted(name for name in names if name not in NOT_OF_STREAMS)


async def fewest_tasks_of_streams(most: int) -> list[str]:
    """Return the tasks once no more than so many are left, or when a stream that says nothing would have ended."""
    patience_s = 1.5 * Timeouts().hello_s
    for _ in range(int(patience_s / 0.1)):
        if len(tasks_of_streams()) <= most:
            break
        await asyncio.sleep(0.1)
    return tasks_of_streams()


def test_a_failed_run_leaves_no_streams_behind(net: Network, tmp_path: Path) -> None:
    """A failed run closes what it opened: else every failure would cost a stream for ever."""

    async def fail(i: int) -> None:
        async with Conductor(net.task, net.coordinator, lambda party, turn: None) as conductor:
            await conductor.connect()
            await conductor.submit()
            await conductor._tell_all(Start())
            await asyncio.sleep(0.01 * i)
            raise PartyError("result-mismatch", "says the test")

    async def scenario() -> None:
        async with serving(net):
            idle = tasks_of_streams()
            await works(net, tmp_path / "before")
            served = await fewest_tasks_of_streams(len(idle))
            for i in range(3):
                with pytest.raises(JobFailed):
                    await fail(i)
            await works(net, tmp_path / "after")
            assert await fewest_tasks_of_streams(len(served)) == served

    run(scenario())


def test_a_second_coordinator_does_not_touch_a_running_job(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            conductor = Conductor(net.task, net.coordinator, lambda party, turn: None)
            await conductor.connect()
            async with conductor:
                await conductor.submit()
                for requests in (submit(net), [Start()], [Submit(RUN, Piece("bundle", b"junk", True))]):
                    problem = await tell(net, PARTIES[1], *requests)
                    assert (problem.error_id, problem.party) == ("busy", PARTIES[1])
                await conductor.compute()
                conducted = await conductor.collect()
            assert isinstance(conducted.result, LkcResult)
            assert conducted.result.generalized.n_records == 60
            await works(net, tmp_path / "out")

    run(scenario())


def test_the_owner_sees_the_running_job(net: Network) -> None:
    seen: set[CurrentJob] = set()

    async def look(server: PartyServer) -> None:
        while True:
            if (job := server.current()) is not None:
                seen.add(job)
            await asyncio.sleep(0)

    async def scenario() -> None:
        async with serving(net) as servers:
            server = servers[PARTIES[0]]
            assert server.current() is None
            looking = asyncio.create_task(look(server))
            conductor = Conductor(net.task, net.coordinator, lambda party, turn: None)
            await conductor.connect()
            async with conductor:
                await conductor.submit()
                await conductor.compute()
                await conductor.collect()
            looking.cancel()

    run(scenario())
    assert {(job.job, job.job_sha256, job.coordinator) for job in seen} == {
        (net.task.job.name, net.task.digest.hex(), "coordinator")
    }
    assert {job.turn for job in seen} > {0}
    assert len({job.phase for job in seen}) > 2


def test_a_coordinator_that_leaves_frees_the_party(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net) as servers:
            for _ in range(3):
                calls: list[Calls] = []
                stream = await open_control(net, PARTIES[0], calls)
                for request in submit(net):
                    await stream.write(request)
                assert isinstance(await stream.read(), control.Allowed)
                await stream.write(control.Read())
                assert isinstance(await stream.read(), control.Admitted)
                await calls[0].close()  # no farewell
                await stream.close()
                async with asyncio.timeout(GUARD_S):
                    while not all(server.idle for server in servers.values()):
                        await asyncio.sleep(0.01)
            await works(net, tmp_path / "out")

    run(scenario())


def test_peers_are_connected_once_all_parties_allow_the_job(net: Network, tmp_path: Path) -> None:
    """Earlier, a peer would hear from us of a job that a policy refuses; later, all would wait for connections."""
    done: list[str] = []

    class Noting(Dialled):
        def begin(self, peer: str, address: str) -> None:
            done.append(f"begin {peer}")
            super().begin(peer, address)

    class Noted(Daemon):
        def __init__(self, config: Any, dialing: Any, refresh: Any) -> None:
            super().__init__(config, lambda used: Noting(dialing(used), lambda _, stream: stream), refresh)

        async def conduct(self, caller: str, requests: Any, emit: Any) -> None:
            async def noted(event: control.Event) -> None:
                done.append(type(event).__name__)
                await emit(event)

            await super().conduct(caller, requests, noted)

    async def scenario() -> None:
        async with serving(net, {PARTIES[0]: Noted}):
            await works(net, tmp_path / "out")

    run(scenario())
    assert done[:4] == ["Allowed", *(f"begin {peer}" for peer in PARTIES[1:]), "Admitted"]


def test_a_daemon_that_stops_lets_an_ended_run_close(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers hear why the run ended, though telling them takes longer than gRPC waits for calls.

    The daemon was stopped: the coordinator has not gone away, and gets no blame in the audit.
    """
    slow_s, told = 3.0, []

    async def slowly(session: Session, problem: Problem) -> None:
        await asyncio.sleep(slow_s)
        await fail(session, problem)
        told.append((problem.error_id, problem.message, problem.named))

    monkeypatch.setattr(daemon, "fail", slowly)

    async def scenario() -> int:
        calls: list[Calls] = []
        async with serving(net, only=PARTIES[:1]):
            stream = await open_control(net, PARTIES[0], calls)
            for request in submit(net):
                await stream.write(request)
            assert isinstance(await stream.read(), control.Allowed)
        n_told = len(told)  # when the daemon has stopped
        await calls[0].close()
        return n_told

    assert run(scenario()) == 1
    assert told == [("peer-lost", f"{PARTIES[0]} was stopped", PARTIES[0])]
    (failure,) = [line for line in lines_of(net.config(PARTIES[0]).state_dir) if line["event"] == "failure"]
    assert (failure["error"], failure["message"]) == told[0][:2]


def test_why_a_job_failed_is_noted_when_its_coordinator_leaves_meanwhile(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    """The note waits for a thread while the stream is cancelled, as when the coordinator's process dies."""
    net.config(PARTIES[0]).state_dir.mkdir()

    class Junk:
        async def get(self) -> Start:
            return Start()

    async def nobody_listens(event: control.Event) -> None:
        pass

    async def scenario() -> None:
        with ThreadPoolExecutor(1) as threads:
            asyncio.get_running_loop().set_default_executor(threads)
            busy = threading.Event()
            threads.submit(busy.wait)
            conducting = Daemon(net.config(PARTIES[0]), None)  # type: ignore[arg-type]  # no peer is called
            stream = asyncio.create_task(conducting.conduct("coordinator", Junk(), nobody_listens))
            await asyncio.sleep(0.05)
            stream.cancel()
            await asyncio.wait({stream})
            busy.set()
            while conducting.jobs.taken:
                await asyncio.sleep(0.01)

    run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "peer-protocol: a job begins with its bundle"
    ]


def test_the_same_refusal_of_the_same_peer_is_told_once_a_minute(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    """10,000 refusals of a peer that may start no jobs: two lines, and the second has their number."""
    net.config(PARTIES[0]).state_dir.mkdir()
    told: list[control.Event] = []

    class Silent:
        async def get(self) -> None:
            return None

    async def hear(event: control.Event) -> None:
        told.append(event)

    async def scenario() -> None:
        daemon = Daemon(net.config(PARTIES[0]), None)  # type: ignore[arg-type]  # no peer is called
        for _ in range(10_000):
            await daemon.conduct("stranger", Silent(), hear)
        await daemon.ended()

    run(scenario())
    assert len(told) == 10_000
    assert [record.getMessage() for record in caplog.records] == [
        "policy-refused: stranger may not start jobs here (`policy.coordinators`)",
        "9,999 times more told to stranger: policy-refused: stranger may not start jobs here (`policy.coordinators`)",
    ]


def test_a_policys_refusals_are_told_once_a_minute_too(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    net.change(PARTIES[0], lambda fields: fields["policy"].update(min_k=1000))

    async def scenario() -> None:
        async with serving(net, only=[PARTIES[0]]):
            for _ in range(5):
                assert (await answer(net, "coordinator", PARTIES[0], net.bundle.encoded)).failed.problem

    with caplog.at_level(logging.ERROR):
        run(scenario())
    said = [record.getMessage() for record in caplog.records if "policy-refused" in record.getMessage()]
    assert len(said) == 2
    assert said[1].startswith("4 times more told to coordinator: policy-refused: ")
