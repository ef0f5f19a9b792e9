"""Compute pair of a horizontal run: shares of all parties' counts, and a session of leader and deputy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from anonymize.joint.engine import Engine
from anonymize.joint.messages import checked_counts
from anonymize.joint.roster import Roster
from anonymize.table import Ints
from anonymize.tds import Observer
from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.lookup import LookUps
from crypto.rng import Rng
from crypto.rounds import Round, Rounds, receive, send
from crypto.shares import ComputePair, Shares, ShareSession, dtype, open_vector, setup_shares, share_vector
from crypto.two_party import EvaluatorSession, GarblerSession, open_evaluator, open_garbler

_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Pair:
    """Own part of the compute pair. ``engine`` is None outside the pair."""

    roster: Roster
    shares: ShareSession = field(repr=False)
    engine: Engine | None = field(repr=False)
    _heard: list[tuple[str, bytes]] = field(default_factory=list, repr=False)
    """Steps and payloads that only the deputy has sent so far."""

    def tell(self, step: str, payload: bytes) -> Rounds[bytes]:
        """Send the pair's findings to the parties outside the pair. A leader that sends them another payload, or
        different payloads, is detected in the same round.

        Functionality:  the payload to every party; the deputy sends a digest of it.
        Input, each:    ``payload``, known to leader and deputy; the argument of other parties is ignored.
        Output, each:   the payload.
        Leakage:        none beyond the payload.
        Rounds:         1; none for two parties.
        Bytes:          to each party outside the pair the payload from the leader, 16 from the deputy.
        Assumes:        leader and deputy do not collude; 16 bytes of SHA-256 have no second preimages.
        Source:         echo of a broadcast; folklore.

        Raises RemoteProtocolError, outside the pair, naming both, if the two messages differ.
        """
        yield from self.confirmed()
        leader, deputy = self.roster.leader, self.roster.deputy
        if self.engine is None:
            inbox = yield Round(step, {}, frozenset({leader, deputy}))
            if inbox[deputy] != _digest(inbox[leader]):
                raise self._differ(step)
            return inbox[leader]
        if self.shares.contributors:
            told = payload if self.roster.leads else _digest(payload)
            yield from send(step, dict.fromkeys(self.shares.contributors, told))
        return payload

    def tell_ahead(self, step: str, payload: bytes) -> Rounds[bytes]:
        """Send as :meth:`tell`, but with the payload from the deputy, who evaluates circuits and so knows it first.
        The leader's digest is compared at the next message or opening.

        Until then a party outside the pair must send only shares and consents, which open nothing unless the leader
        has found the same payload.

        Rounds:         1; the next round need not wait for the leader's message; none for two parties.
        Bytes:          to each party outside the pair the payload from the deputy, 16 from the leader.
        """
        yield from self.confirmed()
        deputy = self.roster.deputy
        if self.engine is None:
            payload = yield from receive(step, deputy)
            self._heard.append((step, payload))
        elif self.shares.contributors:
            told = payload if self.roster.me == deputy else _digest(payload)
            yield from send(step, dict.fromkeys(self.shares.contributors, told))
        return payload

    def confirmed(self) -> Rounds[None]:
        """Compare the deputy's early payloads with the leader's digests, outside the pair."""
        while self._heard:
            step, payload = self._heard.pop()
            if (yield from receive(step, self.roster.leader)) != _digest(payload):
                raise self._differ(step)

    def hear_consent(self, step: str) -> Rounds[None]:
        """Send or receive the consent of every party outside the pair to the pair's next opening: an empty message to
        both.

        A party without consent ends the run instead.
        """
        contributors = self.shares.contributors
        if self.engine is None:
            yield from send(step, {self.roster.leader: b"", self.roster.deputy: b""})
        elif contributors:
            inbox = yield Round(step, {}, frozenset(contributors))
            for peer in contributors:
                expect_length(inbox[peer], 0, peer, step)

    def share_counts(self, own: Ints, totals: Ints | None, bits: int) -> Rounds[Shares | None]:
        """Give the pair shares of all parties' counts; return own shares at the pair, flat.

        totals:  public row sums. The last column follows from them and is not shared.
        """
        told = own if totals is None else own[:, :-1]
        return (yield from share_vector(self.shares, told.reshape(-1).astype(dtype(bits))))

    def open_counts(self, share: Shares | None, own: Ints, totals: Ints | None, bits: int) -> Rounds[Ints]:
        """Open the counts of :meth:`share_counts` to all: int64, shape as ``own``.

        Raises RemoteProtocolError, naming all others, for counts that contradict own counts or the row sums.
        """
        told = own if totals is None else own[:, :-1]
        total = yield from open_vector(self.shares, told.size, bits, share)
        assert total is not None
        opened = total.astype(np.int64).reshape(told.shape)
        return checked_counts(opened, own, totals, self.roster.suspects, "shares/open")

    def _differ(self, step: str) -> RemoteProtocolError:
        return RemoteProtocolError(self.roster.judges, step, "leader and deputy tell different things")


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()[:_DIGEST_BYTES]


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
    # Seeds come first, though this takes a round: a party that is lost before its seed costs nobody a charge.
    shares = yield from setup_shares(roster.me, roster.parties, pair, job_hash, rng)
    session: GarblerSession | EvaluatorSession
    if roster.leads:
        session = yield from open_garbler(roster.me, roster.deputy, rng)
    elif roster.me == roster.deputy:
        session = yield from open_evaluator(roster.me, roster.leader, rng)
    else:
        return Pair(roster, shares, None)
    return Pair(roster, shares, Engine(session, observer, LookUps(session.transfers, rng)))
