"""Signs of inner products over shared unit vectors: the shares of the sign, the transfers, the law of an offer."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from crypto.blocks import random_blocks
from crypto.circuit import Held
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from crypto.rng import uniform_words
from crypto.signs import Prepared, Signing, concatenated, prepare, signs_of
from tests.support.rng import SeededRng

GARBLER, EVALUATOR = Held.GARBLER, Held.EVALUATOR


def test_the_shares_of_a_sign_are_right_for_every_pair_of_vectors() -> None:
    """All vectors of 8 places, and all places where the two differ."""
    for share, place in product(range(256), range(8)):
        u, v = share, share ^ 1 << place
        sign = (u >> place & 1) - (v >> place & 1)
        own, theirs = (
            int(signs_of(role, np.array([[word]], np.uint64))[0])
            for role, word in ((GARBLER, u), (EVALUATOR, v))
        )
        assert (-1) ** (own ^ theirs) == sign


def test_the_ones_of_all_words_count() -> None:
    vectors = uniform_words(SeededRng("many"), 60).reshape(10, 6)
    ones = [sum(word.bit_count() for word in row) for row in vectors.tolist()]
    assert signs_of(GARBLER, vectors).tolist() == [n >> 1 & 1 for n in ones]
    assert signs_of(EVALUATOR, vectors).tolist() == [-n >> 1 & 1 for n in ones]


def prepared(count: int) -> tuple[Prepared, Prepared]:
    """Transfers of both parties, from correlated transfers as they come out of the extension."""
    rng = SeededRng(("prepared", count))
    offsets = random_blocks(rng, 2) | np.array([1, 0], dtype=np.uint64)
    coins = uniform_words(rng, 2 * count).reshape(2, count) & np.uint64(1)
    q = [random_blocks(rng, count) for _ in range(2)]
    t = [q[1 - me] ^ coins[me][:, None] * offsets[1 - me] for me in range(2)]
    keys = bytes(16), bytes(range(16))
    one, other = (
        prepare(keys if me == 0 else keys[::-1], offsets[me], coins[me], q[me], t[me]) for me in range(2)
    )
    return one, other


def test_a_mask_is_known_for_the_coin_and_for_nothing_else() -> None:
    for sender, receiver in (prepared(50), prepared(50)[::-1]):
        masks = np.stack([sender.zero, sender.one])
        coins = receiver.coin.astype(np.int64)
        assert receiver.chosen.tolist() == masks[coins, np.arange(50)].tolist()
        assert not (receiver.chosen == masks[1 - coins, np.arange(50)]).any()
        assert len({*sender.zero.tolist(), *sender.one.tolist()}) == 100


def signed(width: int, sums: tuple[Words, Words], signs: tuple[Words, Words]) -> tuple[Words, Words]:
    both = prepared(len(sums[0]))
    parties = [
        Signing(role, mine, share, width)
        for role, mine, share in zip((GARBLER, EVALUATOR), both, signs, strict=True)
    ]
    sent = [
        party.message(own, parties[1 - me].corrections)
        for me, (party, own) in enumerate(zip(parties, sums, strict=True))
    ]
    one, other = (party.shares(sent[1 - me], "peer", "step") for me, party in enumerate(parties))
    return one, other


@pytest.mark.parametrize("width", [1, 8, 12, 36, 64])
def test_products_of_a_difference_with_its_sign(width: int) -> None:
    """For all four pairs of shares of the sign, and whatever the coins."""
    rng = SeededRng(("products", width))
    sums = uniform_words(rng, 400).reshape(2, 200)
    signs = np.array([[0, 0, 1, 1] * 50, [0, 1, 0, 1] * 50], dtype=np.uint64)
    one, other = signed(width, (sums[0], sums[1]), (signs[0], signs[1]))
    mask = np.uint64((1 << width) - 1)
    turned = np.where(signs[0] ^ signs[1] == 1, sums[1] - sums[0], sums[0] - sums[1])
    assert ((one + other) & mask).tolist() == (turned & mask).tolist()
    assert not ((one | other) & ~mask).any()


def test_an_offer_of_a_wrong_length_is_refused() -> None:
    signing = Signing(GARBLER, prepared(3)[0], np.zeros(3, np.uint64), 12)
    for payload in (bytes(5), bytes(7), b""):
        with pytest.raises(RemoteProtocolError, match="prescribed"):
            signing.shares(payload, "peer", "step")


def test_batches_are_joined_and_cut() -> None:
    one, other = prepared(7), prepared(4)
    for first, second in zip(one, other, strict=True):
        whole = concatenated([first, second])
        for name in ("zero", "one", "coin", "chosen"):
            assert getattr(whole[7:], name).tolist() == getattr(second, name).tolist()
            assert getattr(whole[:7], name).tolist() == getattr(first, name).tolist()


def test_no_secret_in_the_repr() -> None:
    assert repr(prepared(3)[0]) == "Prepared()"
    assert "0x" in repr(Signing(GARBLER, prepared(3)[0], np.zeros(3, np.uint64), 12))
