"""Shape of a job file, as frozen models.

Partition, model and mode check relations between the parts (:mod:`jobs.loading`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from anonymize.scores.names import needs_class
from jobs import plain_columns
from jobs.data.dialect import FEATHER, PARQUET, WORKBOOKS
from jobs.data.texts import alike, cure_of, fault_of
from jobs.dp import settings as dp
from jobs.dp.settings import CELL, NEVER, SYNTHETIC, DpSettings
from jobs.errors import ConfigError
from jobs.file.clusters import ClusterSettings
from jobs.file.columns import Column
from jobs.file.fields import DEFAULT_LEVEL, Address, Fields, Level, Name
from jobs.file.table import Held, TextFile
from jobs.lkc import settings as lkc
from jobs.lkc.settings import Lkc
from jobs.sequences import settings as sequences
from jobs.sequences.settings import SequencesModel

MAX_COLUMNS = 1000


class Privacy(Fields):
    """The privacy model of the release: exactly one."""

    # The format knows models only by the fields below, with settings and defaults.

    lkc: Lkc | None = Field(default=None, description="LKC-privacy: linkage and inference are bounded.")
    dp: DpSettings | None = Field(
        default=None, description="Differential privacy: the release hardly depends on any one record."
    )
    sequences: SequencesModel | None = Field(
        default=None,
        description="LKC-privacy of trajectories, visited places or sets, toward an attacker who knows L "
        "items of a record. Single and horizontal jobs (`disclosure: sealed`).",
    )

    kinds: ClassVar[Mapping[str, str]] = {
        "lkc": "lkc",
        "dp": "dp",
        "sequences": "sequences",
    }
    """Model of each key."""
    of_methods: ClassVar[tuple[str, ...]] = (SYNTHETIC,)
    """Models chosen instead by a `method` under a key."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Privacy:
        if len(self._given) > 1:
            given = " and ".join(f"`{key}`" for key in self._given)
            named = ", ".join(f"`{key}`" for key in self.kinds)
            raise ValueError(f"{given} are given: give one of {named}, and no other")
        if not self._given:
            raise ValueError(f"give one of {', '.join(f'`{key}`' for key in self.kinds)}, and no other")
        return self

    @property
    def _given(self) -> list[str]:
        return [key for key in self.kinds if getattr(self, key) is not None]

    @property
    def name(self) -> str:
        """Name of the requested model."""
        return self.kinds[self._given[0]] if self.dp is None else self.dp.kind

    @property
    def generalized(self) -> tuple[str, ...]:
        """Roles of the columns that the model specializes."""
        generalized: tuple[str, ...] = getattr(self, self._given[0]).generalized
        return generalized


class TableFile(TextFile):
    """A table in a file: CSV or TSV (also .gz, .zst), .parquet, .feather, or .xlsx."""

    path: str = Field(description="The file, relative to the job file. The end of its name tells its kind.")
    sheet: str | None = Field(default=None, description="xlsx: the name of the sheet; default the first.")

    @model_validator(mode="after")
    def _keys_of_kind(self) -> TableFile:
        """Refuse a key that the reader of this kind of file would overlook."""
        ending = PurePath(self.path).suffix
        is_workbook = ending in WORKBOOKS
        if self.sheet is not None and not is_workbook:
            raise ValueError(
                f"`sheet` is for Excel workbooks (.xlsx), and {self.path} is none: leave `sheet` out"
            )
        for key in ("delimiter", "quote", "encoding"):
            if key in self.model_fields_set and (is_workbook or ending in (*PARQUET, *FEATHER)):
                raise ValueError(f"`{key}` is for text files, and {self.path} is none: leave `{key}` out")
        return self


class HeldTable(Held):
    """A table that an engine holds: exactly one of these."""


def _form_of_data(value: object) -> str:
    if isinstance(value, str):
        return "<path>"
    held = isinstance(value, HeldTable) or (
        isinstance(value, dict) and HeldTable.kinds().keys() & value.keys()
    )
    return "<engine>" if held else "<file>"


TableText = Annotated[
    Annotated[str, Tag("<path>")]
    | Annotated[TableFile, Tag("<file>")]
    | Annotated[HeldTable, Tag("<engine>")],
    Discriminator(_form_of_data),
]
"""Table by path alone, with further facts for its reader, or in an engine."""


class PartyEntry(Fields):
    """Data holder."""

    address: Address | None = Field(
        default=None,
        description="host:port of this party, for others whose own configuration does not say it. "
        "Optional where every configuration says it.",
    )
    columns: tuple[str, ...] | None = Field(
        default=None,
        description="vertical: the columns that this party contributes, besides id and class. Each column"
        " has one party.",
    )


_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "horizontal": {"disclosure": DEFAULT_LEVEL},
    "vertical": {"disclosure": DEFAULT_LEVEL},
}
"""Default settings of a job, by partition."""

_COMPLETED: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "lkc": lkc.completed,
    "dp": dp.completed,
    "sequences": sequences.completed,
}
"""Completion of a job's omitted fields, by key under `model`."""


class Job(Fields):
    """A job file."""

    version: Literal["1"] = Field(description="Version of the job format.")
    name: Name = Field(description="Name of the job.")
    partition: Literal["single", "horizontal", "vertical"] = Field(
        description="How the table is divided. `single`: one holder has all. `horizontal`: each party has"
        " rows of its own. `vertical`: each party has columns of its own about the same "
        "people."
    )
    model: Privacy = Field(description="The privacy requirement.")
    goal: Literal["classification", "general", "clusters"] | None = Field(
        default=None,
        description="The use of the table, which the choice of specializations optimizes. "
        "`classification` (default): a class is predicted. `general`: no use is known. "
        "`clusters`: the clusters of raw records, by a public model, are found again; LKC, "
        "single and horizontal jobs. A job of sequences has no goal.",
    )
    disclosure: Level | None = Field(
        default=None,
        description="Joint: the values that parties may learn during the run (docs/reveals.md). `sealed` "
        "(default) opens little more than the table. `strict` opens less: horizontal LKC "
        "jobs. `leader` opens more, as published.",
    )
    columns: dict[str, Column] = Field(
        min_length=1,
        max_length=MAX_COLUMNS,
        description="The columns in order, at most 1,000. Of equally good columns the earlier one is "
        "specialized.",
    )
    data: TableText | None = Field(
        default=None,
        description="single: the path of the table, relative to the job file; or its `path` and `delimiter`; or "
        "`name` and the engine that holds the table.",
    )
    parties: dict[Name, PartyEntry] | None = Field(
        default=None, description="Joint: the data holders, in order."
    )
    leader: Name | None = Field(
        default=None, description="Joint: the party that synchronizes the run; default the first party."
    )
    deputy: Name | None = Field(
        default=None,
        description="Joint: the party that evaluates circuits with the leader; default the party after "
        "the leader.",
    )
    deliver: Literal["all", "coordinator"] = Field(
        default="all",
        description="Joint: the receivers of release and report. `all`: every party and the coordinator. "
        "`coordinator`: the coordinator alone.",
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, fields: Any) -> Any:
        """Complete missing keys, by partition and model."""
        if not isinstance(fields, Mapping):
            return fields
        columns = fields.get("columns")
        if isinstance(columns, Mapping) and len(columns) > MAX_COLUMNS:  # before reading each column
            raise ValueError(f"`columns` has more than {MAX_COLUMNS} columns")
        said: Mapping[str, Any] = {**_DEFAULTS.get(str(fields.get("partition")), {}), **fields}
        model = said.get("model")
        for key in _COMPLETED.keys() & model.keys() if isinstance(model, Mapping) else ():
            said = _COMPLETED[key](said)
        return said

    def names(self, *roles: str) -> tuple[str, ...]:
        """Return the columns of the given roles, in job order."""
        return tuple(name for name, column in self.columns.items() if column.role in roles)

    @property
    def generalized(self) -> tuple[str, ...]:
        """Specialized columns, in job order."""
        return self.names(*self.model.generalized)

    @property
    def table(self) -> TableFile | HeldTable | None:
        """single: where the table is."""
        return TableFile(path=self.data) if isinstance(self.data, str) else self.data

    @property
    def roster(self) -> tuple[str, ...]:
        """Parties, in job order."""
        return tuple(self.parties or ())

    @property
    def record_holders(self) -> tuple[str, ...]:
        """Holders of records, where told apart: a horizontal roster, or the parties of a column."""
        if self.partition == "horizontal":
            return self.roster
        return tuple(party for name in self.names("party") for party in self.columns[name].domain or ())

    @property
    def leader_name(self) -> str:
        """Leader; the first party unless the job says otherwise."""
        return self.leader or self.roster[0]

    @property
    def deputy_name(self) -> str:
        """Second party of the compute pair: the party after the leader unless the job says otherwise."""
        after = (self.roster.index(self.leader_name) + 1) % len(self.roster)
        return self.deputy or self.roster[after]

    def contributed_by(self, party: str) -> tuple[str, ...]:
        """Return a party's contributed columns of a vertical job for publication, without the class, in job order."""
        listed = (self.parties or {})[party].columns or ()
        return tuple(name for name in self.names("qid", "sensitive", "plain") if name in listed)

    @property
    def published(self) -> tuple[str, ...]:
        """Columns of the release, in order."""
        return (*self.names("qid", "sensitive", "class", "plain"), *self.published_clusters)

    @property
    def lkc(self) -> Lkc:
        """Settings of an LKC job."""
        assert self.model.lkc is not None
        return self.model.lkc

    @property
    def clusters(self) -> ClusterSettings | None:
        """Model of an LKC job with goal clusters."""
        return None if self.model.lkc is None else self.model.lkc.clusters

    @property
    def published_clusters(self) -> tuple[str, ...]:
        """Column of each record's cluster, if published; not a column of the source tables."""
        return () if self.model.lkc is None else self.model.lkc.published_clusters

    def canonical(self) -> str:
        """Return the job as canonical JSON: keys in model order, columns in job order, nothing implicit or null."""
        fields = self.model_dump(mode="json", exclude_none=True)
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def check_columns(job: Job) -> None:
    """Refuse impossible columns. Raises ValueError."""
    two = alike(job.columns)
    if two is not None:
        raise ValueError(
            f"columns: {two[0]!r} and {two[1]!r} are two spellings of the same name: rename a column"
        )
    _check_texts(job)
    plain_columns.check(job.columns)
    for role in ("class", "party", "location", "time", "items"):
        if len(job.names(role)) > 1:
            raise ValueError(f"columns: only one column can have `role: {role}`")
    for name, column in job.columns.items():
        if column.missing in (CELL, NEVER) and job.model.name != SYNTHETIC:
            raise ValueError(
                f"columns.{name}.missing: `{column.missing}` is for DP jobs with `method: {SYNTHETIC}`"
            )
        if column.outside is not None and (job.model.lkc is None or job.partition != "single"):
            raise ValueError(
                f"columns.{name}.outside is for LKC jobs of one holder; in DP jobs a value outside the domain is "
                "never an error"
            )
        if column.weight is not None and (job.model.lkc is None or job.partition != "single"):
            raise ValueError(f"columns.{name}.weight is for LKC jobs of one holder; leave `weight` out")
        if column.from_data is not None and job.model.dp is None:
            raise ValueError(f"columns.{name}.from_data is for DP jobs")
    if job.model.lkc is None or job.clusters is not None:
        check_compared(job)
    _check_clusters(job)


def check_compared(job: Job) -> None:
    """Refuse keys of columns whose values a job with clusters, or without LKC, cannot compare. Raises ValueError."""
    for name, column in job.columns.items():
        if column.missing == "leaf" and column.is_numeric_qid:
            raise ValueError(
                f"columns.{name}.missing: `leaf` at a column of numbers or dates is for LKC jobs that generalize the "
                "column, without clusters; elsewhere leave `missing` out"
            )
        if column.dates is not None and column.dates.levels is not None:
            raise ValueError(f"columns.{name}.dates.levels is for LKC jobs without clusters; write `step`")
        if column.role == "qid" and column.level is not None:
            raise ValueError(
                f"columns.{name}.level at a qid is for LKC jobs without clusters; leave `level` out"
            )


def require_confirmed(job: Job) -> None:
    """Refuse to run a job with domains taken from the table. Raises ConfigError.

    The domain of a DP job is published, and the noise does not protect the domain.
    """
    names = [name for name, column in job.columns.items() if column.from_data is not None]
    if names:
        raise ConfigError(
            "job-invalid",
            f"the domain of {', '.join(names)} was taken from the table (`from_data: true`), and differential "
            "privacy does not protect a domain",
            remedy="replace each domain by a public one and remove `from_data`, or write `from_data: confirmed` "
            "if the domain is public knowledge",
        )


def _check_texts(job: Job) -> None:
    """Refuse names and values with an effect on their readers' programs. Raises ValueError."""
    for name, column in job.columns.items():
        fault = fault_of(name)
        if fault is not None or not name:
            why = f"{fault}; {cure_of(fault)}, in the job and in the table" if fault else "write a name"
            raise ValueError(f"columns: {name[:_MOST_TOLD]!r} cannot be a name: {why}")
        for key in ("domain", "values", "suppress"):
            for text in getattr(column, key) or ():
                fault = fault_of(text)
                if fault is not None:
                    raise ValueError(
                        f"columns.{name}.{key}: {text[:_MOST_TOLD]!r} cannot be published: {fault}; "
                        f"{cure_of(fault)}, in the job and in the table"
                    )


_MOST_TOLD = 60


def check_table(job: Job) -> None:
    """Refuse columns unsuitable for tables of generalized records. Raises ValueError."""
    for role in ("location", "time", "items"):
        for name in job.names(role):
            raise ValueError(f"columns.{name}: `role: {role}` is for jobs with `model: {{sequences: ...}}`")
    if not job.names("qid"):
        raise ValueError("columns: at least one column needs `role: qid`")
    if job.goal is not None and needs_class(job.goal) and job.clusters is None and not job.names("class"):
        raise ValueError(
            f"goal {job.goal} needs a column with `role: class`: add the column, or say `goal: general`"
        )


def _check_clusters(job: Job) -> None:
    """Require a model for the goal clusters, and no class. Raises ValueError."""
    if (job.goal == "clusters") != (job.clusters is not None):
        raise ValueError(
            "goal clusters needs `clusters: {model: FILE}` under `model.lkc`, and no other goal has `clusters`"
        )
    if job.clusters is None:
        return
    for name in job.names("class"):
        raise ValueError(
            f"columns.{name}: with goal clusters the cluster of a record takes the place of the class; "
            "say `role: plain`, `sensitive` or `qid`"
        )
    for name in job.published_clusters:
        if name in job.columns:
            raise ValueError(f"model.lkc.clusters.publish: the job has a column {name!r}; name another one")


def check_domains(job: Job) -> None:
    """Refuse a domain left to data if the domain must not depend on data. Raises ValueError."""
    for name in job.names("class", "sensitive"):
        if not job.columns[name].is_listed:
            raise ValueError(
                f"columns.{name}: a joint or DP job needs its `domain`, which must not depend on data"
            )
