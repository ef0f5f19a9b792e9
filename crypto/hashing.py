"""Tweakable hashing of blocks with AES under a public key that is fresh for every session and chunk.

H(x, i) = π(π(x) ⊕ i) ⊕ π(x) with π = AES-128 under the key: TMMO of Guo, Katz, Wang, Yu, *Efficient and secure
multiparty computation from fixed-key block ciphers* (IEEE S&P 2020), section 7.4. TMMO is tweakable circular
correlation robust in the ideal cipher model, as half-gates and oblivious transfer with a common offset need. A hash
object assigns the tweaks: no tweak is used twice under a key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from crypto.blocks import BLOCK_BYTES
from crypto.encoding import Words

KEY_BYTES = 16
_SLACK = BLOCK_BYTES // 8  # words that the library needs after its output


def derive_key(seed: bytes, *context: bytes | int) -> bytes:
    """Return a 16-byte key bound to the seed and to every part of the context, in order."""
    h = hashlib.sha256(b"jointcut/key" + len(seed).to_bytes(4, "little") + seed)
    for part in context:
        encoded = part.to_bytes(8, "little") if isinstance(part, int) else part
        h.update(len(encoded).to_bytes(4, "little") + encoded)
    return h.digest()[:KEY_BYTES]


def fixed_key_aes(key: bytes) -> CipherContext:
    """Return the permutation π of a key; every key of this module goes through here."""
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  (one block is one input)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Working memory cut for a shape of input, so that small inputs do not pay for slicing."""

    permuted: Words
    digest: Words
    digest_bytes: memoryview
    tweaks: Words
    tweaks_low: Words
    pattern: Words


class BlockHash:
    """TMMO over arrays of blocks, with a running tweak and working memory.

    Both sides of a protocol create the hash from the same key and hash the same numbers of blocks in the same
    order; then their tweaks agree.
    """

    def __init__(self, key: bytes, capacity: int) -> None:
        """Set the key.

        capacity: the largest number of blocks of a call, all rows together.
        """
        self._permuted = np.empty(2 * capacity + _SLACK, dtype=np.uint64)
        self._digest = np.empty(2 * capacity + _SLACK, dtype=np.uint64)
        self._permuted_bytes = self._permuted.data.cast("B")
        self._digest_bytes = self._digest.data.cast("B")
        self._tweaks = np.zeros(2 * capacity, dtype=np.uint64)  # the high words stay zero
        self._pattern = np.arange(capacity, dtype=np.uint64)
        self._shapes: dict[tuple[int, ...], _Shape] = {}
        self.rekey(key)

    def rekey(self, key: bytes) -> None:
        """Go on under a new key, with tweaks from zero again."""
        self.key = key
        self._aes = fixed_key_aes(key)
        self._used = 0

    def __repr__(self) -> str:
        return "BlockHash(<keyed>)"

    def hash(self, x: Words) -> Words:
        """Return H of every block of ``x``; the blocks of a column share the next unused tweak.

        x:  uint64, shape (rows, 2 * count), contiguous; count ≥ 1.
        Returns the same shape, in working memory overwritten by the next call.
        """
        shape = self._shapes.get(x.shape) or self._cut(x.shape)
        self._aes.update_into(x.data.cast("B"), self._permuted_bytes)
        self._next_tweaks(shape)
        np.bitwise_xor(shape.permuted, shape.tweaks, out=shape.digest)
        self._aes.update_into(shape.digest_bytes, self._digest_bytes)
        np.bitwise_xor(shape.digest, shape.permuted, out=shape.digest)
        return shape.digest

    def take(self, count: int) -> int:
        """Return the first of ``count`` unused tweaks in a row, and count them as used."""
        first = self._used
        self._used += count
        return first

    def _next_tweaks(self, shape: _Shape) -> None:
        """Fill in the tweaks of a call: the running number of the block under the key."""
        np.add(shape.pattern, np.uint64(self.take(len(shape.pattern))), out=shape.tweaks_low)

    def _cut(self, shape: tuple[int, ...]) -> _Shape:
        rows, width = shape
        size = rows * width
        cut = _Shape(
            permuted=self._permuted[:size].reshape(shape),
            digest=self._digest[:size].reshape(shape),
            digest_bytes=self._digest_bytes[: 8 * size],
            tweaks=self._tweaks[:width],
            tweaks_low=self._tweaks[0:width:2],
            pattern=self._pattern[: width // 2],
        )
        self._shapes[shape] = cut
        return cut
