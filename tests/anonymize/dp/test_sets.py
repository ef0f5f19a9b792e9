"""Set-valued columns: numbering of combinations, generalization against its definition, tests and rests."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.cut import Candidate
from anonymize.dp import sets as module
from anonymize.dp.noise import Noise
from anonymize.dp.sets import Combination, SetColumn, Subsets, combination_test
from anonymize.dp.sparse import Filter
from anonymize.table import QidColumn
from anonymize.taxonomy import Node
from tests.support.coins import Quiet
from tests.support.dp_tables import leaf_sets, set_valued
from tests.support.tables import taxonomies


@pytest.mark.parametrize(("n", "most"), [(1, 1), (3, 3), (5, 2), (6, 4), (7, 7)])
def test_subsets_are_numbered_by_size_then_place(n: int, most: int) -> None:
    subsets = Subsets(n, most)
    masks = [sum(1 << i for i in s) for k in range(1, most + 1) for s in combinations(range(n), k)]
    assert subsets.count == len(masks)
    assert sorted(subsets.rank(mask) for mask in masks) == list(range(len(masks)))
    assert all(subsets.unrank(subsets.rank(mask)) == mask for mask in masks)
    sizes = [subsets.unrank(i).bit_count() for i in range(subsets.count)]
    assert sizes == sorted(sizes)


@given(st.integers(1, 64), st.data())
def test_subsets_of_any_size(n: int, data: st.DataObject) -> None:
    subsets = Subsets(n, data.draw(st.integers(1, n)))
    rank = data.draw(st.integers(0, subsets.count - 1))
    assert subsets.rank(subsets.unrank(rank)) == rank
    assert Subsets(64, 3).count == 64 + comb(64, 2) + comb(64, 3)


def column_of(tree: object, sets: list[tuple[int, ...]], max_items: int | None = None) -> SetColumn:
    column = set_valued("s", tree, max_items)  # type: ignore[arg-type]
    return SetColumn(column, leaf_sets(sets), np.ones(len(sets), dtype=np.int64))


def root_of(column: QidColumn) -> Candidate:
    return Candidate(0, column.root, column.children(column.root))


TREE = {"*": {"1*": ["11", "12"], "2*": ["21", "22"]}}
PATIENTS = [(0, 1, 2, 3), (1, 3), (1,), (0, 1), (1,), (0,), (0, 1, 2, 3), (1, 2, 3)]


def labels(state: SetColumn) -> list[str]:
    return [state.label(i) for i in range(state.size)]


def all_values(state: SetColumn) -> list[Combination]:
    """All values; two of them may print alike where two nodes of the taxonomy do."""
    last = state.untested
    return [*state.values, *(map(last.unrank, range(last.count)) if last else ())]


def test_the_thesis_example() -> None:
    """[T] Example 6.3.2: ** → {1*, 2*} leads r3 to r6 to {1*} and r1, r2, r7, r8 to {1*, 2*}; {2*} is empty."""
    column = set_valued("s", TREE)
    state = SetColumn(column, leaf_sets(PATIENTS), np.ones(8, dtype=np.int64))
    state.specialize(root_of(column), Fraction(2), Quiet())  # threshold 1
    assert labels(state) == ["1*", "1*;2*", "*"]
    assert [state.label(v) for v in state.value_of_sets] == ["1*;2*"] * 2 + ["1*"] * 4 + ["1*;2*"] * 2
    assert [v.rest for v in state.values] == [False, False, True]
    one = column.children(column.root)[0]
    state.specialize(Candidate(0, one, column.children(one)), None, Quiet())
    assert state.size == 1 + 3 + 3  # the rest, and for each of two parents 11, 12, {11, 12}
    assert [state.label(v) for v in state.value_of_sets] == [
        "11;12;2*", "12;2*", "12", "11;12", "12", "11", "11;12;2*", "12;2*",
    ]  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[SetColumn, QidColumn, list[tuple[int, ...]]]:
    tree, values = draw(taxonomies("v"))
    most = draw(st.sampled_from([None, 1, 2, 3]))
    leaves = st.sets(st.integers(0, len(values) - 1), min_size=1, max_size=most)
    sets = [tuple(sorted(s)) for s in draw(st.lists(leaves, min_size=1, max_size=12, unique_by=tuple))]
    column = set_valued("s", tree, most)
    records = np.array([draw(st.integers(1, 9)) for _ in sets])
    return SetColumn(column, leaf_sets(sets), records), column, sets


def touched(leaves: tuple[int, ...], cut: list[Node]) -> tuple[Node, ...]:
    return tuple(sorted(n for n in cut if any(n.first <= leaf < n.last for leaf in leaves)))


@given(cases(), st.data())
def test_every_set_has_the_combination_it_touches(
    case: tuple[SetColumn, QidColumn, list[tuple[int, ...]]], data: st.DataObject
) -> None:
    """Or, where that was not frequent enough, the rest of one it touched before."""
    state, column, sets = case
    cut, seen = [column.root], [[column.root]]
    while True:
        open_nodes = [node for node in cut if len(column.children(node)) > 1]
        if not open_nodes or data.draw(st.booleans()):
            break
        node = data.draw(st.sampled_from(open_nodes))
        children = column.children(node)
        last = data.draw(st.integers(0, 3)) == 0
        state.specialize(Candidate(0, node, children), None if last else Fraction(1, 3), Quiet())
        cut = [n for n in cut if n != node] + list(children)
        seen.append(list(cut))
        if last:
            break
    assert state.size > 200 or len(set(all_values(state))) == state.size
    for leaves, value in zip(sets, state.value_of_sets, strict=True):
        assert 0 <= value < state.size
        nodes = touched(leaves, cut)
        if value >= len(state.values):
            assert state.untested is not None
            assert state.untested.unrank(value - len(state.values)).nodes == nodes
        elif not state.values[value].rest:
            assert state.values[value].nodes == nodes
        else:
            assert state.values[value].nodes in [touched(leaves, earlier) for earlier in seen[:-1]]


def test_only_combinations_at_the_threshold_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Occupied or not, whatever the counts are: what is listed is what the test returns."""
    column = set_valued("s", TREE)
    state = SetColumn(column, leaf_sets(PATIENTS), np.ones(8, dtype=np.int64))
    seen = []

    def test(size: int, occupied: Mapping[int, int], test: Filter, noise: Noise) -> dict[int, int]:
        seen.append((size, dict(occupied), test))
        return {1: test.threshold}  # {2*}: empty

    monkeypatch.setattr(module, "sparse_counts", test)
    state.specialize(root_of(column), Fraction(1, 5), Quiet())
    assert seen == [(3, {0: 4, 2: 4}, combination_test(3, Fraction(1, 5)))]
    assert labels(state) == ["2*", "*"]
    assert set(state.value_of_sets) == {1}


def test_no_rest_where_everything_is_listed() -> None:
    column = set_valued("s", {"*": ["a", "b"]})
    state = SetColumn(column, leaf_sets([(0,), (1,), (0, 1)]), np.full(3, 50))
    state.specialize(root_of(column), Fraction(2), Quiet())
    assert labels(state) == ["a", "b", "a;b"]


def test_the_public_bound_on_items() -> None:
    """With at most two items there is no combination of three; a parent of two nodes refines one by one."""
    column = set_valued("s", {"*": {"1": ["a", "b"], "2": ["c", "d"]}}, 2)
    state = SetColumn(column, leaf_sets([(0,), (0, 2), (2, 3)]), np.full(3, 50))
    state.specialize(root_of(column), Fraction(2), Quiet())
    assert labels(state) == ["1", "2", "1;2"]
    one = column.children(column.root)[0]
    state.specialize(Candidate(0, one, column.children(one)), None, Quiet())
    assert labels(state) == ["2", "a", "b", "a;b", "a;2", "b;2"]


@pytest.mark.parametrize("count", [1, 3, 7, 1159, 2**64 - 1])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 200)])
def test_the_threshold_is_the_thesis_or_higher(count: int, epsilon: Fraction) -> None:
    test = combination_test(count, epsilon)
    thesis = int(np.ceil(np.sqrt(2) / float(epsilon)))
    assert test.rate == epsilon
    assert test.threshold >= thesis
    assert (test.threshold == thesis) == (count < 9)


def test_combinations_are_printed_in_taxonomy_order() -> None:
    column = set_valued("s", TREE)
    first, second = column.children(column.root)
    assert Combination(tuple(sorted((second, first)))).label(column) == "1*;2*"
