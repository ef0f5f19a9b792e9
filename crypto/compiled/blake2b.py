"""BLAKE2b of rows, :func:`crypto.digests.digests_of`: many rows side by side, a row a lane.

The code is made once a process has hashed so many rows that making the code pays. Until then, and if the code
differs from the reference, the reference hashes. Source: RFC 7693, section 3.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from llvmlite import binding, ir

from crypto.blocks import Octets
from crypto.compiled.code import WORD, WORDS, Code, Value
from crypto.digests import digests_of
from crypto.encoding import UINT64_MASK, Words
from crypto.encoding import WORD as WORD_BYTES
from crypto.pieces import slices

ENOUGH_ROWS = 1 << 17
"""Number of rows that the reference hashes in the time in which the code is made."""

Compile = Callable[[str], binding.ExecutionEngine]
Hash = Callable[[Octets, int], Words]

_BLOCK_WORDS = 16
_BLOCK_BYTES = WORD_BYTES * _BLOCK_WORDS
_STATE_WORDS = 8
_START = (
    0x6A09E667F3BCC908,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
    0xA54FF53A5F1D36F1,
    0x510E527FADE682D1,
    0x9B05688C2B3E6C1F,
    0x1F83D9ABFB41BD6B,
    0x5BE0CD19137E2179,
)
_ROUNDS = 12
_ORDERS = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    (11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
    (7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
    (9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
    (2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
    (12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
    (13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
    (6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
    (10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
)
_MEMORY_WORDS = _STATE_WORDS + 2 * _BLOCK_WORDS
_ROWS_WORDS = 1 << 15
"""Words of padded rows that stay in a CPU's second cache."""
_PARAMETERS = 0x01010000
"""Depth 1, fan-out 1, no key; the lowest byte is the size of the digest."""


class Digests:
    """The digests of a compiled engine."""

    def __init__(self, compile_: Compile, lanes: int) -> None:
        """Set up; compile later.

        lanes: number of rows hashed side by side.
        """
        self._compile, self._lanes, self._missing = compile_, lanes, ENOUGH_ROWS
        self._hash: Hash = digests_of

    def __call__(self, rows: Octets, size: int) -> Words:
        """Digest."""
        before, self._missing = self._missing, self._missing - len(rows)
        if before > 0 >= self._missing:
            self._hash = compared(Kernel(self._compile, self._lanes))
        return self._hash(rows, size)


class Kernel:
    """The machine code."""

    def __init__(self, compile_: Compile, lanes: int) -> None:
        """Compile.

        lanes: number of rows hashed side by side.
        """
        module = ir.Module("blake2b")
        write_blake2b(module, "blake2b", lanes)
        self._lanes = lanes
        self._code = compile_(str(module))  # lives as long as this does
        arguments = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 2
        self._function = ctypes.CFUNCTYPE(None, *arguments)(self._code.get_function_address("blake2b"))
        self._orders = np.array([_ORDERS[i % len(_ORDERS)] for i in range(_ROUNDS)], dtype=np.uint64)

    def __call__(self, rows: Octets, size: int) -> Words:
        """Digest like :func:`crypto.digests.digests_of`."""
        n, width = rows.shape
        blocks = max(1, -(-width // _BLOCK_BYTES))
        start = np.array([_START[0] ^ _PARAMETERS ^ size, *_START[1:], *_START], dtype=np.uint64)
        ends = [min(_BLOCK_BYTES * (i + 1), width) for i in range(blocks)]
        counters = np.array([*zip(ends, [0] * (blocks - 1) + [UINT64_MASK], strict=True)], dtype=np.uint64)
        memory = np.empty(_MEMORY_WORDS * self._lanes, dtype=np.uint64)
        most = max(1, _ROWS_WORDS // (_BLOCK_WORDS * blocks * self._lanes))
        count = self._lanes * min(most, self._groups(max(n, 1)))
        padded = np.zeros((count, _BLOCK_WORDS * blocks), dtype=np.uint64)
        out = np.empty((count, _STATE_WORDS), dtype=np.uint64)
        arrays = padded, start, counters, self._orders, memory, out
        digests = np.empty((n, size // WORD_BYTES), dtype=np.uint64)
        for piece in slices(n, count):
            taken = piece.stop - piece.start
            padded.view(np.uint8)[:taken, :width] = rows[piece]
            used = self._lanes * self._groups(taken)
            self._function(*(array.ctypes.data for array in arrays), used, blocks)
            digests[piece] = out[:taken, : digests.shape[1]]
        return digests

    def _groups(self, rows: int) -> int:
        return -(-rows // self._lanes)


def compared(kernel: Hash) -> Hash:
    """Return the kernel if its digests are those of the reference, else the reference."""
    for width in (100, 300):
        rows = np.resize(np.arange(251, dtype=np.uint8), (21, width))
        if not np.array_equal(kernel(rows, 32), digests_of(rows, 32)):
            warnings.warn("compiled BLAKE2b computes wrong digests here; hashlib is used", stacklevel=2)
            return digests_of
    return kernel


def lanes_of(features: Mapping[str, bool]) -> int:
    """Return the number of rows to hash side by side; LLVM splits them for a CPU with narrower registers."""
    return 8 if features.get("avx512f") else 4


def write_blake2b(module: ir.Module, name: str, lanes: int) -> None:
    """Write the function (rows, start, counters, orders, memory, out; number of rows, number of blocks).

    rows:      uint64, shape (n, 16 * blocks): texts padded with zeros to full blocks; n a multiple of the lanes.
    start:     the 8 words before the first block, and the 8 words of the standard.
    counters:  by block: bytes of the text up to the end of the block; all ones for the last block, else 0.
    orders:    by round, the order of a block's words.
    memory:    _MEMORY_WORDS a lane.
    out:       uint64, shape (n, 8).
    """
    c = Code(module, name, [WORDS] * 6 + [WORD] * 2)
    rows, start, counters, orders, memory, out, n_rows, blocks = c.arguments
    chain, v, words = (_Array(c, memory, lanes, i) for i in (0, _STATE_WORDS, _STATE_WORDS + _BLOCK_WORDS))
    with c.count(0, n_rows - lanes, lanes) as row:
        for i in range(_STATE_WORDS):
            chain[i] = c.load(start, i).spread(lanes)
        with c.count(0, blocks - 1) as block:
            for first in range(0, _BLOCK_WORDS, lanes):
                places = [((row + lane) * blocks + block) * _BLOCK_WORDS + first for lane in range(lanes)]
                for i, word in enumerate(_turned([c.load(rows, place, lanes) for place in places])):
                    words[first + i] = word
            for i in range(_STATE_WORDS):
                v[i] = chain[i]
                v[_STATE_WORDS + i] = c.load(start, _STATE_WORDS + i).spread(lanes)
            v[12] ^= c.load(counters, block * 2).spread(lanes)
            v[14] ^= c.load(counters, block * 2 + 1).spread(lanes)
            with c.count(0, (_ROUNDS - 1) * _BLOCK_WORDS, _BLOCK_WORDS) as turn:
                _round(v, [words[c.load(orders, turn + i)] for i in range(_BLOCK_WORDS)])
            for i in range(_STATE_WORDS):
                chain[i] ^= v[i] ^ v[i + _STATE_WORDS]
        for first in range(0, _STATE_WORDS, lanes):
            for lane, part in enumerate(_turned([chain[first + i] for i in range(lanes)])):
                c.store(part, out, (row + lane) * _STATE_WORDS + first)
    c.end()


class _Array:
    """Vectors in working memory."""

    def __init__(self, code: Code, memory: Value, lanes: int, first: int) -> None:
        self._code, self._memory, self._lanes, self._first = code, memory, lanes, first

    def __getitem__(self, i: Value | int) -> Value:
        return self._code.load(self._memory, self._place(i), self._lanes)

    def __setitem__(self, i: int, vector: Value) -> None:
        self._code.store(vector, self._memory, self._place(i))

    def _place(self, i: Value | int) -> Value | int:
        return (i + self._first) * self._lanes


def _round(state: _Array, words: Sequence[Value]) -> None:
    """Emit a round: columns, then diagonals."""
    v = [state[i] for i in range(_BLOCK_WORDS)]
    for k in range(8):
        places = [4 * j + (k + j * (k // 4)) % 4 for j in range(4)]
        mixed = _mixed(*(v[place] for place in places), *words[2 * k : 2 * k + 2])
        for place, word in zip(places, mixed, strict=True):
            v[place] = word
    for i, word in enumerate(v):
        state[i] = word


def _mixed(a: Value, b: Value, c: Value, d: Value, x: Value, y: Value) -> tuple[Value, Value, Value, Value]:
    """Emit the function G of the standard."""
    for word, (first, second) in ((x, (32, 24)), (y, (16, 63))):
        a = a + b + word
        d = (d ^ a).rotate(first)
        c = c + d
        b = (b ^ c).rotate(second)
    return a, b, c, d


def _turned(rows: list[Value]) -> list[Value]:
    """Transpose a square of words."""
    size = len(rows)
    rows = list(rows)
    apart = size // 2
    while apart:
        low_lanes = [lane if not lane & apart else size + lane - apart for lane in range(size)]
        high_lanes = [lane + apart if not lane & apart else size + lane for lane in range(size)]
        for i in range(size):
            if not i & apart:
                low, high = rows[i], rows[i + apart]
                rows[i], rows[i + apart] = (low.pick(*lanes, other=high) for lanes in (low_lanes, high_lanes))
        apart //= 2
    return rows
