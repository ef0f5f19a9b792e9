"""128-bit blocks: wire labels, transfer messages and keys, side by side in arrays.

A block is two uint64 words, low word first; bit i of a block is bit i mod 64 of word i // 64. ``Blocks`` are uint64
arrays of shape (count, 2). Where speed counts, the same memory is used flat, shape (2 * count,).

A vector times a matrix over GF(2) is the exclusive or of the rows selected by the 1-bits of the vector. For every
eight rows a table holds the sums of all 256 subsets, so eight rows cost one look-up ("four Russians": Arlazarov,
Dinic, Kronrod and Faradzhev, 1970). The entries looked up depend on the vectors, so the time may, too: Python is
not constant-time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crypto.encoding import Words, decode_words, encode_words
from crypto.rng import Rng, uniform_words

Blocks = NDArray[np.uint64]
Octets = NDArray[np.uint8]

BLOCK_BYTES = 16
BLOCK_BITS = 128
WORD_BITS = 64
BYTE = 8

SWAPS = (
    (32, 0x00000000FFFFFFFF),
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)
"""Swaps of the 64 x 64 bit transpose (Hacker's Delight, section 7-3): distance and mask, widest first."""


def random_blocks(rng: Rng, count: int) -> Blocks:
    """Return ``count`` uniform blocks; uint64, shape (count, 2)."""
    return uniform_words(rng, 2 * count).reshape(count, 2)


def encode_blocks(blocks: Blocks) -> bytes:
    """Encode blocks, 16 bytes each."""
    return encode_words(blocks)


def decode_blocks(payload: bytes, count: int, peer: str, step: str) -> Blocks:
    """Decode exactly ``count`` blocks; uint64, shape (count, 2)."""
    return decode_words(payload, 2 * count, peer, step).reshape(count, 2)


def block_of(bits: NDArray[np.uint8]) -> Words:
    """Pack 128 bits into one block; uint64, shape (2,)."""
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def bits_of(words: Words) -> NDArray[np.uint8]:
    """Return the bits of words (128 for a block); uint8, shape (64 * len(words),)."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")


def pack_bits(bits: NDArray[np.uint8]) -> Words:
    """Pack bits into words and pad the last word with zeros; uint64, shape (ceil(len(bits) / 64),)."""
    packed = np.zeros(WORD_BITS // 8 * words_for(len(bits)), dtype=np.uint8)
    head = np.packbits(bits, bitorder="little")
    packed[: len(head)] = head
    return packed.view("<u8").astype(np.uint64, copy=False)


def words_for(bits: int) -> int:
    """Return the number of words needed for ``bits`` bits."""
    return -(-bits // WORD_BITS)


def transpose_rows(rows: Words, scratch: Words, out: Blocks) -> None:
    """Write column j of a bit matrix with 128 rows to block j of ``out``.

    rows:     uint64, shape (128, w), contiguous; overwritten.
    scratch:  uint64, at least 64 * w words.
    out:      uint64, shape (64 * w, 2).
    """
    width = rows.shape[1]
    for distance, mask in SWAPS:
        pairs = rows.reshape(BLOCK_BITS // (2 * distance), 2, distance, width)
        low, high = pairs[:, 0], pairs[:, 1]
        swap = scratch[: WORD_BITS * width].reshape(low.shape)
        shift = np.uint64(distance)
        np.right_shift(low, shift, out=swap)
        np.bitwise_xor(swap, high, out=swap)
        np.bitwise_and(swap, np.uint64(mask), out=swap)
        np.bitwise_xor(high, swap, out=high)
        np.left_shift(swap, shift, out=swap)
        np.bitwise_xor(low, swap, out=low)
    np.copyto(out.reshape(width, WORD_BITS, 2), rows.reshape(2, WORD_BITS, width).transpose(2, 1, 0))


def tables_of(rows: Words) -> Words:
    """Return all sums of every eight rows: uint64, shape (ceil(n / 8), 256, w), of rows of shape (n, w)."""
    groups = -(-len(rows) // BYTE)
    padded = np.zeros((groups, BYTE, rows.shape[1]), dtype=np.uint64)
    padded.reshape(-1, rows.shape[1])[: len(rows)] = rows
    tables = np.zeros((groups, 1 << BYTE, rows.shape[1]), dtype=np.uint64)
    for i in range(BYTE):
        np.bitwise_xor(tables[:, : 1 << i], padded[:, i, np.newaxis], out=tables[:, 1 << i : 2 << i])
    return tables


def add_products(sums: Words, tables: Words, vectors: Octets) -> None:
    """Add to every row of ``sums`` the product of a vector with the matrix of ``tables``, in place.

    sums:     uint64, shape (n, w).
    vectors:  uint8, shape (n, groups): bit i of byte g selects row 8 g + i.
    """
    looked_up = np.empty_like(sums)
    for table, octets in zip(tables, vectors.T, strict=True):
        np.take(table, octets, axis=0, out=looked_up, mode="clip")
        np.bitwise_xor(sums, looked_up, out=sums)
