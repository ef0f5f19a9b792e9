"""Sealed horizontal LKC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.joint.horizontal import JointOutcome, Request, Roster
from anonymize.joint.sealed import anonymize_sealed
from anonymize.release import release_of_counts
from anonymize.table import CodedTable
from crypto.local import Transcript, run_local
from tests.support import jobs
from tests.support.rng import SeededRng
from tests.support.tables import Case, cases


def run_sealed(
    tables: Sequence[CodedTable], request: Request, *, leader: int = 0, deputy: int = 1, **how: Any
) -> tuple[dict[str, JointOutcome], Transcript]:
    names = tuple(f"p{i}" for i in range(len(tables)))
    return run_local(
        {
            me: anonymize_sealed(Roster(me, names, names[leader], names[deputy]), table, request, SeededRng(me))
            for me, table in zip(names, tables, strict=True)
        },
        **how,
    )


@settings(max_examples=60, deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = data.draw(st.sampled_from([2, 2, 3, 5]))
    owners = np.array([data.draw(st.integers(0, n - 1)) for _ in range(whole.n_records)])
    tables = jobs.split_among(whole, owners, n)
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    request = jobs.request_of(bundle)
    try:
        outcome, release = jobs.run_single(bundle, whole)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates K or C"):
            run_sealed(tables, request, leader=leader, deputy=deputy)
        return
    results, _ = run_sealed(tables, request, leader=leader, deputy=deputy)
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
        joint = release_of_counts(request.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == jobs.multiset(release)
        assert result.ledger.reveals == results["p0"].ledger.reveals
