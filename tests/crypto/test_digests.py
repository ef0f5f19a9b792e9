"""Digests of rows: BLAKE2b of the standard, row by row."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest

from crypto.digests import digests_of
from tests.support.rng import SeededRng


@pytest.mark.parametrize("size", [8, 16, 32, 64])
@pytest.mark.parametrize("width", [1, 7, 44, 112, 128, 129, 300])
@pytest.mark.parametrize("n", [0, 1, 5, 2049])
def test_a_digest_a_row(n: int, width: int, size: int) -> None:
    rows = np.frombuffer(SeededRng((n, width)).bytes(n * width), dtype=np.uint8).reshape(n, width)
    digests = digests_of(rows, size)
    assert (digests.dtype, digests.shape) == (np.uint64, (n, size // 8))
    for row, digest in zip(rows, digests, strict=True):
        assert blake2b(row.tobytes(), digest_size=size).digest() == digest.tobytes()


def test_the_example_of_the_standard() -> None:
    """RFC 7693, appendix A: the first words for "abc"."""
    (digest,) = digests_of(np.array([[*b"abc"]], dtype=np.uint8), 64)
    assert digest.tobytes()[:8] == bytes.fromhex("ba80a53f981c4d0d")
