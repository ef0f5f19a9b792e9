"""BLAKE2b of many texts of the same length: the reference for every :class:`crypto.engine.Engine`."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b

import numpy as np

from crypto.blocks import Octets
from crypto.encoding import WORD, Words
from crypto.pieces import slices

_PIECE = 1 << 11
"""Rows hashed at a time: few enough for Python's objects to stay in the CPU's cache."""


def digests_of(rows: Octets, size: int) -> Words:
    """Return the digest of every row, little endian: uint64, shape (n, size / 8).

    rows:  uint8, shape (n, w), contiguous, w ≥ 1.
    size:  bytes of a digest: a multiple of 8, at most 64. BLAKE2b's digests of different sizes are unrelated.
    """
    texts = rows.view(f"V{rows.shape[1]}").reshape(-1)
    digest = partial(blake2b, digest_size=size)
    pieces = (map(digest, texts[piece].tolist()) for piece in slices(len(texts), _PIECE))
    joined = b"".join([b"".join([each.digest() for each in piece]) for piece in pieces])
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64).reshape(-1, size // WORD)
