"""Single-holder kd against the definition taken literally, and against its own replay."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.criterion import Criterion
from anonymize.criteria.remainder import Colluders
from anonymize.criteria.size import Size
from anonymize.errors import PrivacyError, SchemaError
from anonymize.kd import rows, single
from anonymize.kd.boxes import whole
from anonymize.kd.fronts import Front, Verdict, cut_fronts
from anonymize.kd.median import MedianHolder
from anonymize.kd.replay import replay
from anonymize.kd.single import KdOutcome, SingleHolder, anonymize_kd
from anonymize.kd.table import boxed
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.table import CodedTable
from anonymize.tds import Observer, run_single
from tests.support import kd_reference
from tests.support.entries import lkc
from tests.support.examples import examples
from tests.support.kd import expect_same_table, kd_cases, loaded, printed, wide_case
from tests.support.tables import Case


@settings(max_examples=examples(150), deadline=None)
@given(kd_cases())
def test_equals_the_definition_taken_literally(case: Case) -> None:
    table, requirement = loaded(case)
    expected = kd_reference.anonymize(list(case.rows), case.problem)
    if expected is None:
        with pytest.raises(PrivacyError) as caught:
            anonymize_kd(table, requirement)
        assert caught.value.error_id == "requirement-unmet"
        return
    outcome = anonymize_kd(table, requirement)
    assert printed(table.schema, outcome.table) == expected


@settings(max_examples=examples(50), deadline=None)
@given(kd_cases())
def test_how_much_is_counted_at_a_time_changes_nothing(case: Case) -> None:
    table, requirement = loaded(case)
    try:
        outcome = anonymize_kd(table, requirement)
    except PrivacyError:
        return
    for bins, few, counts in ((1, 1 << 12, 1 << 22), (1 << 22, -1, 1), (8, 8, 8)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "_MOST_BINS", bins)
            patch.setattr(rows, "_BINS_PER_ROW", 0)
            patch.setattr(rows, "_FEW_BINS", few)
            patch.setattr(single, "_MOST_COUNTS", counts)
            expect_same_table(anonymize_kd(table, requirement).table, outcome.table)


def test_equals_the_definition_on_a_wider_table() -> None:
    """Long runs of siblings, deep taxonomies, grids of many cells, far more groups than a small table has."""
    case = wide_case(1500)
    table, requirement = loaded(case)
    outcome = anonymize_kd(table, requirement)
    expected = kd_reference.anonymize(list(case.rows), case.problem)
    assert printed(table.schema, outcome.table) == expected
    assert outcome.table.n_groups > 100
    assert any("|" in label for labels, _ in expected for label in labels)


def test_fewer_records_than_twice_k_are_one_group() -> None:
    table, _ = loaded(wide_case(19))
    outcome = anonymize_kd(table, lkc(4, 10))
    assert outcome.table.n_groups == 1
    assert np.array_equal(outcome.table.boxes.last, whole(table.schema).last)
    assert outcome.group.tolist() == [0] * len(table.weights)


def test_observers_are_told_of_fronts() -> None:
    told = []

    class Telling(Observer):
        def front(self, number: int, n_open: int, n_cut: int) -> None:
            told.append((number, n_open, n_cut))

    table, requirement = loaded(wide_case(200))
    anonymize_kd(table, requirement, Telling())
    assert told[0] == (1, 1, 1)
    assert [number for number, _, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][2] == 0 or told[-1][1] >= told[-1][2]


@pytest.mark.parametrize(
    ("requirement", "word"),
    [
        (AskedList((Ask(3, (Size(2),)),)), "L: all"),
        (AskedList((Ask(4, (Size(2),)), Ask(4, (Size(3),)))), "a single entry"),
        (AskedList((Ask(4, (Size(2),), ("q0", "n0")),)), "without `columns`"),
        (AskedList((Ask(4, (Size(2), Colluders(1, (Size(2),)))),)), "records only"),
        (AskedList((Ask(4, (Size(2),)),), insider=True), "insider"),
    ],
)
def test_what_kd_does_not_take_is_refused(requirement: AskedList, word: str) -> None:
    table, _ = loaded(wide_case(20))
    schema = dataclasses.replace(table.schema, parties=("a", "b"))
    with pytest.raises(SchemaError, match=word) as caught:
        anonymize_kd(dataclasses.replace(table, schema=schema), requirement)
    assert caught.value.remedy


@settings(max_examples=examples(100), deadline=None)
@given(kd_cases())
def test_medians_equal_the_definition_taken_literally(case: Case) -> None:
    table, requirement = loaded(case)
    expected = kd_reference.anonymize(list(case.rows), case.problem, median=True)
    if expected is None:
        with pytest.raises(PrivacyError):
            anonymize_kd(table, requirement, holder=MedianHolder)
        return
    outcome = anonymize_kd(table, requirement, holder=MedianHolder)
    assert printed(table.schema, outcome.table) == expected
    expect_rows_in_their_boxes(table, outcome)


@pytest.mark.more
def test_medians_of_a_wider_table() -> None:
    case = wide_case(700)
    table, requirement = loaded(case)
    outcome = anonymize_kd(table, requirement, holder=MedianHolder)
    assert printed(table.schema, outcome.table) == kd_reference.anonymize(
        list(case.rows), case.problem, median=True
    )
    assert outcome.table.n_groups > 50


@settings(max_examples=examples(80), deadline=None)
@given(kd_cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_how_they_are_joined_change_nothing(case: Case, coins: object) -> None:
    table, requirement = loaded(case)
    try:
        outcome = anonymize_kd(table, requirement)
    except PrivacyError:
        return
    order = np.repeat(np.arange(len(table.weights)), table.weights)
    coins.shuffle(order)  # type: ignore[attr-defined]
    units = dataclasses.replace(table.some(order), weights=np.ones(len(order), dtype=np.int64))
    for other in (units, units.collapsed()):
        again = anonymize_kd(other, requirement)
        expect_same_table(again.table, outcome.table)
        expect_rows_in_their_boxes(other, again)


def expect_rows_in_their_boxes(table: CodedTable, outcome: KdOutcome) -> None:
    codes = np.stack([column.astype(np.int64) for column in table.qid])
    own = outcome.table.boxes.some(outcome.group)
    assert ((own.first <= codes) & (codes < own.last)).all()
    keys = outcome.table.group * table.schema.n_cells + outcome.table.cell
    assert np.isin(outcome.group * table.schema.n_cells + table.cells, keys).all()


@settings(max_examples=examples(120), deadline=None)
@given(kd_cases(), st.sampled_from([None, 1, 3, 8]))
def test_every_decision_follows_from_the_release(case: Case, width: int | None) -> None:
    table, requirement = loaded(case)
    try:
        outcome = anonymize_kd(table, requirement)
    except PrivacyError:
        return
    seen: list[tuple[Front, Verdict]] = []
    (entry,) = requirement.entries(table.schema)
    holder = Recorded(table, entry.criteria, seen, width)
    run_single(cut_fronts(holder, Observer()))
    replayed = list(replay(table.schema, outcome.table, case.problem.K, lambda _: width))
    assert len(replayed) == len(seen)
    for again, (front, verdict) in zip(replayed, seen, strict=True):
        for name in ("sizes", "columns", "at"):
            assert np.array_equal(getattr(again.front, name), getattr(front, name))
        assert np.array_equal(again.verdict.taken, verdict.taken)
        assert np.array_equal(again.verdict.left, verdict.left)
    boxes, _ = holder.fronts.final
    expect_same_table(boxed(table, boxes, holder.group)[0], outcome.table)


class Recorded(SingleHolder):
    """Remembers what was decided; takes fronts of another width."""

    def __init__(
        self,
        table: CodedTable,
        criteria: Sequence[Criterion],
        seen: list[tuple[Front, Verdict]],
        width: int | None,
    ) -> None:
        super().__init__(table, criteria)
        self._seen = seen
        self._width = width

    def next(self) -> Front | None:
        return self.fronts.next(self._width)

    def apply(self, front: Front, verdict: Verdict) -> None:
        self._seen.append((front, verdict))
        super().apply(front, verdict)
