"""t-closeness: the search and the cases say what the definition says, and unions of close groups are close."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria import closeness
from anonymize.criteria.clear import met_by_group
from anonymize.criteria.closeness import Closeness, CloseToTheTable, CloseValues, Distances
from anonymize.criteria.criterion import RECORDS, Tally
from anonymize.errors import SchemaError
from anonymize.table import Schema, SensitiveColumn
from tests.support.closeness import apart, moved
from tests.support.examples import examples

Groups = list[list[int]]


@st.composite
def cases(draw: st.DrawFn, most_values: int = 5) -> tuple[int, Groups]:
    """Draw the number of values, and the groups that make up a table."""
    n_values = draw(st.integers(1, most_values))
    group = st.lists(st.integers(0, n_values - 1), max_size=7)
    groups = draw(st.lists(group, min_size=1, max_size=4).filter(any))
    return n_values, groups


def criterion_of(n_values: int, groups: Groups, most: Fraction, ordered: bool) -> Closeness:
    """As a job comes to it: from the counts of the whole table."""
    table = [value for group in groups for value in group]
    asked = CloseToTheTable("s", 0, n_values, most, ordered)
    totals = {t: len(table) if t == RECORDS else table.count(t.holding[0][1]) for t in asked.tallies}
    made = asked.given(totals)
    assert isinstance(made, Closeness)
    return made


def by_search(search: Distances, groups: Groups) -> list[bool]:
    """As rows, and as different rows with how many records each stands for."""
    rows = [(i, value) for i, group in enumerate(groups) for value in group]
    joined = sorted(set(rows))
    found = []
    for items, weights in ((rows, None), (joined, np.array([rows.count(item) for item in joined]))):
        keys, codes = np.array(items, dtype=np.int64).reshape(-1, 2).T
        found.append((~search.broken(keys, len(groups), [codes], weights)).tolist())
    assert found[0] == found[1]
    return found[0]


def expected_of(n_values: int, groups: Groups, most: Fraction, ordered: bool) -> list[bool]:
    table = [value for group in groups for value in group]

    def distance(group: list[int]) -> Fraction:
        return moved(group, table, range(n_values)) if ordered else apart(group, table)

    return [not group or distance(group) <= most for group in groups]


@settings(max_examples=examples(150), deadline=None)
@given(cases(), st.fractions(Fraction(1, 12), 1, max_denominator=12), st.booleans())
def test_the_search_and_the_cases_are_the_definition(
    case: tuple[int, Groups], most: Fraction, ordered: bool
) -> None:
    n_values, groups = case
    criterion, expected = criterion_of(*case, most, ordered), expected_of(*case, most, ordered)
    assert by_search(criterion.search, groups) == expected
    counts: dict[Any, Any] = {RECORDS: np.array([len(group) for group in groups])}
    for value in range(n_values):
        counts[Tally(((0, value),))] = np.array([group.count(value) for group in groups])
    assert met_by_group(criterion, counts).tolist() == expected


@settings(max_examples=examples(60), deadline=None)
@given(cases(), st.fractions(Fraction(1, 12), 1, max_denominator=12), st.booleans())
def test_how_it_is_computed_changes_nothing(case: tuple[int, Groups], most: Fraction, ordered: bool) -> None:
    """In Python's integers, and a group at a time."""
    search = criterion_of(*case, most, ordered).search
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closeness, "_INT64", 1)
        patch.setattr(closeness, "_MOST_COUNTS", 1)
        found = by_search(search, case[1])
    assert found == by_search(search, case[1])


@settings(max_examples=examples(150), deadline=None)
@given(cases(), st.fractions(Fraction(1, 12), 1, max_denominator=12), st.booleans())
def test_unions_of_close_groups_are_close(case: tuple[int, Groups], most: Fraction, ordered: bool) -> None:
    _, groups = case
    search = criterion_of(*case, most, ordered).search
    close = [group for group, met in zip(groups, by_search(search, groups), strict=True) if met]
    assert by_search(search, [[value for group in close for value in group]]) == [True]


def far(first: int, others: Sequence[int], most: Fraction, ordered: bool) -> bool:
    """Return True if one of two groups is too far from what both make up; by value the records of each."""
    halves = np.array([others, [2 * first - n for n in others]])
    totals = halves.sum(axis=0)
    search = Distances(0, int(totals.sum()), tuple(totals.tolist()), most, ordered)
    keys, codes = np.divmod(np.arange(halves.size), halves.shape[1])
    return bool(search.broken(keys, 2, [codes], halves.reshape(-1)).any())


@pytest.mark.parametrize("ordered", [False, True])
def test_counts_that_62_bits_do_not_hold(ordered: bool) -> None:
    """Two values a place apart: of n each in half the table, one more record in one group is 1 / 2n too many."""
    n = 1 << 28
    least = Fraction(1, 2 * n)
    assert not far(n, [n, n], least / 2, ordered)
    assert not far(n, [n + 1, n - 1], least, ordered)
    assert far(n, [n + 1, n - 1], least * Fraction(10**9 - 1, 10**9), ordered)


def test_a_step_counts_less_than_a_long_way() -> None:
    """Of three cells in a row: half of the records one step off, or two."""
    groups = [[0, 0, 1, 1], [0, 0, 2, 2]]
    near, wide = [[0, 1], [0, 2]], criterion_of(3, groups, Fraction(1, 8), True).search
    assert by_search(wide, groups) == expected_of(3, groups, Fraction(1, 8), True)
    assert by_search(wide, near) == [True, True]
    for most, ordered in ((Fraction(1, 8), True), (Fraction(1, 4), False)):
        met = by_search(criterion_of(3, groups, most, ordered).search, groups)
        assert met == [True, True]
        less = most * Fraction(99, 100)
        assert by_search(criterion_of(3, groups, less, ordered).search, groups) == [False, False]


def test_what_is_asked_for() -> None:
    asked = CloseValues((("s", Fraction(1, 5)), ("u", Fraction(1, 2))), frozenset({"u"}))
    assert asked.setting == "t(s)=1/5 t(u)=1/2"
    columns = SensitiveColumn("u", ("x", "y", "z"), (0,)), SensitiveColumn("v", ("x",), (0,))
    schema = Schema((), None, ("",), columns)
    assert asked.relative(schema) == (CloseToTheTable("u", 0, 3, Fraction(1, 2), True),)
    assert asked.criteria(schema) == ()
    assert asked.without_effect(["u"]) is None
    assert CloseValues(()).without_effect(["u"]) == "t=1 bounds nothing"
    assert CloseValues(()).without_effect(()) == "t bounds nothing: no column has `role: sensitive`"
    with pytest.raises(SchemaError, match="t of column s must be above 0"):
        CloseValues((("s", Fraction(0)),))
