"""DiffGen over horizontally partitioned records, two or more parties ([T] 7.5, Algorithm 7.4).

Scores depend only on class counts by leaf, so every party shares these counts once with the compute pair, leader and
deputy. The pair scores candidates inside circuits, adds noise unknown to both, and learns the winner. Split points,
scores and noisy scores stay carried words. At the end every party shares its counts of the cells, and the pair opens
them with noise. The result has the law of DiffGen on the union, up to the run's δ.

Departures from [T]: n parties; noisy maxima inside circuits in place of Algorithm 7.5; numeric columns, which
Algorithm 7.4 lacks (semantics §8.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain

import numpy as np

from anonymize.candidates import prospects
from anonymize.cut import Candidate, Cut, top
from anonymize.dp.diffgen import Place, split_points
from anonymize.dp.noise import Noise, exact_noise
from anonymize.dp.noisy_table import NoisyTable, cell_counts, cut_domain
from anonymize.errors import SchemaError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp import circuits
from anonymize.joint.dp.noise import Plans, best_of, noisy_counts, noisy_scores, revealed, tag_bits
from anonymize.joint.dp.run import DpRequest, JointDpOutcome, run_diffgen
from anonymize.joint.engine import Engine, Fields, carried, low_bits
from anonymize.joint.messages import decode_candidate, encode_candidate, opened_candidate
from anonymize.joint.party import Party, begin
from anonymize.joint.roster import Roster
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from crypto.circuits.constants import NoisePlan
from crypto.encoding import Words, as_words, decode_words, encode_words, signed
from crypto.errors import RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import dtype, open_vector, share_vector, width_for
from crypto.two_party import CarriedWords, expect_outcome

_COUNT_BITS = 64


def release_horizontally(
    roster: Roster,
    table: CodedTable,
    request: DpRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointDpOutcome]:
    """Release the union of the parties' tables with differential privacy.

    Functionality:  a draw of ``anonymize.dp.diffgen.release_alone`` on the union, up to δ, to every party.
    Input, each:    ``table``; roster, request and ``mode``, whose list bounds the reveals, are public and equal for
                    all.
    Output, each:   the same :class:`JointDpOutcome`.
    Leakage:        to all: the chosen specializations and the noisy counts. Sizes of messages and circuits follow
                    from these and the job. Leader and deputy together could open everything.
    Rounds:         at most 6 + 6·h for two parties, 9 + 6·h for more.
    Bytes:          between the pair 32 for every AND gate and 4 for every coin; once, from each other party, 4 or 8
                    for every class count by leaf and every cell; to each of these, besides the leader's messages,
                    from the deputy 16 for every specialization and for the counts.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels; n >= 2.
    Source:         [T] 7.5; semantics §8.

    Raises SchemaError or PrivacyError for an unsupported release, before anything is sent; RemoteProtocolError for a
    malformed message; LocalProtocolError for a roster without two different parties as the pair.
    """
    request.check(table.n_records)
    if request.requirement.utility != "max":
        raise SchemaError(
            "job-invalid", "horizontal DP jobs have utility max: infogain would need every score in a circuit"
        )
    party = yield from begin(roster, request.job_hash, rng, RevealLedger(mode, observer=observer), observer)
    plans = request.plans()
    holder = HorizontalHolder(party, table, request, plans, exact_noise(rng))
    party.observer.opening()  # outside the pair, sharing is the last act before the pair opens something
    yield from holder.share()
    return (yield from run_diffgen(request, holder, party.ledger, plans, party.observer))


class HorizontalHolder:
    """Party of the run, as a :class:`anonymize.dp.diffgen.Holder`."""

    def __init__(
        self, party: Party, table: CodedTable, request: DpRequest, plans: Plans, noise: Noise
    ) -> None:
        self._pair = pair = party.pair
        self._table = table
        self._request = request
        self._schema = request.schema
        self._plans = plans
        self._noise = noise
        self._reveals = party.ledger
        self._observer = party.observer
        most_records = request.requirement.max_rows * len(pair.roster.parties)
        self._width = most_records.bit_length()
        self._share_bits = width_for(most_records)
        self._cut = top(request.schema)
        self._scores: Scores | None = None

    def share(self) -> Rounds[None]:
        """Give the pair shares of all parties' class counts by leaf, for all columns."""
        self._observer.phase("share")
        counts = [self._table.class_histogram(i) for i in range(len(self._schema.qid))]
        flat = np.concatenate([c.reshape(-1) for c in counts]).astype(dtype(self._share_bits))
        share = yield from share_vector(self._pair.shares, flat)
        if self._pair.engine is not None and share is not None:
            ends = np.cumsum([c.size for c in counts])[:-1]
            pieces = np.split(share.astype(np.uint64), ends)
            shaped = [piece.reshape(c.shape) for piece, c in zip(pieces, counts, strict=True)]
            self._scores = Scores(self._pair.engine, self._request, shaped, self._width)

    def enter(self, places: Sequence[Place], rate: Fraction) -> Rounds[None]:
        points = sum(split_points(self._schema, place) for place in places)
        plan = self._plans.geometric(rate, points) if points else None
        if self._scores is not None and places:
            yield from self._scores.enter(places, plan)

    def pick(self, places: Sequence[Place], rate: Fraction) -> Rounds[Candidate]:
        self._reveals.iteration += 1
        plan = self._plans.geometric(rate, len(places))
        chosen = (yield from self._scores.pick(places, plan)) if self._scores is not None else None
        step = "dp/candidate"
        payload = yield from self._pair.tell(step, encode_candidate(chosen))
        candidate = decode_candidate(payload, self._schema, self._cut, self._pair.roster.leader, step)
        if candidate is None:
            raise RemoteProtocolError(self._pair.roster.leader, step, "no candidate where there are some")
        return self._reveals.reveal("candidate", candidate, "all")

    def specialize(self, candidate: Candidate, test: Fraction | None) -> Rounds[None]:
        self._cut = self._cut.specialized(candidate)
        return
        yield

    def release(self, cut: Cut, rate: Fraction) -> Rounds[NoisyTable]:
        domain = cut_domain(self._schema, cut)
        own = cell_counts(self._table, cut, domain, {})
        if self._request.noise_for(domain.size) == "each":
            counts = yield from self._noise_of_each(own, rate)
        else:
            counts = yield from self._joint_noise(own, self._plans.laplace(rate, domain.size))
        return domain.table(self._reveals.reveal("noisy_counts", counts, "all"))

    def _joint_noise(self, own: Ints, plan: NoisePlan) -> Rounds[Ints]:
        share = yield from share_vector(self._pair.shares, own.astype(dtype(self._share_bits)))
        encoded = b""
        if self._pair.engine is not None and share is not None:
            words = low_bits(share.astype(np.uint64), self._width)
            noisy = yield from noisy_counts(self._pair.engine, words, self._width, plan)
            encoded = encode_words(noisy.astype(np.uint64))
        payload = yield from self._pair.tell("dp/counts", encoded)
        return signed(decode_words(payload, len(own), self._pair.roster.leader, "dp/counts"))

    def _noise_of_each(self, own: Ints, rate: Fraction) -> Rounds[Ints]:
        """Open the counts with noise of leader and deputy. Each can subtract only its own noise ([T] 7.4)."""
        share = yield from share_vector(self._pair.shares, own.astype(np.uint64))
        if share is not None:
            share = share + as_words(self._noise.laplace(rate, len(own)))
        total = yield from open_vector(self._pair.shares, len(own), _COUNT_BITS, share)
        assert total is not None
        return signed(total.astype(np.uint64))


class Scores:
    """Candidates at leader or deputy, with scores and split points of intervals inside circuits.

    shares:  own shares of the class counts by leaf, per column: uint64, shape (n_leaves, n_classes).
    """

    def __init__(self, engine: Engine, request: DpRequest, shares: Sequence[Words], width: int) -> None:
        self._engine = engine
        self._schema = request.schema
        self._shares = shares
        self._width = width
        self._index_bits = max(column.n_leaves for column in request.schema.qid).bit_length()
        self._of: dict[Place, Fields] = {}

    def enter(self, places: Sequence[Place], plan: NoisePlan | None) -> Rounds[None]:
        """Score nodes. The split point of an interval is the grid point with the greatest noisy score."""
        intervals = [place for place in places if self._schema.qid[place.column].is_numeric]
        fixed = [place for place in places if not self._schema.qid[place.column].is_numeric]
        parts = [self._sides(place) for place in intervals] + [self._children(place) for place in fixed]
        sizes = [[2] * (len(p) // 2) for p in parts[: len(intervals)]] + [
            [len(p)] for p in parts[len(intervals) :]
        ]
        scores = yield from self._sums(np.concatenate(parts), list(chain(*sizes)))
        n_points = [len(s) for s in sizes[: len(intervals)]]
        if plan is not None:
            yield from self._split(intervals, scores.take(range(sum(n_points))), n_points, plan)
        if fixed:
            yield from self._keep(fixed, scores.take(range(sum(n_points), len(scores))))

    def _sides(self, place: Place) -> Words:
        """Return the class counts left and right of every grid point in turn, shape (2 · points, n_classes)."""
        cells = self._shares[place.column][place.node.first : place.node.last]
        left = np.cumsum(cells, axis=0, dtype=np.uint64)
        right = left[-1] - left
        return np.stack([left[:-1], right[:-1]], axis=1).reshape(-1, cells.shape[1])

    def _children(self, place: Place) -> Words:
        """Return the class counts of every child, shape (n_children, n_classes)."""
        starts = [child.first for child in self._schema.qid[place.column].children(place.node)]
        leaves = self._shares[place.column][: place.node.last]
        return np.add.reduceat(leaves, starts, axis=0, dtype=np.uint64)

    def _sums(self, parts: Words, sizes: Sequence[int]) -> Rounds[CarriedWords]:
        """Return Max of every group of parts ([T] Eq. 6.4)."""
        circuit = circuits.greatest_circuit(self._schema.n_classes, self._width)
        inputs = {"counts": low_bits(parts, self._width)}
        greatest = carried((yield from self._engine.run(circuit, len(parts), inputs)), "score")
        summed = yield from self._engine.reduce(circuits.sum_circuit(self._width), {"score": greatest}, sizes)
        return summed["score"]

    def _split(
        self, intervals: Sequence[Place], scores: CarriedWords, n_points: Sequence[int], plan: NoisePlan
    ) -> Rounds[None]:
        """Draw the split points of intervals by report noisy max over their grid points."""
        points = np.concatenate([np.arange(1, n + 1) for n in n_points])
        noisy = yield from noisy_scores(self._engine, scores, self._width, plan, points, self._index_bits)
        best = yield from best_of(self._engine, {**noisy, "score": scores}, n_points)
        for i, place in enumerate(intervals):
            self._of[place] = {"score": best["score"].take([i]), "index": best["tag"].take([i])}

    def _keep(self, places: Sequence[Place], scores: CarriedWords) -> Rounds[None]:
        zeros = yield from self._engine.carry([0] * len(places), self._index_bits)
        for i, place in enumerate(places):
            self._of[place] = {"score": scores.take([i]), "index": zeros.take([i])}

    def pick(self, places: Sequence[Place], plan: NoisePlan) -> Rounds[Candidate]:
        """Report noisy max over the candidates; only the winner and its split point are opened."""
        scores, indices = (
            CarriedWords.concatenate([self._of[place][name] for place in places])
            for name in ("score", "index")
        )
        slots = np.arange(len(places))
        noisy = yield from noisy_scores(self._engine, scores, self._width, plan, slots, tag_bits(len(places)))
        best = yield from best_of(self._engine, {**noisy, "index": indices}, [len(places)])
        found = yield from revealed(self._engine, {name: best[name] for name in ("tag", "index")})
        place = places[expect_outcome(found["tag"], len(places), self._engine.peer)]
        column = self._schema.qid[place.column]
        (prospect,) = prospects(place.column, column, place.node, each_child=False)
        return opened_candidate(prospect, found["index"], self._engine.peer)
