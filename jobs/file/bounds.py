"""K and C as job files write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, Tag

from anonymize.table import MAX_RECORDS
from jobs.file.fields import Confidence


def _of_some_table(k: int) -> int:
    if k > MAX_RECORDS:
        raise ValueError(f"no table has more than {MAX_RECORDS} records: write a smaller number")
    return k


Least = Annotated[
    int, Field(ge=1, json_schema_extra={"maximum": MAX_RECORDS}), AfterValidator(_of_some_table)
]
"""How many records a group has at least; no more than a table may have."""


def _form_of_bounds(value: object) -> str:
    return "<bounds>" if isinstance(value, Mapping) else "<bound>"


Bounds = Annotated[
    Annotated[Confidence, Tag("<bound>")]
    | Annotated[Annotated[dict[str, Confidence], Field(min_length=1)], Tag("<bounds>")],
    Discriminator(_form_of_bounds),
]
"""One C for all sensitive columns, or C by sensitive column."""
