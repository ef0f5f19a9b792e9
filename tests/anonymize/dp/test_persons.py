"""Of every person at most m records, drawn by coins of the person's own."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.dp.accounting import Dp
from anonymize.dp.persons import at_most
from anonymize.errors import SchemaError
from anonymize.table import CodedTable
from tests.support.dp_tables import numeric, schema_of
from tests.support.examples import examples
from tests.support.rng import SeededRng

CELLS = 6
SCHEMA = schema_of(numeric("x", CELLS))
Records = list[tuple[int, int]]
"""Of every record the person and the cell."""


def kept(records: Records, most: int, seed: object = 0) -> Counter[int]:
    """Records by cell of what is kept."""
    rows = sorted(Counter(records).items())
    table = CodedTable(
        SCHEMA,
        (np.array([cell for (_, cell), _ in rows], dtype=np.int64),),
        np.zeros(len(rows), dtype=np.int64),
        np.array([n for _, n in rows], dtype=np.int64),
    )
    person = np.array([who for (who, _), _ in rows], dtype=np.int64)
    left = at_most(table, person, most, SeededRng(seed))
    assert len(set(left.qid[0].tolist())) == len(left.qid[0])
    return Counter(dict(zip(left.qid[0].tolist(), left.weights.tolist(), strict=True)))


@settings(max_examples=examples(200), deadline=None)
@given(
    records=st.lists(st.tuples(st.integers(0, 4), st.integers(0, CELLS - 1)), max_size=30),
    most=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_so_many_of_each_and_no_fewer(records: Records, most: int, seed: int) -> None:
    """Person by person, each in cells of its own: so it can be seen whose is what."""
    own = [(who, cell) for who, cell in records if cell // 2 == who % 3]
    left = kept(own, most, seed)
    by_person = Counter(who for who, _ in own)
    assert left.total() == sum(min(n, most) for n in by_person.values())
    everything = Counter(cell for _, cell in own)
    assert all(left[cell] <= n for cell, n in everything.items())
    for third in range(3):
        people = [min(n, most) for who, n in by_person.items() if who % 3 == third]
        assert left[2 * third] + left[2 * third + 1] == sum(people)


@settings(max_examples=examples(100), deadline=None)
@given(
    records=st.lists(st.tuples(st.integers(0, 3), st.integers(0, CELLS - 1)), max_size=20),
    more=st.lists(st.integers(0, CELLS - 1), max_size=8),
    most=st.integers(1, 3),
)
def test_a_person_changes_at_most_m_records_and_nobody_elses(
    records: Records, more: list[int], most: int
) -> None:
    """The coins of the others stay: those of the last person's rows come after them."""
    without, with_them = kept(records, most), kept([*records, *((9, cell) for cell in more)], most)
    assert not without - with_them
    assert (with_them - without).total() == min(len(more), most)


def test_each_record_of_a_person_is_as_likely() -> None:
    found = Counter[int]()
    for seed in range(600):
        found += kept([(0, 0), (0, 1), (0, 1), (1, 2), (1, 3)], 1, seed)
    assert abs(found[1] - 400) < 60  # two of the three records; standard deviation 11.5
    assert abs(found[2] - 300) < 60


def test_a_record_costs_its_part_of_what_a_person_may() -> None:
    assert Dp(Fraction(1), 2, per_person=4).of_a_record(Fraction(1, 5)) == Fraction(1, 20)
    assert Dp(Fraction(1), 2).of_a_record(Fraction(1, 5)) == Fraction(1, 5)
    with pytest.raises(SchemaError, match="max_records_per_person must be at least 1"):
        Dp(Fraction(1), 2, per_person=0)
