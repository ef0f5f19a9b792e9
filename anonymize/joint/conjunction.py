"""Circuits for conjunctions and equality, the last step of joint runs of any model."""

from __future__ import annotations

from functools import lru_cache

from crypto.blocks import WORD_BITS
from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import all_of, equal

CONJUNCTION = 64
"""Bits joined by a gate circuit."""


@lru_cache(maxsize=8)
def conjunction_circuit(count: int, to: To) -> Circuit:
    """Return the circuit of a conjunction: 1 if all of ``count`` bits are 1."""
    b = Builder(f"conjunction/{count}/{to.value}")
    bits = [word[0] for word in b.input("met", Held.CARRIED, 1, count)]
    b.output("met", to, [[all_of(b, bits)]])
    return b.build()


@lru_cache(maxsize=8)
def split_circuit() -> Circuit:
    """Return the circuit of a bit as two XOR shares."""
    b = Builder("split")
    (bit,) = b.input("met", Held.CARRIED, 1)
    b.output("met", To.XOR_SHARED, [bit])
    return b.build()


@lru_cache(maxsize=8)
def verdict_circuit(others: int) -> Circuit:
    """Return the circuit that tells the evaluator if a bit and ``others`` shared bits are all 1."""
    b = Builder(f"verdict/{others}")
    bits = [word[0] for word in b.input("met", Held.CARRIED, 1)]
    if others:
        bits += [word[0] for word in b.input("others", Held.XOR_SHARED, 1, others)]
    b.output("met", To.EVALUATOR, [[all_of(b, bits)]])
    return b.build()


@lru_cache(maxsize=8)
def agreement_circuit(words: int) -> Circuit:
    """Return the circuit that tells the garbler if both sides enter the same words."""
    b = Builder(f"agreement/{words}")
    sides = [b.input(held.value, held, WORD_BITS, words) for held in (Held.GARBLER, Held.EVALUATOR)]
    b.output("same", To.GARBLER, [[all_of(b, [equal(b, x, y) for x, y in zip(*sides, strict=True)])]])
    return b.build()
