"""Keys about a table's file: its form, and its owner's words for names and values."""

from __future__ import annotations

import codecs
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from jobs.data.dialect import Dialect
from jobs.data.wording import Wording
from jobs.file.fields import DELIMITER, DateForm, Fields


def _known_encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError as error:
        raise ValueError("write the name of a text encoding, such as utf-8, cp1252 or utf-16") from error


class WordedFile(Fields):
    """Keys for the words of a table: every kind of file has these."""

    missing: tuple[str, ...] = Field(
        default=(),
        description="Texts that mean a missing cell in every column, besides an empty cell and `?`: NA, -9, ...",
    )
    true: tuple[str, ...] = Field(
        default=(), description="Texts that mean the value `true`: TRUE, 1, yes, ..."
    )
    false: tuple[str, ...] = Field(default=(), description="Texts that mean the value `false`.")
    decimal: Literal[".", ","] | None = Field(
        default=None,
        description="The sign before the fraction of a number. Unset: found in the head of a CSV, with a note.",
    )
    rename: dict[str, str] = Field(
        default={}, description="The job's name of a column, by its name in the table: {kunde: customer}."
    )
    map: dict[str, dict[str, str]] = Field(
        default={},
        description="The job's values, by column (its name in the job) and value in the table: {sex: {1: M, 2: F}}. "
        "Other values stay.",
    )

    dates: dict[str, DateForm] = Field(
        default={},
        description="The form of the dates in the table, by column (its name in the job), where the job has another "
        "form: {admitted: DD.MM.YYYY}.",
    )

    @property
    def wording(self) -> Wording:
        return Wording(self.missing, self.true, self.false, self.rename, self.map, self.dates, self.decimal)


class TextFile(WordedFile):
    """Keys of a text file."""

    delimiter: str | None = Field(
        default=None,
        pattern=DELIMITER,
        description="csv: the separator, one ASCII character but no quote. Unset: found in the first lines (a comma, "
        "`;`, a tab or `|`), with a note.",
    )
    quote: str = Field(
        default='"', pattern=r"^[!-~]$", description="csv: the sign around values that hold the separator."
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] | None = Field(
        default=None,
        description="csv: the encoding of the text, such as utf-8, cp1252 or utf-16. Unset: UTF-8 or UTF-16; a text "
        "that is neither is read as cp1252 (Windows and Latin-1), with a note.",
    )

    @property
    def dialect(self) -> Dialect:
        return Dialect(self.delimiter, self.quote, self.encoding)
