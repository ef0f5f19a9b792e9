"""Adult: joint runs equal the single-holder run, both goals, random and very uneven splits (../shared/data)."""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from anonymize.joint.lkc.request import Request
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_counts, release_of_rows
from anonymize.scores.infogain import InfoGain
from anonymize.table import CodedTable
from anonymize.tds import Outcome
from anonymize.verification.tables import verify_lkc
from jobs.data.sources import Csv
from jobs.loading import load_task, open_task
from jobs.reading import load_table
from tests.support import jobs
from tests.support.adult import adult, adult_lkc
from tests.support.candidates import as_it_stands
from tests.support.entries import claim
from tests.support.horizontal import run_led, run_sealed
from tests.support.scores import PUBLISHED
from tests.support.shared_jobs import shared_job

SETTINGS = [(2, 20, "0.2"), (2, 100, "0.2"), (4, 20, "0.2"), (4, 50, "0.2"), (4, 100, "1"), (6, 100, "0.2")]


@functools.cache
def alone(L: int, K: int, c: str, goal: str) -> tuple[CodedTable, Outcome]:
    table = adult()[1]
    return table, anonymize_single(table, adult_lkc(L, K, c), PUBLISHED[goal])


def owners(table: CodedTable, split: str, n: int = 3) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the holder, of n, of each record: at random, or by education (very uneven)."""
    if split == "random":
        return np.random.default_rng(1).integers(0, n, table.n_records)
    education = [column.name for column in table.schema.qid].index("education")
    return np.repeat(table.qid[education], table.weights).astype(np.int64) % n


@pytest.mark.more
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize(("L", "K", "c"), SETTINGS)
def test_three_parties_equal_one_holder(L: int, K: int, c: str, goal: str) -> None:
    table, outcome = alone(L, K, c, goal)
    expected = jobs.multiset(release_of_rows(table, outcome.cut))
    assert sum(expected.values()) == 45222
    split = "random" if goal == "classification" else "education"
    tables = jobs.split_among(table, owners(table, split), 3)
    request = Request(table.schema, adult_lkc(L, K, c), PUBLISHED[goal], bytes(32))
    results, _ = run_led(tables, request, record=False)
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
    joint = results["p1"]
    assert (
        jobs.multiset(release_of_counts(joint.outcome.schema, joint.outcome.cut, joint.generalized))
        == expected
    )


@pytest.mark.more
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize(("place", "setting"), list(enumerate(SETTINGS)))
def test_sealed_runs_equal_one_holder(place: int, setting: tuple[int, int, str], goal: str) -> None:
    L, K, c = setting
    table, outcome = alone(L, K, c, goal)
    request = Request(table.schema, adult_lkc(L, K, c), PUBLISHED[goal], bytes(32))
    expected = jobs.multiset(release_of_rows(table, outcome.cut))
    # Each setting is dealt out at random for one goal, unevenly between two for the other.
    uneven = (place % 2 == 0) == (goal == "general")
    split, n = ("education", 2) if uneven else ("random", (2, 3, 5)[place % 3])
    results, _ = run_sealed(jobs.split_among(table, owners(table, split, n), n), request, record=False)
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
    joint = results["p1"]
    assert (
        jobs.multiset(release_of_counts(joint.outcome.schema, joint.outcome.cut, joint.generalized))
        == expected
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize(("L", "K", "c"), SETTINGS)
def test_the_result_is_private_and_cannot_be_specialized_further(L: int, K: int, c: str, goal: str) -> None:
    table, outcome = alone(L, K, c, goal)
    assert len(outcome.applied) > 0
    assert _verified(table, outcome, L, K, c)
    for step in outcome.steps:
        if not step.applied:  # discarded for good: still invalid on the final table
            candidate = as_it_stands(table.schema, outcome.cut, step.candidate)
            further = outcome.cut.specialized(candidate)
            assert not _verified(table, dataclasses.replace(outcome, cut=further), L, K, c)


def _verified(table: CodedTable, outcome: Outcome, L: int, K: int, c: str) -> bool:
    release = release_of_rows(table, outcome.cut)
    protected = {s.name: frozenset(s.domain[i] for i in s.protected) for s in table.schema.sensitive}
    bounds = {name: (values, Fraction(c)) for name, values in protected.items()}
    return verify_lkc(release, claim([c.name for c in table.schema.qid], L, K, bounds)) is None


def test_rows_and_columns_are_the_thesis_ones() -> None:
    bundle, table = adult()
    assert table.n_records == 45222
    assert len(bundle.job.names("qid")) == 13
    assert bundle.job.columns["marital-status"].values == ("Divorced", "Separated")


@pytest.mark.more
@pytest.mark.parametrize("L", [2, 4])
def test_forty_one_columns(L: int) -> None:
    """The thesis' Blood shape: what is tested grows with the columns specialized, not with all subsets."""
    folder = shared_job("blood", f"L={L}", "K=50", "C=0.4")
    bundle = load_task(folder / "job.yaml").bundle
    table = load_table(Csv(folder / "raw.csv"), open_task(bundle)).table
    outcome = anonymize_single(table, jobs.requirement_of(bundle), InfoGain())
    refined = sum(outcome.cut.is_refined(i) for i in range(41))
    assert 0 < refined
    n_subsets = sum(1 for _ in combinations(range(refined), min(L, refined)))
    assert n_subsets < 101_270 / 10  # of the C(41, 4) subsets
    assert _verified(table, outcome, L, 50, "0.4")
