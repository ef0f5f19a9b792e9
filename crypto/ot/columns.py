"""The columns of an extension: expanded from seeds, added up, kept as rows of packed bits, and transposed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from crypto import engine
from crypto.blocks import BLOCK_BITS, BLOCK_BYTES, WORD_BITS
from crypto.encoding import WORD, Words


def stream_of(seed: bytes) -> CipherContext:
    """The keystream of AES-128 in counter mode under a seed, which is used for nothing else."""
    return Cipher(algorithms.AES(seed), modes.CTR(bytes(BLOCK_BYTES))).encryptor()


class Leaves:
    """The keystreams under the leaves of many trees (:mod:`crypto.ot.trees`), and their sums, for one side.

    r_y being the stream of leaf y, a tree has a sum t_b for each bit b of y: of the r_y with a 0 there.
    """

    def __init__(self, seeds: Sequence[bytes], depth: int, n_trees: int, width: int) -> None:
        """seeds: leaf by leaf, one a tree; the last leaf's may be missing. width: words of a stream at most."""
        self._shape = (1 << depth, n_trees)
        self._streams = [stream_of(seed) for seed in seeds]
        self._memory = np.empty((n_trees << depth) * width, dtype=np.uint64)
        self._zeros = memoryview(bytes(WORD * width))

    def __repr__(self) -> str:
        return "Leaves(<secret>)"

    def sums(self, rows: Words) -> Words:
        """Take the streams' next words, and write t_b of tree i to row b * n_trees + i.

        rows:  uint64, shape (depth * n_trees, width), overwritten.
        Returns the sums of all leaves of each tree, uint64, shape (n_trees, width), in memory that the next call
        overwrites; of no use where the last leaves are missing, which are in no other sum.
        """
        n_leaves, n_trees = self._shape
        leaves = self._memory[: n_leaves * n_trees * rows.shape[1]].reshape(n_leaves, n_trees, -1)
        expand(self._streams, self._zeros[: WORD * rows.shape[1]], leaves)
        half, targets = n_leaves // 2, rows.reshape(-1, n_trees, rows.shape[1])
        for target in targets[::-1]:
            np.bitwise_xor.reduce(leaves[:half], axis=0, out=target)
            np.bitwise_xor(leaves[:half], leaves[half : 2 * half], out=leaves[:half])
            half //= 2
        total: Words = leaves[0]
        return total


def expand(streams: Sequence[CipherContext], zeros: memoryview, out: Words) -> None:
    """Write the next ``len(zeros)`` bytes of every stream to ``out``, one stream after the other."""
    n_bytes, target = len(zeros), out.reshape(-1).data.cast("B")
    for i, stream in enumerate(streams):
        stream.update_into(zeros, target[i * n_bytes : (i + 1) * n_bytes])


class ColumnWork:
    """Working memory of one side of a session for one message."""

    def __init__(self, columns: int, width: int) -> None:
        """columns: a multiple of 128. width: words of a column at most."""
        self.first = np.empty(columns * width, dtype=np.uint64)
        self.second = np.empty(columns * width, dtype=np.uint64)
        self._columns = columns
        self._scratch = np.empty(WORD_BITS * width, dtype=np.uint64)
        self._zeros = memoryview(bytes(WORD * width))

    def rows(self, memory: Words, width: int) -> Words:
        return memory[: self._columns * width].reshape(self._columns, width)

    def expand(self, streams: Sequence[CipherContext], memory: Words, width: int) -> Words:
        """Fill row i with the next ``width`` words of stream i; shape (columns, width)."""
        expand(streams, self._zeros[: WORD * width], memory)
        return self.rows(memory, width)

    def transpose(self, rows: Words) -> Words:
        """Return a row a transfer: uint64, shape (64 * width, columns / 64). Overwrites ``rows``."""
        width = rows.shape[1]
        blocks = np.empty(
            (self._columns // BLOCK_BITS, WORD_BITS * width, BLOCK_BITS // WORD_BITS), np.uint64
        )
        for part, block in zip(rows.reshape(-1, BLOCK_BITS, width), blocks, strict=True):
            engine.in_force().transpose(part, self._scratch, block)
        return blocks.transpose(1, 0, 2).reshape(WORD_BITS * width, -1)
