"""Tweakable hashing of blocks with AES under a public key that is fresh for every session and chunk.

H(x, i) = π(π(x) ⊕ i) ⊕ π(x) with π = AES-128 under the key: TMMO of Guo, Katz, Wang, Yu, *Efficient and
secure multiparty computation from fixed-key block ciphers* (IEEE S&P 2020), section 7.4: tweakable
circular correlation robust in the ideal cipher model, which half-gates and oblivious transfer with one
offset for all need. A hash object hands out its tweaks itself, so none is used twice under a key.
"""

from __future__ import annotations

import hashlib

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from crypto.blocks import BLOCK_BYTES, Words

KEY_BYTES = 16
_SLACK = BLOCK_BYTES // 8  # words that the library wants behind what it writes


def derive_key(seed: bytes, *context: bytes | int) -> bytes:
    """Return a 16-byte key bound to the seed and to every part of the context, in order."""
    h = hashlib.sha256(b"jointcut/key" + len(seed).to_bytes(4, "little") + seed)
    for part in context:
        encoded = part.to_bytes(8, "little") if isinstance(part, int) else part
        h.update(len(encoded).to_bytes(4, "little") + encoded)
    return h.digest()[:KEY_BYTES]


def fixed_key_aes(key: bytes) -> CipherContext:
    """Return the permutation π of one key; every key of this module goes through here."""
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  (one block is one input)


class BlockHash:
    """TMMO over arrays of blocks, with its own running tweak and working memory.

    Both sides of a protocol create it from the same key and hash the same numbers of blocks in the same
    order; then their tweaks agree.
    """

    def __init__(self, key: bytes, capacity: int) -> None:
        """capacity: the largest number of blocks of one call, all rows together."""
        self._permuted = np.empty(2 * capacity + _SLACK, dtype=np.uint64)
        self._digest = np.empty(2 * capacity + _SLACK, dtype=np.uint64)
        self._permuted_bytes = self._permuted.data.cast("B")
        self._digest_bytes = self._digest.data.cast("B")
        self._tweaks = np.empty(2 * capacity, dtype=np.uint64)
        self._pattern = np.zeros(2 * capacity, dtype=np.uint64)
        self._pattern[0::2] = np.arange(capacity, dtype=np.uint64)
        self.rekey(key)

    def rekey(self, key: bytes) -> None:
        """Go on under another key, with tweaks from zero again."""
        self._aes = fixed_key_aes(key)
        self._used = 0

    def __repr__(self) -> str:
        return "BlockHash(<keyed>)"

    def next_tweaks(self, count: int) -> Words:
        """Return the next ``count`` tweaks as blocks, flat; none comes twice under one key."""
        tweaks = self._tweaks[: 2 * count]
        # The high words of the pattern are zero and the counter is added to the low ones only.
        np.add(self._pattern[0 : 2 * count : 2], np.uint64(self._used), out=tweaks[0::2])
        tweaks[1::2] = 0
        self._used += count
        return tweaks

    def hash(self, x: Words) -> Words:
        """Return H of every block of ``x``; the blocks of one column share a tweak.

        x:  uint64, shape (rows, 2 * count), contiguous; count ≥ 1.
        Returns the same shape, in working memory that the next call overwrites.
        """
        rows, width = x.shape
        n_bytes = x.nbytes
        permuted = self._permuted[: rows * width].reshape(rows, width)
        digest = self._digest[: rows * width].reshape(rows, width)
        self._aes.update_into(x.data.cast("B"), self._permuted_bytes)
        np.bitwise_xor(permuted, self.next_tweaks(width // 2), out=digest)
        self._aes.update_into(self._digest_bytes[:n_bytes], self._digest_bytes)
        np.bitwise_xor(digest, permuted, out=digest)
        return digest
