"""Sentences of a report on sequences: the protection, the attackers, and the gaps."""

from __future__ import annotations

from typing import Any

from anonymize.trajectory.exclusion import excludes
from anonymize.trajectory.paths import Paths
from jobs.data.counted import counted
from jobs.file.job import Job
from jobs.promises import found, inferred, promise
from jobs.release.report import joint_fields
from jobs.sequences.domains import is_wide, time_column, vocabulary_in
from jobs.sequences.reading import settings
from jobs.sequences.requirement import bounds
from jobs.sequences.settings import GLOBAL, REPORT
from jobs.task import Sentences, Task


def item_words(job: Job) -> tuple[str, str]:
    """Return the name of an item, singular and plural."""
    if is_wide(job):
        return "value", "values"
    return ("place", "places") if time_column(job) is None else ("reading", "readings")


def verified_words(task: Task) -> str:
    """Say what was counted again in the released table."""
    asked, (_, many) = settings(task.job), item_words(task.job)
    bounded = any(bound < 1 for bound in bounds(task.job).values())
    no_value = ", and every protected value has a share within its C" if bounded else ""
    return (
        f"every set of at most L={asked.L} {many} in some record was counted again in the released table: the set "
        f"is in at least K={asked.K} records{no_value}; all records together meet the same"
    )


def promises_of(task: Task) -> list[str]:
    """Say what no reader of the released table can do."""
    asked = settings(task.job)
    known = f"{counted(asked.L, *item_words(task.job))} of a record in the table"
    return promise(task.job, known, [*found(asked.K), *inferred(task.job, bounds(task.job))])


def limits_words(task: Task, table: Paths) -> list[str]:
    """Return the limits of a released table for its users (docs/security.md)."""
    job = task.job
    asked, (one, many) = settings(job), item_words(job)
    lost = (
        f"a {one} is missing in all records or kept in all, so the kept {many} occur as often as in the data"
        if asked.suppress == GLOBAL
        else f"{many} are missing in single records, so every set of {many} occurs at most as often as in the data"
    )
    gap = f"a missing {one} can sometimes be guessed from the rest of its record"
    time = time_column(job) is not None
    stay = (
        ", nor for knowing how long somebody stayed, nor for knowing an order without times" if time else ""
    )
    parts = "; C does not hold for knowing places without times, or times without places" if time else ""
    known = (
        f"K and C hold for knowing at most L={asked.L} recorded {many}; K and C do not hold for knowing that a "
        f"{one} is absent{stay}{parts}"
    )
    return [
        lost,
        gap,
        known,
        *_exclusion_words(task, table),
        f"the table is not k-anonymous, for any L: a reader who knows more {many} may find a record; releases of "
        "the same records do not add up to a protected release",
    ]


def _exclusion_words(task: Task, table: Paths) -> list[str]:
    """Say what is left to an attacker who discards records seen elsewhere."""
    words = vocabulary_in(task, table)
    if not words.timed:
        return []
    if not excludes(table, words):
        return [
            "exclusion was not tested: some records are at two places at the same time. A reader who assumes that "
            "few people are may still discard records, and nothing bounds the result (docs/security.md, N44)"
        ]
    discards = (
        "a reader who also knows that nobody is at two places at once may discard records seen elsewhere at a "
        "known time"
    )
    if settings(task.job).exclusion == REPORT:
        return [f"{discards}, and K and C need not hold among the records left (docs/security.md, N44)"]
    return [f"{discards}; the holder tested, on the raw readings, that K and C hold among the records left"]


def of_sealed_runs(task: Task, result: Any) -> Sentences:
    """Return the sentences on horizontal, sealed runs: protection, attackers, assumptions, disclosures."""
    job = task.job
    return {
        "protection": [
            "No party sent a count to another party, nor a record with a recognizable origin.",
            f"Every count was split into two shares, at {job.leader_name} and at {job.deputy_name} (the compute "
            "pair), and evaluated inside garbled circuits: only counts of sensitive values in the whole table were "
            "opened. This holds as long as the pair do not put their shares together.",
            f"Each party sent its records to {job.deputy_name}, masked, in slots that {job.leader_name} drew. Only "
            "the sum over all parties shows the records, sorted: no record carries its origin, as long as "
            f"{job.leader_name} and {job.deputy_name} do not collude. {job.leader_name} learned how many records "
            "each party has.",
            "We assume that the parties follow the protocol (semi-honest) and that the certificates are right.",
            "For every tested sequence, all parties learned whether the sequence was kept. A sequence kept in an "
            "earlier sweep was in at least K records, within C, of the table of the sweep, and may be in no "
            "published record. Of a sequence that was not kept, nobody learned whether the remaining parties have "
            "it. A party with the sequence learned that too few records have it, or that C fails.",
            "A party that counts differently from its records can find out how many records of the remaining "
            "parties have a sequence, also below K, and nobody notices (docs/security.md, N38).",
            "Toward a party, K counts the records of all parties: a party can subtract its own records from the "
            "table.",
        ]
    }


def joint_run_fields(task: Task, result: Any, table: Any) -> dict[str, Any]:
    """Return the fields of a joint run: the computing parties, their knowledge, and the protection."""
    return {**joint_fields(task), **task.mode.words(task, None)}
