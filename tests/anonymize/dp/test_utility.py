"""Utilities: values, what one record can change, monotonicity; brute force over all small tables."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.dp.utility import Utility, gain_sensitivity, utility
from anonymize.score import f_score

MOST = 6


def tables(n_parts: int, n_classes: int, most: int) -> list[np.ndarray]:
    """All class counts of parts with at most ``most`` records."""
    cells = n_parts * n_classes
    return [
        np.array(counts).reshape(n_parts, n_classes)
        for counts in product(range(most + 1), repeat=cells)
        if sum(counts) <= most
    ]


def changes(chosen: Utility, table: np.ndarray) -> list[int]:
    """Return the change by adding one record, for every record there can be."""
    score = chosen.score(table)
    grown = []
    for cell in np.ndindex(table.shape):
        more = table.copy()
        more[cell] += 1
        grown.append(chosen.score(more) - score)
    return grown


def test_max_changes_by_one_at_most_and_never_falls() -> None:
    chosen = utility("max", MOST)
    seen = {c for table in tables(2, 2, MOST) + tables(3, 2, 4) for c in changes(chosen, table)}
    assert seen == {0, 1}
    assert (chosen.sensitivity, chosen.monotone) == (1, True)
    assert chosen.rate(Fraction(1, 3)) == Fraction(1, 3)


@pytest.mark.parametrize(("n_parts", "n_classes"), [(2, 2), (3, 2), (2, 3)])
def test_the_gain_changes_by_its_sensitivity_at_most(n_parts: int, n_classes: int) -> None:
    """Tables of at most MOST records in all, the added one included."""
    chosen = utility("infogain", MOST)
    seen = [c for table in tables(n_parts, n_classes, MOST - 1) for c in changes(chosen, table)]
    assert max(map(abs, seen)) <= chosen.sensitivity
    assert max(map(abs, seen)) > 0.6 * chosen.sensitivity
    assert min(seen) < 0 < max(seen)
    assert not chosen.monotone
    assert chosen.rate(Fraction(1, 3)) == Fraction(1, 3) / (2 * chosen.sensitivity)


@given(st.data())
def test_the_gain_of_large_tables(data: st.DataObject) -> None:
    """F's rounding weighs most here: up to a million records, with lopsided counts."""
    most = 1_000_000
    sizes = st.integers(0, 250_000) | st.integers(0, 3)
    table = np.array([[data.draw(sizes), data.draw(sizes)] for _ in range(2)])
    assert max(map(abs, changes(utility("infogain", most), table))) <= gain_sensitivity(most)


def literal_sensitivity(most: int) -> int:
    """The bound of the docstring taken literally, over all pairs x < y."""
    d = np.diff(f_score(np.arange(most + 1)))
    drop = max((int(d[x] - d[y]) for x in range(most) for y in range(x, most)), default=0)
    return max(1, int(d.max() - min(0, d.min())) + max(0, drop))


@pytest.mark.parametrize("most", [1, 2, 3, 7, 60, 300])
def test_the_sensitivity_from_actual_increments(most: int) -> None:
    assert gain_sensitivity(most) == literal_sensitivity(most)


@pytest.mark.parametrize("most", [10_000, 3_000_000])
def test_the_sensitivity_counts_what_rounding_takes_away(most: int) -> None:
    """The same bound where increments of F fall in places, on both sides of where they are taken in chunks."""
    d = np.diff(f_score(np.arange(most + 1)))
    drop = int((np.maximum.accumulate(d) - d).max())
    assert drop > most
    assert gain_sensitivity(most) == int(d.max()) - min(0, int(d.min())) + drop


@pytest.mark.more
def test_a_table_in_which_rounding_weighs_more_than_records() -> None:
    """One record changes the gain by more than the greatest increment of F: only the drop covers it."""
    most, k = 1 << 25, 1 << 18

    def increment(x: int) -> int:
        return int(np.diff(f_score(np.array([x, x + 1])))[0])

    def near(x: int) -> range:
        return range(x, x + 64)

    both = min(near(most - 4 * k), key=increment)
    one = max(near(both + k), key=increment)
    n = min(near(2 * one - both), key=increment)
    table = np.array([[both, one - both], [one - both, n - 2 * one + both]])
    assert table.sum() == n < most
    greatest = np.diff(f_score(np.arange(most - 4 * k, most + 1))).max()  # it grows with x
    (change, *_) = changes(utility("infogain", most), table)
    assert greatest < -change <= gain_sensitivity(most)


def test_the_sensitivity_is_about_that_of_friedman_and_schuster() -> None:
    """log2(N + 1) + 1/ln 2 bits; above it by the rounding of F, which grows with N."""
    for most, slack in [(100, 0.03), (1000, 0.02), (100_000, 0.3), (1_000_000, 2.0)]:
        bits = gain_sensitivity(most) / 2**20
        assert abs(bits - math.log2(most + 1) - 1 / math.log(2)) < slack


@pytest.mark.parametrize("name", ["max", "infogain"])
def test_split_scores_are_the_scores_of_the_two_sides(name: str) -> None:
    rng = np.random.default_rng(1)
    chosen = utility(name, 1000)  # type: ignore[arg-type]
    cells = rng.integers(0, 9, (12, 3)) * (rng.random((12, 1)) < 0.7)
    expected = [chosen.score(np.stack([cells[:i].sum(axis=0), cells[i:].sum(axis=0)])) for i in range(1, 12)]
    assert chosen.split_scores(cells) == expected
    assert all(isinstance(score, int) for score in chosen.split_scores(cells))


def test_an_empty_node_has_scores_like_any_other() -> None:
    for name in ("max", "infogain"):
        chosen = utility(name, 1000)  # type: ignore[arg-type]
        assert chosen.score(np.zeros((4, 2), dtype=np.int64)) == 0
        assert chosen.split_scores(np.zeros((4, 2), dtype=np.int64)) == [0, 0, 0]


def test_the_gain_is_not_negative() -> None:
    """F is rounded, so a gain of nothing may come out below 0 and counts as 0."""
    chosen = utility("infogain", 10**6)
    rng = np.random.default_rng(2)
    for _ in range(300):
        counts = rng.integers(1, 50_000, 2)
        assert chosen.score(np.stack([counts, 3 * counts])) >= 0
