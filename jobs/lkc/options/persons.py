"""`unit: person`: K counts different people. A person may have several records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from anonymize.criteria.criterion import Demand
from anonymize.criteria.persons import Persons as EnoughPersons
from anonymize.criteria.size import Size
from anonymize.verification.tables import Claim, verify_persons
from jobs.errors import PartyError
from jobs.file.job import Job
from jobs.lkc.options.option import UNIT, ByRow, Facts, Option
from jobs.lkc.settings import Requirement
from jobs.task import Task


@dataclass(frozen=True)
class Persons(Option):
    """least: K."""

    least: int
    key: ClassVar[str] = UNIT

    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        return tuple(EnoughPersons(self.least) if isinstance(each, Size) else each for each in asked)

    def check(self, job: Job, others: Mapping[str, Any]) -> None:
        """Require a known person of each record, hidden from everybody who must not know the person."""
        if job.partition == "vertical":
            raise ValueError(
                "model.lkc.unit: a vertical job has a single record of each id, so records are people already"
            )
        if not job.names("id"):
            raise ValueError("model.lkc.unit: person needs a column with `role: id`, the person of each row")
        if job.disclosure == "strict":
            raise ValueError(
                "model.lkc.unit: a strict run counts records only; `disclosure: sealed` or `leader` counts people"
            )
        if "colluders" in others:
            raise ValueError("model.lkc.unit: `colluders` counts records, so say `unit: record`")

    @property
    def asks_something(self) -> bool:
        return False

    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        return {}

    def fields(self) -> dict[str, Any]:
        return {}

    def unread(self, task: Task, entries: Sequence[Any]) -> list[str]:
        alone = len(entries) == 1
        of_each = (f"K={e.said.K}" if alone else f"K={e.said.K} for {e.whom}" for e in entries)
        return [
            f"whether these records belong to at least {'; '.join(dict.fromkeys(of_each))} different people "
            "(`unit: person`) cannot be counted in a table without ids; the people were counted "
            f"{_who_counted(task.job)}"
        ]

    def require_counted(self, known: ByRow, claim: Claim) -> None:
        if known.person is None:
            return
        finding = verify_persons(known.release, known.person, claim)
        if finding is not None:
            raise PartyError("verification-failed", f"counting people, {finding}")

    def implied_by(self, other: Persons | None) -> bool:
        """Return True: all entries of a job count people, or no entry does. K is compared separately."""
        return other is not None


def _who_counted(job: Job) -> str:
    if not job.roster:
        return "from the ids of the holder's table"
    who = f"by the leader, {job.leader_name}" if job.disclosure == "leader" else "inside the circuits"
    return (
        f"{who}, where each party counted its own people: a person with records at two parties counts twice"
    )


def made(said: Requirement, facts: Facts) -> Persons:
    """Make the option of an entry."""
    return Persons(said.K)
