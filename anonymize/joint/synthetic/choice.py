"""Noisy Kruskal at leader and deputy: choice of pairs of columns by scores inside circuits.

A pair's score is the distance of its counts from the expected counts, less a penalty
(:func:`anonymize.synthetic.marginals.score`). Counts come as shares; the rest is public. Each score gets a geometric
draw unknown to all. Then the best remaining pair is opened, as often as the job requires. The remaining pairs follow
from the opened winners, so the replayed matches of the tournament reveal nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from anonymize.joint.dp import circuits as dp_circuits
from anonymize.joint.dp.noise import noisy_scores, revealed, tag_bits
from anonymize.joint.engine import Engine, Fields, carried, low_bits
from anonymize.joint.standings import SLOT, Entry, Standings, place_of
from anonymize.synthetic.holder import Question
from anonymize.synthetic.marginals import Marginal, closing_none
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import total_of_absolutes
from crypto.circuits.constants import NoisePlan
from crypto.encoding import Words, as_words
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords

BLOCK = 16
"""Cells of a pair in a gate circuit."""


@dataclass(frozen=True)
class Contest(Question):
    """Public part of a choice between holders.

    most_records:  all records together, at most.
    """

    most_records: int

    @classmethod
    def of(cls, question: Question, most_records: int) -> Contest:
        return cls(question.pairs, question.expected, question.penalties, most_records)

    @property
    def offsets(self) -> list[int]:
        """Penalties as offsets that make all scores non-negative in the same order."""
        most = max(self.penalties)
        return [most - penalty for penalty in self.penalties]

    @property
    def width(self) -> int:
        """Bits of the difference between a count and its expectation, two's complement."""
        above = self.most_records - min(int(e.min()) for e in self.expected)
        below = max(int(e.max()) for e in self.expected)
        return max(above, below).bit_length() + 1

    @property
    def score_width(self) -> int:
        """Bits of every score there can be."""
        most = max(int(np.abs(e).sum()) + o for e, o in zip(self.expected, self.offsets, strict=True))
        return (self.most_records + most).bit_length()


def chosen_forest(
    engine: Engine, contest: Contest, shares: Sequence[Words], plan: NoisePlan, n_edges: int
) -> Rounds[tuple[int, ...]]:
    """Choose ``n_edges`` pairs by noisy Kruskal. Only the winners are opened, one by one.

    Functionality:  numbers of pairs, best first, to both; pairs that close a cycle are skipped, ties go to the first.
                    The law is that of :meth:`anonymize.synthetic.holder.Holder.choose`, up to the plan's distance.
    Input, each:    ``shares`` of the pairs' counts, uint64, of each pair's shape, modulo 2**contest.width or more;
                    the rest is public and equal for both.
    Output, each:   the numbers.
    Leakage:        these.
    Rounds:         4 before the opening of the first winner, then 1, and 2 for every other winner; 4 without winners.
    Bytes:          32 for every AND gate, 4 for every coin and every bit of a count, 24 for every bit of a winner.
    Assumes:        as :meth:`crypto.two_party.GarblerSession.run`.
    Source:         report noisy max ([T] 6.3, semantics §8.2), once for all picks (docs/dp.md).

    Raises RemoteProtocolError for a malformed message of the peer, or for a winner outside the remaining pairs.
    """
    differences = [share.reshape(-1) for share in shares]
    if engine.role is Held.GARBLER:
        expected = [as_words(each.reshape(-1)) for each in contest.expected]
        differences = [share - each for share, each in zip(differences, expected, strict=True)]
    scores = yield from _scores(engine, contest, differences)
    n_pairs = len(contest.pairs)
    tags, width = np.arange(n_pairs), contest.score_width
    noisy = yield from noisy_scores(engine, scores, width, plan, tags, tag_bits(n_pairs))
    return (yield from _kruskal(engine, noisy, contest, n_edges))


def _scores(engine: Engine, contest: Contest, differences: Sequence[Words]) -> Rounds[CarriedWords]:
    """Return Σ |difference| + offset of every pair: the offset is a further summand; cells are padded with zeros."""
    width = contest.score_width
    sizes = n_blocks(contest.pairs)
    blocks = np.zeros(BLOCK * sum(sizes), dtype=np.uint64)
    starts = BLOCK * (np.cumsum(sizes) - sizes)
    for start, difference in zip(starts, differences, strict=True):
        blocks[start : start + len(difference)] = difference
    circuit = distance_circuit(BLOCK, contest.width, width)
    inputs = {"difference": low_bits(blocks, contest.width).reshape(-1, BLOCK)}
    distances = carried((yield from engine.run(circuit, sum(sizes), inputs)), "score")
    offsets = yield from engine.carry(contest.offsets, width)
    summands = CarriedWords.concatenate([offsets, distances])
    of_pair = np.concatenate([np.arange(len(sizes)), np.repeat(np.arange(len(sizes)), sizes)])
    order = np.argsort(of_pair, kind="stable")
    scores = {"score": summands.take(order)}
    summed = yield from engine.reduce(dp_circuits.sum_circuit(width), scores, [1 + n for n in sizes])
    return summed["score"]


def n_blocks(pairs: Sequence[Marginal]) -> list[int]:
    """Return the number of blocks of cells of each pair."""
    return [-(-pair.size // BLOCK) for pair in pairs]


def _kruskal(engine: Engine, noisy: Fields, contest: Contest, n_edges: int) -> Rounds[tuple[int, ...]]:
    """Open the best remaining pair, repeatedly."""
    columns = [pair.columns for pair in contest.pairs]
    scores = noisy["noisy"]
    entries = [Entry(i, i, {"noisy": scores.take([i])}) for i in range(len(columns))]
    standings = Standings(lambda bits: dp_circuits.better_circuit((("noisy", scores.width), (SLOT, bits))))
    chosen: tuple[int, ...] = ()
    for _ in range(n_edges):
        left = closing_none(columns, chosen)
        best = yield from standings.best(engine, [entries[i] for i in left], noisy["tag"])
        found = yield from revealed(engine, {SLOT: best[SLOT]})
        chosen += (left[place_of(found[SLOT], left, engine.peer)],)
    return chosen


@lru_cache(maxsize=64)
def distance_circuit(n_cells: int, width: int, score_width: int) -> Circuit:
    """Return the circuit of Σ |x| of shared differences, two's complement: 2·width gates a cell, half to recombine
    and half to add up.

    score_width:  width of the sum, which must fit.
    """
    b = Builder(f"distance/{n_cells}/{width}/{score_width}")
    differences = b.input("difference", Held.ADDITIVE_SHARED, width, n_cells)
    b.output("score", To.CARRIED, [total_of_absolutes(b, differences, score_width)])
    return b.build()
