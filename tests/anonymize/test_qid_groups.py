"""Groups by qid are the same however they are ranked."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from anonymize import qid_groups
from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import QidGroups
from anonymize.taxonomy import Node

N_PARTITIONS, N_COLUMNS = 60, 5


def made_up() -> tuple[GeneralizedTable, np.ndarray]:
    """A table of leaf partitions with nodes that begin far apart, and the partitions of 200 items."""
    rng = np.random.default_rng(3)
    nodes = rng.integers(0, [[2], [5], [3], [40], [1]], (N_COLUMNS, N_PARTITIONS)) * 7
    partition = rng.integers(0, N_PARTITIONS, 200)
    count = np.ones(N_PARTITIONS, dtype=np.int64)
    return GeneralizedTable(nodes, np.arange(N_PARTITIONS), np.zeros_like(count), count), partition


@pytest.mark.parametrize("looked_up", [0, 1, 1 << 10], ids=["sorted", "either", "looked up"])
@pytest.mark.parametrize("n_others", [0, 1, 2, 3, 4])
def test_every_subset_parts_the_items_as_its_values_do(
    monkeypatch: pytest.MonkeyPatch, looked_up: int, n_others: int
) -> None:
    """Unless a part of it tells all partitions apart, and stands for it."""
    monkeypatch.setattr(qid_groups, "_LOOKED_UP", looked_up)
    table, partition = made_up()
    candidate = Candidate(0, Node(0, 1), ())
    groups = QidGroups(table, candidate, partition, range(N_COLUMNS))
    values = table.nodes[:, partition]
    told = [c for c in range(1, N_COLUMNS) if len(set(values[c].tolist())) > 1]
    expected = {
        pairs(values[list(subset)].T.tolist()) for subset in combinations(told, min(n_others, len(told)))
    }
    found = set()
    for codes, n_codes in groups.codings(n_others):
        assert codes.dtype == np.int64
        assert 0 <= codes.min() <= codes.max() < n_codes
        found.add(pairs(codes.tolist()))
    all_apart = pairs(partition.tolist())
    assert found - {all_apart} == expected - {all_apart}
    by_partition = list(groups.of_partitions(n_others))
    some = np.array([5, 3, 199])
    for (codes, _), (of_partition, _) in zip(groups.codings(n_others), by_partition, strict=True):
        assert codes[some].tolist() == of_partition[groups.places(some)].tolist()


def pairs(codes: list) -> frozenset[tuple[int, int]]:
    """Return the pairs of items that are in one group."""
    return frozenset((i, j) for i, j in combinations(range(len(codes)), 2) if codes[i] == codes[j])
