"""The check that a receiver of extended transfers makes the same choices in every column.

Let the 128 columns of the extension be the rows of matrices: the sender holds Q, the receiver T, and
q_i = t_i ⊕ Δ_i·x_i, where an honest receiver has used one x, its choices, in every row i. For a hash h that is linear
over GF(2) and drawn after the receiver's message, the receiver sends h(x) and a digest of h(t_1), ..., h(t_128); the
sender compares that digest with the one of h(q_i) ⊕ Δ_i·h(x), i = 1, ..., 128.

h is GHASH, the hash inside AES-GCM: a polynomial over GF(2^128) whose coefficients are the row, at the point that the
cipher derives from the challenge. Two rows of n transfers have the same hash with probability at most
(n/128 + 3) / 2^128. So but for that chance, rows that differ in x have different hashes, a receiver that used other
choices in k of the rows passes only if it knows those k bits of Δ, and a guess is caught with probability 1 − 2^−k.
The challenge is the digest of the message itself (Fiat and Shamir), so the check costs no round.

h(x) says nothing of the choices: the last two words of x are coins that nothing else uses, and a power of the point,
which is not 0, multiplies them. h(t_i) says nothing that the sender cannot compute.

Source: Roy, *SoftSpokenOT* (CRYPTO 2022), consistency check by a universal hash, whose proof asks of h just that it
is universal and hides. It replaces the check of Keller, Orsini, Scholl (CRYPTO 2015), whose single equation over
GF(2^128) has no proof for keys of 128 bits.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from blake3 import blake3
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from crypto.blocks import BLOCK_BITS, BLOCK_BYTES
from crypto.encoding import WORD, Words

CHECK_BYTES = BLOCK_BYTES + 32
"""h(x), and the digest of the rows' hashes."""

_COINS = 2  # words of a row that are the receiver's coins: one block of the hash, the last
_NONCE = bytes(12)


def padded(width: int) -> int:
    """Words of a row with ``width`` words of choices: coins are added, and the whole is made full blocks."""
    return width + _COINS + width % 2


def challenge(session_key: bytes, position: int, corrections: memoryview) -> AESGCM:
    """Draw the hash from the receiver's message and its place in the session."""
    digest = blake3(b"jointcut/ot/check" + session_key + position.to_bytes(8, "little"))
    return AESGCM(digest.update(corrections).digest(BLOCK_BYTES))


def proof(hashing: AESGCM, t_rows: Words, choices: Words) -> bytes:
    """What the receiver sends: CHECK_BYTES bytes.

    t_rows:   T; uint64, shape (128, w), contiguous, w even.
    choices:  x, coins included; uint64, shape (w,).
    """
    zeros = hashing.encrypt(_NONCE, b"", bytes(WORD * len(choices)))  # what the tag adds to the linear part
    tags = _tags(hashing, choices.reshape(1, -1)) ^ np.frombuffer(zeros, dtype=np.uint64)
    return tags.tobytes() + _digest(_tags(hashing, t_rows))


def holds(hashing: AESGCM, q_rows: Words, delta: Words, check: bytes) -> bool:
    """Whether the sender's rows agree with what the receiver sent.

    q_rows:  Q; uint64, shape (128, w), contiguous.
    delta:   all ones where the bit of Δ is 1, else 0; uint64, shape (128, 1).
    """
    choices = np.frombuffer(check[:BLOCK_BYTES], dtype=np.uint64)
    return hmac.compare_digest(_digest(_tags(hashing, q_rows) ^ (delta & choices)), check[BLOCK_BYTES:])


def _tags(hashing: AESGCM, rows: Words) -> Words:
    """The tag of every row as additional data: its hash, and a constant of the challenge and the length."""
    n_bytes = WORD * rows.shape[1]
    octets = rows.reshape(-1).data.cast("B")
    tags = (hashing.encrypt(_NONCE, b"", octets[k : k + n_bytes]) for k in range(0, len(octets), n_bytes))
    return np.frombuffer(b"".join(tags), dtype=np.uint64).reshape(-1, BLOCK_BITS // 64)


def _digest(tags: Words) -> bytes:
    return hashlib.sha256(b"jointcut/ot/rows" + tags.tobytes()).digest()
