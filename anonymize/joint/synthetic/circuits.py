"""The one circuit that a choice needs besides those of joint DiffGen: how far shared counts are from public ones."""

from __future__ import annotations

from functools import lru_cache

from crypto.builder import Builder
from crypto.circuit import Circuit, Held, To
from crypto.circuits.arithmetic import total_of_absolutes


@lru_cache(maxsize=64)
def distance_circuit(n_cells: int, width: int, score_width: int) -> Circuit:
    """Σ |x| of shared differences, two's complement: 2·width gates a cell, half to recombine and half to add up.

    score_width:  of the sum, which must not exceed it.
    """
    b = Builder(f"distance/{n_cells}/{width}/{score_width}")
    differences = b.input("difference", Held.ADDITIVE_SHARED, width, n_cells)
    b.output("score", To.CARRIED, [total_of_absolutes(b, differences, score_width)])
    return b.build()
