"""Table that an engine holds, identified by its name alone."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from anonymize.errors import DataError
from jobs.data import table_file
from jobs.data.rows_read import NO_METER, Meter
from jobs.data.worded import Worded
from jobs.data.wording import AS_WRITTEN, Wording


@dataclass(frozen=True)
class Database(Worded):
    """Table in an engine.

    name:  name of the data set in a privacy ledger.
    home:  folder of a single holder's ledger.
    """

    name: str
    home: Path
    wording: Wording = AS_WRITTEN
    meter: Meter = field(default=NO_METER, kw_only=True, compare=False, repr=False)

    KIND: ClassVar[str]
    """Key of the engine under `data`."""

    def metered(self, meter: Meter) -> Self:
        return replace(self, meter=meter)

    @property
    def identity(self) -> str:
        """The name: a table in an engine has no path."""
        return self.name

    @property
    def called(self) -> str:
        return self.name

    @property
    def ledger(self) -> Path:
        return self.home.resolve() / f"{self.name}.privacy.sqlite"

    @property
    def held_at(self) -> str:
        """Digest of the keys about the table."""
        return hashlib.sha256(json.dumps([self.KIND, self._asked()], sort_keys=True).encode()).hexdigest()

    def settings(self) -> dict[str, Any]:
        return {"name": self.name, self.KIND: {**self._asked(), **self._limits(), **self.wording.settings()}}

    @abstractmethod
    def _asked(self) -> Mapping[str, Any]:
        """Return the keys about the table, without a secret."""

    def _limits(self) -> Mapping[str, Any]:
        """Return the keys about the work of the engine."""
        return {}

    @abstractmethod
    def version(self) -> str:
        """Return a text that changes whenever the table may have changed, without reading rows. Raises DataError."""


def missing_engine(package: str, extra: str) -> DataError:
    """Return the error for a package that the plain installation leaves out."""
    return DataError(
        "extra-missing",
        f"the table needs the package {package}",
        remedy=f"pip install 'jointcut[{extra}]'",
    )


def unreadable(name: str, private: str, cause: str = "", remedy: str = "") -> DataError:
    """Return the error about a table that an engine cannot give.

    private, cause, remedy:  as of :func:`jobs.data.table_file.unreadable`.
    """
    return table_file.unreadable(f"{name}: {private}", cause, remedy)


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'
