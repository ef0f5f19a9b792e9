"""Keystreams of AES-128 in counter mode from zero: the reference for every :class:`crypto.engine.Engine`."""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from crypto.blocks import BLOCK_BYTES, Blocks, encode_blocks
from crypto.encoding import WORD, Words

_FROM_ZERO = modes.CTR(bytes(BLOCK_BYTES))
"""Mode of all keystreams: each session makes hundreds."""


def stream_of(seed: bytes) -> CipherContext:
    """Return the keystream of AES-128 in counter mode under a seed; the seed has no further use."""
    return Cipher(algorithms.AES(seed), _FROM_ZERO).encryptor()


class Keystreams:
    """Keystreams that go on together."""

    def __init__(self, seeds: Blocks) -> None:
        """Begin. seeds: one a stream, shape (n, 2); they have no further use."""
        self._streams = [stream_of(encode_blocks(seed)) for seed in seeds]

    def __repr__(self) -> str:
        return f"Keystreams(n={len(self._streams)}, <secret>)"

    def fill(self, rows: Words) -> None:
        """Fill row i with the next blocks of stream i; shape (n, width), contiguous, ``width`` even."""
        n_bytes = WORD * rows.shape[1]
        zeros, target = bytes(n_bytes), rows.data.cast("B")
        for i, stream in enumerate(self._streams):
            stream.update_into(zeros, target[i * n_bytes : (i + 1) * n_bytes])
