"""Place of an owner's table: `data` in the configuration of a party.

Each field states its meaning, its unit, and the cost of a bad value.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from jobs.data.sources import Csv, Excel, Feather, Parquet, Source
from jobs.file.fields import FilePath
from jobs.file.table import Held, Opened, TextFile, WordedFile


class CsvFile(TextFile):
    """A table in a text file."""

    path: FilePath = Field(description="The file; its name may end in .gz or .zst.")


class TableFile(WordedFile):
    """A table in a file with typed columns."""

    path: FilePath = Field(description="The file.")


class ExcelFile(TableFile):
    """A table in an Excel workbook."""

    sheet: str | None = Field(default=None, description="The name of the sheet; default the first.")


class Data(Held):
    """The place of the table: exactly one of these."""

    csv: Annotated[CsvFile | None, Opened(lambda file, *_: Csv(file.path, file.wording, file.dialect))] = (
        Field(default=None, description="Text with a header line.")
    )
    parquet: Annotated[TableFile | None, Opened(lambda file, *_: Parquet(file.path, file.wording))] = Field(
        default=None, description="An Apache Parquet file."
    )
    feather: Annotated[TableFile | None, Opened(lambda file, *_: Feather(file.path, file.wording))] = Field(
        default=None, description="An Arrow file (Feather version 2)."
    )
    excel: Annotated[
        ExcelFile | None, Opened(lambda file, *_: Excel(file.path, file.wording, file.sheet))
    ] = Field(default=None, description="An Excel workbook (.xlsx). Needs openpyxl.")

    @property
    def source(self) -> Source:
        """Table, in the form for the two passes. The ledger is the party's own."""
        return self.opened(Path())

    @property
    def data_set(self) -> str:
        """Name of the table in the privacy ledger."""
        return self.name or self.source.identity
