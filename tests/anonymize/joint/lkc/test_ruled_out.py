"""Values that somebody rules out, in joint runs of every kind: the result is that of a single holder."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.criteria.ruled_out import DiverseValues
from anonymize.criteria.size import Size
from anonymize.errors import PrivacyError
from anonymize.joint.columns import Columns
from anonymize.kd.single import anonymize_kd
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_alone
from anonymize.release import release_of_counts, release_of_rows
from tests.support import jobs, vertical
from tests.support.entries import ruled_lists
from tests.support.horizontal import expect_same, run_led, run_sealed, run_strict
from tests.support.kd import expect_same_table, kd_cases, run_sealed_kd
from tests.support.tables import Case, cases, dealt

RUNS = {"leader": run_led, "sealed": run_sealed, "strict": run_strict}


@pytest.mark.parametrize("level", RUNS)
@settings(max_examples=30, deadline=None)
@given(case=cases(), data=st.data())
def test_a_horizontal_run_equals_the_single_holder(level: str, case: Case, data: st.DataObject) -> None:
    assume(case.problem.sensitive)
    requirement, _ = data.draw(ruled_lists(case, most=data.draw(st.sampled_from([1, 2]))))
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    tables = dealt(data, whole, 3 if level == "leader" else data.draw(st.sampled_from([2, 3])))
    request = replace(jobs.request_of(bundle), requirement=requirement)
    try:
        outcome = anonymize_alone(whole, requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates"):
            RUNS[level](tables, request)
        return
    results, _ = RUNS[level](tables, request)
    if level != "strict":
        expect_same(results, outcome, whole)
        return
    rows = jobs.multiset(release_of_rows(whole, outcome.cut))
    for result in results.values():  # which tells of no candidate that is discarded
        joint = release_of_counts(result.outcome.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == rows


@settings(max_examples=30, deadline=None)
@given(case=kd_cases(30), data=st.data())
def test_a_sealed_run_of_kd_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    assume(case.problem.sensitive)
    requirement, _ = data.draw(ruled_lists(case, most=data.draw(st.sampled_from([1, 2]))))
    whole = jobs.dense(jobs.coded(jobs.bundle_of(case.fields), case.rows))
    tables = dealt(data, whole, data.draw(st.sampled_from([2, 3])))
    try:
        outcome = anonymize_kd(whole, requirement)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates"):
            run_sealed_kd(tables, requirement)
        return
    results, _ = run_sealed_kd(tables, requirement)
    for result in results.values():
        expect_same_table(result.table, outcome.table)


@settings(max_examples=30, deadline=None)
@given(case=cases(), data=st.data(), insider=st.booleans())
def test_no_vertical_group_has_one_protected_value(case: Case, data: st.DataObject, insider: bool) -> None:
    """`diversity: 2` speaks of one column at a time, so its holder can test it."""
    assume(case.problem.sensitive)
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    asks = (Ask(case.problem.L, (Size(case.problem.K), DiverseValues(2))),)
    names = [f"p{i}" for i in range(data.draw(st.sampled_from([2, 3])))]
    party = st.sampled_from(names)
    columns = Columns(
        tuple(data.draw(party) for _ in whole.schema.qid),
        tuple(data.draw(party) for _ in whole.schema.sensitive),
    )
    cut = vertical.cut_by_columns(whole, columns, names)
    request = replace(jobs.request_of(bundle), requirement=AskedList(asks, insider))
    try:
        anonymize_alone(whole, request.requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError) as caught:
            vertical.run_vertical(cut, request)
        assert caught.value.error_id == "requirement-unmet"
        return
    results, _ = vertical.run_vertical(cut, request)
    vertical.expect_same(cut, results, request)
