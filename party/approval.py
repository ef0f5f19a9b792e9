"""Approval of a job by the owner: asked before a job is allowed, and counted before a table is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from jobs.errors import PartyError, PolicyError, TransportError
from jobs.file.bundle import MAX_BUNDLE_BYTES
from jobs.owner.objections import check_policy
from jobs.task import Task
from party.decoding import open_foreign
from party.net import control
from party.owner.approvals import Approvals, Standing, Terms, refusal, terms_of
from party.owner.config import PartyConfig


class Listener(Protocol):
    """Hears of each new proposal."""

    def note(self, task: Task, coordinator: str) -> None:
        """Note a proposal that is about to be kept. An error ends the work, and nothing is kept."""
        ...

    def tell(self, task: Task) -> None:
        """Tell the owner of a proposal that waits. Returns at once."""
        ...


class Permit(Protocol):
    """Approval of a coordinator's job. Each method touches files."""

    def propose(self) -> None:
        """Keep the job for the owner's decision, if the job needs one. Raises PolicyError if too many jobs wait."""
        ...

    def standing(self) -> Standing:
        """Return the owner's decision as of now."""
        ...

    def begin(self, run: bytes) -> None:
        """Count a run, durably. Raises PolicyError if no approval covers the run. run: 16 bytes."""
        ...


@dataclass(frozen=True)
class Automatic:
    """Approval of a job that needs no decision: the policy says so, or pins the job. A denial counts all the same."""

    approvals: Approvals
    task: Task
    coordinator: str
    listener: Listener = field(repr=False)

    def propose(self) -> None:
        # The owner can read and deny the job. Nobody is told, and a full store is no error: nothing waits.
        noted = partial(self.listener.note, self.task, self.coordinator)
        with suppress(PolicyError):
            self.approvals.propose(self.task, self.coordinator, _now(), noted, told=False)

    def standing(self) -> Standing:
        kept = self.approvals.exactly(self.task.digest.hex(), self.coordinator, _now())
        decision = None if kept is None else kept.decision
        if decision is None or decision.approved:
            return Standing("approved")
        return Standing("denied", decision.reason)

    def begin(self, run: bytes) -> None:
        if (standing := self.standing()).state != "approved":
            raise refusal(standing)


@dataclass(frozen=True)
class ByOwner:
    """Approval of a job that needs the owner's decision."""

    approvals: Approvals
    task: Task
    coordinator: str
    terms: Terms = field(repr=False)
    listener: Listener = field(repr=False)

    def propose(self) -> None:
        if self.standing().state not in ("unknown", "waiting"):
            return
        given = (
            self.task,
            self.coordinator,
            _now(),
            partial(self.listener.note, self.task, self.coordinator),
        )
        if self.approvals.propose(*given) or self.approvals.ask_again(*given):
            self.listener.tell(self.task)

    def standing(self) -> Standing:
        return self.approvals.standing(self.task.digest, self.coordinator, self.terms, _now())

    def begin(self, run: bytes) -> None:
        self.approvals.begin(self.task.digest, self.coordinator, self.terms, run, _now())


def permit_of(config: PartyConfig, task: Task, coordinator: str, listener: Listener) -> Permit:
    """Return the approval of a job. Raises PartyError for a party without a usable certificate."""
    approvals = Approvals(config.state_dir)
    if not config.policy.needs_approval(task.digest.hex()):
        return Automatic(approvals, task, coordinator, listener)
    terms = terms_of(config, task, coordinator)
    return ByOwner(approvals, task, coordinator, terms, listener)


def require(permit: Permit) -> None:
    """Raise PolicyError unless the owner has approved the job. A job that needs a decision is kept for the owner."""
    standing = permit.standing()
    if standing.state == "approved":
        return
    permit.propose()
    raise refusal(standing)


async def received(
    config: PartyConfig, coordinator: str, parts: AsyncIterator[control.Proposal]
) -> tuple[Task, bool]:
    """Take a proposal; return the task, and True if the coordinator only asks.

    Raises TransportError if late, and PartyError for a malformed bundle.
    """
    patience_s = config.timeouts.submit_s
    try:
        async with asyncio.timeout(patience_s):
            encoded, ask = await _bytes_of(parts)
    except TimeoutError:
        message = f"no whole proposal from {coordinator} within {patience_s:g} s"
        raise TransportError("peer-timeout", message, party=coordinator) from None
    return await asyncio.to_thread(open_foreign, encoded), ask


async def _bytes_of(parts: AsyncIterator[control.Proposal]) -> tuple[bytes, bool]:
    encoded = bytearray()
    async for part in parts:
        encoded += part.bundle.content
        if len(encoded) > MAX_BUNDLE_BYTES:
            raise PartyError("peer-protocol", f"a bundle of more than {MAX_BUNDLE_BYTES} bytes")
        if part.bundle.last:
            return bytes(encoded), part.ask
    raise PartyError("peer-protocol", "the proposal ended before its last part")


def answered(
    config: PartyConfig, task: Task, coordinator: str, ask: bool, listener: Listener
) -> control.Answer:
    """Keep a proposal, unless the coordinator only asks; return the owner's decision. Looks at no table.

    Raises PolicyError if the policy refuses the job or too many jobs wait.
    """
    check_policy(config.policy, task, config.name, coordinator)
    permit = permit_of(config, task, coordinator, listener)
    if not ask:
        permit.propose()
    standing = permit.standing()
    return control.Answer(standing.state, standing.reason)


def _now() -> datetime:
    return datetime.now(UTC)
