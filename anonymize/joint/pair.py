"""The compute pair of a horizontal run: shares of everybody's counts, and a session of leader and deputy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anonymize.joint.engine import Engine
from anonymize.joint.roster import Roster
from anonymize.tds import Observer
from crypto.errors import LocalProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send
from crypto.shares import ComputePair, ShareSession, setup_shares
from crypto.two_party import Computation, open_evaluator, open_garbler


@dataclass(frozen=True)
class Pair:
    """One party's part of it. ``engine`` is None outside the pair."""

    roster: Roster
    shares: ShareSession = field(repr=False)
    engine: Engine | None = field(repr=False)

    def tell(self, step: str, payload: bytes) -> Rounds[bytes]:
        """Tell the parties outside the pair what the pair found out."""
        if self.engine is None:
            return (yield from receive(step, self.roster.leader))
        if self.roster.leads and self.shares.contributors:
            told: Mapping[str, bytes] = dict.fromkeys(self.shares.contributors, payload)
            yield from send(step, told)
        return payload


def open_pair(roster: Roster, job_hash: bytes, rng: Rng, observer: Observer) -> Rounds[Pair]:
    """Set up shares and, at leader and deputy, their session.

    Functionality:  :func:`crypto.shares.setup_shares` and :func:`crypto.two_party.open_garbler`.
    Input, each:    roster and ``job_hash``: public and equal for all.
    Output, each:   :class:`Pair`.
    Leakage:        none beyond the roster.
    Rounds:         3. Bytes: as there.
    Assumes:        as there.
    Source:         as there.

    Raises LocalProtocolError for a roster without two different parties as the pair.
    """
    pair = ComputePair(roster.leader, roster.deputy)
    if roster.leader == roster.deputy or not {roster.leader, roster.deputy} <= set(roster.parties):
        raise LocalProtocolError("leader and deputy must be two different parties of the roster")
    shares = yield from setup_shares(roster.me, roster.parties, pair, job_hash, rng)
    computation: Computation | None = None
    if roster.leads:
        computation = yield from open_garbler(roster.me, roster.deputy, rng)
    elif roster.me == roster.deputy:
        computation = yield from open_evaluator(roster.me, roster.leader, rng)
    return Pair(roster, shares, Engine(computation, observer) if computation is not None else None)
