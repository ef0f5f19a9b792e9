"""Chi-square bounds for tests with fixed seeds: a false alarm is a fact of the seed, seen once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BYTE_LIMIT = 377.1
"""Chi-square, 255 degrees of freedom, p = 1e-6."""


def byte_statistic(data: bytes | NDArray[np.uint8]) -> float:
    """Chi-square statistic of the bytes against the uniform distribution."""
    seen = np.bincount(np.frombuffer(bytes(data), dtype=np.uint8), minlength=256)
    expected = len(data) / 256
    assert expected >= 5, "too few bytes for the statistic"
    return float(((seen - expected) ** 2 / expected).sum())
