"""Records as bytes of one width: back and forth, and what none is written as."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.joint.trajectory.rows import RowCoding
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths, paths_of
from crypto.errors import LocalProtocolError

BY_TIME = RowCoding(Vocabulary(300, 4, timed=True), 6, 2, one_place=True)
BY_ITEMS = RowCoding(Vocabulary(300, 4, timed=True), 3, 257)
FEW_ITEMS = RowCoding(Vocabulary(300, 4, timed=True), 2, 257, one_place=True)


def of_records(records: list[tuple[tuple[int, ...], int]], domain: int) -> Paths:
    whose = [i for i, (items, _) in enumerate(records) for _ in items]
    items = [item for items, _ in records for item in items]
    cells = np.array([cell for _, cell in records], dtype=np.int32)
    return paths_of(np.array(whose, dtype=np.int64), np.array(items, dtype=np.int32), cells, domain)[0]


def records_of(paths: Paths) -> list[tuple[tuple[int, ...], int]]:
    found = [(paths.path(r), int(paths.cells[r])) for r in range(paths.n_paths)]
    return sorted(r for r, weight in zip(found, paths.weights.tolist(), strict=True) for _ in range(weight))


@pytest.mark.parametrize(
    ("coding", "width"), [(BY_TIME, 4 * 2 + 1), (BY_ITEMS, 3 * 2 + 2), (FEW_ITEMS, 2 * 2 + 2)]
)
@given(data=st.data())
def test_back_and_forth(coding: RowCoding, width: int, data: st.DataObject) -> None:
    words = coding.vocabulary
    key = (lambda item: item // words.n_locations) if coding.one_place else None
    item = st.sampled_from([0, 1, 254, 255, 256, 299, 300, 301, 899, 900, 1199])
    path = st.lists(item, unique_by=key or (lambda x: x), max_size=min(coding.max_items, words.n_cells))
    cell = st.integers(0, coding.n_cells - 1)
    record = st.tuples(path.map(lambda items: tuple(sorted(items))), cell)
    records = data.draw(st.lists(record, max_size=8))
    rows = coding.encoded(of_records(records, words.n_items))
    assert rows.shape == (len(records), coding.width)
    assert coding.width == width
    assert rows.dtype == np.uint8
    assert records_of(coding.decoded(rows)) == sorted(records)


@pytest.mark.parametrize(
    ("coding", "row"),
    [
        (BY_TIME, [1, 45, 0, 0, 0, 0, 0, 0, 0]),  # place 300 of 0 … 299
        (BY_TIME, [0, 1, 0, 0, 0, 0, 0, 0, 2]),  # cell 2 of 0, 1
        (BY_ITEMS, [4, 177, 0, 0, 0, 0, 0, 0]),  # item 1200 of 0 … 1199
        (BY_ITEMS, [0, 2, 0, 1, 0, 0, 0, 0]),
        (BY_ITEMS, [0, 1, 0, 1, 0, 0, 0, 0]),
        (BY_ITEMS, [0, 1, 0, 0, 0, 2, 0, 0]),
        (BY_ITEMS, [0, 1, 0, 0, 0, 0, 1, 1]),  # cell 257
        (FEW_ITEMS, [0, 1, 0, 2, 0, 0]),  # two places at once
    ],
)
def test_what_no_record_is_written_as(coding: RowCoding, row: list[int]) -> None:
    with pytest.raises(ValueError, match=r"stands for nothing|out of order"):
        coding.decoded(np.array([row], dtype=np.uint8))


def test_more_places_than_a_record_may_have() -> None:
    coding = RowCoding(Vocabulary(200, 3, timed=True), 2, 2, one_place=True)
    assert coding.width == 3 + 1
    with pytest.raises(ValueError, match="more items than a record may have"):
        coding.decoded(np.array([[1, 1, 1, 0]], dtype=np.uint8))
    with pytest.raises(LocalProtocolError, match="more items than a row holds"):
        coding.encoded(of_records([((0, 200, 400), 0)], 600))


def test_two_places_at_once_do_not_fit() -> None:
    for coding in (BY_TIME, FEW_ITEMS):
        with pytest.raises(LocalProtocolError, match="more items than a row holds"):
            coding.encoded(of_records([((0, 1), 0)], 1200))
