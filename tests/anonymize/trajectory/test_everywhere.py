"""Global suppression and maximal frequent sequences: the thesis' example with its tables, and the definitions."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.trajectory.everywhere import (
    Frequent,
    Violations,
    best,
    minimal_violating,
    suppress_everywhere,
)
from anonymize.trajectory.frequent import Maximal, maximal_frequent, supports
from anonymize.trajectory.levels import Index, Level, joined
from anonymize.trajectory.metrics import FrequentLoss, Loss, frequent_loss, frequent_or_none, loss_of
from anonymize.trajectory.paths import Paths
from anonymize.trajectory.sweep import local_alone
from tests.support.examples import examples
from tests.support.paths import (
    ITEMS_41,
    Definition,
    bounds,
    named,
    paths_from,
    records_of,
    table_41,
)

MANY = 10_000
DOMAIN = 6
TABLES = st.lists(
    st.tuples(st.frozensets(st.integers(0, DOMAIN - 1)), st.integers(0, 1)), min_size=1, max_size=8
)
VIOLATING = {"b2d3", "b2c4", "b2f6", "c4c7", "c4e8"}
MAXIMAL = {"b2c5c7", "b2f6c7", "b2c7e8", "d3c4f6", "f6c7e8", "c5f6", "c5e8", "d3c7", "d3e8"}


def example():
    paths, number = paths_from(table_41(), len(ITEMS_41))
    return paths, number, bounds(2, 2, "1/2", 4, [0])


def test_the_minimal_violating_sequences_of_the_thesis() -> None:
    """[T] Examples 4.3.4 and, for L = 3, 12 of them."""
    paths, _, asked = example()
    found, sweep = minimal_violating(paths, asked, MANY)
    assert {name for level in found for name in named(level)} == VIOLATING
    assert sweep.tested == (7, 21)
    longer, _ = minimal_violating(paths, bounds(3, 2, "1/2", 4, [0]), MANY)
    assert sum(map(len, longer)) == 12


def test_the_scores_of_the_thesis() -> None:
    """[T] Tables 4.4 and 4.5; in the latter d3 and f6 cost 4 and 5: when c4 is gone, d3f6 is maximal."""
    paths, _, asked = example()
    sequences = maximal_frequent(paths, 2, MANY)
    assert set(named(sequences)) == MAXIMAL
    violations = Violations(minimal_violating(paths, asked, MANY)[0], len(ITEMS_41))
    cost = Frequent(sequences, len(ITEMS_41))

    def scores() -> dict[str, tuple[int, int]]:
        return {
            name: (int(violations.gains[i]), int(cost.counts[i]))
            for i, name in enumerate(ITEMS_41)
            if violations.gains[i]
        }

    table_44 = {"b2": (3, 4), "d3": (1, 4), "c4": (3, 2), "f6": (1, 5), "c7": (1, 6), "e8": (1, 5)}
    assert scores() == table_44
    c4 = ITEMS_41.index("c4")
    assert best(violations.gains, cost.counts) == c4
    violations.take(c4)
    cost.take(c4)
    assert scores() == {"b2": (2, 4), "d3": (1, 4), "f6": (1, 5)}


@pytest.mark.parametrize("frequent", [None, 2])
def test_the_table_of_the_thesis(frequent: int | None) -> None:
    """[T] Table 4.2; of 9 maximal frequent sequences 5 are kept, and there are 7: two ways to read "utility loss"."""
    paths, number, asked = example()
    made = suppress_everywhere(paths, asked, MANY, frequent)
    assert [ITEMS_41[item] for item in made.taken] == ["c4", "b2"]
    left = [(path - set(made.taken), value) for path, value in table_41()]
    assert records_of(made.paths, number) == left
    assert loss_of(paths, made.paths) == Loss(30, 6, 5)
    lost = frequent_loss(paths, made.paths, 2, MANY)
    assert lost == FrequentLoss(9, 7, 5, 4 / 9, 1.0)


def test_frequent_loss_of_local_suppression() -> None:
    paths, number = paths_from(table_41(), len(ITEMS_41))
    left = local_alone(paths, bounds(3, 2, "1/2", 4, [0]), MANY)
    was, still = (
        set(maximal_by_subsets(records, 2)) for records in (table_41(), records_of(left.paths, number))
    )
    before, after = Definition(9, 1, 1, ()), records_of(left.paths, number)
    lost = [1 - before.counts(q, after)[0] / before.counts(q, table_41())[0] for q in was]
    found = frequent_loss(paths, left.paths, 2, MANY)
    assert found == FrequentLoss(
        len(was), len(still), len(was & still), pytest.approx(sum(lost) / len(lost)), max(lost)
    )
    assert frequent_loss(paths, left.paths, 2, 20) is None


def common(n_records: int, n_items: int) -> Paths:
    """Records that all have the same items."""
    records = [(frozenset(range(n_items)), value % 2) for value in range(n_records)]
    return paths_from(records, n_items)[0]


def test_frequent_sequences_of_long_records_are_not_all_counted() -> None:
    """40 records with the same 24 items have 16,777,215 frequent sequences; a report says that there are too many."""
    started = time.process_time()
    with pytest.raises(PrivacyError, match="more than 1,048,576 in all") as caught:
        maximal_frequent(common(40, 24), 1, 4_000_000)
    assert caught.value.error_id == "too-many-sequences"
    assert "frequent" in caught.value.remedy
    assert time.process_time() - started < 20


def test_as_many_frequent_sequences_as_the_bound_are_counted() -> None:
    paths = common(3, 5)
    assert maximal_frequent(paths, 2, MANY, in_all=2**5 - 1) == (tuple(range(5)),)
    assert frequent_or_none(paths, 2, MANY) == (tuple(range(5)),)
    with pytest.raises(PrivacyError):
        maximal_frequent(paths, 2, MANY, in_all=2**5 - 2)


def test_pairs_that_are_looked_at_are_bounded() -> None:
    """Item 0 is kept with each of 33 others, and no two of these: 528 pairs to look at, and nothing is found."""
    others = np.arange(1, 34, dtype=np.int32)
    zeros = np.zeros_like(others)
    star = Level(np.column_stack([zeros, others]), np.column_stack([others, zeros]))
    index = Index(star, 34)
    assert len(joined(star, index, 33)) == 0
    with pytest.raises(PrivacyError, match="528 pairs") as caught:
        joined(star, index, 32)
    assert caught.value.error_id == "too-many-sequences"


def maximal_by_subsets(records, least: int) -> list[tuple[int, ...]]:
    """[T] Definition 4.3 and the one after it."""
    definition = Definition(len(ITEMS_41), least, 1, ())
    found = {q for q in definition.occurring(records) if definition.keeps(q, records)}
    return sorted(q for q in found if not any(set(q) < set(other) for other in found))


@settings(max_examples=examples(100))
@given(TABLES, st.integers(1, 3))
def test_maximal_frequent_sequences(records, least) -> None:
    paths, _ = paths_from(records, DOMAIN)
    expected = maximal_by_subsets(records, least)
    assert list(maximal_frequent(paths, least, MANY)) == expected
    some = [q for i in range(4) for q in combinations(range(DOMAIN), i)]
    definition = Definition(DOMAIN, least, 1, ())
    assert supports(paths, some).tolist() == [definition.counts(q, records)[0] for q in some]
    maximal, left = Maximal(expected, DOMAIN), records
    for item in (2, 0, 5):
        maximal.take(item)
        left = [(path - {item}, value) for path, value in left]
        assert list(maximal.sequences) == maximal_by_subsets(left, least)
        assert maximal.counts.tolist() == [sum(i in q for q in maximal.sequences) for i in range(DOMAIN)]


def taken_by_sets(records, definition: Definition, least: int | None) -> list[int]:
    """The definition: every score anew, from the table as it then is."""
    going = definition.minimal_violating(records)
    taken: list[int] = []
    while going:
        left = [(path - set(taken), value) for path, value in records]

        def score(item: int, left=left, going=going) -> tuple[Fraction, int]:
            if least is None:
                cost = sum(item in path for path, _ in left)
            else:
                cost = 1 + sum(item in q for q in maximal_by_subsets(left, least))
            return Fraction(sum(item in q for q in going), cost), -item

        item = max({item for q in going for item in q}, key=score)
        taken.append(item)
        going = {q for q in going if item not in q}
    return taken


@settings(max_examples=examples(100))
@given(
    TABLES,
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["1", "2/3", "1/2"]),
    st.sampled_from([None, 1, 2]),
)
def test_the_definition(records, L, K, C, frequent) -> None:
    definition = Definition(L, K, C)
    paths, number = paths_from(records, DOMAIN)
    if not definition.keeps((), records):
        with pytest.raises(PrivacyError):
            suppress_everywhere(paths, bounds(L, K, C), MANY, frequent)
        return
    violating, _ = minimal_violating(paths, bounds(L, K, C), MANY)
    assert {tuple(q) for level in violating for q in level.tolist()} == definition.minimal_violating(records)
    made = suppress_everywhere(paths, bounds(L, K, C), MANY, frequent)
    assert list(made.taken) == taken_by_sets(records, definition, frequent)
    left = records_of(made.paths, number)
    assert left == [(path - set(made.taken), value) for path, value in records]
    assert definition.is_met(left)


def test_scores_that_differ_by_less_than_a_float_can_say() -> None:
    n = 1 << 52
    assert best(np.array([n - 1, n, n - 1]), np.array([n, n + 1, n])) == 1
    assert best(np.array([2, 0, 1]), np.array([4, 1, 2])) == 0
    assert best(np.zeros(3, np.int64), np.ones(3, np.int64)) is None
