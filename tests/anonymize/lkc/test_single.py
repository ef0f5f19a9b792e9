"""Single-holder LKC against the slow reference, the independent verifier and the thesis' example."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from hypothesis import given, settings

from anonymize.errors import PrivacyError
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from anonymize.verification.tables import Claim, verify_cells, verify_lkc
from tests.support import jobs, reference
from tests.support.entries import claim
from tests.support.examples import examples
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases


def claim_of(case: Case) -> Claim:
    return claim(list(case.problem.qid), case.problem.L, case.problem.K, case.problem.sensitive)


@settings(max_examples=examples(120), deadline=None)
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
    assert verify_lkc(release, claim_of(case)) is None


@settings(max_examples=examples(80), deadline=None)
@given(cases())
def test_insiders_are_held_to_c_in_every_cell(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    requirement = dataclasses.replace(jobs.requirement_of(bundle), insider=True)
    expected = reference.anonymize(list(case.rows), dataclasses.replace(case.problem, insider=True))
    if expected is None:
        with pytest.raises(PrivacyError) as caught:
            anonymize_single(table, requirement, PUBLISHED[bundle.job.goal])
        assert caught.value.error_id == "requirement-unmet"
        return
    outcome = anonymize_single(table, requirement, PUBLISHED[bundle.job.goal])
    assert jobs.turns(outcome) == expected[0]
    release = release_of_rows(table, outcome.cut)
    assert jobs.multiset(release) == Counter(expected[1])
    columns = [*case.problem.qid, *([case.problem.class_name] if case.problem.class_name else [])]
    assert verify_cells(release, columns, claim_of(case)) is None
