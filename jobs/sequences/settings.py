"""Settings under `model.sequences` of a job file."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.criteria.size import Size
from jobs.file.fields import Bounds, Fields, Least, Part

GLOBAL = "global"
"""Suppression of an item in all its records."""
INSTANCES, FREQUENT = "instances", "frequent"
REFUSE, REPORT, REPAIR = "refuse", "report", "repair"
MAX_KNOWN = 16
MOST_ITEMS = 1000


def _few(value: object) -> object:
    """Refuse `all` with a reason; pydantic refuses every other text that is no whole number."""
    if str(value).strip() == "all":
        raise ValueError(
            "write a whole number above 0: no L protects from who knows all of a record (semantics §12)"
        )
    return value


class SequencesModel(Fields):
    """LKC-privacy of sequences: an attacker knows at most L items of a record, each of K or more records."""

    generalized: ClassVar[tuple[str, ...]] = ()
    """Roles of the specialized columns: no role."""

    L: Annotated[int, BeforeValidator(_few)] = Field(
        ge=1,
        le=MAX_KNOWN,
        description="The number of items of a record that an attacker may know: a place and its time, or "
        "a value of a set. A larger L costs utility and time.",
    )
    K: Least = Field(
        description="The fewest records with any sequence of 1 to L items of the release. 1 means no "
        "bound on linkage."
    )
    C: Bounds = Field(
        default=Fraction(1),
        description="Largest share of a protected value among the records with a sequence, for all "
        "sensitive columns or by column; 1 means no bound. Required with a sensitive column "
        "that has no C of its own.",
    )
    suppress: Literal["local", "global"] = Field(
        default="local",
        description="The way of suppression. `local` (default): single records lose an item. `global`: "
        "all records lose the item, so the items that are left occur as often as before; "
        "single only, and loses far more.",
    )
    cost: Literal["instances", "frequent"] | None = Field(
        default=None,
        description="suppress global: the cost of an item. `instances` (default): the records that have "
        "it. `frequent`: the maximal frequent sequences with it.",
    )
    frequent: Part = Field(
        default=Fraction(1, 100),
        description="The share of records that makes a sequence frequent; for metrics, and `cost: frequent`.",
    )
    places: Literal["several", "first"] = Field(
        default="several",
        description="The locations that a record keeps in one time cell. `several` (default): all. "
        "`first`: the earliest.",
    )
    stays: Literal["keep", "arrivals"] = Field(
        default="keep",
        description="The readings of a record that stays at a location. `keep` (default): all. "
        "`arrivals`: a reading is dropped if the record has the same location in its time "
        "cell before. This protects less: dropped readings are not looked at.",
    )
    exclusion: Literal["refuse", "report", "repair"] | None = Field(
        default=None,
        description="The action where a reader can exclude records: a reader who knows up to L readings "
        "of a person, and that nobody is at two places at once, is left with fewer than K "
        "records or a share above C. `refuse` (default; single): the job ends. `report`: the "
        "report says it. `repair` (single): further records lose items. `report` and `repair`"
        " refuse a table with a record at two places in one time cell, which cannot be "
        "tested. Joint: `report`, in each owner's own-account.json.",
    )
    max_items: int = Field(
        default=64,
        ge=1,
        le=MOST_ITEMS,
        description="The most items of a record; a table with a longer record is refused. Work grows as "
        "the number of subsets of L items.",
    )
    max_candidates: int = Field(
        default=4_000_000,
        ge=1,
        le=1 << 28,
        description="The most sequences of one size; a run that needs more ends before it counts them.",
    )

    @model_validator(mode="after")
    def _cost_of_global(self) -> SequencesModel:
        if self.cost is not None and self.suppress != GLOBAL:
            raise ValueError("`cost` is for `suppress: global`: local suppression weighs nothing")
        return self

    def bounds(self, own: Mapping[str, Fraction | None]) -> dict[str, Fraction]:
        """Return C by sensitive column, 1 being no bound; ``own``: each C in `columns`. A mapping `C` comes first."""
        if isinstance(self.C, Mapping):
            return {name: c or Fraction(1) for name, c in own.items()} | self.C
        return {name: c or self.C for name, c in own.items()}

    def demands(self, bounds: Mapping[str, Fraction]) -> tuple[Demand, ...]:
        """Return the demands on the records of every sequence; bounds: C by sensitive column."""
        most = None if isinstance(self.C, Mapping) else self.C
        return Size(self.K), Confidences(most, tuple(bounds.items()))


def completed(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a job of sequences, with omitted keys under `model.sequences` filled in."""
    model = job["model"]
    asked = model["sequences"]
    if not isinstance(asked, Mapping):
        return dict(job)
    exclusion = asked.get("exclusion") or (REFUSE if job.get("partition") == "single" else REPORT)
    cost = asked.get("cost") or (INSTANCES if asked.get("suppress") == GLOBAL else None)
    return {**job, "model": {**model, "sequences": {**asked, "exclusion": exclusion, "cost": cost}}}
