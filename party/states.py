"""The states of a job at a party, each with what a session in it has, and what a session has in all of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from jobs.answers import Answering
from jobs.data.tables import Table
from jobs.errors import Problem
from jobs.signatures import Signed
from jobs.task import Account, Result, Task
from party.auditing import RunAudit
from party.net.control import Emit, Start
from party.net.link import RunKey
from party.net.mesh import Mesh
from party.net.runner import Meter
from party.owner.config import PartyConfig
from party.owner.in_force import Refresh
from party.owner.signing import Signer
from party.requests import Heard, Requests, hear

log = logging.getLogger("party")


@dataclass(frozen=True)
class State:
    """Where a session is."""


@dataclass(frozen=True)
class Submitted(State):
    """The one place for a job is ours, and the bundle is here."""


@dataclass(frozen=True)
class Allowed(State):
    """Policy and ledger allow the job."""

    account: Answering = field(repr=False)


@dataclass(frozen=True)
class Approved(State):
    """The owner, where the policy has the owner asked, approved the job."""

    account: Answering = field(repr=False)


@dataclass(frozen=True)
class Admitted(State):
    """The table is read and fits the job."""

    table: Table = field(repr=False)
    account: Account = field(repr=False)


@dataclass(frozen=True)
class Begun(State):
    """The run is started, and counted where so many were approved."""

    table: Table = field(repr=False)
    account: Account = field(repr=False)
    start: Start


@dataclass(frozen=True)
class Computed(State):
    """The protocol is over. signed: by every party. n_matched: known in vertical runs only."""

    table: Table = field(repr=False)
    account: Account = field(repr=False)
    result: Result = field(repr=False)
    signed: Sequence[Signed] = field(repr=False)
    n_matched: int | None = field(repr=False)
    meter: Meter = field(repr=False)


@dataclass(frozen=True)
class Finished(State):
    """The coordinator knows that the protocol is over. parts: by name, what it was sent of ours."""

    run: Computed
    parts: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True)
class Checked(State):
    """What was delivered is set aside. From here on the job is the parties' alone.

    release:  the digest of the files, 32 bytes.
    agreed:   whether the files are here; else the digest is what the coordinator said of files that it alone has.
    """

    run: Computed
    release: bytes
    agreed: bool


@dataclass(frozen=True)
class Delivered(State):
    """All parties keep the release: it is in place, here or at the coordinator."""

    run: Computed


@dataclass(frozen=True)
class Closed(State):
    """Nothing more is to be done."""


@dataclass(frozen=True)
class Failed(State):
    """The job ended in a problem."""


@dataclass
class Session:
    """One run of one job at this party."""

    me: str
    task: Task
    coordinator: str
    config: PartyConfig
    """The configuration it was admitted under."""
    refresh: Refresh
    mesh: Mesh
    requests: Requests
    emit: Emit
    unfinished: ExitStack
    """What has to be undone if the session ends now."""
    audit: RunAudit
    """Its lines in the audit: without them nothing is done."""
    signer: Signer | None = field(default=None, repr=False)
    """Who signs what, from the time it is allowed."""
    account: Answering | None = field(default=None, repr=False)
    """Where its answers and charges are noted, from the time it is allowed."""
    kept: Computed | None = field(default=None, repr=False)
    """What came to a release here, or may have at the coordinator alone: the owner's account is made of it."""
    problem: Problem | None = None
    """Why it failed."""
    state: State = field(default_factory=Submitted)
    phase: str = "submit"
    """For people: the phase of the row that is being done, or of the protocol inside it."""
    n_turns: int = 0
    """For people: iterations of the protocol so far."""
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def key(self) -> RunKey:
        return self.mesh.key

    async def hear(self) -> Heard:
        """Wait for the coordinator's next request. Raises TransportError if it says nothing for too long."""
        return await hear(self.requests, self.coordinator, self.config.timeouts.coordinator_s)

    def log(self, text: str) -> None:
        """Note something in the log, with this run's fields."""
        log.info("%s", text, extra={"job": self.task.job.name, "phase": self.phase})


@dataclass(frozen=True, slots=True)
class Next:
    """Nothing has to happen first."""


@dataclass(frozen=True, slots=True)
class Broke:
    """Something went wrong, here or at a peer."""

    problem: Problem
