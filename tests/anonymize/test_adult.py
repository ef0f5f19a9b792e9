"""Adult: joint runs equal the single-holder run, both goals, random and very uneven splits (../shared/data)."""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from anonymize.joint.horizontal import Request
from anonymize.privacy import Lkc
from anonymize.release import release_of_counts, release_of_rows
from anonymize.score import Goal
from anonymize.single import anonymize_alone
from anonymize.table import CodedTable, Schema
from anonymize.tds import Outcome
from anonymize.verification import Bound, verify_lkc
from party.bundle import Bundle, load_bundle
from party.data import Source, load_table
from tests.anonymize.test_joint_led import run_led
from tests.anonymize.test_joint_sealed import run_sealed
from tests.support import jobs
from tests.support.shared_jobs import shared_job

SETTINGS = [(2, 20, "0.2"), (2, 100, "0.2"), (4, 20, "0.2"), (4, 50, "0.2"), (4, 100, "1"), (6, 100, "0.2")]


@functools.cache
def adult() -> tuple[Bundle, CodedTable]:
    folder = shared_job("adult")
    bundle = load_bundle(folder / "job.yaml")
    return bundle, load_table(Source("csv", folder / "raw.csv"), bundle).table


def with_confidence(table: CodedTable, c: str) -> CodedTable:
    """The same table under another C."""
    (sensitive,) = table.schema.sensitive
    column = dataclasses.replace(sensitive, confidence=Fraction(c))
    schema = dataclasses.replace(table.schema, sensitive=(column,))
    return dataclasses.replace(table, schema=schema)


@functools.cache
def alone(L: int, K: int, c: str, goal: Goal) -> tuple[CodedTable, Outcome]:
    table = with_confidence(adult()[1], c)
    return table, anonymize_alone(table, Lkc(L, K), goal)


def owners(table: CodedTable, split: str, n: int = 3) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Who of n holds each record: at random, or by education (very uneven)."""
    if split == "random":
        return np.random.default_rng(1).integers(0, n, table.n_records)
    education = [column.name for column in table.schema.qid].index("education")
    return np.repeat(table.qid[education], table.weights).astype(np.int64) % n


@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize(("L", "K", "c"), SETTINGS)
def test_three_parties_equal_one_holder(L: int, K: int, c: str, goal: Goal) -> None:
    table, outcome = alone(L, K, c, goal)
    expected = jobs.multiset(release_of_rows(table, outcome.cut))
    assert sum(expected.values()) == 45222
    for split in ("random", "education"):
        tables = jobs.split_among(table, owners(table, split), 3)
        request = Request(table.schema, Lkc(L, K), goal, bytes(32))
        results, _ = run_led(tables, request, record=False)
        for result in results.values():
            assert jobs.turns(result.outcome) == jobs.turns(outcome)
        joint = results["p1"]
        assert (
            jobs.multiset(release_of_counts(table.schema, joint.outcome.cut, joint.generalized)) == expected
        )


@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize(("place", "setting"), list(enumerate(SETTINGS)))
def test_sealed_runs_equal_one_holder(place: int, setting: tuple[int, int, str], goal: Goal) -> None:
    L, K, c = setting
    table, outcome = alone(L, K, c, goal)
    request = Request(table.schema, Lkc(L, K), goal, bytes(32))
    expected = jobs.multiset(release_of_rows(table, outcome.cut))
    n = (2, 3, 5)[place % 3]
    for owner, parties in ((owners(table, "random", n), n), (owners(table, "education", 2), 2)):
        results, _ = run_sealed(jobs.split_among(table, owner, parties), request, record=False)
        for result in results.values():
            assert jobs.turns(result.outcome) == jobs.turns(outcome)
        joint = results["p1"]
        assert (
            jobs.multiset(release_of_counts(table.schema, joint.outcome.cut, joint.generalized)) == expected
        )


@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize(("L", "K", "c"), SETTINGS)
def test_the_result_is_private_and_cannot_be_specialized_further(L: int, K: int, c: str, goal: Goal) -> None:
    table, outcome = alone(L, K, c, goal)
    assert len(outcome.applied) > 0
    assert _verified(table, outcome, L, K)
    for step in outcome.steps:
        if not step.applied:  # discarded for good: still invalid on the final table
            further = outcome.cut.specialized(step.candidate)
            assert not _verified(table, dataclasses.replace(outcome, cut=further), L, K)


def _verified(table: CodedTable, outcome: Outcome, L: int, K: int) -> bool:
    release = release_of_rows(table, outcome.cut)
    return verify_lkc(release, [c.name for c in table.schema.qid], L, K, _bounds(table.schema)) is None


def _bounds(schema: Schema) -> list[Bound]:
    return [
        Bound(c.name, frozenset(c.domain[i] for i in c.protected), c.confidence) for c in schema.sensitive
    ]


def test_rows_and_columns_are_the_thesis_ones() -> None:
    bundle, table = adult()
    assert table.n_records == 45222
    assert len(bundle.job.names("qid")) == 13
    assert bundle.job.columns["marital-status"].values == ("Divorced", "Separated")


@pytest.mark.parametrize("L", [2, 4])
def test_forty_one_columns(L: int) -> None:
    """The thesis' Blood shape: what is tested grows with the columns specialized, not with all subsets."""
    folder = shared_job("blood", f"L={L}", "K=50", "C=0.4")
    bundle = load_bundle(folder / "job.yaml")
    table = load_table(Source("csv", folder / "raw.csv"), bundle).table
    outcome = anonymize_alone(table, bundle.requirement, "classification")
    refined = sum(outcome.cut.is_refined(i) for i in range(41))
    assert 0 < refined
    n_subsets = sum(1 for _ in combinations(range(refined), min(L, refined)))
    assert n_subsets < 101_270 / 10  # of the C(41, 4) subsets
    assert _verified(table, outcome, L, 50)
