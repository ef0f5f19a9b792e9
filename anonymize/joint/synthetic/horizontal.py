"""Rows at two or more parties: every party shares its tables of counts with the pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.pair import Pair
from anonymize.joint.party import begin
from anonymize.joint.roster import Roster
from anonymize.joint.synthetic.run import JointSyntheticOutcome, SyntheticRequest, run_synthesis
from anonymize.synthetic.marginals import Marginal
from anonymize.table import CodedTable
from anonymize.tds import Observer
from crypto.encoding import Words
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import dtype, share_vector, width_for


def synthesize_horizontally(
    roster: Roster,
    table: CodedTable,
    request: SyntheticRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointSyntheticOutcome]:
    """Measure the union of the parties' tables with differential privacy, for a synthetic table.

    Functionality:  a draw of :func:`anonymize.synthetic.single.synthesize_alone` on the union, up to δ, to all.
    Input, each:    ``table``; roster, request and ``mode``, whose list bounds the reveals, are public and equal for
                    all.
    Output, each:   the same :class:`anonymize.joint.synthetic.run.JointSyntheticOutcome`.
    Leakage:        to all: the noisy marginals and the chosen pairs. Sizes of messages and circuits follow from these
                    and the job. Leader and deputy together could open everything.
    Rounds:         at most 12 + 2·T for two parties, 17 + 2·T for more, if T ≥ 1 pairs are measured, else 8 and 11;
                    more for batches of many chunks (:meth:`crypto.two_party.GarblerSession.run`).
    Bytes:          those of :class:`anonymize.joint.synthetic.holder.JointHolder` and of :class:`SharedRows`; before
                    a run at most :func:`anonymize.joint.synthetic.run.cost_at_most`.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels; n >= 2.
    Source:         docs/dp.md.

    Raises SchemaError or PrivacyError for an unsupported release, before anything is sent; RemoteProtocolError for a
    malformed message; LocalProtocolError for a roster without two different parties as the pair.
    """
    request.check(table.n_records)
    party = yield from begin(roster, request.job_hash, rng, RevealLedger(mode, observer=observer), observer)
    shared = SharedRows(party.pair, table, request.requirement.max_rows)
    return (yield from run_synthesis(request, shared, party.ledger, party.observer))


class SharedRows:
    """Shares of the sum of all parties' counts, as a :class:`anonymize.joint.synthetic.holder.Tables`.

    Rounds:  1 a call; none for two parties.
    Bytes:   2, 4 or 8 for every cell, once, from every party outside the pair, as ``bits`` asks.
    """

    def __init__(self, pair: Pair, table: CodedTable, max_rows: int) -> None:
        self.roster = pair.roster
        self.engine = pair.engine
        self.most_records = max_rows * len(pair.roster.parties)
        self.tell = pair.tell
        self._session = pair.shares
        self._table = table

    def shares(self, marginals: Sequence[Marginal], bits: int) -> Rounds[Sequence[Words | None]]:
        counts = np.concatenate([marginal.counts(self._table).reshape(-1) for marginal in marginals])
        words = dtype(width_for((1 << bits) - 1))
        share = yield from share_vector(self._session, counts.astype(words))
        if share is None:
            return [None] * len(marginals)
        ends = np.cumsum([marginal.size for marginal in marginals])
        return np.split(share.astype(np.uint64), ends[:-1])
