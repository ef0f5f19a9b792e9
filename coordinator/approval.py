"""Asking the owners of a job's parties before it runs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from jobs.errors import PartyError, PolicyError
from jobs.task import Task
from party.net import control
from party.net.client import Calls
from party.net.control import Standing, Submit, pieces
from party.net.protocol import OURS, common
from party.owner.approvals import in_words
from party.owner.config import CoordinatorConfig, address_of, credentials_of, peers_of, usable_peer

Answers: TypeAlias = Mapping[str, Standing | PartyError]
"""By party, how it stands, or why it did not say."""


async def proposed(task: Task, config: CoordinatorConfig) -> Answers:
    """Hand a job to all its parties; return how each stands."""
    run = secrets.token_bytes(control.RUN_BYTES)

    async def ask(calls: Calls, name: str, at: str) -> Standing:
        protocol = common({config.name: OURS, name: await calls.talked(name, at)})
        bundle = [Submit(run, piece, protocol) for piece in pieces("bundle", task.bundle.encoded)]
        return await calls.propose(name, at, bundle)

    return await _asked(task, config, ask)


async def standings(task: Task, config: CoordinatorConfig) -> Answers:
    """How each party of a job stands."""
    return await _asked(task, config, lambda calls, name, at: calls.standing(name, at, task.digest))


async def _asked(
    task: Task, config: CoordinatorConfig, ask: Callable[[Calls, str, str], Awaitable[Standing]]
) -> Answers:
    calls = Calls(config, credentials_of(config), peers_of(config))

    async def one(name: str) -> Standing | PartyError:
        try:
            usable_peer(config, name)
            return await ask(calls, name, address_of(config, task.job, name))
        except PartyError as error:
            return error

    try:
        answers = await asyncio.gather(*map(one, task.job.roster))
    finally:
        await calls.close()
    return dict(zip(task.job.roster, answers, strict=True))


async def require_approvals(calls: Calls, task: Task, addresses: Mapping[str, str]) -> None:
    """Raise PolicyError naming every party that has not approved the job, or the error of one that did not say."""

    async def one(name: str, address: str) -> Standing | PartyError:
        try:
            return await calls.standing(name, address, task.digest)
        except PartyError as error:
            return error

    asked = await asyncio.gather(*(one(name, address) for name, address in addresses.items()))
    check_approved(dict(zip(addresses, asked, strict=True)))


def check_approved(answers: Answers) -> None:
    """Raise the first error of a party that did not say, else PolicyError naming all that have not approved."""
    for answer in answers.values():
        if isinstance(answer, PartyError):
            raise answer
    missing = {
        name: answer
        for name, answer in answers.items()
        if isinstance(answer, Standing) and not answer.lets_run
    }
    if missing:
        told = "; ".join(f"{name} {in_words(each.state, each.reason)}" for name, each in missing.items())
        raise PolicyError("approval-needed", told)
