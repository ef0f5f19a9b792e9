"""The block hash against one written from the paper, and the rules of its tweaks and keys."""

from __future__ import annotations

import numpy as np
import pytest

from crypto.blocks import random_blocks
from crypto.hashing import BlockHash, derive_key
from tests.support.rng import SeededRng
from tests.support.slow_hash import tmmo

KEY = bytes(range(16))


def as_integers(flat: np.ndarray) -> list[int]:
    return [int.from_bytes(block.tobytes(), "little") for block in flat.reshape(-1, 2)]


@pytest.mark.parametrize(("rows", "count"), [(1, 1), (2, 5), (3, 4)])
def test_hash_follows_the_paper(rows: int, count: int) -> None:
    hashing = BlockHash(KEY, 20)
    hashing.hash(np.zeros((1, 14), dtype=np.uint64))  # takes the tweaks 0 to 6
    x = random_blocks(SeededRng("x"), rows * count).reshape(rows, 2 * count)
    expected = [tmmo(KEY, v, 7 + i % count) for i, v in enumerate(as_integers(x))]
    assert as_integers(hashing.hash(x)) == expected


def test_tweaks_run_on_and_start_again_with_a_new_key() -> None:
    """Hashes of zero tell the tweaks: 0, 1, 2, … under a key, whatever the sizes of the calls."""
    hashing = BlockHash(KEY, 10)
    calls = [(1, 3), (1, 10), (2, 1), (1, 9), (2, 5)]
    seen = []
    for rows, count in calls:
        digests = as_integers(hashing.hash(np.zeros((rows, 2 * count), dtype=np.uint64)))
        seen += digests[:count]
        assert digests == digests[:count] * rows
    assert seen == [tmmo(KEY, 0, i) for i in range(28)]
    hashing.rekey(bytes(16))
    assert as_integers(hashing.hash(np.zeros((1, 4), dtype=np.uint64))) == [
        tmmo(bytes(16), 0, i) for i in (0, 1)
    ]


def test_a_new_key_is_used() -> None:
    x = random_blocks(SeededRng("x"), 2).reshape(1, -1)
    hashing = BlockHash(KEY, 2)
    first = hashing.hash(x).copy()
    hashing.rekey(derive_key(KEY, 1))
    assert not np.array_equal(hashing.hash(x), first)


def test_derived_keys_depend_on_every_part_and_its_place() -> None:
    keys = [
        derive_key(KEY),
        derive_key(KEY, 1),
        derive_key(KEY, 2),
        derive_key(KEY, b"a", 1),
        derive_key(KEY, 1, b"a"),
        derive_key(KEY, b"a" + (1).to_bytes(8, "little")),
        derive_key(bytes(16), 1),
    ]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 16 for key in keys)


def test_no_key_in_the_repr() -> None:
    assert repr(BlockHash(KEY, 1)) == "BlockHash(<keyed>)"
