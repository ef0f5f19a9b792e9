"""Randomness is an argument: who needs coins takes an :class:`Rng`.

Production passes :class:`SystemRng`. Seeded coins live under ``tests/`` only; nothing here reads a seed
from the environment or the command line.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

SEED_BYTES = 16


class Rng(Protocol):
    """A source of uniform, independent bytes."""

    def bytes(self, n: int) -> bytes:
        """Return the next ``n`` bytes."""
        ...


class SystemRng:
    """The operating system's generator."""

    def bytes(self, n: int) -> bytes:
        return os.urandom(n)


class Prg:
    """AES-128-CTR keystream of a secret 16-byte seed: an :class:`Rng` two holders of the seed share.

    A seed is used for one :class:`Prg` only; the stream never repeats within 2**64 blocks.
    """

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
        self._stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()

    def bytes(self, n: int) -> bytes:
        return self._stream.update(bytes(n))

    def __repr__(self) -> str:
        return "Prg(<secret>)"


def uniform_words(rng: Rng, count: int) -> NDArray[np.uint64]:
    """Return ``count`` uniform 64-bit words: uint64, shape (count,)."""
    return np.frombuffer(rng.bytes(8 * count), dtype="<u8").astype(np.uint64)


def uniform_permutation(rng: Rng, count: int) -> NDArray[np.int64]:
    """Return a permutation of ``count`` numbers, uniform (by sorting distinct coins): int64, shape (count,)."""
    while True:
        coins = uniform_words(rng, count)
        order = np.argsort(coins).astype(np.int64)
        if (np.diff(coins[order]) > 0).all():
            return order


def uniform_below(rng: Rng, bound: int) -> int:
    """Return an integer uniform in [0, bound), exactly (rejection sampling)."""
    if bound < 1:
        raise ValueError("bound must be at least 1")
    bits = (bound - 1).bit_length()
    n_bytes = (bits + 7) // 8
    while True:
        candidate = int.from_bytes(rng.bytes(n_bytes), "little") & ((1 << bits) - 1)
        if candidate < bound:
            return candidate
