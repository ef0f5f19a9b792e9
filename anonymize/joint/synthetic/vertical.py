"""Columns of the same records held by two parties, the class by both.

A marginal of one party's columns is a local count of the common records: that party's share, the peer's being 0. A
pair with a column at each is a joint histogram by class: both know each record's class, so it is a public group. All
pairs with one and the same column of the deputy come from one histogram, in which a record has a label for each of
the leader's columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.joint.dp.columns import OwnColumns
from anonymize.joint.dp.setting import PairSession
from anonymize.joint.roster import Roster
from anonymize.synthetic.marginals import Axis, Marginal
from anonymize.table import Ints
from crypto.encoding import Words
from crypto.joint_histogram import HistogramShape, joint_histogram_receive, joint_histogram_send
from crypto.ot.extension import OtSender
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import Shares


class JoinedColumns:
    """Shares of counts of common records, as a :class:`anonymize.joint.synthetic.holder.Tables`.

    Rounds:  2 for every column of the deputy that is in a pair with one of the leader.
    Bytes:   those of :func:`crypto.joint_histogram.joint_histogram_send` for each of these, the sender's labels being
             all bins of the leader's columns that are in a pair with it.
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
        """There is nobody outside the pair."""
        return payload
        yield

    def shares(self, marginals: Sequence[Marginal], bits: int) -> Rounds[Sequence[Words | None]]:
        shares = {marginal: self._local(marginal) for marginal in marginals}
        crossing = [marginal for marginal in marginals if len({*map(self._leads, marginal.axes)}) > 1]
        for axis in dict.fromkeys(self._sides(marginal)[1] for marginal in crossing):
            of_axis = [marginal for marginal in crossing if axis in marginal.axes]
            shares |= yield from self._crossed(axis, of_axis, bits)
        return [shares[marginal] for marginal in marginals]

    def _leads(self, axis: Axis) -> bool:
        """Whether the leader holds the column."""
        return (self._own.own(axis.column) is not None) == self.roster.leads

    def _sides(self, pair: Marginal) -> tuple[Axis, Axis]:
        """The leader's column and the deputy's, of a pair with one of each."""
        one, other = pair.axes
        return (one, other) if self._leads(one) else (other, one)

    def _local(self, marginal: Marginal) -> Words:
        """Counts of the common records if all columns are ours, else zeros; the leader counts classes alone."""
        numbers = [self._own.own(axis.column) for axis in marginal.axes]
        if None in numbers or not (numbers or self.roster.leads):
            return np.zeros(marginal.size, dtype=np.uint64)
        axes = tuple(
            Axis(n, axis.bins) for n, axis in zip(numbers, marginal.axes, strict=True) if n is not None
        )
        counts = Marginal(axes, marginal.n_classes).counts(self._own.table)
        return counts.reshape(-1).astype(np.uint64)

    def _crossed(self, axis: Axis, pairs: Sequence[Marginal], bits: int) -> Rounds[dict[Marginal, Words]]:
        """Shares of the pairs of one column of the deputy with columns of the leader."""
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
        """Our share by class, the leader's labels and the deputy's; the leader sends."""
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
        """The bin of every record in a column of ours, class by class."""
        number = self._own.own(axis.column)
        assert number is not None
        codes = self._own.table.qid[number][self._by_class]
        found: Ints = np.array(axis.bins, dtype=np.int64)[codes]
        return found

    def _in_order(self, pair: Marginal, block: Words) -> Words:
        """Counts by (class, leader's bin, deputy's bin) in the order of the marginal."""
        first, second = (1, 2) if self._leads(pair.axes[0]) else (2, 1)
        return block.transpose(first, second, 0).reshape(-1)
