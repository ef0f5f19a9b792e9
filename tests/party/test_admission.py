"""Checks of a party before it admits a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import Problem
from tests.support.by_hand import submit, tell
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
