"""The bit transpose of :func:`crypto.blocks.transpose_rows` as a function (rows, tile, out; w).

rows:  uint64, shape (128, w).
tile:  TILE_WORDS words of working memory.
out:   uint64, shape (64 * w, 2): a block for each column.

Tiles of 64 rows, as wide as the CPU takes at once, stay in its nearest memory. Three swaps join rows that are 8, 16
or 32 apart, then three swaps join neighbours of the rows' low half and high half. At last the two words of each
block come together.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from crypto.blocks import SWAPS, WORD_BITS
from crypto.compiled.code import WORD, WORDS, Code, Value

LANES = (8, 1)
"""Words of a row worked on at once; LLVM splits the words for a CPU that takes fewer."""

TILE_WORDS = 2 * WORD_BITS * max(LANES)
_GROUP = 8


def write_transpose(module: ir.Module, name: str, lanes: Sequence[int]) -> None:
    """Write the function."""
    c = Code(module, name, [WORDS, WORDS, WORDS, WORD])
    rows, tile, out, width = c.arguments
    column: Value | int = 0
    for count in lanes:
        with c.count(column, width - count, count) as column:
            _far(c, rows, column, width, tile, count)
            _near(c, tile, out, column, count)
    c.end()


def _swapped(rows: list[Value], swaps: Sequence[tuple[int, int]]) -> list[Value]:
    """Swap bits between rows of a group, at the given distances."""
    for apart, (distance, mask) in zip((4, 2, 1), swaps, strict=True):
        for i in range(_GROUP):
            if not i & apart:
                low, high = rows[i], rows[i + apart]
                swap = ((low >> distance) ^ high) & mask
                rows[i], rows[i + apart] = low ^ (swap << distance), high ^ swap
    return rows


def _far(c: Code, rows: Value, column: Value, width: Value, tile: Value, lanes: int) -> None:
    """Emit the swaps of rows that are 8, 16 and 32 apart."""
    for half in (0, WORD_BITS):
        with c.count(half, half + _GROUP - 1) as first:
            numbers = [first + _GROUP * i for i in range(_GROUP)]
            group = [c.load(rows, number * width + column, lanes) for number in numbers]
            for number, row in zip(numbers, _swapped(group, SWAPS[:3]), strict=True):
                c.store(row, tile, number * lanes)


def _near(c: Code, tile: Value, out: Value, column: Value, lanes: int) -> None:
    """Emit the swaps of neighbours, for both halves, and write ``out`` block by block."""
    with c.count(0, WORD_BITS - 1, _GROUP) as first:
        halves = [
            _swapped([c.load(tile, (first + half + i) * lanes, lanes) for i in range(_GROUP)], SWAPS[3:])
            for half in (0, WORD_BITS)
        ]
        for i, (low, high) in enumerate(zip(*halves, strict=True)):
            for lane in range(lanes):
                block = low.pick(lane, lanes + lane, other=high)
                c.store(block, out, ((column + lane) * WORD_BITS + first + i) * 2)
