"""Before a job is admitted: the policy, the peers, the privacy ledger, then the table."""

from __future__ import annotations

import asyncio

from crypto.rng import SystemRng
from jobs.answers import Answering
from jobs.objections import check_policy
from jobs.task import Task
from party.net import control
from party.net.waiting import in_thread
from party.owner.config import PartyConfig, address_of, usable_peer
from party.owner.signing import signer_of
from party.states import Admitted, Allowed, Approved, Next, Session, Submitted


async def ask(session: Session, submitted: Submitted, _: Next) -> Allowed:
    """Ask the policy and the ledger that are in force now. Raises PolicyError, BudgetError, IdentityError."""
    session.config = await session.refresh()
    check_policy(session.config.policy, session.task, session.me, session.coordinator)
    know_peers(session.config, session.task, session.coordinator)
    addresses_after_us(session)
    linked = session.task.links[session.me]
    session.signer = await asyncio.to_thread(signer_of, session.config, linked)
    return Allowed(await asyncio.to_thread(_account, session))


async def load(session: Session, approved: Approved, _: Next) -> Admitted:
    """Note that it begins, read the table, await the peers before us from now on, and say that the job is admitted.

    Whatever is said from here on is an answer about the table, and counted before it is read. Raises DataError, and
    PolicyError if no further answer is allowed.
    """
    await in_thread(session.audit.start)
    table = await asyncio.to_thread(approved.account.load, session.config.source, session.me, SystemRng())
    session.mesh.expect(_before_us(session))
    await session.emit(control.Admitted(session.key.job))
    return Admitted(table, approved.account)


def addresses_after_us(session: Session) -> dict[str, str]:
    """The parties after us in the roster whom we call, and where. Raises ConfigError if nobody says where."""
    job, before = session.task.job, _before_us(session)
    after = [party for party in session.task.links[session.me] if party not in before]
    return {party: address_of(session.config, job, party) for party in after}


def _before_us(session: Session) -> tuple[str, ...]:
    """The parties before us in the roster who call us."""
    roster, linked = session.task.job.roster, session.task.links[session.me]
    return tuple(party for party in roster[: roster.index(session.me)] if party in linked)


def know_peers(config: PartyConfig, task: Task, coordinator: str) -> None:
    """Whoever we speak with in a job has a certificate that is valid now. Raises ConfigError or IdentityError."""
    for party in (coordinator, *task.links[config.name]):
        usable_peer(config, party)


def _account(session: Session) -> Answering:
    """The run's place in the privacy ledger. Raises BudgetError or PolicyError if there is none."""
    policy, task = session.config.policy, session.task
    ledger = session.config.ledger.asked_by(session.coordinator, session.audit.charge)
    account = Answering(task.model.account(ledger, policy, task, session.key.run), ledger, policy, task)
    account.check()
    session.account = account
    return account
