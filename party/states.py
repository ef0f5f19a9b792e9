"""The states of a job at a party, each with what a session in it has, and what a session has in all of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from jobs.data.tables import Table
from jobs.errors import PartyError, Problem
from jobs.owner.answers import Answering
from jobs.release.signatures import Signed
from jobs.task import Account, Result, Task
from party.net.control import Emit
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
    """The place of a session."""


@dataclass(frozen=True)
class Submitted(State):
    """The one place for a job is ours, and the bundle is here."""


@dataclass(frozen=True)
class Allowed(State):
    """Policy and ledger allow the job."""

    account: Answering = field(repr=False)


@dataclass(frozen=True)
class Admitted(State):
    """The table is read and fits the job."""

    table: Table = field(repr=False)
    account: Account = field(repr=False)


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
    """The coordinator knows that the protocol is over. parts: by name, what it fetched of ours."""

    run: Computed
    parts: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Checked(State):
    """The delivery is set aside. From here on the job is the parties' alone.

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
    """The coordinator has left, and nothing more is to be done."""


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
    """Steps that undo what is unfinished if the session ends now."""
    signer: Signer | None = field(default=None, repr=False)
    """The signers of the run, from the time it is allowed."""
    account: Answering | None = field(default=None, repr=False)
    """The account that answers and charges are noted in, from the time the job is allowed."""
    kept: Computed | None = field(default=None, repr=False)
    """The result that came to a release here, or may have at the coordinator alone: the owner's account is
    made of it.
    """
    problem: Problem | None = None
    """The reason that the session failed."""
    state: State = field(default_factory=Submitted)
    phase: str = "submit"
    """For people: the phase of the row that is being done, or of the protocol inside it."""

    @property
    def key(self) -> RunKey:
        return self.mesh.key

    async def hear(self) -> Heard:
        """Wait for the coordinator's next request. Raises TransportError if it says nothing for too long."""
        return await hear(self.requests, self.coordinator, self.config.timeouts.coordinator_s)

    def log(self, text: str) -> None:
        """Note something in the log, with this run's fields."""
        log.info("%s", text, extra={"job": self.task.job.name, "phase": self.phase})


@dataclass
class Place:
    """The one place for a job at a party. It is taken before the bundle is read, so that bundles do not pile up.

    session:  the job that has it, once its bundle is here.
    """

    taken: bool = False
    session: Session | None = None

    def take(self, me: str) -> None:
        """Raises PartyError if another job has it."""
        if self.taken:
            raise PartyError("busy", f"{me} is running another job", party=me)
        self.taken = True

    def leave(self) -> None:
        """Give the place back; whoever took it does."""
        self.taken, self.session = False, None


@dataclass(frozen=True, slots=True)
class Next:
    """Nothing has to happen first."""


@dataclass(frozen=True, slots=True)
class Broke:
    """Something went wrong, here or at a peer."""

    problem: Problem
