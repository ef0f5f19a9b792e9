"""The owner's approval: what the daemon tells coordinators of it, and the two places where a job needs it.

It is looked at before the table is read, and once more, with the run counted, before the run begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from jobs.errors import PartyError, PolicyError
from jobs.objections import check_policy
from jobs.task import Task
from party.admission import know_peers
from party.net.control import Standing, Start
from party.owner.approvals import Approvals, Binding, binding_of
from party.owner.config import PartyConfig
from party.requests import Requests, receive_task
from party.states import Admitted, Allowed, Approved, Begun, Next, Session

KnownTo = Callable[[str], Awaitable[PartyConfig]]
"""Gives the configuration in force to whoever may start jobs. Raises PartyError to anybody else."""


async def check_approval(session: Session, allowed: Allowed, _: Next) -> Approved:
    """Raise PolicyError unless the owner, where asked, approved this very job."""
    if asks_owner(session.config):
        await asyncio.to_thread(_approvals(session).check, _binding(session), session.me)
    return Approved(allowed.account)


async def begin(session: Session, admitted: Admitted, start: Start) -> Begun:
    """Count the run, on disk, where the owner is asked. Raises PolicyError if the job is not approved any more."""
    if asks_owner(session.config):
        await asyncio.to_thread(_approvals(session).begin, _binding(session), session.key.run, session.me)
    return Begun(admitted.table, admitted.account, start)


def asks_owner(config: PartyConfig) -> bool:
    """Whether jobs wait for the owner."""
    return config.policy.approval == "required"


def _approvals(session: Session) -> Approvals:
    return Approvals(session.config.state_dir)


def _binding(session: Session) -> Binding:
    return _bound(session.config, session.task, session.coordinator)


def _bound(config: PartyConfig, task: Task, coordinator: str) -> Binding:
    return binding_of(config, task.digest.hex(), task.job.roster, coordinator)


class Desk:
    """Where coordinators hand in proposals, each one at a time, and ask how they stand."""

    def __init__(self, known_to: KnownTo, check: Callable[[str, int], None]) -> None:
        """``check`` raises PartyError for a protocol that we do not speak, with whom wants it."""
        self._known_to = known_to
        self._check = check
        self._proposing: set[str] = set()

    async def propose(self, caller: str, requests: Requests) -> tuple[Task, Standing]:
        """Take a bundle, keep it for the owner if the policy allows it, and say how it stands. Raises PartyError."""
        config = await self._known_to(caller)
        if caller in self._proposing:
            raise PartyError("busy", f"{config.name} is taking another proposal", party=config.name)
        self._proposing.add(caller)
        try:
            spoken = partial(self._check, caller)
            _, task = await receive_task(requests, caller, config.timeouts.submit_s, spoken)
            return task, await asyncio.to_thread(_proposed, config, task, caller)
        finally:
            self._proposing.discard(caller)

    async def standing(self, caller: str, job: bytes) -> Standing:
        """How a caller's own proposal stands. Raises PartyError."""
        config = await self._known_to(caller)
        if not asks_owner(config):
            return Standing("automatic")
        return await asyncio.to_thread(_standing, config, caller, job.hex())


def _proposed(config: PartyConfig, task: Task, caller: str) -> Standing:
    try:
        check_policy(config.policy, task, config.name, caller)
    except PolicyError as error:
        return Standing("refused", error.problem.message)
    know_peers(config, task, caller)
    binding = _bound(config, task, caller)
    if not asks_owner(config):
        return Standing("automatic")
    return Standing(*Approvals(config.state_dir).propose(task, binding))


def _standing(config: PartyConfig, caller: str, job: str) -> Standing:
    approvals = Approvals(config.state_dir)
    kept = approvals.kept(job, caller)
    if kept is None:
        return Standing("unknown")
    return Standing(*approvals.standing(kept.binding_now(config)))
