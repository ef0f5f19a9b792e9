"""Single-holder LKC against the slow reference, the independent verifier and the thesis' example."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from anonymize.errors import PrivacyError
from anonymize.verification import Bound, verify_lkc
from tests.support import jobs, reference
from tests.support.tables import Case, cases


@settings(max_examples=300, deadline=None)
@given(cases())
def test_equals_the_definition_taken_literally(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    expected = reference.anonymize(list(case.rows), case.problem)
    if expected is None:
        with pytest.raises(PrivacyError) as caught:
            jobs.run_single(bundle, table)
        assert caught.value.error_id == "requirement-unmet"
        return
    outcome, release = jobs.run_single(bundle, table)
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release) == Counter(expected[1])
    bounds = [Bound(name, frozenset(v), c) for name, (v, c) in case.problem.sensitive.items()]
    assert verify_lkc(release, list(case.problem.qid), case.problem.L, case.problem.K, bounds) is None
