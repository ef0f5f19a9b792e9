"""A small joint run, all in this process, for tests of what comes after it."""

from __future__ import annotations

import functools
import random

from anonymize.release import Release, release_of_counts
from anonymize.tds import Observer
from crypto.local import run_local
from jobs.data.rows_read import RowsRead
from jobs.data.tables import Loaded
from jobs.file.bundle import Bundle
from jobs.lkc.result import LkcResult
from jobs.modes import protocol_of
from jobs.owner.account import Unaccounted
from jobs.task import Task
from tests.support import jobs
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job
from tests.support.scores import PUBLISHED_NAMES


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
        party: Loaded(jobs.coded(bundle, rows[i :: len(PARTIES)]), RowsRead(len(rows), len(rows)))
        for i, party in enumerate(PARTIES)
    }


@functools.cache
def run_joint_sample(goal: str = "general") -> tuple[Task, LkcResult, Release]:
    """Run the sample job; the same every time."""
    together = columns(job={**COLUMNS["job"], "refine": "children"})
    task = jobs.task_of(joint_job(goal=goal, columns=together, score=PUBLISHED_NAMES[goal]))
    tables = sample_tables(task.bundle)
    results, _ = run_local(
        {me: protocol_of(task, me, tables[me], SeededRng(me), Observer(), Unaccounted()) for me in PARTIES}
    )
    result = results[PARTIES[0]]
    assert isinstance(result, LkcResult)
    outcome = result.outcome
    assert any(step.applied for step in outcome.steps)
    assert any(not step.applied for step in outcome.steps)
    return task, result, release_of_counts(outcome.schema, outcome.cut, result.generalized)
