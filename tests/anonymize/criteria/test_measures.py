"""The shape of criteria: one of side counts, people; and one of the whole table, not offered, as a file to add.

Each is written once, and judged by a single holder, by the leader and inside the circuits of the compute pair, none
of which knows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.confidence import NotNegative
from anonymize.criteria.criterion import (
    PERSONS,
    RECORDS,
    Bools,
    Criterion,
    Form,
    Relative,
    SideInputs,
    Tally,
)
from anonymize.criteria.persons import EnoughPersons, PersonOfRow
from anonymize.errors import PrivacyError
from anonymize.joint.columns import Columns
from anonymize.joint.lkc.led import anonymize_led
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.sealed import anonymize_sealed
from anonymize.joint.roster import Roster
from anonymize.lkc.requirement import AskedList, Entry
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_counts, release_of_rows
from anonymize.table import CodedTable, Ints, Schema
from anonymize.tds import Outcome
from crypto.errors import LocalProtocolError
from crypto.local import run_local
from tests.support import jobs
from tests.support.examples import examples
from tests.support.horizontal import small_case, small_lkc
from tests.support.rng import SeededRng
from tests.support.vertical import cut_by_columns, run_vertical


@dataclass(frozen=True)
class Excess:
    """A value's share of a group is at most ``most`` above its share of the table: q·(N·n_v − n·N_v) <= p·n·N."""

    held: Tally
    most: Fraction
    records: int
    of_value: int
    name: ClassVar[str] = "t"
    relief: ClassVar[tuple[str, ...]] = ("raise t",)
    column: ClassVar[None] = None
    search: ClassVar[None] = None
    inference: ClassVar[bool] = True
    rule: ClassVar[NotNegative] = NotNegative()

    @property
    def cases(self) -> tuple[tuple[Form, ...], ...]:
        p, q = self.most.numerator, self.most.denominator
        return ((Form(((RECORDS, p * self.records + q * self.of_value), (self.held, -q * self.records))),),)

    def at_stake(self, totals: Mapping[Tally, Ints], least: int = 1) -> Bools:
        return totals[self.held][:, None] > 0


@dataclass(frozen=True)
class CloseToTheTable:
    """Makes an :class:`Excess` from the counts of the table."""

    held: Tally
    most: Fraction

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return RECORDS, self.held

    def given(self, totals: Mapping[Tally, int]) -> Criterion:
        return Excess(self.held, self.most, totals[RECORDS], totals[self.held])


@dataclass(frozen=True)
class Extended:
    """LKC's one entry and what else is asked."""

    lkc: AskedList
    criteria: tuple[Criterion, ...] = ()
    relative: tuple[Relative, ...] = ()

    def entries(self, schema: Schema) -> tuple[Entry, ...]:
        (entry,) = self.lkc.entries(schema)
        return (replace(entry, criteria=(*entry.criteria, *self.criteria), relative=self.relative),)


def with_persons(table: CodedTable, persons: int, seed: int) -> tuple[CodedTable, Ints]:
    """The records of a table as rows of their own, each with a person."""
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    part = jobs.part_of(table, rows)
    units = replace(part, weights=np.ones(len(rows), dtype=np.int64))
    return units, np.random.default_rng(seed).integers(0, persons, len(rows))


def run_jointly(
    level: str, tables: Sequence[CodedTable], request: Request, besides: Sequence[SideInputs]
) -> dict[str, JointOutcome]:
    names = tuple(f"p{i}" for i in range(len(tables)))

    def party(me: str, table: CodedTable, beside: SideInputs) -> Any:
        run, roster = {
            "leader": (anonymize_led, Roster(me, names, "p0")),
            "sealed": (anonymize_sealed, Roster(me, names, "p0", "p1")),
        }[level]
        return run(roster, table, request, SeededRng(me), mode=f"horizontal/{level}", side_inputs=beside)

    generators = {
        me: party(me, table, beside) for me, table, beside in zip(names, tables, besides, strict=True)
    }
    return run_local(generators)[0]


def expect_equal(results: Mapping[str, JointOutcome], outcome: Outcome, whole: CodedTable) -> None:
    rows = jobs.multiset(release_of_rows(whole, outcome.cut))
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
        joint = release_of_counts(result.outcome.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == rows


def union(tables: Sequence[CodedTable]) -> CodedTable:
    """The rows of all tables, one after the other."""
    first = tables[0]
    qid = tuple(np.concatenate(columns) for columns in zip(*(t.qid for t in tables), strict=True))
    cells, weights = (np.concatenate([getattr(t, name) for t in tables]) for name in ("cells", "weights"))
    return CodedTable(first.schema, qid, cells, weights)


@pytest.mark.some(1)
@pytest.mark.parametrize("level", ["leader", "sealed"])
@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 2**32), persons=st.integers(2, 40), least=st.integers(1, 6))
def test_a_criterion_of_side_counts(level: str, seed: int, persons: int, least: int) -> None:
    """Persons that are nobody else's: the counts of the holders add up to that of the union."""
    tables, request = small_case()
    held = [with_persons(table, persons, seed + i) for i, table in enumerate(tables)]
    units = [table for table, _ in held]
    besides = [{PERSONS: PersonOfRow(person)} for _, person in held]
    everybody = np.concatenate([person + i * persons for i, (_, person) in enumerate(held)])
    whole, beside = union(units), {PERSONS: PersonOfRow(everybody)}
    requirement = Extended(small_lkc(2, 2), (EnoughPersons(least),))
    outcome = anonymize_single(whole, requirement, request.goal, side_inputs=beside)
    results = run_jointly(level, units, replace(request, requirement=requirement), besides)
    expect_equal(results, outcome, whole)
    for n_persons in _persons_of_groups(outcome, whole, everybody, 2):
        assert n_persons >= least


def _persons_of_groups(outcome: Outcome, table: CodedTable, person: Ints, n_columns: int) -> list[int]:
    """Count the persons of every group on all of the first columns, from the rows."""
    nodes = [outcome.cut.positions(c)[table.qid[c]] for c in range(n_columns)]
    groups: dict[tuple[int, ...], set[int]] = {}
    for *key, who in zip(*nodes, person, strict=True):
        groups.setdefault(tuple(map(int, key)), set()).add(int(who))
    return [len(group) for group in groups.values()]


@pytest.mark.some(1)
@pytest.mark.parametrize("level", ["leader", "sealed"])
def test_persons_refuse_what_records_allow(level: str) -> None:
    """One person with all records of a holder: fewer specializations than K alone, and no table for four persons."""
    tables, request = small_case()
    held = [with_persons(table, 1, 0) for table in tables]
    units, besides = [table for table, _ in held], [{PERSONS: PersonOfRow(person)} for _, person in held]
    fewest = {}
    for least in (1, 3):
        requirement = Extended(small_lkc(2, 2), (EnoughPersons(least),))
        results = run_jointly(level, units, replace(request, requirement=requirement), besides)
        fewest[least] = len(results["p0"].outcome.applied)
    assert fewest[3] < fewest[1]
    requirement = Extended(small_lkc(2, 2), (EnoughPersons(4),))
    with pytest.raises(PrivacyError, match="already violates K or C"):
        run_jointly(level, units, replace(request, requirement=requirement), besides)


@pytest.mark.some(3)
@pytest.mark.parametrize("most", [Fraction(0), Fraction(1, 20), Fraction(1, 4)])
@pytest.mark.parametrize("level", ["leader", "sealed"])
def test_a_criterion_of_the_whole_table(level: str, most: Fraction) -> None:
    """Its factors are counts of the table, public once the root is opened."""
    tables, request = small_case()
    held = Tally(holding=((0, 1),))
    requirement = Extended(small_lkc(2, 2), relative=(CloseToTheTable(held, most),))
    whole = union([table for table in tables if table.n_records]).collapsed()
    outcome = anonymize_single(whole, requirement, request.goal)
    alone = anonymize_single(whole, small_lkc(2, 2), request.goal)
    results = run_jointly(level, tables, replace(request, requirement=requirement), [{}] * len(tables))
    expect_equal(results, outcome, whole)
    assert most == Fraction(1, 4) or len(outcome.applied) < len(alone.applied)
    rows = jobs.multiset(release_of_rows(whole, outcome.cut))
    share = _shares(rows, lambda row: ())[()]
    for group in _shares(rows, lambda row: row[:2]).values():
        assert group <= share + most


def _shares(rows: Counter[tuple[str, ...]], key: Any) -> dict[Any, Fraction]:
    """By group the share of value y of the sensitive column, the last."""
    sizes, hits = Counter[Any](), Counter[Any]()
    for row, n in rows.items():
        sizes[key(row)] += n
        hits[key(row)] += n * (row[-1] == "y")
    return {group: Fraction(hits[group], n) for group, n in sizes.items()}


@pytest.mark.parametrize(
    "asked", [{"criteria": (EnoughPersons(2),)}, {"relative": (CloseToTheTable(RECORDS, Fraction(1)),)}]
)
def test_a_vertical_run_refuses_both(asked: dict[str, Any]) -> None:
    tables, request = small_case()
    cut = cut_by_columns(union(tables), Columns(("a", "b"), ("b",)), ["a", "b"])
    with pytest.raises(LocalProtocolError, match="neither side counts nor counts of the whole table"):
        run_vertical(cut, replace(request, requirement=Extended(small_lkc(2, 2), **asked)))
