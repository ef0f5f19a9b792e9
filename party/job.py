"""What is being asked: the job file (DESIGN §9) as frozen models, with everything that can be checked without data.

Scalars arrive as the text they were written as (:mod:`party.yaml_text`), so C and numeric domains are exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from party.errors import ConfigError

M = TypeVar("M", bound=BaseModel)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ADDRESS = r"^(\[[0-9a-fA-F:]+\]|[^\s:\[\]]+):[0-9]{1,5}$"
MIN_PARTIES_LEADER = 3
MAX_EPSILON = 10
"""Above it a job has to say that it is meant."""
LEAST_EPSILON, GREATEST_EPSILON = Fraction(1, 1000), Fraction(100)
"""Outside there is no job. Below, the noise of one count has thousands of records, and words of 64 bits would not
hold noisy scores of the gain in the longest runs; above, a release protects nothing, and δ ≤ 2^−40 takes coins of
hundreds of bits.
"""
COUNT = "count"
"""The column of counts in a DP release."""
_MAX_PORT = 65535
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
_FRACTION = re.compile(r"[0-9]+/[0-9]+")
_MAX_NUMBER_CHARS = 40
_MAX_TERM = 1 << 62


class Model(BaseModel):
    """Frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _rational(value: object) -> Fraction:
    text = str(value).strip()
    if len(text) > _MAX_NUMBER_CHARS or not (_NUMBER.fullmatch(text) or _FRACTION.fullmatch(text)):
        raise ValueError("write a number such as 0.2 or a fraction such as 1/5")
    try:
        return Fraction(text)
    except ZeroDivisionError as error:
        raise ValueError("write a fraction with a denominator above 0") from error


def _confidence(value: object) -> Fraction:
    c = _rational(value)
    if not 0 < c <= 1:
        raise ValueError("C must be above 0 and at most 1")
    if c.denominator >= _MAX_TERM:
        raise ValueError("C has too many digits for exact arithmetic; write it with fewer")
    return c


def positive(value: object) -> Fraction:
    """Read an amount of epsilon. Raises ValueError."""
    epsilon = _rational(value)
    if epsilon <= 0:
        raise ValueError("epsilon must be above 0")
    return epsilon


def _refined(value: object) -> object:
    """Say why 0 specializations are too few; what else is no number of them, pydantic says."""
    if re.fullmatch(r"-[0-9]+|0+", str(value).strip()):
        raise ValueError(
            "h must be at least 1: with h = 0 nothing is refined, and the release is how often each class occurs"
        )
    return value


def _decimal(value: object) -> Decimal:
    text = str(value).strip()
    if len(text) > _MAX_NUMBER_CHARS or not _NUMBER.fullmatch(text):
        raise ValueError("write a number such as 17 or 0.5")
    return Decimal(text)


def _address(value: object) -> str:
    text = str(value)
    if not re.fullmatch(ADDRESS, text) or int(text.rpartition(":")[2]) > _MAX_PORT:
        raise ValueError(f"write host:port, with a port of at most {_MAX_PORT}")
    return text


def _name(value: object) -> str:
    text = str(value)
    if not NAME.fullmatch(text):
        raise ValueError("a name has letters, digits, dots, dashes and underscores only, at most 64")
    return text


Confidence = Annotated[Fraction, BeforeValidator(_confidence), PlainSerializer(str)]
Epsilon = Annotated[Fraction, BeforeValidator(positive), PlainSerializer(str)]
Number = Annotated[Decimal, BeforeValidator(_decimal), PlainSerializer(str)]
Name = Annotated[str, BeforeValidator(_name)]
Address = Annotated[str, Field(pattern=ADDRESS), BeforeValidator(_address)]
Nested = Mapping[str, Any] | list[str]


class LkcModel(Model):
    """LKC-privacy: an attacker knows at most L columns; groups have K or more; confidence at most C."""

    L: int = Field(
        ge=1, description="How many quasi-identifier columns an attacker may know. Larger costs utility."
    )
    K: int = Field(ge=1, description="Smallest group on any L columns. 1 means no bound on identity linkage.")
    C: Confidence = Field(
        default=Fraction(1),
        description="Largest share of a protected value in any group; 1 means no bound. Required with a "
        "sensitive column that has no C of its own.",
    )


class DpModel(Model):
    """Differential privacy by DiffGen: chosen generalizations, and a noisy count of every cell."""

    epsilon: Epsilon = Field(
        description="The whole privacy budget of the release, e.g. 1 or 0.5; from 0.001 to 100. Larger protects "
        "less; above 10 only with `accept_large_epsilon`."
    )
    specializations: Annotated[int, BeforeValidator(_refined)] = Field(
        ge=1,
        le=1000,
        description="How many generalizations are refined (h), fixed before any data is touched. More make "
        "smaller cells, in which the noise weighs more.",
    )
    utility: Literal["max", "infogain"] = Field(
        default="max",
        description="What choices optimize. `max` needs half the noise; `infogain` not in horizontal jobs.",
    )
    noise: Literal["joint", "each"] = Field(
        default="joint",
        description="Joint: of the counts. `joint`: one noise that nobody knows, drawn inside a circuit; `each`: "
        "leader and deputy add one each, which is less accurate and faster.",
    )
    engine: Literal["circuit", "thesis"] = Field(
        default="circuit",
        description="Joint: `thesis` runs the published protocols, for two parties and tables of some tens of rows.",
    )
    max_rows: int = Field(
        default=1_000_000,
        ge=1,
        lt=1 << 31,
        description="Public bound on the rows of one holder; a table with more is refused. Larger: wider "
        "circuits, and with `infogain` more noise.",
    )
    max_cells: int = Field(
        default=100_000,
        ge=1,
        le=10_000_000,
        description="Public limit on the cells of the release. In joint jobs what would exceed it is not refined, "
        "and a job that must exceed it is refused; a single holder lists only cells above a threshold then.",
    )
    max_fanout: int = Field(
        default=64,
        ge=2,
        le=64,
        description="A node of a set-valued column with more children is not refined.",
    )
    accept_large_epsilon: bool = Field(
        default=False, description="Confirms that an epsilon above 10 is meant: it protects very little."
    )

    @model_validator(mode="after")
    def _sensible(self) -> DpModel:
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(
                f"an epsilon of {float(self.epsilon):g} releases nothing but noise: every count would be off by "
                f"thousands; raise it to at least {float(LEAST_EPSILON):g}"
            )
        if self.epsilon > GREATEST_EPSILON:
            raise ValueError(
                f"an epsilon of {float(self.epsilon):g} protects nothing: counts would be all but exact; lower it to "
                f"at most {MAX_EPSILON}, or to {GREATEST_EPSILON} with `accept_large_epsilon: true`"
            )
        if self.epsilon > MAX_EPSILON and not self.accept_large_epsilon:
            raise ValueError(
                f"an epsilon of {float(self.epsilon):g} protects very little; lower it to at most {MAX_EPSILON}, or "
                "say `accept_large_epsilon: true` if it is meant"
            )
        return self


class Privacy(Model):
    """The privacy model of the release: exactly one."""

    lkc: LkcModel | None = Field(
        default=None, description="LKC-privacy: how it bounds linkage and inference."
    )
    dp: DpModel | None = Field(
        default=None, description="Differential privacy: what a release may tell about a record."
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Privacy:
        if (self.lkc is None) == (self.dp is None):
            raise ValueError("give either `lkc` or `dp`")
        return self


class NumericDomain(Model):
    """A public domain [min, max) with a public grid of cut points; never taken from the data."""

    min: Number = Field(description="Smallest value of the domain.")
    max: Number = Field(description="First value above the domain.")
    step: Number | None = Field(default=None, description="Cut points at min+step, min+2·step, ...")
    cuts: tuple[Number, ...] | None = Field(default=None, description="Explicit cut points, ascending.")

    @model_validator(mode="after")
    def _one_grid(self) -> NumericDomain:
        if (self.step is None) == (self.cuts is None):
            raise ValueError("give either `step` or `cuts`")
        return self


class SetOf(Model):
    """A column whose cells hold several values of one taxonomy; DP jobs of a single holder."""

    taxonomy: str | Nested = Field(
        description="Path of an ARX hierarchy CSV, relative to the job file, or the tree itself."
    )
    separator: str = Field(default=";", min_length=1, max_length=8, description="Stands between the values.")
    max_items: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Of a cell with more different values only the first so many count. Unset: no bound, and many "
        "more empty combinations to tell from occupied ones.",
    )


class Column(Model):
    """One published column (or the id)."""

    role: Literal["id", "qid", "sensitive", "class", "plain"] = Field(description="What the column is.")
    taxonomy: str | Nested | None = Field(
        default=None,
        description="qid: path of an ARX hierarchy CSV, relative to the job file, or the tree itself.",
    )
    numeric: NumericDomain | None = Field(
        default=None,
        description="qid: domain and grid of a numeric column; in sealed horizontal jobs at most 4,096 cells.",
    )
    set: SetOf | None = Field(default=None, description="qid, dp: a set-valued column.")
    missing: Literal["leaf", "drop"] | None = Field(
        default=None,
        description="What `?` or an empty cell means. Categorical qid: `leaf` (default) keeps the row under a leaf"
        " `?`; `drop` drops the row. Numeric: always drop. Class and sensitive: an error unless `drop`; in DP jobs "
        "a row without a class is dropped, and sensitive columns are like categorical ones. Vertical DP jobs drop no "
        "row and have no `drop`: no number counts in the lowest cell, no class as `other` or the domain's first.",
    )
    other: str | None = Field(
        default=None,
        description="dp: the value that stands for one outside the domain. Default: what `missing` says of a "
        "missing cell; of the class: the row is dropped (vertical: it counts as the domain's first). Numbers outside "
        "are moved to the nearest cell.",
    )
    domain: tuple[str, ...] | None = Field(
        default=None, description="class, sensitive: all values, in canonical order. Required in joint jobs."
    )
    values: tuple[str, ...] | None = Field(
        default=None, description="sensitive: the protected values; default all of the domain."
    )
    C: Confidence | None = Field(
        default=None, description="sensitive: this column's own C; default the model's."
    )
    shared_by: Name | None = Field(
        default=None,
        description="class, vertical: the one party that holds the class and gives it to the others, by record.",
    )

    @property
    def protected(self) -> tuple[str, ...]:
        """sensitive: the values that are protected; none where all values of unlisted data are."""
        return (self.values if self.values is not None else self.domain) or ()

    @model_validator(mode="after")
    def _keys_fit_role(self) -> Column:
        allowed = {
            "id": set(),
            "qid": {"taxonomy", "numeric", "set", "missing", "other"},
            "sensitive": {"domain", "values", "C", "missing", "other"},
            "class": {"domain", "missing", "shared_by", "other"},
            "plain": set(),
        }[self.role]
        extra = {key for key in self.model_fields_set if getattr(self, key) is not None} - allowed - {"role"}
        if extra:
            raise ValueError(f"a column of role {self.role} has no key {sorted(extra)[0]!r}")
        if self.role == "qid" and [self.taxonomy, self.numeric, self.set].count(None) != 2:
            raise ValueError("a qid column needs either `taxonomy` or `numeric` (or `set`, in DP jobs)")
        if self.numeric is not None and self.other is not None:
            raise ValueError("`other` is for categorical columns; numbers are moved to the nearest cell")
        if self.numeric is not None and self.missing == "leaf":
            raise ValueError("rows without a number are dropped: `missing: leaf` is for categorical columns")
        if self.role in {"class", "sensitive"} and self.missing == "leaf":
            raise ValueError(
                "`missing: leaf` is for quasi-identifiers; list '?' in `domain` to keep such rows"
            )
        for key in ("domain", "values"):
            listed = getattr(self, key)
            if listed is not None and (not listed or len(set(listed)) != len(listed)):
                raise ValueError(f"`{key}` lists each value once, and at least one")
        if self.domain is not None and self.values is not None and not set(self.values) <= set(self.domain):
            raise ValueError("`values` must be in `domain`")
        if self.domain is not None and self.other is not None and self.other not in self.domain:
            raise ValueError("`other` must be in `domain`")
        return self


class PartyEntry(Model):
    """One data holder."""

    address: Address = Field(description="host:port")
    columns: tuple[str, ...] | None = Field(
        default=None,
        description="vertical: the columns this party contributes, besides id and class. Each column has one party.",
    )


class Job(Model):
    """A job file."""

    version: Literal["1"] = Field(description="Version of the job format.")
    name: Name = Field(description="Name of the job.")
    partition: Literal["single", "horizontal", "vertical"] = Field(description="Who holds what.")
    model: Privacy = Field(description="The privacy requirement.")
    goal: Literal["classification", "general"] = Field(
        default="classification",
        description="What the table is for: what the choice of specializations optimizes.",
    )
    disclosure: Literal["sealed", "leader"] | None = Field(
        default=None,
        description="Joint: what parties may learn on the way (docs/security.md); default sealed.",
    )
    secure_sum: Literal["masked", "ring"] | None = Field(
        default=None,
        description="disclosure leader: `masked` (default) resists n-2 colluders; `ring` as published.",
    )
    columns: dict[str, Column] = Field(min_length=1, description="In order; ties go to the earlier column.")
    data: str | None = Field(default=None, description="single: the table, relative to the job file.")
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
        description="vertical: C also holds in every cell of the table (all generalized quasi-identifiers and the "
        "class), which parties know of each person they have matched; default false. Usually costs utility.",
    )
    deliver: Literal["all", "coordinator"] = Field(
        default="all", description="Joint: who receives release and report."
    )

    @model_validator(mode="before")
    @classmethod
    def _joint_defaults(cls, fields: Any) -> Any:
        """A joint job that does not say how much it discloses discloses least."""
        if not isinstance(fields, Mapping) or fields.get("partition") not in {"horizontal", "vertical"}:
            return fields
        defaults = {"insider": False} if fields["partition"] == "vertical" else {}
        return {"disclosure": "sealed", **defaults, **fields}

    @model_validator(mode="after")
    def _consistent(self) -> Job:
        _check_columns(self)
        if self.partition == "single":
            _check_single(self)
        else:
            _check_joint(self)
        if self.partition == "vertical":
            _check_vertical(self)
        else:
            _check_not_vertical(self)
        if self.model.dp is not None:
            _check_dp(self, self.model.dp)
        else:
            _check_not_dp(self)
        return self

    def names(self, *roles: str) -> tuple[str, ...]:
        """Columns of these roles, in job order."""
        return tuple(name for name, column in self.columns.items() if column.role in roles)

    @property
    def generalized(self) -> tuple[str, ...]:
        """The columns that are specialized, in job order. In DP jobs a sensitive column is one of them."""
        return self.names("qid") if self.model.dp is None else self.names("qid", "sensitive")

    @property
    def roster(self) -> tuple[str, ...]:
        """The parties, in job order."""
        return tuple(self.parties or ())

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

    def held_by(self, party: str | None) -> tuple[str, ...]:
        """The columns that a party's table must have, in job order: all of them unless the job is vertical."""
        if self.partition != "vertical" or party is None:
            return tuple(self.columns)
        held = {*self.names("id"), *self.contributed_by(party)}
        held |= {n for n in self.names("class") if self.columns[n].shared_by in (None, party)}
        return tuple(name for name in self.columns if name in held)

    def parts_of(self, party: str) -> frozenset[str]:
        """What the coordinator fetches from a party: `result`; generalized `rows`; non-QID `columns` by cell."""
        parts = {"result"} if party == self.leader_name else set()
        if self.model.dp is not None:
            return frozenset(parts)
        if self.partition == "vertical":
            others = [n for n in self.contributed_by(party) if self.columns[n].role != "qid"]
            parts |= {"columns"} if others else set()
        elif self.names("plain"):
            parts |= {"rows"}
        return frozenset(parts)

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of the release, in order."""
        return self.names("qid", "sensitive", "class", "plain")

    def canonical(self) -> str:
        """The job as canonical JSON: keys in model order, columns in job order, nothing left implicit or null."""
        fields = self.model_dump(mode="json", exclude_none=True)
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _check_columns(job: Job) -> None:
    if not job.names("qid"):
        raise ValueError("columns: at least one column needs `role: qid`")
    if len(job.names("class")) > 1:
        raise ValueError("columns: only one column can have `role: class`")
    if job.goal == "classification" and not job.names("class"):
        raise ValueError(
            "goal classification needs a column with `role: class`; without one, say `goal: general`"
        )
    unbound = [name for name in job.names("sensitive") if job.columns[name].C is None]
    if unbound and job.model.lkc is not None and "C" not in job.model.lkc.model_fields_set:
        raise ValueError(f"sensitive column {unbound[0]} needs a C, its own or in `model.lkc` (1: no bound)")


def _check_single(job: Job) -> None:
    if job.data is None:
        raise ValueError("partition single needs `data: table.csv`")
    for key in ("disclosure", "secure_sum", "parties", "leader", "deputy"):
        if getattr(job, key) is not None:
            raise ValueError(f"partition single has no `{key}`")


def _check_joint(job: Job) -> None:
    if job.data is not None:
        raise ValueError("a joint job has no `data`: each party's table stands in its own configuration")
    if len(job.roster) < 2:
        raise ValueError("a joint job needs `parties`, two or more")
    for key in ("leader", "deputy"):
        named = getattr(job, key)
        if named is not None and named not in job.roster:
            raise ValueError(f"`{key}` must be one of the parties")
    if job.deputy is not None and job.deputy == job.leader_name:
        raise ValueError("leader and deputy must be different parties")
    if job.secure_sum is not None and job.disclosure != "leader":
        raise ValueError("`secure_sum` is for `disclosure: leader`")
    for name in job.names("class", "sensitive"):
        if job.columns[name].domain is None:
            raise ValueError(f"columns.{name}: a joint job needs its `domain`, which must not depend on data")


def _check_vertical(job: Job) -> None:
    """Ids to match by, and exactly one party for every column."""
    if not job.names("id"):
        raise ValueError("a vertical job needs a column with `role: id`, by which records are matched")
    if job.secure_sum is not None:
        raise ValueError("`secure_sum` is for horizontal jobs")
    owners: dict[str, list[str]] = {name: [] for name in job.columns}
    for party, entry in (job.parties or {}).items():
        if entry.columns is None:
            raise ValueError(f"parties.{party}: a vertical job says which `columns` a party contributes")
        for name in entry.columns:
            if name not in job.columns:
                raise ValueError(f"parties.{party}.columns: the job has no column {name!r}")
            owners[name].append(party)
    for name, claimed in owners.items():
        if job.columns[name].role in {"id", "class"}:
            _check_common(job, name, claimed)
        elif len(claimed) != 1:
            who = f"contributed by {' and by '.join(claimed) or 'nobody'}"
            raise ValueError(f"columns.{name}: {who}; name one party for it, once")


def _check_common(job: Job, name: str, claimed: Sequence[str]) -> None:
    """Id and class need not be listed; where they are, the list must say who has them."""
    giver = job.columns[name].shared_by
    if giver is not None and giver not in job.roster:
        raise ValueError(f"columns.{name}.shared_by: {giver!r} is none of the parties")
    holders = job.roster if giver is None else (giver,)
    if claimed and set(claimed) != set(holders):
        raise ValueError(
            f"columns.{name}: listed by {' and '.join(claimed)}, but {' and '.join(holders)} must have it; "
            "list it nowhere, or a class that one party gives to the others under `shared_by`"
        )


def _check_not_vertical(job: Job) -> None:
    if job.insider is not None:
        raise ValueError("`insider` is for vertical jobs")
    for party, entry in (job.parties or {}).items():
        if entry.columns is not None:
            raise ValueError(f"parties.{party}.columns is for vertical jobs")
    for name in job.names("class"):
        if job.columns[name].shared_by is not None:
            raise ValueError(f"columns.{name}.shared_by is for vertical jobs")


def _check_dp(job: Job, model: DpModel) -> None:
    """What differential privacy asks of a job: everything about the domain is public, nothing is exact."""
    (name,) = job.names("class") or (None,)
    if name is None or job.goal != "classification":
        raise ValueError("a DP job needs a column with `role: class`, and goal classification")
    for column in job.names("class", "sensitive"):
        if job.columns[column].domain is None:
            raise ValueError(f"columns.{column}: a DP job needs its `domain`: it must not depend on data")
    if job.columns[name].shared_by is not None:
        raise ValueError(f"columns.{name}.shared_by: in DP jobs both parties must hold the class")
    if job.names("plain"):
        raise ValueError(
            f"columns.{job.names('plain')[0]}: a DP release holds nothing exact, so no `plain` column"
        )
    if COUNT in job.published:
        raise ValueError(f"columns.{COUNT}: the release has a column of this name; rename yours")
    if job.disclosure == "leader" or job.insider:
        raise ValueError("`disclosure: leader` and `insider` are for LKC jobs")
    if job.partition == "single":
        _check_dp_single(model)
    else:
        _check_dp_joint(job, model)


def _check_dp_single(model: DpModel) -> None:
    for key, default in (("noise", "joint"), ("engine", "circuit")):
        if getattr(model, key) != default:
            raise ValueError(f"model.dp.{key} is for joint jobs")


def _check_dp_joint(job: Job, model: DpModel) -> None:
    for name in job.names("qid"):
        if job.columns[name].set is not None:
            raise ValueError(f"columns.{name}: set-valued columns are for jobs of a single holder")
    if job.partition == "vertical":
        _check_dp_vertical(job)
    if len(job.roster) != 2 and model.engine == "thesis":
        raise ValueError(f"model.dp.engine: thesis is for two parties, not {len(job.roster)}")
    if model.utility == "infogain" and (job.partition == "horizontal" or model.engine == "thesis"):
        raise ValueError(
            "model.dp.utility: infogain is for single holders and vertical jobs with engine circuit"
        )


def _check_dp_vertical(job: Job) -> None:
    """Two parties; and no value decides whether its row is matched, which the peer would see."""
    if len(job.roster) != 2:
        raise ValueError(f"vertical DP jobs have two parties, not {len(job.roster)}")
    for name, column in job.columns.items():
        if column.missing == "drop":
            raise ValueError(
                f"columns.{name}.missing: in vertical DP jobs `drop` would tell the peer whose value is missing; "
                "leave it out: missing categories become a leaf `?`, missing numbers count in the lowest cell"
            )


def _check_not_dp(job: Job) -> None:
    for name, column in job.columns.items():
        for key in ("set", "other"):
            if getattr(column, key) is not None:
                raise ValueError(f"columns.{name}.{key} is for DP jobs")


def parse_job(fields: Any, where: str) -> Job:
    """Validate a job read from YAML or JSON. Raises ConfigError that names every wrong key with its path."""
    job = parse_model(Job, fields, where, "job-invalid")
    few = len(job.roster) < MIN_PARTIES_LEADER
    if job.partition == "horizontal" and job.disclosure == "leader" and few:
        raise ConfigError(
            "job-too-few-parties",
            f"{where}: `disclosure: leader` needs {MIN_PARTIES_LEADER} or more parties, not {len(job.roster)}: "
            "with two, the sum minus one's own counts is the other's counts; say `disclosure: sealed`",
        )
    return job


def parse_model(model: type[M], fields: Any, where: str, error_id: str) -> M:
    """Validate fields against a model. Raises ConfigError listing each problem with the key's path."""
    if not isinstance(fields, Mapping):
        raise ConfigError(error_id, f"{where}: expected keys and values")
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        problems = [_explain(item) for item in error.errors(include_url=False, include_context=True)]
        unknown = any(item["type"] == "extra_forbidden" for item in error.errors(include_url=False))
        raise ConfigError(
            "unknown-key" if unknown else error_id, f"{where}: " + "; ".join(problems)
        ) from None


def _explain(item: Mapping[str, Any]) -> str:
    loc = [str(part) for part in item["loc"]]
    path = ".".join(part for i, part in enumerate(loc) if not _is_union_tag(loc, i))
    if item["type"] == "extra_forbidden":
        return f"unknown key `{path}`"
    if item["type"] == "missing":
        return f"`{path}` is missing"
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"`{path}`: {message}" if path else message


def _is_union_tag(loc: Sequence[str], i: int) -> bool:
    """Pydantic names the branch of a union in the path; the user's file has no such key."""
    return i > 0 and loc[i - 1] == "taxonomy" and loc[i] in {"str", "dict[str,any]", "list[str]"}
