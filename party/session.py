"""Life of a job at a party, as a table: the trigger and the action of each state, and the next state.

The table holds everything that affects the order. The actions are in the rooms that do the work. A state is a value
with the session's data so far; an action takes a state and returns the next state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from jobs.errors import Problem, TransportError
from party.admission import ask, load
from party.computation import compute
from party.delivery import announce, check, forgo, keep, note
from party.net.control import Read, Release, Start, Stored
from party.requests import Heard, Left, out_of_order
from party.states import (
    Admitted,
    Allowed,
    Broke,
    Checked,
    Closed,
    Computed,
    Failed,
    Finished,
    Next,
    Session,
    State,
    Submitted,
)

S = TypeVar("S", bound=State)
T = TypeVar("T")
N = TypeVar("N", bound=State)

Trigger: TypeAlias = Heard | Next | Broke


@dataclass(frozen=True)
class Row:
    """Row of the table. phase: name in logs and problems; a protocol has phases of its own inside."""

    state: type[State]
    trigger: type[Any]
    phase: str
    action: Callable[[Session, Any, Any], Awaitable[State]]
    after: type[State]


def _row(
    state: type[S],
    trigger: type[T],
    phase: str,
    action: Callable[[Session, S, T], Awaitable[N]],
    after: type[N],
) -> Row:
    """Return a row with an action from a state and a trigger to the next state."""
    return Row(state, trigger, phase, action, after)


async def abort(session: Session, state: State, broke: Broke) -> Failed:
    """Tell every peer why the run ends here."""
    session.problem = broke.problem
    await session.tell_peers(broke.problem)
    return Failed()


_ORDER = (
    _row(Submitted, Next, "admit", ask, Allowed),
    _row(Allowed, Read, "load", load, Admitted),
    _row(Admitted, Start, "connect", compute, Computed),
    _row(Computed, Next, "deliver", announce, Finished),
    _row(Finished, Release, "deliver", check, Checked),
    _row(Finished, Stored, "deliver", note, Checked),  # files go to the coordinator alone
    _row(Finished, Left, "deliver", forgo, Closed),
    _row(Checked, Next, "commit", keep, Closed),
)
_BREAKS = tuple(_row(state, Broke, "fail", abort, Failed) for state in dict.fromkeys(r.state for r in _ORDER))

TABLE: Mapping[tuple[type[State], type[Any]], Row] = {(r.state, r.trigger): r for r in _ORDER + _BREAKS}
"""Rows by state and trigger. An unlisted request is out of order and refused."""
ENDS = (Closed, Failed)
BINDING = (Checked,)
"""States in which our word to the peers binds us, with or without the coordinator, and for any duration."""


async def live(session: Session, until: tuple[type[State], ...] = ENDS) -> None:
    """Take a session on, row by row, to a given state or to its end. Raises the errors of actions."""
    while not isinstance(session.state, (*until, *ENDS)):
        await take_step(session, await _trigger(session))


async def _trigger(session: Session) -> Trigger:
    """Return the next trigger: at once where the table waits for nothing; else the coordinator's next request.

    Raises TransportError if the coordinator is silent where leaving is not allowed.
    """
    kind = type(session.state)
    if (kind, Next) in TABLE:
        return Next()
    try:
        return await session.hear()
    except TransportError:
        if (kind, Left) in TABLE:  # a silent coordinator counts as gone
            return Left()
        raise


async def take_step(session: Session, trigger: Trigger) -> None:
    """Do the action of the table. Raises PartyError for an unlisted trigger, and the errors of the action."""
    row = row_of(type(session.state), trigger)
    session.phase, session.turn = row.phase, 0
    session.state = await row.action(session, session.state, trigger)


def row_of(state: type[State], trigger: Trigger) -> Row:
    """Return the row of a state and a trigger. Raises PartyError without a row."""
    row = TABLE.get((state, type(trigger)))
    if row is None:
        raise out_of_order(trigger)
    return row


async def fail(session: Session, problem: Problem) -> None:
    """End an unfinished session in any state."""
    if not isinstance(session.state, ENDS):
        await take_step(session, Broke(problem))
