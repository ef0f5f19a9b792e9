"""What a cut takes is no more than is said before a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anonymize.criteria.ruled_out import DiverseValues
from anonymize.criteria.size import Size
from anonymize.joint.kd.judging import SideTests
from anonymize.lkc.requirement import Ask, AskedList
from crypto.circuit import Held
from tests.support import jobs
from tests.support.computations import watched
from tests.support.kd import loaded, run_sealed_kd, wide_case

FILLED_UP = 64
"""AND gates by which the conjunctions of a cut are filled up, at most."""


@pytest.mark.some(1)
@pytest.mark.parametrize("least", [2, 3])
def test_a_cut_takes_no_more_than_is_said_before_a_run(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = loaded(wide_case(60))
    tables = jobs.split_among(whole, np.arange(whole.n_records) % 2, 2)
    n_qid, bounds, cuts = len(whole.schema.qid), [], []
    honest = SideTests.first

    def noting(tests: SideTests, engine: Any, front: Any, left: Any, groups: Any) -> Any:
        if engine.role is Held.GARBLER:
            cuts.append(int((front.at > 0).sum()))
            bounds.append(tests.of_cut(whole.n_records)[0])
        return honest(tests, engine, front, left, groups)

    monkeypatch.setattr(SideTests, "first", noting)
    seen = watched(monkeypatch)
    run_sealed_kd(tables, AskedList((Ask(n_qid, (Size(2), DiverseValues(least))),)))
    at_cuts = ("sides", "ends", "zeros", "first", "conjunction")
    taken = sum(
        each.batch * each.circuit.and_gates
        for each in seen
        if each.role is Held.GARBLER and each.circuit.name.startswith(at_cuts)
    )
    assert sum(cuts) > 1
    assert 0 < taken <= sum(n * (most + FILLED_UP) for n, most in zip(cuts, bounds, strict=True))
    assert taken >= sum(n * most for n, most in zip(cuts, bounds, strict=True)) / 8
