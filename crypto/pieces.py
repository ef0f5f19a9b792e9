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

from crypto.blocks import BLOCK_BYTES
from crypto.circuit import BLOCKS, Circuit, Group

BLOCK_GATES = 1 << 13
"""Gates times instances garbled at once, at most (a single gate of more instances goes alone)."""

PIECE_BYTES = 1 << 20
"""Maximum table bytes of a piece (unless a single block has more)."""


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """Groups that are garbled together.

    steps:        for each group: kind, first row, last row + 1, blocks of table before the group;
                  int64, shape (groups, 4).
    blocks:       blocks of table of an instance.
    table_bytes:  length of the table.
    """

    groups: tuple[Group, ...]
    steps: NDArray[np.int64]
    blocks: int
    table_bytes: int


@lru_cache(maxsize=256)
def pieces(circuit: Circuit, n: int) -> tuple[Piece, ...]:
    """Cut a circuit into pieces for ``n`` instances. All but the last have a table."""
    done: list[Piece] = []
    groups: list[Group] = []
    blocks = 0
    for group in _blocks(circuit, max(1, BLOCK_GATES // n)):
        if blocks and (blocks + group.blocks) * n * BLOCK_BYTES > PIECE_BYTES:
            done.append(_piece(groups, n))
            groups, blocks = [], 0
        groups.append(group)
        blocks += group.blocks
    return (*done, _piece(groups, n))


def _piece(groups: list[Group], n: int) -> Piece:
    *before, blocks = accumulate((group.blocks for group in groups), initial=0)
    steps = [(group.kind, group.start, group.stop, k) for group, k in zip(groups, before, strict=True)]
    return Piece(
        tuple(groups), np.array(steps, dtype=np.int64).reshape(-1, 4), blocks, BLOCK_BYTES * n * blocks
    )


def _blocks(circuit: Circuit, gates: int) -> Iterator[Group]:
    """Cut groups of AND gates into blocks that fit the working memory."""
    for group in circuit.groups:
        length = group.stop - group.start
        if group.kind not in BLOCKS or length <= gates:
            yield group
        else:
            for part in slices(length, gates):
                yield group.part(part.start, part.stop)


def slices(count: int, most: int) -> Iterator[slice]:
    """Cut the numbers from 0 to below ``count`` into slices of ``most``, the last maybe shorter; empty for 0."""
    return (slice(start, min(start + most, count)) for start in range(0, count, most))
