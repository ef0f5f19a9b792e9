"""What is being asked: the shape of a job file, as frozen models.

What its parts must have to do with each other is checked by partition, model and mode (:mod:`jobs.loading`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from anonymize.scores.names import SCORES, By, needs_class
from jobs import as_it_is
from jobs.data.texts import alike, fault_of
from jobs.dp.settings import DpModel
from jobs.file.clusters import ClusterSettings
from jobs.file.columns import Column
from jobs.file.fields import DEFAULT_LEVEL, DELIMITER, RECORD, Address, Fields, Level, Name, Share
from jobs.lkc.settings import IN_ROWS, LkcModel, Requirement, method_defaults, with_refine
from jobs.sequences.settings import SequencesModel, with_exclusion
from jobs.synthetic.settings import CELL, NEVER, SYNTHETIC, SyntheticModel, with_missing

MAX_COLUMNS = 1000


MAX_REQUIREMENTS = 64
"""Of one job: each is one more test of every specialization."""


def _not_too_many(value: object) -> object:
    """A list of an impossible length is refused before its entries are read."""
    if isinstance(value, Sequence) and not isinstance(value, str) and not 0 < len(value) <= MAX_REQUIREMENTS:
        raise ValueError(f"list 1 to {MAX_REQUIREMENTS} requirements, not {len(value)}")
    return value


_LKC = ("lkc", "requirements")
"""The keys that ask for LKC-privacy."""


def _method(fields: object) -> str:
    """The branch of `model.dp`; where the method is neither, `diffgen` says so."""
    method = fields.get("method") if isinstance(fields, Mapping) else getattr(fields, "method", None)
    return f"<{SYNTHETIC}>" if method == SYNTHETIC else "<diffgen>"


DpSettings = Annotated[
    Annotated[DpModel, Tag("<diffgen>")] | Annotated[SyntheticModel, Tag(f"<{SYNTHETIC}>")],
    Discriminator(_method),
]
"""What stands under `model.dp`, by method."""


class Privacy(Fields):
    """The privacy model of the release: exactly one."""

    # These fields are all that the format of jobs knows of models.

    lkc: LkcModel | None = Field(
        default=None,
        description="LKC-privacy: how it bounds linkage and inference. The same as a list of one.",
    )
    requirements: Annotated[tuple[Requirement, ...], BeforeValidator(_not_too_many)] | None = Field(
        default=None,
        json_schema_extra={"minItems": 1, "maxItems": MAX_REQUIREMENTS},
        description="LKC-privacy toward several kinds of knowledge: all of these hold of the release. In all modes.",
    )
    dp: DpSettings | None = Field(
        default=None, description="Differential privacy: what a release may tell about a record."
    )
    sequences: SequencesModel | None = Field(
        default=None,
        description="LKC-privacy of trajectories, visited places or sets: who knows L items of a record. Single and "
        "horizontal jobs (`disclosure: sealed`).",
    )

    unit: Literal["record", "person"] | None = Field(
        default=None,
        description="LKC: what K counts: records (default), or different people, whom the columns of `role: id` "
        "name. `person` is for tables with several records of a person: of one holder, or horizontal (`disclosure: "
        "sealed` or `leader`), where each party counts its own people; a vertical job has one record of each id. C "
        "counts records. Costs utility.",
    )

    @model_validator(mode="before")
    @classmethod
    def _unit(cls, fields: Any) -> Any:
        """An LKC job that does not say counts records."""
        if not isinstance(fields, Mapping) or not any(fields.get(key) is not None for key in _LKC):
            return fields
        return {**fields, "unit": fields.get("unit") or RECORD}

    kinds: ClassVar[Mapping[str, str]] = {
        "lkc": "lkc",
        "requirements": "lkc",
        "dp": "dp",
        "sequences": "sequences",
    }
    """By key the model that it asks for."""
    of_methods: ClassVar[tuple[str, ...]] = (SYNTHETIC,)
    """The models that a `method` under a key asks for instead."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Privacy:
        if len(self._given) != 1:
            raise ValueError(f"give one of {', '.join(f'`{key}`' for key in self.kinds)}, and no other")
        return self

    @model_validator(mode="after")
    def _unit_of_lkc(self) -> Privacy:
        if self.unit is not None and self.dp is not None:
            raise ValueError(
                "model.unit is for LKC jobs: in DP jobs the unit of ε is the record, or the person with "
                "`model.dp.max_records_per_person`"
            )
        if self.unit is not None and self.sequences is not None:
            raise ValueError(
                "model.unit is for LKC jobs: in jobs of sequences all readings of one id are one record"
            )
        return self

    @property
    def _given(self) -> list[str]:
        return [key for key in self.kinds if getattr(self, key) is not None]

    @property
    def name(self) -> str:
        """The model that is asked for."""
        return self.kinds[self._given[0]] if self.dp is None else self.dp.kind

    @property
    def entries(self) -> tuple[tuple[str, Requirement], ...]:
        """LKC: the entries of the requirement, each with its key in the file."""
        if self.lkc is not None:
            return (("model.lkc", self.lkc),)
        return tuple((f"model.requirements.{i}", entry) for i, entry in enumerate(self.requirements or ()))

    @property
    def generalized(self) -> tuple[str, ...]:
        """The roles of the columns that the model specializes."""
        given = getattr(self, self._given[0])
        own = isinstance(given, SequencesModel | DpModel | SyntheticModel)
        return given.generalized if own else Requirement.generalized


class TableFile(Fields):
    """A table in a file."""

    path: str = Field(description="The file, relative to the job file; a CSV may end in .gz.")
    delimiter: str = Field(
        default=",", pattern=DELIMITER, description="csv: the separator, one ASCII character but no quote."
    )


def _form_of_data(value: object) -> str:
    return "<path>" if isinstance(value, str) else "<file>"


TableText = Annotated[
    Annotated[str, Tag("<path>")] | Annotated[TableFile, Tag("<file>")], Discriminator(_form_of_data)
]
"""A table by its path alone, or with what else its reader must know."""


class PartyEntry(Fields):
    """One data holder."""

    address: Address | None = Field(
        default=None,
        description="host:port where the others reach this party, for those whose own configuration does not say. "
        "May be left out where each of them says it.",
    )
    columns: tuple[str, ...] | None = Field(
        default=None,
        description="vertical: the columns this party contributes, besides id and class. Each column has one party.",
    )


_NOT_SAID: Mapping[str, Any] = {
    "link": "all",
    "relinkable": True,
    "release": IN_ROWS,
    "quasi": "generalized",
    "accept_exact_quasi_identifiers": False,
}
"""By key a value that says nothing: jobs had their form before there was the key."""

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "horizontal": {"disclosure": DEFAULT_LEVEL},
    "vertical": {"disclosure": DEFAULT_LEVEL, "insider": False},
}
"""By partition, what a job says if it does not say it."""

_GOAL = "classification"


def _lkc_defaults(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    with_goal = fields if fields.get("goal") is not None else {**fields, "goal": _GOAL}
    return {"goal": _GOAL, **method_defaults(with_goal)}


_DEFAULTS_OF_MODEL: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    **dict.fromkeys(_LKC, _lkc_defaults),
    "dp": lambda _: {"goal": _GOAL},
}
"""By key under `model` the same, from the keys that are given."""

_DEFAULTS_OF_COLUMNS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    **dict.fromkeys(_LKC, with_refine),
    "dp": with_missing,
}
"""By key under `model` a column with what it does not say, from the other keys of the job."""

_DEFAULTS_WITHIN_MODEL: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {"sequences": with_exclusion}
"""By key under `model` what stands there with what it does not say, from the other keys of the job."""


def _form_of_link(value: object) -> str:
    return "<word>" if isinstance(value, str) else "<blocks>"


Block = Annotated[tuple[str, ...], Field(min_length=1)]
Link = Annotated[
    Annotated[Literal["all", "none"], Tag("<word>")]
    | Annotated[Annotated[tuple[Block, ...], Field(min_length=1)], Tag("<blocks>")],
    Discriminator(_form_of_link),
]
"""Which sensitive columns stay linked: all, none, or some with each other."""

if TYPE_CHECKING:
    ScoreName: TypeAlias = str
else:
    ScoreName = Literal[tuple(SCORES)]


class Job(Fields):
    """A job file."""

    version: Literal["1"] = Field(description="Version of the job format.")
    name: Name = Field(description="Name of the job.")
    partition: Literal["single", "horizontal", "vertical"] = Field(description="Who holds what.")
    model: Privacy = Field(description="The privacy requirement.")
    goal: Literal["classification", "general", "clusters"] | None = Field(
        default=None,
        description="What the table is for: what the choice of specializations optimizes; default classification. "
        "`clusters`: LKC, single and horizontal jobs: what tells apart the clusters of raw records, by a public "
        "model. Jobs of sequences have none.",
    )
    clusters: ClusterSettings | None = Field(
        default=None, description="goal clusters: the model, and whether each record's cluster is published."
    )
    method: Literal["top-down", "kd"] | None = Field(
        default=None,
        description="LKC: how the table is generalized. `top-down` (default): one cut of every column for the whole "
        "table, in every partition and disclosure. `kd`: every group of records is cut by itself (docs/semantics.md, "
        "11), which keeps far more detail where all quasi-identifiers are known: single and horizontal jobs "
        "(`disclosure: sealed`), one requirement with `L: all`, goal general. Refused in vertical and DP jobs.",
    )
    split: Literal["public", "median"] | None = Field(
        default=None,
        description="method kd: where groups are cut. `public` (default): at places that follow from what is "
        "published, in all modes of kd; `median`: where their own records are halved, single only.",
    )
    link: Link | None = Field(
        default=None,
        description="LKC: which sensitive columns the release links. `all` (default): the values of a record "
        "stand in one row; `none`; or blocks, as `[[diagnosis, drug], [outcome]]`, where a column that is not named "
        "is a block by itself. Several blocks, of rows: each is shuffled inside every group, and the class stays "
        "with the quasi-identifiers. Single, and horizontal jobs of `disclosure: sealed`, whose parties are told "
        "counts block by block, without `plain` columns; refused in all other joint jobs, whose parties count linked "
        "values, and in DP jobs.",
    )
    relinkable: bool | None = Field(
        default=None,
        description="LKC with several blocks: whether `ruled_out` and `diversity` hold even for whoever can "
        "link the blocks again (true, default; nobody can check that in the release), or block by block (false). "
        "Costs utility; true in joint jobs time, too.",
    )
    release: Literal["rows", "anatomy"] | None = Field(
        default=None,
        description="LKC: what the release is written as. `rows` (default): one row for every record. `anatomy`: "
        "`groups.csv`, what every group is and how many records it has, and `sensitive.csv`, how many have which "
        "sensitive values, block by block, so that class and sensitive values are not linked. Single, and horizontal "
        "jobs without a class, or with `link`; refused in vertical and DP jobs, and with `plain` columns.",
    )
    quasi: Literal["generalized", "exact"] | None = Field(
        default=None,
        description="release anatomy, single: what `groups.csv` has of quasi-identifiers. `generalized` (default): "
        "what is common to a group; `exact`: one row for every record with its raw values and its group. Who is in "
        "the table is public then, and K bounds inference only.",
    )
    accept_exact_quasi_identifiers: bool | None = Field(
        default=None,
        description="quasi exact: `true` says that the raw quasi-identifiers of every record may be published.",
    )
    score: ScoreName | None = Field(
        default=None,
        description="LKC, method top-down: how candidates are compared (docs/semantics.md §3.5, §10.6). goal "
        "classification: `added` (default), what a specialization adds to the table as it stands; `infogain`, what "
        "it tells by itself, as published: default and only one with `disclosure: strict`; `tdr`, that for each step "
        "of anonymity lost. goal general: `groups` (default), large groups first; `records`, values with most "
        "records first.",
    )
    contexts: By | None = Field(
        default=None,
        description="score added: what it counts by: `cells`, leaf partitions by sensitive values (default), or "
        "`partitions`, leaf partitions alone (vertical: the only form, and default).",
    )
    withhold: Share | None = Field(
        default=None,
        description="single, LKC: up to this share of the rows, at most 1/2, may be left out so that the others "
        "keep more detail: rows in groups that block a specialization (docs/semantics.md, 10.9). Of them only the "
        "number is published. Default 0. Refused in joint and DP jobs, and with `plain` columns.",
    )
    disclosure: Level | None = Field(
        default=None,
        description="Joint: what parties may learn on the way (docs/security.md); default sealed. `strict`: "
        "horizontal LKC jobs.",
    )
    secure_sum: Literal["masked", "ring"] | None = Field(
        default=None,
        description="disclosure leader: `masked` (default) resists n-2 colluders; `ring` as published.",
    )
    columns: dict[str, Column] = Field(
        min_length=1,
        max_length=MAX_COLUMNS,
        description="In order, at most 1,000; ties go to the earlier column.",
    )
    data: TableText | None = Field(
        default=None,
        description="single: the table, relative to the job file; or its `path` and `delimiter`.",
    )
    parties: dict[Name, PartyEntry] | None = Field(
        default=None, description="Joint: the data holders, in order."
    )
    leader: Name | None = Field(
        default=None, description="Joint: who synchronizes the run; default the first."
    )
    deputy: Name | None = Field(
        default=None, description="Joint: evaluates circuits with the leader; default the party after it."
    )
    insider: bool | None = Field(
        default=None,
        description="vertical: C, `distinct`, `ruled_out` and `diversity` also hold in every cell of the table (all "
        "generalized quasi-identifiers and the class), which parties know of each person they have matched; default "
        "false. Usually costs utility.",
    )
    deliver: Literal["all", "coordinator"] = Field(
        default="all", description="Joint: who receives release and report."
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, fields: Any) -> Any:
        """What partition and model make of keys that are not given."""
        if not isinstance(fields, Mapping):
            return fields
        columns = fields.get("columns")
        if isinstance(columns, Mapping) and len(columns) > MAX_COLUMNS:  # before each of them is read
            raise ValueError(f"`columns` has more than {MAX_COLUMNS} columns")
        said = {**_DEFAULTS.get(str(fields.get("partition")), {}), **fields}
        model = said.get("model")
        for key in model if isinstance(model, Mapping) else ():
            if key in _DEFAULTS_OF_MODEL:
                said |= {k: v for k, v in _DEFAULTS_OF_MODEL[key](said).items() if said.get(k) is None}
            if key in _DEFAULTS_OF_COLUMNS and isinstance(columns, Mapping):
                of_column = _DEFAULTS_OF_COLUMNS[key]
                said["columns"] = {name: of_column(column, said) for name, column in columns.items()}
            if key in _DEFAULTS_WITHIN_MODEL and isinstance(model, Mapping):
                said["model"] = {**model, key: _DEFAULTS_WITHIN_MODEL[key](model[key], said)}
        return said

    @field_validator("withhold")
    @classmethod
    def _none_is_not_said(cls, withhold: Fraction | None) -> Fraction | None:
        """Jobs that ask the same have one form."""
        return withhold or None

    @field_validator("link", "relinkable", "release", "quasi", "accept_exact_quasi_identifiers")
    @classmethod
    def _defaults_are_not_said(cls, said: Any, about: ValidationInfo) -> Any:
        """The same."""
        return None if said == _NOT_SAID[str(about.field_name)] else said

    def names(self, *roles: str) -> tuple[str, ...]:
        """Columns of these roles, in job order."""
        return tuple(name for name, column in self.columns.items() if column.role in roles)

    @property
    def generalized(self) -> tuple[str, ...]:
        """The columns that are specialized, in job order."""
        return self.names(*self.model.generalized)

    @property
    def table(self) -> TableFile | None:
        """single: where the table is."""
        return TableFile(path=self.data) if isinstance(self.data, str) else self.data

    @property
    def roster(self) -> tuple[str, ...]:
        """The parties, in job order."""
        return tuple(self.parties or ())

    @property
    def record_holders(self) -> tuple[str, ...]:
        """Whose records a table is made of, where they are told apart: a horizontal roster, or those of a column."""
        if self.partition == "horizontal":
            return self.roster
        return tuple(party for name in self.names("party") for party in self.columns[name].domain or ())

    @property
    def leader_name(self) -> str:
        """The leader; the first party unless the job says."""
        return self.leader or self.roster[0]

    @property
    def deputy_name(self) -> str:
        """The other of the compute pair; the party after the leader unless the job says."""
        after = (self.roster.index(self.leader_name) + 1) % len(self.roster)
        return self.deputy or self.roster[after]

    def contributed_by(self, party: str) -> tuple[str, ...]:
        """vertical: the published columns that a party contributes, but the class, in job order."""
        listed = (self.parties or {})[party].columns or ()
        return tuple(name for name in self.names("qid", "sensitive", "plain") if name in listed)

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of the release, in order."""
        return (*self.names("qid", "sensitive", "class", "plain"), *self.published_clusters)

    @property
    def published_clusters(self) -> tuple[str, ...]:
        """goal clusters: the column with each record's cluster, where it is published; no column of the tables."""
        found = None if self.clusters is None else self.clusters.publish
        return () if found is None else (found,)

    def canonical(self) -> str:
        """The job as canonical JSON: keys in model order, columns in job order, nothing left implicit or null."""
        fields = self.model_dump(mode="json", exclude_none=True)
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def check_columns(job: Job) -> None:
    """Refuse columns that no job can have. Raises ValueError."""
    two = alike(job.columns)
    if two is not None:
        raise ValueError(
            f"columns: {two[0]!r} and {two[1]!r} are two spellings of one name: rename one of them"
        )
    _check_texts(job)
    as_it_is.check(job.columns)
    for role in ("class", "party", "location", "time", "items"):
        if len(job.names(role)) > 1:
            raise ValueError(f"columns: only one column can have `role: {role}`")
    for name, column in job.columns.items():
        if column.missing in (CELL, NEVER) and job.model.name != SYNTHETIC:
            raise ValueError(
                f"columns.{name}.missing: `{column.missing}` is for DP jobs with `method: {SYNTHETIC}`"
            )
    _check_clusters(job)


def _check_texts(job: Job) -> None:
    """Refuse names and values that do something where they are read. Raises ValueError."""
    for name, column in job.columns.items():
        fault = fault_of(name)
        if fault is not None or not name:
            raise ValueError(f"columns: {name[:_MOST_TOLD]!r} cannot be a name: {fault or 'it is empty'}")
        for key in ("domain", "values", "suppress"):
            for text in getattr(column, key) or ():
                fault = fault_of(text)
                if fault is not None:
                    raise ValueError(
                        f"columns.{name}.{key}: {text[:_MOST_TOLD]!r} cannot be published: {fault}"
                    )


_MOST_TOLD = 60


def check_table(job: Job) -> None:
    """Refuse columns that no table of generalized records can have. Raises ValueError."""
    for role in ("location", "time", "items"):
        for name in job.names(role):
            raise ValueError(f"columns.{name}: `role: {role}` is for jobs with `model: {{sequences: ...}}`")
    if not job.names("qid"):
        raise ValueError("columns: at least one column needs `role: qid`")
    if job.goal is not None and needs_class(job.goal) and job.clusters is None and not job.names("class"):
        raise ValueError(
            f"goal {job.goal} needs a column with `role: class`; without one, say `goal: general`"
        )


def _check_clusters(job: Job) -> None:
    """Goal clusters has its model, and makes its own class. Raises ValueError."""
    if (job.goal == "clusters") != (job.clusters is not None):
        raise ValueError("goal clusters needs `clusters: {model: FILE}`, and no other goal has `clusters`")
    if job.clusters is None:
        return
    if not job.model.entries:
        raise ValueError("goal clusters is for LKC jobs")
    for name in job.names("class"):
        raise ValueError(
            f"columns.{name}: with goal clusters the cluster of a record takes the place of the class; "
            "say `role: plain`, `sensitive` or `qid`"
        )
    for name in job.published_clusters:
        if name in job.columns:
            raise ValueError(f"clusters.publish: the job has a column {name!r}; name another one")


def check_domains(job: Job) -> None:
    """Refuse a domain left to data, where it must not depend on data. Raises ValueError."""
    for name in job.names("class", "sensitive"):
        if not job.columns[name].is_listed:
            raise ValueError(
                f"columns.{name}: a joint or DP job needs its `domain`, which must not depend on data"
            )
