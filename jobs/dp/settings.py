"""Settings under `model.dp` of a job file."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from jobs.file.fields import Epsilon, Fields, OutsideShare

MAX_EPSILON = 10
"""Largest ε without an explicit confirmation in the job."""
LEAST_EPSILON, GREATEST_EPSILON = Fraction(1, 1000), Fraction(100)
"""Range of allowed ε.

Below the range, the noise of a count has thousands of records, and 64-bit words do not hold noisy scores of the
gain in the longest runs. Above the range, a release protects nothing, and δ ≤ 2^−40 takes coins of hundreds of
bits.
"""
COUNT = "count"
"""Column of counts in a DP release."""


def _refined(value: object) -> object:
    """Refuse 0 specializations with a reason; pydantic refuses every other text that is not a positive integer."""
    if re.fullmatch(r"-[0-9]+|0+", str(value).strip()):
        raise ValueError(
            "h must be at least 1: with h = 0 nothing is refined, and the release is how often each class occurs"
        )
    return value


class DpModel(Fields):
    """Differential privacy by DiffGen: chosen generalizations, and a noisy count of every cell."""

    kind: ClassVar[str] = "dp"
    """Name of the model."""
    generalized: ClassVar[tuple[str, ...]] = ("qid", "sensitive")
    """Roles of the specialized columns."""

    method: Literal["diffgen"] | None = Field(
        default=None,
        description="The method. `diffgen` (default): chosen generalizations, and a noisy count of every "
        "cell. `synthetic`: rows drawn from noisy counts of columns and of pairs of columns, "
        "with other keys.",
    )
    epsilon: Epsilon = Field(
        description="The whole privacy budget of the release, e.g. 1 or 0.5; from 0.001 to 100. Larger protects "
        "less; above 10 only with `accept_large_epsilon`."
    )
    specializations: Annotated[int, BeforeValidator(_refined)] = Field(
        ge=1,
        le=1000,
        description="The number of specializations (h), fixed before any data is read. More "
        "specializations make smaller cells, in which the noise weighs more.",
    )
    utility: Literal["max", "infogain"] = Field(
        default="max",
        description="The utility that choices optimize. `max` (default) needs half the noise. `infogain` "
        "is refused in horizontal jobs.",
    )
    noise: Literal["joint", "each"] = Field(
        default="joint",
        description="Joint: the noise of counts. `joint` (default): one noise that nobody knows, drawn "
        "inside a circuit. `each`: leader and deputy add one noise each, which is less "
        "accurate and faster.",
    )
    engine: Literal["circuit", "thesis"] = Field(
        default="circuit",
        description="Joint: the protocols. `circuit` (default), or `thesis`: the published ones, for two "
        "parties and tables of some tens of rows.",
    )
    max_rows: int = Field(
        default=1_000_000,
        ge=1,
        lt=1 << 31,
        description="Public bound on the rows of one holder; in joint jobs at least the bound in each "
        "owner's policy. A larger bound makes circuits wider, and with `infogain` adds noise.",
    )
    max_cells: int = Field(
        default=100_000,
        ge=1,
        le=10_000_000,
        description="Public limit on the cells of the release. A joint job does not make a specialization"
        " that would exceed the limit, and is refused if it must exceed the limit. A single "
        "holder then lists only cells above a threshold.",
    )
    max_fanout: int = Field(
        default=64,
        ge=2,
        le=64,
        description="The most children of a node of a set-valued column that is specialized.",
    )
    max_records_per_person: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="The number m of records of a person that each holder keeps, chosen at random. All "
        "noise is m times as large, so that epsilon is per person and holder. For single and "
        "horizontal jobs (engine circuit) with a column of `role: id`; ids are compared "
        "without blanks around them, and rows without an id are left out. Default: epsilon is"
        " per record. A vertical job has one record of each id.",
    )
    max_outside: OutsideShare | None = Field(
        default=None,
        description="Single holder: the largest share of a column's cells that may be outside its domain,"
        " from 0 to 1; default 1/2. A table with more is refused before anything is charged. "
        "Missing cells are not counted. 1 refuses no table.",
    )
    accept_large_epsilon: bool = Field(
        default=False, description="`true` consents to an epsilon above 10, which protects very little."
    )

    @field_validator("method", mode="before")
    @classmethod
    def _diffgen_is_not_said(cls, method: object) -> object:
        """Give jobs with the same request the same form, as before the key existed."""
        if method not in (None, "diffgen"):
            raise ValueError("write diffgen or synthetic")
        return None

    @model_validator(mode="after")
    def _sensible(self) -> DpModel:
        check_epsilon(self.epsilon, self.max_records_per_person or 1, accepted=self.accept_large_epsilon)
        return self


def check_epsilon(epsilon: Fraction, m: int, *, accepted: bool) -> None:
    """Refuse a budget with a release that is all noise, or protects nothing. Raises ValueError.

    m:        largest number of a person's records.
    accepted: True if the job confirms a large budget.
    """
    if epsilon < LEAST_EPSILON:
        raise ValueError(
            f"an epsilon of {float(epsilon):g} releases nothing but noise: every count would be off by thousands; "
            f"raise epsilon to at least {float(LEAST_EPSILON):g}"
        )
    if epsilon / m < LEAST_EPSILON:
        raise ValueError(
            f"an epsilon of {float(epsilon):g} for {m} records of a person releases nothing but noise; raise "
            f"epsilon to at least {float(LEAST_EPSILON * m):g}, or lower max_records_per_person"
        )
    if epsilon > GREATEST_EPSILON:
        raise ValueError(
            f"an epsilon of {float(epsilon):g} protects nothing: counts would be almost exact; lower epsilon to at "
            f"most {MAX_EPSILON}, or to {GREATEST_EPSILON} with `accept_large_epsilon: true`"
        )
    if epsilon > MAX_EPSILON and not accepted:
        raise ValueError(
            f"an epsilon of {float(epsilon):g} protects very little; lower epsilon to at most {MAX_EPSILON}, or "
            "say `accept_large_epsilon: true` to consent"
        )
