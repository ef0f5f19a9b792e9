"""Sealed kd: the single holder's table, and nothing opened that the release does not tell."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.clear import InTheClear
from anonymize.criteria.confidence import Confidence
from anonymize.criteria.criterion import RECORDS, Criterion, Demand, tallies_of
from anonymize.criteria.distinct import Distinct, DistinctValues
from anonymize.criteria.ruled_out import DiverseValues, RuledOutValues
from anonymize.criteria.size import Size
from anonymize.errors import PrivacyError, SchemaError
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.kd import cells, sealed
from anonymize.kd.single import anonymize_kd
from anonymize.kd.table import BoxedTable
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.table import CodedTable, Ints, joined
from anonymize.tds import Observer
from crypto.circuit import To
from tests.support import jobs
from tests.support.computations import Computed
from tests.support.entries import lkc
from tests.support.examples import examples
from tests.support.horizontal import Revealed, recorded
from tests.support.kd import expect_same_table, kd_cases, loaded, run_sealed_kd, wide_case
from tests.support.kd_told import told_by, told_of_blocks
from tests.support.tables import Case, dealt


@settings(max_examples=examples(60), deadline=None)
@given(case=kd_cases(40), data=st.data())
def test_equals_the_single_holder_and_opens_what_the_release_tells(case: Case, data: st.DataObject) -> None:
    whole, requirement = loaded(case)
    whole = jobs.dense(whole)
    n = data.draw(st.sampled_from([2, 2, 3, 5]))
    tables = dealt(data, whole, n)
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    try:
        outcome = anonymize_kd(whole, requirement)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates K or C"):
            run_sealed_kd(tables, requirement, leader=leader, deputy=deputy)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed, "WIDE_FRONT", data.draw(st.sampled_from([1, 3, 8])))
        patch.setattr(sealed, "MANY_TESTS", data.draw(st.sampled_from([0, 20, 10_000])))
        patch.setattr(cells, "MOST_AT_ONCE", data.draw(st.sampled_from([0, 1 << 22])))
        seen = recorded(patch)
        results, _ = run_sealed_kd(tables, requirement, leader=leader, deputy=deputy)
        for result in results.values():
            expect_same_table(result.table, outcome.table)
            assert result.ledger.reveals == results["p0"].ledger.reveals
        bounds = {name: c for name, (_, c) in case.problem.sensitive.items()}
        told = told_by(whole.schema, results["p0"].table, case.problem.K, bounds)
        assert all(own == told for own in seen)


@pytest.mark.some(1)
@pytest.mark.parametrize("n", [2, 3])
def test_the_cells_of_a_larger_table(n: int) -> None:
    case = wide_case(500)
    whole, requirement = loaded(case)
    tables = jobs.split_among(whole, np.arange(whole.n_records) % n, n)
    outcome = anonymize_kd(whole, requirement)
    results, _ = run_sealed_kd(tables, requirement)
    for result in results.values():
        expect_same_table(result.table, outcome.table)


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_what_is_left_out_of_the_tests_cannot_be_broken(data: st.DataObject) -> None:
    """All ways to cut a group in two sides of none or K: who breaks a case was at stake."""
    n_values, K = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 4))
    counts = data.draw(st.lists(st.integers(0, 4), min_size=n_values, max_size=n_values).filter(any))
    c = data.draw(st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(9, 10)]))
    criteria: list[Criterion] = [
        Confidence("s", 0, tuple(range(n_values)), c),
        Distinct("s", 0, n_values, data.draw(st.integers(2, n_values))),
    ]
    for criterion in criteria:
        tallies = tallies_of([criterion])
        whole = {t: np.array([sum(counts) if t == RECORDS else counts[t.holding[0][1]]]) for t in tallies}
        (at_stake,) = criterion.at_stake(whole, K)
        for part in itertools.product(*(range(n + 1) for n in counts)):
            if 0 < sum(part) < K:
                continue
            own = {t: np.array([sum(part) if t == RECORDS else part[t.holding[0][1]]]) for t in tallies}
            for case, forms in enumerate(criterion.cases):
                (met,) = criterion.rule.met(InTheClear(), [form.of(own) for form in forms])
                assert met or at_stake[case]


@pytest.mark.more
@pytest.mark.parametrize(
    ("demand", "n_pairs"),
    [
        (DistinctValues((("s", 3),)), 3),
        (DiverseValues(2), 2),
        (DiverseValues(3), 2),
        (RuledOutValues(1, (("s", Fraction(3, 4)),)), 2),
    ],
)
def test_other_requirements_are_those_of_kd_as_any_other(
    monkeypatch: pytest.MonkeyPatch, demand: Demand, n_pairs: int
) -> None:
    """In every group values that leave some records, and more groups than a few; and all that is opened is told."""
    monkeypatch.setattr(sealed, "MANY_TESTS", 40)  # so that what could be broken decides how wide a front is
    whole, _ = loaded(wide_case(200))
    requirement = AskedList((Ask(4, (Size(2), demand)),))
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    outcome = anonymize_kd(whole, requirement)
    pairs = set(zip(outcome.table.group.tolist(), outcome.table.cell.tolist(), strict=True))
    assert len(pairs) >= n_pairs * outcome.table.n_groups
    assert outcome.table.n_groups > 10
    assert outcome.table.n_groups < anonymize_kd(whole, lkc(4, 2)).table.n_groups
    seen = recorded(monkeypatch)
    results, _ = run_sealed_kd(tables, requirement)
    for result in results.values():
        expect_same_table(result.table, outcome.table)
    told = told_of_blocks(whole.schema, results["p0"].table, requirement, [(0, 1)])
    assert [own == told for own in seen] == [True] * 3


class Gates(Observer):
    """Counts AND gates."""

    total = 0

    def gates(self, count: int) -> None:
        self.total += count


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("demands", "expected"), [((), 37_867), ((DiverseValues(2),), 169_629), ((DiverseValues(3),), 339_126)]
)
def test_gates(demands: tuple[Demand, ...], expected: int) -> None:
    """A circuit that grows shows, and so does a number that is looked at twice, or a test that need not be made."""
    whole, _ = loaded(wide_case(400))
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    gates = Gates()
    requirement = AskedList((Ask(4, (Size(2), *demands)),))
    run_sealed_kd(tables, requirement, observers={"p0": gates})
    assert gates.total == expected


@pytest.mark.some(1)
@pytest.mark.parametrize("whose", [0, 1, 2])
def test_views_do_not_depend_on_what_is_not_published(revealed: Revealed, whose: int) -> None:
    """Move one party's records inside their boxes, without changing the table: nobody receives another message."""
    whole, requirement = loaded(wide_case(150))
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    results, before = run_sealed_kd(tables, requirement)
    told, changed = revealed[0], 0
    for seed in range(60):
        moved = [
            moved_inside(table, results["p0"].table, seed) if i == whose else table
            for i, table in enumerate(tables)
        ]
        if not same(anonymize_kd(joined(moved), requirement).table, results["p0"].table):
            continue
        changed += 1
        _, after = run_sealed_kd(moved, requirement)
        for party in ("p0", "p1", "p2"):
            assert shapes(after.view(party)) == shapes(before.view(party))
        if changed == 2:
            break
    assert changed == 2
    assert all(seen == told for seen in revealed)


def shapes(view: Any) -> list[tuple[str, str, int]]:
    return [(m.sender, m.step, len(m.payload)) for m in view]


def same(one: BoxedTable, other: BoxedTable) -> bool:
    pairs = [(one.boxes.first, other.boxes.first), (one.boxes.last, other.boxes.last)]
    pairs += [(one.group, other.group), (one.cell, other.cell), (one.count, other.count)]
    return all(np.array_equal(a, b) for a, b in pairs)


def moved_inside(table: CodedTable, released: BoxedTable, seed: int) -> CodedTable:
    """Some records elsewhere in their boxes."""
    rng = np.random.default_rng(seed)
    codes = np.stack([c.astype(np.int64) for c in table.qid])
    for row in rng.choice(codes.shape[1], 3, replace=False).tolist():
        first, last = released.boxes.first, released.boxes.last
        inside = ((first <= codes[:, row, None]) & (codes[:, row, None] < last)).all(axis=0)
        (box,) = np.flatnonzero(inside)
        codes[:, row] = rng.integers(first[:, box], last[:, box])
    qid = tuple(new.astype(old.dtype) for new, old in zip(codes, table.qid, strict=True))
    return CodedTable(table.schema, qid, table.cells, table.weights)


def test_what_leaves_the_circuits(revealed: Revealed, computed: list[Computed]) -> None:
    """The root bit and the numbers of cuts; all else stays in the session."""
    whole, requirement = loaded(wide_case(150))
    run_sealed_kd(jobs.split_among(whole, np.arange(whole.n_records) % 3, 3), requirement)
    out = [batch.out for batch in computed if batch.out]
    assert {name for each in out for name in each} == {("met", To.BOTH), ("first", To.BOTH)}
    firsts = [np.ravel(each["first", To.BOTH]).tolist() for each in out if ("first", To.BOTH) in each]
    taken = [[cut + 1 for cut in value] for name, value, _ in revealed[0] if name == "cut_taken"]
    assert sorted(firsts) == sorted(2 * taken)


def test_what_is_opened_outside_the_circuits(revealed: Revealed) -> None:
    whole, requirement = loaded(wide_case(150))
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    results, transcript = run_sealed_kd(tables, requirement)
    n_groups, n_protected = results["p0"].table.n_groups, 2
    sizes = {"root_counts": 4, "group_counts": 2, "group_cells": 4}
    words = [
        (r.name, n_groups * n_protected if r.name == "same_counts" else int(np.prod(r.shape)))
        for r in results["p0"].ledger.reveals
        if r.name in (*sizes, "same_counts")
    ]
    for sender, recipient in (("p0", "p1"), ("p1", "p0"), ("p0", "p2"), ("p1", "p2")):
        sent = [m for m in transcript.messages if (m.sender, m.recipient) == (sender, recipient)]
        opened = [len(m.payload) for m in sent if m.step == "shares/open"]
        assert opened == [count * sizes.get(name, 4) for name, count in words]
    told = [m.step for m in transcript.view("p2") if m.sender == "p0" and m.step != "shares/open"]
    steps = {"root_check": "kd/root", "cut_taken": "kd/taken"}
    assert told == [steps[name] for name, _, _ in revealed[2] if name in steps]


def test_nothing_is_finer_than_the_table() -> None:
    assert {a.name for a in ALLOWED["horizontal/sealed/kd"] if a.finer} == {"earlier_run"}


def test_fewer_records_than_twice_k_are_opened_as_one_group() -> None:
    whole, _ = loaded(wide_case(19))
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 2, 2)
    results, _ = run_sealed_kd(tables, lkc(4, 10))
    expect_same_table(results["p1"].table, anonymize_kd(whole, lkc(4, 10)).table)
    assert results["p1"].table.n_groups == 1


def test_a_requirement_that_kd_does_not_take_is_refused_before_anything_is_sent() -> None:
    whole, _ = loaded(wide_case(19))
    with pytest.raises(SchemaError, match="L: all"):
        run_sealed_kd(jobs.split_among(whole, np.arange(whole.n_records) % 2, 2), lkc(3, 10))


def test_the_owner_is_told_of_its_records_before_they_are_opened() -> None:
    """And may end the run: nothing of the groups is opened then."""
    told: list[Ints] = []

    class Refusing(Observer):
        def opening_groups(self, own: Ints) -> None:
            told.append(own)
            if len(told) == 4:
                raise PrivacyError("too-many-rows", "no more")

    whole, requirement = loaded(wide_case(200))
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    sent: list[Any] = []

    def watching(message: Any) -> bytes:
        sent.append(message)
        payload: bytes = message.payload
        return payload

    with pytest.raises(PrivacyError, match="no more"):
        run_sealed_kd(tables, requirement, observers={"p2": Refusing()}, tamper=watching)
    assert sum(m.step == "shares/open" and m.recipient == "p2" for m in sent) == 2 * 3  # the root, two fronts
    assert told[0].tolist() == [tables[2].n_records]
    assert all(own.sum() == tables[2].n_records for own in told[:2])
