"""Cubes of leaf counts say what leaf partitions say, whatever of them is kept; and when they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.persons import Persons
from anonymize.criteria.size import Size
from anonymize.cut import Candidate, Cut, top
from anonymize.errors import PrivacyError
from anonymize.lkc import cubes, single
from anonymize.lkc.cubes import CubeTest
from anonymize.lkc.requirement import Ask, AskedList, most_columns
from anonymize.lkc.single import SingleHolder, anonymize_alone
from anonymize.lkc.validity import PartitionTest
from anonymize.partition import GeneralizedTable, LocalRecords, fully_generalized, refine
from anonymize.release import release_of_rows
from anonymize.scores.groups import Groups
from anonymize.scores.infogain import InfoGain
from anonymize.table import CodedTable, Ints, QidColumn, Schema, SensitiveColumn, coded_table
from anonymize.taxonomy import from_nested
from anonymize.tds import Outcome, run_alone
from tests.support import jobs, reference
from tests.support.candidates import candidates_of
from tests.support.entries import asked_lists, lkc
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases

C = {"s": Fraction(1, 2)}
REQUIREMENTS = {
    "L=2": lkc(2, 6, c=C),
    "L=3": lkc(3, 3, c=C),
    "L=4": lkc(4, 2),
    "two entries": AskedList(
        (
            Ask(3, (Size(2), Confidences(bounds=tuple(C.items()))), ("q0", "q1", "q2", "q3")),
            Ask(2, (Size(9),), ("q0", "q3", "q4")),
        )
    ),
    "nothing, and something": AskedList((Ask(2, (Size(1),)), Ask(2, (Size(9),), ("q0", "q3", "q4")))),
}


def made_up(n_rows: int = 400) -> CodedTable:
    """Five columns whose values hang together, two of which lose their children one by one; equal rows joined."""
    rng = np.random.default_rng(5)
    tree = {"*": {"a": {"ab": ["0", "1"], "cd": ["2", "3", "4"]}, "b": ["5", "6", "7"]}}
    flat = {"*": ["0", "1", "2", "3", "4"]}
    qid = [
        QidColumn(f"q{i}", from_nested(values, "q", missing_leaf=False), by_child=i % 2 == 1)
        for i, values in enumerate((tree, flat, tree, flat, tree))
    ]
    hidden = rng.integers(0, 5, n_rows)
    codes = [(hidden + (rng.random(n_rows) < 0.4) * rng.integers(0, 8, n_rows)) % c.n_leaves for c in qid]
    sensitive = SensitiveColumn("s", ("x", "y", "z"), (1, 2))
    schema = Schema(tuple(qid), "c", ("N", "Y"), (sensitive,))
    values = rng.choice(3, n_rows, p=[0.7, 0.2, 0.1])
    return coded_table(schema, codes, (hidden > 2).astype(np.int64), [values], occurring=True).collapsed()


def walk(table: CodedTable, n_steps: int) -> Iterator[tuple[Cut, GeneralizedTable, LocalRecords, Candidate]]:
    """Candidates of cuts that one comes through by applying them, valid or not."""
    rng = np.random.default_rng(9)
    cell_counts = np.bincount(table.cells, table.weights, table.schema.n_cells).astype(np.int64)
    cut, generalized = top(table.schema), fully_generalized(len(table.schema.qid), cell_counts)
    records = LocalRecords(table, table.cells, generalized)
    for _ in range(n_steps):
        candidates = candidates_of(table, cut)
        for candidate in candidates:
            yield cut, generalized, records, candidate
        chosen = candidates[rng.integers(len(candidates))]
        change = refine(generalized, chosen, records.counts(chosen, generalized.entries_of(chosen)))
        records.follow(chosen, change)
        generalized, cut = change.table, cut.specialized(chosen)


@pytest.mark.parametrize("room", [0, 300, 1 << 28], ids=["none kept", "some kept", "all kept"])
@pytest.mark.parametrize("asked", REQUIREMENTS.values(), ids=list(REQUIREMENTS))
def test_one_violation_is_found_by_either(
    monkeypatch: pytest.MonkeyPatch, asked: AskedList, room: int
) -> None:
    monkeypatch.setattr(cubes, "_MOST_BYTES", room)
    table = made_up()
    entries = asked.entries(table.schema)
    by_cube, by_partition = CubeTest(table, entries), PartitionTest(table.schema, entries)
    seen = []
    for cut, generalized, records, candidate in walk(table, 9):
        counts = records.counts(candidate, generalized.entries_of(candidate))
        for n_columns in range(1, most_columns(entries) + 1):
            found = by_cube.violation(cut, candidate, n_columns)
            assert found == by_partition.violation(generalized, candidate, counts, n_columns)
            seen.append((n_columns, found is None))
    assert set(seen) >= {(most_columns(entries), False), (1, True)}


@pytest.mark.parametrize("n_leaves", [(256,), (1, 256), (256, 1), (16, 16), (1, 1), (2, 256), (300, 300)])
def test_numbers_of_cells_that_just_fit_their_type(n_leaves: tuple[int, ...]) -> None:
    trees = ({"*": [f"v{i:03d}" for i in range(n)]} for n in n_leaves)
    qid = tuple(QidColumn("q", from_nested(tree, "q", missing_leaf=False)) for tree in trees)
    codes = [np.arange(900) * (i + 1) % n for i, n in enumerate(n_leaves)]
    schema = Schema(qid, None, ("",))
    table = coded_table(schema, codes, np.zeros(900, dtype=np.int64), [])
    (counts,) = CubeTest(table, lkc(1, 1).entries(schema))._tallied(tuple(range(len(n_leaves))))
    expected = np.zeros(n_leaves, dtype=int)
    np.add.at(expected, tuple(codes), 1)
    assert counts[0].tolist() == expected.tolist()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_what_was_taken_out_of_a_node_does_not_count(axis: int) -> None:
    column = made_up().schema.qid[1]
    gone, *others = (column.children(column.root)[place] for place in (2, 0, 1, 3, 4))
    rest = column.rest_of(column.root, gone)
    counts = np.random.default_rng(1).integers(0, 200, (5, 5, 5)).astype(np.uint8)
    for children in (gone, rest), (others[1], column.rest_of(rest, others[1])), tuple(others):
        found = cubes._by_child(Candidate(1, rest, children), counts, axis)
        expected = np.stack(
            [counts.take(child.leaves, axis).astype(int).sum(axis) for child in children], axis
        )
        assert found.tolist() == expected.tolist()


def test_what_is_settled_or_kept_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[int, ...]] = []
    original = CubeTest._tallied

    def tallied(test: CubeTest, columns: tuple[int, ...]) -> list[Ints]:
        counted.append(columns)
        return original(test, columns)

    monkeypatch.setattr(CubeTest, "_tallied", tallied)
    table = made_up()
    for least in 1, 3:  # all cells are allowed, and some are not
        counted.clear()
        test = CubeTest(table, lkc(3, least).entries(table.schema))
        for cut, _, _, candidate in walk(table, 6):
            test.violation(cut, candidate, 3)
        assert len(counted) == len(set(counted)) > 5


def counting_rows(from_entries: int):  # type: ignore[no-untyped-def]
    """Cubes from when T_g has so many entries on; 0: from the start."""
    at_once = 0 if from_entries else 9
    return mock.patch.multiple(
        single, _MANY_ENTRIES=from_entries, _ROWS_AN_ENTRY=1 << 40, _COUNTED_AT_ONCE=at_once
    )


@pytest.mark.parametrize("asked", REQUIREMENTS.values(), ids=list(REQUIREMENTS))
def test_a_run_is_the_same_whenever_cubes_take_over(asked: AskedList) -> None:
    """By cubes from the start, from when there are some leaf partitions on, and by these alone."""
    made: list[Outcome] = []
    for from_entries in 0, 12, 1 << 40:
        with counting_rows(from_entries):
            made.append(anonymize_alone(made_up(), asked, InfoGain()))
    assert {step.applied for step in made[0].steps} == {True, False}
    assert all((other.cut, other.steps) == (made[0].cut, made[0].steps) for other in made)


@settings(max_examples=60, deadline=None)
@given(case=cases(), data=st.data(), n_entries=st.sampled_from([0, 3]))
def test_equals_the_definition_taken_literally(case: Case, data: st.DataObject, n_entries: int) -> None:
    requirement, problem = data.draw(asked_lists(case))
    bundle = jobs.bundle_of(case.fields)
    table, goal = jobs.coded(bundle, case.rows), PUBLISHED[bundle.job.goal]
    expected = reference.anonymize(list(case.rows), problem)
    with counting_rows(n_entries):
        if expected is None:
            with pytest.raises(PrivacyError):
                anonymize_alone(table, requirement, goal)
            return
        outcome = anonymize_alone(table, requirement, goal)
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release_of_rows(table, outcome.cut)) == Counter(expected[1])


def test_leaf_partitions_are_given_up_where_nothing_looks_at_them() -> None:
    """Not by a score that follows them."""
    table = made_up()
    entries = lkc(3, 3).entries(table.schema)
    with counting_rows(3):
        for goal, kept in ((InfoGain(), False), (Groups(), True)):
            holder = SingleHolder(table, entries, goal, {})
            assert holder._test() is holder._partitions is not None
            for _ in range(3):
                candidate = run_alone(holder.choose())
                assert candidate is not None
                run_alone(holder.apply(candidate))
            assert holder._test() is holder._cubes is not None
            assert (holder._partitions is not None) == kept


@pytest.mark.parametrize(
    ("entries", "fits"),
    [
        (lkc(3, 2, c=C), True),
        (lkc(3, 2, c=C, insider=True), False),
        (AskedList((Ask(3, (Persons(2),)),)), False),
    ],
)
def test_when_they_fit(entries: AskedList, fits: bool) -> None:
    table = made_up()
    assert CubeTest.fits(table, entries.entries(table.schema)) == fits


def test_they_fit_while_they_have_few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 8, 5, 8, 5 and 8 leaves, by C as three tallies."""
    table = made_up()
    entries = lkc(2, 2, c=C).entries(table.schema)
    together = 3 * (3 * 64 + 6 * 40 + 25)
    monkeypatch.setattr(cubes, "_MOST_CELLS", together)
    assert CubeTest.fits(table, entries)
    monkeypatch.setattr(cubes, "_MOST_CELLS", together - 1)
    assert not CubeTest.fits(table, entries)
    monkeypatch.undo()
    monkeypatch.setattr(cubes, "_FEW_CELLS", 3 * 64)
    monkeypatch.setattr(cubes, "_CELLS_A_ROW", 0)
    assert CubeTest.fits(table, entries)
    monkeypatch.setattr(cubes, "_FEW_CELLS", 3 * 64 - 1)
    assert not CubeTest.fits(table, entries)
