"""A linear code of 76 bits in 512 with minimum distance at least 172.

The primitive BCH code of length 511 with roots α, α², ..., α^170 in GF(2^9) has a generator of degree 435. This
leaves 76 bits, and the distance is at least 171 (Bose, Ray-Chaudhuri 1960). A parity bit raises the distance to
172. Orrù, Orsini, Scholl (CT-RSA 2017) take the same code, without the parity bit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crypto.blocks import WORD_BITS
from crypto.encoding import Words
from crypto.pieces import slices

LENGTH = 512
"""Bits of a word of the code."""
WORD_LENGTH = LENGTH // WORD_BITS
DIMENSION = 76
"""Bits of a message to encode."""
DISTANCE = 172

_FIELD = 0b1000010001  # x^9 + x^4 + 1, primitive: x has order 511
_ORDER = 511
_ROOTS = 170
_NIBBLE = 4
_PIECE = 1 << 11
"""Words of encoded rows that are added up together, about: their summands stay in the CPU's cache."""


@lru_cache(maxsize=1)
def generator() -> Words:
    """Return the code words of the unit vectors: uint64, shape (DIMENSION, WORD_LENGTH), bit j in word j // 64."""
    polynomial = _generator_polynomial()
    words = [polynomial << i | (polynomial.bit_count() & 1) << _ORDER for i in range(DIMENSION)]
    octets = b"".join(word.to_bytes(LENGTH // 8, "little") for word in words)
    return np.frombuffer(octets, dtype="<u8").astype(np.uint64).reshape(DIMENSION, WORD_LENGTH)


def encode_columns(columns: Words) -> Words:
    """Encode many vectors at once, given and returned bit by bit: row i holds bit i of all of them.

    columns:  uint64, shape (DIMENSION, w).
    Returns uint64, shape (LENGTH, w).
    """
    groups, width = DIMENSION // _NIBBLE, columns.shape[1]
    # All sums of every four rows, so that a bit of the word is a sum of 19 sums, not of about 38 rows.
    sums = np.zeros((groups, 1 << _NIBBLE, width), dtype=np.uint64)
    for i in range(_NIBBLE):
        np.bitwise_xor(sums[:, : 1 << i], columns[i::_NIBBLE, np.newaxis], out=sums[:, 1 << i : 2 << i])
    flat, encoded = sums.reshape(-1, width), np.empty((LENGTH, width), dtype=np.uint64)
    for piece in slices(LENGTH, max(1, _PIECE // width)):
        np.bitwise_xor.reduce(flat[_nibbles()[piece]], axis=1, out=encoded[piece])
    return encoded


@lru_cache(maxsize=1)
def _nibbles() -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """Return, for every bit of a word, the row of the flat sums that each group of four adds: shape (LENGTH,
    groups).
    """
    bits = np.unpackbits(generator().view(np.uint8), axis=1, bitorder="little")
    groups = bits.reshape(-1, _NIBBLE, LENGTH)
    values = sum(groups[:, i].astype(np.intp) << i for i in range(_NIBBLE))
    return np.ascontiguousarray((values + (np.arange(len(groups)) << _NIBBLE)[:, np.newaxis]).T)


def _generator_polynomial() -> int:
    """Return the product of the minimal polynomials of α, ..., α^170; bit i is the coefficient of x^i."""
    powers = [1]
    while len(powers) < _ORDER:
        shifted = powers[-1] << 1
        powers.append(shifted ^ _FIELD if shifted >> 9 else shifted)
    product, covered = 1, set()
    for root in range(1, _ROOTS + 1):
        if root not in covered:
            conjugates = {root * 2**k % _ORDER for k in range(9)}
            covered |= conjugates
            product = _times(product, _minimal(sorted(conjugates), powers))
    return product


def _minimal(conjugates: list[int], powers: list[int]) -> int:
    """Return the product of x − α^c; the coefficients are 0 and 1."""
    logarithms = {power: i for i, power in enumerate(powers)}
    polynomial = [1]
    for root in conjugates:
        scaled = [powers[(logarithms[c] + root) % _ORDER] if c else 0 for c in polynomial]
        polynomial = [a ^ b for a, b in zip([0, *polynomial], [*scaled, 0], strict=True)]
    return sum(coefficient << i for i, coefficient in enumerate(polynomial))


def _times(a: int, b: int) -> int:
    """Return the product of two polynomials over GF(2)."""
    product = 0
    while b:
        low = b & -b
        product ^= a * low
        b ^= low
    return product
