"""Party of a joint run, as a :class:`anonymize.synthetic.holder.Holder`: shares in, noisy openings out.

Rows of several holders and columns of two differ only in the source of the shares: a :class:`Tables`. The steps at
leader and deputy are the same, so a job has the same law of its openings, up to δ, for any spread of the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp.noise import Plans, noisy_counts
from anonymize.joint.engine import Engine, low_bits
from anonymize.joint.roster import Roster
from anonymize.joint.synthetic.choice import Contest, chosen_forest
from anonymize.synthetic.holder import Question
from anonymize.synthetic.marginals import Marginal, is_forest
from anonymize.table import Ints
from crypto.circuits.constants import NoisePlan
from crypto.encoding import Words, decode_integers, decode_words, encode_integers, encode_words, signed
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds

_MARGINALS, _FOREST = "synthetic/marginals", "synthetic/forest"
_NUMBER_BYTES = 4


class Tables(Protocol):
    """Source of a party's shares of counts.

    engine:        the session of leader and deputy; None outside the pair.
    most_records:  public bound on all records together.
    """

    @property
    def roster(self) -> Roster: ...

    @property
    def engine(self) -> Engine | None: ...

    @property
    def most_records(self) -> int: ...

    def shares(self, marginals: Sequence[Marginal], bits: int) -> Rounds[Sequence[Words | None]]:
        """Return own shares of all parties' counts, each of its marginal's size, modulo 2**bits or more; None outside
        the pair. ``marginals``: one or more.
        """
        ...

    def tell(self, step: str, payload: bytes) -> Rounds[bytes]:
        """Send the pair's opened values to the parties outside the pair: :meth:`anonymize.joint.pair.Pair.tell`."""
        ...


class JointHolder:
    """Party of the run.

    Marginals are shared once: the measurement of a pair uses the shares of its score, and a second measurement sends
    no shares.

    Functionality:  :class:`anonymize.synthetic.single.SingleHolder` on all records, up to δ, to every party.
    Input, each:    ``tables``; all arguments are public and equal for all.
    Output, each:   the same noisy counts, and the same pairs.
    Leakage:        these. Sizes of messages and circuits follow from them, the job and bounds on the records. Leader
                    and deputy together could open everything.
    Rounds:         ``measure`` 2, ``choose`` 2 and 2 for every edge, besides those of the tables and 1 to inform the
                    parties outside the pair; 1 more at the end for the last opening; more for batches of many chunks
                    (:meth:`crypto.two_party.GarblerSession.run`).
    Bytes:          between the pair 32 for every AND gate, 4 for every coin and every bit of a count, 24 for every
                    opened bit; those of the tables; to each party outside the pair from the leader 8 for every noisy
                    count and 4 for every edge, from the deputy 16 a call.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels.
    Source:         noise unknown to both as in [T] 7.5, semantics §8; the questions to a holder: docs/dp.md.

    Raises RemoteProtocolError for a malformed message, for an impossible noisy count, and for a pair outside the
    remaining pairs.
    """

    def __init__(self, tables: Tables, plans: Plans, reveals: RevealLedger) -> None:
        self._tables = tables
        self._plans = plans
        self._reveals = reveals
        self._shares: dict[Marginal, Words | None] = {}
        self._width = tables.most_records.bit_length()

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Rounds[list[Ints]]:
        sizes = [marginal.size for marginal in marginals]
        plan = self._plans.laplace(rate, sum(sizes))
        yield from self._share([m for m in marginals if m not in self._shares], self._width)
        flat = yield from self._opened(self._of(marginals), sum(sizes), plan)
        counts = zip(marginals, np.split(flat, np.cumsum(sizes)[:-1]), strict=True)
        return [self._reveals.reveal("noisy_marginal", c.reshape(m.shape), "all") for m, c in counts]

    def _share(self, marginals: Sequence[Marginal], bits: int) -> Rounds[None]:
        if marginals:
            shares = yield from self._tables.shares(marginals, bits)
            self._shares.update(zip(marginals, shares, strict=True))

    def _of(self, marginals: Sequence[Marginal]) -> list[Words]:
        """Return own shares of marginals, at leader and deputy."""
        return [share for share in map(self._shares.__getitem__, marginals) if share is not None]

    def _opened(self, shares: Sequence[Words], n_cells: int, plan: NoisePlan) -> Rounds[Ints]:
        """Open counts with noise, to all."""
        engine, leader, encoded = self._tables.engine, self._tables.roster.leader, b""
        if engine is not None:
            words = low_bits(np.concatenate(shares), self._width)
            noisy = yield from noisy_counts(engine, words, self._width, plan)
            encoded = encode_words(noisy.astype(np.uint64))
        payload = yield from self._tables.tell(_MARGINALS, encoded)
        counts = signed(decode_words(payload, n_cells, leader, _MARGINALS))
        most = 1 << plan.width - 1
        if counts.min() < -most or counts.max() > self._tables.most_records + most:
            suspects = self._tables.roster.suspects  # contains the shares of all parties
            raise RemoteProtocolError(suspects, _MARGINALS, "a count that no noise of this run makes")
        return counts

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Rounds[tuple[int, ...]]:
        pairs = question.pairs
        contest = Contest.of(question, self._tables.most_records)
        plan = self._plans.geometric(rate, len(pairs))
        yield from self._share(pairs, contest.width)
        engine, encoded = self._tables.engine, b""
        if engine is not None:
            forest = yield from chosen_forest(engine, contest, self._of(pairs), plan, n_edges)
            encoded = encode_integers(forest, _NUMBER_BYTES)
        payload = yield from self._tables.tell(_FOREST, encoded)
        leader = self._tables.roster.leader
        chosen = decode_integers(payload, _NUMBER_BYTES, n_edges, len(pairs), leader, _FOREST)
        if not is_forest([pair.columns for pair in pairs], chosen):
            raise RemoteProtocolError(leader, _FOREST, "a pair that closes a cycle")
        for number in chosen:
            self._reveals.iteration += 1
            self._reveals.reveal("edge", number, "all")
        return tuple(chosen)
