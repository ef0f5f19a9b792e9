"""Errors and gaps of [T] chapter 4: each finding on the smallest table that shows it.

Those about maximal frequent sequences are in test_everywhere.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from anonymize.trajectory.everywhere import minimal_violating
from anonymize.trajectory.sweep import local_alone
from anonymize.verification.sequences import Claim, bound_of, examine
from tests.support.paths import Definition, bounds, paths_from, records_of

MANY = 100


def records(*paths: str, values: str = "") -> list[tuple[frozenset[int], int]]:
    """Paths of items 0 … 9, one digit each."""
    own = values or "0" * len(paths)
    return [(frozenset(map(int, path)), int(value)) for path, value in zip(paths, own, strict=True)]


def test_a_gap_tells_who_was_elsewhere() -> None:
    """4.1 says that who knows L items links with at most 1/K. Items a1, b1, c2 are 0, 1, 2, and a record that shows
    b1 was not at a1. Who knows a1 of somebody is left with one record; nothing violates L = 1, K = 2."""
    table = records("02", "12", "12")
    paths, number = paths_from(table, 3)
    left = records_of(local_alone(paths, bounds(1, 2), MANY).paths, number)
    assert left == records("2", "12", "12")
    assert examine(paths_from(left, 3)[0], Claim(1, 2)).finding is None
    at_the_same_time = {0, 1}
    candidates = [path for path, _ in left if 0 in path or not path & at_the_same_time]
    assert len(candidates) == 1


def test_places_alone_are_not_within_C() -> None:
    """4.5 says that place only is protected, too. a1, a2, b3 are 0, 1, 2: of those ever at a two thirds have s."""
    table = records("0", "0", "01", "01", "1", "1", "2", "2", values="11001100")
    paths, number = paths_from(table, 3)
    assert records_of(local_alone(paths, bounds(9, 2, "1/2"), MANY).paths, number) == table
    at_a = [value for path, value in table if path & {0, 1}]
    assert Fraction(sum(at_a), len(at_a)) == Fraction(2, 3)


@pytest.mark.parametrize("longest", [1, 2, 3, 9])
def test_no_L_is_k_anonymity(longest: int) -> None:
    """4.4 says that L = |d| is: the first record alone has its path."""
    table = records("0", "01", "01")
    paths, number = paths_from(table, 3)
    left = records_of(local_alone(paths, bounds(longest, 2), MANY).paths, number)
    assert left == table
    assert left.count((frozenset({0}), 0)) == 1


def test_what_is_not_minimal_is_not_in_the_list() -> None:
    """Algorithm 4.1, line 14, looks at the violating sequences of the last size alone; all smaller ones are meant."""
    table = records("012", "0123", "013")
    found, _ = minimal_violating(paths_from(table, 4)[0], bounds(4, 2), MANY)
    assert [q for level in found for q in level.tolist()] == [[2, 3]]
    assert Definition(4, 2, "1").minimal_violating(table) == {(2, 3)}


def test_what_everybody_knows_must_be_within_bounds() -> None:
    """By Definition 4.1 a table of empty paths has nothing to violate; of these two everybody has s."""
    paths, _ = paths_from(records("", "", values="11"), 3)
    found = examine(paths, Claim(1, 2, (bound_of("s", [1], np.arange(2), Fraction(1, 2)),))).finding
    assert str(found) == "the whole table violates C for s"


def test_shorter_sequences_are_not_protected_by_longer_ones() -> None:
    """Theorem 4.1 on Table 4.3, with a1, b2, d2, c3: sequences of 3 items are fine, those of 1 or 2 are not."""
    table = records("02", "01", "013", "013", values="0110")
    definition = Definition(3, 2, "1/2")
    assert all(definition.keeps(q, table) for q in definition.occurring(table) if len(q) == 3)
    assert {q for q in definition.occurring(table) if not definition.keeps(q, table)} == {
        (1,),
        (2,),
        (0, 1),
        (0, 2),
    }
    found = examine(paths_from(table, 4)[0], Claim(2, 2)).finding
    assert found is not None
    assert found.threshold == "K"
