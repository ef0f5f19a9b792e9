"""What a job file says under `model.lkc`, and which criteria it asks for.

A further criterion is a key here, named in :attr:`LkcModel.demands`; a file in :mod:`anonymize.criteria`; and a
definition of its own in :mod:`anonymize.lkc.verification`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from pydantic import Field, field_validator

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.criteria.remainder import Colluders
from anonymize.criteria.size import Size
from anonymize.joint.lkc.scores.rows import OF_GOAL, has_contexts, is_strict
from jobs.fields import Confidence, Fields

_STRICT = "strict"
"""The level at which nothing is told of a candidate before it is taken."""


def default_score(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What an LKC job says of its score if it does not say it, from the other keys of its file.

    The first score of its goal; with `disclosure: strict` the first that tells nothing of candidates. Contexts are
    cells, in vertical jobs leaf partitions: there sensitive values are known to their holder alone.
    """
    names = OF_GOAL.get(str(fields.get("goal", "classification")), ())
    able = (name for name in names if fields.get("disclosure") != _STRICT or is_strict(name))
    score = fields.get("score") or next(able, None)
    made = {"score": score}
    if score in names and has_contexts(str(score)):
        made["contexts"] = "partitions" if fields.get("partition") == "vertical" else "cells"
    return made


class LkcModel(Fields):
    """LKC-privacy: an attacker knows at most L columns; groups have K or more; confidence at most C."""

    generalized: ClassVar[tuple[str, ...]] = ("qid",)
    """The roles of the columns that are specialized."""

    L: int = Field(
        ge=1, description="How many quasi-identifier columns an attacker may know. Larger costs utility."
    )
    K: int = Field(ge=1, description="Smallest group on any L columns. 1 means no bound on identity linkage.")
    C: Confidence = Field(
        default=Fraction(1),
        description="Largest share of a protected value in any group; 1 means no bound. Required with a "
        "sensitive column that has no C of its own.",
    )

    colluders: int | None = Field(
        default=None,
        ge=0,
        description="K and C also hold for what remains of every group after any so many parties (or fewer) subtract "
        "their own rows; an empty remainder is allowed. Below the number of parties; default 0. For horizontal jobs "
        "with `disclosure: sealed`, and for one table with a column of `role: party`. Costs utility.",
    )

    @field_validator("colluders")
    @classmethod
    def _none_are_not_said(cls, colluders: int | None) -> int | None:
        """Jobs that ask the same have one form."""
        return colluders or None

    @property
    def demands(self) -> tuple[Demand, ...]:
        """What every group must meet, in the order in which it is told."""
        asked: tuple[Demand, ...] = Size(self.K), Confidences(self.C)
        return asked if self.colluders is None else (*asked, Colluders(self.colluders, asked))

    @property
    def claimed(self) -> dict[str, Any]:
        """What groups are held to by key, as the file says it: everything that is said but L."""
        return {key: value for key, value in self if key != "L" and value is not None}
