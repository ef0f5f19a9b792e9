"""Trees of which one side lacks a leaf: the leaves by hand, who is caught, what the message says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.blocks import Blocks, bits_of, random_blocks
from crypto.errors import RemoteProtocolError
from crypto.ot import punctured
from crypto.ot.punctured import BITS, GROUPS, LEAVES, MESSAGE_BYTES, grow, puncture
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.sessions import OPENING_BYTES
from tests.support.statistics import BYTE_LIMIT, byte_statistic

KEY = bytes(range(16))
SUMS_BYTES = 16 * (BITS - 1) * 2 * GROUPS
TAG_BYTES = 32


def pairs_of(seed: object) -> tuple[Blocks, Blocks]:
    zero, one = random_blocks(SeededRng((seed, "pairs")), 2 * 128).reshape(2, 128, 2)
    return zero, one


def offset(seed: object) -> np.ndarray:
    return bits_of(random_blocks(SeededRng((seed, "offset")), 1)[0])


def chosen(pairs: tuple[Blocks, Blocks], delta: np.ndarray) -> Blocks:
    return np.where(delta[:, np.newaxis] == 1, pairs[1], pairs[0])


def numbers(delta: np.ndarray) -> np.ndarray:
    """Return Δ of every tree."""
    return (delta.reshape(BITS, GROUPS).astype(int) << np.arange(BITS)[:, np.newaxis]).sum(axis=0)


def leaves_by_hand(pairs: tuple[Blocks, Blocks], tree: int) -> list[bytes]:
    """Return the seeds of a tree, by the way from the root: a side of each level, 0 where the number's bit is 1."""
    seeds = []
    for number in range(LEAVES):
        sides = [1 - (number >> level & 1) for level in range(BITS)]
        node = pairs[sides[0]][tree].tobytes()
        for side in sides[1:]:
            node = blake3(b"jointcut/ot/node" + KEY + node).digest(32)[16 * side :][:16]
        seeds.append(blake3(b"jointcut/ot/leaf" + KEY + node).digest(16))
    return seeds


def test_the_leaves_are_those_of_the_trees() -> None:
    pairs = pairs_of("hand")
    leaves, message = grow(pairs, KEY)
    assert leaves.shape == (LEAVES, GROUPS, 2)
    assert len(message) == MESSAGE_BYTES == OPENING_BYTES
    for tree in range(GROUPS):
        assert [seed.tobytes() for seed in leaves[:, tree]] == leaves_by_hand(pairs, tree)
    assert len(set(map(bytes, leaves.reshape(-1, 2)))) == LEAVES * GROUPS


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 2**32))
def test_all_leaves_but_one_arrive(seed: int) -> None:
    pairs, delta = pairs_of(seed), offset(seed)
    leaves, message = grow(pairs, KEY)
    known = puncture(chosen(pairs, delta), delta, message, KEY, "r", "step")
    assert known.shape == (LEAVES - 1, GROUPS, 2)
    places = np.arange(1, LEAVES)[:, np.newaxis] ^ numbers(delta)
    assert (known == leaves[places, np.arange(GROUPS)]).all()
    missing = leaves[numbers(delta), np.arange(GROUPS)]
    assert not (known[:, :, np.newaxis] == missing).all(axis=-1).any()


@pytest.mark.parametrize(("bit", "numbers_known"), [(0, range(1, LEAVES)), (1, range(LEAVES - 2, -1, -1))])
def test_an_offset_of_equal_bits(bit: int, numbers_known: range) -> None:
    pairs, delta = pairs_of("equal"), np.full(128, bit, dtype=np.uint8)
    leaves, message = grow(pairs, KEY)
    known = puncture(chosen(pairs, delta), delta, message, KEY, "r", "step")
    assert (known == leaves[list(numbers_known)]).all()


def refused(seed: object, harm: Callable[[bytearray], None]) -> bool:
    pairs, delta = pairs_of(seed), offset(seed)
    message = bytearray(grow(pairs, KEY)[1])
    harm(message)
    return not accepts(pairs, delta, bytes(message))


def accepts(pairs: tuple[Blocks, Blocks], delta: np.ndarray, message: bytes) -> bool:
    """Return False if the side that lacks a leaf refuses the message, and names the peer and the step."""
    with contextlib.suppress(RemoteProtocolError):
        puncture(chosen(pairs, delta), delta, message, KEY, "r", "step")
        return True
    with pytest.raises(RemoteProtocolError, match="not those of a tree") as caught:
        puncture(chosen(pairs, delta), delta, message, KEY, "r", "step")
    assert (caught.value.culprit, caught.value.step) == ("r", "step")
    return False


def test_another_sum_is_caught_if_and_only_if_it_is_used() -> None:
    """A maker that changes one of the two sums of a level pays for the bit it learns with an even chance."""
    delta = offset("sum").reshape(BITS, GROUPS)
    caught = []
    for level in range(1, BITS):
        for side in (0, 1):
            for tree in range(0, GROUPS, 3):
                place = 16 * (((level - 1) * 2 + side) * GROUPS + tree)

                def harm(message: bytearray, place: int = place) -> None:
                    message[place + 5] ^= 2

                caught.append(refused("sum", harm))
                assert caught[-1] == (delta[level, tree] == side)
    assert set(caught) == {True, False}


@pytest.mark.parametrize("place", [SUMS_BYTES, SUMS_BYTES + TAG_BYTES * GROUPS - 1, -32, -1])
def test_another_tag_or_digest_is_refused(place: int) -> None:
    def harm(message: bytearray) -> None:
        message[place] ^= 1

    assert refused("tag", harm)


def test_leaves_of_other_seeds_or_of_another_key_are_refused() -> None:
    pairs, delta = pairs_of("mine"), offset("mine")
    for message in (grow(pairs_of("other"), KEY)[1], grow(pairs, bytes(16))[1]):
        assert not accepts(pairs, delta, message)
    assert accepts(pairs, delta, grow(pairs, KEY)[1])


@pytest.mark.parametrize("guess", range(4))
def test_a_maker_of_other_nodes_passes_if_and_only_if_its_guess_is_right(
    guess: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The maker changes a node of the second level, and makes all else fit. The first bit of Δ decides if the other
    side can compute this node from its parent.
    """
    pairs = pairs_of("guess")
    told, passed = changed(pairs, guess, monkeypatch), []
    for number in range(LEAVES):
        bits = offset("guess").reshape(BITS, GROUPS).copy()
        bits[:, 0] = number >> np.arange(BITS) & 1
        if accepts(pairs, bits.reshape(-1), told):
            passed.append(number)
    assert passed == [number for number in range(LEAVES) if number & 1 == guess & 1]


def changed(pairs: tuple[Blocks, Blocks], guess: int, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Return the message of a maker that guesses the first bit of Δ of tree 0, and changes either child."""
    honest = punctured._children

    def children(nodes: Blocks, key: bytes) -> Blocks:
        made = honest(nodes, key)
        if len(nodes) == 2:  # the children of both seeds of the transfer
            made[guess >> 1, 1 - (guess & 1), 0] ^= np.uint64(1 << 40)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(punctured, "_children", children)
        return grow(pairs, KEY)[1]


def test_the_message_is_uniform() -> None:
    seen = b"".join(grow(pairs_of(seed), KEY)[1] for seed in range(8))
    assert byte_statistic(seen) < BYTE_LIMIT
