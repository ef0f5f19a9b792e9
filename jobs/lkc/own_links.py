"""Links of our records that the peers of a run can make together, where the table does not link the values.

The peers subtract their rows from the counts of each block, and our records remain. If all our records of a group
have the same values of a block, or the same class, the counts link the values with the rest of the record
(docs/security.md, N39). `risk.linked` of the report is about readers, who subtract nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from anonymize.lkc.linked_columns import count_linked, groups_of
from anonymize.release import Release
from jobs.data.counted import counted
from jobs.data.tables import Table
from jobs.file.job import Job
from jobs.lkc.linked_columns import counted_apart, parts_apart
from jobs.lkc.sentences import of_a_part


@dataclass(frozen=True)
class OwnLinks:
    """Figures of a party's own records, for its owner alone. table: the party's own."""

    job: Job = field(repr=False)
    table: Table = field(repr=False)

    def fields(self, own: Release) -> dict[str, Any]:
        """Count our records that all peers together link. own: our rows as published."""
        linked = count_linked(own, groups_of(own, self.job.names("qid")), parts_apart(self.job))
        return {"linked": linked, "in_words": [_in_words(self.job, linked, own.n_records)]}


def links_of(job: Job, table: Table) -> OwnLinks | None:
    """Return the links, or None where all values of a record are counted together."""
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
