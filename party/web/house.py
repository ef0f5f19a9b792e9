"""What the owner's page shows of a daemon that runs, and what it may change there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from party.owner.config import PartyConfig
from party.queue import Place
from party.states import (
    Admitted,
    Allowed,
    Approved,
    Begun,
    Checked,
    Computed,
    Delivered,
    Finished,
    State,
    Submitted,
)

STAGES: Mapping[type[State], str] = {
    Submitted: "Policy and privacy ledger are asked",
    Allowed: "Its approval is looked up",
    Approved: "Our table is read",
    Admitted: "The coordinator is about to start it",
    Begun: "The parties compute",
    Computed: "The coordinator is told that the protocol is over",
    Finished: "The coordinator makes the release and delivers it",
    Checked: "The parties agree on the release",
    Delivered: "The release is kept",
}
"""What happens next in each state that a job goes through, in order."""


@dataclass(frozen=True)
class Present:
    """The job that has the place, at one moment. stage: of STAGES, from 1; 0 once it is over."""

    job: str
    job_sha256: str
    coordinator: str
    run: str
    parties: Sequence[str]
    began: datetime
    stage: int
    phase: str
    n_turns: int


@dataclass(frozen=True)
class House:
    """One daemon. why_not: why it would take no job now, in one word each."""

    config: Callable[[], PartyConfig]
    why_not: Callable[[], Sequence[str]]
    place: Place

    @property
    def present(self) -> Present | None:
        """What runs now; None before its bundle is here."""
        session = self.place.session
        if session is None:
            return None
        stages = list(STAGES)
        kind = type(session.state)
        return Present(
            session.task.job.name,
            session.task.digest.hex(),
            session.coordinator,
            session.key.run.hex(),
            session.task.job.roster,
            session.began,
            stages.index(kind) + 1 if kind in STAGES else 0,
            session.phase,
            session.n_turns,
        )
