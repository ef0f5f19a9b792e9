"""Tables that hold a value for every identifier: found again, solved by peeling or elimination, and when not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import okvs
from crypto.encoding import Words
from crypto.okvs import DENSE, Keys, decode, encode, keys_of, rows_for, third_for
from tests.support.examples import examples
from tests.support.rng import SeededRng


def random_keys(seed: object, count: int, third: int) -> Keys:
    rng = SeededRng((seed, count, third))
    coins = np.frombuffer(rng.bytes(12 * count), dtype="<u4").astype(np.uint64).reshape(count, 3)
    return keys_of(coins, np.frombuffer(rng.bytes(5 * count), dtype=np.uint8).reshape(count, 5), third)


def random_values(seed: object, count: int, width: int = 2) -> Words:
    octets = SeededRng((seed, "values")).bytes(8 * count * width)
    return np.frombuffer(octets, dtype="<u8").astype(np.uint64).reshape(count, width)


def looked_up(table: Words, keys: Keys, i: int) -> Words:
    """The definition: three rows, and the dense ones whose bits are set."""
    dense = [row for row, bit in zip(table[-DENSE:], bits(keys)[i], strict=True) if bit]
    total: Words = np.bitwise_xor.reduce([*table[keys.places[i]], *dense], axis=0)
    return total


def bits(keys: Keys) -> np.ndarray:
    return np.unpackbits(keys.dense, axis=1, bitorder="little")


@pytest.mark.parametrize("count", [0, 1, 2, 7, 60, 500, 3000])
def test_every_identifier_finds_its_value(count: int) -> None:
    for seed in range(20 if count < 100 else 3):
        keys, values = random_keys(seed, count, third_for(count)), random_values(seed, count)
        table = encode(keys, values)
        assert table is not None
        assert table.shape == (rows_for(third_for(count)), 2)
        assert np.array_equal(decode(table, keys), values)
        assert all(np.array_equal(looked_up(table, keys, i), values[i]) for i in range(min(count, 60)))


@pytest.mark.parametrize("third", [1, 2, 5, 11])
def test_what_cannot_be_peeled_is_eliminated(third: int) -> None:
    """Many on few places: up to as many as there are rows, the dense ones decide."""
    eliminated = 0
    for count in range(1, 3 * third + DENSE // 2):
        keys, values = random_keys("few", count, third), random_values("few", count)
        table = encode(keys, values)
        assert table is not None
        assert np.array_equal(decode(table, keys), values)
        eliminated += len(okvs._peel(keys)[1]) > 0
    assert eliminated


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 60), third=st.integers(1, 4))
def test_a_table_is_found_if_and_only_if_there_is_one(seed: int, count: int, third: int) -> None:
    """Against the rank of the equations, with and without their values."""
    keys, values = random_keys(seed, count, third), random_values(seed, count, 1)
    sparse = np.zeros((count, 3 * third), dtype=np.uint8)
    np.put_along_axis(sparse, keys.places, 1, axis=1)
    equations = np.hstack([sparse, bits(keys)])
    wanted = np.unpackbits(values.view(np.uint8), axis=1, bitorder="little")
    solvable = rank(equations) == rank(np.hstack([equations, wanted]))
    table = encode(keys, values)
    assert (table is not None) == solvable
    if table is not None:
        assert np.array_equal(decode(table, keys), values)


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(0, 60), third=st.integers(1, 20))
def test_every_table_with_the_values_comes_from_one_fill(seed: int, count: int, third: int) -> None:
    """From its own rows. So uniform fills make uniform tables, peeled or eliminated."""
    keys = random_keys(("fill", seed), count, third)
    any_table = random_values(("table", seed), rows_for(third))
    made = encode(keys, decode(any_table, keys), any_table.copy())
    if made is not None:
        assert np.array_equal(made, any_table)
        other = encode(keys, decode(any_table, keys), random_values(("other", seed), rows_for(third)))
        assert other is not None
        assert np.array_equal(decode(other, keys), decode(any_table, keys))


def rank(matrix: np.ndarray) -> int:
    rows = [int("".join(map(str, row)), 2) for row in matrix.tolist()]
    found = 0
    while rows:
        pivot = rows.pop()
        if pivot:
            found += 1
            low = pivot & -pivot
            rows = [row ^ pivot if row & low else row for row in rows]
    return found


def test_equations_that_contradict_each_other_have_no_table() -> None:
    places, dense = np.array([[0, 8, 16]] * 2), np.full((2, 5), 3, dtype=np.uint8)
    keys = Keys(places, dense, 8)
    assert encode(keys, np.array([[1], [2]], dtype=np.uint64)) is None
    assert encode(keys, np.array([[2], [2]], dtype=np.uint64)) is not None


def test_places_lie_in_their_thirds() -> None:
    for third in (1, 9, 1000):
        places = random_keys("places", 500, third).places
        assert (places // third == np.arange(3)).all()
    extreme = keys_of(np.array([[0, 2**32 - 1, 0]], dtype=np.uint64), np.zeros((1, 5), np.uint8), 7)
    assert extreme.places.tolist() == [[0, 13, 14]]


@pytest.mark.parametrize("count", [2, 3, 5, 10, 14, 20, 35, 50, 100, 400, 1500])
def test_sets_whose_sparse_places_cancel_are_rarer_than_one_in_sixteen(count: int) -> None:
    """Their mean number, over all sets. Cancel must all thirds; so only even numbers of identifiers do."""
    third = third_for(count)
    weights = np.arange(third + 1)
    log_choose = [math.lgamma(third + 1) - math.lgamma(w + 1) - math.lgamma(third - w + 1) for w in weights]
    law, factors = np.exp(np.array(log_choose) - third * math.log(2)), 1 - 2 * weights / third
    mean = 0.0
    for size in range(2, count + 1, 2):
        # That ``size`` uniform places of one third cancel, by the characters of its group.
        cancels = float(law @ factors**size)
        sets = math.lgamma(count + 1) - math.lgamma(size + 1) - math.lgamma(count - size + 1)
        mean += math.exp(sets + 3 * math.log(cancels))
    assert mean < 1 / 16
