"""TMMO written from the paper, one block at a time (Guo, Katz, Wang, Yu, S&P 2020, section 7.4)."""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


def tmmo(key: bytes, x: int, tweak: int) -> int:
    """H(x, i) = π(π(x) ⊕ i) ⊕ π(x); blocks are 128-bit integers, little endian."""
    px = permute(key, x)
    return permute(key, px ^ tweak) ^ px


def permute(key: bytes, x: int) -> int:
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    return int.from_bytes(encryptor.update(x.to_bytes(16, "little")), "little")
