"""Checks of a party before it admits a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import Problem
from party.net import control
from party.net.client import Calls
from tests.support.by_hand import open_control, submit, tell, until_the_end
from tests.support.duplex import run
from tests.support.network import Network, sample_network, serving
from tests.support.samples import PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def test_an_unknown_peer_of_the_job_is_named(net: Network) -> None:
    net.change(PARTIES[1], lambda fields: fields["peers"].pop(PARTIES[2]))

    async def scenario() -> Problem:
        async with serving(net, only=PARTIES[1:2]):
            return await tell(net, PARTIES[1], *submit(net))

    problem = run(scenario())
    assert (problem.error_id, problem.party, problem.phase) == ("identity-unknown", PARTIES[1], "admit")
    assert f"no certificate of {PARTIES[2]}" in problem.message
    assert "party peers add" in problem.advice(to_owner=False)


def test_a_table_behind_a_link_that_leads_elsewhere_by_now_is_not_read(net: Network) -> None:
    """The run is charged to the table that the link led to when the job was allowed."""
    party = PARTIES[1]
    table = net.config(party).data.csv
    assert table is not None
    tables = [table.path.with_name(f"{month}.csv") for month in ("january", "february")]
    for each in tables:
        each.write_bytes(table.path.read_bytes())
    link = table.path.with_name("latest.csv")
    link.symlink_to(tables[0])
    net.change(party, lambda fields: fields["data"]["csv"].update(path=str(link)))

    async def scenario() -> Problem:
        calls: list[Calls] = []
        async with serving(net, only=[party]):
            stream = await open_control(net, party, calls)
            for request in submit(net):
                await stream.write(request)
            while not isinstance(await stream.read(), control.Allowed):
                pass
            link.unlink()
            link.symlink_to(tables[1])
            await stream.write(control.Read())
            events = await until_the_end(stream)
            await stream.close()
            await calls[0].close()
        (failed,) = [event for event in events if isinstance(event, control.Failed)]
        return failed.problem

    problem = run(scenario())
    assert (problem.error_id, problem.message) == ("data-unreadable", "the table changed while it was read")
    assert str(link.parent) not in str(problem.shared())
