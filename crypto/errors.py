"""Errors of the protocol layer.

Messages give step names, party names and public sizes; never values, shares or keys.
"""

from __future__ import annotations


class ProtocolError(Exception):
    """A protocol cannot go on."""


class LocalProtocolError(ProtocolError):
    """The local caller broke a protocol's preconditions; therefore nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """A peer's message is not what the protocol prescribes.

    ``culprit`` and ``step`` are a diagnosis, not a proof: a broken link looks the same.
    """

    def __init__(self, culprit: str, step: str, reason: str) -> None:
        super().__init__(f"{culprit} broke the protocol at step {step}: {reason}")
        self.culprit = culprit
        self.step = step
        self.reason = reason
