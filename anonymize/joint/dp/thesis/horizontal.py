"""Two-party horizontal DiffGen with the protocols of [T] 7.5: Max circuit, Taylor polynomial, RVP, comparison.

Algorithm 7.5 runs once for each candidate. A circuit adds up both parties' class counts and returns additive shares
of Max. An oblivious polynomial evaluation turns them into shares of the candidate's weight, a Taylor polynomial of
e^(r·u) in integers. Each choice then takes the sum of the weights, a random value below it, and a comparison. The
leader is the thesis' P_1; the deputy is P_2 and holds the Paillier key.

Corrections and additions (semantics §8.2): the degree follows from a stated error, and plaintexts too large for the
key are refused with the numbers. The factors lcm·10^sw are a power of two, shifted out in a circuit, so that weights
have few bits for RVP and comparison. Shares of weights are reduced to one ring. Numeric columns, which Algorithm 7.4
lacks, get split points by the same mechanism over the public grid; both parties learn every drawn split point.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain

import numpy as np

from anonymize.cut import Candidate, Cut
from anonymize.dp.diffgen import Histograms, Place
from anonymize.dp.noise import Noise, exact_noise
from anonymize.dp.noisy_table import NoisyTable, cell_counts, cut_domain
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp.columns import open_session
from anonymize.joint.dp.run import DpRequest, JointDpOutcome, run_diffgen
from anonymize.joint.dp.thesis.choice import check_thesis, choose_by_weight, weight_sum_circuit
from anonymize.joint.dp.thesis.ranges import KeySize, Ranges, ranges_for
from anonymize.joint.engine import Engine, carried
from anonymize.joint.roster import Roster
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from crypto.blocks import WORD_BITS
from crypto.builder import Builder, subtract
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import add_wide, extend
from crypto.circuits.selection import sum_of_maxima
from crypto.encoding import as_words, decode_words, encode_words, signed
from crypto.errors import LocalProtocolError
from crypto.paillier import (
    PrivateKey,
    PublicKey,
    generate_key,
    receive_key,
    send_key,
)
from crypto.polynomial import value_receiver, value_sender
from crypto.rng import Rng, uniform_below
from crypto.rounds import Rounds, exchange
from crypto.two_party import CarriedWords

_COUNTS = "dp/counts"


def release_horizontally_as_published(
    roster: Roster,
    table: CodedTable,
    request: DpRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
    key_size: KeySize = KeySize(),  # noqa: B008  frozen
) -> Rounds[JointDpOutcome]:
    """Release the union of two parties' tables by [T] Algorithms 7.4 to 7.7.

    Functionality:  DiffGen on the union with the exponential mechanism over integer weights, and the sum of two
                    discrete Laplace variables on every count; to both.
    Input, Output:  as :func:`anonymize.joint.dp.horizontal.release_horizontally`; two parties.
    Leakage:        the chosen specializations, every drawn split point, each party's noisy counts (ε-DP for its
                    records).
    Rounds:         at most 8 for every choice (split points are choices), 9 for every scoring of candidates (1 + h at
                    most), 4 besides; 4 more of a choice with probability 2^−64.
    Bytes:          32 for every AND gate; 2 · degree + 1 ciphertexts for every score.
    Assumes:        semi-honest parties; private authenticated channel; DCR.
    Source:         [T] 7.5; corrections in the module docstring.

    Raises SchemaError or PrivacyError for an unsupported release, before anything is sent; RemoteProtocolError for a
    malformed message; LocalProtocolError unless there are two parties.
    """
    observer = observer or Observer()
    check_thesis(request)
    request.check(table.n_records)
    if len(roster.parties) != 2 or {roster.leader, roster.deputy} != set(roster.parties):
        raise LocalProtocolError(
            f"engine thesis has two parties, a leader and a deputy, not {roster.parties}"
        )
    ranges = ranges_for(request)
    ranges.check_key(key_size.bits)
    reveals = RevealLedger(mode, observer=observer)
    session = yield from open_session(roster, rng, observer)
    key: PrivateKey | PublicKey
    if roster.leads:
        key = yield from receive_key(roster.deputy, key_size.bits, unsafe_short=key_size.unsafe_short)
    else:
        key = generate_key(roster.me, rng, key_size.bits, unsafe_short=key_size.unsafe_short)
        yield from send_key(roster.leader, key.public)
    weighing = Weighing(session.engine, key, ranges, rng)
    holder = PublishedHolder(weighing, table, request, exact_noise(rng), reveals)
    return (yield from run_diffgen(request, holder, reveals, request.plans(), observer))


class PublishedHolder:
    """Party of two, as a :class:`anonymize.dp.diffgen.Holder`."""

    def __init__(
        self,
        weighing: Weighing,
        table: CodedTable,
        request: DpRequest,
        noise: Noise,
        reveals: RevealLedger,
    ) -> None:
        self._weighing = weighing
        self._table = table
        self._schema = request.schema
        self._noise = noise
        self._reveals = reveals
        self._histograms = Histograms(table, {})
        self._weighed: dict[Place, tuple[Candidate, CarriedWords]] = {}

    def enter(self, places: Sequence[Place], rate: Fraction) -> Rounds[None]:
        """Weigh new candidates, intervals at all grid points; then draw the split points."""
        if not places:
            return
        options = [self._options(place) for place in places]
        weights = yield from self._weighing.weigh([self._histograms.parts(c) for c in chain(*options)])
        start = 0
        for place, candidates in zip(places, options, strict=True):
            own = weights.take(range(start, start + len(candidates)))
            start += len(candidates)
            chosen = 0
            if self._schema.qid[place.column].is_numeric:
                chosen = yield from self._weighing.choose(own)
                self._reveals.reveal("split", chosen, "all")
            self._weighed[place] = candidates[chosen], own.take([chosen])

    def _options(self, place: Place) -> list[Candidate]:
        """Return a node's specialization; for an interval, at every grid point."""
        column = self._schema.qid[place.column]
        n_splits = place.node.last - place.node.first - 1 if column.is_numeric else 1
        return [self._histograms.candidate(place, split) for split in range(1, n_splits + 1)]

    def pick(self, places: Sequence[Place], rate: Fraction) -> Rounds[Candidate]:
        self._reveals.iteration += 1
        weights = CarriedWords.concatenate([self._weighed[place][1] for place in places])
        chosen = yield from self._weighing.choose(weights)
        return self._reveals.reveal("candidate", self._weighed[places[chosen]][0], "all")

    def specialize(self, candidate: Candidate, test: Fraction | None) -> Rounds[None]:
        return
        yield

    def release(self, cut: Cut, rate: Fraction) -> Rounds[NoisyTable]:
        """Exchange own counts with own noise ([T] Algorithm 7.4, lines 9 to 13)."""
        domain, peer = cut_domain(self._schema, cut), self._weighing.peer
        own = cell_counts(self._table, cut, domain, {}) + np.array(self._noise.laplace(rate, domain.size))
        self._reveals.reveal("own_noisy_counts", own, "all")
        payload = yield from exchange(_COUNTS, peer, encode_words(own.astype(np.uint64)))
        counts: Ints = own + signed(decode_words(payload, len(own), peer, _COUNTS))
        return domain.table(self._reveals.reveal("noisy_counts", counts, "all"))


class Weighing:
    """Steps from class counts to weights inside the session, and choices by weight ([T] Algorithm 7.5)."""

    def __init__(self, engine: Engine, key: PrivateKey | PublicKey, ranges: Ranges, rng: Rng) -> None:
        self.peer = engine.peer
        self._engine = engine
        self._key = key
        self._ranges = ranges
        self._rng = rng

    def weigh(self, parts: Sequence[Ints]) -> Rounds[CarriedWords]:
        """Return the weights of candidates, from own class counts of their parts."""
        scores: list[int] = [0] * len(parts)
        for n_parts in dict.fromkeys(len(part) for part in parts):
            places = [i for i, part in enumerate(parts) if len(part) == n_parts]
            shares = yield from self._max(np.stack([parts[i] for i in places]))
            for place, share in zip(places, shares, strict=True):
                scores[place] = share
        return (yield from self._weights((yield from self._evaluate(scores))))

    def _max(self, counts: Ints) -> Rounds[list[int]]:
        """Run MAX (Algorithm 7.6). Return own shares of the scores, integers α_1 = Max − α_2 and α_2."""
        n, n_parts, n_classes = counts.shape
        circuit = max_circuit(n_parts, n_classes, self._ranges.count_bits, self._ranges.share_bits)
        role = self._engine.role
        inputs = {f"counts/{role.value}": counts.reshape(n, -1).astype(np.uint64)}
        if role is Held.GARBLER:
            outputs = yield from self._engine.run(circuit, n, inputs)
            alpha = np.asarray(outputs["alpha"]).reshape(-1).tolist()
            sign = 1 << self._ranges.share_bits
            return [int(a) - 2 * (int(a) & sign) for a in alpha]
        drawn = [uniform_below(self._rng, 1 << self._ranges.share_bits) for _ in range(n)]
        yield from self._engine.run(circuit, n, {**inputs, "alpha": as_words(drawn).reshape(-1, 1)})
        return drawn

    def _evaluate(self, scores: Sequence[int]) -> Rounds[list[int]]:
        """Run lines 10 and 11. Return own shares β and Q(α_2) − β of the values of the series, integers."""
        shape = self._ranges.polynomials(len(scores))
        if isinstance(self._key, PrivateKey):
            return (yield from value_receiver(self.peer, self._key, scores, shape, self._rng))
        masks = [uniform_below(self._rng, 1 << self._ranges.mask_bits) for _ in scores]
        polynomials = []
        for score, mask in zip(scores, masks, strict=True):
            constant, *others = self._ranges.series.shifted(score)
            polynomials.append([constant - mask, *others])
        yield from value_sender(self.peer, self._key, polynomials, shape, self._rng)
        return masks

    def _weights(self, shares: Sequence[int]) -> Rounds[CarriedWords]:
        """Add up the shares, reduced to one ring, and shift the scale out."""
        words = self._ranges.share_words
        reduced = [[share >> WORD_BITS * i & (1 << WORD_BITS) - 1 for i in range(words)] for share in shares]
        circuit = weight_circuit(words, self._ranges.series.shift, self._ranges.series.weights.bits)
        inputs = {self._engine.role.value: np.array(reduced, dtype=np.uint64).reshape(-1, words)}
        return carried((yield from self._engine.run(circuit, len(shares), inputs)), "weight")

    def choose(self, weights: CarriedWords) -> Rounds[int]:
        """Run SUM, RVP and COMPARISON (lines 13 to 15)."""
        circuit = weight_sum_circuit(len(weights), weights.width)
        outputs = yield from self._engine.run(circuit, 1, {"weights": weights})
        sums = np.asarray(outputs["sum"]).reshape(-1)
        return (yield from choose_by_weight(self._engine, weights, sums))


@lru_cache(maxsize=64)
def max_circuit(n_parts: int, n_classes: int, count_bits: int, share_bits: int) -> Circuit:
    """Return the circuit MAX ([T] Algorithm 7.6): Σ over parts of the greatest class count, less α_2, to the garbler.

    α_1 is two's complement, one bit wider than α_2.
    """
    b = Builder(f"max/{n_parts}/{n_classes}/{count_bits}/{share_bits}")
    sides = [
        b.input(f"counts/{held.value}", held, count_bits, n_parts * n_classes)
        for held in (Held.GARBLER, Held.EVALUATOR)
    ]
    (alpha,) = b.input("alpha", Held.EVALUATOR, share_bits)
    counts = [add_wide(b, x, y) for x, y in zip(*sides, strict=True)]
    groups = [counts[i : i + n_classes] for i in range(0, len(counts), n_classes)]
    width = share_bits + 1
    score = extend(sum_of_maxima(b, groups), width)
    b.output("alpha", To.GARBLER, [subtract(b, score, extend(alpha, width))])
    return b.build()


@lru_cache(maxsize=64)
def weight_circuit(words: int, shift: int, width: int) -> Circuit:
    """Return the circuit of the sum of both sides' words modulo 2**(64 · words), shifted right, in ``width`` bits."""
    b = Builder(f"weight/{words}/{shift}/{width}")
    sides = [
        [bit for word in b.input(held.value, held, WORD_BITS, words) for bit in word]
        for held in (Held.GARBLER, Held.EVALUATOR)
    ]
    value = add_wide(b, *sides)[: WORD_BITS * words]
    b.output("weight", To.CARRIED, [extend(value[shift:], width)])
    return b.build()
