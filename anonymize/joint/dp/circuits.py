"""Circuits of joint DiffGen: scores, noise unknown to both sides, noisy maxima, noisy counts.

The circuits use :mod:`crypto.circuits`. All entries of a batch are independent instances. Words that decide between
candidates stay in the session as carried words.
"""

from __future__ import annotations

from functools import lru_cache

from crypto.builder import Builder, add
from crypto.circuit import Circuit, Held, To
from crypto.circuits import noise
from crypto.circuits.arithmetic import extend, less_in_blocks
from crypto.circuits.constants import NoisePlan
from crypto.circuits.selection import choose, maximum

Field = tuple[str, int]
"""Name and width of carried words of an entry."""


@lru_cache(maxsize=64)
def greatest_circuit(n_classes: int, width: int) -> Circuit:
    """Return the circuit of the greatest class count of a part: its summand of Max ([T] Eq. 6.4)."""
    b = Builder(f"greatest/{n_classes}/{width}")
    counts = b.input("counts", Held.ADDITIVE_SHARED, width, n_classes)
    b.output("score", To.CARRIED, [maximum(b, counts)])
    return b.build()


@lru_cache(maxsize=64)
def sum_circuit(width: int) -> Circuit:
    """Return the circuit that sums two parts' summands; a score is at most the number of records, so it fits."""
    b = Builder(f"sum/{width}")
    (x,), (y,) = b.input("score", Held.CARRIED, width), b.input("score/other", Held.CARRIED, width)
    b.output("score", To.CARRIED, [add(b, x, y)])
    return b.build()


@lru_cache(maxsize=64)
def noisy_score_circuit(held: Held, width: int, plan: NoisePlan, tag_width: int) -> Circuit:
    """Return the circuit of a score plus geometric noise from both sides' coins; a public tag is carried along."""
    b = Builder(f"noisy-score/{held.value}/{width}/{plan}/{tag_width}")
    (score,) = b.input("score", held, width)
    (tag,) = b.input("tag", Held.PUBLIC, tag_width)
    (random,) = noise.coins(b, "coins", plan, 1)
    total = noisy_width(width, plan)
    drawn = noise.geometric(b, plan, random)
    b.output("noisy", To.CARRIED, [add(b, extend(score, total), extend(drawn, total))])
    b.output("tag", To.CARRIED, [tag])
    return b.build()


def noisy_width(width: int, plan: NoisePlan) -> int:
    """Return the bits of a score of ``width`` bits with noise, without overflow."""
    return max(width, plan.width) + 1


@lru_cache(maxsize=64)
def better_circuit(fields: tuple[Field, ...]) -> Circuit:
    """Return the circuit that picks the entry with the greater ``noisy``; on ties, the first."""
    b = Builder(f"better/{fields}")
    pairs = {n: b.input(n, Held.CARRIED, w) + b.input(f"{n}/other", Held.CARRIED, w) for n, w in fields}
    second = less_in_blocks(b, *pairs["noisy"])
    for name, (one, other) in pairs.items():
        b.output(name, To.CARRIED, [choose(b, second, other, one)])
    return b.build()


@lru_cache(maxsize=64)
def reveal_circuit(fields: tuple[Field, ...]) -> Circuit:
    """Open carried words to both."""
    b = Builder(f"reveal/{fields}")
    for name, width in fields:
        b.output(name, To.BOTH, b.input(name, Held.CARRIED, width))
    return b.build()


@lru_cache(maxsize=64)
def noisy_count_circuit(width: int, plan: NoisePlan) -> Circuit:
    """Return the circuit that opens a shared count plus discrete Laplace noise unknown to both, two's complement."""
    b = Builder(f"noisy-count/{width}/{plan}")
    (count,) = b.input("count", Held.ADDITIVE_SHARED, width)
    (random,) = noise.coins(b, "coins", plan, 1)
    drawn = noise.discrete_laplace(b, plan, random)
    total = noisy_count_width(width, plan)
    noisy = noise.add_noise(b, extend(count, width + 1), drawn, total)  # the count itself is not negative
    b.output("noisy", To.BOTH, [noisy])
    return b.build()


def noisy_count_width(width: int, plan: NoisePlan) -> int:
    """Return the bits of a count of ``width`` bits with noise, two's complement, without overflow."""
    return max(width + 1, plan.width) + 1
