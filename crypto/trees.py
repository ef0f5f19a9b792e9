"""The trees of :mod:`crypto.point_function`: a party's side of a batch, in NumPy."""

from __future__ import annotations

import numpy as np

from crypto.blocks import Blocks
from crypto.encoding import Words
from crypto.hashing import BlockHash

NODES_AT_ONCE = 1 << 13
STRAND = 64
_ONE = np.uint64(1)


class Trees:
    """A party's side of the trees of a batch, level by level.

    The children of node i of m are i and m + i: a node's number holds the bits of its path, the first bit lowest.
    The batch is processed in strands that fit a processor's cache: nodes of shape (n_nodes, n_trees, 2).
    """

    def __init__(self, root: Words, count: int, hashing: BlockHash) -> None:
        self._hashing = hashing
        sizes = [min(STRAND, count - start) for start in range(0, count, STRAND)]
        self._strands = [np.tile(root, (1, size, 1)) for size in sizes]
        self._hashed: list[Blocks] = []

    def sum(self) -> Blocks:
        """Hash the level; return the XOR of the hashes of every tree, shape (count, 2)."""
        self._hashed = [self._hashes(nodes) for nodes in self._strands]
        return np.concatenate([np.bitwise_xor.reduce(hashed, axis=0) for hashed in self._hashed])

    def _hashes(self, nodes: Blocks) -> Blocks:
        flat = nodes.reshape(1, -1)
        hashed = np.empty_like(flat)
        for start in range(0, flat.size, 2 * NODES_AT_ONCE):
            part = slice(start, start + 2 * NODES_AT_ONCE)
            hashed[:, part] = self._hashing.hash(flat[:, part])
        return hashed.reshape(nodes.shape)

    def grow(self, correction: Blocks) -> None:
        """Go on to the next level. correction: for every tree, shape (count, 2)."""
        self._correct(correction)
        for number, (nodes, left) in enumerate(zip(self._strands, self._hashed, strict=True)):
            self._strands[number] = np.concatenate([left, left ^ nodes])

    def _correct(self, correction: Blocks) -> None:
        """Add the correction to the hashes of the nodes whose lowest bit is 1."""
        for number, (nodes, hashed) in enumerate(zip(self._strands, self._hashed, strict=True)):
            masks = np.uint64(0) - (nodes[..., 0] & _ONE)
            own = correction[number * STRAND :][: hashed.shape[1]]
            for word in range(2):
                hashed[..., word] ^= masks & own[:, word]

    def vectors(self, correction: Blocks) -> Words:
        """Return the corrected hashes of the last level, leaf after leaf; shape (count, 2 * n_leaves)."""
        self._correct(correction)
        strands = [hashed.swapaxes(0, 1).reshape(hashed.shape[1], -1) for hashed in self._hashed]
        return np.concatenate(strands)

    def lowest_bits(self) -> Blocks:
        """Return the lowest bits of the nodes of trees of 128 nodes, a block for each tree; shape (count, 2)."""
        bits = np.concatenate([(nodes[..., 0] & _ONE).astype(np.uint8).T for nodes in self._strands])
        packed = np.packbits(bits, axis=1, bitorder="little")
        return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)
