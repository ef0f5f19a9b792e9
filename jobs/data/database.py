"""Table that an engine holds, identified by its name alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from anonymize.errors import DataError
from anonymize.table import Ints
from jobs.data.arrow import pa
from jobs.data.coding import Coded, Coding
from jobs.data.streaming import Reader
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

    KIND: ClassVar[str]
    """Key of the engine under `data`."""

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

    def settings(self) -> dict[str, Any]:
        return {"name": self.name, self.KIND: {**self._asked(), **self.wording.settings()}}

    def collapse(self, coding: Coding) -> Coded:
        """Let the engine count equal rows, where the job asks for nothing else.

        If a value is unfit, the rows are read one by one after all: only then do values have a place.
        """
        if coding.of_counts:
            reader = Reader(self, coding)
            for batch, weights in self.counted(reader.names):
                reader.add(batch, weights)
                if reader.has_unfit:
                    break
            else:
                return reader.finish()
        return super().collapse(coding)

    def counted(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        """Yield the different rows of some columns, as :meth:`batches`, with the number of equal rows each."""
        with self._readable():
            named = {self.wording.name(name): name for name in self._names()}
            for batch in self._counted([named[name] for name in columns]):
                *texts, counts = batch.columns
                worded = map(self.wording.worded, columns, texts)
                yield pa.RecordBatch.from_arrays(list(worded), list(columns)), np.asarray(counts, np.int64)

    @abstractmethod
    def _counted(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream different rows of columns, by their names in the table, as text; the last column counts rows."""

    @abstractmethod
    def _asked(self) -> Mapping[str, Any]:
        """Return the keys about the engine and the table, without a secret."""

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


def unreadable(name: str, private: str, cause: str = "") -> DataError:
    """Return the error about a table that an engine cannot give.

    private:  words for the owner alone. They may name values, and never hold a secret.
    """
    return DataError("data-unreadable", "the table cannot be read", private=f"{name}: {private}", cause=cause)
