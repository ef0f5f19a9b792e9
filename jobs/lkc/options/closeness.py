"""`t`: the shares of a sensitive column's values in every group are close to the shares in the whole table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from anonymize.criteria.closeness import CloseValues
from anonymize.criteria.criterion import Demand
from jobs.file.columns import ORDERED
from jobs.file.job import Job
from jobs.file.values import values_of
from jobs.lkc.options.option import Facts, Figure, Option
from jobs.lkc.settings import Requirement
from jobs.task import Task


@dataclass(frozen=True)
class Closeness(Option):
    """Closeness option. bounds: t by sensitive column, where below 1. ordered: the columns with ordered values."""

    where: str
    bounds: Mapping[str, Fraction] = field(hash=False)
    ordered: frozenset[str] = frozenset()
    key: ClassVar[str] = "t"
    figures: ClassVar[Mapping[str, Figure]] = {
        "t": Figure(
            "largest_t", "shares of values of {column} at most {:.3f} from the table's", is_share=True
        )
    }

    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        return (*asked, CloseValues(tuple(self.bounds.items()), self.ordered))

    def check(self, job: Job, others: Mapping[str, Any]) -> None:
        """Require a single holder, who compares groups with the whole table."""
        if job.partition != "single":
            raise ValueError(
                f"{self.where}.t is for the table of a single holder: `t` adds up the distances of all shares of "
                "values from the table's shares, and no circuit of joint runs computes this sum; say C, `distinct` "
                "or `diversity`"
            )
        if self.bounds and "colluders" in others:
            raise ValueError(
                f"{self.where}.t compares groups with the whole table, and makes no statement after colluders "
                "subtract their records from both: leave out `colluders` or `t`"
            )

    @property
    def asks_something(self) -> bool:
        return bool(self.bounds)

    def speaks_of(self, name: str) -> bool:
        return name in self.bounds

    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        asked = {name: (bound, self._in_a_row(task, name)) for name, bound in self.bounds.items()}
        return {self.key: asked} if asked else {}

    def _in_a_row(self, task: Task, name: str) -> tuple[str, ...] | None:
        """Return the ordered categories of a column if the order counts for distances."""
        return values_of(task, name).tested if name in self.ordered else None

    def fields(self) -> dict[str, Any]:
        return {"t": {name: str(bound) for name, bound in self.bounds.items()}} if self.bounds else {}

    def implied_by(self, other: Closeness | None) -> bool:
        of_other = {} if other is None else other.bounds
        return all(bound >= of_other.get(name, 1) for name, bound in self.bounds.items())


def made(said: Requirement, facts: Facts) -> Closeness:
    """Make the option of an entry with the key, for all columns or by column; 1 asks for nothing."""
    asked = said.t or Fraction(1)
    by_name = asked if isinstance(asked, Mapping) else dict.fromkeys(facts.job.names("sensitive"), asked)
    sensitive = facts.job.names("sensitive")
    ordered = frozenset(name for name in sensitive if facts.job.columns[name].distance == ORDERED)
    return Closeness(facts.where, {name: t for name, t in by_name.items() if t < 1}, ordered)
