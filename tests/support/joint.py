"""A small joint run, all in this process, for tests of what comes after it."""

from __future__ import annotations

import functools
import random

from anonymize.joint.horizontal import JointOutcome
from anonymize.release import Release, release_of_counts
from anonymize.tds import Observer
from crypto.local import run_local
from party.bundle import Bundle
from party.data import Loaded
from party.protocols import protocol_of
from tests.support import jobs
from tests.support.rng import SeededRng
from tests.support.samples import PARTIES, joint_job


def sample_rows(n: int, seed: int = 0) -> list[dict[str, str]]:
    """Rows of the sample columns."""
    coins = random.Random(seed)  # noqa: S311
    return [
        {
            "patient": str(i),
            "job": coins.choice(["Janitor", "Mover", "Lawyer"]),
            "age": str(coins.randrange(100)),
            "transfused": coins.choice("YN"),
            "surgery": coins.choices(["Heart", "Knee", "Rare"], [5, 5, 2])[0],
        }
        for i in range(n)
    ]


def sample_tables(bundle: Bundle, n_rows: int = 60) -> dict[str, Loaded]:
    """The sample rows dealt out among the sample parties."""
    rows = sample_rows(n_rows)
    return {
        party: Loaded(jobs.coded(bundle, rows[i :: len(PARTIES)]), len(rows), 0)
        for i, party in enumerate(PARTIES)
    }


@functools.cache
def run_joint_sample(goal: str = "general") -> tuple[Bundle, JointOutcome, Release]:
    """Run the sample job; the same every time."""
    bundle = jobs.bundle_of(joint_job(goal=goal))
    tables = sample_tables(bundle)
    results, _ = run_local(
        {me: protocol_of(bundle, me, tables[me], SeededRng(me), Observer()) for me in PARTIES}
    )
    result = results[PARTIES[0]]
    outcome = result.outcome
    assert any(step.applied for step in outcome.steps)
    assert any(not step.applied for step in outcome.steps)
    return bundle, result, release_of_counts(outcome.schema, outcome.cut, result.generalized)
