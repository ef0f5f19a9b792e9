"""`distinct`: every group has so many different values of a sensitive column."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from anonymize.criteria.criterion import Demand
from anonymize.criteria.distinct import DistinctValues
from anonymize.errors import SchemaError
from jobs.file.values import Values
from jobs.lkc.options.option import Facts, Figure, Inference, Option
from jobs.lkc.settings import Requirement
from jobs.task import Task


@dataclass(frozen=True)
class Distinct(Option):
    """least: by sensitive column how many different values, protected or not."""

    where: str
    least: Mapping[str, int] = field(hash=False)
    key: ClassVar[str] = "distinct"
    figures: ClassVar[Mapping[str, Figure]] = {
        "distinct": Figure("fewest_distinct", "fewest different values of {column} {}")
    }
    weakest: ClassVar[tuple[int]] = (1,)

    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        return (*asked, DistinctValues(tuple(self.least.items())))

    def check_values(self, name: str, values: Values) -> None:
        n, least = len(values.tested), self.least.get(name, 1)
        if n < least:
            raise SchemaError(
                "job-invalid",
                f"{self.where}.distinct: {name} has {n} values in its domain, so no group has {least}",
                column=name,
            )

    def speaks_of(self, name: str) -> bool:
        return name in self.least

    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        return {self.key: {name: least for name, least in self.least.items() if name in looked_at}}

    def fields(self) -> dict[str, Any]:
        return {self.key: dict(self.least)}

    @property
    def inferences(self) -> tuple[Inference]:
        return (
            Inference(
                "`distinct`",
                "too few values of a sensitive column are different (`distinct`)",
                "sensitive values are as many as `distinct` asks",
            ),
        )

    @property
    def remains(self) -> tuple[str]:
        return ("`distinct`",)

    def implied_by(self, other: Distinct | None) -> bool:
        of_other = {} if other is None else other.least
        return all(least <= of_other.get(name, 1) for name, least in self.least.items())

    def strength(self, name: str) -> tuple[int]:
        return (self.least.get(name, 1),)


def made(said: Requirement, facts: Facts) -> Distinct:
    """Make the option of an entry with the key."""
    return Distinct(facts.where, said.distinct or {})
