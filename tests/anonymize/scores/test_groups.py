"""The nodes with most records first: against the definition on rows, and in every mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import child_counts
from anonymize.errors import PrivacyError
from anonymize.joint.lkc.scores.groups import JointRecords
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from anonymize.scores.groups import Records
from tests.support import jobs, reference
from tests.support.examples import examples
from tests.support.horizontal import run_led, run_sealed, run_strict
from tests.support.tables import Case, cases, dealt
from tests.support.vertical import MAXIMA, drawn_cut, expect_same, run_vertical

GENERAL = cases(max_rows=30).filter(lambda case: case.problem.goal == "general")


@settings(max_examples=examples(80), deadline=None)
@given(case=GENERAL)
def test_equals_the_definition_taken_literally(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    expected = reference.anonymize(list(case.rows), replace(case.problem, power=1))
    if expected is None:
        with pytest.raises(PrivacyError):
            anonymize_single(table, jobs.requirement_of(bundle), Records())
        return
    outcome = anonymize_single(table, jobs.requirement_of(bundle), Records())
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release_of_rows(table, outcome.cut)) == Counter(expected[1])
    for step in outcome.steps:
        if step.applied and not step.naming:
            histogram = table.class_histogram(step.candidate.column)
            n_inside = int(child_counts(step.candidate.children, histogram).sum())
            assert Records().published(step, histogram) == (n_inside / table.n_records, n_inside)


@settings(max_examples=examples(20), deadline=None)
@given(case=GENERAL, data=st.data())
def test_joint_runs_equal_the_single_holder(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    request = replace(jobs.request_of(bundle), goal=JointRecords())
    try:
        expected = anonymize_single(whole, request.requirement, request.goal)
    except PrivacyError:
        return
    applied = [(s.candidate, s.score) for s in expected.steps if s.applied]
    parts = dealt(data, whole, data.draw(st.integers(2, 3)))
    for run in (run_sealed, run_strict, *([run_led] if len(parts) > 2 else [])):
        for result in run(parts, request)[0].values():
            assert [(s.candidate, s.score) for s in result.outcome.steps if s.applied] == applied
    cut = drawn_cut(data, whole, ["a", "b"])
    results, _ = run_vertical(cut, request, maximum=data.draw(st.sampled_from(MAXIMA)))
    expect_same(cut, results, request)
