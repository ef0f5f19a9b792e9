"""Turns of sealed horizontal LKC: the opened order, and several candidates judged together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from anonymize.joint.engine import Engine
from anonymize.joint.lkc import sealed
from anonymize.joint.lkc.request import Request
from anonymize.lkc.single import anonymize_single
from anonymize.table import CodedTable, Schema, coded_table
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from crypto.two_party import Asked, Outputs
from tests.support import jobs
from tests.support.computations import Computed
from tests.support.entries import lkc
from tests.support.horizontal import (
    Revealed,
    expect_openings,
    expect_same,
    numeric_column,
    run_sealed,
    small_case,
    small_lkc,
    whole_of,
)
from tests.support.scores import PUBLISHED

COLUMNS = 6
BEST_AND_WORST = 10
"""Place of the first and the last column among the pairs (0, 1), (0, 2), (1, 2), (0, 3), …"""


def several_columns(n_records: int = 120, equal: Sequence[int] = ()) -> tuple[list[CodedTable], Request]:
    """Intervals that tell the classes apart more and less; those of ``equal`` do not."""
    coins = np.random.default_rng(3)
    schema = Schema(tuple(numeric_column(f"c{i}", 4) for i in range(COLUMNS)), "c", ("y", "n"), ())
    classes = coins.integers(0, 2, n_records)
    codes = [
        np.full(n_records, 1)
        if i in equal
        else np.clip(2 * classes + coins.integers(-i, i + 1, n_records), 0, 3).astype(np.int64)
        for i in range(COLUMNS)
    ]
    whole = coded_table(schema, codes, classes, [])
    request = Request(schema, lkc(2, 6), PUBLISHED["classification"], bytes(32))
    return jobs.split_among(whole, np.arange(n_records) % 3, 3), request


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_candidates_judged_together_have_the_turns_of_one_at_a_time(
    goal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, request = several_columns()
    request = dataclasses.replace(request, goal=PUBLISHED[goal])
    expected = anonymize_single(whole_of(tables), request.requirement, request.goal)
    rounds, verdicts = {}, {}
    for most in (0, 20, 10**9):
        monkeypatch.setattr(sealed, "MOST_TESTS", most)
        results, transcript = run_sealed(tables, request)
        expect_same(results, expected, whole_of(tables))
        rounds[most] = transcript.rounds
        verdicts[most] = sum((m.step, m.sender) == ("sealed/valid", "p1") for m in transcript.messages)
    applied = sum(step.applied for step in expected.steps)
    assert verdicts[0] == len(expected.steps) > verdicts[20] > verdicts[10**9]
    assert verdicts[10**9] <= applied + 1
    assert rounds[0] > rounds[20] > rounds[10**9]


def test_what_leaves_the_circuits_of_many_candidates(revealed: Revealed, computed: list[Computed]) -> None:
    """The order, for columns without gain too: nothing of these is opened but that they are no candidates."""
    tables, request = several_columns(equal=(1, 4))
    run_sealed(tables, request)
    expect_openings(computed, revealed[0], request)
    (splits,) = [value for name, value, _ in revealed[0] if name == "split"][:1]
    assert [split > 0 for split in splits[:COLUMNS]] == [i not in (1, 4) for i in range(COLUMNS)]
    assert sorted(splits[COLUMNS:]) == [0, 0, 0, 1, 2, 3]


def test_an_order_with_a_circle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, request = several_columns()
    original = Engine.run_all

    def bent(self: Engine, asked: Sequence[Asked]) -> Rounds[list[Outputs]]:
        outputs = yield from original(self, asked)
        for (circuit, _, _), output in zip(asked, outputs, strict=True):
            if circuit.name.startswith("greater-key"):
                output["greater"][BEST_AND_WORST] ^= 1  # type: ignore[index]
        return outputs  # type: ignore[no-any-return]

    monkeypatch.setattr(Engine, "run_all", bent)
    with pytest.raises(RemoteProtocolError, match="an order with a circle") as caught:
        run_sealed(tables, request)
    assert caught.value.culprit in ("p0", "p1")


def test_children_that_leave_one_by_one_are_opened_at_their_turns(revealed: Revealed) -> None:
    tables, request = small_case()
    qid = (dataclasses.replace(request.schema.qid[0], by_child=True), *request.schema.qid[1:])
    schema = dataclasses.replace(request.schema, qid=qid)
    parts = [dataclasses.replace(table, schema=schema) for table in tables]
    request = dataclasses.replace(request, schema=schema, requirement=small_lkc(2, 2))
    results, _ = run_sealed(parts, request)
    expected = anonymize_single(whole_of(parts), request.requirement, request.goal)
    expect_same(results, expected, whole_of(parts))
    assert {"split", "order"}.isdisjoint(name for name, _, _ in revealed[0])
