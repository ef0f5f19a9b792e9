"""Columns of an extension: expanded from seeds, kept as rows of packed bits, transposed to a word per transfer."""

from __future__ import annotations

import numpy as np

from crypto import engine
from crypto.blocks import BLOCK_BITS, WORD_BITS
from crypto.encoding import Words
from crypto.ot import punctured


class ColumnWork:
    """Working memory of one side of a session for a message."""

    def __init__(self, columns: int, width: int) -> None:
        """Allocate the memory.

        columns: a multiple of 128. width: words of a column at most.
        """
        self.first = np.empty(columns * width, dtype=np.uint64)
        self.second = np.empty(columns * width, dtype=np.uint64)
        self._columns = columns
        self._scratch = np.empty(WORD_BITS * width, dtype=np.uint64)

    def rows(self, memory: Words, width: int) -> Words:
        return memory[: self._columns * width].reshape(self._columns, width)

    def expand(self, streams: engine.Keystreams, memory: Words, width: int) -> Words:
        """Fill row i with the next ``width`` words of stream i; shape (columns, width)."""
        rows = self.rows(memory, width)
        streams.fill(rows)
        return rows

    def transpose(self, rows: Words) -> Words:
        """Return a row a transfer: uint64, shape (64 * width, columns / 64). Overwrites ``rows``."""
        width = rows.shape[1]
        blocks = np.empty(
            (self._columns // BLOCK_BITS, WORD_BITS * width, BLOCK_BITS // WORD_BITS), np.uint64
        )
        for part, block in zip(rows.reshape(-1, BLOCK_BITS, width), blocks, strict=True):
            engine.in_force().transpose(part, self._scratch, block)
        return blocks.transpose(1, 0, 2).reshape(WORD_BITS * width, -1)


class GroupWork:
    """Working memory of one side of a session whose columns come in groups, for a message."""

    def __init__(self, width: int) -> None:
        """Allocate the memory. width: words of a column at most."""
        self._planes = np.empty(punctured.LEAVES * punctured.GROUPS * width, dtype=np.uint64)
        self._columns = ColumnWork(BLOCK_BITS, width)

    def sums(self, streams: engine.Keystreams, first: int, width: int) -> tuple[Words, Words]:
        """Add up the next ``width`` words of the streams of the leaves from number ``first`` on, 0 or 1.

        Returns the sums of the leaves whose number has bit b, uint64, shape (BITS, GROUPS, width), and the sums of
        all leaves, shape (GROUPS, width); without number 0 the latter are undefined.
        """
        planes = self._planes[: punctured.LEAVES * punctured.GROUPS * width]
        planes = planes.reshape(punctured.LEAVES, punctured.GROUPS, width)
        streams.fill(planes[first:].reshape(-1, width))
        sums = self._columns.rows(self._columns.first, width).reshape(punctured.BITS, punctured.GROUPS, width)
        half = punctured.LEAVES // 2
        for level in reversed(range(punctured.BITS)):
            upper = planes[half : 2 * half]
            np.bitwise_xor.reduce(upper, axis=0, out=sums[level])
            np.bitwise_xor(planes[:half], upper, out=planes[:half])
            half //= 2
        return sums, planes[0]

    def transpose(self, rows: Words) -> Words:
        """Return a row a transfer; see :meth:`ColumnWork.transpose`."""
        return self._columns.transpose(rows)
