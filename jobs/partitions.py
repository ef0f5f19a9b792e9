"""Partitions: a holder has everything; each party has some of the rows; each party has some of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anonymize.table import Schema
from jobs.data.tables import LoadedColumns, Table
from jobs.file.job import Job, check_domains
from jobs.task import Partition, Task

if TYPE_CHECKING:
    from jobs.data.sources import Source
    from jobs.owner.rules import Rule

_ANY_SIZE = (1 << 32) - 1
"""Most ids of a party in matching (`crypto.intersection.MAX_SET`)."""


class Single:
    """Partition of a single holder, who has the whole table."""

    name = "single"
    matched = False

    def check(self, job: Job) -> None:
        _check_single(job)
        _check_not_vertical(job)

    def held_by(self, job: Job, party: str | None) -> tuple[str, ...]:
        return tuple(job.columns)

    def rules(self, job: Job) -> Sequence[Rule]:
        return ()

    def described(self, job: Job) -> dict[str, Any]:
        return {}

    def described_columns(self, job: Job) -> dict[str, Any]:
        return {}

    def result_schema(self, task: Task) -> Schema:
        return task.schema

    def load(self, task: Task, source: Source, me: str) -> Table:
        return task.model.reading.load(source, task)


class Horizontal(Single):
    """Partition in which each party has all columns of its own records."""

    name = "horizontal"

    def check(self, job: Job) -> None:
        _check_joint(job)
        _check_not_vertical(job)

    def described(self, job: Job) -> dict[str, Any]:
        return _roles(job)


class Vertical:
    """Partition in which all parties know the records, and each party has some columns. An id matches the records."""

    name = "vertical"
    matched = True

    def check(self, job: Job) -> None:
        _check_joint(job)
        _check_vertical(job)

    def held_by(self, job: Job, party: str | None) -> tuple[str, ...]:
        if party is None:
            return tuple(job.columns)
        held = {*job.names("id"), *job.contributed_by(party)}
        held |= {n for n in job.names("class") if job.columns[n].shared_by in (None, party)}
        return tuple(name for name in job.columns if name in held)

    def rules(self, job: Job) -> Sequence[Rule]:
        from jobs.owner.rules import ANY, PERMITTED, REQUIRED, Setting

        insider, words = bool(job.model.lkc and job.lkc.insider), "vertical jobs need `insider: true`"
        return (
            Setting(
                "match_ids", PERMITTED, True, "the policy does not allow to match ids with other parties"
            ),
            Setting("require_insider", REQUIRED, insider, words, stated=False),
            Setting("min_common", ANY, 1),
            Setting("max_peer_ids", ANY, _ANY_SIZE),
        )

    def described(self, job: Job) -> dict[str, Any]:
        return _roles(job)

    def described_columns(self, job: Job) -> dict[str, Any]:
        shared = {"matched by": list(job.names("id"))}
        return shared | {party: list(job.contributed_by(party)) for party in job.roster}

    def result_schema(self, task: Task) -> Schema:
        """Return the schema for class counts only, known to all parties."""
        from anonymize.joint.columns import class_schema

        return class_schema(task.schema)

    def load(self, task: Task, source: Source, me: str) -> LoadedColumns:
        from jobs.vertical import load_columns

        return load_columns(source, task, me)


def _roles(job: Job) -> dict[str, Any]:
    return {
        "disclosure": job.disclosure,
        "leader": job.leader_name,
        "deputy": job.deputy_name,
        "deliver": job.deliver,
    }


def _check_single(job: Job) -> None:
    if job.data is None:
        raise ValueError("partition single needs `data: table.csv`")
    for key in ("disclosure", "parties", "leader", "deputy"):
        if getattr(job, key) is not None:
            raise ValueError(f"partition single has no `{key}`")


def _check_joint(job: Job) -> None:
    if job.data is not None:
        raise ValueError("a joint job has no `data`: the configuration of each party names its table")
    if len(job.roster) < 2:
        raise ValueError("a joint job needs `parties`, two or more")
    for key in ("leader", "deputy"):
        named = getattr(job, key)
        if named is not None and named not in job.roster:
            raise ValueError(f"`{key}` must be a party of the job")
    if job.deputy is not None and job.deputy == job.leader_name:
        raise ValueError("leader and deputy must be different parties")
    if job.names("party"):
        raise ValueError(
            f"columns.{job.names('party')[0]}: `role: party` is for a single table with the records of several "
            "parties"
        )
    check_domains(job)


def _check_vertical(job: Job) -> None:
    """Require ids to match by, and exactly one party for every column."""
    if not job.names("id"):
        raise ValueError("a vertical job needs a column with `role: id`, to match records")
    owners: dict[str, list[str]] = {name: [] for name in job.columns}
    for party, entry in (job.parties or {}).items():
        if entry.columns is None:
            raise ValueError(f"parties.{party}: in a vertical job, write the party's `columns`")
        for name in entry.columns:
            if name not in job.columns:
                raise ValueError(f"parties.{party}.columns: the job has no column {name!r}")
            owners[name].append(party)
    for name, claimed in owners.items():
        if job.columns[name].role in {"id", "class"}:
            _check_common(job, name, claimed)
        elif len(claimed) != 1:
            who = f"contributed by {' and by '.join(claimed) or 'nobody'}"
            raise ValueError(f"columns.{name}: {who}; name the column once, at one party")


def _check_common(job: Job, name: str, claimed: Sequence[str]) -> None:
    """Check the lists of id and class. Both may stand in no list; if listed, the list must name the holders."""
    giver = job.columns[name].shared_by
    if giver is not None and giver not in job.roster:
        raise ValueError(f"columns.{name}.shared_by: {giver!r} is not a party of the job")
    holders = job.roster if giver is None else (giver,)
    if claimed and set(claimed) != set(holders):
        raise ValueError(
            f"columns.{name}: listed by {' and '.join(claimed)}, but {' and '.join(holders)} must have the column; "
            "list the column at no party; if one party gives the class to the rest, write `shared_by`"
        )


def _check_not_vertical(job: Job) -> None:
    for party, entry in (job.parties or {}).items():
        if entry.columns is not None:
            raise ValueError(f"parties.{party}.columns is for vertical jobs")
    for name in job.names("class"):
        if job.columns[name].shared_by is not None:
            raise ValueError(f"columns.{name}.shared_by is for vertical jobs")


PARTITIONS: Mapping[str, Partition] = {each.name: each for each in (Single(), Horizontal(), Vertical())}
"""Partitions by name."""
