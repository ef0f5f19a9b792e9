"""The check that a receiver of extended transfers makes the same choices in every group of columns.

Let the 128 columns of the extension be the rows of matrices: the sender holds Q, the receiver T, and
q_i = t_i ⊕ Δ_i·x_i. The columns of a group have the same x_i. An honest receiver uses the same x, its choices, in
every group. Let h be a hash, linear over GF(2), drawn after the receiver's message. The receiver sends h(x) and a
digest of h(t_1), ..., h(t_128). The sender compares this digest with the digest of h(q_i) ⊕ Δ_i·h(x) for all i.

h is GHASH, the hash inside AES-GCM: a polynomial over GF(2^128) with the row as coefficients, at the point that the
cipher derives from the challenge. Two rows of n transfers have the same hash with probability at most
(n/128 + 3) / 2^128. Except with that probability, different rows x have different hashes. So a receiver that used
different choices in k of the groups passes only if it knows all bits of Δ there. A bit of Δ is public, so a guess
is caught with probability 1 − 2·16^−k or more. The challenge is the digest of the message and of the trees (Fiat and
Shamir), so the check costs no round. Without the trees the challenge of a later message would be known before the
trees are made, and a receiver could search for trees whose streams hide other choices from h.

h(x) says nothing of the choices: the last two words of x are coins without further use, multiplied by a power of
the point, which is not 0. (Two hashes have four words of coins; two different points turn these into two uniform
sums.) h(t_i) says nothing that the sender cannot compute.

If a column's choices belong to a linear code (:mod:`crypto.ot.wide`), x has as many rows as the code has bits. The
receiver sends the hash of each row, and the sender encodes the hashes. Then a column is compared with a sum of
columns, not with a single column, so two hashes side by side are taken (docs/proofs.md, Consistency of wide
transfers).

Source: Roy, *SoftSpokenOT* (CRYPTO 2022), consistency check by a universal hash. The proof requires of h only that
h is universal and hides. The check replaces the check of Keller, Orsini, Scholl (CRYPTO 2015), whose single
equation over GF(2^128) has no proof for keys of 128 bits.
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

_COINS = 2  # last words of a row for the receiver's coins: a block for each hash
_NONCE = bytes(12)


def padded(width: int, hashes: int = 1) -> int:
    """Return the words of a row with ``width`` words of choices, with coins added, rounded up to full blocks."""
    return width + hashes * _COINS + width % 2


def challenge(key: bytes, position: int, corrections: memoryview, hashes: int = 1) -> Hashing:
    """Derive the hash, or several hashes used side by side, from the receiver's message and its place in the
    session.

    key:  public, of the session. Once it is known, the receiver cannot change its streams.
    """
    digest = blake3(b"jointcut/ot/check" + key + position.to_bytes(8, "little")).update(corrections)
    keys = digest.digest(BLOCK_BYTES * hashes)
    return tuple(AESGCM(keys[i : i + BLOCK_BYTES]) for i in range(0, len(keys), BLOCK_BYTES))


def proof(hashing: Hashing, t_rows: Words, choices: Words) -> bytes:
    """Return the proof that the receiver sends: 16 bytes a hash and row of choices, and a digest of 32.

    t_rows:   T; uint64, shape (n, w), contiguous, w even.
    choices:  x, coins included; uint64, shape (k, w), contiguous.
    """
    # The tag of zeros is the constant that a tag adds to the linear part.
    tags = _tags(hashing, choices) ^ _tags(hashing, np.zeros((1, choices.shape[1]), dtype=np.uint64))
    return encode_words(tags) + _digest(_tags(hashing, t_rows))


def holds(
    hashing: Hashing, q_rows: Words, delta: Words, check: bytes, encode: Encoding = lambda one: one
) -> bool:
    """Return True if the sender's rows agree with the receiver's proof.

    q_rows:  Q; uint64, shape (n, w), contiguous.
    delta:   all ones where the bit of Δ is 1, else 0; uint64, shape (n, 1).
    encode:  maps the receiver's choices to the columns' choices; by default a single row for all columns.
    """
    hashed = np.frombuffer(check[:-DIGEST_BYTES], dtype="<u8").astype(np.uint64)
    choices = hashed.reshape(-1, len(hashing) * BLOCK_BYTES // WORD)
    expected = _tags(hashing, q_rows) ^ (delta & encode(choices))
    return hmac.compare_digest(_digest(expected), check[-DIGEST_BYTES:])


def _tags(hashing: Hashing, rows: Words) -> Words:
    """Return the tags of every row as additional data: hashes, plus constants of the challenge and the length."""
    n_bytes = WORD * rows.shape[1]
    octets = rows.reshape(-1).data.cast("B")
    parts = (octets[k : k + n_bytes] for k in range(0, len(octets), n_bytes))
    tags = (one.encrypt(_NONCE, b"", part) for part in parts for one in hashing)
    return np.frombuffer(b"".join(tags), dtype=np.uint64).reshape(len(rows), -1)


def _digest(tags: Words) -> bytes:
    return hashlib.sha256(b"jointcut/ot/rows" + tags.tobytes()).digest()
