"""Columns of the same records at two parties, the class at both.

A marginal of a party's own columns is a local count of the common records: the party's share, with 0 as the peer's
share. A pair with a column at each party is a joint histogram by class, a public group because both know each
record's class. All pairs with the same column of the deputy come from a single histogram, in which a record has a
label for each of the leader's columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.joint.columns import Columns, Holding
from anonymize.joint.dp.columns import AlignedPair, OwnColumns, PairSession, align_pair, open_aligned
from anonymize.joint.roster import Roster
from anonymize.joint.synthetic.run import JointSyntheticOutcome, SyntheticRequest, run_synthesis
from anonymize.synthetic.marginals import Axis, Marginal
from anonymize.table import Ints
from anonymize.tds import Observer, at_once
from crypto.encoding import Words
from crypto.joint_histogram import HistogramShape, joint_histogram_receive, joint_histogram_send
from crypto.ot.extension import OtSender
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import Shares


def synthesize_vertically(
    roster: Roster,
    columns: Columns,
    holding: Holding,
    request: SyntheticRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointSyntheticOutcome]:
    """Measure the join of two parties' tables on their common ids with differential privacy, for a synthetic table.

    Functionality:  a draw of :func:`anonymize.synthetic.single.synthesize_alone` on the joined table, up to δ, to
                    both.
    Input, each:    own ``holding``; roster, columns, request and ``mode``, whose list bounds the reveals, are public
                    and equal for both. Both hold the class, if any.
    Output, each:   the same :class:`anonymize.joint.synthetic.run.JointSyntheticOutcome`.
    Leakage:        of the alignment, *not* covered by ε: the sizes of both sets of ids, the common records, the
                    equality of the class values. Then the leakage of :func:`synthesize_aligned`.
    Rounds:         5 for the intersection, 4 for the class, and those of :func:`synthesize_aligned`.
    Bytes:          as these.
    Assumes:        as these; as :func:`crypto.intersection.intersect`.
    Source:         docs/dp.md; [T] 5.6.

    Raises, before anything is sent, SchemaError or PrivacyError for an unsupported release, LocalProtocolError unless
    there are two parties with fitting holdings; DataError without common records or for different classes;
    RemoteProtocolError for a malformed message.
    """
    pair = yield from align_pair(roster, columns, holding, request, rng, mode=mode, observer=observer)
    return (yield from _measured(pair))


def synthesize_aligned(
    roster: Roster,
    own: OwnColumns,
    request: SyntheticRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointSyntheticOutcome]:
    """Measure records that both parties already have in a common order.

    Functionality, Input, Output:  as :func:`synthesize_vertically`, with own columns of the common records.
    Leakage:        the noisy marginals and the chosen pairs. Sizes of messages and circuits follow from these, the
                    job and the number of records, known to both since the alignment. Toward the peer, who knows the
                    ids, the relation is substitution of a record: 2ε.
    Rounds:         at most 11 + 2·T, and 2 for every column of the deputy, if T ≥ 1 pairs are measured, else 7; more
                    for batches of many chunks (:meth:`crypto.two_party.GarblerSession.run`).
    Bytes:          those of :class:`anonymize.joint.synthetic.holder.JointHolder` and of :class:`JoinedColumns`;
                    before a run at most :func:`anonymize.joint.synthetic.run.cost_at_most`.
    Assumes:        semi-honest parties; private authenticated channel; both hold the class, and agree on it. The
                    leader of the roster garbles.
    Source:         as there.
    """
    pair = yield from open_aligned(roster, own, request, rng, mode=mode, observer=observer)
    return (yield from _measured(pair))


def _measured(pair: AlignedPair[SyntheticRequest]) -> Rounds[JointSyntheticOutcome]:
    joined = JoinedColumns(pair.roster, pair.own, pair.session, pair.rng)
    return (yield from run_synthesis(pair.request, joined, pair.reveals, pair.observer))


class JoinedColumns:
    """Shares of counts of common records, as a :class:`anonymize.joint.synthetic.holder.Tables`.

    Rounds:  2 for every column of the deputy in a pair with a column of the leader.
    Bytes:   those of :func:`crypto.joint_histogram.joint_histogram_send` for each such column; the sender's labels
             are all bins of the leader's columns in a pair with it.
    """

    def __init__(self, roster: Roster, own: OwnColumns, session: PairSession, rng: Rng) -> None:
        self.roster = roster
        self.engine = session.engine
        self.most_records = own.n_records
        self._own = own
        self._transfers = session.transfers
        self._rng = rng
        classes = own.table.axis(0)
        self._by_class = np.argsort(classes, kind="stable")
        self._groups = np.bincount(classes, minlength=own.table.schema.n_classes)

    def tell(self, step: str, payload: bytes) -> Rounds[bytes]:
        """Return the payload: no party is outside the pair."""
        return at_once(payload)

    def shares(self, marginals: Sequence[Marginal], bits: int) -> Rounds[Sequence[Words | None]]:
        shares = {marginal: self._local(marginal) for marginal in marginals}
        crossing = [marginal for marginal in marginals if len({*map(self._leads, marginal.axes)}) > 1]
        for axis in dict.fromkeys(self._sides(marginal)[1] for marginal in crossing):
            of_axis = [marginal for marginal in crossing if axis in marginal.axes]
            shares |= yield from self._crossed(axis, of_axis, bits)
        return [shares[marginal] for marginal in marginals]

    def _leads(self, axis: Axis) -> bool:
        """Return True if the leader holds the column."""
        return (self._own.own(axis.column) is not None) == self.roster.leads

    def _sides(self, pair: Marginal) -> tuple[Axis, Axis]:
        """Return the leader's column and the deputy's, of a pair with one column of each."""
        one, other = pair.axes
        return (one, other) if self._leads(one) else (other, one)

    def _local(self, marginal: Marginal) -> Words:
        """Count the common records if all columns are own columns; otherwise return zeros."""
        numbers = [self._own.own(axis.column) for axis in marginal.axes]
        if None in numbers:
            return np.zeros(marginal.size, dtype=np.uint64)
        axes = tuple(
            Axis(n, axis.bins) for n, axis in zip(numbers, marginal.axes, strict=True) if n is not None
        )
        counts = Marginal(axes, marginal.n_classes).counts(self._own.table)
        return counts.reshape(-1).astype(np.uint64)

    def _crossed(self, axis: Axis, pairs: Sequence[Marginal], bits: int) -> Rounds[dict[Marginal, Words]]:
        """Return shares of the pairs of a deputy's column with columns of the leader."""
        leaders = [self._sides(pair)[0] for pair in pairs]
        sizes = [leader.n_bins for leader in leaders]
        starts: Ints = np.cumsum(sizes) - np.array(sizes)
        shape = HistogramShape(self._own.n_records, sum(sizes), axis.n_bins, share_bits=bits)
        share = yield from self._histogram(leaders, starts, axis, shape)
        blocks = np.split(share.astype(np.uint64), starts[1:], axis=1)
        return {pair: self._in_order(pair, block) for pair, block in zip(pairs, blocks, strict=True)}

    def _histogram(
        self, leaders: Sequence[Axis], starts: Ints, axis: Axis, shape: HistogramShape
    ) -> Rounds[Shares]:
        """Return the own share by class, the leader's labels and the deputy's; the leader sends."""
        if isinstance(self._transfers, OtSender):
            labels = np.stack([self._labels(leader) for leader in leaders], axis=1) + starts
            return (
                yield from joint_histogram_send(
                    self._transfers, labels, shape, self._rng, groups=self._groups
                )
            )
        labels = self._labels(axis)
        return (yield from joint_histogram_receive(self._transfers, labels, shape, self._groups))

    def _labels(self, axis: Axis) -> Ints:
        """Return the bin of every record in an own column, class by class."""
        number = self._own.own(axis.column)
        assert number is not None
        codes = self._own.table.qid[number][self._by_class]
        found: Ints = np.array(axis.bins, dtype=np.int64)[codes]
        return found

    def _in_order(self, pair: Marginal, block: Words) -> Words:
        """Arrange counts by (class, leader's bin, deputy's bin) in the marginal's order, possibly without class."""
        by_class = block if pair.n_classes > 1 else block.sum(axis=0, keepdims=True)
        first, second = (1, 2) if self._leads(pair.axes[0]) else (2, 1)
        return by_class.transpose(first, second, 0).reshape(-1)
