"""Groups by qid are the same however they are ranked."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from anonymize import qid_groups
from anonymize.cut import Candidate
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import QidGroups, Scope, distinct_groups
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


@pytest.mark.parametrize("at_once", [1, 100, 1 << 18])
@pytest.mark.parametrize("within", [None, 3])
def test_each_set_of_partitions_has_one_number(
    monkeypatch: pytest.MonkeyPatch, at_once: int, within: int | None
) -> None:
    """In all scopes, however many groups are numbered at once; each number in a single coding."""
    monkeypatch.setattr(qid_groups, "_AT_ONCE", at_once)
    table, partition = made_up()
    scopes = [Scope((0, 1, 2, 3), 3), Scope((0, 1, 2), 2), Scope((0, 3, 4), 2)]
    groups = distinct_groups(table, Candidate(0, Node(0, 1), ()), partition, scopes, within=within)
    expected = [sets_of(table, partition, scope, within) for scope in scopes]
    found: dict[int, set[int]] = {}
    for coding in groups.codings:
        numbers = set(coding.group.tolist()) - {-1}
        assert numbers
        assert not numbers & found.keys()
        found |= {number: set(partition[coding.group == number].tolist()) for number in numbers}
    assert sorted(found) == list(range(groups.n_groups))
    assert (
        len({frozenset(each) for each in found.values()})
        == groups.n_groups
        == len(set(groups.names.tolist()))
    )
    for asked, sets in zip(groups.asked, expected, strict=True):
        assert {frozenset(found[number]) for number in np.flatnonzero(asked).tolist()} == sets


def sets_of(
    table: GeneralizedTable, partition: np.ndarray, scope: Scope, within: int | None
) -> set[frozenset[int]]:
    """Return the sets of partitions that agree on as many columns as a scope allows, by the definition.

    All agree on column 0, the candidate's. A column with a single value tells nothing apart.
    """
    others = [c for c in scope.columns if c and (c == within or len(set(table.nodes[c, partition])) > 1)]
    sets = set()
    for subset in combinations(others, min(scope.size - 1, len(others))):
        if within is None or within in subset:
            values = {p: tuple(table.nodes[list(subset), p].tolist()) for p in set(partition.tolist())}
            sets |= {frozenset(p for p in values if values[p] == value) for value in values.values()}
    return sets


def pairs(codes: list) -> frozenset[tuple[int, int]]:
    """Return the pairs of items that are in one group."""
    return frozenset((i, j) for i, j in combinations(range(len(codes)), 2) if codes[i] == codes[j])
