"""Tags compared by sorting: as sets of tuples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crypto.tags import ascend, ascending_order, matches

words = st.tuples(st.integers(0, 2), st.integers(0, 3))
unique = st.lists(words, unique=True, max_size=9)


def array(tags: list[tuple[int, int]]) -> np.ndarray:
    return np.array(tags, dtype=np.uint64).reshape(-1, 2)


@given(ours=unique, theirs=st.lists(words, max_size=9))
def test_matching_is_exact_where_first_words_are_equal(
    ours: list[tuple[int, int]], theirs: list[tuple[int, int]]
) -> None:
    positions, common = matches(array(ours), array(theirs))
    assert [ours[i] for i in positions] == [tag for tag in theirs if tag in ours]
    assert common.tolist() == [tag in ours for tag in theirs]


def test_matching_goes_on_behind_an_equal_first_word() -> None:
    positions, common = matches(
        array([(7, 3), (7, 1), (9, 9), (7, 2)]), array([(7, 2), (7, 3), (7, 4), (8, 0)])
    )
    assert (positions.tolist(), common.tolist()) == ([3, 0], [1, 1, 0, 0])


@given(st.lists(words, max_size=9))
def test_order(tags: list[tuple[int, int]]) -> None:
    assert [tags[i] for i in ascending_order(array(tags))] == sorted(tags)
    assert ascend(array(tags)) == (tags == sorted(set(tags)))
