"""Parties that blame others, jobs that name addresses, and names made for terminals."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import JobFailed, Problem
from party.admission import addresses_after_us
from party.cli.console import _Human, _JsonLines
from party.net.control import Start
from party.session import TABLE
from party.states import Admitted, Computed, Session
from protos import jointcut_pb2 as pb
from tests.support.by_hand import problem_of_run
from tests.support.duplex import run
from tests.support.hostile import answer, conducting, encoded_with, submission
from tests.support.jobs import bundle_of
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, Network, sample_network, serving
from tests.support.samples import PARTIES

A, B, C = PARTIES
LIE = Problem(
    "policy-refused", "C must be at most 1/10", A, "admit", remedy="at hospital-a: set policy.max_c to 1"
)


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


@pytest.mark.by_lot(1)
@pytest.mark.parametrize(
    ("on_the_mesh", "silent"),
    [(False, False), (True, False), (True, True)],
    ids=["told", "mesh", "mesh alone"],
)
def test_whoever_blames_another_is_named(
    net: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_the_mesh: bool, silent: bool
) -> None:
    """Nobody is named on the word of those who only heard of it, if the first to tell says nothing itself."""
    row = TABLE[Admitted, Start]

    async def lying(session: Session, admitted: Admitted, start: Start) -> Any:
        if session.me != B:
            return await row.action(session, admitted, start)
        if on_the_mesh:
            await session.mesh.connect(
                addresses_after_us(session.config, session.task), session.config.timeouts.connect_s
            )
            await asyncio.sleep(0.2)
            await session.mesh.abort(LIE)
            await asyncio.sleep(0.2)
        if silent:
            await asyncio.sleep(GUARD_S)
        raise JobFailed(LIE)

    monkeypatch.setitem(TABLE, (Admitted, Start), type(row)(Admitted, Start, "connect", lying, Computed))

    problem = problem_of_run(net, tmp_path / "out")
    if silent:
        assert (problem.party, problem.about) == (None, None)
        heard = rf"policy-refused \(phase admit\): passed on by ({A}|{C}): {B} says of {A}: C must be"
        assert re.match(heard, str(problem))
    else:
        assert (problem.party, problem.about) == (B, A)
        assert str(problem).startswith(f"policy-refused ({B}, phase admit): {B} says of {A}: ")
    assert "max_c" not in str(problem)


def test_a_job_does_not_say_where_a_party_connects_to(net: Network) -> None:
    """Unless its owner wants that; then all that listens somewhere, or does not, is told in the same words."""
    net.change(A, lambda fields: fields["peers"][B].pop("address"))
    net.change(A, lambda fields: fields.update(timeouts={"connect_s": 1}))

    async def told(address: str) -> Problem:
        job = json.loads(net.bundle.job.canonical())
        job["parties"][B]["address"] = address
        async with conducting(net, "coordinator", A) as call, asyncio.timeout(GUARD_S):
            await call.write(submission(bundle_of(job).encoded))
            event: pb.Event = await call.read()
            if event.WhichOneof("kind") == "allowed":
                await call.write(pb.Request(read=pb.Read()))
                event = await call.read()
            if event.WhichOneof("kind") == "admitted":
                await call.write(pb.Request(start=pb.Start()))
                event = await call.read()
            return Problem.received(json.loads(event.failed.problem))

    async def scenario(addresses: list[str]) -> list[Problem]:
        async with serving(net, only=[A, C]):
            return [await told(address) for address in addresses]

    with closing(socket.create_server((HOST, 0))) as silent:
        (nobody,) = free_ports(["nobody"]).values()
        addresses = [f"{HOST}:{nobody}", f"{HOST}:{silent.getsockname()[1]}", net.addresses[A]]
        refused = run(scenario(addresses))
        assert {problem.error_id for problem in refused} == {"address-missing"}
        net.change(A, lambda fields: fields.update(addresses_from_jobs=True))
        allowed = run(scenario(addresses))
    assert len(set(allowed)) == 1
    assert (allowed[0].error_id, allowed[0].message) == ("peer-unreachable", f"{A} cannot reach {B}")


def test_names_of_a_job_reach_no_terminal_raw(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    """A coordinator's columns, with what sets a terminal's title and turns text around, and very many of them."""
    hostile = {f"\x1b]0;owned\x07\u202e{i}": {"role": "plain"} for i in range(900)}
    content = encoded_with(json.loads(net.bundle.job.canonical()), hostile)

    async def scenario() -> pb.Event:
        async with serving(net, only=[A]):
            return await answer(net, "coordinator", A, content)

    with caplog.at_level(logging.ERROR):
        problem = Problem.told(run(scenario()).failed.problem, A)
    assert problem.error_id == "job-invalid"
    assert problem.message.isprintable()
    records = [record for record in caplog.records if "job-invalid" in record.getMessage()]
    assert records
    for record in records:
        for line in (_Human().format(record), _JsonLines().format(record)):
            assert line.isprintable()
            assert len(line) < 10_000
