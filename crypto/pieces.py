"""Counts cut into slices; circuits cut for garbling: blocks of gates that fit the working memory, pieces with a
table per message.

Both sides cut a circuit alike, from the circuit and the number of instances: the cut decides the tweak of a gate
and the place of its table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from crypto.circuit import Circuit, Group, Kind

BLOCK_GATES = 1 << 13
"""Gates times instances garbled at once, at most (a single gate of more instances goes alone)."""

PIECE_BYTES = 1 << 20
"""Maximum table bytes of a piece (unless a single block has more)."""

GATE_BYTES = 32


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """Groups that are garbled together.

    steps:        for each group: kind, first row, last row + 1, number of AND gates before the group;
                  int64, shape (groups, 4).
    and_gates:    AND gates of an instance.
    table_bytes:  length of the table.
    """

    groups: tuple[Group, ...]
    steps: NDArray[np.int64]
    and_gates: int
    table_bytes: int


@lru_cache(maxsize=256)
def pieces(circuit: Circuit, n: int) -> tuple[Piece, ...]:
    """Cut a circuit into pieces for ``n`` instances. All but the last have a table."""
    done: list[Piece] = []
    groups: list[Group] = []
    gates = 0
    for group in _blocks(circuit, max(1, BLOCK_GATES // n)):
        more = group.stop - group.start if group.kind is Kind.AND else 0
        if gates and (gates + more) * n * GATE_BYTES > PIECE_BYTES:
            done.append(_piece(groups, gates, n))
            groups, gates = [], 0
        groups.append(group)
        gates += more
    return (*done, _piece(groups, gates, n))


def _piece(groups: list[Group], and_gates: int, n: int) -> Piece:
    conjunctions = [group.stop - group.start if group.kind is Kind.AND else 0 for group in groups]
    before = accumulate(conjunctions, initial=0)
    steps = [(group.kind, group.start, group.stop, k) for group, k in zip(groups, before, strict=False)]
    return Piece(
        tuple(groups), np.array(steps, dtype=np.int64).reshape(-1, 4), and_gates, GATE_BYTES * n * and_gates
    )


def _blocks(circuit: Circuit, gates: int) -> Iterator[Group]:
    """Cut groups of AND gates into blocks that fit the working memory."""
    for group in circuit.groups:
        length = group.stop - group.start
        if group.kind is not Kind.AND or length <= gates:
            yield group
        else:
            for part in slices(length, gates):
                yield group.part(part.start, part.stop)


def slices(count: int, most: int) -> Iterator[slice]:
    """Cut the numbers from 0 to below ``count`` into slices of ``most``, the last maybe shorter; empty for 0."""
    return (slice(start, min(start + most, count)) for start in range(0, count, most))
