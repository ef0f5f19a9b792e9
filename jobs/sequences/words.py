"""The sentences of a report on sequences: what was protected, against whom, and what was not."""

from __future__ import annotations

from typing import Any

from anonymize.trajectory.exclusion import excludes
from anonymize.trajectory.paths import Paths
from jobs.data.counted import counted
from jobs.file.job import Job
from jobs.promises import found, inferred, promise
from jobs.release.report import joint_fields
from jobs.sequences.asked import bounds
from jobs.sequences.domains import is_wide, time_column, vocabulary_in
from jobs.sequences.reading import settings
from jobs.sequences.settings import GLOBAL, REPORT
from jobs.task import Sentences, Task


def item_words(job: Job) -> tuple[str, str]:
    """Name an item, one and many."""
    if is_wide(job):
        return "value", "values"
    return ("place", "places") if time_column(job) is None else ("reading", "readings")


def verified_words(task: Task) -> str:
    """Say what was counted again in the released table."""
    asked, (_, many) = settings(task.job), item_words(task.job)
    bounded = any(bound < 1 for bound in bounds(task.job).values())
    no_value = ", none with a share of a protected value above its C" if bounded else ""
    return (
        f"every set of at most L={asked.L} {many} that some record has was counted again in the released table: it "
        f"is in at least K={asked.K} records{no_value}; all records together meet the same"
    )


def promises_of(task: Task) -> list[str]:
    """Say what no reader of the released table can do."""
    asked = settings(task.job)
    known = f"{counted(asked.L, *item_words(task.job))} of a record in the table"
    return promise(known, [*found(asked.K), *inferred(task.job, bounds(task.job))])


def limits_words(task: Task, table: Paths) -> list[str]:
    """Say what a user of a released table has to know of it (docs/security.md)."""
    job = task.job
    asked, (one, many) = settings(job), item_words(job)
    lost = (
        f"a {one} is missing in all records or in none, so what is left occurs as often as it did"
        if asked.suppress == GLOBAL
        else f"{many} are missing in single records, so every set of them occurs at most as often as it did"
    )
    gap = f"a {one} that is missing can sometimes be guessed from what is left of its record"
    time = time_column(job) is not None
    stay = ", nor how long somebody stayed, nor an order without times" if time else ""
    parts = ", and C not for places without their times, or times without places" if time else ""
    known = (
        f"K and C hold for knowing at most L={asked.L} recorded {many}; they do not hold for knowing that one is "
        f"absent{stay}{parts}"
    )
    return [
        lost,
        gap,
        known,
        *_exclusion_words(task, table),
        f"it is not k-anonymity, whatever L is: who knows more {many} may find a record; and releases of the same "
        "records do not add up to one that is protected",
    ]


def _exclusion_words(task: Task, table: Paths) -> list[str]:
    """Say what is left to somebody who discards records that are elsewhere."""
    words = vocabulary_in(task, table)
    if not words.timed:
        return []
    if not excludes(table, words):
        return [
            "exclusion was not tested: some records are at two places at one time; who takes it that few people are "
            "may still discard records, which nothing bounds (docs/security.md, N44)"
        ]
    discards = "who also knows that nobody is at two places at once may discard records that are elsewhere"
    if settings(task.job).exclusion == REPORT:
        return [f"{discards}, and K and C need not hold among those that are left (docs/security.md, N44)"]
    return [
        f"{discards}; the holder tested, on the raw readings, that K and C hold among those that are left"
    ]


def of_sealed_runs(task: Task, result: Any) -> Sentences:
    """Horizontal, sealed: what was protected, from whom, under which assumptions, and what became known."""
    job = task.job
    return {
        "protection": [
            "No party sent a count to another party, nor a record that another could tell apart from anybody's.",
            f"Every count was split into two shares, one at {job.leader_name}, one at {job.deputy_name} (the compute "
            "pair), and evaluated inside garbled circuits: no count was opened but those of sensitive values in the "
            "whole table. This holds as long as these two do not put their shares together.",
            f"Each party sent its records to {job.deputy_name}, masked, in slots that {job.leader_name} drew, and "
            "only the sum of what all sent shows them, sorted: none carries its origin, as long as these two do not "
            f"collude. {job.leader_name} learned how many records each party has.",
            "The parties are assumed to follow the protocol (semi-honest) and the certificates to be the right ones.",
            "Of every sequence that was tested all parties learned whether it was kept: those of earlier sweeps were "
            "in at least K records, within C, of the table as it then was, and may be in none that is published. Of "
            "one that was not kept nobody learned whether others have it; a party that has it learned that too few "
            "do, or that C fails.",
            "A party that counts otherwise than its records are can find out how many records of others have a "
            "sequence, also below K, and nobody notices (docs/security.md, N38).",
            "Toward a party, K counts others: it can subtract its own records from the table.",
        ]
    }


def joint_run_fields(task: Task, result: Any, table: Any) -> dict[str, Any]:
    """Return the fields of a joint run: who computed, what they could learn, and what was protected from
    whom.
    """
    return {**joint_fields(task), **task.mode.words(task, None)}
