"""Arrays in canonical bytes: what is read is what was written, and other sizes are malformed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from jobs.release.encoded import MALFORMED, decoded_arrays, encoded_arrays

ARRAYS = [np.arange(3), np.arange(6).reshape(2, 3) - 4]


def resized(shapes: Any) -> bytes:
    encoded = encoded_arrays({"a": 1}, ARRAYS)
    size = int.from_bytes(encoded[:8], "little")
    header = json.dumps({**json.loads(encoded[8 : 8 + size]), "shapes": shapes}).encode()
    return len(header).to_bytes(8, "little") + header + encoded[8 + size :]


def test_arrays_are_read_as_they_were_written() -> None:
    header, arrays = decoded_arrays(encoded_arrays({"a": 1}, ARRAYS), 2)
    assert header == {"a": 1, "shapes": [[3], [2, 3]]}
    assert [array.tolist() for array in arrays] == [array.tolist() for array in ARRAYS]
    assert [array.tolist() for array in decoded_arrays(resized([[3], [6]]), 2)[1]] == [
        [0, 1, 2],
        [*range(-4, 2)],
    ]


@pytest.mark.parametrize(
    "shapes",
    [
        [[3]],
        [[3], [7]],
        [[3.0], [6]],
        [[float("nan")], [6]],
        [[3], [1e300]],
        [[1 << 70], [6]],
        [["3"], [6]],
        5,
        [3, 6],
    ],
)
def test_other_sizes_are_malformed(shapes: Any) -> None:
    with pytest.raises(MALFORMED):
        decoded_arrays(resized(shapes), 2)
