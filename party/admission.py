"""Before a job is admitted: the policy, the peers, the owner's approval, the privacy ledger, then the table."""

from __future__ import annotations

import asyncio
from functools import partial

from crypto.rng import SystemRng
from jobs.data.table_file import changed
from jobs.data.tables import Table
from jobs.owner.answers import Answering
from jobs.owner.objections import check_policy
from jobs.task import Task
from party.approval import permit_of, require
from party.memory import give_back
from party.net import control
from party.net.wiring import Wiring
from party.owner.config import PartyConfig, address_of, usable_peer
from party.owner.signing import signer_of
from party.states import Admitted, Allowed, Next, Session, Submitted


async def ask(session: Session, submitted: Submitted, _: Next) -> Allowed:
    """Ask the present policy, the owner's decisions and the ledger; report that all allow the job.

    The coordinator requests the table after the reports of all parties. A job refused by a single policy then asks
    nothing of the peers' tables. Raises PolicyError, BudgetError, IdentityError.
    """
    policy = session.config.policy
    await asyncio.to_thread(check_policy, policy, session.task, session.me, session.coordinator)
    _know_peers(session)
    permit = await asyncio.to_thread(
        permit_of, session.config, session.task, session.coordinator, session.listener
    )
    await asyncio.to_thread(require, permit)
    session.signer = await asyncio.to_thread(signer_of, session.config, _others(session))
    account = await asyncio.to_thread(_account, session)
    await session.emit(control.Allowed(session.key.job))
    return Allowed(account, permit)


async def load(session: Session, allowed: Allowed, _: control.Read) -> Admitted:
    """Count the approved run, read the table, begin to accept the peers that call us, and report the admission.

    All parties allow the job by now, so the connections to the peers that we call are made meanwhile.

    Every later message is an answer about the table, and counted before the table is read. Raises DataError, and
    PolicyError if no further answer is allowed.
    """
    await asyncio.to_thread(_begin, session, allowed)
    session.mesh.begin(addresses_after_us(session.config, session.task))
    table = await asyncio.to_thread(_table, session, allowed.account)
    await asyncio.to_thread(give_back)  # the buffers of the file
    wiring = wiring_of(session.me, session.task)
    session.mesh.expect(
        [peer for peer in wiring.direct if not wiring.after(peer)],
        [peer for peer in wiring.carriages if not wiring.after(peer)],
    )
    await session.emit(control.Admitted(session.key.job))
    return Admitted(table, allowed.account)


def _table(session: Session, account: Answering) -> Table:
    """Read the table that the run is charged to. Raises DataError if a link leads to another table by now."""
    if session.config.data.data_set == account.data:
        table = account.load(session.source, session.me, SystemRng())
        if session.config.data.data_set == account.data:
            return table
    raise changed(session.config.data.data_set)


def _begin(session: Session, allowed: Allowed) -> None:
    """Count the run as approved, and note its start: both before anything is read or sent."""
    allowed.permit.begin(session.key.run)
    certificate = usable_peer(session.config, session.coordinator).fingerprint
    asked = {"coordinator": session.coordinator, "certificate": certificate}
    session.note("start", {**asked, "parties": session.task.job.roster})


def wiring_of(me: str, task: Task) -> Wiring:
    """Return the links of a run, as a party sees the links."""
    job = task.job
    return Wiring(me, job.roster, (job.leader_name, job.deputy_name), task.mode.apart(task))


def addresses_after_us(config: PartyConfig, task: Task) -> dict[str, str]:
    """Return the parties that we call in a run, with addresses. Raises ConfigError if an address is missing."""
    return {party: address_of(config, task.job, party) for party in wiring_of(config.name, task).called}


def _others(session: Session) -> tuple[str, ...]:
    return tuple(each for each in session.task.job.roster if each != session.me)


def _know_peers(session: Session) -> None:
    """Require a valid certificate of every party, and an address of every party that we call."""
    for party in (session.coordinator, *_others(session)):
        usable_peer(session.config, party)
    addresses_after_us(session.config, session.task)


def _account(session: Session) -> Answering:
    """Return the run's place in the privacy ledger. Raises BudgetError or PolicyError if there is no place."""
    policy, task = session.config.policy, session.task
    ledger = session.config.ledger.asked_by(session.coordinator, partial(session.note, "charge"))
    account = Answering(
        task.model.charges.account(ledger, policy, task, session.key.run), ledger, policy, task
    )
    account.check()
    session.account = account
    return account
