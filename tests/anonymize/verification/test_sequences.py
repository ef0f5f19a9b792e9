"""The verifier against the definition, read over all subsets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonymize.verification.sequences as verification
from anonymize.trajectory.sweep import local_alone
from anonymize.verification.sequences import Claim, bound_of, examine
from tests.support.examples import examples
from tests.support.paths import Definition, bounds, paths_from, records_of

DOMAIN = 6
TABLES = st.lists(
    st.tuples(st.frozensets(st.integers(0, DOMAIN - 1)), st.integers(0, 2)), min_size=0, max_size=8
)


def claim(L: int, K: int, C: str, protected: tuple[int, ...] = (1, 2)) -> Claim:
    return Claim(L, K, (bound_of("s", protected, np.arange(3), Fraction(C)),))


@settings(max_examples=examples(150))
@given(TABLES, st.integers(1, 4), st.integers(1, 3), st.sampled_from(["1", "2/3", "1/2"]), st.booleans())
def test_brute_force(records, L, K, C, suppressed) -> None:
    definition = Definition(L, K, C, (1, 2))
    paths, number = paths_from(records, DOMAIN)
    if suppressed and definition.is_met([(frozenset(), value) for _, value in records]) and records:
        paths = local_alone(paths, bounds(L, K, C, 3, (1, 2)), 1000).paths
        records = records_of(paths, number)
        assert examine(paths, claim(L, K, C)).finding is None
    found = examine(paths, claim(L, K, C))
    is_met = bool(records) and definition.is_met(records)
    assert (found.finding is None) == is_met
    if is_met:
        sequences = [(), *definition.occurring(records)]
        counts = [definition.counts(q, records) for q in sequences]
        assert found.fewest == min(n for n, *_ in counts)
        assert found.shares == {"s": max(Fraction(max(held), n) for n, *held in counts)}
        assert found.sequences == [sum(len(q) == i for q in sequences) for i in range(L + 1)]


def test_parts_change_nothing(monkeypatch) -> None:
    rng = np.random.default_rng(5)
    records = [
        (frozenset(np.flatnonzero(rng.random(12) < 0.5).tolist()), int(rng.integers(3))) for _ in range(60)
    ]
    paths, _ = paths_from(records, 12)
    whole = examine(paths, claim(4, 1, "1"))
    assert whole.finding is None
    monkeypatch.setattr(verification, "_AT_ONCE", 40)
    assert examine(paths, claim(4, 1, "1")) == whole


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_the_longest_sequences_are_looked_at(longest: int) -> None:
    """Two records share every sequence but the whole path of ``longest`` items."""
    whole = frozenset(range(longest))
    records = [(whole, 0)] + [(whole - {i}, 0) for i in whole] * 2
    paths, _ = paths_from(records, DOMAIN)
    if longest > 1:
        assert examine(paths, claim(longest - 1, 2, "1")).finding is None
    found = examine(paths, claim(longest, 2, "1")).finding
    assert found is not None
    assert (found.size, found.threshold) == (longest, "K")


def test_exactly_C_and_one_more() -> None:
    records = [(frozenset({0}), 1), (frozenset({0}), 1), (frozenset({0}), 0), (frozenset(), 0)]
    paths, _ = paths_from(records, DOMAIN)
    assert examine(paths, claim(1, 1, "2/3")).finding is None
    assert str(examine(paths, claim(1, 1, "3/5")).finding) == "an item violates C for s"


def test_no_records() -> None:
    """The whole table violates K; as the whole violates C where only that does."""
    paths, _ = paths_from([], DOMAIN)
    assert str(examine(paths, claim(2, 1, "1")).finding) == "the whole table violates K"
    paths, _ = paths_from([(frozenset(), 1)], DOMAIN)
    assert str(examine(paths, claim(2, 1, "1/2")).finding) == "the whole table violates C for s"
