"""Which groups a turn has to test: names of sets of records that last, and plans of some groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonymize.lkc.plan import GroupPlan, plan_groups
from anonymize.lkc.single import anonymize_alone
from anonymize.partition import LocalRecords, fully_generalized, refine
from anonymize.record_sets import RecordSets
from anonymize.table import Ints
from tests.support.horizontal import small_case, small_lkc, whole_of

Turn = tuple[GroupPlan, LocalRecords, Ints, RecordSets]
"""The plan of what is about to be applied, the records, the leaf partition of each, the names."""


def turns() -> Iterator[Turn]:
    """Every turn of the small case before it is applied; what is yielded is good until the next one."""
    tables, request = small_case()
    whole, requirement = whole_of(tables), small_lkc(2, 3)
    entries = requirement.entries(whole.schema)
    counts = np.bincount(whole.cells, whole.weights, whole.schema.n_cells).astype(np.int64)
    table = fully_generalized(len(whole.schema.qid), counts)
    sets, records = RecordSets(table), LocalRecords(whole, whole.cells, table)
    for candidate in anonymize_alone(whole, requirement, request.goal).applied:
        plan = plan_groups(whole.schema, entries, table, candidate, sets.names)
        yield plan, records, table.partition[records.entry], sets
        refinement = refine(table, candidate, records.counts(candidate, table.entries_of(candidate)))
        records.follow(candidate, refinement)
        sets.follow(table, refinement)
        table = refinement.table


def test_equal_sets_of_records_keep_their_name_and_others_have_another() -> None:
    by_name: dict[int, frozenset[int]] = {}
    by_set: dict[frozenset[int], int] = {}
    for _, _, partition, sets in turns():
        parts = [np.flatnonzero(partition == p) for p in range(len(sets.names))]
        chosen = [(i,) for i in range(len(parts))] + [(i, j) for i in range(len(parts)) for j in range(i)]
        chosen.append(tuple(range(len(parts))))
        for some in chosen:
            rows = frozenset(np.concatenate([parts[i] for i in some]).tolist())
            name = int(sum(int(sets.names[i]) for i in some) % 2**64)
            assert by_name.setdefault(name, rows) == rows
            assert by_set.setdefault(rows, name) == name
    assert len(by_set) > 20


def test_a_plan_of_some_groups_has_their_sums_and_tests() -> None:
    rng = np.random.default_rng(1)
    for plan, _, _, _ in turns():
        chosen = rng.random(plan.n_groups) < 0.5
        some = plan.among(chosen)
        assert np.array_equal(some.names, plan.names[chosen])
        assert np.array_equal(some.sizes, plan.sizes[chosen])
        for criterion in plan.criteria:
            assert np.array_equal(some.at_stake(criterion), plan.at_stake(criterion)[chosen])


def test_rows_are_tallied_as_counts_are() -> None:
    rng = np.random.default_rng(2)
    for plan, records, _, _ in turns():
        entries = np.unique(records.entry[records.members(plan.candidate)[0]])
        counts = records.counts(plan.candidate, entries)
        rows, n_children = records.placed(plan.candidate, entries), len(plan.candidate.children)
        sums = plan.sums_of_cells(counts[:, :-1])
        assert np.array_equal(plan.tallied(*rows, n_children)[:, :-1], sums)
        chosen = rng.random(plan.n_groups) < 0.5
        some = plan.among(chosen)
        assert np.array_equal(some.sums_of_cells(counts[:, :-1]), sums[chosen])
        assert np.array_equal(some.tallied(*rows, n_children)[:, :-1], sums[chosen])
        assert sums.any()
