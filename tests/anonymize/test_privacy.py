"""Validity tests among themselves: pairs, partitions and plans say the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.candidates import profile, propose
from anonymize.cut import Cut, top
from anonymize.errors import PrivacyError, SchemaError
from anonymize.group_plan import plan_groups
from anonymize.partition import GeneralizedTable, LocalRecords, fully_generalized, refine
from anonymize.privacy import (
    Lkc,
    PairTest,
    PartitionTest,
    check_root,
    check_sizes,
    coarsest_cells,
    most_records,
    root_refused,
    sensitive_view,
)
from anonymize.table import MAX_RECORDS, CodedTable, Schema, SensitiveColumn, tally
from tests.support import jobs
from tests.support.tables import Case, cases


def refined_at_random(table: CodedTable, data: st.DataObject) -> tuple[Cut, GeneralizedTable, LocalRecords]:
    """Apply a few candidates, valid or not."""
    schema = table.schema
    generalized = fully_generalized(len(schema.qid), tally(table.cells, table.weights, schema.n_cells))
    records = LocalRecords(table, table.cells, generalized)
    cut = top(schema)
    for _ in range(data.draw(st.integers(0, 5))):
        candidate = random_candidate(table, cut, data)
        if candidate is None:
            break
        change = refine(generalized, candidate, records.counts(candidate, generalized.entries_of(candidate)))
        records.follow(candidate, change)
        generalized, cut = change.table, cut.specialized(candidate)
    return cut, generalized, records


def random_candidate(table: CodedTable, cut: Cut, data: st.DataObject):  # type: ignore[no-untyped-def]
    found = [
        propose(c, column, node, profile(column, node, table.class_histogram(c)), "general")
        for c, column in enumerate(table.schema.qid)
        for node in cut.nodes[c]
    ]
    candidates = [p.candidate for p in found if p is not None]
    return data.draw(st.sampled_from(candidates)) if candidates else None


@settings(max_examples=200, deadline=None)
@given(case=cases(), data=st.data())
def test_all_ways_to_test_agree(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    schema, requirement = table.schema, Lkc(min(bundle.requirement.max_known, 2), bundle.requirement.min_size)
    cut, generalized, records = refined_at_random(table, data)
    candidate = random_candidate(table, cut, data)
    assume(candidate is not None)
    counts = records.counts(candidate, generalized.entries_of(candidate))
    n_columns = min(requirement.max_known, len(schema.qid))
    by_partition = PartitionTest(schema, requirement).violation(generalized, candidate, counts, n_columns)
    by_pair = PairTest(table, requirement).violation(cut, candidate, n_columns)
    plan = plan_groups(schema, requirement, generalized, candidate)
    by_plan = plan.violation(schema, requirement, plan.sums(counts))
    assert (by_partition is None) == (by_pair is None) == (by_plan is None)


@settings(max_examples=100, deadline=None)
@given(case=cases(), data=st.data())
def test_a_plan_lists_each_group_once_and_sums_are_linear(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    cut, generalized, records = refined_at_random(table, data)
    candidate = random_candidate(table, cut, data)
    assume(candidate is not None)
    counts = records.counts(candidate, generalized.entries_of(candidate))
    plan = plan_groups(table.schema, bundle.requirement, generalized, candidate)
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
            SensitiveColumn("s", ("a", "b", "c"), (1, 2), Fraction(1, 2)),
            SensitiveColumn("t", ("x", "y"), (0,), Fraction(1)),
        ),
    )
    groups = coarsest_cells(schema, Lkc(1, 1)).reshape(schema.cell_shape)
    assert len(np.unique(groups)) == 3  # neither b nor c, b, c; class and the unbounded column tell nothing
    assert (groups[:, 0] == groups[0, 0, 0]).all()
    assert groups[0, 1, 0] != groups[0, 2, 0] != groups[0, 0, 0]
    assert sensitive_view(schema).columns == (0,)
    toward_insiders = coarsest_cells(schema, Lkc(1, 1, insider=True)).reshape(schema.cell_shape)
    assert len(np.unique(toward_insiders)) == 6
    assert (toward_insiders[:, :, 0] == toward_insiders[:, :, 1]).all()


def test_root_check_toward_insiders_goes_class_by_class() -> None:
    schema = Schema((), "c", ("Y", "N"), (SensitiveColumn("s", ("a", "b"), (0,), Fraction(1, 2)),))
    counts = np.array([[3, 1], [1, 3]])  # of a and b, by class: half of all, three of four in Y
    assert check_root(schema, Lkc(1, 8), counts.ravel()) is None
    found = check_root(schema, Lkc(1, 8, insider=True), counts.ravel())
    assert found is not None
    assert (found.threshold, found.sensitive) == ("C", "s")
    level = np.array([[2, 2], [0, 0]])  # an empty class violates nothing
    assert check_root(schema, Lkc(1, 4, insider=True), level.ravel()) is None


def test_requirements_that_make_no_sense() -> None:
    for l_, k in ((0, 1), (1, 0)):
        with pytest.raises(SchemaError):
            Lkc(l_, k)


def test_c_with_too_many_digits_for_exact_arithmetic() -> None:
    column = SensitiveColumn("s", ("a",), (0,), Fraction(1, 2**40))
    schema = Schema((), None, ("",), (column,))
    check_sizes(schema, 2**21)
    with pytest.raises(PrivacyError) as caught:
        check_sizes(schema, 2**22)
    assert caught.value.error_id == "confidence-too-fine"
    with pytest.raises(PrivacyError) as caught:
        check_sizes(Schema((), None, ("",)), 2**31)
    assert caught.value.error_id == "too-many-rows"


def test_the_greatest_number_of_records() -> None:
    """It is the greatest that check_sizes accepts."""
    for q in (1, 7, 2**31 - 1, 2**31, 2**31 + 1, 10**17, 2**61 + 1):
        schema = Schema((), None, ("",), (SensitiveColumn("s", ("a",), (0,), Fraction(1, q)),))
        most = most_records(schema)
        check_sizes(schema, most)
        with pytest.raises(PrivacyError):
            check_sizes(schema, most + 1)
    assert most_records(Schema((), None, ("",))) == MAX_RECORDS


def test_a_root_that_is_refused_by_one_bit() -> None:
    """What the bit may mean is said, and what to do first."""
    usual, fine = root_refused(MAX_RECORDS), root_refused(46)
    assert "violates K or C, or all parties together have more than 2147483647 rows:" in str(usual)
    assert "more than 46 rows, the most that C with so many digits allows" in str(fine)
    assert usual.remedy.startswith("lower K")
    assert fine.remedy.startswith("write C with fewer digits")
    assert usual.error_id == fine.error_id == "requirement-unmet"
