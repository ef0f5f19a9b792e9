"""Requests of a coordinator, and their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Problem
from jobs.release.csv import TABLE
from party.net.control import Cancel, Piece, Release, Request, Start, Submit
from party.requests import out_of_order
from tests.support.by_hand import RUN, submit, tell, works
from tests.support.duplex import run
from tests.support.network import Network, sample_network, serving
from tests.support.samples import PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("requests", "says"),
    [
        ([Start()], "a job begins with its bundle"),
        ([Cancel()], "a job begins with its bundle"),
        ([Release(Piece(TABLE, b"", True))], "a job begins with its bundle"),
        ([Submit(b"short", Piece("bundle", b"{}", True))], "a job begins with its bundle"),
        ([Submit(RUN, Piece("bundle", b"{", False)), Start()], "a job begins with its bundle"),
        ([Submit(RUN, Piece("bundle", b"{}", True))], "the bundle has another format"),
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
    import party.requests

    monkeypatch.setattr(party.requests, "MAX_BUNDLE_BYTES", 100)

    async def scenario() -> Problem:
        async with serving(net):
            return await tell(net, PARTIES[0], *submit(net))

    assert "more than 100 bytes" in run(scenario()).message


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (Problem("peer-lost", "hospital-b went away", "hospital-b"), "; it says: peer-lost at hospital-b"),
        (Problem("result-mismatch", "they differ"), "; it says: result-mismatch"),
        (Problem("cancelled", "a different party ended the job", "hospital-b"), ""),
        (Problem("peer-lost", "x", "hospital\x1b[2J-b"), "; it says: peer-lost at hospital"),
    ],
)
def test_a_cancellation_says_why_on_the_coordinators_word(problem: Problem, says: str) -> None:
    error = out_of_order(Cancel(problem.for_others())).problem
    assert error.error_id == "cancelled"
    assert error.message.startswith(f"the coordinator cancelled the job{says}")
    assert error.message.isprintable()


@pytest.mark.parametrize("text", ["", "junk", "[]", "{}", '{"error": "no such id"}'])
def test_a_cancellation_that_says_nothing_we_understand(text: str) -> None:
    assert out_of_order(Cancel(text)).problem.message == "the coordinator cancelled the job"
