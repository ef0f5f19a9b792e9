"""Records collapsed to distinct paths, and the numbers of items."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.errors import SchemaError
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import lost, paths_of, without

DOMAIN = 5
Record = tuple[frozenset[int], int]


@given(
    st.lists(st.tuples(st.frozensets(st.integers(0, DOMAIN - 1)), st.integers(0, 1)), max_size=8),
    st.randoms(use_true_random=False),
)
def test_distinct_paths_with_their_numbers_of_records(records, shuffler) -> None:
    readings = [(r, item) for r, (path, _) in enumerate(records) for item in path]
    readings += shuffler.sample(readings, len(readings) // 2)
    shuffler.shuffle(readings)
    whose, items = np.array(readings, dtype=np.int64).reshape(-1, 2).T
    cells = np.array([cell for _, cell in records], dtype=np.int64)
    paths, number = paths_of(whose, items, cells, DOMAIN)
    assert [(paths.path(n), int(paths.cells[n])) for n in number] == [
        (tuple(sorted(p)), c) for p, c in records
    ]
    found = {(paths.path(r), int(paths.cells[r])): int(paths.weights[r]) for r in range(paths.n_paths)}
    assert found == Counter((tuple(sorted(p)), c) for p, c in records)
    assert len(found) == paths.n_paths
    assert paths.n_records == len(records)
    assert paths.n_instances == sum(len(path) for path, _ in records)
    assert paths.n_empty == sum(not path for path, _ in records)
    assert (paths.items.dtype, paths.starts.dtype, paths.cells.dtype) == (np.int32, np.int64, np.int32)


def test_long_paths_over_a_wide_domain() -> None:
    """Their keys do not fit one word."""
    domain = 1 << 30
    items = np.arange(0, 60_000_000, 1_000_000)
    whose = np.repeat([0, 1, 2], 60)
    all_items = np.concatenate([items, items, np.append(items[:-1], domain - 1)])
    paths, number = paths_of(whose, all_items, np.zeros(3, dtype=np.int64), domain)
    assert sorted(paths.weights.tolist()) == [1, 2]
    assert number[0] == number[1] != number[2]
    assert paths.path(int(number[2])) == (*items[:-1].tolist(), domain - 1)


def test_paths_do_not_print_what_they_hold() -> None:
    paths, _ = paths_of(np.array([0, 0]), np.array([3, 4]), np.array([1]), DOMAIN)
    assert repr(paths) == "Paths(domain=5)"


def test_items_are_numbered_by_time_and_then_by_location() -> None:
    vocabulary = Vocabulary(3, 4, timed=True)
    cells, locations = np.divmod(np.arange(12), 3)
    codes = vocabulary.codes(cells, locations)
    assert codes.tolist() == list(range(12))
    assert vocabulary.cells_of(codes).tolist() == cells.tolist()
    assert vocabulary.locations_of(codes).tolist() == locations.tolist()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1 << 16, 1 << 15)])
def test_no_items_or_too_many(shape: tuple[int, int]) -> None:
    with pytest.raises(SchemaError) as caught:
        Vocabulary(*shape)
    assert caught.value.error_id == "domain-too-large"


@given(
    st.lists(st.frozensets(st.integers(0, DOMAIN - 1)), max_size=6),
    st.randoms(use_true_random=False),
)
def test_what_paths_lost(records, shuffler) -> None:
    readings = [(r, item) for r, path in enumerate(records) for item in path]
    whose, items = np.array(readings, dtype=np.int64).reshape(-1, 2).T
    paths, _ = paths_of(whose, items, np.zeros(len(records), dtype=np.int64), DOMAIN)
    dropped = np.array([shuffler.random() < 0.4 for _ in paths.items], dtype=bool)
    left = without(paths, dropped)
    assert lost(paths, left).tolist() == dropped.tolist()
    gone = iter(dropped.tolist())
    for r in range(paths.n_paths):
        assert left.path(r) == tuple(item for item in paths.path(r) if not next(gone))
