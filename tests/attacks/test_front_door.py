"""Strangers, peers without rights and silent coordinators try to make a party hold things, or keep it from
working.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest

from jobs.errors import Problem
from jobs.owner.objections import check_policy
from party import admission
from protos import jointcut_pb2 as pb
from protos import jointcut_pb2_grpc as rpc
from tests.support.by_hand import works
from tests.support.calls import raw
from tests.support.duplex import run
from tests.support.hostile import MOST_MB, admit, answer, conducting, file_limits, memory_mb, submission
from tests.support.network import GUARD_S, Network, processes, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def said(event: pb.Event) -> Problem:
    assert event.WhichOneof("kind") == "failed", event
    return Problem.received(json.loads(event.failed.problem))


def test_bundles_of_a_peer_without_rights_are_not_kept(net: Network) -> None:
    """16 streams of 32 MiB each that never end. The daemon keeps less than an eighth."""

    async def flood() -> None:
        async with raw(net, B, A) as channel:
            for _ in range(16):
                call = rpc.ControlStub(channel).Conduct()
                with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    for _ in range(32):
                        await call.write(submission(bytes(1 << 20), last=False))

    with processes(net, [A]) as daemons:
        before = memory_mb(daemons, A, "VmHWM")
        run(flood())
        assert memory_mb(daemons, A, "VmHWM") < before + 64


def test_a_message_that_inflates_is_not_inflated(net: Network) -> None:
    """192 MiB of zeros in a sixth of a MiB of gzip: gRPC's bound is on what comes out.

    The stream ends while it is still written to, so its writer may see that it was reset before it sees why.
    """

    async def inflating() -> grpc.StatusCode:
        async with raw(net, B, A) as channel:
            call = rpc.MeshStub(channel).Exchange(compression=grpc.Compression.Gzip)
            with suppress(grpc.aio.AioRpcError):
                await call.write(pb.Envelope(sender=B, payload=bytes(192 << 20)))
            return await call.code()

    with processes(net, [A]) as daemons:
        before = memory_mb(daemons, A, "VmHWM")
        assert run(inflating()) in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL)
        assert memory_mb(daemons, A, "VmHWM") < before + 64


def test_a_peer_without_rights_hears_one_sentence_whatever_the_job_says(net: Network) -> None:
    bundles = [net.bundle.encoded, b"{}", b"\xff" * 100, bytes(3 << 20)]

    async def scenario() -> list[Problem]:
        async with serving(net, only=[A]):
            return [said(await answer(net, B, A, bundle)) for bundle in bundles]

    problems = run(scenario())
    assert len(set(problems)) == 1
    assert (problems[0].error_id, problems[0].party) == ("policy-refused", A)
    assert problems[0].message == f"{B} may not start jobs here (`policy.coordinators`)"


def test_a_peer_without_rights_waits_for_no_turn(net: Network) -> None:
    async def scenario() -> tuple[grpc.StatusCode, str]:
        async with serving(net, only=[A]), raw(net, B, A) as channel:
            call = rpc.ControlStub(channel).Wait()
            with suppress(grpc.aio.AioRpcError):
                await call.write(pb.StillHere())
            return await call.code(), str(await call.details())

    code, details = run(scenario())
    assert code == grpc.StatusCode.PERMISSION_DENIED
    assert f"{B} may not start jobs here" in details


def test_whoever_comes_while_a_job_is_done_hears_that_and_no_more(net: Network) -> None:
    async def scenario() -> tuple[list[Problem], Problem]:
        async with serving(net, only=[A]), conducting(net, "coordinator", A) as first:
            await first.write(submission(b"{", last=False))
            while said(await answer(net, "coordinator", A, b"{}")).error_id != "busy":
                await asyncio.sleep(0.01)
            again = [said(await answer(net, "coordinator", A, b)) for b in (b"{}", net.bundle.encoded)]
            return again, said(await answer(net, B, A, b"{}"))

    again, without_rights = run(scenario())
    assert {problem.error_id for problem in again} == {"busy"}
    assert again[0] == again[1]
    assert without_rights.error_id == "policy-refused"  # not even that a job is done


@pytest.mark.parametrize(
    ("timeouts", "bundle", "start", "says"),
    [
        ({"submit_s": 0.3}, False, False, "no whole bundle from coordinator within 0.3 s"),
        ({"coordinator_s": 0.3}, True, False, "no request from coordinator within 0.3 s"),
        pytest.param(*({"job_s": 3}, True, False, "the job was not over within 3 s"), marks=pytest.mark.more),
        ({"job_s": 3}, True, True, "the job was not over within 3 s"),
    ],
)
def test_a_silent_coordinator_frees_the_party(
    net: Network, tmp_path: Path, timeouts: dict[str, float], bundle: bool, start: bool, says: str
) -> None:
    net.change(A, lambda fields: fields.update(timeouts=timeouts))

    async def silent() -> Problem:
        async with serving(net, only=[A]), conducting(net, "coordinator", A) as call:
            await call.write(submission(net.bundle.encoded if bundle else b"{", last=bundle))
            if bundle:
                await admit(call)
            if start:
                await call.write(pb.Request(start=pb.Start()))
            async with asyncio.timeout(GUARD_S):
                return said(await call.read())

    problem = run(silent())
    assert (problem.error_id, problem.party, problem.message) == ("peer-timeout", A, says)
    net.change(A, lambda fields: fields.pop("timeouts"))

    async def next_job() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    run(next_job())


def test_silent_streams_of_a_peer_do_not_pile_up(net: Network) -> None:
    """2,000 are opened; the connection has 16 at most, and all but one are refused at once."""
    net.change(A, lambda fields: fields.update(timeouts={"hello_s": 1}))

    async def scenario() -> None:
        async with raw(net, B, A) as channel:
            calls = [rpc.MeshStub(channel).Exchange() for _ in range(2000)]
            async with raw(net, "coordinator", A) as other, asyncio.timeout(GUARD_S):
                await rpc.ControlStub(other).Describe(pb.DescribeRequest())
            async with asyncio.timeout(GUARD_S):
                codes = [await call.code() for call in calls]
        expected = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT}
        assert set(codes) == expected | {grpc.StatusCode.FAILED_PRECONDITION}  # the one that was waited for

    with processes(net, [A]) as daemons:
        run(scenario())
        assert memory_mb(daemons, A, "VmHWM") < MOST_MB


def test_idle_connections_lock_nobody_out_for_long(net: Network) -> None:
    """1,200 of strangers at a daemon that was started with 256 files."""
    host, port = net.addresses[A].rsplit(":", 1)

    async def asks() -> float:
        since = time.monotonic()
        while True:
            async with raw(net, B, A) as channel:
                with suppress(grpc.aio.AioRpcError):
                    await rpc.ControlStub(channel).Describe(pb.DescribeRequest(), timeout=3)
                    return time.monotonic() - since

    with ExitStack() as strangers, file_limits(256), processes(net, [A]), file_limits(4096):
        for _ in range(1200):
            strangers.enter_context(socket.create_connection((host, int(port)), GUARD_S))

        async def guarded() -> float:
            async with asyncio.timeout(GUARD_S):
                return await asks()

        assert run(guarded()) < GUARD_S


def test_a_server_stops_although_strangers_hold_connections(net: Network) -> None:
    host, port = net.addresses[A].rsplit(":", 1)

    async def scenario() -> None:
        async with asyncio.timeout(8):  # gRPC would wait for the handshakes to time out
            async with serving(net, only=[A]):
                for _ in range(20):
                    idle.enter_context(socket.create_connection((host, int(port)), GUARD_S))
                await asyncio.sleep(0.1)

    with ExitStack() as idle:
        run(scenario())


def test_others_are_answered_while_taxonomies_are_read(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy opens the job's taxonomies, which takes seconds for the largest: not in the thread that answers."""
    begun, answered = asyncio.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    def slow(*asked: object) -> None:
        loops[0].call_soon_threadsafe(begun.set)
        assert answered.wait(GUARD_S)
        check_policy(*asked)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(admission, "check_policy", slow)

    async def scenario() -> pb.Event:
        loops.append(asyncio.get_running_loop())
        async with serving(net, only=[A]), raw(net, B, A) as channel, asyncio.timeout(GUARD_S):
            asked = asyncio.create_task(answer(net, "coordinator", A, net.bundle.encoded))
            await begun.wait()
            assert (await rpc.ControlStub(channel).Describe(pb.DescribeRequest())).name == A
            answered.set()
            return await asked

    assert run(scenario()).WhichOneof("kind") == "allowed"
