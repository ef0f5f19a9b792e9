"""Links of our records that the other parties of a run can make together, where the table does not link the
values.

They subtract their rows from the counts of each block. What is left of a group are our records: where all of these
have the same values of a block, or the same class, it is told beside the rest (docs/security.md, N39). `risk.linked`
of the report is of readers, who subtract nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from anonymize.lkc.blocks import count_linked, groups_of
from anonymize.release import Release
from jobs.data.counted import counted
from jobs.data.tables import Table
from jobs.file.job import Job
from jobs.lkc.blocks import counted_apart, parts_apart
from jobs.lkc.words import of_a_part


@dataclass(frozen=True)
class OwnLinks:
    """Figures of a party's own records, for its owner alone. table: its own."""

    job: Job = field(repr=False)
    table: Table = field(repr=False)

    def fields(self, own: Release) -> dict[str, Any]:
        """Count our records that all others together link. own: our rows as they are published."""
        linked = count_linked(own, groups_of(own, self.job.names("qid")), parts_apart(self.job))
        return {"linked": linked, "in_words": [_in_words(self.job, linked, own.n_rows)]}


def links_of(job: Job, table: Table) -> OwnLinks | None:
    """None where all values of a record are counted together."""
    return OwnLinks(job, table) if counted_apart(job) else None


def _in_words(job: Job, linked: int, n_records: int) -> str:
    others = len(job.roster) - 1
    who = "the other party learns" if others == 1 else f"the other {others} parties together learn"
    said = (
        f"`link`: {who} of {counted(linked, 'record', 'records')} of {n_records:,} here {of_a_part(job)} beside the "
        "rest, by subtracting their own rows from the table: what is left of a group has one value only"
    )
    if not linked:
        return said
    return (
        f"{said}; `policy.own_k` asks for more records of a group, `colluders` holds what is left to K and C"
    )
