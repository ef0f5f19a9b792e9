"""Settings under `model.dp` of a job file, by method."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from jobs.file.fields import DEFAULT_GOAL, Epsilon, Fields, OutsideShare

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
SYNTHETIC = "synthetic"
SYNTHETIC_TABLE, MARGINALS = "synthetic.csv", "marginals.csv"
"""Files of a synthetic release: the rows, and the noisy counts from which the rows are drawn."""
CELL, NEVER = "cell", "never"
"""Treatment of missing values: a separate value; or never missing, and missing cells count as a value."""
_OF_DIFFGEN = ("specializations", "utility", "noise", "engine", "max_cells", "max_fanout")


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


def _edges(value: object) -> int | str:
    text = str(value).strip()
    if text == "auto":
        return text
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise ValueError("write auto, or how many pairs of columns are measured, 0 or more")
    return int(text)


class SyntheticModel(Fields):
    """Differential privacy: rows drawn from noisy counts of columns, and of chosen pairs of columns."""

    kind: ClassVar[str] = SYNTHETIC
    """Name of the model."""
    generalized: ClassVar[tuple[str, ...]] = ("qid", "sensitive")
    """Roles of the table's columns besides the class."""

    method: Literal["synthetic"] = Field(description="`synthetic`: rows drawn from noisy counts.")
    epsilon: Epsilon = Field(
        description="The whole privacy budget of the release, e.g. 1 or 0.5; from 0.001 to 100. Larger protects "
        "less; above 10 only with `accept_large_epsilon`."
    )
    edges: Annotated[
        int | Literal["auto"],
        BeforeValidator(_edges),
        WithJsonSchema({"type": ["integer", "string"], "minimum": 0, "pattern": "^(auto|[0-9]{1,4})$"}),
    ] = Field(
        default="auto",
        description="The number of pairs of columns that are measured together, at most one less than the"
        " columns besides the class. More pairs keep more relations between columns, in "
        "counts with more noise. `auto` (default): chosen by epsilon and the noisy number of "
        "rows.",
    )
    max_rows: int = Field(
        default=1_000_000,
        ge=1,
        lt=1 << 31,
        description="Public bound on the rows of one holder; in joint jobs at least the bound in each "
        "owner's policy. A larger bound makes circuits wider.",
    )
    max_records_per_person: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="The number m of records of a person that each holder keeps, chosen at random. All "
        "noise is m times as large, so that epsilon is per person and holder. For single and "
        "horizontal jobs with a column of `role: id`; ids are compared without blanks around "
        "them, and rows without an id are left out. Default: epsilon is per record. A "
        "vertical job has one record of each id.",
    )
    max_outside: OutsideShare | None = Field(
        default=None,
        description="Single holder: the largest share of a column's cells that may be outside its domain,"
        " from 0 to 1; default 1/2. A table with more is refused before anything is charged. "
        "Missing cells are not counted. 1 refuses no table.",
    )
    order: tuple[str, ...] | None = Field(
        default=None,
        description="Columns of numbers or dates in their order, such as [admitted, discharged]: no drawn row has a "
        "later column below an earlier one. Rows that break the order are mended after the draw, which costs no "
        "epsilon; the report counts these rows.",
    )
    accept_large_epsilon: bool = Field(
        default=False, description="`true` consents to an epsilon above 10, which protects very little."
    )

    @model_validator(mode="before")
    @classmethod
    def _no_keys_of_diffgen(cls, fields: Any) -> Any:
        for key in _OF_DIFFGEN if isinstance(fields, Mapping) else ():
            if fields.get(key) is not None:
                raise ValueError(f"`{key}` is for `method: diffgen`; `method: synthetic` has no such choice")
        return fields

    @model_validator(mode="after")
    def _sensible(self) -> SyntheticModel:
        check_epsilon(self.epsilon, self.max_records_per_person or 1, accepted=self.accept_large_epsilon)
        return self


def _method(fields: object) -> str:
    """Return the branch of `model.dp`; for any other method, `diffgen` raises the error."""
    method = fields.get("method") if isinstance(fields, Mapping) else getattr(fields, "method", None)
    return f"<{SYNTHETIC}>" if method == SYNTHETIC else "<diffgen>"


DpSettings = Annotated[
    Annotated[DpModel, Tag("<diffgen>")] | Annotated[SyntheticModel, Tag(f"<{SYNTHETIC}>")],
    Discriminator(_method),
]
"""Settings under `model.dp`."""


def completed(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a DP job with all defaults: goal, and `missing` of columns."""
    job = {**job, "goal": job.get("goal") or DEFAULT_GOAL}
    asked, columns = job["model"]["dp"], job.get("columns")
    if isinstance(asked, Mapping) and asked.get("method") == SYNTHETIC and isinstance(columns, Mapping):
        job |= {"columns": {name: _with_missing(column) for name, column in columns.items()}}
    return job


def _with_missing(column: Any) -> Any:
    """Return a column of the table besides the class, in the form of a job file, with a default `missing`."""
    if not isinstance(column, Mapping) or column.get("role") not in SyntheticModel.generalized:
        return column
    return column if column.get("missing") is not None else {**column, "missing": CELL}
