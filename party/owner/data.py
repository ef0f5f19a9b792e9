"""Place of an owner's table: `data` in the configuration of a party.

Each field states its meaning, its unit, and the cost of a bad value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, model_validator

from jobs.data.sources import Csv, Excel, Feather, Parquet, Source
from jobs.file.fields import Fields, FilePath, Name
from jobs.file.table import TextFile, WordedFile


class CsvFile(TextFile):
    """A table in a text file."""

    path: FilePath = Field(description="The file; its name may end in .gz or .zst.")


class TableFile(WordedFile):
    """A table in a file with typed columns."""

    path: FilePath = Field(description="The file.")


class ExcelFile(TableFile):
    """A table in an Excel workbook."""

    sheet: str | None = Field(default=None, description="The name of the sheet; default the first.")


@dataclass(frozen=True)
class Opened:
    """Mark of a key of :class:`Data` that names a source. ``by``: makes the source from the key's value."""

    by: Callable[[Any], Source]


class Data(Fields):
    """The place of the table: exactly one of these."""

    name: Name | None = Field(
        default=None,
        description="Name of the data set in the privacy ledger; default its path behind all links. "
        "Another name has another budget.",
    )
    csv: Annotated[CsvFile | None, Opened(lambda file: Csv(file.path, file.wording, file.dialect))] = Field(
        default=None, description="Text with a header line."
    )
    parquet: Annotated[TableFile | None, Opened(lambda file: Parquet(file.path, file.wording))] = Field(
        default=None, description="An Apache Parquet file."
    )
    feather: Annotated[TableFile | None, Opened(lambda file: Feather(file.path, file.wording))] = Field(
        default=None, description="An Arrow file (Feather version 2)."
    )
    excel: Annotated[ExcelFile | None, Opened(lambda file: Excel(file.path, file.wording, file.sheet))] = (
        Field(default=None, description="An Excel workbook (.xlsx). Needs openpyxl.")
    )

    @classmethod
    def _kinds(cls) -> Mapping[str, Opened]:
        """Return every key that names a source."""
        fields = cls.model_fields.items()
        return {key: how for key, field in fields for how in field.metadata if isinstance(how, Opened)}

    @property
    def _given(self) -> list[str]:
        return [key for key in self._kinds() if getattr(self, key) is not None]

    @model_validator(mode="after")
    def _exactly_one(self) -> Data:
        if len(self._given) != 1:
            *others, last = (f"`{key}`" for key in self._kinds())
            raise ValueError(f"give exactly one of {', '.join(others)} and {last}")
        return self

    @property
    def source(self) -> Source:
        """Table, in the form for the two passes."""
        (key,) = self._given
        return self._kinds()[key].by(getattr(self, key))

    @property
    def data_set(self) -> str:
        """Name of the table in the privacy ledger."""
        return self.name or self.source.identity
