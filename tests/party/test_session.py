"""The state table of a session: what is listed, and that nothing else is possible."""

from __future__ import annotations

from itertools import product

import pytest

from party.errors import PartyError
from party.session import TRANSITIONS, State, Trigger, next_state

LIFE = {
    ("new", "admit"): "admitted",
    ("admitted", "start"): "running",
    ("running", "finish"): "finished",
    ("finished", "fetch"): "finished",
    ("finished", "check"): "checked",
    ("checked", "deliver"): "delivered",
    ("new", "fail"): "failed",
    ("admitted", "fail"): "failed",
    ("running", "fail"): "failed",
    ("finished", "fail"): "failed",
    ("checked", "fail"): "failed",
}


@pytest.mark.parametrize(("state", "trigger"), [*product(State, Trigger)])
def test_every_pair_is_a_step_of_a_jobs_life_or_refused(state: State, trigger: Trigger) -> None:
    expected = LIFE.get((state.value, trigger.value))
    if expected is not None:
        assert next_state(state, trigger) is State(expected)
        return
    with pytest.raises(PartyError) as caught:
        next_state(state, trigger)
    problem = caught.value.problem
    assert problem.error_id == "peer-protocol"
    assert problem.message == f"`{trigger.value}` is out of order: the job is {state.value}"


def test_every_state_is_reached_and_only_ends_have_no_way_out() -> None:
    assert {State.NEW, *TRANSITIONS.values()} == set(State)
    assert set(State) - {state for state, _ in TRANSITIONS} == {State.DELIVERED, State.FAILED}
