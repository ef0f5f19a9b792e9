"""Seeded coins. They live here and nowhere else."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


class SeededRng:
    """A deterministic :class:`crypto.rng.Rng`: AES-CTR under a key derived from the seed's text."""

    def __init__(self, seed: object) -> None:
        key = hashlib.sha256(repr(seed).encode()).digest()[:16]
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def bytes(self, n: int) -> bytes:
        return self._stream.update(bytes(n))
