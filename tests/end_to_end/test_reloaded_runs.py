"""A running job goes on under the configuration that it was admitted under, whatever is taken over meanwhile."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coordinator.conduct import Conductor
from coordinator.run import conduct
from jobs.lkc.result import LkcResult
from party.net.control import Progress
from tests.support.calls import refused
from tests.support.duplex import run
from tests.support.network import Network, Processes, processes, sample_network
from tests.support.relays import relaying, until_waiting, with_relay
from tests.support.samples import PARTIES
from tests.support.waiting import until

A, B, C = PARTIES


@asynccontextmanager
async def reachable(net: Network, *, relayed: bool) -> AsyncIterator[Processes]:
    """Run real daemons, with a relay between them if asked."""
    if not relayed:
        with processes(net) as running:
            yield running
        return
    async with relaying(with_relay(net)) as relay:
        with processes(net) as running:
            await until_waiting(relay, *PARTIES)
            yield running


async def changed(net: Network, running: Processes) -> None:
    """Change every configuration, and let every daemon take the change over."""
    net.change(A, lambda fields: (fields["policy"].update(min_k=50), fields["peers"].pop(C)))
    net.change(B, lambda fields: fields.update(log_level="debug"))
    net.change(C, lambda fields: fields["policy"].update(min_k=50))
    for name in PARTIES:
        running.signal(name, signal.SIGHUP)
    await asyncio.gather(*(_taken_over(running, name) for name in (A, C)))


async def _taken_over(running: Processes, name: str) -> None:
    def said() -> bool:
        return any("reloaded: " in line["message"] for line in running.log_of_this_life(name))

    await asyncio.to_thread(until, said, name)


async def result_of(net: Network, running: Processes, *, disturbed: bool) -> bytes:
    """Run the job without a delivery; return the result, equal at all parties. No run ends while B is stopped."""
    begun = asyncio.Event()

    def on_progress(party: str, turn: Progress) -> None:
        if disturbed and not begun.is_set():
            running.signal(B, signal.SIGSTOP)
        begun.set()

    conductor = Conductor(net.task, net.coordinator, on_progress)
    await conductor.connect()
    async with conductor:
        await conductor.submit()
        computing = asyncio.create_task(conductor.compute())
        await begun.wait()
        if disturbed:
            await changed(net, running)
            assert not computing.done()
            running.signal(B, signal.SIGCONT)
            await _taken_over(running, B)
        await computing
        collected = await conductor.collect()
    assert isinstance(collected.result, LkcResult)
    return collected.result.encoded


@pytest.mark.by_lot(1)
@pytest.mark.parametrize("relayed", [False, True], ids=["direct", "over a relay"])
def test_a_run_outlives_a_changed_configuration(tmp_path: Path, *, relayed: bool) -> None:
    """Also a configuration without a peer of the run. The next job is refused."""
    net, twin = (sample_network(tmp_path / name / "net") for name in ("one", "twin"))

    async def scenario() -> None:
        async with reachable(twin, relayed=relayed) as running:
            undisturbed = await result_of(twin, running, disturbed=False)
        async with reachable(net, relayed=relayed) as running:
            assert await result_of(net, running, disturbed=True) == undisturbed
            problem = await refused(conduct(net.task, net.coordinator, tmp_path / "out"))
            assert (problem.error_id, problem.party) in {("policy-refused", A), ("policy-refused", C)}

    run(scenario())
