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
    hashing.next_tweaks(7)
    x = random_blocks(SeededRng("x"), rows * count).reshape(rows, 2 * count)
    expected = [tmmo(KEY, v, 7 + i % count) for i, v in enumerate(as_integers(x))]
    assert as_integers(hashing.hash(x)) == expected


def test_tweaks_never_repeat_under_a_key() -> None:
    hashing = BlockHash(KEY, 10)
    seen = [t for n in (3, 10, 1, 0, 10) for t in as_integers(hashing.next_tweaks(n))]
    assert seen == list(range(24))
    hashing.rekey(bytes(16))
    assert as_integers(hashing.next_tweaks(2)) == [0, 1]


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
