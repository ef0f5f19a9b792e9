"""Field types of every YAML file: names, addresses, exact numbers; and how a file's mistakes are told.

Scalars arrive as the text they were written as (:mod:`jobs.file.yaml_text`), so rationals and decimals are exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    ValidationError,
    WithJsonSchema,
)

from anonymize.dates import is_form, is_step
from anonymize.table import MAX_RECORDS
from jobs.data.table_file import DATE, NO_DATE
from jobs.errors import ConfigError

if TYPE_CHECKING:
    from jobs.file.key_errors import Advice

F = TypeVar("F", bound=BaseModel)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME_RULE = "write a name of letters, digits, dots, dashes and underscores only, at most 64"
ADDRESS = r"^(\[[0-9a-fA-F:]+\]|[^\s:\[\]]+):[0-9]{1,5}$"
DELIMITER = r"^[\t !#-~]$"
_MAX_PORT = 65535
_ADDRESS_RULE = f"write host:port, with a port of at most {_MAX_PORT}"
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
_FRACTION = re.compile(r"[0-9]+/[0-9]+")
_MAX_NUMBER_CHARS = 40
_MAX_TERM = 1 << 62


class Fields(BaseModel):
    """Keys of a file. Frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _rational(value: object) -> Fraction:
    text = str(value).strip()
    if len(text) > _MAX_NUMBER_CHARS or not (_NUMBER.fullmatch(text) or _FRACTION.fullmatch(text)):
        raise ValueError("write a number, e.g. 0.2, or a fraction, e.g. 1/5")
    try:
        return Fraction(text)
    except ZeroDivisionError as error:
        raise ValueError("write a fraction with a denominator above 0") from error


def _confidence(value: object) -> Fraction:
    c = _rational(value)
    if not 0 < c <= 1:
        raise ValueError("write a number above 0 and at most 1")
    if c.denominator >= _MAX_TERM:
        raise ValueError("the number has too many digits for exact arithmetic; write fewer digits")
    return c


def _share(value: object) -> Fraction:
    share = _rational(value)
    if not 0 <= share <= Fraction(1, 2):
        raise ValueError("write a share of the rows, from 0 to 1/2")
    return share


def _part(value: object) -> Fraction:
    part = _rational(value)
    if not 0 < part <= 1:
        raise ValueError("write a share of the records, above 0 and at most 1")
    return part


def _outside_share(value: object) -> Fraction:
    share = _rational(value)
    if not 0 <= share <= 1:
        raise ValueError("write a share of the cells of a column, from 0 to 1")
    return share


def positive(value: object) -> Fraction:
    """Read a number above 0. Raises ValueError."""
    number = _rational(value)
    if number <= 0:
        raise ValueError("write a number above 0")
    return number


def _decimal(value: object) -> Decimal:
    text = str(value).strip()
    if DATE.fullmatch(text):
        raise ValueError(NO_DATE)
    if len(text) > _MAX_NUMBER_CHARS or not _NUMBER.fullmatch(text):
        raise ValueError("write a number, e.g. 17 or 0.5")
    return Decimal(text)


_DURATION = r"[1-9][0-9]{0,6}[smhd]"
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def seconds_of(duration: str) -> int:
    """Return the seconds of a duration in the form of :data:`Duration`."""
    return int(duration[:-1]) * _SECONDS[duration[-1]]


def duration_of(value: object) -> str:
    """Return a duration in its largest whole unit, so that jobs with the same request have the same form.

    Raises ValueError.
    """
    text = str(value).strip()
    if not re.fullmatch(_DURATION, text):
        raise ValueError("write a whole number with s, m, h or d, e.g. 15m or 1h")
    seconds = seconds_of(text)
    return next(f"{seconds // size}{unit}" for unit, size in _SECONDS.items() if seconds % size == 0)


def _stamp(value: object) -> str:
    text = str(value).strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("write a local time, e.g. 2026-01-31T14:05") from error
    if moment.tzinfo is not None:
        raise ValueError("write a local time without a zone, e.g. 2026-01-31T14:05")
    return moment.replace(microsecond=0).isoformat(timespec="seconds" if moment.second else "minutes")


def _stamp_or_duration(value: object) -> str:
    if is_duration(str(value).strip()):
        return duration_of(value)
    try:
        return _stamp(value)
    except ValueError as error:
        raise ValueError(f"{error}; with `relative: true` a length of time, e.g. 14d or 36h") from error


def _day(value: object) -> str:
    try:
        return date.fromisoformat(str(value).strip()).isoformat()
    except ValueError as error:
        raise ValueError("write a day, e.g. 2024-01-31") from error


def _date_step(value: object) -> str:
    text = str(value).strip()
    if not is_step(text):
        raise ValueError(
            "write a whole number with d, mo or y, e.g. 7d, 1mo or 10y, or day, week, month, quarter or year"
        )
    return text


def _date_form(value: object) -> str:
    text = str(value).strip()
    if not is_form(text):
        raise ValueError(
            "write year, month and day in the order of the table, e.g. YYYY-MM-DD, DD.MM.YYYY, MM/DD/YYYY or YYYYMMDD"
        )
    return text


def is_duration(text: str) -> bool:
    """Return True if a :data:`StampOrDuration` is a duration."""
    return re.fullmatch(_DURATION, text) is not None


def check_address(value: object) -> str:
    """Return the text of an address of the form host:port. Raises ValueError."""
    text = str(value)
    if not re.fullmatch(ADDRESS, text):
        raise ValueError(_ADDRESS_RULE)
    return check_port(text)


def check_port(address: str) -> str:
    """Return an address of the form host:port. Raises ValueError if there is no such port."""
    if int(address.rpartition(":")[2]) > _MAX_PORT:
        raise ValueError(_ADDRESS_RULE)
    return address


def _name(value: object) -> str:
    text = str(value)
    if not NAME.fullmatch(text):
        raise ValueError(NAME_RULE)
    return text


def _as_number_or_text(*forms: str, **bounds: int) -> WithJsonSchema:
    """Return a JSON Schema: a number, or the text of a given form. The bounds apply to numbers alone."""
    return WithJsonSchema({"type": ["number", "string"], **bounds, "pattern": f"^({'|'.join(forms)})$"})


def _path(value: object) -> Path:
    text = str(value)
    if not text.strip():
        raise ValueError("the path is empty: write the path of a file")
    if "\n" in text or "-----BEGIN" in text:  # perhaps a key: an error must not repeat the text
        raise ValueError("write the path of a file, not the content")
    return Path(text)


_DIGITS = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?"
_UNSIGNED, _SIGNED = rf"\+?{_DIGITS}", rf"[+-]?{_DIGITS}"
_RATIO = "[0-9]+/0*[1-9][0-9]*"

Confidence = Annotated[
    Fraction,
    BeforeValidator(_confidence),
    PlainSerializer(str),
    _as_number_or_text(_UNSIGNED, _RATIO, exclusiveMinimum=0, maximum=1),
]
Share = Annotated[
    Fraction,
    BeforeValidator(_share),
    PlainSerializer(str),
    _as_number_or_text(_UNSIGNED, _RATIO, minimum=0),
]
OutsideShare = Annotated[
    Fraction,
    BeforeValidator(_outside_share),
    PlainSerializer(str),
    _as_number_or_text(_UNSIGNED, _RATIO, minimum=0, maximum=1),
]
Part = Annotated[
    Fraction,
    BeforeValidator(_part),
    PlainSerializer(str),
    _as_number_or_text(_UNSIGNED, _RATIO, exclusiveMinimum=0, maximum=1),
]
Epsilon = Annotated[
    Fraction,
    BeforeValidator(positive),
    PlainSerializer(str),
    _as_number_or_text(_UNSIGNED, _RATIO, exclusiveMinimum=0),
]
Number = Annotated[Decimal, BeforeValidator(_decimal), PlainSerializer(str), _as_number_or_text(_SIGNED)]
Duration = Annotated[str, BeforeValidator(duration_of), Field(pattern=f"^{_DURATION}$")]
Day = Annotated[str, BeforeValidator(_day)]
DateStep = Annotated[str, BeforeValidator(_date_step)]
DateForm = Annotated[str, BeforeValidator(_date_form)]
Stamp = Annotated[str, BeforeValidator(_stamp)]
StampOrDuration = Annotated[str, BeforeValidator(_stamp_or_duration)]
Name = Annotated[
    str,
    BeforeValidator(_name),
    WithJsonSchema({"type": ["string", "number", "boolean"], "minimum": 0, "pattern": f"^{NAME.pattern}$"}),
]
FilePath = Annotated[Path, BeforeValidator(_path), PlainSerializer(str)]
Address = Annotated[str, Field(pattern=ADDRESS), BeforeValidator(check_address)]
Nested = Mapping[str, Any] | list[str]

LEVELS = ("sealed", "leader", "strict")
"""Levels of disclosure of joint LKC jobs: the levels of all modes `partition/level` of
:data:`anonymize.joint.disclosure.ALLOWED`.
"""
RECORD, PERSON = "record", "person"
"""Units of K."""
DEFAULT_LEVEL = "sealed"
"""Default disclosure of a joint job: no count finer than the table is opened."""
DEFAULT_GOAL = "classification"
"""Default goal of a job."""
if TYPE_CHECKING:
    Level: TypeAlias = str
else:
    Level = Literal[LEVELS]


def no_advice(keys: Sequence[str], fields: Any) -> str:
    """Return no advice on an unknown key."""
    return ""


def parse_model(model: type[F], fields: Any, where: str, error_id: str, advice: Advice = no_advice) -> F:
    """Validate fields against a model. Raises ConfigError listing each problem with the key's path.

    advice:  what to write instead of unknown keys.
    """
    if not isinstance(fields, Mapping):
        found = ", but nothing is written" if fields is None else ""
        raise ConfigError(
            error_id, f"{where}: expected keys and values{found}", remedy="begin with a line `version: 1`"
        )
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise error_in(model, fields, error, where, error_id, advice) from None


def error_in(
    model: type[BaseModel],
    fields: Mapping[str, Any],
    error: ValidationError,
    where: str,
    error_id: str,
    advice: Advice = no_advice,
) -> ConfigError:
    """Return the error for fields that are refused by a model, with each problem and the key's path."""
    from jobs.file.key_errors import explained

    items = error.errors(include_url=False, include_context=True)
    is_job = error_id == "job-invalid"  # a configuration is its owner's, and its values may go to a log
    found = explained(items, fields, advice, partial(known_keys, model, fields), show=is_job)
    return ConfigError(
        "unknown-key" if found.are_unknown_keys else error_id,
        f"{where}: {'; '.join(found.sentences)}",
        remedy=found.remedy,
    )


def known_keys(form: Any, value: Any, path: Sequence[str]) -> list[str]:
    """Return the keys that may stand below a path of a value of some form: a model, or a type with models.

    If the value decides the branch of a union, other branches give no keys.
    """
    models = _models_in(form, value)
    if not path:
        return [field.alias or key for model in models for key, field in model.model_fields.items()]
    key, *rest = path
    inner = [model.model_fields[key].annotation for model in models if key in model.model_fields]
    below = value.get(key) if isinstance(value, Mapping) else None
    return [each for found in [*inner, *_entries_of(form)] for each in known_keys(found, below, rest)]


def _models_in(form: Any, value: Any) -> list[type[BaseModel]]:
    """Return the models that a type may be, for a value."""
    if isinstance(form, type) and issubclass(form, BaseModel):
        return [form]
    if get_origin(form) in (Union, UnionType, Annotated):
        return [model for part in _parts_for(form, value) for model in _models_in(part, value)]
    return []


def _parts_for(form: Any, value: Any) -> Sequence[Any]:
    """Return the parts of a union or of an annotated type; of a union with tags the part for the value."""
    whole, *marks = get_args(form)
    for mark in marks if value is not None else ():
        if isinstance(mark, Discriminator) and callable(mark.discriminator):
            tag = Tag(str(mark.discriminator(value)))
            return [part for part in get_args(whole) if tag in get_args(part)]
    return get_args(form)


def _entries_of(form: Any) -> list[Any]:
    """Return the types of the entries of a mapping or a list."""
    if get_origin(form) in (Union, UnionType, Annotated):
        return [entry for part in get_args(form) for entry in _entries_of(part)]
    origin, inner = get_origin(form), get_args(form)
    if origin is tuple:
        return list(inner[:1])
    return list(inner[-1:]) if origin in (dict, Mapping, list) else []


def _of_some_table(k: int) -> int:
    if k > MAX_RECORDS:
        raise ValueError(f"no table has more than {MAX_RECORDS} records: write a smaller number")
    return k


Least = Annotated[
    int, Field(ge=1, json_schema_extra={"maximum": MAX_RECORDS}), AfterValidator(_of_some_table)
]
"""Fewest records of a group; no more than a table may have."""


def _form_of_bounds(value: object) -> str:
    return "<bounds>" if isinstance(value, Mapping) else "<bound>"


Bounds = Annotated[
    Annotated[Confidence, Tag("<bound>")]
    | Annotated[Annotated[dict[str, Confidence], Field(min_length=1)], Tag("<bounds>")],
    Discriminator(_form_of_bounds),
]
"""C for all sensitive columns together, or by sensitive column."""
