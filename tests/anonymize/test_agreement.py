"""Agreement of clusterings, against loops over pairs of records."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.agreement import agreement, contingency


def test_the_vector() -> None:
    """[CLU] 4.4 prints a match point of .80, which no table of 34 records gives."""
    found = agreement(np.array([[2, 19], [10, 3]]))
    assert round(float(found.f_measure), 4) == 0.8517
    assert found.match_point == Fraction(866, 1156)


RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=14)


@given(RECORDS)
def test_by_the_definitions(records: list[tuple[int, int]]) -> None:
    first, second = np.array(records).T
    counts = contingency(first, second, (4, 3))
    found = agreement(counts)
    n = len(records)
    alike = sum((a[0] == b[0]) == (a[1] == b[1]) for a, b in itertools.product(records, repeat=2))
    assert found.match_point == Fraction(alike, n * n)
    total = Fraction(0)
    for i in {a for a, _ in records}:
        inside = [b for a, b in records if a == i]
        best = Fraction(0)
        for j in {b for _, b in records}:
            size = sum(b == j for _, b in records)
            recall, precision = Fraction(inside.count(j), len(inside)), Fraction(inside.count(j), size)
            if recall:
                best = max(best, 2 * recall * precision / (recall + precision))
        total += Fraction(len(inside), n) * best
    assert found.f_measure == total
    pairs = list(itertools.combinations(records, 2))
    both = sum(a == b for a, b in pairs)
    of_first, of_second = (sum(a[place] == b[place] for a, b in pairs) for place in (0, 1))
    by_chance = Fraction(of_first * of_second, len(pairs)) if pairs else Fraction(0)
    most = Fraction(of_first + of_second, 2)
    assert found.adjusted == (1 if most == by_chance else (both - by_chance) / (most - by_chance))


@pytest.mark.more  # to import scikit-learn takes longer than all tests of the module
@given(RECORDS)
def test_the_adjusted_index_is_that_of_scikit_learn(records: list[tuple[int, int]]) -> None:
    from sklearn.metrics import adjusted_rand_score

    first, second = np.array(records).T
    found = agreement(contingency(first, second, (4, 3)))
    assert float(found.adjusted) == pytest.approx(adjusted_rand_score(first, second))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=10), st.permutations(range(4)))
def test_equal_clusterings_agree_whatever_their_numbers(labels: list[int], renamed: list[int]) -> None:
    first = np.array(labels)
    found = agreement(contingency(first, np.array(renamed)[first], (4, 4)))
    assert (found.f_measure, found.match_point, found.adjusted) == (1, 1, 1)


def test_no_records() -> None:
    with pytest.raises(ValueError, match="no records"):
        agreement(np.zeros((2, 2), dtype=np.int64))
