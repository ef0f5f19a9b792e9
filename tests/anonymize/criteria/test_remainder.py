"""Tests of remainders after colluding parties: the coalitions that must be tested, and agreement of all runs.

The definition is counted here from rows, for every coalition of at most m parties and every set of columns, by code
that has nothing of the product's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.clear import met_by_group
from anonymize.criteria.confidence import Confidence, Confidences
from anonymize.criteria.criterion import RECORDS, Criterion, Demand, Measure, SideInputs, Tally, tallies_of
from anonymize.criteria.distinct import DistinctValues
from anonymize.criteria.remainder import (
    MAX_COALITIONS,
    Colluders,
    OwnCount,
    Remainder,
    check_colluders,
    own_counts,
)
from anonymize.criteria.size import Size
from anonymize.cut import Candidate
from anonymize.errors import PrivacyError, SchemaError
from anonymize.joint.lkc.led import anonymize_led
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.sealed import anonymize_sealed
from anonymize.joint.roster import Roster
from anonymize.lkc.requirement import Ask, AskedList, criteria_of
from anonymize.lkc.single import anonymize_single
from anonymize.partition import fully_generalized
from anonymize.release import release_of_rows
from anonymize.table import CodedTable, Ints
from anonymize.taxonomy import Node
from anonymize.tds import Outcome
from crypto.errors import LocalProtocolError
from crypto.local import Transcript, run_local
from tests.support import jobs
from tests.support.entries import plan_of
from tests.support.examples import examples
from tests.support.horizontal import expect_same, small_case
from tests.support.rng import SeededRng

HALF = Fraction(1, 2)
HIT = Tally(holding=((0, 0),))


# ---- the claim of semantics §10.5: coalitions of one size are enough

Counts = tuple[tuple[int, int], ...]
"""By party its records in a group, and how many of them have the protected value."""


def remainder_is_allowed(rows: Counts, coalition: Sequence[int], least: int, bound: Fraction) -> bool:
    left = [own for party, own in enumerate(rows) if party not in coalition]
    n, hits = sum(n for n, _ in left), sum(hits for _, hits in left)
    return n == 0 or (n >= least and hits <= bound * n)


def coalitions(n_parties: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(n_parties), size) for size in sizes)


def groups_of(rows: Counts, names: Sequence[str]) -> dict[Measure, Ints]:
    """The measures of one group."""
    own = {OwnCount(p, t): rows[i][j] for i, p in enumerate(names) for j, t in enumerate((RECORDS, HIT))}
    whole = {RECORDS: sum(n for n, _ in rows), HIT: sum(hits for _, hits in rows)}
    return {measure: np.array([count]) for measure, count in (whole | own).items()}


@st.composite
def some_rows(draw: st.DrawFn, n_parties: int = 0) -> Counts:
    """Of so many parties, or of any number."""
    n_parties = n_parties or draw(st.integers(2, 5))
    sizes = [draw(st.integers(0, 4)) for _ in range(n_parties)]
    return tuple((size, draw(st.integers(0, size))) for size in sizes)


@settings(max_examples=examples(400), deadline=None)
@given(
    rows=some_rows(), data=st.data(), least=st.integers(1, 6), bound=st.sampled_from([HALF, Fraction(1, 5)])
)
def test_coalitions_of_m_parties_stand_for_all_smaller_ones(
    rows: Counts, data: st.DataObject, least: int, bound: Fraction
) -> None:
    n = len(rows)
    most = data.draw(st.integers(1, n - 1))
    names = tuple(f"p{i}" for i in range(n))
    asked: list[Criterion] = [Size(least), Confidence("s", 0, (0,), bound)]
    counts = groups_of(rows, names)
    by_name = tuple(combinations(names, most))
    met = all(met_by_group(Remainder(c, by_name), counts)[0] for c in asked)
    assert met == all(
        remainder_is_allowed(rows, gone, least, bound) for gone in coalitions(n, range(most + 1))
    )


def test_sizes_between_are_implied_by_two_parties_outside_alone() -> None:
    """Show that m < n is needed: with all n parties gone nothing is left, which allows everything and says
    nothing of fewer.
    """
    rows = ((3, 0), (1, 1))
    assert remainder_is_allowed(rows, (0, 1), 2, HALF)
    assert not remainder_is_allowed(rows, (0,), 2, HALF)
    with pytest.raises(SchemaError, match="at least one must be left"):
        check_colluders(2, 2)


@settings(max_examples=examples(200), deadline=None)
@given(one=some_rows(), data=st.data(), least=st.integers(1, 6))
def test_closed_under_union(one: Counts, data: st.DataObject, least: int) -> None:
    n = len(one)
    other = data.draw(some_rows(n))
    names = tuple(f"p{i}" for i in range(n))
    both = tuple((a + c, b + d) for (a, b), (c, d) in zip(one, other, strict=True))
    by_name = tuple(combinations(names, data.draw(st.integers(1, n - 1))))
    for asked in (Size(least), Confidence("s", 0, (0,), HALF)):
        met = [
            met_by_group(Remainder(asked, by_name), groups_of(rows, names))[0] for rows in (one, other, both)
        ]
        assert met[2] or not (met[0] and met[1])


def test_the_whole_table_may_be_one_partys() -> None:
    """Nothing remains after that party, which is allowed; a table without records is not one."""
    alone = groups_of(((5, 0), (0, 0)), ("a", "b"))
    criterion = Remainder(Size(3), (("a",), ("b",)))
    assert met_by_group(criterion, alone, whole=True).all()
    nobody = groups_of(((0, 0), (0, 0)), ("a", "b"))
    assert met_by_group(criterion, nobody, whole=True).all()
    assert not met_by_group(Size(3), nobody, whole=True).any()


def test_a_form_of_a_remainder_takes_no_more_bits_than_the_form_itself() -> None:
    asked = Confidence("s", 0, (0,), Fraction(1, 5))
    for criterion in (Size(4), asked):
        remainder = Remainder(criterion, (("a", "b"), ("a", "c")))
        bits = {form.bits(1000) for forms in remainder.cases for form in forms}
        assert bits == {form.bits(1000) for forms in criterion.cases for form in forms}
        assert len(remainder.cases) == 2 * len(criterion.cases)


def test_what_a_group_cannot_break_its_remainder_cannot() -> None:
    """Case by case: whatever the coalition, it is the protected value that decides."""
    other = Tally(holding=((0, 1),))
    totals = {RECORDS: np.array([4, 4]), HIT: np.array([0, 1]), other: np.array([0, 0])}
    remainder = Remainder(Confidence("s", 0, (0, 1), HALF), (("a",), ("b",)))
    bounded = [HIT in dict(form.terms) for (form,) in remainder.cases]
    assert bounded.count(True) == bounded.count(False) == 2
    assert remainder.at_stake(totals).tolist() == [[False] * 4, bounded]


def test_too_many_coalitions_are_refused() -> None:
    assert comb(11, 5) > MAX_COALITIONS > comb(10, 5)
    check_colluders(5, 10)
    with pytest.raises(SchemaError, match="more than 256 coalitions"):
        check_colluders(5, 11)


def test_a_holder_shows_nothing_of_its_rows() -> None:
    _, request, whole, party = a_case(2)
    beside = own_counts(criteria_of(asked_of(request, 2, 2, 1).entries(whole.schema)), whole, party)
    assert {repr(each) for each in beside.values()} == {"CountedRows(<private>)"}


# ---- runs


def a_case(n_parties: int, seed: int = 0) -> tuple[list[CodedTable], Request, CodedTable, Ints]:
    """Tables of parties that hold different values, the pooled table, and whose each of its rows is."""
    tables, request = small_case()
    rng = np.random.default_rng(seed)
    rows = jobs.split_among(tables[0], np.zeros(tables[0].n_records, dtype=np.int64), 1)
    whole = _units([*rows, *tables[1:]])
    n = len(whole.weights)
    party = (
        np.where(rng.random(n) < 0.6, whole.qid[0].astype(np.int64), rng.integers(0, n_parties, n))
        % n_parties
    )
    schema = replace(request.schema, parties=tuple(f"p{i}" for i in range(n_parties)))
    whole = replace(whole, schema=schema)
    parts = [jobs.part_of(whole, np.flatnonzero(party == i)).collapsed() for i in range(n_parties)]
    return parts, replace(request, schema=schema), whole, party


def _units(tables: Sequence[CodedTable]) -> CodedTable:
    """The records of all tables as rows of their own."""
    rows = [np.repeat(np.arange(len(t.weights)), t.weights) for t in tables]
    parts = [jobs.part_of(t, own) for t, own in zip(tables, rows, strict=True)]
    qid = tuple(np.concatenate(columns) for columns in zip(*(p.qid for p in parts), strict=True))
    cells = np.concatenate([p.cells for p in parts])
    return CodedTable(tables[0].schema, qid, cells, np.ones(len(cells), dtype=np.int64))


C = Fraction(4, 5)


def asked_of(request: Request, L: int, K: int, most: int, least: int = 1) -> AskedList:
    """least: how many different values; 1 asks nothing."""
    (name,) = (column.name for column in request.schema.sensitive)
    asked: tuple[Demand, ...] = Size(K), Confidences(bounds=((name, C),))
    if least > 1:
        asked = (*asked, DistinctValues(((name, least),)))
    return AskedList((Ask(L, (*asked, Colluders(most, asked)) if most else asked),))


def alone(whole: CodedTable, party: Ints, request: Request) -> Outcome:
    criteria = criteria_of(request.requirement.entries(whole.schema))
    return anonymize_single(
        whole, request.requirement, request.goal, side_inputs=own_counts(criteria, whole, party)
    )


def jointly(
    parts: Sequence[CodedTable], request: Request, run: Any = anonymize_sealed
) -> tuple[dict[str, JointOutcome], Transcript]:
    names = request.schema.parties
    criteria = criteria_of(request.requirement.entries(request.schema))

    def beside(i: int) -> SideInputs:
        return own_counts(criteria, parts[i], np.full(len(parts[i].weights), i))

    level = "sealed" if run is anonymize_sealed else "leader"
    return run_local(
        {
            me: run(
                Roster(me, names, names[0], names[1]),
                parts[i],
                request,
                SeededRng(me),
                mode=f"horizontal/{level}",
                side_inputs=beside(i),
            )
            for i, me in enumerate(names)
        }
    )


def broken(
    outcome: Outcome, whole: CodedTable, party: Ints, L: int, K: int, most: int, least: int = 1
) -> list[Any]:
    """The groups that are not allowed, counted from the published rows by the definition."""
    release = release_of_rows(whole, outcome.cut)
    labels = [[c.labels[code] for code in c.codes] for c in release.columns.values()]
    n_qid, protected = len(whole.schema.qid), whole.schema.sensitive[0]
    values = {protected.domain[i] for i in protected.protected}
    place = list(release.columns).index(protected.name)
    found = []
    for gone in coalitions(len(whole.schema.parties), range(most + 1)):
        rows = [row for row, p in zip(zip(*labels, strict=True), party, strict=True) if p not in gone]
        for columns in chain.from_iterable(combinations(range(n_qid), size) for size in range(L + 1)):
            sizes, hits = Counter[Any](), Counter[Any]()
            for row in rows:
                key = tuple(row[c] for c in columns)
                sizes[key] += 1
                hits[key, row[place]] += 1
            for key, n in sizes.items():
                different = sum(hits[key, value] > 0 for value in protected.domain)
                if n < K or different < least or any(hits[key, value] > C * n for value in values):
                    found.append((gone, columns, key))
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize(("n_parties", "most"), [(2, 1), (3, 1), (3, 2), (4, 2)])
@settings(max_examples=examples(6), deadline=None)
@given(seed=st.integers(0, 2**32), L=st.integers(1, 2), K=st.integers(1, 5), least=st.integers(1, 2))
def test_joint_is_single_and_meets_the_definition(
    n_parties: int, most: int, seed: int, L: int, K: int, least: int
) -> None:
    parts, request, whole, party = a_case(n_parties, seed)
    request = replace(request, requirement=asked_of(request, L, K, most, least))
    try:
        outcome = alone(whole, party, request)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="or colluders"):
            jointly(parts, request)
        return
    results, _ = jointly(parts, request)
    expect_same(results, outcome, whole)
    assert broken(outcome, whole, party, L, K, most, least) == []
    for step in outcome.steps:  # and what was refused could not have been applied
        if not step.applied and step.violation is not None and step.violation.criterion == "colluders":
            later = replace(outcome, cut=outcome.cut.specialized(step.candidate))
            assert broken(later, whole, party, L, K, most, least)


def test_fewer_specializations_the_more_collude() -> None:
    """The case is one where remainders decide."""
    _, request, whole, party = a_case(3)
    made = []
    for most in range(3):
        asked = replace(request, requirement=asked_of(request, 2, 3, most))
        outcome = alone(whole, party, asked)
        assert (broken(outcome, whole, party, 2, 3, 2) == []) == (most == 2)
        made.append(len(outcome.applied))
    assert made[0] > made[1] > made[2] >= 0


def test_groups_are_tested_beside_their_remainders() -> None:
    """Remainders imply it, if own counts are true; who says false ones must not switch off K and C of all."""
    _, request, whole, _ = a_case(3)
    asked = asked_of(request, 2, 3, 1)
    root = fully_generalized(
        2, np.bincount(whole.cells, whole.weights, whole.schema.n_cells).astype(np.int64)
    )
    candidate = Candidate(1, whole.schema.qid[1].root, (Node(0, 4), Node(4, 8)))
    plan = plan_of(whole.schema, asked.entries(whole.schema), root, candidate)
    tested = {criterion.name for criterion in plan.criteria if plan.at_stake(criterion).any()}
    assert tested == {"K", "C", "colluders"}


def test_a_leader_is_refused_what_one_party_has() -> None:
    parts, request, _, _ = a_case(3)
    asked = replace(request, requirement=asked_of(request, 2, 2, 1))
    with pytest.raises(LocalProtocolError, match="what one party has"):
        jointly(parts, asked, anonymize_led)


def test_without_colluders_nothing_changes_on_the_wire() -> None:
    """The same messages, byte for byte, as before parties were told apart."""
    parts, request, _, _ = a_case(3)
    plain = replace(request, requirement=asked_of(request, 2, 2, 0))
    _, told = jointly(parts, plain)
    apart = replace(plain, schema=replace(plain.schema, parties=()))
    names = request.schema.parties
    _, undetermined = run_local(
        {
            me: anonymize_sealed(
                Roster(me, names, names[0], names[1]),
                replace(parts[i], schema=apart.schema),
                apart,
                SeededRng(me),
                mode="horizontal/sealed",
            )
            for i, me in enumerate(names)
        }
    )
    assert told.digest() == undetermined.digest()


def test_the_whole_table_is_held_to_it_too() -> None:
    """Without the largest party fewer than K records are left, although all together have enough."""
    parts, request, whole, party = a_case(2)
    least = min(part.n_records for part in parts)
    request = replace(request, requirement=asked_of(request, 1, least + 1, 1))
    with pytest.raises(PrivacyError, match="already violates colluders") as caught:
        alone(whole, party, request)
    assert "lower colluders" in caught.value.remedy
    with pytest.raises(PrivacyError, match="already violates K, C or colluders"):
        jointly(parts, request)


def test_own_counts_are_what_the_tallies_count_of_one_partys_records() -> None:
    _, request, whole, party = a_case(3)
    criteria = criteria_of(asked_of(request, 2, 2, 2).entries(whole.schema))
    beside: Mapping[Any, Any] = own_counts(criteria, whole, party)
    assert {side.counted for side in beside} == set(tallies_of(criteria))
    rows, keys = np.arange(len(party)), whole.qid[0].astype(np.int64)
    hit = whole.axis(1) == whole.schema.sensitive[0].protected[0]
    for side, data in beside.items():
        mine = party == whole.schema.parties.index(side.name)
        chosen = mine if side.counted == RECORDS else mine & hit
        found = data.count(rows, keys, 4)
        assert found.tolist() == [int((chosen & (keys == key)).sum()) for key in range(4)]


class Lie:
    """So many records, whatever there are."""

    def __init__(self, n_records: int) -> None:
        self._n_records = n_records

    def count(self, rows: Ints, keys: Ints, n_keys: int) -> Ints:
        return np.full(n_keys, self._n_records, dtype=np.int64)


def broken_by(lies: Mapping[str, int], seed: int) -> list[tuple[int, ...]]:
    """The coalitions of one party that some group is broken for, where p2 says that these parties have so many."""
    parts, request, whole, party = a_case(3, seed)
    request = replace(request, requirement=asked_of(request, 2, 3, 1))
    names = request.schema.parties
    criteria = criteria_of(request.requirement.entries(request.schema))

    def beside(number: int) -> SideInputs:
        own = dict(own_counts(criteria, parts[number], np.full(len(parts[number].weights), number)))
        told = {s: Lie(lies[s.name]) for s in own if isinstance(s, OwnCount) and s.name in lies}
        return own | told if number == 2 else own

    results, _ = run_local(
        {
            me: anonymize_sealed(
                Roster(me, names, *names[:2]),
                parts[number],
                request,
                SeededRng(me),
                mode="horizontal/sealed",
                side_inputs=beside(number),
            )
            for number, me in enumerate(names)
        }
    )
    return sorted({gone for gone, _, _ in broken(results["p0"].outcome, whole, party, 2, 3, 1)})


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nobody_has_a_say_in_what_others_have(seed: int) -> None:
    assert broken_by({}, seed) == []
    assert broken_by({"p0": -20, "p1": -20}, seed) == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_who_understates_its_own_switches_off_tests_against_itself_alone(seed: int) -> None:
    """Not what the table promises everybody: K of the groups themselves is tested beside."""
    assert broken_by({"p0": -20, "p1": -20, "p2": -20}, seed) in ([], [(2,)])
