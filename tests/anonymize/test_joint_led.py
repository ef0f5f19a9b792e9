"""Horizontal LKC with a leader: the same result as a single holder, and exactly the listed reveals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.joint.horizontal import JointOutcome, Request, Roster
from anonymize.joint.led import SumKind, anonymize_led
from anonymize.release import release_of_counts
from anonymize.table import CodedTable
from crypto.local import Transcript, run_local
from tests.support import jobs
from tests.support.rng import SeededRng
from tests.support.tables import Case, cases


def run_led(
    tables: Sequence[CodedTable], request: Request, *, leader: int = 0, sums: SumKind = "masked", **how: Any
) -> tuple[dict[str, JointOutcome], Transcript]:
    names = tuple(f"p{i}" for i in range(len(tables)))
    return run_local(
        {
            me: anonymize_led(Roster(me, names, names[leader]), table, request, SeededRng(me), sums=sums)
            for me, table in zip(names, tables, strict=True)
        },
        **how,
    )


def request_of(bundle: Any) -> Request:
    return Request(bundle.schema(), bundle.requirement, bundle.job.goal, bundle.digest)


def part(table: CodedTable, rows: np.ndarray[Any, Any]) -> CodedTable:
    return CodedTable(
        table.schema, tuple(c[rows] for c in table.qid), table.cells[rows], table.weights[rows]
    ).collapsed()


@settings(max_examples=150, deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = data.draw(st.integers(3, 5))
    rows = np.repeat(np.arange(len(whole.weights)), whole.weights)
    who = np.array([data.draw(st.integers(0, n - 1)) for _ in rows])
    units = CodedTable(
        whole.schema, tuple(c[rows] for c in whole.qid), whole.cells[rows], np.ones(len(rows), np.int64)
    )
    tables = [part(units, np.flatnonzero(who == i)) for i in range(n)]
    sums: SumKind = data.draw(st.sampled_from(["masked", "ring"]))
    leader = data.draw(st.integers(0, n - 1))
    request = request_of(bundle)
    try:
        outcome, release = jobs.run_single(bundle, whole)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates K or C"):
            run_led(tables, request, sums=sums, leader=leader)
        return
    results, _ = run_led(tables, request, sums=sums, leader=leader)
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
        joint = release_of_counts(request.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == jobs.multiset(release)
        assert result.ledger.reveals == results["p0"].ledger.reveals
