"""Levels of many binary trees side by side in NumPy: the reference of every :class:`crypto.engine.Engine`.

A node s has the children H(s) and H(s) ⊕ s, of which H(s) first gets its tree's correction added if the lowest bit of
s is 1 (:mod:`crypto.point_function`). Nodes of a level are uint64, shape (n_nodes, n_trees, 2): node i of every tree.
"""

from __future__ import annotations

import numpy as np

from crypto.blocks import Blocks
from crypto.encoding import Words
from crypto.hashing import BlockHash

_AT_ONCE = 1 << 13
_ONE = np.uint64(1)


class ReferenceForest:
    """What hashes and grows levels under one key, with running tweaks; :class:`crypto.engine.Forest`."""

    def __init__(self, key: bytes) -> None:
        self._hashing = BlockHash(key, _AT_ONCE)

    def __repr__(self) -> str:
        return "ReferenceForest(<keyed>)"

    def hashes(self, nodes: Blocks) -> tuple[Blocks, Blocks]:
        """Hash nodes, the first one of all trees, then the second; the hashes, and the XOR of every tree's."""
        flat = nodes.reshape(1, -1)
        hashed = np.empty_like(flat)
        for start in range(0, flat.size, 2 * _AT_ONCE):
            part = slice(start, start + 2 * _AT_ONCE)
            hashed[:, part] = self._hashing.hash(flat[:, part])
        shaped = hashed.reshape(nodes.shape)
        return shaped, np.bitwise_xor.reduce(shaped, axis=0)

    def children(self, nodes: Blocks, hashed: Blocks, corrections: Blocks) -> Blocks:
        """The next level: those of node i of m are i and m + i."""
        grown = np.empty((2, *nodes.shape), dtype=np.uint64)
        _correct(nodes, hashed, corrections, grown[0])
        np.bitwise_xor(grown[0], nodes, out=grown[1])
        return grown.reshape(-1, *nodes.shape[1:])

    def leaves(self, nodes: Blocks, hashed: Blocks, corrections: Blocks) -> Words:
        """The corrected hashes alone, tree by tree: shape (n_trees, 2 * n_nodes)."""
        corrected = np.empty_like(hashed)
        _correct(nodes, hashed, corrections, corrected)
        return corrected.swapaxes(0, 1).reshape(nodes.shape[1], -1)


def _correct(nodes: Blocks, hashed: Blocks, corrections: Blocks, out: Blocks) -> None:
    """Add a tree's correction to the hashes of its nodes whose lowest bit is 1."""
    masks = np.uint64(0) - (nodes[..., 0] & _ONE)
    for word in range(2):
        np.bitwise_and(masks, corrections[:, word], out=out[..., word])
    np.bitwise_xor(out, hashed, out=out)
