"""The cut of a top-down table, followed from the specializations of its report."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from anonymize.errors import PrivacyError
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from anonymize.table import Schema
from jobs.errors import PartyError
from jobs.lkc.cuts import _cuts
from jobs.release.csv import REPORT
from jobs.release.report import printed_step
from tests.support import jobs
from tests.support.examples import examples
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_specializations_lead_to_the_cut_of_a_run(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    table, request = jobs.coded(bundle, case.rows), jobs.request_of(bundle)
    try:
        outcome = anonymize_single(table, request.requirement, PUBLISHED[bundle.job.goal])
    except PrivacyError:
        return
    schema, release = Schema(table.schema.qid, None, ("",)), release_of_rows(table, outcome.cut)
    told = [printed_step(table.schema, step) for step in outcome.steps if step.applied]
    assert outcome.cut in _cuts(schema, told, release, Path(REPORT))
    for i, step in enumerate(told):
        for other in ([*told[:i], step, *told[i:]], [*told[:i], {**step, "children": ["no", "node"]}]):
            with pytest.raises(PartyError, match="`specializations` do not lead"):
                _cuts(schema, other, release, Path(REPORT))
