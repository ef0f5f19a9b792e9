"""What a job file says of one entry of its requirement, and which criteria that asks for.

`model.requirements` is a list of entries; `model.lkc` is a list of one. A further criterion is a key here and a file
in :mod:`jobs.lkc.options`, named in :mod:`jobs.lkc.options.option`; a file in :mod:`anonymize.criteria`; and a
definition of its own in :mod:`anonymize.verification.tables`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    WithJsonSchema,
    field_validator,
)

from anonymize.scores.names import OF_GOAL, STRICT, WITH_CONTEXTS
from jobs.file.fields import Bounds, Fields, Least

_STRICT = "strict"
"""The level at which nothing is told of a candidate before it is taken."""


MAX_RULED_OUT, MAX_DIVERSITY = 3, 6
"""What is searched for in one holder's groups: the time for one grows with columns to the power of values."""
ALL = "all"
IN_ROWS = "rows"
"""What a release is written as unless the job says otherwise."""
TOP_DOWN, KD = "top-down", "kd"
"""The methods of LKC jobs."""
PUBLIC, MEDIAN = "public", "median"
"""Where kd cuts."""


def method_defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What an LKC job says of its method, and of what that takes, if it does not say it."""
    method = fields.get("method") or TOP_DOWN
    of_method = _DEFAULTS.get(str(method))
    return {"method": method, **({} if of_method is None else of_method(fields))}


def _default_split(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"split": PUBLIC}


def default_score(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a top-down job says of its score if it does not say it, from the other keys of its file.

    The first score of its goal; with `disclosure: strict` the first that tells nothing of candidates. Contexts are
    cells; leaf partitions in vertical jobs, where sensitive values are known to their holder alone, and where the
    release does not link the class with them.
    """
    names = OF_GOAL.get(str(fields.get("goal", "classification")), ())
    able = (name for name in names if fields.get("disclosure") != _STRICT or name in STRICT)
    score = fields.get("score") or next(able, None)
    made = {"score": score}
    if score in names and score in WITH_CONTEXTS:
        apart = fields.get("partition") == "vertical" or any(
            fields.get(key) not in (None, linked) for key, linked in _LINKED.items()
        )
        made["contexts"] = "partitions" if apart else "cells"
    return made


_LINKED = {"link": ALL, "release": IN_ROWS}
"""By key of a job with which value a release links the class with all sensitive values."""


_DEFAULTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    TOP_DOWN: default_score,
    KD: _default_split,
}
"""By method what it takes of a job that does not say it."""


def with_refine(column: Any, job: Mapping[str, Any]) -> Any:
    """A quasi-identifier with a taxonomy, as a job file has it, with its `refine` if it does not say it.

    `child` where scores are what a specialization adds; with InfoGain it makes tables worse (semantics §10.10).
    """
    if not isinstance(column, Mapping) or column.get("role") != "qid" or column.get("refine") is not None:
        return column
    if job.get("method") != TOP_DOWN:
        return column
    if column.get("suppress") is not None:
        return {**column, "refine": "child"}
    if column.get("taxonomy") is None:
        return column
    score = job.get("score")
    return {**column, "refine": "child" if score in WITH_CONTEXTS else "children"}


_COUNT = re.compile(r"[+]?0*[1-9][0-9]{0,8}")


def _known(value: object) -> object:
    """Whatever is not `all` is read as a number above 0."""
    if value == ALL:
        return value
    text = str(value).strip()
    if not _COUNT.fullmatch(text):
        raise ValueError(f"write a whole number above 0, e.g. 5, or `{ALL}`")
    return int(text)


Known = Annotated[
    int | Literal["all"],
    BeforeValidator(_known),
    WithJsonSchema(
        {"type": ["integer", "string"], "minimum": 1, "pattern": f"^({_COUNT.pattern}|{ALL})$"},
    ),
]
"""How many columns somebody may know."""


class Requirement(Fields):
    """What holds toward whoever knows some of the quasi-identifiers; it must ask for something."""

    generalized: ClassVar[tuple[str, ...]] = ("qid",)
    """The roles of the columns that are specialized."""

    columns: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="The quasi-identifiers that somebody may know; default all. Every column of `role: qid` must be "
        "in some requirement. Columns of different requirements together are not protected.",
    )
    L: Known = Field(
        default="all",
        description="How many of these columns an attacker may know; `all`, the default, is every one. More costs "
        "utility.",
    )
    K: Least = Field(
        default=1, description="Smallest group on any L columns. 1 means no bound on identity linkage."
    )
    C: Bounds = Field(
        default=Fraction(1),
        description="Largest share of a protected value in any group, of all sensitive columns or by column; 1 means "
        "no bound. A column that is not named has its own C, else 1.",
    )
    distinct: dict[str, Annotated[int, Field(ge=2)]] | None = Field(
        default=None,
        min_length=1,
        description="By sensitive column, how many different values every group has at least, protected or not "
        "(distinct l-diversity). In all modes. Costs utility.",
    )
    t: Bounds | None = Field(
        default=None,
        description="How far the shares of all values, protected or not, are in any group from those in the whole "
        "table (t-closeness), of all sensitive columns or by column; 1 means no bound. `distance` of a column says "
        "how far its values are apart. One holder, `method: top-down` or `kd`. Costs much utility.",
    )
    ruled_out: int | None = Field(
        default=None,
        ge=0,
        le=MAX_RULED_OUT,
        description="C also holds among the records that are left once somebody rules out any so many sensitive "
        "values of a person (or fewer), of any columns; where none is left nothing is asked. Default 0. Single up to "
        "3; leader, sealed, strict and vertical 1, in vertical jobs of the columns of one holder, which have at most "
        "256 combinations of values. Costs utility.",
    )
    diversity: int | None = Field(
        default=None,
        ge=2,
        le=MAX_DIVERSITY,
        description="Whoever rules out any l - 2 sensitive values of a person (or fewer) is not left with one "
        "protected value in all records; 2: no group has one in all, and any C below 1 says more. Default: none. "
        "Single up to 6; leader, sealed, strict and vertical 3, in vertical jobs (above 2) of the columns of one "
        "holder, which have at most 256 combinations of values. Costs utility.",
    )
    colluders: int | None = Field(
        default=None,
        ge=0,
        description="All of this also holds for what remains of every group after any so many parties (or fewer) "
        "subtract their own rows; an empty remainder is allowed. Below the number of parties; default 0. For "
        "horizontal jobs with `disclosure: sealed`, and for one table with a column of `role: party`. Costs utility.",
    )

    @field_validator("colluders", "ruled_out")
    @classmethod
    def _none_are_not_said(cls, number: int | None) -> int | None:
        """Jobs that ask the same have one form."""
        return number or None

    def bounds(self, own: Mapping[str, Fraction | None]) -> dict[str, Fraction]:
        """C by sensitive column, 1 being none; ``own``: what these say in `columns`. Besides whatever `C` names."""
        if isinstance(self.C, Mapping):
            return {name: c or Fraction(1) for name, c in own.items()} | self.C
        return {name: c or self.C for name, c in own.items()}


class LkcModel(Requirement):
    """LKC-privacy: an attacker knows at most L columns; groups have K or more; confidence at most C."""

    L: Known = Field(
        description="How many quasi-identifier columns an attacker may know, or `all`. Larger costs utility."
    )
    K: Least = Field(description="Smallest group on any L columns. 1 means no bound on identity linkage.")
    C: Bounds = Field(
        default=Fraction(1),
        description="Largest share of a protected value in any group, of all sensitive columns or by column; 1 means "
        "no bound. Required with a sensitive column that has no C of its own.",
    )
