"""Noise unknown to all: drawn by leader and deputy inside circuits, with a known distance from ideal noise.

Noise inside circuits has finitely many binary digits from finitely many coins. All parties, also outside the
pair, know the plans: plans follow from public sizes, and their distances add up to the run's δ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from anonymize.joint.dp import circuits
from anonymize.joint.engine import Engine, Fields, carried
from anonymize.table import Ints
from crypto.circuit import Held
from crypto.circuits.constants import NoisePlan, delta_of, distance_for, geometric_plan, laplace_plan
from crypto.encoding import Words
from crypto.errors import LocalProtocolError
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords

DELTA = Fraction(1, 2**40)
"""No joint run has a greater δ."""
COIN_DISTANCE = Fraction(1, 2**64)
"""Largest distance of a DiffGen run: a table has 64 coins more than necessary to number the tables."""


@dataclass
class Plans:
    """Noise plans of a run: the drawn plans, and their total distance from ideal noise.

    epsilon:   the whole budget.
    steps:     public bound on the number of plans.
    most:      largest distance of the run, besides the limit of :data:`DELTA`.
    distance:  bound on the total variation distance of all draws so far from ideal draws.
    """

    epsilon: Fraction
    steps: int
    most: Fraction = COIN_DISTANCE
    distance: Fraction = field(default=Fraction(0), init=False)

    @property
    def delta(self) -> Fraction:
        """Delta (δ) of the draws so far: the run is (epsilon, delta)-DP."""
        return delta_of(self.distance, self.epsilon)

    def geometric(self, rate: Fraction, draws: int) -> NoisePlan:
        """Plan so many geometric variables."""
        return self._drawn(_geometric(rate, _rounded(draws), self._share()))

    def laplace(self, rate: Fraction, draws: int) -> NoisePlan:
        """Plan so many discrete Laplace variables."""
        return self._drawn(_laplace(rate, _rounded(draws), self._share()))

    def _share(self) -> Fraction:
        """Return the largest distance from ideal noise of a single plan."""
        return min(self.most, distance_for(DELTA, self.epsilon)) / self.steps

    def _drawn(self, plan: NoisePlan) -> NoisePlan:
        """Count a plan in. Raises LocalProtocolError, for an internal error, if the run would miss its δ."""
        if self.distance + plan.distance > self.steps * self._share():
            raise LocalProtocolError("more plans than the run was said to have")
        self.distance += plan.distance
        return plan


_geometric = lru_cache(maxsize=256)(geometric_plan)
_laplace = lru_cache(maxsize=256)(laplace_plan)


def _rounded(draws: int) -> int:
    """Round up to a power of two, so that few plans and circuits serve all steps of a run."""
    return 1 << max(0, draws - 1).bit_length()


def noisy_scores(
    engine: Engine, scores: CarriedWords | Words, width: int, plan: NoisePlan, tags: Ints, tag_width: int
) -> Rounds[Fields]:
    """Add independent noise to every score.

    scores:  carried words, or each side's XOR shares: uint64, shape (n,).
    tags:    public words of the entries, shape (n,).

    Returns ``noisy`` and ``tag`` of every entry.
    """
    given: CarriedWords | Words
    if isinstance(scores, CarriedWords):
        held, given = Held.CARRIED, scores
    else:
        held, given = Held.XOR_SHARED, scores.reshape(-1, 1)
    circuit = circuits.noisy_score_circuit(held, width, plan, tag_width)
    inputs = {"score": given, "tag": tags.astype(np.uint64).reshape(-1, 1)}
    outputs = yield from engine.run(circuit, len(tags), inputs)
    return {name: carried(outputs, name) for name in ("noisy", "tag")}


def best_of(engine: Engine, fields: Fields, sizes: Sequence[int]) -> Rounds[Fields]:
    """Return the entry with the greatest ``noisy`` of every group; ties go to the first."""
    widths = tuple((name, words.width) for name, words in fields.items())
    return (yield from engine.reduce(circuits.better_circuit(widths), fields, sizes))


def revealed(engine: Engine, fields: Fields) -> Rounds[dict[str, int]]:
    """Open a single entry to both."""
    widths = tuple((name, words.width) for name, words in fields.items())
    outputs = yield from engine.run(circuits.reveal_circuit(widths), 1, fields)
    return {name: int(np.asarray(outputs[name])[0, 0]) for name in fields}


def noisy_counts(engine: Engine, shares: Words, width: int, plan: NoisePlan) -> Rounds[Ints]:
    """Open shared counts of ``width`` bits with noise unknown to both sides: int64, shape (n,)."""
    circuit = circuits.noisy_count_circuit(width, plan)
    outputs = yield from engine.run(circuit, len(shares), {"count": shares.reshape(-1, 1)})
    opened = np.asarray(outputs["noisy"]).reshape(-1).astype(np.int64)
    bits = circuits.noisy_count_width(width, plan)
    return opened - ((opened >> (bits - 1)) << bits)


def tag_bits(count: int) -> int:
    """Return the bits of tags below ``count``."""
    return max(1, (count - 1).bit_length())
