"""Tables that map every identifier to a value: the sum of three places and about half of DENSE dense rows.

An *oblivious key-value store*: the value of an identifier is a sum over GF(2) of table rows, selected by a hash of
the identifier. So a holder of masked rows computes masked values without knowing the identifiers inside. Garimella,
Pinkas, Rosulek, Trieu, Yanai (CRYPTO 2021), section 4: three sparse places, the rest dense.

Sparse places: one in each third of the table. Dense rows: the last DENSE rows; an identifier selects a random half.

The table is solved by peeling: a place used by a single identifier is reserved, and the identifier removed. The
remainder, mostly empty, is solved by elimination. Elimination fails only if the equations of some set of
identifiers cancel. The mean number of sets with cancelling sparse places is below 1/16, for any number of
identifiers (computed in tests/crypto/test_okvs.py). The dense rows of such a set cancel with probability 2**-DENSE,
so :func:`encode` fails with probability below 2**-44.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.blocks import Octets, add_products, tables_of
from crypto.encoding import Words

DENSE = 40
"""Dense rows; a multiple of 8."""

PLACES = 3

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Keys:
    """The rows of a table selected by identifiers.

    places:  int64, shape (n, 3); the i-th in [i third, (i + 1) third).
    dense:   uint8, shape (n, DENSE / 8): a bit for each dense row, first bit lowest.
    third:   places in a third of the table.
    """

    places: Indices
    dense: Octets
    third: int

    def __len__(self) -> int:
        return len(self.places)

    @property
    def rows(self) -> int:
        return rows_for(self.third)


def third_for(capacity: int) -> int:
    """Return the places of a third for at most ``capacity`` identifiers: 1.3 * capacity + 24 in all three thirds."""
    return -(-13 * capacity // 30) + 8


def rows_for(third: int) -> int:
    """Return the number of rows of a table."""
    return PLACES * third + DENSE


def keys_of(coins: Words, dense: Octets, third: int) -> Keys:
    """Turn coins of 32 bits, uint64 of shape (n, 3), into places, uniform up to third / 2**32 each."""
    places = (coins * np.uint64(third) >> np.uint64(32)).astype(np.int64)
    return Keys(places + third * np.arange(PLACES), dense, third)


def decode(table: Words, keys: Keys) -> Words:
    """Return the sum of the rows selected by each of ``keys``: uint64, shape (n, w), of a table (rows, w)."""
    sums = np.zeros((len(keys), table.shape[1]), dtype=np.uint64)
    looked_up = np.empty_like(sums)
    for places in keys.places.T:
        np.take(table, places, axis=0, out=looked_up, mode="clip")
        np.bitwise_xor(sums, looked_up, out=sums)
    add_products(sums, tables_of(table[-DENSE:]), keys.dense)
    return sums


def encode(keys: Keys, values: Words, fill: Words | None = None) -> Words | None:
    """Return a table from which :func:`decode` gets ``values`` for ``keys``, or None if no table exists (2**-44).

    values:  uint64, shape (n, w).
    fill:    uint64, shape (rows, w): the rows that the values leave free; None: zeros. With uniform rows the table
             is uniform among all tables that map the keys to the values; the fill is used up.
    Returns uint64, shape (rows, w).
    """
    turns, left = _peel(keys)
    table = np.zeros((keys.rows, values.shape[1]), dtype=np.uint64) if fill is None else fill
    for _, places in turns:
        table[places] = 0
    if len(left) and not _eliminate(table, keys, values, left):
        return None
    tables = tables_of(table[-DENSE:])
    for identifiers, places in reversed(turns):
        # The place itself is still zero, so the sum over all three places is the sum over the remaining two.
        sums = values[identifiers]
        for others in keys.places[identifiers].T:
            sums ^= table[others]
        if len(left) or fill is not None:  # else no dense row is needed, and all are zero
            add_products(sums, tables, keys.dense[identifiers])
        table[places] = sums
    return table


def _peel(keys: Keys) -> tuple[list[tuple[Indices, Indices]], Indices]:
    """Remove identifiers turn by turn; return the removed identifiers with their places, and the remaining
    identifiers.
    """
    sparse = PLACES * keys.third
    flat = keys.places.ravel()
    uses = np.bincount(flat, minlength=sparse)
    # By place, the sum of the numbers of its identifiers: the number itself of a lone identifier. Exact below 2**53.
    numbers = np.repeat(np.arange(len(keys)), PLACES)
    who = np.bincount(flat, weights=numbers, minlength=sparse).astype(np.int64)
    remaining = np.ones(len(keys), dtype=bool)
    turns = []
    alone = np.flatnonzero(uses == 1)
    place_of = np.zeros(len(keys), dtype=np.int64)
    while len(alone):
        place_of[who[alone]] = alone  # an identifier alone at two places takes the last place
        identifiers = who[alone][place_of[who[alone]] == alone]
        turns.append((identifiers, place_of[identifiers]))
        remaining[identifiers] = False
        touched = keys.places[identifiers]
        np.subtract.at(uses, touched.ravel(), 1)
        np.subtract.at(who, touched.ravel(), np.repeat(identifiers, PLACES))
        touched = touched.ravel()
        alone = np.unique(touched[uses[touched] == 1])
    return turns, np.flatnonzero(remaining)


def _eliminate(table: Words, keys: Keys, values: Words, left: Indices) -> bool:
    """Solve for the rows selected by ``left``, in place: Gauss, with an integer per equation; False if dependent.

    Rows that the equations leave free keep their values.
    """
    columns = np.unique(keys.places[left])
    rows = np.concatenate([columns, np.arange(keys.rows - DENSE, keys.rows)])
    width = 64 * values.shape[1]
    leading: dict[int, int] = {}
    for equation in _equations(keys, values, left, columns):
        while (bit := equation.bit_length() - 1) >= width:
            if bit not in leading:
                leading[bit] = equation
                break
            equation ^= leading[bit]
        else:
            if equation:
                return False
    solved = {
        unknown: int.from_bytes(table[row].astype("<u8").tobytes(), "little")
        for unknown, row in enumerate(rows)
        if unknown + width not in leading
    }
    for bit in sorted(leading):  # a bit below the leading bit is solved or free
        unknowns, value = leading[bit] >> width ^ 1 << bit - width, leading[bit] & (1 << width) - 1
        while unknowns:
            low = unknowns & -unknowns
            value ^= solved[low.bit_length() - 1]
            unknowns ^= low
        solved[bit - width] = value
    for unknown, value in solved.items():
        table[rows[unknown]] = np.frombuffer(value.to_bytes(width // 8, "little"), dtype="<u8")
    return True


def _equations(keys: Keys, values: Words, left: Indices, columns: Indices) -> Iterator[int]:
    """Yield an integer for each: the value lowest, then a bit for each used sparse place, then a bit for each dense
    row.
    """
    width = 64 * values.shape[1]
    for i in left:
        dense = int.from_bytes(keys.dense[i].tobytes(), "little")
        sparse = sum(1 << int(k) for k in np.searchsorted(columns, keys.places[i]))
        value = int.from_bytes(values[i].astype("<u8").tobytes(), "little")
        yield value | sparse << width | dense << width + len(columns)
