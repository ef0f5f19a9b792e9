"""The inner products of :mod:`crypto.inner_products` as a function.

It takes (tables, of, vectors, shifts, sum, answers; count, size):

tables, of, vectors, shifts:  as there.
sum:                          LANES words of working memory.
answers:                      count words, which are written.

A word of a vector goes with 64 entries, which lie side by side unless the table's end is among them. Where they lie
depends on the shift, which is public; all of them are read and masked.
"""

from __future__ import annotations

from llvmlite import ir

from crypto.blocks import WORD_BITS
from crypto.compiled.code import WORD, WORDS, Code, Value

LANES = 8
"""Entries that are worked on at once; LLVM splits them where the CPU takes fewer."""


def write_inner_products(module: ir.Module, name: str) -> None:
    """Write the function."""
    c = Code(module, name, [WORDS] * 6 + [WORD] * 2)
    tables, of, vectors, shifts, total, answers, count, size = c.arguments
    words = size >> 6
    with c.count(0, count - 1) as number:
        c.store(c.constant(*[0] * LANES), total, 0)
        table, shift = c.load(of, number) * size, c.load(shifts, number)
        with c.count(0, words - 1) as word:
            bits = c.load(vectors, number * words + word)
            first = (shift + word * WORD_BITS) & (size - 1)
            around = (size - WORD_BITS - first) >> WORD_BITS - 1
            with c.where(around, 0):
                _side_by_side(c, bits, tables, table + first, total)
            with c.where(around, 1), c.count(0, WORD_BITS - 1) as bit:
                entry = c.load(tables, table + ((first + bit) & (size - 1)))
                c.store(c.load(total, 0) ^ (entry & ((bits >> bit) & 1).mask()), total, 0)
        c.store(_joined(c.load(total, 0, LANES)), answers, number)
    c.end()


def _side_by_side(c: Code, bits: Value, tables: Value, at: Value, total: Value) -> None:
    """Add the entries whose bits are 1, of 64 in a row."""
    spread, kept = bits.spread(LANES), c.load(total, 0, LANES)
    for first in range(0, WORD_BITS, LANES):
        own = (spread >> c.constant(*range(first, first + LANES))) & 1
        kept = kept ^ (c.load(tables, at + first, LANES) & own.mask())
    c.store(kept, total, 0)


def _joined(lanes: Value) -> Value:
    """The XOR of all lanes, as a vector of one."""
    count = LANES // 2
    while count:
        lanes = lanes.pick(*range(count)) ^ lanes.pick(*range(count, 2 * count))
        count //= 2
    return lanes
