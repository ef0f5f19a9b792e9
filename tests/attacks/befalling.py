"""What befalls daemons and connections in a step of a run, and how a run must end then: whole, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.conduct import Conductor
from coordinator.run import conduct
from coordinator.simulate import lay_out
from jobs.data.sources import Csv
from jobs.errors import PartyError
from jobs.loading import open_task
from party.net.waiting import stopped, together
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, Network
from tests.support.samples import COLUMNS, joint_job

COORDINATOR = "coordinator"
PHASES = ("submit", "compute", "collect", "deliver")
"""The coordinator's steps before the commit, at the beginning of which something happens."""


def at(phase: str, happens: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen once, when the coordinator begins a step."""
    honest, done = getattr(Conductor, phase), []

    async def interrupted(self: Conductor, *rest: Any) -> Any:
        if not done:
            done.append(happens())
        return await honest(self, *rest)

    monkeypatch.setattr(Conductor, phase, interrupted)


def kept(net: Network) -> list[Path]:
    """What parties keep, hidden folders included."""
    return [path for party in net.roster for path in net.releases(party)]


async def ends(net: Network, out: Path) -> str:
    """How a job ends: the id of its error, or `ran`. It leaves all of a release or nothing."""
    before = kept(net)
    try:
        async with asyncio.timeout(GUARD_S):
            await conduct(net.task, net.coordinator, out)
    except PartyError as error:
        assert not out.exists()
        assert [path for path in out.parent.iterdir() if path.name.startswith(".")] == []
        assert kept(net) == before
        return error.problem.error_id
    assert len(kept(net)) == len(before) + len(net.roster)
    return "ran"


async def works_again(net: Network, out: Path) -> None:
    """The next job runs, once the last one is put away."""
    async with asyncio.timeout(GUARD_S):
        while (said := await ends(net, out)) != "ran":
            assert said in {"busy", "peer-unreachable"}
            await asyncio.sleep(0.5)


def impatient(net: Network) -> Network:
    for name in (*net.roster, COORDINATOR):
        timeouts = {"keepalive_s": 1, "connect_s": 3, "round_s": 25}
        net.change(name, lambda fields, said=timeouts: fields.update(timeouts=said))
    return net


class Proxy:
    """A port in front of a daemon. Armed, it does something once, to the connection that carries its n-th byte."""

    def __init__(self, target: int, port: int) -> None:
        self._target, self._port = target, port
        self.carried = 0
        self._kind, self._left = "", 0
        self._connections: set[asyncio.Task[None]] = set()

    def arm(self, kind: str, after: int) -> None:
        self._kind, self._left = kind, after

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, HOST, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await stopped(*self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ours = asyncio.current_task()
        assert ours is not None
        self._connections.add(ours)
        writers = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._target)
            writers.append(far_writer)
            await together(self._pump(reader, far_writer), self._pump(far_reader, writer))
        except (OSError, asyncio.CancelledError):
            for each in writers:
                each.transport.abort()
        finally:
            for each in writers:
                each.close()
            self._connections.discard(ours)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            self.carried += len(data)
            if self._kind and len(data) > self._left:
                kind, self._kind = self._kind, ""
                data = await self._harmed(kind, data)
            self._left = max(0, self._left - len(data))
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _harmed(self, kind: str, data: bytes) -> bytes:
        match kind:
            case "flip":
                return data[: self._left] + bytes([data[self._left] ^ 1]) + data[self._left + 1 :]
            case "swap":
                return data[len(data) // 2 :] + data[: len(data) // 2]
            case "delay":
                await asyncio.sleep(0.3)
                return data
            case "stall":
                await asyncio.Event().wait()
            case "reset":
                raise ConnectionResetError
        return b""


def behind_proxies(root: Path) -> tuple[Network, dict[str, Proxy]]:
    root.mkdir()
    task = open_task(jobs.bundle_of(joint_job(disclosure="sealed")))
    rows, roster = sample_rows(60), task.job.roster
    sources = {p: Csv(jobs.write_csv(root / f"{p}.csv", rows[i::3], COLUMNS)) for i, p in enumerate(roster)}
    ports, fronts = free_ports(roster), free_ports(roster)
    addresses = lay_out(root, task, sources, ports, {ports[p]: fronts[p] for p in roster})
    net = impatient(Network(root, task.bundle, addresses))
    return net, {p: Proxy(ports[p], fronts[p]) for p in roster}
