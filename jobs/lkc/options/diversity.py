"""`ruled_out` and `diversity`: protection against negative background knowledge about a person's sensitive values.

Both keys look at the same attacks, and `at_most` of a column limits both. The two keys are therefore a single
option.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

from anonymize.criteria.criterion import Demand
from anonymize.criteria.ruled_out import (
    MAX_COMBINATIONS,
    MAX_JOINT_CASES,
    MAX_JOINT_DIVERSITY,
    DiverseValues,
    RuledOutValues,
)
from anonymize.errors import SchemaError
from anonymize.linked_columns import Blocks
from jobs.file.job import Job
from jobs.file.values import Values, some_of
from jobs.lkc.linked_columns import blocks_of, ruled_together
from jobs.lkc.options.option import Facts, Inference, Option
from jobs.lkc.settings import Requirement
from jobs.task import Task


@dataclass(frozen=True)
class Diversity(Option):
    """Diversity option.

    ruled_out: number of values of negative background knowledge; None: not said.
    least: l; None: not said.
    bounds, at_most:  as of :class:`jobs.lkc.options.option.Facts`.
    blocks:           the sensitive columns that are looked at together.
    """

    where: str
    ruled_out: int | None
    least: int | None
    bounds: Mapping[str, Fraction] = field(hash=False)
    at_most: Mapping[str, int] = field(hash=False)
    blocks: Blocks
    key: ClassVar[str] = "diversity"
    weakest: ClassVar[tuple[int, ...]] = (-1, 1)

    @property
    def diversity(self) -> int:
        """l; 1 is nothing."""
        return self.least or 1

    @property
    def together(self) -> int:
        """Largest number of values ruled out and inferred together."""
        return max(self.ruled_out + 1 if self.ruled_out else 0, self.diversity - 1)

    @property
    def looks_together(self) -> bool:
        """True if something is asked of several sensitive columns together."""
        return bool(self.ruled_out) or self.diversity > 2

    def diversity_of(self, name: str) -> int:
        """Return l as far as `at_most` allows for a column: one more than the column's values in an attack."""
        return min(self.diversity, self.at_most.get(name, self.diversity) + 1)

    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        limits, found = tuple(self.at_most.items()), [*asked]
        if self.ruled_out is not None:
            found.append(RuledOutValues(self.ruled_out, tuple(self.bounds.items()), limits, self.blocks))
        if self.least is None:
            return tuple(found)
        mixed = tuple(name for name, bound in self.bounds.items() if bound < 1)
        return (*found, DiverseValues(self.least, limits, mixed, self.blocks))

    def check(self, job: Job, others: Mapping[str, Any]) -> None:
        """Refuse unsuitable jobs: joint runs try all sets of values, and colluders know less."""
        if job.partition != "single" and self.diversity > MAX_JOINT_DIVERSITY:
            raise ValueError(
                f"{self.where}: joint runs try all sets of values, so `diversity` is at most {MAX_JOINT_DIVERSITY} "
                "there"
            )
        if "colluders" in others and self.looks_together:
            raise ValueError(
                f"{self.where}: `colluders` is for K, C, `distinct` and `diversity: 2`; leave out `ruled_out` and "
                "`diversity` above 2"
            )

    def check_values(self, name: str, values: Values) -> None:
        """Refuse a column with so few values that an attacker may rule out all values but the last."""
        n, limit = len(values.tested), self.at_most.get(name)
        if values.protected and n < self.diversity == 2 and limit != 0:
            raise SchemaError(
                "job-invalid",
                f"{self.where}.diversity: {name} has {n} values in its domain, and protects some, so every group "
                f"breaks diversity={self.diversity}; list all values that the column can have, or protect no value "
                "(`role: plain`)",
                column=name,
            )
        most = max((self.ruled_out or 0) + 1, (self.least or 2) - 1)
        asked = self.least or (self.ruled_out and self.bounds[name] < 1)
        if asked and values.protected and n <= most and (limit is None or limit >= n):
            raise SchemaError(
                "job-invalid",
                f"{self.where}: {name} has {n} values ({some_of(values.tested)}), and a reader who rules out all "
                "but one value knows the last value, so no group with a protected value meets the requirement",
                column=name,
                remedy=f"set `at_most: {n - 1}` in columns.{name}",
            )

    def check_joint(self, job: Job, values: Mapping[str, Values]) -> None:
        for block in self.blocks if self.looks_together else ():
            self._check_cases([values[name] for name in block])
            if job.partition == "vertical":
                self._check_combinations({name: values[name] for name in block})

    def _check_cases(self, values: Sequence[Values]) -> None:
        """Refuse more cases than a joint run tests: each protected value with every value. Raises SchemaError."""
        cases = sum(len(v.protected) for v in values) * sum(len(v.tested) for v in values)
        if cases > MAX_JOINT_CASES:
            raise SchemaError(
                "job-invalid",
                f"{self.where}: protected values times all sensitive values are {cases}, and a joint run tests at "
                f"most {MAX_JOINT_CASES} pairs",
                remedy="protect fewer values, or coarsen values (`level`, fewer `cuts`)",
            )

    def _check_combinations(self, block: Mapping[str, Values]) -> None:
        """Refuse more combinations than the holder of a block can tell apart in records. Raises SchemaError."""
        looked_at = [name for name in block if self.at_most.get(name) != 0]
        bounded = [name for name in looked_at if self.diversity > 2 or self.bounds[name] < 1]
        n = prod(len(block[name].tested) for name in looked_at)
        if n > MAX_COMBINATIONS and any(block[name].protected for name in bounded):
            raise SchemaError(
                "job-invalid",
                f"{self.where}: there are {n:,} combinations of values of {', '.join(looked_at)}, but a vertical "
                f"job allows at most {MAX_COMBINATIONS} combinations for columns of the same holder that are "
                "tested together",
                remedy="coarsen these columns (`level`, fewer `cuts`), set `at_most: 0` in some of the columns, or "
                "leave out `ruled_out` and say `diversity: 2`",
            )

    @property
    def asks_something(self) -> bool:
        return self.least is not None

    def speaks_of(self, name: str) -> bool:
        return self.least is not None

    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        parts = (tuple(name for name in block if name in looked_at) for block in self.blocks)
        together: dict[str, Any] = {
            "at_most": {name: limit for name, limit in self.at_most.items() if name in looked_at},
            "blocks": tuple(part for part in parts if part),
        }
        found: dict[str, Any] = {}
        if self.ruled_out is not None:
            bounds = {name: self.bounds[name] for name in looked_at}
            found["ruled_out"] = {"values": self.ruled_out, "C": bounds, **together}
        if self.least is not None:
            found["diversity"] = {"least": self.least, **together}
        return found

    def fields(self) -> dict[str, Any]:
        said = {"ruled_out": self.ruled_out, "diversity": self.least}
        limits = {"at_most": dict(self.at_most)} if self.at_most else {}
        return {**{key: number for key, number in said.items() if number is not None}, **limits}

    @property
    def inferences(self) -> tuple[Inference, ...]:
        found = []
        if self.ruled_out and any(bound < 1 for bound in self.bounds.values()):
            found.append(
                Inference(
                    "`ruled_out`",
                    "a protected value is above its C after a second value is ruled out (`ruled_out`)",
                    "no protected value is above its C after a second value is ruled out",
                )
            )
        if self.least is not None:
            failed, held = (
                "a protected value is certain (`diversity`)",
                "no protected value is certain (`diversity`)",
            )
            found.append(Inference("`diversity`", failed, held))
        return tuple(found)

    @property
    def remains(self) -> tuple[str, ...]:
        return ("`diversity`",) if self.least is not None else ()

    def is_unread(self, job: Job) -> bool:
        """Return True if something is asked of values that a release does not link."""
        return self.looks_together and self.blocks != blocks_of(job)

    def unread(self, task: Task, entries: Sequence[Any]) -> list[str]:
        if not any(entry.by_key[self.key].is_unread(task.job) for entry in entries):
            return []
        return [
            "whether `ruled_out` and `diversity` also hold for a reader who links the blocks again cannot be "
            "counted in a release without links; the holder counted it before writing, and readers count block by "
            "block"
        ]

    def implied_by(self, other: Diversity | None) -> bool:
        ruled_out, diversity = (0, 1) if other is None else (other.ruled_out or 0, other.diversity)
        return (self.ruled_out or 0) <= ruled_out and self.diversity <= diversity

    def strength(self, name: str) -> tuple[Fraction | int, ...]:
        return (-self.bounds[name] if self.ruled_out else -1, self.diversity)


def made(said: Requirement, facts: Facts) -> Diversity:
    """Make the option of an entry with either key."""
    blocks = blocks_of(facts.job) if facts.as_read else ruled_together(facts.job)
    return Diversity(facts.where, said.ruled_out, said.diversity, facts.bounds, facts.at_most, blocks)
