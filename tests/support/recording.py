"""The sample job with seeded coins, and links that remember what was sent over them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from anonymize.tds import Observer
from crypto.local import Message, Transcript
from crypto.rounds import Rounds
from jobs.loading import open_task
from jobs.modes import protocol_of
from jobs.owner.account import Unaccounted
from jobs.task import Account, Result
from party.net.link import PeerLink
from tests.support import jobs
from tests.support.joint import sample_tables
from tests.support.rng import SeededRng
from tests.support.samples import PARTIES, joint_job
from tests.support.scores import PUBLISHED_NAMES


class RecordingLink(PeerLink):
    """Remembers what was sent."""

    sent: list[tuple[str, bytes]]

    async def send(self, step: str, payload: bytes) -> None:
        self.__dict__.setdefault("sent", []).append((step, payload))
        await super().send(step, payload)


def seeded(
    goal: str, sums: str | None, accounts: Mapping[str, Account] | None = None
) -> dict[str, Rounds[Result]]:
    """Return the sample job with seeded coins, by party. accounts: who charges it at each party; None: nobody."""
    bundle = jobs.bundle_of(joint_job(goal=goal, score=PUBLISHED_NAMES[goal], secure_sum=sums))
    tables = sample_tables(bundle)
    task, coins = open_task(bundle), {me: SeededRng(me) for me in PARTIES}
    charged = accounts or dict.fromkeys(PARTIES, Unaccounted())
    return {me: protocol_of(task, me, tables[me], coins[me], Observer(), charged[me]) for me in PARTIES}


def in_the_order_of(local: Transcript, links: Mapping[str, Mapping[str, RecordingLink]]) -> Transcript:
    """Return the messages of the links, in the order in which the local run had them."""
    queues = {(a, b): deque(link.sent) for a, of_party in links.items() for b, link in of_party.items()}
    messages = []
    for message in local.messages:
        step, payload = queues[message.sender, message.recipient].popleft()
        messages.append(Message(message.sender, message.recipient, step, payload, message.depth))
    assert not any(queues.values())
    return Transcript(messages)
