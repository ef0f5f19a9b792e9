"""The trees of :mod:`crypto.point_function`: a party's side of a batch, in NumPy."""

from __future__ import annotations

import numpy as np

from crypto.blocks import Blocks
from crypto.encoding import Words
from crypto.hashing import BlockHash
from crypto.pieces import slices

NODES_AT_ONCE = 1 << 13
STRAND = 64
_ONE = np.uint64(1)
_BLOCK = np.complex128
"""An element of the size of a block: copied at once, never computed with."""


def hash_of(hashing: BlockHash, blocks: Blocks) -> Blocks:
    """Return the hashes of any number of blocks, in order.

    hashing: hash with room for NODES_AT_ONCE blocks.
    """
    flat = blocks.reshape(1, -1)
    hashed = np.empty_like(flat)
    for start in range(0, flat.size, 2 * NODES_AT_ONCE):
        part = slice(start, start + 2 * NODES_AT_ONCE)
        hashed[:, part] = hashing.hash(flat[:, part])
    return hashed.reshape(blocks.shape)


class Trees:
    """A party's side of the trees of a batch, level by level.

    The children of node i of m are i and m + i: a node's number holds the bits of its path, the first bit lowest.
    The batch is processed in strands that fit a processor's cache: nodes of shape (n_nodes, n_trees, 2). Each level
    takes the place of the level before; there is room for the last.
    """

    def __init__(self, root: Words, count: int, depth: int, hashing: BlockHash) -> None:
        """Set the roots.

        root:     of every tree, shape (2,).
        depth:    levels below the roots.
        hashing:  hash with room for NODES_AT_ONCE blocks; it assigns the tweaks.
        """
        self._hashing = hashing
        self._n_nodes = 1
        shapes = [(1 << depth, part.stop - part.start, 2) for part in slices(count, STRAND)]
        self._nodes = [np.empty(shape, dtype=np.uint64) for shape in shapes]
        self._hashed: list[Blocks] = []
        for nodes in self._nodes:
            nodes[0] = root

    def __repr__(self) -> str:
        return "Trees(<secret>)"

    def sum(self) -> Blocks:
        """Hash the level; return the XOR of the hashes of every tree, shape (count, 2)."""
        self._hashed = [hash_of(self._hashing, nodes) for nodes in self._level()]
        return np.concatenate([np.bitwise_xor.reduce(hashed, axis=0) for hashed in self._hashed])

    def _level(self) -> list[Blocks]:
        """Return the nodes of the level, strand by strand."""
        return [nodes[: self._n_nodes] for nodes in self._nodes]

    def grow(self, correction: Blocks) -> None:
        """Go on to the next level. correction: for every tree, shape (count, 2)."""
        self._correct(correction)
        n = self._n_nodes
        for nodes, left in zip(self._nodes, self._hashed, strict=True):
            np.bitwise_xor(left, nodes[:n], out=nodes[n : 2 * n])
            nodes[:n] = left
        self._n_nodes = 2 * n

    def _correct(self, correction: Blocks) -> None:
        """Add the correction to the hashes of the nodes whose lowest bit is 1."""
        for number, (nodes, hashed) in enumerate(zip(self._level(), self._hashed, strict=True)):
            masks = np.uint64(0) - (nodes[..., 0] & _ONE)
            own = correction[number * STRAND :][: hashed.shape[1]]
            for word in range(2):
                hashed[..., word] ^= masks & own[:, word]

    def vectors(self, correction: Blocks) -> Words:
        """Return the corrected hashes of the last level, leaf after leaf; shape (count, 2 * n_leaves)."""
        self._correct(correction)
        leaves = np.empty((len(correction), self._n_nodes), dtype=_BLOCK)
        for number, hashed in enumerate(self._hashed):
            leaves[number * STRAND :][: hashed.shape[1]] = hashed.view(_BLOCK)[..., 0].T
        return leaves.view(np.uint64)
