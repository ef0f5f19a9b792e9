"""Which of two lists of tags are the same, and whether tags ascend."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crypto.tags import ascending, matches, ranking

pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=9)


def tags_of(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, dtype=np.uint64).reshape(-1, 2)


@given(pairs)
def test_tags_ascend_as_pairs_do(pairs: list[tuple[int, int]]) -> None:
    assert ascending(tags_of(pairs)) == all(a < b for a, b in itertools.pairwise(pairs))
    assert [pairs[i] for i in ranking(tags_of(pairs))] == sorted(pairs)


@given(st.data())
def test_matching_is_exact_where_first_words_are_equal(data: st.DataObject) -> None:
    words = st.tuples(st.integers(0, 2), st.integers(0, 3))
    ours = data.draw(st.lists(words, unique=True, max_size=9))
    theirs = sorted(data.draw(st.lists(words, unique=True, max_size=9)))
    arrays = [np.array(tags, dtype=np.uint64).reshape(-1, 2) for tags in (ours, theirs)]
    positions, common = matches(*arrays)
    assert [ours[i] for i in positions] == [tag for tag in theirs if tag in ours]
    assert common.tolist() == [tag in ours for tag in theirs]


def test_matching_goes_on_behind_an_equal_first_word() -> None:
    ours = np.array([[7, 3], [7, 1], [9, 9], [7, 2]], dtype=np.uint64)
    theirs = np.array([[7, 2], [7, 3], [7, 4], [8, 0]], dtype=np.uint64)
    positions, common = matches(ours, theirs)
    assert (positions.tolist(), common.tolist()) == ([3, 0], [1, 1, 0, 0])
