"""Chi-square over bytes, with fixed seeds: what should be uniform is compared with the uniform law."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def byte_counts(values: NDArray[Any]) -> NDArray[np.int64]:
    """Count the 256 values of each word's most significant byte."""
    top = values.astype(values.dtype.newbyteorder(">")).tobytes()[:: values.dtype.itemsize]
    return np.bincount(np.frombuffer(top, np.uint8), minlength=256)


def chi_square(seen: NDArray[Any]) -> float:
    """Return Pearson's statistic of counts against equal expectations."""
    expected = float(seen.sum()) / len(seen)
    assert expected >= 5, "too few observations for the test to mean anything"
    return float(((seen - expected) ** 2 / expected).sum())
