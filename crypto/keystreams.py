"""Keystreams of AES-128 in counter mode from zero."""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from crypto.blocks import BLOCK_BYTES, Blocks, encode_blocks

_FROM_ZERO = modes.CTR(bytes(BLOCK_BYTES))
"""Mode of all keystreams: each session makes hundreds."""


def stream_of(seed: bytes) -> CipherContext:
    """Return the keystream of AES-128 in counter mode under a seed; the seed has no further use."""
    return Cipher(algorithms.AES(seed), _FROM_ZERO).encryptor()


def streams_of(seeds: Blocks) -> list[CipherContext]:
    """Return a keystream for each seed."""
    return [stream_of(encode_blocks(seed)) for seed in seeds]
