"""All but one seed of many small trees, each from a few transfers of two seeds.

Who has both seeds of ``depth`` transfers grows a binary tree (Goldreich, Goldwasser, Micali 1986): its two
upper nodes are the first transfer's seeds, every node has two children, and the leaves are what is wanted. For every
further level it sends two sums, of all nodes that are a 0-child and of all that are a 1-child, each masked by that
seed of the level's transfer. Who has chosen one seed of every transfer then knows all nodes of a level but one: the
children of those it knew, and of the other two the one on the side of its choice, from the sum. It misses the leaf
that is on the other side at every level.

Leaf y is on the side of bit b of y at level b, the highest bit first. Who chose c numbers leaves by what they differ
from c in: its leaf z is leaf z ⊕ c. So it misses the last one, whatever it chose, and both sides do the same sums.

Nothing is checked here: sums that are wrong give the other side other leaves than it should have. The check of what
is made of the leaves finds that out as it finds other choices (:mod:`crypto.ot.consistency`).

Source: Schoppmann et al. (CCS 2019); Boyle et al. (CCS 2019); as Roy, *SoftSpokenOT* (CRYPTO 2022) has it, without
its check of the trees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import reduce

from crypto.rng import SEED_BYTES

DEPTH = 2
"""Levels of a tree; a power of 2. A transfer costs 128 / depth bits, and a tree 2**depth keystreams of as many."""


def sums_bytes(n_transfers: int, depth: int = DEPTH) -> int:
    """Length of what is sent for the trees of so many transfers."""
    return 2 * SEED_BYTES * (depth - 1) * (n_transfers // depth)


def grow(pairs: Sequence[tuple[bytes, bytes]], depth: int = DEPTH) -> tuple[list[bytes], bytes]:
    """Grow trees from both seeds of every transfer: transfer b * n + i is level b of tree i, of n.

    Returns the seeds, leaf by leaf, in each of them one a tree; and the sums to be sent.
    """
    n_trees = len(pairs) // depth
    grown = [_grow_one(pairs[i::n_trees]) for i in range(n_trees)]
    return _leaf_by_leaf([leaves for leaves, _ in grown]), b"".join(sums for _, sums in grown)


def regrow(
    chosen: Sequence[bytes], choice_bits: Sequence[int], sums: bytes, depth: int = DEPTH
) -> list[bytes]:
    """The seeds of all leaves but the last, in the same order, from one seed of every transfer.

    sums:  what the other side sent; exactly :func:`sums_bytes`.
    """
    n_trees, size = len(chosen) // depth, sums_bytes(depth, depth)
    return _leaf_by_leaf(
        [
            _regrow_one(chosen[i::n_trees], choice_bits[i::n_trees], sums[i * size : (i + 1) * size])
            for i in range(n_trees)
        ]
    )


def _grow_one(pairs: Sequence[tuple[bytes, bytes]]) -> tuple[list[bytes], bytes]:
    nodes, sums = list(pairs[-1]), b""
    for zero, one in reversed(pairs[:-1]):
        nodes = [child for node in nodes for child in _children(node)]
        sums += _sum(zero, *nodes[::2]) + _sum(one, *nodes[1::2])
    return nodes, sums


def _regrow_one(chosen: Sequence[bytes], choice_bits: Sequence[int], sums: bytes) -> list[bytes]:
    nodes = [chosen[-1]]
    for level, b in enumerate(reversed(range(len(chosen) - 1))):
        bit = choice_bits[b]
        nodes = [pair[side] for pair in map(_children, nodes) for side in (bit, 1 - bit)]
        start = SEED_BYTES * (2 * level + bit)
        nodes.append(_sum(sums[start : start + SEED_BYTES], chosen[b], *nodes[::2]))
    return nodes


def _children(node: bytes) -> tuple[bytes, bytes]:
    digest = hashlib.sha256(b"jointcut/ot/node" + node).digest()
    return digest[:SEED_BYTES], digest[SEED_BYTES:]


def _sum(*seeds: bytes) -> bytes:
    total = reduce(int.__xor__, (int.from_bytes(seed, "little") for seed in seeds))
    return total.to_bytes(SEED_BYTES, "little")


def _leaf_by_leaf(trees: Sequence[Sequence[bytes]]) -> list[bytes]:
    return [seed for leaves in zip(*trees, strict=True) for seed in leaves]
