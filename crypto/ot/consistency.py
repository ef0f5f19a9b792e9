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
which is not 0, multiplies them. (Two hashes have four words of coins, of which two points that differ make two
uniform sums.) h(t_i) says nothing that the sender cannot compute.

Where a column's choices are a linear code's (:mod:`crypto.ot.wide`), x is as many rows as the code has bits, the
receiver sends the hash of each, and the sender encodes them. Then columns are compared with what others add up to,
not two with each other: so two hashes side by side are taken (docs/proofs.md, Consistency of wide transfers).

Source: Roy, *SoftSpokenOT* (CRYPTO 2022), consistency check by a universal hash, whose proof asks of h just that it
is universal and hides. It replaces the check of Keller, Orsini, Scholl (CRYPTO 2015), whose single equation over
GF(2^128) has no proof for keys of 128 bits.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from blake3 import blake3
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from crypto.blocks import BLOCK_BYTES
from crypto.encoding import WORD, Words, encode_words

DIGEST_BYTES = 32
CHECK_BYTES = BLOCK_BYTES + DIGEST_BYTES
"""h(x), and the digest of the rows' hashes."""

Hashing: TypeAlias = tuple[AESGCM, ...]
Encoding: TypeAlias = Callable[[Words], Words]

_COINS = 2  # words of a row that are the receiver's coins: one block for each hash, the last ones
_NONCE = bytes(12)


def padded(width: int, hashes: int = 1) -> int:
    """Words of a row with ``width`` words of choices: coins are added, and the whole is made full blocks."""
    return width + hashes * _COINS + width % 2


def challenge(session_key: bytes, position: int, corrections: memoryview, hashes: int = 1) -> Hashing:
    """Draw the hash, or several to be used side by side, from the receiver's message and its place in the session."""
    digest = blake3(b"jointcut/ot/check" + session_key + position.to_bytes(8, "little")).update(corrections)
    keys = digest.digest(BLOCK_BYTES * hashes)
    return tuple(AESGCM(keys[i : i + BLOCK_BYTES]) for i in range(0, len(keys), BLOCK_BYTES))


def proof(hashing: Hashing, t_rows: Words, choices: Words) -> bytes:
    """Return the proof that the receiver sends: 16 bytes a hash and row of choices, and a digest of 32.

    t_rows:   T; uint64, shape (n, w), contiguous, w even.
    choices:  x, coins included; uint64, shape (k, w), contiguous.
    """
    # The zeros' tag is what a tag adds to the linear part.
    tags = _tags(hashing, choices) ^ _tags(hashing, np.zeros((1, choices.shape[1]), dtype=np.uint64))
    return encode_words(tags) + _digest(_tags(hashing, t_rows))


def holds(
    hashing: Hashing, q_rows: Words, delta: Words, check: bytes, encode: Encoding = lambda one: one
) -> bool:
    """Return True if the sender's rows agree with the receiver's proof.

    q_rows:  Q; uint64, shape (n, w), contiguous.
    delta:   all ones where the bit of Δ is 1, else 0; uint64, shape (n, 1).
    encode:  what the columns' choices are of the receiver's; by default the one row of it in all.
    """
    hashed = np.frombuffer(check[:-DIGEST_BYTES], dtype="<u8").astype(np.uint64)
    choices = hashed.reshape(-1, len(hashing) * BLOCK_BYTES // WORD)
    expected = _tags(hashing, q_rows) ^ (delta & encode(choices))
    return hmac.compare_digest(_digest(expected), check[-DIGEST_BYTES:])


def _tags(hashing: Hashing, rows: Words) -> Words:
    """The tags of every row as additional data: its hashes, and constants of the challenge and the length."""
    n_bytes = WORD * rows.shape[1]
    octets = rows.reshape(-1).data.cast("B")
    parts = (octets[k : k + n_bytes] for k in range(0, len(octets), n_bytes))
    tags = (one.encrypt(_NONCE, b"", part) for part in parts for one in hashing)
    return np.frombuffer(b"".join(tags), dtype=np.uint64).reshape(len(rows), -1)


def _digest(tags: Words) -> bytes:
    return hashlib.sha256(b"jointcut/ot/rows" + tags.tobytes()).digest()
