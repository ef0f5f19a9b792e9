"""Messages harmed on their way between parties in one process."""

from __future__ import annotations

from collections.abc import Callable

from crypto.local import Message


def first_harmed(step: str, sender: str, harm: Callable[[bytes], bytes]) -> Callable[[Message], bytes]:
    """Harm the first message of a step by a sender; let all others pass."""
    hit: list[Message] = []

    def tamper(message: Message) -> bytes:
        if (message.step, message.sender) == (step, sender) and not hit:
            hit.append(message)
            return harm(message.payload)
        return message.payload

    return tamper
