"""The choice of pairs is differentially private: by exact enumeration, without statistics.

e^−rate is replaced by a fraction a: the proof holds for every a in (0, 1), so exp does not enter. The law is that of
tests/support/kruskal.py, which knows nothing of the program; the program is compared with it noise by noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product

import numpy as np
import pytest

from anonymize.synthetic.marginals import Axis, Marginal, closing_none, is_forest, pairs_of, score
from anonymize.synthetic.single import choose_forest
from anonymize.table import CodedTable, Schema
from tests.support.coins import ScriptedNoise
from tests.support.dp_tables import (
    all_tables,
    categorical,
    domain_records,
    neighbours,
    schema_of,
    table_of,
)
from tests.support.kruskal import choice_law, kruskal, ranking_law

A = Fraction(2, 3)
THREE = tuple(combinations(range(3), 2))
FOUR = tuple(combinations(range(4), 2))
Numbers = tuple[int, ...]


def worst_ratio(
    one: Sequence[int], other: Sequence[int], pairs: Sequence[tuple[int, int]], n: int
) -> Fraction:
    """The greatest ratio of what two vectors of scores make of any outcome, either way."""
    laws = choice_law(one, pairs, n, A), choice_law(other, pairs, n, A)
    assert laws[0].keys() == laws[1].keys()
    assert sum(laws[0].values()) == 1
    return max(max(p / laws[1][each], laws[1][each] / p) for each, p in laws[0].items())


# ---- the program has the law


@pytest.mark.parametrize(("pairs", "most"), [(THREE, 5), (FOUR, 3)])
def test_the_program_takes_the_best_that_close_no_cycle(
    pairs: tuple[tuple[int, int], ...], most: int
) -> None:
    """Every noise vector in a box, with ties: the greatest sums first, of equal ones the first."""
    scores = (2, 0, 1, 1, 0, 2)[: len(pairs)]
    for drawn in product(range(most), repeat=len(pairs)):
        noise = ScriptedNoise(geometric=[drawn])
        ranking = sorted(range(len(pairs)), key=lambda i: (-scores[i] - drawn[i], i))
        for n_edges in (1, len(pairs) // 2):
            noise = ScriptedNoise(geometric=[drawn])
            found = choose_forest(scores, pairs, Fraction(1, 7), n_edges, noise)
            assert found == kruskal(ranking, pairs, n_edges)
            assert noise.asked == [("geometric", Fraction(1, 7), len(pairs))]


def test_pairs_that_close_a_cycle_are_left_out() -> None:
    assert closing_none(FOUR, ()) == (0, 1, 2, 3, 4, 5)
    assert closing_none(FOUR, (0,)) == (1, 2, 3, 4, 5)
    assert closing_none(FOUR, (0, 3)) == (2, 4, 5)  # 01, 12: not 02
    assert closing_none(FOUR, (0, 5)) == (1, 2, 3, 4)  # 01, 23
    assert closing_none(FOUR, (5, 0, 2)) == ()


def test_forests_are_those_of_the_definition() -> None:
    """Of four columns every list of pairs, with pairs twice and pairs that there are not."""
    for n in range(4):
        for numbers in product(range(-1, len(FOUR) + 1), repeat=n):
            known = all(0 <= number < len(FOUR) for number in numbers)
            assert is_forest(FOUR, numbers) == (known and kruskal(numbers, FOUR, n) == numbers)
            if known and is_forest(FOUR, numbers):
                left = [number for number in range(len(FOUR)) if is_forest(FOUR, (*numbers, number))]
                assert closing_none(FOUR, numbers) == tuple(left)


def test_the_law_is_that_of_noise() -> None:
    """Every noise vector up to a bound; the rest is the mass left out."""
    a, most, scores = Fraction(1, 3), 9, (1, 0, 2)
    found: dict[Numbers, Fraction] = {}
    for drawn in product(range(most), repeat=3):
        ranking = tuple(sorted(range(3), key=lambda i: (-scores[i] - drawn[i], i)))
        chance = Fraction(1)
        for k in drawn:
            chance *= (1 - a) * a**k
        found[ranking] = found.get(ranking, Fraction(0)) + chance
    left_out = 1 - sum(found.values())
    law = ranking_law(scores, a)
    assert sum(law.values()) == 1
    assert all(
        found.get(each, Fraction(0)) <= p <= found.get(each, Fraction(0)) + left_out
        for each, p in law.items()
    )


# ---- what it costs


@pytest.mark.some(1)
@pytest.mark.parametrize("n_edges", [1, 2])
def test_three_columns_cost_two_rates_a_pair_and_no_less(n_edges: int) -> None:
    """All small scores and all moves by one: the bound holds, is met, and half of it would not do."""
    worst = Fraction(0)
    for scores in product(range(4), repeat=3):
        for moves in product((-1, 0, 1), repeat=3):
            moved = tuple(s + m for s, m in zip(scores, moves, strict=True))
            worst = max(worst, worst_ratio(scores, moved, THREE, n_edges))
    assert worst == A ** (-2 * n_edges)


@pytest.mark.some(1)
@pytest.mark.parametrize("n_edges", [1, 2, 3])
def test_four_columns_too(n_edges: int) -> None:
    """Some columns are far behind: chosen ones fall by one, the others rise; and random moves."""
    rng = np.random.default_rng(n_edges)
    behind = tuple(0 if i < n_edges else 3 for i in (0, 5, 1, 2, 3, 4))
    moved = tuple(s - 1 if s == 0 else s + 1 for s in behind)
    bound = A ** (-2 * n_edges)
    worst = worst_ratio(behind, moved, FOUR, n_edges)
    for _ in range(12):
        scores = rng.integers(0, 3, 6)
        worst = max(
            worst, worst_ratio(scores.tolist(), (scores + rng.integers(-1, 2, 6)).tolist(), FOUR, n_edges)
        )
    assert bound * A < worst <= bound


# ---- from tables


def binary(n_columns: int, classes: Sequence[str] = ("",)) -> Schema:
    return schema_of(*(categorical(f"c{i}", {"*": ["a", "b"]}) for i in range(n_columns)), classes=classes)


def all_pairs(schema: Schema) -> tuple[Marginal, ...]:
    return pairs_of([Axis(i, (0, 1)) for i in range(len(schema.qid))], schema.n_classes)


def scores_of(table: CodedTable, pairs: Sequence[Marginal], seed: int) -> Numbers:
    """For any public integers, also negative and absurd ones."""
    rng = np.random.default_rng(seed)
    expected = [rng.integers(-2, 4, pair.shape) for pair in pairs]
    return tuple(
        score(pair.counts(table), e, i) for i, (pair, e) in enumerate(zip(pairs, expected, strict=True))
    )


def with_neighbours(
    schema: Schema, most: int, scores: Callable[[CodedTable], Numbers]
) -> Iterator[tuple[Numbers, Numbers]]:
    """The scores of every table of so many records at most, with those of every table that has one more."""
    records = domain_records(schema)

    @cache
    def found(numbers: Numbers) -> Numbers:
        return scores(table_of(schema, [records[i] for i in numbers]))

    for numbers in all_tables(records, most):
        for more in neighbours(numbers, len(records)):
            yield found(numbers), found(more)


@pytest.mark.some(1)
@pytest.mark.parametrize(("n_columns", "classes", "most"), [(3, ("Y", "N"), 2), (3, ("",), 3), (4, ("",), 1)])
def test_one_record_moves_every_score_by_one(n_columns: int, classes: tuple[str, ...], most: int) -> None:
    schema = binary(n_columns, classes)
    pairs = all_pairs(schema)
    for seed in range(2):
        for one, more in with_neighbours(schema, most, partial(scores_of, pairs=pairs, seed=seed)):
            assert (np.abs(np.subtract(more, one)) == 1).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("n_edges", [1, 2])
def test_neighbouring_tables_choose_alike(n_edges: int) -> None:
    """All tables of up to four records over 2 × 2 × 2, all their neighbours."""
    schema = binary(3)
    pairs = all_pairs(schema)
    seen = set(with_neighbours(schema, 3, partial(scores_of, pairs=pairs, seed=7)))
    worst = Fraction(0)
    for one, other in seen:
        worst = max(worst, worst_ratio(one, other, THREE, n_edges))
    assert len(seen) > 20
    assert A ** -(2 * n_edges - 1) <= worst <= A ** (-2 * n_edges)
