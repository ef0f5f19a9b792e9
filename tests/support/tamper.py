"""Messages harmed on their way between parties in one process."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable

from crypto.local import Message, Transcript


def first_harmed(step: str, sender: str, harm: Callable[[bytes], bytes]) -> Callable[[Message], bytes]:
    """Harm the first message of a step by a sender; let all others pass."""
    hit: list[Message] = []

    def tamper(message: Message) -> bytes:
        if (message.step, message.sender) == (step, sender) and not hit:
            hit.append(message)
            return harm(message.payload)
        return message.payload

    return tamper


def vouched(
    tamper: Callable[[Message], bytes], honest: Transcript, leader: str = "p0", deputy: str = "p1"
) -> Callable[[Message], bytes]:
    """One of the pair vouches for whatever the other one tells those outside the pair, harmed or not.

    honest:  the run with the same coins, for what the one is about to tell when the other one speaks first.
    """
    told: dict[tuple[str, str], list[Message]] = defaultdict(list)
    for message in honest.messages:
        if message.sender == _teller(message.step, leader, deputy) and message.step.startswith(_TOLD):
            told[message.step, message.recipient].append(message)
    harmed: dict[tuple[str, str], list[bytes]] = defaultdict(list)
    spoke: Counter[tuple[str, str, str]] = Counter()

    def both(message: Message) -> bytes:
        place = (message.step, message.recipient)
        if place not in told or message.sender not in (leader, deputy):
            return tamper(message)
        number = spoke[message.sender, *place]
        spoke[message.sender, *place] += 1
        if number == len(harmed[place]):
            harmed[place].append(tamper(told[place][number]))
        payload = harmed[place][number]
        tells = message.sender == _teller(message.step, leader, deputy)
        return payload if tells else hashlib.sha256(payload).digest()[:16]

    return both


_TOLD = ("sealed/", "strict/", "kd/", "sequences/", "dp/", "synthetic/")
"""Beginnings of the steps in which a pair tells others what it found."""

AHEAD = ("sealed/candidate", "sealed/valid", "sealed/split")
"""Steps in which the deputy tells, and the leader confirms it."""


def _teller(step: str, leader: str, deputy: str) -> str:
    return deputy if step in AHEAD else leader
