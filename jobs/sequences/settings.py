"""What a job file says under `model.sequences`."""

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
"""An item goes from all records that have it."""
INSTANCES, FREQUENT = "instances", "frequent"
REFUSE, REPORT, REPAIR = "refuse", "report", "repair"
MAX_KNOWN = 16
MOST_ITEMS = 1000


def _few(value: object) -> object:
    """Say why `all` is not taken; pydantic refuses every other text that is no whole number."""
    if str(value).strip() == "all":
        raise ValueError(
            "write a whole number above 0: no L protects from who knows all of a record (docs/semantics.md)"
        )
    return value


class SequencesModel(Fields):
    """LKC-privacy of sequences: an attacker knows at most L items of a record, each of K or more records."""

    generalized: ClassVar[tuple[str, ...]] = ()
    """The roles of the columns that are specialized: none."""

    L: Annotated[int, BeforeValidator(_few)] = Field(
        ge=1,
        le=MAX_KNOWN,
        description="How many items (a place and its time, or a value of a set) of a record an attacker may know. "
        "Larger costs utility and time.",
    )
    K: Least = Field(
        description="Every sequence of 1 to L items in the release is in so many records at least. 1: no bound on "
        "identity linkage."
    )
    C: Bounds = Field(
        default=Fraction(1),
        description="Largest share of a protected value among the records with a sequence, of all sensitive columns "
        "or by column; 1 means no bound. Required with a sensitive column that has no C of its own.",
    )
    suppress: Literal["local", "global"] = Field(
        default="local",
        description="`local` (default): a record loses items, others keep theirs; `global`: an item is lost by all, "
        "so what is left occurs as often as before; single only, and loses far more.",
    )
    cost: Literal["instances", "frequent"] | None = Field(
        default=None,
        description="suppress global: what a suppressed item costs: `instances` (default), the records that have it; "
        "`frequent`, the maximal frequent sequences with it.",
    )
    frequent: Part = Field(
        default=Fraction(1, 100),
        description="A sequence is frequent if this share of the records has it; for metrics, and `cost: frequent`.",
    )
    places: Literal["several", "first"] = Field(
        default="several",
        description="Of several locations that a record has in one time cell: `several` (default) keeps all, `first` "
        "the earliest.",
    )
    stays: Literal["keep", "arrivals"] = Field(
        default="keep",
        description="`keep` (default) every reading; `arrivals` drops one whose location the record also has in its "
        "time cell before, which protects less: what is dropped is not looked at.",
    )
    exclusion: Literal["refuse", "report", "repair"] | None = Field(
        default=None,
        description="What happens if a reader who knows up to L readings of a person, and that nobody is at two "
        "places at once, is left with fewer than K records or a share above C: `refuse` (default; single) ends the "
        "job, `report` says it, `repair` (single) takes items from further records; both refuse a table with "
        "a record at two places in one time cell, which cannot be tested. Joint: `report`, in each owner's "
        "own-account.json.",
    )
    max_items: int = Field(
        default=64,
        ge=1,
        le=MOST_ITEMS,
        description="Most items of a record; a table with a longer one is refused. Work grows as its subsets of L.",
    )
    max_candidates: int = Field(
        default=4_000_000,
        ge=1,
        le=1 << 28,
        description="Most sequences of one size to be counted; a run that needs more ends before it counts them.",
    )

    @model_validator(mode="after")
    def _cost_of_global(self) -> SequencesModel:
        if self.cost is not None and self.suppress != GLOBAL:
            raise ValueError("`cost` is for `suppress: global`: local suppression weighs nothing")
        return self

    def bounds(self, own: Mapping[str, Fraction | None]) -> dict[str, Fraction]:
        """C by sensitive column, 1 being none; ``own``: what these say in `columns`. Besides whatever `C` names."""
        if isinstance(self.C, Mapping):
            return {name: c or Fraction(1) for name, c in own.items()} | self.C
        return {name: c or self.C for name, c in own.items()}

    def demands(self, bounds: Mapping[str, Fraction]) -> tuple[Demand, ...]:
        """What the records of every sequence must meet; bounds: C by sensitive column."""
        most = None if isinstance(self.C, Mapping) else self.C
        return Size(self.K), Confidences(most, tuple(bounds.items()))


def completed(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a job of sequences with the keys that they leave out under `model.sequences`."""
    model = job["model"]
    asked = model["sequences"]
    if not isinstance(asked, Mapping):
        return dict(job)
    exclusion = asked.get("exclusion") or (REFUSE if job.get("partition") == "single" else REPORT)
    cost = asked.get("cost") or (INSTANCES if asked.get("suppress") == GLOBAL else None)
    return {**job, "model": {**model, "sequences": {**asked, "exclusion": exclusion, "cost": cost}}}
