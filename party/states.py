"""States of a job at a party, with their data, and the data of a session in every state."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from jobs.data.sources import Source
from jobs.data.tables import Table
from jobs.errors import PartyError, Problem
from jobs.owner.answers import Answering
from jobs.release.signatures import Signed
from jobs.task import Account, Result, Task
from party.approval import Listener, Permit
from party.ends import Ends
from party.net.control import Emit
from party.net.link import RunKey
from party.net.mesh import Mesh
from party.net.runner import Meter
from party.net.waiting import in_thread
from party.owner.audit import Audit
from party.owner.config import PartyConfig
from party.owner.current import CurrentJob
from party.owner.signing import Signer
from party.requests import Heard, Requests, hear

log = logging.getLogger("party")


@dataclass(frozen=True)
class State:
    """Place of a session in the life of a job."""


@dataclass(frozen=True)
class Submitted(State):
    """State of a submitted job: the place for a job is ours, and the bundle is here."""


@dataclass(frozen=True)
class Allowed(State):
    """Policy, owner and ledger allow the job."""

    account: Answering = field(repr=False)
    permit: Permit


@dataclass(frozen=True)
class Admitted(State):
    """State after the table was read and fits the job."""

    table: Table = field(repr=False)
    account: Account = field(repr=False)


@dataclass(frozen=True)
class Computed(State):
    """State after the protocol. signed: by every party. n_matched: known in vertical runs only."""

    table: Table = field(repr=False)
    account: Account = field(repr=False)
    result: Result = field(repr=False)
    signed: Sequence[Signed] = field(repr=False)
    n_matched: int | None = field(repr=False)
    meter: Meter = field(repr=False)


@dataclass(frozen=True)
class Finished(State):
    """State after the coordinator has the end of the protocol, and our parts. parts: by name."""

    run: Computed
    parts: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True)
class Checked(State):
    """State with the delivery set aside. From here on the job is the parties' alone.

    release:  the digest of the files, 32 bytes.
    agreed:   True if the files are here; else the digest is the coordinator's word on files at the
              coordinator alone.
    seen:     the release as readers see the release (:class:`jobs.task.Rendered`), if the files are here.
    """

    run: Computed
    release: bytes
    agreed: bool
    seen: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Kept:
    """Result that a party keeps. seen: as in :class:`Checked`."""

    run: Computed
    seen: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Closed(State):
    """State with nothing more to do: all parties keep the release, or the coordinator left before the delivery."""


@dataclass(frozen=True)
class Failed(State):
    """State after a problem ended the job."""


@dataclass
class Session:
    """Run of a job at a party."""

    me: str
    task: Task
    coordinator: str
    config: PartyConfig
    """Configuration at admission."""
    mesh: Mesh
    requests: Requests
    emit: Emit
    unfinished: ExitStack
    """Steps that undo unfinished work if the session ends now."""
    audit: Audit = field(repr=False)
    ends: Ends = field(repr=False)
    """Ends of runs at this party that the ledger does not have yet."""
    listener: Listener = field(repr=False)
    """Hears of a job that is new here."""
    signer: Signer | None = field(default=None, repr=False)
    """Signers of the run, once allowed."""
    account: Answering | None = field(default=None, repr=False)
    """Account for answers and charges, once the job is allowed."""
    kept: Kept | None = field(default=None, repr=False)
    """Result with a release here, or possibly at the coordinator alone; input of the owner's account and page."""
    problem: Problem | None = None
    """Reason of the session's failure, or of an end without a release."""
    state: State = field(default_factory=Submitted)
    phase: str = "submit"
    """Phase for people: of the present row, or of the protocol inside."""
    turn: int = 0
    """Last turn of the protocol's loop, or last sweep, for people; 0 before the first."""
    _heads: dict[str, str] = field(default_factory=dict, repr=False)
    """Heads of the peers' audits that stand in lines of ours."""
    _told_peers: bool = field(default=False, repr=False)

    @property
    def key(self) -> RunKey:
        return self.mesh.key

    @cached_property
    def source(self) -> Source:
        """Our table. All passes of the run read from the same object, which may hold a snapshot of a database."""
        return self.config.source

    def current(self) -> CurrentJob:
        """Return the job as its owner may see the job now."""
        return CurrentJob(self.task.job.name, self.key.job.hex(), self.coordinator, self.phase, self.turn)

    def forget_source(self) -> None:
        """End our hold on the table: a database ends the snapshot with the last reader."""
        self.__dict__.pop("source", None)

    async def hear(self) -> Heard:
        """Wait for the coordinator's next request. Raises TransportError after too long a silence."""
        return await hear(self.requests, self.coordinator, self.config.timeouts.coordinator_s)

    def note(self, event: str, facts: Mapping[str, Any], *, durable: bool = True) -> None:
        """Add a line about the run to the audit; see :meth:`Audit.note`. Raises PartyError."""
        job = {"job": self.task.job.name, "job_sha256": self.key.job.hex(), "run": self.key.run.hex()}
        self.audit.note(event, {**job, **facts}, durable=durable)

    def add_failure(self) -> None:
        """Add the problem of a failed run to the ends for the ledger, if the ledger has an account of the run."""
        if self.account is not None and self.problem is not None:
            self.ends.add(partial(self.account.ended, self.problem))

    def new_heads(self) -> dict[str, str]:
        """Return the heads of the peers' audits that no line has yet, hexadecimal, for a line."""
        heads = {peer: head for peer, head in self.mesh.heads.items() if self._heads.get(peer) != head}
        self._heads |= heads
        return heads

    async def tell_peers(self, problem: Problem) -> None:
        """Tell every peer why the run ends here, with the head of our audit."""
        if self.mesh.links:
            self._told_peers = True
            await self.mesh.abort(problem, await in_thread(self._head))

    def _head(self) -> bytes | None:
        """Return the head of our audit, or None if the audit cannot be read: the peers are told why in any case."""
        try:
            return self.audit.head()
        except PartyError:
            return None

    async def hear_peers(self) -> None:
        """Hear the last words of peers that were told why the run ends, and note the heads that come with them.

        Nobody is waited for longer than a moment. The work has ended, with or without the line.
        """
        if not self._told_peers:
            return
        await self.mesh.last_words()
        if not (heads := self.new_heads()):
            return
        try:
            await in_thread(partial(self.note, "heads", {"heads": heads}, durable=False))
        except PartyError as error:
            self.log(f"the heads of the other audits have no line: {error.problem.cause}")

    def log(self, text: str) -> None:
        """Log a text with the run's fields."""
        log.info("%s", text, extra={"job": self.task.job.name, "phase": self.phase})


@dataclass(frozen=True, slots=True)
class Next:
    """Trigger without a wait."""


@dataclass(frozen=True, slots=True)
class Broke:
    """Something went wrong, here or at a peer."""

    problem: Problem
