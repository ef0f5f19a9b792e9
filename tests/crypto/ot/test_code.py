"""The code: its roots, which give its distance, its dimension, and the encoding of columns."""

from __future__ import annotations

import numpy as np

from crypto.ot import code
from tests.support.rng import SeededRng


def unit_words() -> np.ndarray:
    return np.unpackbits(code.generator().view(np.uint8), axis=1, bitorder="little")


def test_170_powers_in_a_row_are_roots_of_every_word() -> None:
    """So any two words differ in 171 of the first 511 places (the BCH bound)."""
    powers = [1]
    for _ in range(510):
        powers.append(powers[-1] << 1 ^ (0b1000010001 if powers[-1] >> 8 else 0))
    assert len(set(powers)) == 511
    word = unit_words()[0]
    for root in range(1, 171):
        value = 0
        for place in np.flatnonzero(word[:511]):
            value ^= powers[root * int(place) % 511]
        assert value == 0
    shifted = [np.flatnonzero(row[:511]) - i for i, row in enumerate(unit_words())]
    assert all(
        np.array_equal(places, shifted[0]) for places in shifted
    )  # multiples by x^i have the same roots


def test_the_last_bit_makes_every_weight_even() -> None:
    """So two words that differ in 171 places differ in 172."""
    assert code.DISTANCE == 172
    assert not (unit_words().sum(axis=1) % 2).any()


def test_the_unit_words_are_independent() -> None:
    rows = [int.from_bytes(row.tobytes(), "little") for row in code.generator()]
    assert len({row & -row for row in rows}) == code.DIMENSION == 76


def test_columns_are_encoded_as_vectors_are() -> None:
    columns = np.frombuffer(SeededRng("code").bytes(8 * 76 * 3), dtype="<u8").reshape(76, 3)
    encoded = code.encode_columns(columns)
    vectors = np.unpackbits(columns.view(np.uint8), axis=1, bitorder="little").T
    words = np.unpackbits(encoded.view(np.uint8), axis=1, bitorder="little").T
    assert np.array_equal(words, vectors.astype(np.int64) @ unit_words() % 2)
    differences = words[1:] ^ words[:-1]
    assert differences.sum(axis=1).min() >= code.DISTANCE
