"""Sources of randomness."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations

import pytest

from crypto.rng import Prg, SystemRng, uniform_below, uniform_permutation, uniform_words
from tests.support.rng import SeededRng


class Scripted:
    """Coins given in advance, to enumerate a sampler exactly."""

    def __init__(self, coins: bytes) -> None:
        self._coins = coins

    def bytes(self, n: int) -> bytes:
        head, self._coins = self._coins[:n], self._coins[n:]
        if len(head) < n:
            raise EOFError
        return head


def test_a_prg_repeats_for_its_seed_and_differs_for_another() -> None:
    assert Prg(bytes(16)).bytes(40) == Prg(bytes(16)).bytes(40)
    assert Prg(bytes(16)).bytes(40) != Prg(b"\1" + bytes(15)).bytes(40)
    joined = Prg(bytes(16))
    assert joined.bytes(7) + joined.bytes(33) == Prg(bytes(16)).bytes(40)
    assert repr(joined) == "Prg(<secret>)"


def test_a_seed_has_one_length() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        Prg(b"short")


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 8, 200, 256])
def test_uniform_below_is_exactly_uniform(bound: int) -> None:
    """Over all 256 first bytes, each result is hit equally often; the rest asks for another byte."""
    hits: Counter[int] = Counter()
    for byte in range(256):
        try:
            hits[uniform_below(Scripted(bytes([byte])), bound)] += 1
        except EOFError:
            continue
    assert set(hits) == set(range(bound))
    assert len(set(hits.values())) == 1
    assert Fraction(sum(hits.values()), 256) >= Fraction(1, 2)


def test_uniform_below_refuses_an_empty_range() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        uniform_below(SeededRng(0), 0)


def test_a_permutation_sorts_its_coins_and_draws_again_where_two_are_equal() -> None:
    """Every order of distinct coins gives another permutation, so they are equally often."""
    found = set()
    for coins in permutations((3, 5, 8)):
        words = b"".join(word.to_bytes(8, "little") for word in (7, 4, 7, *coins))
        order = uniform_permutation(Scripted(words), 3).tolist()
        assert [coins[i] for i in order] == [3, 5, 8]
        found.add(tuple(order))
    assert len(found) == 6
    assert uniform_permutation(Scripted(b""), 0).tolist() == []


def test_system_rng_and_words() -> None:
    assert len(SystemRng().bytes(5)) == 5
    assert uniform_words(SystemRng(), 3).shape == (3,)
