"""Criteria: both arithmetics say the same, forms commute with shares, views count what tallies say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.clear import InTheClear, first_violation, met_by_group
from anonymize.criteria.confidence import Confidence, NotNegative
from anonymize.criteria.criterion import (
    RECORDS,
    Arithmetic,
    B,
    Criterion,
    Measure,
    Rule,
    Tally,
    W,
    alike,
    tallies_of,
)
from anonymize.criteria.distinct import DistinctValues, EnoughAbove
from anonymize.criteria.mixed import NotAll
from anonymize.criteria.ruled_out import DiverseValues, Diversity, SomeoneLeft
from anonymize.criteria.search import RuledColumn
from anonymize.criteria.size import LargeEnough, Size
from anonymize.criteria.views import count_by, measures_of, sensitive_codes, views_of
from anonymize.errors import SchemaError
from anonymize.joint.lkc.circuits import criterion_circuit
from anonymize.table import Ints, Schema, SensitiveColumn
from crypto.circuit import evaluate
from tests.support.examples import examples

BITS = 6


@dataclass(frozen=True)
class Several:
    """A rule that uses everything an arithmetic has: at least two of three values above 0, or no records."""

    title: tuple[object, ...] = ("several", 2)
    entry: str = "values"
    of_zeros: bool = False

    def met(self, on: Arithmetic[W, B], values: Sequence[W]) -> B:
        size, *rest = values
        above = [on.all_of([on.not_negative(value), on.negation(on.is_zero(value))]) for value in rest]
        return on.any_of([on.is_empty(size), on.at_least(on.count_of(above), 2)])


@pytest.mark.parametrize(
    ("rule", "n_values"),
    [
        (LargeEnough(3), 1),
        (LargeEnough(1), 1),
        (NotNegative(), 1),
        (EnoughAbove(2, 3), 3),
        (EnoughAbove(5, 5), 5),
        (SomeoneLeft(), 2),
        (NotAll(), 2),
        (Several(), 4),
    ],
)
@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_circuit_judges_as_arrays_do(rule: Rule, n_values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(-4, 5, (50, n_values))
    if rule != NotNegative():
        values[:, 0] = np.abs(values[:, 0])
    expected = rule.met(InTheClear(), list(values.T))
    words = (values % (1 << BITS)).astype(np.uint64)
    found = evaluate(criterion_circuit(rule, BITS, n_values), len(words), {rule.entry: words})["met"]
    assert found[:, 0].astype(bool).tolist() == expected.tolist()


def test_k_lets_empty_groups_pass_but_not_an_empty_table() -> None:
    sizes = {RECORDS: np.array([0, 1, 2, 3])}
    assert met_by_group(Size(2), sizes).tolist() == [True, False, True, True]
    assert met_by_group(Size(2), sizes, whole=True).tolist() == [False, False, True, True]
    assert not Size(1).at_stake(sizes).any()
    assert Size(2).at_stake(sizes).all()


def test_exactly_c_is_allowed() -> None:
    criterion = Confidence("s", 0, (0, 2), Fraction(1, 2))
    held = criterion.tallies
    counts = {RECORDS: np.array([4, 4, 0]), held[0]: np.array([2, 1, 0]), held[1]: np.array([2, 3, 0])}
    assert met_by_group(criterion, counts).tolist() == [True, False, True]
    assert criterion.at_stake(counts).tolist() == [[True, True], [True, True], [False, False]]
    # A half of two is allowed to have one, of three one, of four two.
    assert criterion.at_stake(counts, 2).tolist() == [[True, True], [False, True], [False, False]]
    assert criterion.at_stake(counts, 4).tolist() == [[False, False], [False, True], [False, False]]
    found = first_violation([Size(1), criterion], counts, 2)
    assert found is not None
    assert (found.criterion, found.column, found.n_columns) == ("C", "s", 2)


def test_no_protected_value_may_be_all_there_is() -> None:
    columns = (SensitiveColumn("s0", ("a", "b", "c"), (0, 2)), SensitiveColumn("s1", ("x", "y"), (0,)))
    of = Schema((), None, ("",), columns)
    first, second = DiverseValues(2).criteria(of)
    assert DiverseValues(2, mixed=("s1",)).criteria(of) == (first,)
    assert DiverseValues(2, at_most=(("s0", 0),)).criteria(of) == (second,)
    assert (first.name, first.column, second.column) == ("diversity", "s0", "s1")
    #                         empty, all a, all b, all c, a and c, b and c
    counts = distinct_counts([0, 2, 0, 0, 1, 0], [0, 0, 2, 0, 0, 1], [0, 0, 0, 2, 1, 1])
    assert met_by_group(first, counts).tolist() == [True, False, True, False, True, True]
    a_or_c = [(0, 0), (1, 0), (0, 0), (0, 1), (1, 1), (0, 1)]
    assert first.at_stake(counts).tolist() == [[bool(a), bool(c)] for a, c in a_or_c]
    alone = [(0, 0), (1, 0), (0, 0), (0, 1), (0, 0), (0, 0)]
    assert first.at_stake(counts, 2).tolist() == [[bool(a), bool(c)] for a, c in alone]
    assert not met_by_group(first, distinct_counts([0], [0], [0]), whole=True).any()


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=20))
def test_diversity_two_is_c_just_below_one_and_the_general_rule(groups: list[tuple[int, ...]]) -> None:
    of = Schema((), None, ("",), (SensitiveColumn("s0", ("a", "b", "c"), (0, 1)),))
    (mixed,) = DiverseValues(2).criteria(of)
    counts = distinct_counts(*([group[value] for group in groups] for value in range(3)))
    n = int(np.max(counts[RECORDS], initial=1))
    below_one = Confidence("s0", 0, (0, 1), Fraction(n, n + 1))
    assert met_by_group(mixed, counts).tolist() == met_by_group(below_one, counts).tolist()
    general = Diversity((RuledColumn(0, 3, (0, 1)),), 2)
    lacking = {
        Tally(lacking=((0, value),)): counts[RECORDS] - counts[Tally(holding=((0, value),))]
        for value in (0, 1)
    }
    assert met_by_group(mixed, counts).tolist() == met_by_group(general, {**counts, **lacking}).tolist()


def distinct_counts(*by_value: list[int]) -> dict[Measure, Ints]:
    """Counts of groups by value of the first sensitive column of :func:`schema`."""
    held = {Tally(holding=((0, value),)): np.array(counts) for value, counts in enumerate(by_value)}
    return {RECORDS: np.sum(by_value, axis=0), **held}


def test_as_many_values_as_asked_are_enough() -> None:
    (criterion,) = DistinctValues((("s0", 2),)).criteria(schema())
    counts = distinct_counts([0, 3, 3, 1], [0, 0, 1, 1], [0, 0, 0, 1])
    assert met_by_group(criterion, counts).tolist() == [True, False, True, True]
    assert not met_by_group(criterion, distinct_counts([0], [0], [0]), whole=True).any()
    found = first_violation([criterion], counts, 3)
    assert found is not None
    assert (found.criterion, found.column, found.n_columns) == ("distinct", "s0", 3)
    assert criterion.at_stake(counts).tolist() == [[False], [True], [True], [True]]


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 6), min_size=1, max_size=8), st.integers(2, 3))
def test_different_values_are_closed_under_union(pairs: list[tuple[int, ...]], least: int) -> None:
    (criterion,) = DistinctValues((("s0", least),)).criteria(schema())
    one, other = (distinct_counts(*([p[i + k] for p in pairs] for i in range(3))) for k in (0, 3))
    both = {m: one[m] + other[m] for m in one}
    fine = met_by_group(criterion, one) & met_by_group(criterion, other)
    assert (met_by_group(criterion, both) | ~fine).all()


def test_one_value_is_no_diversity() -> None:
    with pytest.raises(SchemaError, match="distinct of column s0 must be at least 2"):
        DistinctValues((("s0", 1),))


def test_a_demand_comes_to_the_columns_that_a_schema_has() -> None:
    demand = DistinctValues((("s1", 3), ("elsewhere", 2)))
    assert [(c.column, c.rule) for c in demand.criteria(schema())] == [("s1", EnoughAbove(3, 4))]
    assert demand.held == "at least 3 different values of s1, at least 2 different values of elsewhere"


@given(seed=st.integers(0, 2**32), p=st.integers(0, 9), q=st.integers(1, 10))
def test_forms_of_shares_are_shares_of_forms(seed: int, p: int, q: int) -> None:
    rng = np.random.default_rng(seed)
    criterion = Confidence("s", 0, (0,), Fraction(p, q))
    ((form,),) = criterion.cases
    counts = {t: rng.integers(0, 1000, 5) for t in (RECORDS, *criterion.tallies)}
    ours = {t: rng.integers(0, 2**64, 5, dtype=np.uint64) for t in counts}
    theirs = {t: counts[t].astype(np.uint64) - ours[t] for t in counts}
    assert (form.of(ours) + form.of(theirs)).astype(np.int64).tolist() == form.of(counts).tolist()
    assert np.abs(form.of(counts)).max() < 1 << (form.bits(1000) - 1)


def schema() -> Schema:
    columns = [SensitiveColumn(f"s{i}", tuple("abcd"[: 3 + i]), (0,)) for i in range(2)]
    return Schema((), "c", ("Y", "N"), tuple(columns))


TALLIES = (
    Tally(holding=((0, 2),)),
    Tally(holding=((0, 1),)),
    Tally(lacking=((1, 0),)),
    Tally(holding=((0, 0),), lacking=((1, 1), (1, 3))),
    Tally(holding=((1, 2),), lacking=((0, 0),)),
)


@given(seed=st.integers(0, 2**32), chosen=st.sets(st.sampled_from(TALLIES)))
def test_views_count_what_tallies_say(seed: int, chosen: set[Tally]) -> None:
    """Also where several columns decide; neighbours of one view share a pass."""
    rng = np.random.default_rng(seed)
    cells, keys, weights = (
        rng.integers(0, schema().n_cells, 40),
        rng.integers(0, 3, 40),
        rng.integers(1, 5, 40),
    )
    views = views_of(schema(), (RECORDS, *chosen))
    counts = count_by(views, [view.of_cells(schema())[cells] for view in views], keys, 3, weights)
    found = dict(zip(measures_of(views), counts, strict=True))
    codes = sensitive_codes(schema(), cells)
    assert set(found) == {RECORDS, *chosen}
    for counted, sums in found.items():
        among = np.ones(40, dtype=bool) if counted == RECORDS else counted.among(codes)
        assert sums.tolist() == [int(weights[among & (keys == key)].sum()) for key in range(3)]


def test_labels_are_in_the_order_of_the_tallies() -> None:
    """A joint histogram has one for each protected value, and none for the others."""
    (view,) = views_of(schema(), TALLIES[:2])
    assert view.labels.tolist() == [2, 1, 0]
    assert view.n_labels == 2


def test_criteria_with_one_rule_go_together() -> None:
    criteria: list[Criterion] = [
        Size(2),
        *(Confidence(f"s{i}", i, (0,), Fraction(1, 2 + i)) for i in range(2)),
    ]
    assert [(rule, n) for rule, n in alike(criteria)] == [(LargeEnough(2), 1), (NotNegative(), 1)]
    assert len(alike(criteria)[NotNegative(), 1]) == 2
    assert tallies_of(criteria)[0] == RECORDS
    assert len(tallies_of(criteria)) == 3
