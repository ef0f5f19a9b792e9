"""Trees of which one leaf is missing: against the definition, what is sent, what stays unknown."""

from __future__ import annotations

import hashlib

import pytest

from crypto.ot.trees import grow, regrow, sums_bytes
from tests.support.rng import SeededRng

Pairs = list[tuple[bytes, bytes]]


def pairs_of(count: int) -> Pairs:
    rng = SeededRng("pairs")
    return [(rng.bytes(16), rng.bytes(16)) for _ in range(count)]


def leaf_of(pairs: Pairs, y: int) -> bytes:
    """By the definition, down the way to leaf y; the pairs are one tree's."""
    depth = len(pairs)
    node = pairs[-1][y >> depth - 1]
    for b in reversed(range(depth - 1)):
        digest = hashlib.sha256(b"jointcut/ot/node" + node).digest()
        node = digest[16:] if y >> b & 1 else digest[:16]
    return node


def chosen_of(pairs: Pairs, choices: list[int]) -> list[bytes]:
    return [pair[c] for pair, c in zip(pairs, choices, strict=True)]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_receiver_has_all_leaves_and_the_sender_all_but_that_of_the_other_choices(depth: int) -> None:
    """For every choice: leaf z of the sender is leaf z ⊕ c, of every tree."""
    n_trees = 3
    pairs = pairs_of(depth * n_trees)
    leaves, sums = grow(pairs, depth)
    assert len(sums) == sums_bytes(depth * n_trees, depth) == 32 * (depth - 1) * n_trees
    assert leaves == [leaf_of(pairs[i::n_trees], y) for y in range(1 << depth) for i in range(n_trees)]
    for c in range(1 << depth):
        of_trees = [c, 0, c ^ 1]
        choices = [of_trees[i] >> b & 1 for b in range(depth) for i in range(n_trees)]
        known = regrow(chosen_of(pairs, choices), choices, sums, depth)
        assert known == [
            leaves[(z ^ of_trees[i]) * n_trees + i] for z in range((1 << depth) - 1) for i in range(n_trees)
        ]


def test_other_seeds_of_a_level_change_nothing_of_what_the_sender_knows() -> None:
    """What is not chosen masks the sum that would give the missing leaf: with another mask, all else stays."""
    pairs = pairs_of(2)
    _, sums = grow(pairs, 2)
    for low in (0, 1):
        other = [(low ^ 1) * 16 + i for i in range(16)]
        harmed = bytes(octet ^ 255 * (i in other) for i, octet in enumerate(sums))
        for high in (0, 1):
            chosen = chosen_of(pairs, [low, high])
            assert regrow(chosen, [low, high], harmed, 2) == regrow(chosen, [low, high], sums, 2)


def test_sums_are_masked() -> None:
    """Each with its seed of the level is the sum of the leaves on its side, and no two are alike."""
    pairs = pairs_of(2)
    leaves, sums = grow(pairs, 2)
    numbers = [int.from_bytes(seed, "little") for seed in leaves]
    for side in (0, 1):
        masked = int.from_bytes(sums[16 * side : 16 * side + 16], "little")
        assert masked ^ int.from_bytes(pairs[0][side], "little") == numbers[side] ^ numbers[2 + side]
