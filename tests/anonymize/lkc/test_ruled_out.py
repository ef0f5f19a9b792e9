"""Values that somebody rules out, in top-down runs and kd of one holder, against the definition taken literally."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.kd.single import anonymize_kd
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from tests.support import jobs, kd_reference, reference
from tests.support.entries import ruled_lists
from tests.support.examples import examples
from tests.support.kd import kd_cases, printed
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), data=st.data(), insider=st.booleans())
def test_top_down_equals_the_definition_taken_literally(
    case: Case, data: st.DataObject, insider: bool
) -> None:
    assume(case.problem.sensitive)
    requirement, problem = data.draw(ruled_lists(case, insider=insider))
    bundle = jobs.bundle_of(case.fields)
    table, goal = jobs.coded(bundle, case.rows), PUBLISHED[bundle.job.goal]
    expected = reference.anonymize(list(case.rows), problem)
    if expected is None:
        with pytest.raises(PrivacyError, match="already violates"):
            anonymize_single(table, requirement, goal)
        return
    outcome = anonymize_single(table, requirement, goal)
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release_of_rows(table, outcome.cut)) == Counter(expected[1])


@settings(max_examples=examples(60), deadline=None)
@given(case=kd_cases(), data=st.data())
def test_kd_equals_the_definition_taken_literally(case: Case, data: st.DataObject) -> None:
    assume(case.problem.sensitive)
    requirement, problem = data.draw(ruled_lists(case, most=3))
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    expected = kd_reference.anonymize(list(case.rows), problem)
    if expected is None:
        with pytest.raises(PrivacyError, match="already violates"):
            anonymize_kd(table, requirement)
        return
    assert printed(table.schema, anonymize_kd(table, requirement).table) == expected
