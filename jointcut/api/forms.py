"""Parts of a job as objects: the models of the job format, with an error of the interface for refused keys.

`forms.pyi` states the accepted values of every key to editors and type checkers. The stub is generated
(docs/forms_stub.py), because the models have the values after reading: fractions, tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from jobs.dp.settings import SYNTHETIC, DpModel, SyntheticModel
from jobs.errors import ConfigError
from jobs.file import columns, makers
from jobs.file.clusters import ClusterSettings
from jobs.file.fields import error_in
from jobs.file.job import PartyEntry, TableFile
from jobs.lkc import settings as lkc
from jobs.sequences.settings import SequencesModel
from jointcut.api.errors import told
from jointcut.api.wording import as_arguments
from jointcut.api.written import written


class _Part(BaseModel):
    """Part of a job. _meant: by frequent wrong keys, the right key."""

    _meant: ClassVar[Mapping[str, str]] = {}

    @told()
    def __init__(self, /, *unnamed: object, **keys: Any) -> None:
        name = type(self).__name__
        if unnamed:
            first = next(iter(type(self).model_fields))
            raise ConfigError(
                "usage", f"{name}: a value has no key", remedy=f"write the key: jointcut.{name}({first}=...)"
            )
        if wrong := [
            f"unknown key `{key}`: write `{self._meant[key]}`" for key in keys if key in self._meant
        ]:
            raise ConfigError("unknown-key", f"{name}: {'; '.join(wrong)}", remedy=_AS_SAID)
        fields = written(keys)
        try:
            super().__init__(**fields)
        except ValidationError as error:
            found = error_in(type(self), fields, error, name, "job-invalid").problem
            raise ConfigError(
                found.error_id, as_arguments(found.message), remedy=as_arguments(found.remedy)
            ) from None


_AS_SAID = "do what the error says of each key"


_BOUNDS = {"from_": "start", "min": "start", "begin": "start", "max": "to", "end": "to", "stop": "to"}
"""Names that other libraries have for the bounds of days and times."""


class Column(_Part, columns.Column):
    """Column of a job.

    >>> import jointcut as jc
    >>> jc.Column(role="qid", numeric=jc.Numeric(min=0, max=120, step=10)).role
    'qid'
    """


class Numeric(_Part, columns.NumericDomain):
    """Domain of numbers, and its cut points."""

    _meant: ClassVar[Mapping[str, str]] = {
        "from_": "min",
        "start": "min",
        "to": "max",
        "end": "max",
        "stop": "max",
    }


class Dates(_Part, columns.DateDomain):
    """Domain of days, and its cells. `start` is the key `from`, a word that Python reserves."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    _meant: ClassVar[Mapping[str, str]] = _BOUNDS


class Clock(_Part, columns.Clock):
    """Domain of local times, and its cells. `start` is the key `from`, a word that Python reserves."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    _meant: ClassVar[Mapping[str, str]] = _BOUNDS


class Set(_Part, columns.SetOf):
    """Column whose cells hold several values."""


class Normalize(_Part, columns.IdNormalization):
    """Form of ids."""


class Prefix(_Part, makers.Prefix):
    """Tree of codes by their first characters."""


class Order(_Part, makers.Order):
    """Tree of ordered values in neighbouring groups."""


class Icd(_Part, makers.Icd):
    """Tree of ICD codes."""


class Lkc(_Part, lkc.LkcModel):
    """LKC-privacy toward one kind of knowledge.

    >>> import jointcut as jc
    >>> jc.Lkc(L=2, K=5, C=0.5).K
    5
    """


class Requirement(_Part, lkc.Requirement):
    """Requirement of LKC-privacy among several."""


class Requirements(_Part, lkc.LkcList):
    """LKC-privacy toward several kinds of knowledge."""


class Clusters(_Part, ClusterSettings):
    """Settings of `goal: clusters`."""


class Dp(_Part, DpModel):
    """Differential privacy by DiffGen."""

    @told()
    def __init__(self, /, **keys: Any) -> None:
        if keys.get("method") == SYNTHETIC:
            raise ConfigError(
                "job-invalid", f"Dp: `method` is {SYNTHETIC}", remedy="write jointcut.Synthetic(epsilon=...)"
            )
        super().__init__(**keys)


class Synthetic(_Part, SyntheticModel):
    """Differential privacy by synthetic rows.

    >>> import jointcut as jc
    >>> jc.Synthetic(epsilon=1).edges
    'auto'
    """

    def __init__(self, /, **keys: Any) -> None:
        super().__init__(**{"method": SYNTHETIC, **keys})


class Sequences(_Part, SequencesModel):
    """LKC-privacy of sequences."""


class Party(_Part, PartyEntry):
    """Data holder of a joint job."""


class Table(_Part, TableFile):
    """Table in a file, with facts for its reader."""


MODELS: dict[type[BaseModel], str] = {
    Lkc: "lkc",
    Requirements: "lkc",
    Dp: "dp",
    Synthetic: "dp",
    Sequences: "sequences",
}
"""Key under `model` of each privacy model."""
