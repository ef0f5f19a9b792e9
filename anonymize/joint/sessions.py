"""Two-party sessions of a vertical run: the pairs with a common computation, and their garblers.

The garbler of a session is the sender of its transfers. A pair that computes in both directions has two sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from anonymize.joint.engine import Engine
from anonymize.tds import Observer
from crypto.ot.extension import OtReceiver, OtSender, setup_receiver, setup_sender
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.two_party import EvaluatorSession, GarblerSession

Transfers = TypeVar("Transfers", OtSender, OtReceiver)

Ends: TypeAlias = tuple[str, str]
"""Garbler and evaluator."""


@dataclass(frozen=True)
class CircuitSession(Generic[Transfers]):
    """Session with a peer: circuits, and their transfers."""

    engine: Engine = field(repr=False)
    transfers: Transfers = field(repr=False)


@dataclass(frozen=True)
class CircuitSessions:
    """Sessions of a party by peer: sessions as garbler, and sessions as evaluator."""

    garbling: Mapping[str, CircuitSession[OtSender]]
    evaluating: Mapping[str, CircuitSession[OtReceiver]]

    def of_pair(self, me: str, pair: Ends) -> Engine | None:
        """Return the engine of a pair's session, None for a party outside the pair."""
        garbler, evaluator = pair
        if me == garbler:
            return self.garbling[evaluator].engine
        return self.evaluating[garbler].engine if me == evaluator else None


def open_sessions(me: str, pairs: Sequence[Ends], rng: Rng, observer: Observer) -> Rounds[CircuitSessions]:
    """Open a session for every pair with this party.

    Functionality:  base transfers for each pair, as :func:`crypto.two_party.open_garbler`.
    Input, each:    ``pairs``: public and equal for all, in the same order, without repetitions.
    Output, each:   own sessions.
    Leakage:        none.
    Rounds, Bytes:  2 rounds, 4,096 bytes from the garbler and 32 from the evaluator for each pair.
    Assumes:        as there.
    Source:         as there.

    Raises RemoteProtocolError for a malformed message of a peer.
    """
    garbling, evaluating = {}, {}
    for garbler, evaluator in pairs:
        if me == garbler:
            sender = yield from setup_sender(me, evaluator, rng)
            garbling[evaluator] = CircuitSession(Engine(GarblerSession(sender, rng), observer), sender)
        elif me == evaluator:
            receiver = yield from setup_receiver(me, garbler, rng)
            evaluating[garbler] = CircuitSession(Engine(EvaluatorSession(receiver, rng), observer), receiver)
    return CircuitSessions(garbling, evaluating)
