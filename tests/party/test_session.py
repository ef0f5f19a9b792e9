"""The table of a session: every job comes to an end, whatever breaks, and a good one in the order it should."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import party.session
from coordinator.run import conduct
from jobs.errors import PartyError, Problem
from party.net.control import Cancel, Piece, Read, Release, Start, Stored, Submit
from party.requests import Left
from party.session import ENDS, TABLE, Trigger, row_of, take_step
from party.states import Broke, Next, Session, State, Submitted
from tests.support.duplex import run
from tests.support.network import sample_network, serving
from tests.support.samples import PARTIES

PIECE = Piece("bundle", b"", True)
REQUESTS: tuple[Trigger, ...] = (
    Submit(b"r", PIECE),
    Read(),
    Start(),
    Release(PIECE),
    Stored(b""),
    Cancel(),
    Left(),
)


def kinds(state: type[State]) -> set[type[State]]:
    """The states below this one, a kind of another state included."""
    return {each for kind in state.__subclasses__() for each in {kind, *kinds(kind)}}


STATES = kinds(State)


def follow(states: set[type[State]]) -> set[type[State]]:
    """The states that one row leads to from these, in a run in which nothing breaks."""
    return {row.after for row in TABLE.values() if row.state in states and row.trigger is not Broke}


def test_every_state_is_reached_and_leads_to_an_end() -> None:
    reached: set[type[State]] = {Submitted}
    while not follow(reached) <= reached:
        reached |= follow(reached)
    assert {row.after for row in TABLE.values()} | reached == STATES
    ending: set[type[State]] = {
        row.state for row in TABLE.values() if row.after in ENDS and row.trigger is not Broke
    }
    while more := {row.state for row in TABLE.values() if row.after in ending} - ending:
        ending |= more
    assert ending == STATES - set(ENDS)


def test_only_ends_have_no_way_out_and_from_everywhere_else_a_job_can_break() -> None:
    assert STATES - {row.state for row in TABLE.values()} == set(ENDS)
    for state in STATES - set(ENDS):
        assert row_of(state, Broke(Problem("bug", "says the test"))).after in ENDS


def test_a_state_waits_for_the_coordinator_or_for_nothing() -> None:
    """In a state where the table goes on at once, no row is for what is said meanwhile."""
    for state in STATES - set(ENDS):
        triggers = {row.trigger for row in TABLE.values() if row.state is state} - {Broke}
        assert triggers
        assert triggers == {Next} or Next not in triggers


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_what_the_table_does_not_list_is_refused(request_: Trigger) -> None:
    refused = [state for state in STATES if (state, type(request_)) not in TABLE]
    assert refused
    for state in refused:
        with pytest.raises(PartyError) as caught:
            row_of(state, request_)
        if isinstance(request_, Cancel | Left):
            assert caught.value.problem.error_id == "cancelled"
        else:
            assert caught.value.problem.error_id == "peer-protocol"
            assert caught.value.problem.message == f"{type(request_).__name__} is out of order"


@pytest.mark.parametrize(
    ("deliver", "ending"),
    [("all", ["check", "keep"]), ("coordinator", ["note", "keep"])],
)
def test_the_order_of_a_good_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deliver: str, ending: list[str]
) -> None:
    """As the daemons of a job do it. Nobody is asked for a part: parts follow the end of the protocol."""
    done: dict[str, list[str]] = defaultdict(list)

    async def recorded(session: Session, trigger: Trigger) -> None:
        done[session.me].append(row_of(type(session.state), trigger).action.__name__)
        await take_step(session, trigger)

    monkeypatch.setattr(party.session, "take_step", recorded)
    net = sample_network(tmp_path / "net", deliver=deliver)

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert done.keys() == set(PARTIES)
    for actions in done.values():
        assert actions == ["ask", "load", "compute", "announce", *ending]


def test_the_phases_are_those_that_logs_and_problems_name() -> None:
    phases = [row.phase for row in TABLE.values() if row.trigger is not Broke]
    assert list(dict.fromkeys(phases)) == ["admit", "load", "connect", "deliver", "commit"]
