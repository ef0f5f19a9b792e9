"""Requirements of several entries in every joint form of LKC: the result is that of a single holder."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.lkc.single import anonymize_single
from tests.support import jobs, vertical
from tests.support.entries import asked_lists
from tests.support.examples import examples
from tests.support.horizontal import expect_same, run_led, run_sealed
from tests.support.tables import Case, cases, dealt


@pytest.mark.some(1)
@pytest.mark.parametrize("level", ["leader", "sealed"])
@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), data=st.data())
def test_a_horizontal_run_equals_the_single_holder(level: str, case: Case, data: st.DataObject) -> None:
    requirement, _ = data.draw(asked_lists(case))
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = 3 if level == "leader" else data.draw(st.sampled_from([2, 3]))
    tables = dealt(data, whole, n)
    request = replace(jobs.request_of(bundle), requirement=requirement)
    run = run_led if level == "leader" else run_sealed
    try:
        outcome = anonymize_single(whole, requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates K"):
            run(tables, request)
        return
    results, _ = run(tables, request)
    expect_same(results, outcome, whole)


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), data=st.data())
def test_a_vertical_run_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    requirement, _ = data.draw(asked_lists(case, insider=data.draw(st.booleans())))
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    vertical.expect_as_alone(data, whole, replace(jobs.request_of(bundle), requirement=requirement))
