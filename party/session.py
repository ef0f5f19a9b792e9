"""The life of a job at a party, as an explicit table: (state, event) → state."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from party.errors import PartyError


class State(Enum):
    """Where a session is."""

    NEW = "new"
    ADMITTED = "admitted"
    RUNNING = "running"
    FINISHED = "finished"
    CHECKED = "checked"
    DELIVERED = "delivered"
    FAILED = "failed"


class Trigger(Enum):
    """What happens to a session."""

    ADMIT = "admit"
    START = "start"
    FINISH = "finish"
    FETCH = "fetch"
    CHECK = "check"
    DELIVER = "deliver"
    FAIL = "fail"


TRANSITIONS: Mapping[tuple[State, Trigger], State] = {
    (State.NEW, Trigger.ADMIT): State.ADMITTED,
    (State.ADMITTED, Trigger.START): State.RUNNING,
    (State.RUNNING, Trigger.FINISH): State.FINISHED,
    (State.FINISHED, Trigger.FETCH): State.FINISHED,
    (State.FINISHED, Trigger.CHECK): State.CHECKED,
    (State.CHECKED, Trigger.DELIVER): State.DELIVERED,
    (State.NEW, Trigger.FAIL): State.FAILED,
    (State.ADMITTED, Trigger.FAIL): State.FAILED,
    (State.RUNNING, Trigger.FAIL): State.FAILED,
    (State.FINISHED, Trigger.FAIL): State.FAILED,
    (State.CHECKED, Trigger.FAIL): State.FAILED,
}
"""Everything else is a request out of order and refused."""


def next_state(state: State, trigger: Trigger) -> State:
    """Return the state that follows. Raises PartyError for a trigger the table does not list."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise PartyError(
            "peer-protocol", f"`{trigger.value}` is out of order: the job is {state.value}"
        ) from None
