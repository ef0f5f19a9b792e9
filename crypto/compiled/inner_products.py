"""The inner products of :mod:`crypto.inner_products` as a function (planes, of, vectors, shifts, scratch, out; count,
n_bits, words).

planes, of, vectors, shifts, out:  as there; a vector has ``words`` words.
scratch:                           SCRATCH_ROWS * words + SCRATCH_WORDS words of working memory.

A turned vector stays in the CPU's nearest memory while all planes of its table are read. Addresses
depend on shifts and numbers of tables, both public.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from crypto.compiled.code import WORD, WORDS, Carried, Code, Value

SCRATCH_ROWS, SCRATCH_WORDS = 3, 1
_LANES = (8, 1)
"""Words worked on at once; LLVM splits the words for a CPU that takes fewer."""


def write_inner_products(module: ir.Module, name: str) -> None:
    """Write the function."""
    c = Code(module, name, [WORDS] * 6 + [WORD] * 3)
    planes, of, vectors, shifts, scratch, out, count, n_bits, words = c.arguments
    turned = words * 2 + 1
    with c.count(0, count - 1) as number:
        _doubled(c, vectors, number * words, scratch, words)
        _turn(c, scratch, c.load(shifts, number), turned, words)
        table = c.load(of, number) * n_bits * words
        products = Carried(c.word(0))
        with c.count(0, n_bits - 1, 1, products) as bit:
            products.value += _ones(c, planes, table + bit * words, scratch, turned, words) << bit
        c.store(products.value, out, number)
    c.end()


def _along(c: Code, words: Value, body: Callable[[Value, int], None]) -> None:
    """Emit a walk along a row."""
    k: Value | int = 0
    for lanes in _LANES:
        with c.count(k, words - lanes, lanes) as k:
            body(k, lanes)


def _doubled(c: Code, vectors: Value, vector: Value, scratch: Value, words: Value) -> None:
    """Emit the copying of a vector, written twice, with its last word in front."""

    def copied(k: Value, lanes: int) -> None:
        own = c.load(vectors, vector + k, lanes)
        for at in (k + 1, k + 1 + words):
            c.store(own, scratch, at)

    _along(c, words, copied)
    c.store(c.load(scratch, words), scratch, 0)


def _turn(c: Code, scratch: Value, by: Value, turned: Value, words: Value) -> None:
    """Emit the turning of the vector."""
    start = words + 1 - (by >> 6 & words - 1)
    bits = by & (WORD.width - 1)

    def turn(k: Value, lanes: int) -> None:
        left, right = bits.spread(lanes), (bits ^ (WORD.width - 1)).spread(lanes)
        own, below = (c.load(scratch, start + k - before, lanes) for before in (0, 1))
        c.store((own << left) ^ (below >> 1 >> right), scratch, turned + k)

    _along(c, words, turn)


def _ones(c: Code, planes: Value, plane: Value, scratch: Value, turned: Value, words: Value) -> Value:
    """Emit the number of ones that the turned vector and a plane have in common."""
    k: Value | int = 0
    found = c.word(0)
    for lanes in _LANES:
        ones = Carried(c.constant(*[0] * lanes))
        with c.count(k, words - lanes, lanes, ones) as k:
            common = c.load(planes, plane + k, lanes) & c.load(scratch, turned + k, lanes)
            ones.value += c.call(f"llvm.ctpop.v{lanes}i64", common)
        found += ones.value.sum_of_lanes()
    return found
