"""Counts cut into slices."""

from __future__ import annotations

import pytest

from crypto.pieces import slices


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("count", [0, 1, 2, 6, 7, 8, 99, 100, 101])
def test_every_number_is_in_one_slice_and_all_but_the_last_are_full(count: int, most: int) -> None:
    cut = list(slices(count, most))
    assert [i for part in cut for i in range(part.start, part.stop)] == list(range(count))
    assert all(part.stop - part.start == most for part in cut[:-1])
    assert all(0 < part.stop - part.start <= most for part in cut)
