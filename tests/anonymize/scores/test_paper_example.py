"""The example of [TDR] 3.3 under every score of classification, in one hand and in every joint mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from anonymize.joint.columns import Columns
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.scores.rows import score_of
from anonymize.joint.lkc.winner import Maximum
from anonymize.lkc.single import anonymize_single
from anonymize.scores.names import By
from anonymize.table import CodedTable
from anonymize.tds import Outcome
from tests.support import jobs
from tests.support.horizontal import run_led, run_sealed
from tests.support.rebuilt import rebuilt
from tests.support.vertical import MAXIMA, cut_by_columns, expect_same, run_vertical

EDU, SEX, HOURS = range(3)

CHILDREN: Mapping[str, Sequence[tuple[int, bool]]] = {
    "infogain": [(EDU, True), (SEX, False), (HOURS, False)],
    "tdr": [(SEX, True), (EDU, False), (HOURS, True)],
    "added": [(EDU, True), (SEX, False), (HOURS, False)],
}
"""Columns in their order, and whether they were specialized; after the grades, (9th, M) would have two records."""

CHILD: Sequence[tuple[int, bool]] = [(EDU, True), (SEX, False), (SEX, False), (HOURS, True)]
"""Under every score, where children leave one by one: 10th alone costs less anonymity than sex, and frees hours.
Sex is refused twice, since missing values are a third leaf there, and so either sex can leave."""

ADDED_FIRST = {False: 22_559_130, True: 24_071_905}
"""Sums that the first specialization adds: of all grades, of 10th alone."""


def example(score: str, child: bool, contexts: By = "cells") -> tuple[CodedTable, Request]:
    bundle, table = rebuilt()
    qid = tuple(replace(c, by_child=child and not c.is_numeric) for c in table.schema.qid)
    table = replace(table, schema=replace(table.schema, qid=qid))
    request = jobs.request_of(bundle)
    return table, replace(request, schema=table.schema, goal=score_of(score, contexts))


def expected(score: str, child: bool) -> Sequence[tuple[int, bool]]:
    return CHILD if child else CHILDREN[score]


def columns_of(outcome: Outcome) -> list[tuple[int, bool]]:
    return [(step.candidate.column, step.applied) for step in outcome.steps]


@pytest.mark.parametrize("child", [False, True])
@pytest.mark.parametrize("score", CHILDREN)
def test_one_holder(score: str, child: bool) -> None:
    table, request = example(score, child)
    outcome = anonymize_single(table, request.requirement, request.goal)
    assert columns_of(outcome) == expected(score, child)
    if score == "added":
        assert outcome.steps[0].score == ADDED_FIRST[child]


@pytest.mark.some(2)
@pytest.mark.parametrize("child", [False, True])
@pytest.mark.parametrize("score", CHILDREN)
@pytest.mark.parametrize("n", [2, 3])
def test_holders_of_rows(score: str, child: bool, n: int) -> None:
    table, request = example(score, child)
    outcome = anonymize_single(table, request.requirement, request.goal)
    parts = jobs.split_among(table, np.arange(table.n_records) % n, n)
    results = dict(run_sealed(parts, request)[0])
    if n > 2:  # a leader of two would learn the other's counts
        results |= {f"led {me}": result for me, result in run_led(parts, request)[0].items()}
    for result in results.values():
        assert columns_of(result.outcome) == expected(score, child)
        assert [(s.candidate, s.score) for s in result.outcome.steps] == [
            (s.candidate, s.score) for s in outcome.steps
        ]


@pytest.mark.some(3)
@pytest.mark.parametrize("child", [False, True])
@pytest.mark.parametrize("score", CHILDREN)
@pytest.mark.parametrize("maximum", MAXIMA)
def test_holders_of_columns(score: str, child: bool, maximum: type[Maximum]) -> None:
    table, request = example(score, child, "partitions")
    cut = cut_by_columns(table, Columns(("a", "b", "a"), ()), ["a", "b"], strangers=2)
    results, _ = run_vertical(cut, request, maximum=maximum)
    expect_same(cut, results, request)
    for result in results.values():
        taken = [step.candidate.column for step in result.outcome.steps]
        assert taken == [column for column, applied in expected(score, child) if applied]
