"""Keys of a job file under `model.lkc`: the entries of the requirement, and settings of the whole job.

`requirements` there is a list of entries. A single entry has its keys there directly. A further criterion is a key
here; a file in :mod:`jobs.lkc.options`, named in :mod:`jobs.lkc.options.option`; a file in
:mod:`anonymize.criteria`; and a separate definition in :mod:`anonymize.verification.tables`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypeGuard

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from anonymize.scores.names import OF_GAIN, OF_GOAL, SCORES, STRICT, WITH_CONTEXTS, By
from jobs.file.clusters import ClusterSettings
from jobs.file.fields import DEFAULT_GOAL, DEFAULT_LEVEL, RECORD, Bounds, Fields, Least, Share
from jobs.file.makers import MAKERS

_STRICT = "strict"
"""Level that discloses nothing of a candidate before the choice."""


MAX_DIVERSITY = 6
"""Largest l. A single holder searches groups: the time for a group grows with columns to the power of values."""
ALL = "all"
IN_ROWS = "rows"
"""Form of a release unless the job says otherwise."""
TOP_DOWN, KD = "top-down", "kd"
"""Methods of LKC jobs."""
PUBLIC, MEDIAN = "public", "median"
"""Places where kd cuts."""


def completed(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an LKC job with all defaults: goal, settings, `refine` of columns."""
    job = {**job, "goal": job.get("goal") or DEFAULT_GOAL}
    model, columns = job["model"], job.get("columns")
    asked = model["lkc"]
    if not isinstance(asked, Mapping):
        return job
    lkc = {**asked, **{key: said for key, said in _defaults(job, asked).items() if asked.get(key) is None}}
    job |= {"model": {**model, "lkc": lkc}}
    if isinstance(columns, Mapping):
        job |= {"columns": {name: _with_refine(column, lkc) for name, column in columns.items()}}
    return job


def _defaults(job: Mapping[str, Any], lkc: Mapping[str, Any]) -> dict[str, Any]:
    """Return the method of a job, and the default keys for the method and the partition."""
    method = lkc.get("method") or TOP_DOWN
    of_method = _DEFAULTS.get(str(method))
    own = _OF_MODE.get((str(job.get("partition")), str(job.get("disclosure"))), {})
    return {"method": method, **own, **({} if of_method is None else of_method(job, lkc))}


_OF_MODE: Mapping[tuple[str, str], dict[str, Any]] = {
    ("horizontal", "leader"): {"secure_sum": "masked"},
    ("vertical", DEFAULT_LEVEL): {"insider": False},
}
"""Additional keys of a job, by partition and disclosure."""


def _default_split(job: Mapping[str, Any], lkc: Mapping[str, Any]) -> dict[str, Any]:
    return {"split": PUBLIC}


def default_score(job: Mapping[str, Any], lkc: Mapping[str, Any]) -> dict[str, Any]:
    """Return the score of a top-down job without a stated score.

    The default is the first score of the goal; with `disclosure: strict`, the first that discloses nothing of
    candidates. Contexts are cells; leaf partitions in vertical jobs, where only the holder knows sensitive values,
    and in releases that do not link the class with sensitive values.
    """
    names = OF_GOAL.get(str(job.get("goal", DEFAULT_GOAL)), ())
    able = (name for name in names if job.get("disclosure") != _STRICT or name in STRICT)
    score = lkc.get("score") or next(able, None)
    made = {"score": score}
    if score in names and score in WITH_CONTEXTS:
        apart = job.get("partition") == "vertical" or any(
            lkc.get(key) not in (None, linked) for key, linked in _LINKED.items()
        )
        made["contexts"] = "partitions" if apart else "cells"
    return made


_LINKED = {"link": ALL, "release": IN_ROWS}
"""Value of each key with which a release links the class with all sensitive values."""


_DEFAULTS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]] = {
    TOP_DOWN: default_score,
    KD: _default_split,
}
"""Default settings of a method, by method."""


def _with_refine(column: Any, lkc: Mapping[str, Any]) -> Any:
    """Return a quasi-identifier of a job file; with a taxonomy and without a `refine`, add the default `refine`.

    `child`, except for scores of information gain alone: there `child` makes tables worse (semantics §10.10, D41).
    """
    if not isinstance(column, Mapping) or column.get("role") != "qid" or column.get("refine") is not None:
        return column
    if lkc.get("method") != TOP_DOWN:
        return column
    if column.get("suppress") is not None:
        return {**column, "refine": "child"}
    if all(column.get(key) is None for key in ("taxonomy", *MAKERS)):
        return column
    return {**column, "refine": "children" if lkc.get("score") in OF_GAIN else "child"}


_COUNT = re.compile(r"[+]?0*[1-9][0-9]{0,8}")


def _known(value: object) -> object:
    """Read `all`, or a whole number above 0. Raises ValueError."""
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
"""Number of columns within an attacker's knowledge."""


def _one_at_most(number: int) -> int:
    if number > 1:
        raise ValueError("write `ruled_out: 1`, or `diversity` for readers who rule out more values")
    return number


RuledOut = Annotated[int, Field(ge=0, json_schema_extra={"maximum": 1}), AfterValidator(_one_at_most)]
"""Number of values of negative background knowledge."""


class Requirement(Fields):
    """Requirement toward an attacker who knows some of the quasi-identifiers; it must ask for something."""

    columns: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="The quasi-identifiers that an attacker may know; default all. Some requirement must "
        "name every column of `role: qid`. An attacker who knows columns of different "
        "requirements is not considered.",
    )
    L: Known = Field(
        default="all",
        description="The number of these columns that an attacker may know, or `all` (default). A larger "
        "L costs utility.",
    )
    K: Least = Field(
        default=1, description="The fewest records that agree on any L columns. 1 means no bound on linkage."
    )
    C: Bounds = Field(
        default=Fraction(1),
        description="Largest share of a protected value in any group, for all sensitive columns or by "
        "column; 1 means no bound. A column that is not named has its own C, else 1.",
    )
    distinct: dict[str, Annotated[int, Field(ge=2)]] | None = Field(
        default=None,
        min_length=1,
        description="By sensitive column, the fewest different values of any group, protected or not "
        "(distinct l-diversity). In all modes. Costs utility.",
    )
    t: Bounds | None = Field(
        default=None,
        description="Largest distance of the values of a group from the values of the whole table "
        "(t-closeness), protected or not, for all sensitive columns or by column; 1 means no "
        "bound. The key `distance` of a column says how far values are apart. One holder, "
        "`method: top-down` or `kd`. Costs much utility.",
    )
    ruled_out: RuledOut | None = Field(
        default=None,
        description="1: C also holds for an attacker who rules out any one sensitive value of a person, "
        "of any column, and looks at the records that are left; no records left is allowed. "
        "Default 0. In vertical jobs the columns are those of one holder, with at most 256 "
        "combinations of values. Costs utility.",
    )
    diversity: int | None = Field(
        default=None,
        ge=2,
        le=MAX_DIVERSITY,
        description="The l of l-diversity. An attacker who rules out any l - 2 sensitive values of a "
        "person, or fewer, does not find one protected value in all records that are left. 2:"
        " no group has one value in all records, and any C below 1 says more. Default: none. "
        "Single up to 6; leader, sealed, strict and vertical up to 3. In vertical jobs, above"
        " 2, the columns are those of one holder, with at most 256 combinations of values. "
        "Costs utility.",
    )
    colluders: int | None = Field(
        default=None,
        ge=0,
        description="The requirement also holds for the rest of every group after any so many parties, or"
        " fewer, subtract their own rows; an empty rest is allowed. Less than the number of "
        "parties; default 0. For horizontal jobs with `disclosure: sealed`, and for one table"
        " with a column of `role: party`. Costs utility.",
    )

    @field_validator("colluders", "ruled_out")
    @classmethod
    def _none_are_not_said(cls, number: int | None) -> int | None:
        """Give jobs with the same request the same form."""
        return number or None

    def bounds(self, own: Mapping[str, Fraction | None]) -> dict[str, Fraction]:
        """Return C by sensitive column, 1 being no bound; ``own``: each C in `columns`. A mapping `C` comes first."""
        if isinstance(self.C, Mapping):
            return {name: c or Fraction(1) for name, c in own.items()} | self.C
        return {name: c or self.C for name, c in own.items()}


_NOT_SAID: Mapping[str, Any] = {
    "unit": RECORD,
    "link": "all",
    "release": IN_ROWS,
    "quasi": "generalized",
    "files": "csv",
}
"""Value of each key that says nothing. Jobs without the key keep their form."""


def _form_of_link(value: object) -> str:
    return "<word>" if isinstance(value, str) else "<blocks>"


def _blocks(value: object) -> object:
    """Refuse a value that is neither a word nor a list of blocks, in a single sentence."""
    if value in _WORDS or (_is_list(value) and all(_is_list(block) for block in value)):
        return value
    if _is_list(value) and all(isinstance(name, str) for name in value):
        raise ValueError(f"write blocks, each a list of columns: [[{', '.join(value)}]]")
    raise ValueError("write all, none, or blocks of columns, e.g. [[diagnosis, drug], [outcome]]")


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Return whether a value is a list with entries."""
    return isinstance(value, list | tuple) and len(value) > 0


_WORDS = (ALL, "none")
Block = Annotated[tuple[str, ...], Field(min_length=1)]
Link = Annotated[
    Annotated[Literal["all", "none"], Tag("<word>")]
    | Annotated[Annotated[tuple[Block, ...], Field(min_length=1)], Tag("<blocks>")],
    Discriminator(_form_of_link),
    BeforeValidator(_blocks),
]
"""Sensitive columns that stay linked: all, none, or some with each other."""

if TYPE_CHECKING:
    ScoreName: TypeAlias = str
else:
    ScoreName = Literal[tuple(SCORES)]


class LkcSettings(Fields):
    """Keys under `model.lkc` that are not one requirement's."""

    generalized: ClassVar[tuple[str, ...]] = ("qid",)
    """Roles of the specialized columns."""

    unit: Literal["record", "person"] | None = Field(
        default=None,
        description="The unit of K. `record` (default). `person`: different people, whom the columns of "
        "`role: id` name, for a table with several records of a person. `person` is for one "
        "holder, and for horizontal jobs (`disclosure: sealed` or `leader`), where each party"
        " counts its own people. A vertical job has one record of each id. C counts records. "
        "Costs utility.",
    )
    method: Literal["top-down", "kd"] | None = Field(
        default=None,
        description="The method of generalization. `top-down` (default): one cut of every column for the "
        "whole table, in every partition and disclosure. `kd`: every group of records is cut "
        "by itself (docs/semantics/kd.md, 11). It keeps far more detail where an attacker knows "
        "all quasi-identifiers. kd is for single and horizontal jobs (`disclosure: sealed`), "
        "one requirement with `L: all`, and goal general.",
    )
    split: Literal["public", "median"] | None = Field(
        default=None,
        description="method kd: the places of cuts. `public` (default): places that follow from published"
        " values, in all modes of kd. `median`: places that halve the records of a group, "
        "single only.",
    )
    score: ScoreName | None = Field(
        default=None,
        description="method top-down: the score that compares candidates (docs/semantics/topdown.md §3.5, §10.6)."
        " goal classification: `added` (default), the information that a specialization adds "
        "to the present table; `infogain`, its information gain by itself, as published, and "
        "the default with `disclosure: strict`; `tdr`, information gain for each step of "
        "anonymity lost. goal general: `groups` (default), large groups first; `records`, "
        "values with most records first.",
    )
    contexts: By | None = Field(
        default=None,
        description="score added: the groups that it counts in. `cells` (default): leaf partitions by "
        "sensitive values. `partitions`: leaf partitions alone (vertical: the only form, and "
        "default).",
    )
    withhold: Share | None = Field(
        default=None,
        description="single: the largest share of rows, at most 1/2, that may be left out, so that the "
        "other rows keep more detail. Rows are left out of groups that block a specialization"
        " (docs/semantics/topdown.md, 10.9). Only the number of these rows is published. Default 0. "
        "Refused in joint jobs, and with `plain` columns.",
    )
    link: Link | None = Field(
        default=None,
        description="The sensitive columns that the release links. `all` (default): the values of a "
        "record stand in one row. `none`: each column is a block by itself. Or blocks, as "
        "`[[diagnosis, drug], [outcome]]`, where a column that is not named is a block by "
        "itself. Every block is shuffled inside every group; the class stays with the "
        "quasi-identifiers. For single jobs, and for horizontal jobs of `disclosure: sealed` "
        "without `plain` columns, whose parties learn counts block by block. Other joint jobs"
        " count linked values, and refuse the key.",
    )
    release: Literal["rows", "anatomy"] | None = Field(
        default=None,
        description="The form of the release. `rows` (default): one row for every record. `anatomy`: "
        "`groups.csv` has the groups with their numbers of records; `sensitive.csv` has the "
        "counts of their sensitive values, block by block. So class and sensitive values are "
        "not linked. For single jobs, and for horizontal jobs without a class or with `link`."
        " Refused in vertical jobs, and with `plain` columns.",
    )
    quasi: Literal["generalized", "exact"] | None = Field(
        default=None,
        description="release anatomy, single: the quasi-identifiers in `groups.csv`. `generalized` "
        "(default): the common values of a group. `exact`: one row for every record, with its"
        " raw values and its group. Everybody then knows who is in the table, and K bounds "
        "inference only.",
    )
    files: Literal["csv", "parquet"] | None = Field(
        default=None,
        description="The files of the table. `csv` (default): `anonymized.csv`, its rows in random order. "
        "`parquet`: the folder `anonymized` with parts of at most 16,777,216 rows, the rows in the order of their "
        "values, for tables larger than memory. Parquet is for single jobs and for `release: rows`. "
        "`coordinator verify` then needs `jointcut[duckdb]`.",
    )
    clusters: ClusterSettings | None = Field(
        default=None,
        description="goal clusters: the model of the clusters, and the published column of clusters.",
    )
    insider: bool | None = Field(
        default=None,
        description="vertical: C, `distinct`, `ruled_out` and `diversity` also hold in every cell of the "
        "table: all generalized quasi-identifiers and the class. A party knows the cell of "
        "each person that it has matched. Default false. Usually costs utility.",
    )
    secure_sum: Literal["masked", "ring"] | None = Field(
        default=None,
        description="disclosure leader: the protocol of sums. `masked` (default) resists n-2 colluders; "
        "`ring` is as published.",
    )

    @field_validator("withhold")
    @classmethod
    def _nothing_is_not_said(cls, withhold: Fraction | None) -> Fraction | None:
        """Give jobs with the same request the same form."""
        return withhold or None

    @field_validator("unit", "link", "release", "quasi", "files")
    @classmethod
    def _defaults_are_not_said(cls, said: Any, about: ValidationInfo) -> Any:
        """Give jobs with the same request the same form."""
        return None if said == _NOT_SAID[str(about.field_name)] else said

    @property
    def published_clusters(self) -> tuple[str, ...]:
        """Column of each record's cluster, if published; not a column of the source tables."""
        found = None if self.clusters is None else self.clusters.publish
        return () if found is None else (found,)


class LkcModel(LkcSettings, Requirement):
    """LKC-privacy: an attacker knows at most L columns; groups have K or more; confidence at most C."""

    L: Known = Field(
        description="The number of quasi-identifiers that an attacker may know, or `all`. A larger L "
        "costs utility."
    )
    K: Least = Field(
        description="The fewest records that agree on any L columns. 1 means no bound on linkage."
    )
    C: Bounds = Field(
        default=Fraction(1),
        description="Largest share of a protected value in any group, for all sensitive columns or by "
        "column; 1 means no bound. Required with a sensitive column that has no C of its own.",
    )

    @property
    def entries(self) -> tuple[tuple[str, Requirement], ...]:
        """Entry of the requirement, with its place in the file."""
        return (("model.lkc", self),)


MAX_REQUIREMENTS = 64
"""Most requirements of a job. Each requirement is a further test of every specialization."""


def _not_too_many(value: object) -> object:
    """Refuse a list of an impossible length before its entries are read."""
    if isinstance(value, Sequence) and not isinstance(value, str) and not 0 < len(value) <= MAX_REQUIREMENTS:
        raise ValueError(f"list 1 to {MAX_REQUIREMENTS} requirements, not {len(value)}")
    return value


class LkcList(LkcSettings):
    """LKC-privacy toward several kinds of knowledge: all of the requirements hold of the release."""

    requirements: Annotated[tuple[Requirement, ...], BeforeValidator(_not_too_many)] = Field(
        json_schema_extra={"minItems": 1, "maxItems": MAX_REQUIREMENTS},
        description="What holds toward several kinds of knowledge, instead of L, K and C. In all modes.",
    )

    @property
    def entries(self) -> tuple[tuple[str, Requirement], ...]:
        """Entries of the requirement, each with its place in the file."""
        return tuple((f"model.lkc.requirements.{i}", entry) for i, entry in enumerate(self.requirements))


def _form_of_lkc(fields: object) -> str:
    several = "requirements" in fields if isinstance(fields, Mapping) else isinstance(fields, LkcList)
    return "<several>" if several else "<one>"


Lkc = Annotated[
    Annotated[LkcModel, Tag("<one>")] | Annotated[LkcList, Tag("<several>")], Discriminator(_form_of_lkc)
]
"""Keys under `model.lkc`: of a single requirement, or of several."""
