"""DiffGen over vertically partitioned columns, two parties ([T] 7.4, Algorithm 7.1).

The parties hold different columns of the same records, in a common order, and both hold the class. Each
scores its own columns and draws the split points of its own intervals. Report noisy max inside a circuit
finds the winner on both parties' private scores, with noise unknown to both. No value travels record by
record: a joint histogram gives the counts of the cells as additive shares, opened with noise.

Departures from [T]: noisy maxima in place of Algorithm 7.2, one joint histogram in place of a scalar product for each
leaf, joint noise (semantics §8.2). The published protocols: :mod:`anonymize.joint.dp.thesis.vertical`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Protocol

import numpy as np

from anonymize.cut import Candidate, Cut, top
from anonymize.dp.diffgen import Histograms, Place, noisy_max
from anonymize.dp.noise import exact_noise
from anonymize.dp.noisy_table import CellDomain, NoisyTable, cut_domain
from anonymize.dp.utility import utility
from anonymize.joint.columns import Columns, Holding
from anonymize.joint.dp.columns import AlignedPair, OwnColumns, align_pair, open_aligned
from anonymize.joint.dp.noise import Plans, best_of, noisy_counts, noisy_scores, revealed, tag_bits
from anonymize.joint.dp.run import DpRequest, JointDpOutcome, run_diffgen
from anonymize.joint.engine import low_bits
from anonymize.joint.messages import decode_candidate, encode_candidate
from anonymize.joint.roster import Roster
from anonymize.score import f_score
from anonymize.table import Ints
from anonymize.tds import Observer
from crypto.encoding import as_words, decode_words, encode_words, signed
from crypto.errors import RemoteProtocolError
from crypto.joint_histogram import HistogramShape, joint_histogram_receive, joint_histogram_send
from crypto.ot.extension import OtSender
from crypto.rng import Rng
from crypto.rounds import Rounds, exchange, receive, send
from crypto.shares import Shares
from crypto.two_party import expect_outcome

_SPLIT, _COUNTS = "dp/split", "dp/counts"
_WIDE = 1 << 32
"""Least sum with shares of 64 bits, which exact noise never exceeds."""


def release_vertically(
    roster: Roster,
    columns: Columns,
    holding: Holding,
    request: DpRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointDpOutcome]:
    """Release the join of two parties' tables on their common ids with differential privacy.

    Functionality:  a draw of ``anonymize.dp.diffgen.release_alone`` on the joined table, up to δ, to both.
    Input, each:    own ``holding``; roster, columns, request and ``mode``, whose list bounds the reveals, are public
                    and equal for both. Both hold the class.
    Output, each:   the same :class:`JointDpOutcome`.
    Leakage:        of the alignment, *not* covered by ε: the sizes of both sets of ids, the common records, the
                    equality of the class values. Then the leakage of :func:`release_aligned`.
    Rounds:         5 for the intersection, 4 for the class, and the rounds of :func:`release_aligned`.
    Bytes:          as these.
    Assumes:        as these; as :func:`crypto.intersection.intersect`.
    Source:         [T] 7.4, 5.6; semantics §8.

    Raises, before anything is sent, SchemaError or PrivacyError for an unsupported release, LocalProtocolError unless
    there are two parties with fitting holdings; DataError without common records or for different classes;
    RemoteProtocolError for a malformed message.
    """
    pair = yield from align_pair(roster, columns, holding, request, rng, mode=mode, observer=observer)
    return (yield from _released(pair))


def release_aligned(
    roster: Roster,
    own: OwnColumns,
    request: DpRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointDpOutcome]:
    """Release records that both parties already have in a common order.

    Functionality, Input, Output:  as :func:`release_vertically`, with own columns of the common records.
    Leakage:        the chosen specializations and the noisy counts. Sizes of messages and circuits follow from these,
                    the job and the number of records, known to both since the alignment. Toward the peer, who knows
                    the ids, the relation is substitution of a record: 2ε.
    Rounds:         at most 8 + 3·h, two fewer with ``noise: each``.
    Bytes:          32 for every AND gate and 4 for every coin; those of
                    :func:`crypto.joint_histogram.joint_histogram_send`; 8 for every cell with ``noise: each``.
    Assumes:        semi-honest parties; private authenticated channel; both hold the class, and agree on it. The
                    leader of the roster garbles.
    Source:         as there.
    """
    pair = yield from open_aligned(roster, own, request, rng, mode=mode, observer=observer)
    return (yield from _released(pair))


def _released(pair: AlignedPair[DpRequest]) -> Rounds[JointDpOutcome]:
    plans = pair.request.plans()
    holder = VerticalHolder(pair, CircuitProtocol(pair, plans))
    return (yield from run_diffgen(pair.request, holder, pair.reveals, plans, pair.observer))


class VerticalProtocol(Protocol):
    """Protocols of the two parties for choices and counts."""

    def split(self, scores: Sequence[int], rate: Fraction) -> int:
        """Draw the place of an own grid point, without the peer."""
        ...

    def pick(self, scores: Mapping[int, int], count: int, rate: Fraction) -> Rounds[int]:
        """Choose among ``count`` candidates, given the scores of own candidates by place."""
        ...

    def counts(self, labels: Ints, shape: tuple[int, int], rate: Fraction) -> Rounds[Ints]:
        """Open noisy counts of (leader's label, deputy's label), shape as given, from own labels by record."""
        ...


class VerticalHolder:
    """Party of the run, as a :class:`anonymize.dp.diffgen.Holder`."""

    def __init__(self, pair: AlignedPair[DpRequest], protocol: VerticalProtocol) -> None:
        request = pair.request
        self._roster = pair.roster
        self._peer = pair.peer
        self._columns = pair.own
        self._schema = request.schema
        self._protocol = protocol
        self._reveals = pair.reveals
        self._utility = utility(request.requirement.utility, request.requirement.max_rows)
        self._histograms = Histograms(pair.own.table, {})
        self._scored: dict[Place, tuple[Candidate, int]] = {}
        self._cut = top(request.schema)

    def enter(self, places: Sequence[Place], rate: Fraction) -> Rounds[None]:
        """Score own candidates; nothing is sent."""
        for place in places:
            own = self._columns.own(place.column)
            if own is not None:
                here = Place(own, place.node)
                candidate = self._histograms.candidate(here, self._split(here, rate))
                score = self._utility.score(self._histograms.parts(candidate))
                self._scored[place] = Candidate(place.column, place.node, candidate.children), score
        return
        yield

    def _split(self, here: Place, rate: Fraction) -> int:
        if not self._columns.table.schema.qid[here.column].is_numeric:
            return 0
        return 1 + self._protocol.split(self._utility.split_scores(self._histograms.cells(here)), rate)

    def pick(self, places: Sequence[Place], rate: Fraction) -> Rounds[Candidate]:
        self._reveals.iteration += 1
        own = {i: self._scored[place][1] for i, place in enumerate(places) if place in self._scored}
        place = places[(yield from self._protocol.pick(own, len(places), rate))]
        return self._reveals.reveal("candidate", (yield from self._settled(place)), "all")

    def _settled(self, place: Place) -> Rounds[Candidate]:
        """Return the winner with its split point, which the owner of an interval sends."""
        if place in self._scored:
            candidate = self._scored[place][0]
            if self._schema.qid[place.column].is_numeric:
                yield from send(_SPLIT, {self._peer: encode_candidate(candidate)})
            return candidate
        if not self._schema.qid[place.column].is_numeric:
            return Candidate(place.column, place.node, self._schema.qid[place.column].children(place.node))
        payload = yield from receive(_SPLIT, self._peer)
        told = decode_candidate(payload, self._schema, self._cut, self._peer, _SPLIT)
        if told is None or Place(told.column, told.node) != place:
            raise RemoteProtocolError(self._peer, _SPLIT, "a split point of another interval than won")
        return told

    def specialize(self, candidate: Candidate, test: Fraction | None) -> Rounds[None]:
        self._cut = self._cut.specialized(candidate)
        return
        yield

    def release(self, cut: Cut, rate: Fraction) -> Rounds[NoisyTable]:
        domain = cut_domain(self._schema, cut)
        sides = Sides(domain, self._leaders())
        labels = self._labels(cut, domain, sides.axes(leads=self._roster.leads))
        counts = yield from self._protocol.counts(labels, sides.shape, rate)
        return domain.table(self._reveals.reveal("noisy_counts", sides.in_order(counts), "all"))

    def _leaders(self) -> tuple[int, ...]:
        """Return the numbers of the leader's columns."""
        own = self._columns.numbers
        return own if self._roster.leads else tuple(i for i in range(len(self._schema.qid)) if i not in own)

    def _labels(self, cut: Cut, domain: CellDomain, axes: Sequence[int]) -> Ints:
        """Return the combination of values along own ``axes`` of every record: (n_records,)."""
        table = self._columns.table
        labels = np.zeros(self._columns.n_records, dtype=np.int64)
        for axis in axes:
            own = self._columns.own(axis)
            values = table.axis(0) if own is None else cut.positions(axis)[table.qid[own]]
            labels = labels * domain.shape[axis] + values
        return labels


@dataclass(frozen=True)
class Sides:
    """Cells of a release as pairs of labels: the leader's columns and the deputy's.

    Both hold the class. It goes to the side with fewer labels, so that the trees of the joint histogram and the
    vectors of their leaves stay small.
    """

    domain: CellDomain
    leaders: tuple[int, ...]

    def axes(self, *, leads: bool) -> tuple[int, ...]:
        """Return the axes of the domain in a side's labels, ascending; the class is the last axis."""
        n_columns = len(self.domain.columns)
        sides = [
            [i for i in range(n_columns) if i in self.leaders],
            [i for i in range(n_columns) if i not in self.leaders],
        ]
        sizes = [prod(self.domain.shape[i] for i in side) for side in sides]
        sides[sizes[1] <= sizes[0]].append(n_columns)
        return tuple(sides[not leads])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of labels: the leader's, the deputy's."""
        first, second = (
            prod(self.domain.shape[i] for i in self.axes(leads=leads)) for leads in (True, False)
        )
        return first, second

    def in_order(self, counts: Ints) -> Ints:
        """Arrange counts by (leader's label, deputy's label) in the order of the domain: shape (domain.size,)."""
        order = (*self.axes(leads=True), *self.axes(leads=False))
        split = counts.reshape([self.domain.shape[axis] for axis in order])
        return split.transpose(np.argsort(order)).reshape(-1)


class CircuitProtocol:
    """Noisy maxima and noisy counts inside circuits, a joint histogram; the default."""

    def __init__(self, pair: AlignedPair[DpRequest], plans: Plans) -> None:
        self._engine = pair.session.engine
        self._transfers = pair.session.transfers
        self._request = pair.request
        self._n_records = pair.own.n_records
        self._plans = plans
        self._rng = pair.rng
        self._noise = exact_noise(pair.rng)
        self._score_width = _score_bits(pair.request)

    def split(self, scores: Sequence[int], rate: Fraction) -> int:
        return noisy_max(scores, rate, self._noise)

    def pick(self, scores: Mapping[int, int], count: int, rate: Fraction) -> Rounds[int]:
        """Report noisy max over both sides' scores as XOR shares: the peer's share of an own score is 0."""
        own = np.zeros(count, dtype=np.uint64)
        own[list(scores)] = list(scores.values())
        plan = self._plans.geometric(rate, count)
        slots = np.arange(count)
        noisy = yield from noisy_scores(self._engine, own, self._score_width, plan, slots, tag_bits(count))
        best = yield from best_of(self._engine, noisy, [count])
        found = yield from revealed(self._engine, {"tag": best["tag"]})
        return expect_outcome(found["tag"], count, self._engine.peer)

    def counts(self, labels: Ints, shape: tuple[int, int], rate: Fraction) -> Rounds[Ints]:
        n_cells = prod(shape)
        if self._request.noise_for(n_cells) == "each":
            flat = yield from self._noise_of_each(labels, shape, rate)
        else:
            share = yield from self._histogram(labels, HistogramShape(self._n_records, *shape))
            width = self._n_records.bit_length()
            plan = self._plans.laplace(rate, n_cells)
            words = low_bits(share.astype(np.uint64).reshape(-1), width)
            flat = yield from noisy_counts(self._engine, words, width, plan)
        return flat.reshape(shape)

    def _histogram(self, labels: Ints, shape: HistogramShape) -> Rounds[Shares]:
        """Return the own share of the counts of (leader's label, deputy's label); the leader sends."""
        if isinstance(self._transfers, OtSender):
            return (yield from joint_histogram_send(self._transfers, labels, shape, self._rng))
        return (yield from joint_histogram_receive(self._transfers, labels, shape))

    def _noise_of_each(self, labels: Ints, shape: tuple[int, int], rate: Fraction) -> Rounds[Ints]:
        """Add own noise to own shares and exchange the sums. Each party can subtract only its own noise."""
        wide = HistogramShape(self._n_records, *shape, max_weight=_WIDE // self._n_records + 1)
        share = yield from self._histogram(labels, wide)
        own = share.reshape(-1) + as_words(self._noise.laplace(rate, share.size))
        payload = yield from exchange(_COUNTS, self._engine.peer, encode_words(own))
        return signed(own + decode_words(payload, own.size, self._engine.peer, _COUNTS))


def _score_bits(request: DpRequest) -> int:
    """Return the bits of every possible score: a public bound, so that circuit sizes reveal nothing about records."""
    most = request.requirement.max_rows
    if request.requirement.utility == "max":
        return most.bit_length()
    return int(f_score(np.array([most]))[0]).bit_length() + 1
