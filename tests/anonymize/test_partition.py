"""The generalized table: counted once from the top, and refined by counts alone."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import Candidate, Cut, interval_children, top
from anonymize.grid import from_step
from anonymize.partition import GeneralizedTable, LocalRecords, fully_generalized, refine
from anonymize.table import CodedTable, Ints, QidColumn, Schema, coded_table, tally
from tests.support import jobs
from tests.support.candidates import random_candidate, refined_at_random
from tests.support.examples import examples
from tests.support.tables import Case, cases, dealt


def counted(table: CodedTable, cut: Cut) -> Counter[tuple[int, ...]]:
    """From the definition: records by the first leaf of each of their values in the cut, and their cell."""
    found: Counter[tuple[int, ...]] = Counter()
    for row, weight in enumerate(table.weights.tolist()):
        leaves = [int(codes[row]) for codes in table.qid]
        nodes = [
            next(node.first for node in cut.nodes[i] if leaf in node.leaves.tolist())
            for i, leaf in enumerate(leaves)
        ]
        found[(*nodes, int(table.cells[row]))] += weight
    return found


def entries(generalized: GeneralizedTable) -> Counter[tuple[int, ...]]:
    return Counter(
        {
            (*generalized.nodes[:, generalized.partition[i]].tolist(), int(generalized.cell[i])): int(
                generalized.count[i]
            )
            for i in range(generalized.n_entries)
        }
    )


@settings(deadline=None, max_examples=examples(60))
@given(case=cases(), data=st.data())
def test_refined_again_and_again_it_is_what_counting_gives(case: Case, data: st.DataObject) -> None:
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    cut, generalized, records = refined_at_random(table, data)
    expected = counted(table, cut)
    assert entries(generalized) == expected
    assert generalized.n_entries == len(expected)  # none is empty, none stands twice
    assert generalized.n_records == table.n_records
    assert generalized.sizes().sum() == table.n_records
    assert (generalized.sizes() > 0).all()
    assert np.array_equal(tally(records.entry, table.weights, generalized.n_entries), generalized.count)


@settings(deadline=None, max_examples=examples(30))
@given(case=cases(), data=st.data())
def test_parties_follow_by_the_sum_of_their_counts(case: Case, data: st.DataObject) -> None:
    """Each party knows its own records and the sum: all have the table that one holder would have."""
    whole = jobs.dense(jobs.coded(jobs.bundle_of(case.fields), case.rows))
    parts = dealt(data, whole, 2)
    cut, generalized = top(whole.schema), _top(whole)
    held = [LocalRecords(part, part.cells, generalized) for part in parts]
    for _ in range(3):
        candidate = random_candidate(whole, cut, data)
        if candidate is None:
            break
        affected = generalized.entries_of(candidate)
        change = refine(generalized, candidate, sum(r.counts(candidate, affected) for r in held))
        for records in held:
            records.follow(candidate, change)
        generalized, cut = change.table, cut.specialized(candidate)
    assert entries(generalized) == counted(whole, cut)
    own = [tally(r.entry, p.weights, generalized.n_entries) for r, p in zip(held, parts, strict=True)]
    assert np.array_equal(sum(own), generalized.count)


@settings(deadline=None, max_examples=examples(60))
@given(case=cases(), data=st.data(), most=st.sampled_from([0, 1 << 20]))
def test_some_entries_of_a_candidate_are_counted_row_by_row(
    case: Case, data: st.DataObject, most: int
) -> None:
    """Any candidates in any order, with shared or own arrays of entries; also if no count by leaf is kept."""
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anonymize.partition._most_kept", lambda _table: most)
        cut, generalized, records = refined_at_random(table, data)
        shared: dict[tuple[int, int], Ints] = {}
        asked, found = [], []
        for _ in range(4):
            candidate = random_candidate(table, cut, data)
            if candidate is None:
                break
            affected = generalized.entries_of(candidate)
            last = (
                records.entry[records._moved] if records._moved is not None else np.zeros(0, dtype=np.int64)
            )
            some = {
                "all": affected,
                "moved": np.intersect1d(affected, last),
                "shared": shared.setdefault((candidate.column, candidate.node.first), affected),
                "first": affected[: len(affected) // 2],
            }[data.draw(st.sampled_from(["all", "moved", "shared", "first"]))]
            expected = np.zeros((len(some), len(candidate.children)), dtype=np.int64)
            for place, entry in enumerate(some.tolist()):
                for row in np.flatnonzero(records.entry == entry).tolist():
                    leaf = int(table.qid[candidate.column][row])
                    (child,) = [i for i, c in enumerate(candidate.children) if leaf in c.leaves.tolist()]
                    expected[place, child] += table.weights[row]
            assert records.counts(candidate, some).tolist() == expected.tolist()
            asked.append((candidate, some))
            found.append(expected.tolist())
        assert [counts.tolist() for counts in records.counts_of_each(asked)] == found


def _top(table: CodedTable) -> GeneralizedTable:
    return fully_generalized(len(table.schema.qid), tally(table.cells, table.weights, table.schema.n_cells))


AGE = QidColumn("age", from_step(Decimal(0), Decimal(4), Decimal(1), "age"))
SCHEMA = Schema((AGE, AGE), "c", ("y", "n"))


def ages(one: list[int], other: list[int], classes: list[int]) -> CodedTable:
    return coded_table(SCHEMA, [np.array(one), np.array(other)], np.array(classes), [])


def split(cut: Cut, column: int, place: int, n_left: int) -> Candidate:
    node = cut.nodes[column][place]
    return Candidate(column, node, interval_children(node, n_left))


def test_numbers_stay_with_the_first_child_that_has_records() -> None:
    """The order of entries is public and the same at all parties: it is part of what they compute on."""
    table = ages([2, 2, 3, 3], [0, 1, 0, 1], [0, 0, 0, 1])
    generalized, cut = _top(table), top(SCHEMA)
    records = LocalRecords(table, table.cells, generalized)
    assert generalized.cell.tolist() == [0, 1]
    empty_left = split(
        cut, 0, 0, 2
    )  # nobody is on the left: the partition keeps its number under the right child
    change = refine(generalized, empty_left, records.counts(empty_left, generalized.entries_of(empty_left)))
    assert change.table.nodes.tolist() == [[2], [0]]
    assert change.targets.tolist() == [[-1, 0], [-1, 1]]
    records.follow(empty_left, change)
    cut = cut.specialized(empty_left)
    both = split(cut, 0, 1, 1)
    affected = change.table.entries_of(both)
    after = refine(change.table, both, records.counts(both, affected))
    assert after.table.nodes.tolist() == [[2, 3], [0, 0]]
    assert after.targets.tolist() == [[0, 2], [-1, 1]]
    assert after.table.partition.tolist() == [0, 1, 1]
    assert after.table.cell.tolist() == [0, 1, 0]
    assert after.table.count.tolist() == [2, 1, 1]


def test_only_entries_with_the_node_are_refined() -> None:
    table = ages([0, 3, 3], [0, 0, 3], [0, 0, 1])
    cut, generalized = top(SCHEMA), _top(table)
    records = LocalRecords(table, table.cells, generalized)
    first = split(cut, 0, 0, 2)
    change = refine(generalized, first, records.counts(first, generalized.entries_of(first)))
    records.follow(first, change)
    second = split(cut.specialized(first), 0, 1, 1)
    affected = change.table.entries_of(second)
    assert {change.table.nodes[0, p] for p in change.table.partition[affected]} == {2}
    rows, child = records.members(second)
    assert (rows.tolist(), child.tolist()) == ([1, 2], [1, 1])


def test_class_counts_of_a_node_are_taken_over_all_partitions_that_have_it() -> None:
    table = ages([0, 0, 3, 3, 3], [0, 3, 0, 3, 3], [0, 1, 1, 1, 0])
    cut, generalized = top(SCHEMA), _top(table)
    records = LocalRecords(table, table.cells, generalized)
    for column in (0, 1):
        candidate = split(cut, column, 0, 2)
        change = refine(generalized, candidate, records.counts(candidate, generalized.entries_of(candidate)))
        records.follow(candidate, change)
        generalized, cut = change.table, cut.specialized(candidate)
    assert generalized.n_partitions == 4
    assert generalized.class_counts(0, 0, SCHEMA).tolist() == [1, 1]
    assert generalized.class_counts(0, 2, SCHEMA).tolist() == [1, 2]
    assert generalized.class_counts(1, 2, SCHEMA).tolist() == [1, 2]
    assert generalized.class_counts(1, 1, SCHEMA).tolist() == [0, 0]  # no node begins there


def test_a_table_of_nobody() -> None:
    generalized = fully_generalized(2, np.zeros(4, dtype=np.int64))
    assert (generalized.n_records, generalized.n_entries, generalized.n_partitions) == (0, 0, 1)
    candidate = split(top(SCHEMA), 0, 0, 2)
    assert generalized.entries_of(candidate).tolist() == []
