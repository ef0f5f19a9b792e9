"""`colluders`: the requirement also holds for the rest of a group after so many parties took their rows out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from anonymize.criteria.criterion import Demand
from anonymize.criteria.remainder import Colluders as Remainders
from anonymize.criteria.remainder import check_colluders
from anonymize.errors import SchemaError
from anonymize.verification.tables import Claim, verify_remainders
from jobs.errors import PartyError
from jobs.file.fields import DEFAULT_LEVEL
from jobs.file.job import Job
from jobs.lkc.options.option import ByRow, Facts, Option
from jobs.lkc.settings import Requirement
from jobs.task import Task


@dataclass(frozen=True)
class Colluders(Option):
    """most: of the parties."""

    where: str
    most: int
    key: ClassVar[str] = "colluders"

    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        return (*asked, Remainders(self.most, asked))

    def check(self, job: Job, others: Mapping[str, Any]) -> None:
        """Require a known party of each record, hidden from everybody who must not know the party."""
        if job.partition == "vertical":
            raise ValueError(
                f"{self.where}.colluders is for rows: parties of a vertical job hold columns of the same records, "
                "so no party has rows to subtract"
            )
        if job.partition == "horizontal" and job.disclosure != DEFAULT_LEVEL:
            raise ValueError(
                f"{self.where}.colluders needs `disclosure: {DEFAULT_LEVEL}`: a leader would learn each party's own "
                "counts, and a strict run counts all parties' records together"
            )
        if job.partition == "single" and not job.names("party"):
            raise ValueError(
                f"{self.where}.colluders needs a column with `role: party`, the party of each row"
            )
        try:
            check_colluders(self.most, len(job.record_holders))
        except SchemaError as error:
            raise ValueError(f"{self.where}.{error}") from None

    @property
    def asks_something(self) -> bool:
        return False

    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        return {self.key: self.most}

    def fields(self) -> dict[str, Any]:
        return {self.key: self.most}

    @property
    def colluders(self) -> int:
        return self.most

    @property
    def subtracting(self) -> str:
        """Clause on who takes which rows out."""
        if self.most == 1:
            return "any one party subtracts its own rows"
        return f"any {self.most} parties subtract their own rows"

    def unread(self, task: Task, entries: Sequence[Any]) -> list[str]:
        who = "inside the circuits" if task.job.roster else "from the party column of the holder's table"
        asked = {entry.colluders: entry.by_key[self.key] for entry in entries}
        return [
            f"whether the rest of any group after {asked[most].subtracting} is empty or meets the requirement "
            f"(`colluders: {most}`) cannot be counted in a table without origin; this was tested {who}"
            for most in sorted(asked)
        ]

    def require_counted(self, known: ByRow, claim: Claim) -> None:
        if known.party is None:
            return
        finding = verify_remainders(known.release, known.party, claim)
        if finding is not None:
            raise PartyError("verification-failed", f"without the rows of colluding parties, {finding}")

    def implied_by(self, other: Colluders | None) -> bool:
        return other is not None and self.most <= other.most


def made(said: Requirement, facts: Facts) -> Colluders:
    """Make the option of an entry with the key."""
    assert said.colluders is not None
    return Colluders(facts.where, said.colluders)
