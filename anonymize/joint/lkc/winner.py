"""Winner of a turn: the maximum over the parties of a vertical run ([T] Algorithm 5.1, lines 4 to 9).

In a sealed run, the parties' best candidates meet inside a garbled circuit that opens only the winning party. As
published (`disclosure: leader`), every party sends its best score to all.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.joint.lkc.setting import Setting
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import CircuitSessions, Ends
from anonymize.scores.score import Ranked
from anonymize.table import Schema
from crypto.comparison import Entrant, EntrantWidths, joint_maximum, secure_maximum
from crypto.encoding import decode_words, encode_words
from crypto.errors import RemoteProtocolError
from crypto.rounds import Round, Rounds
from crypto.shares import ComputePair, Shares, ShareSession, setup_shares, share_vector
from crypto.two_party import Computation

_SCORE = "vertical/score"
_FIELDS = 4
_NOBODY = Entrant(False, 0, 1, 0)


@dataclass(frozen=True)
class Scale:
    """Candidates as numbers: the greatest numerator / denominator wins; on ties, the smallest tie key.

    widths:      widths of these numbers, from public bounds.
    first_leaf:  tie key of each column's first leaf: candidate order is column order, then leaf order.
    """

    widths: EntrantWidths
    first_leaf: tuple[int, ...]

    def entrant(self, best: Ranked | None) -> Entrant:
        """Return the input of a party."""
        if best is None:
            return _NOBODY
        tie = self.first_leaf[best.candidate.column] + best.candidate.node.first
        return Entrant(True, best.numerator, best.denominator, tie)


def scale_for(schema: Schema, score: JointScore, n_records: int) -> Scale:
    """Return the scale for a table of ``n_records``."""
    leaves = np.cumsum([0, *(column.n_leaves for column in schema.qid)]).tolist()
    tie = max(1, (leaves[-1] - 1).bit_length())
    widths = EntrantWidths(*score.fraction_bits(schema, n_records), tie)
    return Scale(widths, tuple(leaves[:-1]))


class Maximum(Protocol):
    """Search for the winner. Each party has an object per run, and all keep in step."""

    @staticmethod
    def pairs(roster: Roster) -> list[Ends]:
        """Return the necessary sessions."""
        ...

    @classmethod
    def opened(cls, setting: Setting, widths: EntrantWidths, sessions: CircuitSessions) -> Rounds[Maximum]:
        """Set up all other necessary state. ``sessions``: including :meth:`pairs`.

        Raises RemoteProtocolError for a malformed message.
        """
        ...

    def winner(self, entrant: Entrant) -> Rounds[str | None]:
        """Return the party with the best candidate, or None without candidates."""
        ...


class SealedMaximum:
    """Maximum inside a garbled circuit at leader and deputy: only the winner is opened."""

    def __init__(
        self, roster: Roster, widths: EntrantWidths, engine: Computation | None, shares: ShareSession | None
    ) -> None:
        """``engine``: the pair's session; ``shares``: needed by three or more parties."""
        self._roster = roster
        self._pair = roster.leader, roster.deputy
        self._widths = widths
        self._engine = engine
        self._shares = shares

    @staticmethod
    def pairs(roster: Roster) -> list[Ends]:
        return [(roster.leader, roster.deputy)]

    @classmethod
    def opened(cls, setting: Setting, widths: EntrantWidths, sessions: CircuitSessions) -> Rounds[Maximum]:
        roster = setting.roster
        engine, shares = sessions.of_pair(roster.me, (roster.leader, roster.deputy)), None
        if len(roster.parties) > 2:
            pair = ComputePair(roster.leader, roster.deputy)
            job_hash = setting.request.job_hash
            shares = yield from setup_shares(roster.me, roster.parties, pair, job_hash, setting.rng)
        return cls(roster, widths, engine, shares)

    def winner(self, entrant: Entrant) -> Rounds[str | None]:
        if self._shares is None:
            assert self._engine is not None
            place = yield from secure_maximum(self._engine, [entrant], (1, 1), self._widths)
            return None if place is None else self._pair[place]
        parties = self._roster.parties
        place = yield from joint_maximum(
            self._roster.me, parties, self._pair, entrant, self._widths, self._share, self._engine
        )
        return None if place is None else parties[place]

    def _share(self, words: Shares) -> Rounds[NDArray[np.uint64] | None]:
        assert self._shares is not None
        share = yield from share_vector(self._shares, words)
        return None if share is None else share.astype(np.uint64)


class OpenMaximum:
    """Maximum in the clear, as published: every party sends its best score to all."""

    def __init__(self, roster: Roster, widths: EntrantWidths, ledger: RevealLedger) -> None:
        self._roster = roster
        self._widths = widths
        self._ledger = ledger

    @staticmethod
    def pairs(roster: Roster) -> list[Ends]:
        return []

    @classmethod
    def opened(cls, setting: Setting, widths: EntrantWidths, sessions: CircuitSessions) -> Rounds[Maximum]:
        return cls(setting.roster, widths, setting.ledger)
        yield

    def winner(self, entrant: Entrant) -> Rounds[str | None]:
        me, others = self._roster.me, self._roster.others
        own = np.array([entrant.valid, entrant.numerator, entrant.denominator, entrant.tie], dtype=np.uint64)
        inbox = yield Round(_SCORE, dict.fromkeys(others, encode_words(own)), frozenset(others))
        entrants = {me: entrant} | {party: self._decoded(inbox[party], party) for party in others}
        self._ledger.reveal("scores", entrants, "all", (len(entrants), _FIELDS))
        ranked = [
            (-Fraction(e.numerator, e.denominator), e.tie, party) for party, e in entrants.items() if e.valid
        ]
        return min(ranked)[2] if ranked else None

    def _decoded(self, payload: bytes, party: str) -> Entrant:
        valid, *numbers = decode_words(payload, _FIELDS, party, _SCORE).tolist()
        widths = list(self._widths.by_field.values())[1:]
        if valid > 1 or not numbers[1] or any(n >> width for n, width in zip(numbers, widths, strict=True)):
            raise RemoteProtocolError(party, _SCORE, "a score that no candidate has")
        return Entrant(bool(valid), *numbers)
