"""Settings under `model.dp` with `method: synthetic` of a job file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from jobs.dp.settings import check_epsilon
from jobs.file.fields import DEFAULT_GOAL, Epsilon, Fields, OutsideShare

SYNTHETIC = "synthetic"
SYNTHETIC_TABLE, MARGINALS = "synthetic.csv", "marginals.csv"
"""Files of a release: the rows, and the noisy counts from which the rows are drawn."""
CELL, NEVER = "cell", "never"
"""Treatment of missing values: a separate value; or never missing, and missing cells count as a value."""
_OF_DIFFGEN = ("specializations", "utility", "noise", "engine", "max_cells", "max_fanout")


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
