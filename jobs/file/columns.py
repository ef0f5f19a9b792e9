"""Columns of a job, each with its role, its public domain, and the treatment of missing cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    WithJsonSchema,
    field_validator,
    model_serializer,
    model_validator,
)

from anonymize.dates import ISO, LEVELS, are_nested
from anonymize.grid import plain
from anonymize.taxonomy import MISSING
from jobs.data.ids import IdForm
from jobs.data.table_file import as_read, shown
from jobs.data.texts import alike
from jobs.file.fields import (
    Confidence,
    DateForm,
    DateStep,
    Day,
    Duration,
    Epsilon,
    Fields,
    Name,
    Nested,
    Number,
    Stamp,
    StampOrDuration,
    is_duration,
    seconds_of,
)
from jobs.file.makers import MAKERS, ROOT, Icd, Maker, Order, Prefix, repeated

RANGES = "ranges"
_FEWEST_EDGES = 3
_LONG = ("taxonomy", "numeric", "dates", "suppress")
"""Domains that need no other form."""
CATEGORY = "category"
ORDERED = "ordered"
MOST_CELLS = 1 << 20
"""Most cells of a clock."""


_DOMAINS_OF_QID = frozenset({"taxonomy", "suppress", "numeric", "dates", "set"})
"""Keys for the values of a quasi-identifier. A column has exactly one of the keys."""
KEYS_OF_ROLE: Mapping[str, frozenset[str]] = {
    "id": frozenset({"normalize"}),
    "qid": _DOMAINS_OF_QID
    | {"level", "refine", "weight", "missing", "other", "outside", "from_data", "spellings", RANGES, *MAKERS},
    "sensitive": frozenset(
        {"domain", "taxonomy", "level", "publish", "numeric", "values", "C", "at_most", "distance"}
        | {"missing", "other", "outside", "from_data", "spellings", RANGES, *MAKERS}
    ),
    "class": frozenset(
        {"domain", "missing", "shared_by", "other", "outside", "from_data", "spellings", "publish_as_is"}
    ),
    "plain": frozenset({"publish_as_is"}),
    "party": frozenset({"domain", "spellings"}),
    "location": frozenset({"domain", "domain_file", "spellings"}),
    "time": frozenset({"numeric", "clock", "relative"}),
    "items": frozenset({"domain", "domain_file", "separator", "spellings"}),
}
"""Allowed keys of a column, by role."""


def _and_keys(keys: Sequence[str]) -> str:
    """Return two keys or more in words."""
    *first, last = [f"`{key}`" for key in keys]
    return f"{', '.join(first)} and {last}"


def _require_each_once(key: str, listed: Sequence[str] | None) -> None:
    """Refuse an empty list, and a value that is listed twice. Raises ValueError."""
    if listed is None:
        return
    if not listed:
        raise ValueError(
            f"`{key}` lists each value once, and at least one: list a value, or leave `{key}` out"
        )
    if (twice := repeated(listed)) is not None:
        raise ValueError(f"`{key}` lists each value once, and {shown(twice)} twice: leave one of them out")


class NumericDomain(Fields):
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


class DateDomain(Fields):
    """A public domain of days, cut into cells of days, weeks, months or years; never taken from the data."""

    start: Day = Field(alias="from", description="First day of the domain, e.g. 2024-01-01.")
    to: Day = Field(description="First day after the domain, e.g. 2025-01-01.")
    step: DateStep | None = Field(
        default=None,
        description="Length of a cell: a whole number with d (days), mo (months) or y (years), e.g. 7d, 1mo or 10y; "
        "or a unit of the calendar, on whose first day `from` lies: day, week (from a Monday), month, quarter, year. "
        "The last cell may be shorter. A column has either `step` or `levels`.",
    )
    levels: tuple[Literal["decade", "year", "quarter", "month", "week", "day"], ...] | None = Field(
        default=None,
        min_length=1,
        description="LKC jobs, instead of `step`: units of the calendar, e.g. [year, month]. A date is published as "
        "the day, week, month, quarter, year or decade that holds it: 2024-03-31, 2024-W13, 2024-03, 2024-Q1, 2024, "
        "2020s. ISO weeks lie in no month: with `week`, the only other level is `day`.",
    )
    form: DateForm | None = Field(
        default=None,
        description="The form of dates in table and release: YYYY, MM and DD, with `-`, `.`, `/` or "
        "nothing between them, e.g. DD.MM.YYYY or YYYYMMDD. Default YYYY-MM-DD, which is "
        "always read, too. A time of day may follow, as in 2024-01-31 10:00:00.",
    )
    time: Literal["cut", "keep"] | None = Field(
        default=None,
        description="The time of day. `cut` (default): left out. `keep`: synthetic tables have a time of "
        "day, too. Cells are whole days in either case.",
    )

    @model_serializer
    def _by_key(self) -> dict[str, Any]:
        """Return the fields by the keys of the file."""
        fields: dict[str, Any] = {"from": self.start, "to": self.to, "step": self.step, "levels": self.levels}
        fields |= {"form": self.form, "time": self.time}
        return {key: value for key, value in fields.items() if value is not None}

    @model_validator(mode="before")
    @classmethod
    def _with_length(cls, fields: Any) -> Any:
        """Replace a unit of the calendar in `step` by its length: a job has a single form."""
        unit = LEVELS.get(str(fields.get("step"))) if isinstance(fields, Mapping) else None
        if unit is None:
            return fields
        try:
            is_begun = unit.begins(date.fromisoformat(str(fields.get("from")).strip()))
        except ValueError:
            is_begun = True  # the fault of `from` is told by itself
        if not is_begun:
            name = fields["step"]
            monday = ", a Monday" if name == "week" else ""
            raise ValueError(
                f"`step: {name}` begins inside a {name}: write a `from` that is the first day of a {name}{monday}, "
                f"or `step: {unit.step}`"
            )
        return {**fields, "step": unit.step}

    @field_validator("levels")
    @classmethod
    def _coarsest_first(cls, levels: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Give jobs with the same request the same form."""
        return levels and tuple(level for level in LEVELS if level in levels)

    @model_validator(mode="after")
    def _one_form(self) -> DateDomain:
        if (self.step is None) == (self.levels is None):
            raise ValueError("give either `step` or `levels`")
        if not are_nested(self.levels or ()):
            raise ValueError(
                "`levels`: a week may begin in one month or year and end in the next, so no level holds weeks: "
                "write [week, day], [week], or levels without `week`"
            )
        if self.levels is not None and self.time == "keep":
            raise ValueError("`time: keep` is for synthetic tables, which have no `levels`")
        return self

    @field_validator("form")
    @classmethod
    def _iso_is_not_said(cls, form: str | None) -> str | None:
        """Give jobs with the same request the same form."""
        return None if form == ISO else form

    @field_validator("time")
    @classmethod
    def _cut_is_not_said(cls, time: str | None) -> str | None:
        """Give jobs with the same request the same form."""
        return None if time == "cut" else time


class Clock(Fields):
    """A public domain of local times without a zone, cut into cells of equal length; never taken from the data."""

    start: Stamp | None = Field(
        default=None,
        alias="from",
        description="First moment of the domain, e.g. 2026-01-01T00:00. With `relative` the domain begins"
        " at 0, and this key is refused.",
    )
    to: StampOrDuration = Field(
        description="First moment after the domain. With `relative`: the length of time after a record's "
        "first reading, e.g. 14d."
    )
    step: Duration = Field(description="Length of a cell: a whole number with s, m, h or d, e.g. 15m or 1h.")
    fold: Duration | None = Field(
        default=None,
        description="Period after which times repeat, counted from `from`: with `1d` cells are times of "
        "day. Refused with `relative`.",
    )

    @model_serializer
    def _by_key(self) -> dict[str, str]:
        """Return the fields by the keys of the file."""
        fields = {"from": self.start, "to": self.to, "step": self.step, "fold": self.fold}
        return {key: value for key, value in fields.items() if value is not None}

    def check(self, *, relative: bool) -> None:
        """Refuse a nonsensical domain. Raises ValueError."""
        if relative:
            if self.start is not None or self.fold is not None or not is_duration(self.to):
                raise ValueError(
                    "with `relative: true` times count from the first reading: leave `from` and `fold` out, and "
                    "write a length of time at `to`, e.g. 14d"
                )
        elif self.start is None or is_duration(self.to):
            raise ValueError("a clock needs `from` and `to`, local times such as 2026-01-31T14:05")
        if self.length <= 0:
            raise ValueError("`to` must be after `from`")
        whole = self.length if self.fold is None else seconds_of(self.fold)
        if whole % seconds_of(self.step):
            raise ValueError("`step` must divide the time from `from` to `to`, or `fold` where there is one")
        if self.n_cells > MOST_CELLS:
            raise ValueError(
                f"a clock has at most {MOST_CELLS} cells, not {self.n_cells}: take a larger `step`"
            )

    @property
    def length(self) -> int:
        """Seconds of the domain."""
        if self.start is None:
            return seconds_of(self.to)
        length = datetime.fromisoformat(self.to) - datetime.fromisoformat(self.start)
        return int(length.total_seconds())

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return (self.length if self.fold is None else seconds_of(self.fold)) // seconds_of(self.step)


class SetOf(Fields):
    """A column whose cells hold several values of one taxonomy; DP jobs of a single holder."""

    taxonomy: str | Nested = Field(
        description="Path of an ARX hierarchy CSV, relative to the job file, or the tree itself."
    )
    separator: str = Field(
        default=";", min_length=1, max_length=8, description="The text between the values of a cell."
    )
    max_items: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="The most values of a cell. Of a cell with more different values the first ones "
        "count. Unset: no bound, and many more empty combinations of values that need noise.",
    )


class IdNormalization(Fields):
    """Form of ids, applied by every party before ids are compared: in the order of these keys."""

    ignore_case: bool | None = Field(
        default=None, description="`true`: upper and lower case are the same; default false."
    )
    strip_prefix: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="A text that is left out at the beginning of an id, if the id has it: CUST-.",
    )
    digits: bool | None = Field(
        default=None, description="`true`: only the digits of an id count; default false."
    )
    zfill: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Zeros are put in front of an id up to this number of characters.",
    )

    @field_validator("ignore_case", "digits")
    @classmethod
    def _false_is_not_said(cls, said: bool | None) -> bool | None:
        """Give jobs with the same request the same form."""
        return said or None

    @property
    def form(self) -> IdForm:
        return IdForm(bool(self.ignore_case), self.strip_prefix or "", bool(self.digits), self.zfill or 0)


class Column(Fields):
    """Published column (or the id)."""

    role: Literal["id", "qid", "sensitive", "class", "plain", "party", "location", "time", "items"] = Field(
        description="The meaning of the column. `qid`: known to attackers, so it is generalized. "
        "`sensitive`: inferences of its values are bounded. `id`: names the person of a row; "
        "never published. `class` and `plain`: published as they are, and protected by "
        "nothing. `party`: names the party of a row, in one holder's table, for `colluders`; "
        "never published. Sequences: `location` and `time` of one reading a row, or `items`, "
        "the values of one record a row."
    )
    taxonomy: str | Nested | None = Field(
        default=None,
        description="qid, and sensitive in LKC jobs: the tree of values itself, or the path of an ARX "
        "hierarchy CSV, relative to the job file.",
    )
    level: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="qid with a taxonomy: the depth of the finest groups that may be published. sensitive with a "
        "taxonomy: the depth at which requirements and `values` speak of groups. 1: the children of the root. "
        "Default: single values. A value that stands higher in the tree is a group by itself. LKC in every partition "
        "and disclosure; at a qid without clusters.",
    )
    publish: Literal["value", "category"] | None = Field(
        default=None,
        description="sensitive with `level`: the published form. `value` (default): the value itself. "
        "`category`: its group at this level. A joint job counts every published value: a "
        "wide taxonomy needs `category` there.",
    )
    refine: Literal["children", "child"] | None = Field(
        default=None,
        description="qid with a taxonomy, LKC in every partition and disclosure: the step of a "
        "specialization. `children`: a value is replaced by all its children at once. "
        "`child`: one child leaves at a time, and the others stay together as `other VALUE`; "
        "more than 64 children leave all at once. Default: `children` with score infogain or "
        "tdr, else `child`.",
    )
    weight: Epsilon | None = Field(
        default=None,
        description="qid, LKC jobs of one holder, `method: top-down`: the score of a specialization of the column "
        "counts so many times. A column with `weight: 3` keeps more detail, at the cost of others. Default 1.",
    )
    suppress: tuple[str, ...] | None = Field(
        default=None,
        description="qid, LKC in every partition and disclosure: the list of the column's values. Each "
        "value is published as it is, or suppressed as `*`. This is short for a `taxonomy` of"
        " these values below `*` with `refine: child`.",
    )
    prefix: Prefix | None = Field(
        default=None,
        description="Like `taxonomy`, and short for a tree of codes by their first characters, such as ZIP codes.",
    )
    order: Order | None = Field(
        default=None,
        description="Like `taxonomy`, and short for a tree of ordered values in neighbouring groups.",
    )
    icd: Icd | None = Field(
        default=None,
        description="Like `taxonomy`, and short for a tree of ICD codes by chapter, block and category.",
    )
    ranges: tuple[Number, ...] | None = Field(
        default=None,
        min_length=_FEWEST_EDGES,
        description="Like `numeric`, and short for a grid by its edges, ascending: [0, 18, 40, 65, 120] has cells "
        "from [0,18) to [65,120).",
    )
    numeric: NumericDomain | None = Field(
        default=None,
        description="qid: domain and grid of a numeric column, at most 4,096 cells in sealed horizontal "
        "jobs and 1,024 in strict ones. sensitive in LKC jobs: the cells of the grid are the "
        "column's values, and are published.",
    )
    dates: DateDomain | None = Field(
        default=None,
        description="qid: domain and cells of a column of dates. Dates are read, cut and missing like "
        "numbers.",
    )
    set: SetOf | None = Field(default=None, description="qid, dp: a set-valued column.")
    missing: Literal["leaf", "drop", "cell", "never"] | None = Field(
        default=None,
        description="The meaning of `?` and of an empty cell. Categorical qid: `leaf` (default) keeps the"
        " row under a leaf `?`; `drop` drops the row. Numeric qid: `drop` (default) drops the row; `leaf`, in "
        "LKC jobs, keeps the row under `?`, next to the highest numbers: `[60,100) or ?`."
        " Class and sensitive: an error, unless `drop` is given; sensitive also takes `leaf`,"
        " which makes `?` one more value, published, and protected only if `values` names it."
        " DP, single and horizontal: a row without a class is dropped, and sensitive columns "
        "are like categorical ones. DP, vertical: no row is dropped. A cell that is no number"
        " counts in the lowest cell of the grid. A class that is missing or outside the "
        "domain counts as `other`, else as the first value of the domain. `method: "
        "synthetic`: no row is dropped. `cell` (default) makes a value of its own: `?`, or an"
        " empty cell instead of a number. `never` leaves no missing cell in the synthetic "
        "table: a missing cell counts as `other`, else as the first value of the domain. A "
        "class is treated as in vertical jobs. For rows without an id see "
        "`max_records_per_person`.",
    )
    other: str | None = Field(
        default=None,
        description="dp: the value that replaces every value outside the domain; with `missing: never` it"
        " replaces missing cells, too. Default: a value outside is treated as missing. A row "
        "with a class outside is dropped; in vertical jobs and with `method: synthetic` its "
        "class counts as the first value of the domain. A number outside moves to the nearest"
        " cell.",
    )
    outside: Literal["missing"] | None = Field(
        default=None,
        description="LKC jobs of one holder: `missing` treats a value outside the domain like a missing cell. "
        "Default: such a value is an error. In DP jobs see `other`.",
    )
    from_data: (
        Annotated[Literal["true", "confirmed"], WithJsonSchema({"enum": [True, "true", "confirmed"]})] | None
    ) = Field(
        default=None,
        description="dp: `true` says that the domain was taken from the table, as `coordinator draft` does. No run "
        "starts then, because DP does not protect the domain. Replace the domain by a public one and remove the key, "
        "or write `confirmed` if the domain is public knowledge.",
    )
    domain: tuple[str, ...] | None = Field(
        default=None,
        description="class, sensitive, location, items: all values, in canonical order; required in joint"
        " jobs. party: all parties, with rows or without; required.",
    )
    values: tuple[str, ...] | None = Field(
        default=None,
        description="sensitive: the protected values; default all. With `level` these are groups, with a "
        "grid these are cells, as [lo,hi).",
    )
    C: Confidence | None = Field(
        default=None, description="sensitive: the C of this column; default the C of the model."
    )
    at_most: int | None = Field(
        default=None,
        ge=0,
        description="sensitive, LKC with `ruled_out` or `diversity`: the most values of this column among"
        " those that are ruled out and inferred together; default no limit. A column with few"
        " values needs the key. 0 takes the column out of both. In all modes.",
    )
    distance: Literal["equal", "ordered"] | None = Field(
        default=None,
        description="sensitive, LKC of one holder with `t`: the distance of two values. `equal` "
        "(default): all values are equally far apart. `ordered`, for `numeric`: the number of"
        " cells between them. No distance becomes greater by `ordered`.",
    )
    shared_by: Name | None = Field(
        default=None,
        description="class, vertical: the party that holds the class, and tells the others the class of "
        "every record.",
    )

    publish_as_is: bool | None = Field(
        default=None,
        description="plain, class: `true` consents to publish a column that tells of single people, by "
        "its name (id, name, email, ...) or because most rows have a value of their own. "
        "Nothing protects the column.",
    )
    normalize: IdNormalization | None = Field(
        default=None,
        description="id: how ids are changed before they are compared, besides Unicode NFKC and blanks around. "
        "Public, and the same for all parties.",
    )
    spellings: Literal["distinct"] | None = Field(
        default=None,
        description="`distinct`: values that differ in case, blanks, invisible characters or letters that"
        " look alike are different values. Unset: two values that differ in this way are an "
        "error, in the table and in the job.",
    )

    domain_file: str | None = Field(
        default=None,
        description="location, items: instead of `domain`, the path of a text file with one value a line, relative "
        "to the job file.",
    )
    clock: Clock | None = Field(
        default=None, description="time: the cells of ISO local times (2026-01-31T14:05)."
    )
    relative: bool | None = Field(
        default=None,
        description="time: `true` counts time from the first reading of each record; default false. Joint"
        " jobs usually take it: hours since admission.",
    )
    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="items: the text between the values of a cell; default `;`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_role(cls, fields: Any) -> Any:
        """Give jobs with the same request the same form."""
        if isinstance(fields, Mapping) and fields.get("role") == "items" and fields.get("separator") is None:
            return {**fields, "separator": ";"}
        return fields

    @model_validator(mode="wrap")
    @classmethod
    def _with_domain(cls, fields: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        """Replace a maker by its taxonomy, and ranges by their grid: a job has a single form."""
        column = read(fields)
        short = [key for key in (*MAKERS, RANGES) if getattr(column, key) is not None]
        if not isinstance(fields, Mapping) or not KEYS_OF_ROLE[column.role].intersection(short):
            return column
        given = [*short, *(key for key in _LONG if getattr(column, key) is not None)]
        if len(given) > 1:
            raise ValueError(
                f"{_and_keys(given)} are given: give one of `taxonomy`, `numeric`, `dates`, `suppress`, `prefix`, "
                "`order`, `icd` and `ranges`"
            )
        others = {name: value for name, value in fields.items() if name != short[0]}
        return read({**others, **column._made(short[0])})

    def _made(self, key: str) -> dict[str, Any]:
        """Return the domain in place of a short key."""
        if key != RANGES:
            maker: Maker = getattr(self, key)
            return {"taxonomy": maker.taxonomy()}
        first, *cuts, last = map(plain, self.ranges or ())
        return {"numeric": {"min": first, "max": last, "cuts": cuts}}

    @field_validator(RANGES, mode="before")
    @classmethod
    def _ascending(cls, edges: object) -> object:
        """Refuse too few edges, and edges in another order. Other faults are told of each edge."""
        if isinstance(edges, list | tuple):
            try:
                numbers = [Fraction(str(edge)) for edge in edges]
            except (ValueError, ZeroDivisionError):
                return edges
            if len(numbers) < _FEWEST_EDGES or any(one >= other for one, other in pairwise(numbers)):
                raise ValueError(
                    "write three edges or more, ascending, e.g. [0, 18, 65, 120] for three cells"
                )
        return edges

    @field_validator("publish_as_is")
    @classmethod
    def _false_is_not_said(cls, meant: bool | None) -> bool | None:
        """Give jobs with the same request the same form."""
        return meant or None

    @field_validator("from_data", mode="before")
    @classmethod
    def _known_origin(cls, origin: object) -> str | None:
        """Read `true` or `confirmed`. A confirmed domain is like any other, so the key is not said."""
        text = str(origin).lower()
        if text not in ("none", "true", "confirmed"):
            raise ValueError("write `true`, or `confirmed` if the domain is public knowledge")
        return "true" if text == "true" else None

    @field_validator("relative")
    @classmethod
    def _absolute_is_not_said(cls, relative: bool | None) -> bool | None:
        """Give jobs with the same request the same form."""
        return relative or None

    @property
    def takes_dates(self) -> bool:
        """True if the job reads dates from the column, or publishes the texts as they are."""
        return self.dates is not None or self.clock is not None or self.role == "plain"

    @property
    def may_differ(self) -> bool:
        """True if two spellings of a value are two values."""
        return self.spellings is not None

    @property
    def file(self) -> str | None:
        """File with the column's values, or None."""
        return self.tree if isinstance(self.tree, str) else self.domain_file

    def filed(self, name: str) -> Column:
        """Return the column ``name`` with its file as named in bundles."""
        if self.domain_file is not None:
            return self.model_copy(update={"domain_file": f"{name}.txt"})
        return self.with_tree(f"{name}.csv")

    @property
    def tree(self) -> str | Nested | None:
        """Taxonomy of the column, or of the items of its cells; a path if in a file."""
        if self.suppress is not None:
            return {ROOT: self.suppress}
        return self.taxonomy if self.set is None else self.set.taxonomy

    def with_tree(self, tree: str) -> Column:
        """Return the column with its taxonomy in another file."""
        if self.set is not None:
            return self.model_copy(update={"set": self.set.model_copy(update={"taxonomy": tree})})
        return self.model_copy(update={"taxonomy": tree})

    @property
    def protected(self) -> tuple[str, ...]:
        """Protected values of a sensitive column, spelled as in `domain`, or in NFC without a listed domain.

        Empty if no domain is listed and all values are protected.
        """
        domain = self.domain or ()
        if self.values is None:
            return domain
        spelled = {as_read(value): value for value in domain}
        return tuple(spelled.get(form, form) for form in map(as_read, self.values))

    @model_validator(mode="after")
    def _keys_fit(self) -> Column:
        said = {key for key in self.model_fields_set if getattr(self, key) is not None}
        extra = said - KEYS_OF_ROLE[self.role] - {"role"}
        if extra:
            raise ValueError(f"a column of role {self.role} has no key {sorted(extra)[0]!r}")
        given = [key for key in type(self).model_fields if key in said & _DOMAINS_OF_QID]
        if self.role == "qid" and len(given) > 1:
            raise ValueError(
                f"{_and_keys(given)} are given, and a qid column has one domain: leave one of them out"
            )
        if self.role == "qid" and not given:
            raise ValueError(
                "a qid column needs one of `taxonomy`, `numeric` and `dates` (or `suppress`, `prefix`, `order`, "
                "`icd`, `ranges`; in DP jobs also `set`)"
            )
        self._check_refined()
        self._check_sensitive()
        if self.domain is not None and self.domain_file is not None:
            raise ValueError("give either `domain` or `domain_file`")
        self._check_time()
        if self.role == "party" and self.domain is None:
            raise ValueError("a party column needs its `domain`: all parties, as a joint job lists them")
        self._check_missing()
        for key in ("domain", "values"):
            listed = getattr(self, key)
            _require_each_once(key, listed)
        self._check_spellings()
        self._check_values()
        return self

    def _check_missing(self) -> None:
        """Check the treatment of cells that are missing, or hold no value of the domain."""
        if self.outside is not None and self.role != "qid" and (not self.is_listed or self.missing is None):
            raise ValueError(
                "`outside: missing` needs the values of the column (`domain`), and `missing`: the treatment of a "
                "missing cell"
            )
        is_number = self.numeric is not None or self.dates is not None
        if is_number and self.other is not None:
            raise ValueError(
                "`other` is for categorical columns; numbers and dates are moved to the nearest cell"
            )
        if self.role == "class" and self.missing not in (None, "drop"):
            raise ValueError(
                "`missing: leaf` is for quasi-identifiers and sensitive columns; list '?' in `domain` to keep such "
                "rows"
            )

    def _check_values(self) -> None:
        """Check that protected and further values are values of the domain, each listed once."""
        values = set(map(as_read, self.values or ()))
        if len(values) != len(self.values or ()):
            raise ValueError(
                "`values` lists each value once; two Unicode forms (NFC and NFD) count as one value"
            )
        if self.domain is None:
            return
        domain = set(map(as_read, self.domain))
        known = domain | ({MISSING} if self.missing == "leaf" else set())
        for value in self.values or ():
            if as_read(value) not in known:
                raise ValueError(
                    f"`values` must be in `domain`, and {shown(value)} is not: add the value to `domain`, or leave "
                    "the value out of `values`"
                )
        if self.other is not None and as_read(self.other) not in domain:
            raise ValueError(
                f"`other` must be in `domain`, and {shown(self.other)} is not: add the value to `domain`"
            )

    def _check_spellings(self) -> None:
        """Refuse two spellings of a listed value."""
        for key in ("domain", "values", "suppress"):
            two = None if self.may_differ else alike(getattr(self, key) or ())
            if two is not None and as_read(two[0]) != as_read(two[1]):
                raise ValueError(
                    f"`{key}` lists {two[0]!r} and {two[1]!r}, two spellings of the same value: keep a single "
                    "spelling, or write `spellings: distinct` if the spellings mean different things"
                )

    def _check_time(self) -> None:
        """Check the cells of a time."""
        if self.role != "time":
            return
        if (self.numeric is None) == (self.clock is None):
            raise ValueError("a time column has either `numeric` or `clock`")
        if self.clock is not None:
            self.clock.check(relative=bool(self.relative))
        if self.relative and self.numeric is not None and self.numeric.min != 0:
            raise ValueError("with `relative: true` times count from 0: say `min: 0`")

    def _check_sensitive(self) -> None:
        """Check the published and the tested values of a sensitive column."""
        if self.level is not None and self.taxonomy is None:
            raise ValueError("`level` is for columns with a `taxonomy`, or with `prefix`, `order` or `icd`")
        if self.role != "sensitive":
            return
        given = [key for key in ("domain", "taxonomy", "numeric") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{_and_keys(given)} are given, and a sensitive column has one of `domain`, `taxonomy` and "
                "`numeric`: leave one of them out"
            )
        if self.publish is not None and self.level is None:
            raise ValueError("`publish` is for sensitive columns with `taxonomy` and `level`")
        if self.distance == ORDERED and (self.numeric is None or self.missing == "leaf"):
            raise ValueError(
                "`distance: ordered` is for sensitive columns with `numeric` and without `missing: leaf`: no other "
                "values lie in a row"
            )

    @field_validator("weight")
    @classmethod
    def _one_is_not_said(cls, weight: Fraction | None) -> Fraction | None:
        """Give jobs with the same request the same form."""
        return None if weight == 1 else weight

    @field_validator("publish")
    @classmethod
    def _value_is_not_said(cls, publish: str | None) -> str | None:
        """Give jobs with the same request the same form."""
        return None if publish == "value" else publish

    @field_validator("distance")
    @classmethod
    def _equal_is_not_said(cls, distance: str | None) -> str | None:
        """Give jobs with the same request the same form."""
        return None if distance == "equal" else distance

    @property
    def is_listed(self) -> bool:
        """True if the job lists the values of a class or sensitive column."""
        return self.domain is not None or self.has_hierarchy

    @property
    def is_numeric_qid(self) -> bool:
        """True for a quasi-identifier of numbers or dates."""
        return self.role == "qid" and (self.numeric is not None or self.dates is not None)

    @property
    def has_hierarchy(self) -> bool:
        """True if the column has a taxonomy or a grid."""
        return self.tree is not None or self.numeric is not None or self.dates is not None

    def _check_refined(self) -> None:
        has_levels = self.dates is not None and self.dates.levels is not None
        if self.refine is not None and self.tree is None and not has_levels:
            raise ValueError("`refine` is for columns with a taxonomy; an interval is always split in two")
        if self.refine is not None and self.set is not None:
            raise ValueError("`refine` is for LKC jobs, which have no set-valued columns")
        if self.suppress is None:
            return
        if self.refine == "children":
            raise ValueError("`suppress` takes values out one by one; with `refine: children` say `taxonomy`")
        _require_each_once("suppress", self.suppress)
        if ROOT in self.suppress:
            raise ValueError(
                f"`suppress` publishes {ROOT!r} for what is suppressed, so it cannot be a value: rename the value, "
                "also in the table, or count it as missing, as in `missing: ['*']` under `data`"
            )
