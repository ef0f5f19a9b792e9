"""Validity tests among themselves: pairs, partitions and plans say the same."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.criteria.criterion import inferences
from anonymize.errors import PrivacyError, SchemaError
from anonymize.lkc.requirement import (
    Entry,
    check_root,
    check_sizes,
    criteria_of,
    most_records,
    root_refused,
)
from anonymize.lkc.validity import PairTest, PartitionTest, coarsest_cells
from anonymize.qid_groups import Scope
from anonymize.table import MAX_RECORDS, Schema, SensitiveColumn
from tests.support import jobs
from tests.support.candidates import random_candidate, refined_at_random
from tests.support.entries import lkc, plan_of
from tests.support.examples import examples
from tests.support.tables import Case, cases


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(), data=st.data())
def test_all_ways_to_test_agree(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    schema, asked = table.schema, jobs.requirement_of(bundle)
    (ask,) = asked.asks
    ask = dataclasses.replace(ask, max_known=min(ask.max_known, 2))
    requirement = dataclasses.replace(asked, asks=(ask,))
    entries = requirement.entries(schema)
    cut, generalized, records = refined_at_random(table, data)
    candidate = random_candidate(table, cut, data)
    assume(candidate is not None)
    counts = records.counts(candidate, generalized.entries_of(candidate))
    n_columns = min(ask.max_known, len(schema.qid))
    by_partition = PartitionTest(schema, entries).violation(generalized, candidate, counts, n_columns)
    by_pair = PairTest(table, entries).violation(cut, candidate, n_columns)
    plan = plan_of(schema, entries, generalized, candidate)
    by_plan = plan.violation(plan.sums(counts))
    assert (by_partition is None) == (by_pair is None) == (by_plan is None)


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(), data=st.data())
def test_the_violation_of_pairs_is_that_of_the_first_partner(case: Case, data: st.DataObject) -> None:
    """All partners are counted at once; the reported criterion is that of the partners one by one."""
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    (entry,) = jobs.requirement_of(bundle).entries(table.schema)
    cut, _, _ = refined_at_random(table, data)
    candidate = random_candidate(table, cut, data)
    assume(candidate is not None)

    def of(*columns: int) -> tuple[str, str | None] | None:
        some = dataclasses.replace(entry, scope=Scope(tuple(sorted(columns)), 2))
        found = PairTest(table, [some]).violation(cut, candidate, 2)
        return found and (found.criterion, found.column)

    column = candidate.column
    partners = [other for other in range(len(table.qid)) if other != column and cut.is_refined(other)]
    one_by_one = (of(column, other) for other in partners) if partners else (of(column),)
    assert of(*range(len(table.qid))) == next((found for found in one_by_one if found), None)


@settings(max_examples=examples(50), deadline=None)
@given(case=cases(), data=st.data())
def test_a_plan_lists_each_group_once_and_sums_are_linear(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    cut, generalized, records = refined_at_random(table, data)
    candidate = random_candidate(table, cut, data)
    assume(candidate is not None)
    counts = records.counts(candidate, generalized.entries_of(candidate))
    entries = jobs.requirement_of(bundle).entries(table.schema)
    plan = plan_of(table.schema, entries, generalized, candidate)
    sums = plan.sums(counts)
    assert sums.shape == plan.shape
    assert (plan.sums(2 * counts) == 2 * sums).all()
    assert (plan.sums(counts) + plan.sums(counts * 0) == sums).all()
    assert (sums[:, :, 0].sum(axis=1) <= plan.sizes).all()
    assert (plan.sizes > 0).all()


def test_coarsest_cells_tell_protected_values_apart() -> None:
    schema = Schema(
        (),
        "c",
        ("Y", "N"),
        (
            SensitiveColumn("s", ("a", "b", "c"), (1, 2)),
            SensitiveColumn("t", ("x", "y"), (0,)),
        ),
    )
    c = {"s": Fraction(1, 2)}
    groups = coarsest_cells(schema, lkc(1, 1, c=c).entries(schema)).reshape(schema.cell_shape)
    assert len(np.unique(groups)) == 3  # neither b nor c, b, c; class and the unbounded column tell nothing
    assert (groups[:, 0] == groups[0, 0, 0]).all()
    assert groups[0, 1, 0] != groups[0, 2, 0] != groups[0, 0, 0]
    assert [c.column for c in inferences(criteria_of(lkc(1, 1, c=c).entries(schema)))] == ["s"]
    toward_insiders = coarsest_cells(schema, lkc(1, 1, insider=True, c=c).entries(schema)).reshape(
        schema.cell_shape
    )
    assert len(np.unique(toward_insiders)) == 6
    assert (toward_insiders[:, :, 0] == toward_insiders[:, :, 1]).all()


def test_root_check_toward_insiders_goes_class_by_class() -> None:
    schema = Schema((), "c", ("Y", "N"), (SensitiveColumn("s", ("a", "b"), (0,)),))
    c = {"s": Fraction(1, 2)}
    counts = np.array([[3, 1], [1, 3]])  # of a and b, by class: half of all, three of four in Y
    assert check_root(schema, lkc(1, 8, c=c).entries(schema), counts.ravel()) is None
    found = check_root(schema, lkc(1, 8, insider=True, c=c).entries(schema), counts.ravel())
    assert found is not None
    assert (found.criterion, found.column) == ("C", "s")
    level = np.array([[2, 2], [0, 0]])  # an empty class violates nothing
    assert check_root(schema, lkc(1, 4, insider=True, c=c).entries(schema), level.ravel()) is None


def test_requirements_that_make_no_sense() -> None:
    for l_, k in ((0, 1), (1, 0)):
        with pytest.raises(SchemaError):
            lkc(l_, k)


def asked(c: Fraction | None = None) -> tuple[Entry, ...]:
    """C of a sensitive column; none: there is no such column."""
    columns = () if c is None else (SensitiveColumn("s", ("a",), (0,)),)
    return lkc(1, 1, c=c and {"s": c}).entries(Schema((), None, ("",), columns))


def test_c_with_too_many_digits_for_exact_arithmetic() -> None:
    entries = asked(Fraction(1, 2**40))
    check_sizes(entries, 2**21)
    with pytest.raises(PrivacyError) as caught:
        check_sizes(entries, 2**22)
    assert caught.value.error_id == "confidence-too-fine"
    assert str(caught.value) == "C of column s has too many digits for a table of this size"
    assert caught.value.remedy == "write C with fewer digits, e.g. 0.2 or 1/5"
    with pytest.raises(PrivacyError) as caught:
        check_sizes(asked(), 2**31)
    assert caught.value.error_id == "too-many-rows"


def test_the_greatest_number_of_records() -> None:
    """It is the greatest that check_sizes accepts."""
    for q in (1, 7, 2**31 - 1, 2**31, 2**31 + 1, 10**17, 2**61 + 1):
        entries = asked(Fraction(1, q))
        most = most_records(entries)
        check_sizes(entries, most)
        with pytest.raises(PrivacyError):
            check_sizes(entries, most + 1)
    assert most_records(asked()) == MAX_RECORDS


def test_a_root_that_is_refused_by_one_bit() -> None:
    """The error says what the bit may mean, and what to do first."""
    finest = Fraction(1, (2**62 - 1) // 46)
    usual, fine = root_refused(asked()), root_refused(asked(finest))
    assert "violates K or C, or all parties together have more than 2147483647 rows:" in str(usual)
    assert "more than 46 rows, the most that C with so many digits allows" in str(fine)
    assert usual.remedy.startswith("lower K")
    assert fine.remedy.startswith("write C with fewer digits")
    assert usual.error_id == fine.error_id == "requirement-unmet"
