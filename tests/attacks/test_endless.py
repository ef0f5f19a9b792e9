"""Messages, files and results that never end: what they are sent to holds a bounded part of them and ends the job."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from coordinator.conduct import Conductor
from jobs.errors import PartyError, Problem
from jobs.release.csv import REPORT
from party.net import control
from party.net.control import Event, Piece, ResultPart
from protos import jointcut_pb2 as pb
from protos import jointcut_pb2_grpc as rpc
from tests.support.calls import raw
from tests.support.duplex import run
from tests.support.hostile import MOST_MB, admit, conducting, memory_mb, submission
from tests.support.network import GUARD_S, Network, processes, sample_network, serving
from tests.support.samples import PARTIES
from tests.support.saying import saying, when

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def endless(kind: str) -> Iterator[tuple[str, bytes, bool]]:
    """Steps, payloads and whether they are the last part: 900 MiB, or 10,000 empty ones."""
    for number in range(900 if kind == "huge" else 10_000):
        yield {
            "huge": ("x" * 80, bytes(1 << 20), False),
            "messages": (f"{number:080d}", b"", True),
            "parts": ("x" * 80, b"", False),
        }[kind]


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["huge", "messages", "parts"])
def test_messages_of_a_peer_that_never_end(net: Network, kind: str) -> None:
    """While C waits for A, B sends what no step prescribes."""
    key = {"job": net.bundle.digest, "run": os.urandom(16)}

    async def flood(call: Any) -> None:
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError):
            async with asyncio.timeout(12):
                for sequence, (step, payload, last) in enumerate(endless(kind), 1):
                    fields = {"sequence": sequence, "step": step, "payload": payload, "last": last}
                    await call.write(pb.Envelope(**key, sender=B, recipient=C, **fields))

    async def scenario() -> None:
        async with conducting(net, "coordinator", C) as job, raw(net, A, C) as a, raw(net, B, C) as b:
            await job.write(submission(net.bundle.encoded, run=key["run"]))
            await admit(job)
            await job.write(pb.Request(start=pb.Start()))
            streams = {name: rpc.MeshStub(channel).Exchange() for name, channel in ((A, a), (B, b))}
            for name, stream in streams.items():
                hello = {"sequence": 0, "step": "link/hello", "last": True}
                await stream.write(pb.Envelope(**key, sender=name, recipient=C, **hello))
            await flood(streams[B])

    with processes(net, [C]) as daemons:
        before = memory_mb(daemons, C, "VmHWM")
        run(scenario())
        assert memory_mb(daemons, C, "VmHWM") < before + 200  # a queue of each peer is full


def test_a_file_that_never_ends(net: Network) -> None:
    async def scenario() -> Problem:
        conductor = Conductor(net.task, net.coordinator, lambda party, turn: None)
        await conductor.connect()
        try:
            await conductor.submit()
            await conductor.compute()
            await conductor.collect()
            stream = conductor._members[A].stream
            with suppress(PartyError):
                for _ in range(1000):
                    await stream.write(control.Release(Piece(REPORT, bytes(1 << 20), False)))
            async with asyncio.timeout(GUARD_S):
                while not isinstance(event := (await conductor._news.get())[1], control.Failed):
                    pass
            return event.problem
        finally:
            await conductor._close()

    with processes(net) as daemons:
        problem = run(scenario())
        assert memory_mb(daemons, A, "VmHWM") < MOST_MB
    assert (problem.error_id, problem.party) == ("peer-protocol", A)
    assert "more than the table and 64 MiB (`limits.delivery_mb`)" in problem.message


async def collected(conductor: Conductor) -> None:
    await conductor.connect()
    async with conductor:
        await conductor.submit()
        await conductor.compute()
        await conductor.collect()


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (control.Admitted, "sent a part of a result that is not due"),
        (ResultPart, "sent more than the 1 MiB of `limits.delivery_mb`"),
    ],
)
def test_results_of_a_party_that_never_end(net: Network, kind: type[Any], says: str) -> None:
    net.change("coordinator", lambda fields: fields.update(limits={"delivery_mb": 1}))
    sent = []

    def flood(event: Event) -> list[Event]:
        sent.append(event)
        return [ResultPart(Piece("result", bytes(1 << 20), False))] * 100

    async def scenario() -> Problem:
        async with serving(net, {A: saying(when(kind, flood))}):
            conductor = Conductor(net.task, net.coordinator, lambda party, turn: None)
            with pytest.raises(PartyError) as caught:
                await collected(conductor)
            held = conductor._members[A].results.get("result", b"")
            assert len(held) <= 1 << 20
            return caught.value.problem

    problem = run(scenario())
    assert sent
    assert (problem.error_id, problem.party) == ("peer-protocol", A)
    assert says in problem.message
    assert json.dumps(problem.shared())
