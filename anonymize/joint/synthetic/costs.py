"""Costs of a joint run before any data is read: gates, bytes and rounds as functions of the job.

:class:`Counted` answers the public loop like a holder, without data, and adds up the computation and messages of
joint holders. Only the replayed matches of a choice depend on the winners; their largest number is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from anonymize.joint.dp import circuits as dp_circuits
from anonymize.joint.dp.noise import Plans, tag_bits
from anonymize.joint.engine import public_circuit
from anonymize.joint.standings import SLOT
from anonymize.joint.synthetic.choice import BLOCK, Contest, distance_circuit, n_blocks
from anonymize.synthetic.foreseen import Foreseen
from anonymize.synthetic.holder import Question
from anonymize.synthetic.marginals import Axis, Marginal
from anonymize.table import Ints
from anonymize.tds import Turn
from crypto.batch import Run
from crypto.circuit import Circuit, Held
from crypto.circuits.constants import NoisePlan
from crypto.joint_histogram import HistogramShape
from crypto.ot import punctured
from crypto.rng import SEED_BYTES
from crypto.shares import width_for

_BASE_BYTES = 4096 + 32 + punctured.MESSAGE_BYTES
_DIGEST_BYTES, _COUNT_BYTES, _NUMBER_BYTES = 16, 8, 4


@dataclass(frozen=True, slots=True)
class Cost:
    """Costs of a run. gates: AND gates. bytes: sent by all parties. rounds: at most, one after another."""

    gates: int = 0
    bytes: int = 0
    rounds: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.gates + other.gates, self.bytes + other.bytes, self.rounds + other.rounds)

    def seconds(self, latency_s: float, bytes_per_s: float) -> float:
        """Return the seconds on a one-way line, where bytes follow each other and rounds wait."""
        return self.bytes / bytes_per_s + self.rounds * latency_s


class Spread(Protocol):
    """Costs of the spread of records over holders, as those of a
    :class:`anonymize.joint.synthetic.holder.Tables`.

    setup:  from the first message to the first table.
    """

    most_records: int
    setup: Cost

    def shared(self, marginals: Sequence[Marginal], bits: int) -> Cost:
        """Return the cost of sharing counts."""
        ...

    def told(self, n_bytes: int) -> Cost:
        """Return the cost of a message to the parties outside the pair."""
        ...


class Rows:
    """Rows at ``n_parties``, each with at most ``max_rows``."""

    def __init__(self, n_parties: int, max_rows: int) -> None:
        self.most_records = n_parties * max_rows
        self._outside = n_parties - 2
        self._waits = int(self._outside > 0)
        self.setup = Cost(
            0, _BASE_BYTES + SEED_BYTES * (n_parties - 1), 3 - self._waits
        )  # first shares go along

    def shared(self, marginals: Sequence[Marginal], bits: int) -> Cost:
        width = width_for((1 << bits) - 1)
        n_cells = sum(marginal.size for marginal in marginals)
        return Cost(0, self._outside * n_cells * width // 8, self._waits)

    def told(self, n_bytes: int) -> Cost:
        return Cost(0, self._outside * (n_bytes + _DIGEST_BYTES), self._waits)


class Joined:
    """Columns of ``n_records`` at two parties, once aligned. leaders: the numbers of the leader's columns."""

    def __init__(self, leaders: Sequence[int], n_records: int) -> None:
        self.most_records = n_records
        self._leaders = frozenset(leaders)
        self.setup = Cost(0, _BASE_BYTES, 2)

    def shared(self, marginals: Sequence[Marginal], bits: int) -> Cost:
        of_deputy: dict[Axis, int] = {}
        for marginal in marginals:
            ours = [axis for axis in marginal.axes if axis.column in self._leaders]
            theirs = [axis for axis in marginal.axes if axis.column not in self._leaders]
            if ours and theirs:
                of_deputy[theirs[0]] = of_deputy.get(theirs[0], 0) + ours[0].n_bins
        shapes = [
            HistogramShape(self.most_records, n_labels, axis.n_bins, share_bits=bits)
            for axis, n_labels in of_deputy.items()
        ]
        return Cost(0, sum(shape.total_bytes for shape in shapes), 2 * len(shapes))

    def told(self, n_bytes: int) -> Cost:
        return Cost()


class Counted(Foreseen):
    """Holder without records that adds up the costs of joint holders with the largest number of records."""

    def __init__(self, spread: Spread, plans: Plans) -> None:
        super().__init__(spread.most_records)
        self.cost = spread.setup + Cost(rounds=1)  # the round of the last opening
        self._spread = spread
        self._plans = plans
        self._known: set[Marginal] = set()
        self._width = spread.most_records.bit_length()

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Turn[list[Ints]]:
        n_cells = sum(marginal.size for marginal in marginals)
        circuit = dp_circuits.noisy_count_circuit(self._width, self._plans.laplace(rate, n_cells))
        self._share([marginal for marginal in marginals if marginal not in self._known], self._width)
        self.cost += _batch(circuit, n_cells) + self._spread.told(_COUNT_BYTES * n_cells) + Cost(rounds=2)
        return super().measure(marginals, rate)

    def _share(self, marginals: Sequence[Marginal], bits: int) -> None:
        if marginals:
            self.cost += self._spread.shared(marginals, bits)
            self._known.update(marginals)

    def choose(self, question: Question, rate: Fraction, n_edges: int) -> Turn[tuple[int, ...]]:
        most = self._spread.most_records
        pairs = question.pairs
        contest = Contest(pairs, [_at_one_place(pair, most) for pair in pairs], question.penalties, most)
        self._share(pairs, contest.width)
        self.cost += _choice(contest, self._plans.geometric(rate, len(pairs)), n_edges)
        self.cost += self._spread.told(_NUMBER_BYTES * n_edges) + Cost(rounds=2 + 2 * n_edges)
        return super().choose(question, rate, n_edges)


def _at_one_place(pair: Marginal, count: int) -> Ints:
    """Return the counts whose expectation takes the widest words."""
    found = np.zeros(pair.shape, dtype=np.int64)
    found.flat[0] = count
    return found


def _choice(contest: Contest, plan: NoisePlan, n_edges: int) -> Cost:
    """Return the cost of scores, noise, and picks."""
    n, width = len(contest.pairs), contest.score_width
    sizes, tag_width = n_blocks(contest.pairs), tag_bits(n)
    fields = (("noisy", dp_circuits.noisy_width(width, plan)), (SLOT, tag_width))
    batches = [
        (distance_circuit(BLOCK, contest.width, width), sum(sizes)),
        (public_circuit(width), n),
        *((dp_circuits.sum_circuit(width), batch) for batch in _halvings([1 + size for size in sizes])),
        (dp_circuits.noisy_score_circuit(Held.CARRIED, width, plan, tag_width), n),
        *((dp_circuits.better_circuit(fields), batch) for batch in _matches(n, n_edges)),
        *[(dp_circuits.reveal_circuit(fields[1:]), 1)] * n_edges,
    ]
    return sum((_batch(circuit, batch) for circuit, batch in batches), Cost())


def _batch(circuit: Circuit, batch: int) -> Cost:
    run = Run(circuit, batch, {}, b"")
    return Cost(circuit.and_gates * batch, run.total_bytes, run.more_rounds)


def _halvings(sizes: Sequence[int]) -> list[int]:
    """Return the batches that join each group's entries: :meth:`anonymize.joint.engine.Engine.reduce`."""
    counts, found = np.array(sizes, dtype=np.int64), []
    while counts.max() > 1:
        found.append(int((counts // 2).sum()))
        counts = counts // 2 + counts % 2
    return found


def _matches(n: int, n_edges: int) -> list[int]:
    """Return the most batches of matches: all for the first winner, then again the matches above dropped entries.

    Each entry drops out once, and no level of the tournament replays more matches than it has.
    """
    first = _halvings([n]) if n_edges else []
    later = max(0, n_edges - 1)
    anew = [min(-(-n >> k), -(-n // max(1, later))) for k in range(1, 1 + len(first))]
    return first + anew * later
