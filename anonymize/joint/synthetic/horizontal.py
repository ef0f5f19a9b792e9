"""Rows held by two or more: every party shares its tables of counts with the pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.joint.pair import Pair
from anonymize.synthetic.marginals import Marginal
from anonymize.table import CodedTable
from crypto.encoding import Words
from crypto.rounds import Rounds
from crypto.shares import dtype, share_vector, width_for


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
