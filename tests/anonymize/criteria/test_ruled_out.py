"""Tests of ruling values out: the cases are the definition, the search says the same, and the paper's
examples.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anonymize.criteria import search
from anonymize.criteria.clear import InTheClear, met_by_group
from anonymize.criteria.criterion import RECORDS, Criterion, Form, Measure, Tally, tallies_of
from anonymize.criteria.ruled_out import DiverseValues, Diversity, RuledOut, RuledOutValues
from anonymize.criteria.search import RuledColumn
from anonymize.errors import SchemaError
from anonymize.table import Ints, Schema, SensitiveColumn
from tests.support.examples import examples
from tests.support.ruled_out import (
    Sensitive,
    fewest_deletions,
    is_diverse,
    is_recursive,
    published_check,
    published_check_of_columns,
    tells_at_most,
)

Row: TypeAlias = tuple[int, ...]


def ruled(columns: Sequence[Sensitive]) -> tuple[RuledColumn, ...]:
    """Columns whose values are their numbers."""
    return tuple(
        RuledColumn(i, len(c.values), tuple(c.values.index(v) for v in c.protected), at_most=c.at_most)
        for i, c in enumerate(columns)
    )


def bounded(columns: Sequence[Sensitive]) -> tuple[RuledColumn, ...]:
    """The same with their bounds, and nothing protected without one."""
    return tuple(
        dataclasses.replace(
            column, bound=said.bound, protected=() if said.bound is None else column.protected
        )
        for column, said in zip(ruled(columns), columns, strict=True)
    )


def counted(criterion: Criterion, groups: Sequence[Sequence[Row]]) -> dict[Measure, Ints]:
    """The tallies of groups of rows whose values are numbers."""

    def count(tally: Tally, rows: Sequence[Row]) -> int:
        if tally == RECORDS or not rows:
            return len(rows)
        return int(tally.among(dict(enumerate(np.array(rows, dtype=np.int64).T))).sum())

    found = tallies_of([criterion])
    return {tally: np.array([count(tally, rows) for rows in groups]) for tally in found}


def tallied(criterion: Criterion, group: Sequence[Row]) -> dict[Tally, Ints]:
    return {t: n for t, n in counted(criterion, [group]).items() if isinstance(t, Tally)}


def by_cases(criterion: Criterion, groups: Sequence[Sequence[Row]]) -> list[bool]:
    return [bool(met) for met in met_by_group(criterion, counted(criterion, groups))]


def by_search(criterion: Criterion, groups: Sequence[Sequence[Row]], n_columns: int) -> list[bool]:
    """As different rows with how often they occur, and as they are."""
    rows = [(i, row) for i, group in enumerate(groups) for row in group]
    weighted = Counter(rows)
    found = []
    for items, weights in ((rows, None), (list(weighted), np.array(list(weighted.values()), dtype=np.int64))):
        keys = np.array([i for i, _ in items], dtype=np.int64)
        codes = np.array([row for _, row in items], dtype=np.int64).reshape(len(items), n_columns).T
        assert criterion.search is not None
        broken = criterion.search.broken(keys, len(groups), list(codes), weights)
        found.append([not each for each in broken.tolist()])
    assert found[0] == found[1]
    return found[0]


@st.composite
def tables(draw: st.DrawFn, most_rows: int = 9) -> tuple[list[Sensitive], list[list[Row]]]:
    """Sensitive columns, and some groups of rows."""
    columns = []
    for _ in range(draw(st.integers(1, 3))):
        values = range(draw(st.integers(1, 4)))
        protected = draw(st.sets(st.sampled_from(values)))
        bound = draw(st.none() | st.fractions(0, 1, max_denominator=5))
        columns.append(Sensitive(values, sorted(protected), bound, draw(st.none() | st.integers(0, 3))))
    row = st.tuples(*(st.integers(0, len(c.values) - 1) for c in columns))
    return columns, draw(st.lists(st.lists(row, max_size=most_rows), min_size=1, max_size=4))


@settings(max_examples=examples(300), deadline=None)
@given(tables(), st.integers(1, 3))
def test_ruling_out_is_judged_by_its_definition(
    case: tuple[list[Sensitive], list[list[Row]]], most: int
) -> None:
    columns, groups = case
    criterion = RuledOut(bounded(columns), most)
    expected = [tells_at_most(group, columns, most) for group in groups]
    assert by_search(criterion, groups, len(columns)) == expected
    if criterion.cases:
        assert by_cases(criterion, groups) == expected


@settings(max_examples=examples(300), deadline=None)
@given(tables(), st.integers(2, 5))
def test_diversity_is_judged_by_its_definition(
    case: tuple[list[Sensitive], list[list[Row]]], least: int
) -> None:
    columns, groups = case
    criterion = Diversity(ruled(columns), least)
    expected = [is_diverse(group, columns, least) for group in groups]
    assert by_search(criterion, groups, len(columns)) == expected
    if criterion.cases:
        assert by_cases(criterion, groups) == expected


@pytest.mark.parametrize("most_items", [1, 7])
def test_what_is_held_at_a_time_changes_nothing(most_items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    columns = [Sensitive(range(4), range(4), Fraction(4, 5)) for _ in range(3)]
    groups = [[tuple(row) for row in rng.integers(0, 4, (n, 3)).tolist()] for n in (3, 5, 8, 13, 21, 34, 55)]
    monkeypatch.setattr(search, "_MOST_ITEMS", most_items)
    for least in (3, 4):
        expected = [is_diverse(group, columns, least) for group in groups]
        assert 0 < sum(expected) < len(expected)
        assert by_search(Diversity(ruled(columns), least), groups, 3) == expected
    expected = [tells_at_most(group, columns, 2) for group in groups]
    assert 0 < sum(expected) < len(expected)
    assert by_search(RuledOut(bounded(columns), 2), groups, 3) == expected


def both(columns: Sequence[Sensitive], most: int) -> list[Criterion]:
    """The two criteria of columns, where they have cases."""
    made: list[Criterion] = [RuledOut(bounded(columns), most), Diversity(ruled(columns), most + 2)]
    return [criterion for criterion in made if criterion.cases]


@settings(deadline=None)
@given(tables(), tables(), st.integers(1, 2))
def test_unions_of_groups_that_tell_little_tell_little(
    case: tuple[list[Sensitive], list[list[Row]]], other: tuple[list[Sensitive], list[list[Row]]], most: int
) -> None:
    columns, groups = case
    same = [
        [tuple(v % len(c.values) for v, c in zip(row * 3, columns, strict=False)) for row in g]
        for g in other[1]
    ]
    for criterion in both(columns, most):
        for a, b in zip(groups, same, strict=False):
            of_a, of_b, of_both = by_search(criterion, [a, b, a + b], len(columns))
            assert of_both or not (of_a and of_b)


@settings(deadline=None)
@given(tables(6), st.integers(1, 2), st.integers(1, 3))
def test_what_is_at_stake_decides_alone(
    case: tuple[list[Sensitive], list[list[Row]]], most: int, least: int
) -> None:
    """In every part of a group that has no record or at least so many."""
    columns, groups = case
    for criterion in both(columns, most):
        for group in groups:
            totals = tallied(criterion, group)
            at_stake = criterion.at_stake(totals, least)[0]
            sizes = (0, *range(least, len(group) + 1))
            parts = [part for size in sizes for part in combinations(group, size)]
            counts = counted(criterion, parts)
            met = np.array(
                [
                    criterion.rule.met(InTheClear(), [form.of(counts) for form in forms])
                    for forms in criterion.cases
                ]
            )
            assert met.all(axis=0).tolist() == met[at_stake].all(axis=0).tolist()


def test_what_cannot_break_in_a_large_part_is_not_at_stake() -> None:
    columns = (RuledColumn(0, 3, (0,), Fraction(1, 2)), RuledColumn(1, 2, ()))
    # Of seven records one has the protected value; two have a value of the other column.
    group: list[Row] = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 1), (1, 1), (2, 1)]
    for criterion in (RuledOut(columns, 1), Diversity(columns, 3)):
        totals = tallied(criterion, group)
        assert criterion.at_stake(totals, 1).any()
        assert not criterion.at_stake(totals, 7).any()
        assert 0 < criterion.at_stake(totals, 4).sum() < criterion.at_stake(totals, 1).sum()


def test_pairs_that_others_imply_are_not_at_stake() -> None:
    """Of equal values the first stands for all; one that no record has, for nobody."""
    columns = tuple(RuledColumn(i, 3, (0, 1)) for i in range(2))
    criterion = Diversity(columns, 3)
    group: list[Row] = [(0, 0), (0, 0), (0, 1), (2, 1), (2, 1), (2, 2)]
    (at_stake,) = criterion.at_stake(tallied(criterion, group), 1)
    tested = [after for (_, after), kept in zip(criterion.cases, at_stake, strict=True) if kept]
    pairs = {tally.lacking for form in tested for tally, _ in form.terms if len(tally.lacking) == 2}
    # No record has the value 1 of the first column; all with 0 of the second have 0 of the first.
    assert pairs == {((0, 0), (1, 1)), ((0, 0), (1, 2)), ((0, 0), (0, 2)), ((0, 2), (1, 1)), ((1, 1), (1, 2))}
    assert at_stake.sum() == len(pairs) + 3


def test_an_unprotected_value_that_all_have_stands_for_no_other() -> None:
    """Ruling two protected values out leaves nobody, though each pair with the third value passes."""
    columns = (RuledColumn(0, 1, ()), RuledColumn(1, 2, (0, 1)))
    criterion = Diversity(columns, 3)
    group: list[Row] = [(0, 0), (0, 1)]
    (at_stake,) = criterion.at_stake(tallied(criterion, group), 1)
    met = np.array(
        [
            criterion.rule.met(InTheClear(), [form.of(counted(criterion, [group])) for form in forms])
            for forms in criterion.cases
        ]
    )[:, 0]
    assert criterion.cases[met.tolist().index(False)][1] == Form(((Tally(lacking=((1, 0), (1, 1))), 1),))
    assert not met[at_stake].all()


FIG_2 = [("heart", "medicine"), ("heart", "surgery"), ("flu", "IV"), ("stomach", "IV")]
FIG_4 = [("D1", "T1"), ("D2", "T1"), ("D3", "T2"), ("D4", "T2"), ("D5", "T3"), ("D6", "T3")]


def diversity(rows: Sequence[tuple[object, ...]], *, at_most: int | None = None) -> int:
    """Return the diversity of a group, all its values protected, by the criterion; 9 for more. at_most: of
    the last column.
    """
    values = [sorted({str(row[i]) for row in rows}) for i in range(len(rows[0]))]
    columns = [RuledColumn(i, len(own), tuple(range(len(own)))) for i, own in enumerate(values)]
    columns[-1] = dataclasses.replace(columns[-1], at_most=at_most)
    coded = [tuple(values[i].index(str(value)) for i, value in enumerate(row)) for row in rows]
    least = 2
    while least < 9 and by_search(Diversity(tuple(columns), least), [coded], len(columns))[0]:
        least += 1
    return least - 1 if least < 9 else 9


def test_the_paper_s_figures() -> None:
    """[MSA] Fig. 2 is 2-diverse and no more; Fig. 4 is 4-diverse with `at_most: 2` of its treatments, not without."""
    assert diversity(FIG_2) == 2
    assert diversity(FIG_4) == 3
    assert diversity(FIG_4, at_most=2) == 4


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=8))
def test_with_all_values_protected_it_is_definition_6(rows: list[Row]) -> None:
    assert diversity(rows) == fewest_deletions(rows, 3)


def test_definition_7_lets_one_value_give_another_away() -> None:
    """No set of fewer than three values deletes all; still, who rules out `a` is left with `b`. Limits count both."""
    rows = [("p", "a"), ("q", "a"), ("r", "b"), ("s", "b")]
    assert fewest_deletions(rows, 2, {1: 1}) == 3
    assert not is_diverse(rows, [Sensitive("pqrs", "pqrs"), Sensitive("ab", "ab")], 3)
    # At most one value of the column in one attack: nobody who rules out `a` asks for `b`.
    assert diversity(rows, at_most=1) >= 3
    assert diversity(rows) == 2


@example([(0, 1), (1, 0), (0, 2)])
@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=9))
def test_the_published_check_accepts_only_diverse_groups(rows: list[Row]) -> None:
    """[MSA] Fig. 6 is sound."""
    least = fewest_deletions(rows, len(rows[0]))
    assert least is not None
    assert not published_check(rows, least + 1)


def test_the_published_check_refuses_diverse_groups_and_depends_on_row_order() -> None:
    rows: list[Row] = [(2, 0, 2), (1, 1, 1), (0, 2, 0), (0, 1, 2), (1, 2, 0), (2, 0, 1)]
    orders = {published_check([*rows[i:], *rows[:i]], 3) for i in range(len(rows))}
    assert diversity(rows) == 3
    assert orders == {True, False}
    assert {diversity([*rows[i:], *rows[:i]]) for i in range(len(rows))} == {3}


def test_the_published_check_of_columns_accepts_groups_that_are_not_diverse() -> None:
    """[MSA] Fig. 7, where fewer values are allowed than are asked for: one value deletes both of two equal rows."""
    rows = [("a", "x"), ("a", "x")]
    assert published_check_of_columns(rows, 2, (0, 2))
    assert fewest_deletions(rows, 2, {0: 0, 1: 2}) == 1
    values = [Sensitive("a", "a", at_most=0), Sensitive("x", "x", at_most=2)]
    assert not is_diverse(rows, values, 2)
    assert by_search(Diversity(ruled(values), 2), [[(0, 0), (0, 0)]], 2) == [False]


def test_what_everybody_has_one_of_cannot_be_ruled_out() -> None:
    """As gain 0 and loss 0 in Adult: with both protected no table is 3-diverse; with neither the others can be."""
    rows: list[Row] = [(job, gain, 0) for job in range(4) for gain in (1, 2)]
    rows += [(job, 0, loss) for job in range(4) for loss in (1, 2)] + [(job, 0, 0) for job in range(4)]
    all_values = [Sensitive(range(n), range(n)) for n in (4, 3, 3)]
    assert not is_diverse(rows, all_values, 3)
    others = [Sensitive(range(4), range(4)), Sensitive(range(3), (1, 2)), Sensitive(range(3), (1, 2))]
    for columns, expected in ((all_values, False), (others, True)):
        assert is_diverse(rows, columns, 3) == expected
        assert by_search(Diversity(ruled(columns), 3), [rows], 3) == [expected]
        assert by_cases(Diversity(ruled(columns), 3), [rows]) == [expected]


def test_an_unprotected_value_covers_for_the_last_one_ruled_out() -> None:
    """Protected x and unprotected y take all away. If y alone does not, who rules out y is left with x."""
    columns = [Sensitive(range(3), (0,)), Sensitive(range(2), ())]
    rows: list[Row]
    for rows, expected in (([(0, 0), (0, 0), (1, 1)], False), ([(0, 1), (1, 1), (2, 1)], True)):
        assert is_diverse(rows, columns, 3) == expected
        assert by_search(Diversity(ruled(columns), 3), [rows], 2) == [expected]
        assert by_cases(Diversity(ruled(columns), 3), [rows]) == [expected]


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=6),
    st.fractions(0, 1, max_denominator=6),
    st.integers(2, 4),
)
def test_of_one_column_it_is_recursive_diversity(counts: list[int], bound: Fraction, least: int) -> None:
    """C = p/q with E = l − 2 is c = C / (1 − C)."""
    if bound == 1:
        return
    rows: list[Row] = [(value,) for value, n in enumerate(counts) for _ in range(n)]
    column = RuledColumn(0, len(counts), tuple(range(len(counts))), bound)
    met = by_search(RuledOut((column,), least - 2), [rows], 1) == [True]
    # Where fewer values occur than that, some attack leaves nobody: nothing is asked of it, (c, l) says no.
    if sum(n > 0 for n in counts) > least - 1:
        assert met == is_recursive(counts, bound / (1 - bound), least)


def schema() -> Schema:
    columns = (
        SensitiveColumn("s0", tuple("abc"), (0,)),
        SensitiveColumn("s1", tuple("abcd"), ()),
        SensitiveColumn("s2", tuple("ab"), (0, 1)),
    )
    return Schema((), "c", ("Y", "N"), columns)


def test_a_demand_is_one_criterion_of_all_sensitive_columns() -> None:
    (criterion,) = DiverseValues(3, (("s2", 1),)).criteria(schema())
    assert criterion.ruled == (
        RuledColumn(0, 3, (0,)),
        RuledColumn(1, 4, ()),
        RuledColumn(2, 2, (0, 1), at_most=1),
    )
    (bound,) = RuledOutValues(2, (("s0", Fraction(1, 2)), ("s2", Fraction(1)))).criteria(schema())
    assert bound.ruled == (
        RuledColumn(0, 3, (0,), Fraction(1, 2)),
        RuledColumn(1, 4, ()),
        RuledColumn(2, 2, ()),
    )
    assert RuledOutValues(1, (("s1", Fraction(1, 2)),)).criteria(schema()) == ()
    assert DiverseValues(3, (("s0", 0), ("s2", 0))).criteria(schema()) == ()


def test_demands_of_nothing_are_refused() -> None:
    with pytest.raises(SchemaError, match="diversity must be at least 2"):
        DiverseValues(1)
    with pytest.raises(SchemaError, match="ruled_out must be at least 1"):
        RuledOutValues(0, ())
