"""BLAKE2b of many texts of the same length: the reference for every :class:`crypto.engine.Engine`."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b

import numpy as np

from crypto.blocks import Octets
from crypto.encoding import WORD, Words


def digests_of(rows: Octets, size: int) -> Words:
    """Return the digest of every row, little endian: uint64, shape (n, size / 8).

    rows:  uint8, shape (n, w), contiguous, w ≥ 1.
    size:  bytes of a digest: a multiple of 8, at most 64. BLAKE2b's digests of different sizes are unrelated.
    """
    texts = rows.view(f"V{rows.shape[1]}").reshape(-1).tolist()
    hashes = map(partial(blake2b, digest_size=size), texts)
    digests = b"".join([each.digest() for each in hashes])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, size // WORD)
